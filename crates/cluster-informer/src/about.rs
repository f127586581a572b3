//! What a member tells of itself: its version, its nodes. Asked for when it becomes healthy, and every few minutes.
//!
//! ```text
//! healthy --> GET /version, list nodes by pages --> a sum --> MemberStore
//! ```
//!
//! For people only: no decision depends on it. Nodes are read into a few numbers each and dropped.

use std::{collections::BTreeMap, time::Duration};

use http::Request;
use kube::Client;
use reflector::{
    Backoff, ClientReceiver, Collection, Error, ReflectorSettings, partial::null_as_default,
};
use serde::Deserialize;
use tokio::{sync::Notify, time::timeout};
use tracing::debug;

use crate::{
    quantity,
    store::MemberStore,
    view::{Health, MemberView},
};

/// How a member is asked about itself.
#[derive(Clone, Debug)]
pub struct AboutSettings {
    /// From one time to the next, less up to a fifth. Default 5 min.
    pub period: Duration,
    /// After a time that failed. Default 30 s.
    pub retry: Duration,
    /// Nodes per page. Default 500.
    pub page_size: u32,
    /// An answer is complete within this. Default 30 s.
    pub deadline: Duration,
}

impl Default for AboutSettings {
    fn default() -> Self {
        Self {
            period: Duration::from_secs(300),
            retry: Duration::from_secs(30),
            page_size: 500,
            deadline: Duration::from_secs(30),
        }
    }
}

/// What a member last told of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Its API server's version.
    pub version: Option<String>,
    /// Its nodes.
    pub nodes: Nodes,
}

/// What is known of a member's nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nodes {
    /// They have not been listed yet.
    #[default]
    Unknown,
    /// Our account may not list them.
    Forbidden,
    /// As they were last listed.
    Known(NodeTotals),
}

/// Numbers over all nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeTotals {
    /// All nodes.
    pub total: u32,
    /// Of these: ready.
    pub ready: u32,
    /// What those that are ready and not cordoned can give, in thousandths of a core.
    pub cpu_millis: u64,
    /// The same, in bytes.
    pub memory_bytes: u64,
    /// The same, in pods.
    pub pods: u64,
}

impl NodeTotals {
    /// What they can give, by resource, as canonical quantities.
    #[must_use]
    pub fn allocatable(&self) -> BTreeMap<String, String> {
        [
            ("cpu", quantity::of_millis(self.cpu_millis)),
            ("memory", quantity::of_bytes(self.memory_bytes)),
            ("pods", self.pods.to_string()),
        ]
        .map(|(resource, amount)| (resource.to_owned(), amount))
        .into()
    }

    fn add(&mut self, node: &NodeObject) {
        self.total = self.total.saturating_add(1);
        if !node.is_ready() {
            return;
        }
        self.ready = self.ready.saturating_add(1);
        if node.spec.unschedulable {
            return;
        }
        let amount = |text: &str, unit| {
            let millis = quantity::millis(text).unwrap_or_default();
            u64::try_from(millis / unit).unwrap_or(u64::MAX)
        };
        let given = &node.status.allocatable;
        self.cpu_millis = self.cpu_millis.saturating_add(amount(&given.cpu, 1));
        self.memory_bytes = self
            .memory_bytes
            .saturating_add(amount(&given.memory, 1000));
        self.pods = self.pods.saturating_add(amount(&given.pods, 1000));
    }
}

/// A node as it comes over the wire, as far as it is added up.
#[derive(Debug, Deserialize)]
struct NodeObject {
    #[serde(default, deserialize_with = "null_as_default")]
    spec: NodeSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: NodeStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NodeSpec {
    unschedulable: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NodeStatus {
    #[serde(deserialize_with = "null_as_default")]
    allocatable: Allocatable,
    #[serde(deserialize_with = "null_as_default")]
    conditions: Vec<NodeCondition>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Allocatable {
    cpu: String,
    memory: String,
    pods: String,
}

#[derive(Debug, Deserialize)]
struct NodeCondition {
    r#type: String,
    status: String,
}

impl NodeObject {
    fn is_ready(&self) -> bool {
        let mut conditions = self.status.conditions.iter();
        conditions.any(|it| it.r#type == "Ready" && it.status == "True")
    }
}

/// Asks the member about itself while it is healthy, for ever; at once when `healthy` is notified.
pub(crate) async fn run(
    mut clients: ClientReceiver,
    settings: AboutSettings,
    store: &MemberStore,
    healthy: &Notify,
    seed: u64,
) {
    let mut jitter = Backoff::new(settings.period, settings.period, seed);
    loop {
        let mut pause = settings.period;
        if store.health() == Health::Healthy {
            match ask(&mut clients, &settings).await {
                Ok(about) => store.put_about(about),
                Err(error) => {
                    debug!(%error, "the member could not be asked about itself");
                    pause = settings.retry;
                }
            }
        }
        let _notified = timeout(jitter.jitter(pause, 0.2), healthy.notified()).await;
    }
}

async fn ask(clients: &mut ClientReceiver, settings: &AboutSettings) -> Result<About, Error> {
    Ok(About {
        version: version(&clients.current(), settings.deadline).await,
        nodes: nodes(clients, settings).await?,
    })
}

/// The version that the API server says it has; none if it doesn't say.
async fn version(client: &Client, deadline: Duration) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Version {
        git_version: String,
    }
    let request = Request::get("/version")
        .body(Vec::new())
        .expect("a constant path is a request");
    let answer = timeout(deadline, client.request::<Version>(request)).await;
    Some(answer.ok()?.ok()?.git_version)
}

async fn nodes(clients: &ClientReceiver, settings: &AboutSettings) -> Result<Nodes, Error> {
    let settings = ReflectorSettings {
        page_size: settings.page_size,
        page_timeout: settings.deadline,
        ..ReflectorSettings::default()
    };
    let mut totals = NodeTotals::default();
    let nodes = Collection::all("/api/v1/nodes");
    let listed = reflector::list(clients.clone(), nodes, &settings, |node| {
        if let Ok(node) = node {
            totals.add(&node);
        }
    });
    match listed.await {
        Ok(()) => Ok(Nodes::Known(totals)),
        Err(error) if error.code() == Some(403) => Ok(Nodes::Forbidden),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
#[path = "about_tests.rs"]
mod tests;
