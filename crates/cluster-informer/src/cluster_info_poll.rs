//! Reads a member cluster's version and nodes: when it becomes healthy, and every few minutes.
//!
//! ```text
//! healthy --> GET /version, list nodes by pages --> ClusterInfo --> MemberStore
//! ```
//!
//! Each node is reduced to a few numbers and dropped.

use std::time::Duration;

use http::Request;
use kube::Client;
use reflector::{Backoff, ClientReceiver, Collection, Error, ReflectorSettings};
use serde::Deserialize;
use tokio::{sync::Notify, time::timeout};
use tracing::debug;

use crate::{
    cluster_info::{ClusterInfo, NodeInfo, NodeObject, NodeTotals},
    health::Health,
    member_view::MemberView,
    store::MemberStore,
};

/// How often a member cluster's version and nodes are read.
#[derive(Clone, Debug)]
pub struct ClusterInfoSettings {
    /// From one read to the next, less up to a fifth. Default 5 min.
    pub period: Duration,
    /// After a read that failed. Default 30 s.
    pub retry: Duration,
    /// Nodes per page. Default 500.
    pub page_size: u32,
    /// Time within which a response is complete. Default 30 s.
    pub timeout: Duration,
}

impl Default for ClusterInfoSettings {
    fn default() -> Self {
        Self {
            period: Duration::from_secs(300),
            retry: Duration::from_secs(30),
            page_size: 500,
            timeout: Duration::from_secs(30),
        }
    }
}

/// Reads version and nodes while the member is healthy, for ever; at once when `healthy` is notified.
pub(crate) async fn run(
    mut clients: ClientReceiver,
    settings: ClusterInfoSettings,
    store: &MemberStore,
    healthy: &Notify,
    seed: u64,
) {
    let mut backoff = Backoff::new(settings.period, settings.period, seed);
    loop {
        let mut pause = settings.period;
        if store.health() == Health::Healthy {
            match read(&mut clients, &settings).await {
                Ok(info) => store.set_cluster_info(info),
                Err(error) => {
                    debug!(%error, "failed to read version and nodes");
                    pause = settings.retry;
                }
            }
        }
        let _notified = timeout(backoff.jitter(pause, 0.2), healthy.notified()).await;
    }
}

async fn read(
    clients: &mut ClientReceiver,
    settings: &ClusterInfoSettings,
) -> Result<ClusterInfo, Error> {
    Ok(ClusterInfo {
        version: version(&clients.current(), settings.timeout).await,
        nodes: nodes(clients, settings).await?,
    })
}

/// The API server's version, unless it does not report one.
async fn version(client: &Client, within: Duration) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Version {
        git_version: String,
    }
    let request = Request::get("/version")
        .body(Vec::new())
        .expect("a constant path is a request");
    let response = timeout(within, client.request::<Version>(request)).await;
    Some(response.ok()?.ok()?.git_version)
}

async fn nodes(
    clients: &ClientReceiver,
    settings: &ClusterInfoSettings,
) -> Result<NodeInfo, Error> {
    let settings = ReflectorSettings {
        page_size: settings.page_size,
        page_timeout: settings.timeout,
        ..ReflectorSettings::default()
    };
    let mut totals = NodeTotals::default();
    let nodes = Collection::all("/api/v1/nodes");
    let listed = reflector::list::<NodeObject>(clients.clone(), nodes, &settings, |node| {
        if let Ok(node) = node {
            totals.add(&node);
        }
    });
    match listed.await {
        Ok(()) => Ok(NodeInfo::Known(totals)),
        Err(error) if error.code() == Some(403) => Ok(NodeInfo::Forbidden),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
#[path = "cluster_info_poll_tests.rs"]
mod tests;
