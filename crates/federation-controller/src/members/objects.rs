//! MemberCluster objects on the host: one for each member, with what is known of it.
//!
//! ```text
//! every second: registry --> wanted status --> differs from what was written? --> host
//! ```

use std::{sync::Arc, time::Duration};

use cluster_informer::{Health, Sync};
use fedrs_api::MemberClusterStatus;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::Client;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::Registry;
use crate::{calls, check, clock::Clock, error_text::words, executor::MemberAccess};

/// How often what is known is compared with what was written.
const PERIOD: Duration = Duration::from_secs(1);
/// Where MemberClusters are.
const PATH: &str = "/apis/fedrs.dev/v1alpha1/memberclusters";

/// Keeps the MemberCluster of one member.
pub(super) struct ObjectKeeper {
    pub(super) host: Client,
    pub(super) registry: Arc<Registry>,
    pub(super) name: String,
    pub(super) clock: Clock,
    pub(super) call_timeout: Duration,
    /// How long a member may take to answer before the object says that it doesn't.
    pub(super) joining_timeout: Duration,
}

impl ObjectKeeper {
    /// Keeps the object current until `cancel`, or until the member is forgotten.
    pub(super) async fn run(self, cancel: CancellationToken) {
        let mut written: Option<MemberClusterStatus> = None;
        let mut version = None;
        let told_from = tokio::time::Instant::now() + self.joining_timeout;
        let mut ticks = tokio::time::interval(PERIOD);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while cancel.run_until_cancelled(ticks.tick()).await.is_some() {
            if !self.registry.is_known(&self.name) {
                return;
            }
            if written.is_none() {
                written = self.ensure().await;
            }
            if version.is_none() {
                version = self.version().await;
            }
            let Some(before) = &written else { continue };
            // After a restart, what was told before is a better guess than that nothing is known.
            let told = !before.conditions.is_empty();
            if told && self.is_joining() && tokio::time::Instant::now() < told_from {
                continue;
            }
            let wanted = self.status(before, version.clone());
            if wanted != *before {
                // Where it could not be written it may be gone: it is read, or made, again.
                written = self.write(&wanted).await.then_some(wanted);
            }
        }
    }

    /// The status that the host has, of an object that is created if it is missing: a restart writes nothing.
    async fn ensure(&self) -> Option<MemberClusterStatus> {
        let object = json!({
            "apiVersion": "fedrs.dev/v1alpha1",
            "kind": "MemberCluster",
            "metadata": { "name": self.name },
            "spec": {},
        });
        let path = format!("{PATH}/{}", self.name);
        let answer = match self.call(calls::get(&self.host, &path)).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {
                self.call(calls::post(&self.host, PATH, &object)).await
            }
            answer => answer,
        };
        match answer {
            Ok(object) => {
                let status = object.get("status").cloned().unwrap_or_else(|| json!({}));
                Some(serde_json::from_value(status).unwrap_or_default())
            }
            Err(error) => {
                tracing::debug!(cluster = %self.name, error = words(&error), "MemberCluster not written");
                None
            }
        }
    }

    /// Whether its first answers are still awaited.
    fn is_joining(&self) -> bool {
        self.registry.access(&self.name).is_some_and(|member| {
            member.store.health() == Health::Unknown
                || (member.store.health() == Health::Healthy
                    && member.store.sync() == Sync::NotSynced)
        })
    }

    /// The version that the member's API server says it has, once it answers.
    async fn version(&self) -> Option<String> {
        let access = self.registry.access(&self.name)?;
        if access.store.health() != Health::Healthy {
            return None;
        }
        let answer = self
            .call(calls::get(&access.client, "/version"))
            .await
            .ok()?;
        answer["gitVersion"].as_str().map(str::to_owned)
    }

    async fn write(&self, status: &MemberClusterStatus) -> bool {
        let path = format!("{PATH}/{}/status", self.name);
        let mut fields = serde_json::to_value(status).expect("a status is plain data");
        for field in ["version", "unreachableSince"] {
            if let Some(fields) = fields.as_object_mut() {
                fields.entry(field).or_insert(Value::Null);
            }
        }
        let patch = json!({ "status": fields });
        match self
            .call(calls::merge_patch(&self.host, &path, &patch))
            .await
        {
            Ok(_) => true,
            Err(error) => {
                tracing::debug!(cluster = %self.name, error = words(&error), "MemberCluster status not written");
                false
            }
        }
    }

    async fn call(&self, call: impl Future<Output = kube::Result<Value>>) -> kube::Result<Value> {
        match tokio::time::timeout(self.call_timeout, call).await {
            Ok(answer) => answer,
            Err(elapsed) => Err(kube::Error::Service(elapsed.into())),
        }
    }

    fn status(&self, before: &MemberClusterStatus, version: Option<String>) -> MemberClusterStatus {
        let (broken, removed) = self.registry.trouble(&self.name);
        let access = self.registry.access(&self.name);
        let known = Known::of(access.as_ref(), broken, removed);
        let now = self.clock.now();
        let condition = |type_, (holds, reason, message): (bool, &str, String)| -> Condition {
            check::condition(&before.conditions, type_, holds, reason, &message, now)
        };
        MemberClusterStatus {
            conditions: vec![
                condition("Ready", known.ready),
                condition("Synced", known.synced),
            ],
            version: version.or_else(|| before.version.clone()),
            unreachable_since: known.since.map(Time),
            replica_sets: i32::try_from(known.sets).unwrap_or(i32::MAX),
            nodes: before.nodes,
            allocatable: before.allocatable.clone(),
            token_expires: before.token_expires.clone(),
        }
    }
}

/// What the conditions of a MemberCluster say.
struct Known {
    ready: (bool, &'static str, String),
    synced: (bool, &'static str, String),
    since: Option<Timestamp>,
    sets: u32,
}

impl Known {
    fn of(
        access: Option<&MemberAccess>,
        broken: Option<String>,
        removed: Option<Timestamp>,
    ) -> Self {
        let health = access.map_or(Health::Unknown, |it| it.store.health());
        let mut since = removed;
        let mut ready = match health {
            Health::Healthy => (true, "Healthy", "the API server answers".to_owned()),
            Health::Unknown => (false, "Unknown", "not probed yet".to_owned()),
            Health::Failing { message, .. } => (false, "ProbeFailing", message),
            Health::Unauthorized { message } => (false, "Unauthorized", message),
            Health::Unreachable {
                since: first,
                message,
            } => {
                since = Some(first);
                (false, "Unreachable", message)
            }
        };
        if let Some(message) = broken {
            ready = (false, "InvalidKubeconfig", message);
        }
        if removed.is_some() {
            ready = (
                false,
                "Removed",
                "its kubeconfig is gone from the members' folder".to_owned(),
            );
        }
        let synced = match access.map_or(Sync::NotSynced, |it| it.store.sync()) {
            Sync::Synced => (true, "Synced", "its sets and pods are watched".to_owned()),
            Sync::NotSynced => (
                false,
                "NotSynced",
                "its sets and pods are not listed yet".to_owned(),
            ),
            Sync::Stale { since } => (
                false,
                "Stale",
                format!("what is known of it is from {since:.0}"),
            ),
        };
        Self {
            ready,
            synced,
            since,
            sets: access.map_or(0, |it| it.store.held(0).sets),
        }
    }
}
