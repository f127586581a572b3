//! MemberCluster objects on the host: one for each member, with what is known of it.
//!
//! ```text
//! every second: registry --> wanted status --> differs from what was written? --> host
//! ```

use std::{sync::Arc, time::Duration};

use cluster_informer::{Health, SyncState};
use fedrs_api::{MemberClusterSpec, MemberClusterStatus, names};
use kube::Client;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    Registry,
    registry::MemberFacts,
    status::{PROGRESS_PERIOD, is_urgent, status},
};
use crate::{
    calls::{self, CallError},
    clock::Clock,
};

/// How often what is known is compared with what was written.
const PERIOD: Duration = Duration::from_secs(1);
/// Where MemberClusters are.
pub(crate) const PATH: &str = "/apis/fedrs.dev/v1alpha1/memberclusters";

/// Keeps the MemberCluster of one member.
pub(super) struct MemberClusterStatusWriter {
    pub(super) host: Client,
    pub(super) registry: Arc<Registry>,
    pub(super) name: String,
    /// Whose member it is; an object of another one is never written (F40).
    pub(super) federation: String,
    pub(super) clock: Clock,
    pub(super) call_timeout: Duration,
    /// How long a member may take to answer before the object says that it doesn't.
    pub(super) joining_timeout: Duration,
}

/// The object as it was last read or written.
#[derive(Clone, Default)]
struct Written {
    uid: Option<String>,
    version: Option<String>,
    federation: String,
    status: MemberClusterStatus,
}

impl MemberClusterStatusWriter {
    /// Keeps the object current until `cancel`, or until the member is forgotten.
    pub(super) async fn run(self, cancel: CancellationToken) {
        let mut written: Option<Written> = None;
        let mut deletions = 0;
        let started = Instant::now();
        let mut last_progress: Option<Instant> = None;
        let mut anothers_until: Option<Instant> = None;
        let mut ticks = tokio::time::interval(PERIOD);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while cancel.run_until_cancelled(ticks.tick()).await.is_some() {
            let Some(facts) = self.registry.facts(&self.name) else {
                return;
            };
            if std::mem::replace(&mut deletions, facts.object.deletions) != facts.object.deletions {
                written = None;
            }
            let may_be_there = facts.object.is_kept || facts.object.uid.is_some();
            let rests = anothers_until.is_some_and(|time| Instant::now() < time);
            if written.is_none() && may_be_there && !rests {
                written = self.read(facts.object.is_kept).await;
            }
            let Some(before) = &written else { continue };
            if before.federation != self.federation {
                if anothers_until.is_none() {
                    let whose = &before.federation;
                    tracing::warn!(cluster = %self.name, "the MemberCluster belongs to federation {whose:?}: status not updated");
                }
                anothers_until = Some(Instant::now() + PROGRESS_PERIOD);
                written = None;
                continue;
            }
            anothers_until = None;
            // Wait until the watch has shown its spec.
            if facts.object.uid != before.uid {
                continue;
            }
            // After a restart the previous status is a better guess than none.
            let has_conditions = !before.status.conditions.is_empty();
            if has_conditions && is_joining(&facts) && started.elapsed() < self.joining_timeout {
                continue;
            }
            let wanted = status(&before.status, &facts, self.clock.now());
            let is_urgent = is_urgent(&before.status, &wanted);
            let rested = last_progress.is_none_or(|time| time.elapsed() >= PROGRESS_PERIOD);
            if wanted != before.status && (rested || is_urgent) {
                // Where it could not be written it may be gone, or changed: it is read, or made, again.
                written = self.write(before, wanted).await;
                if !is_urgent {
                    last_progress = Some(Instant::now());
                }
            }
        }
    }

    /// The object that the host has; made if it is missing and `is_kept`. A restart writes nothing.
    async fn read(&self, is_kept: bool) -> Option<Written> {
        let spec = MemberClusterSpec {
            federation: self.federation.clone(),
            ..MemberClusterSpec::default()
        };
        let object = json!({
            "apiVersion": names::API_VERSION,
            "kind": "MemberCluster",
            "metadata": { "name": self.name },
            "spec": spec,
        });
        let path = format!("{PATH}/{}", self.name);
        let answer = match self.call(calls::get(&self.host, &path)).await {
            Err(error) if error.code() == Some(404) && is_kept => {
                self.call(calls::post(&self.host, PATH, &object)).await
            }
            answer => answer,
        };
        self.answered(answer)
    }

    /// Writes `status` over the object as it was before; where it isn't so any more, nothing.
    async fn write(&self, before: &Written, status: MemberClusterStatus) -> Option<Written> {
        let path = format!("{PATH}/{}", self.name);
        let seen = (before.uid.as_deref(), before.version.as_deref());
        let call = calls::put_status(&self.host, &path, seen, &status);
        let answer = self.call(call).await;
        // The host may have cut times; what was meant is what the next is compared with.
        self.answered(answer)
            .map(|written| Written { status, ..written })
    }

    fn answered(&self, answer: Result<Value, CallError>) -> Option<Written> {
        match answer {
            Ok(object) => {
                let text = |field: &str| object["metadata"][field].as_str().map(str::to_owned);
                let status = object.get("status").cloned().unwrap_or_else(|| json!({}));
                let federation = object["spec"]["federation"].as_str();
                Some(Written {
                    federation: federation.unwrap_or_default().to_owned(),
                    uid: text("uid"),
                    version: text("resourceVersion"),
                    status: serde_json::from_value(status).unwrap_or_default(),
                })
            }
            Err(error) => {
                tracing::debug!(cluster = %self.name, %error, "failed to read or write the MemberCluster");
                None
            }
        }
    }

    async fn call(
        &self,
        call: impl Future<Output = kube::Result<Value>>,
    ) -> Result<Value, CallError> {
        calls::within(self.call_timeout, call).await
    }
}

/// Whether its first answers are still awaited.
fn is_joining(facts: &MemberFacts) -> bool {
    if facts.removed.is_some() || facts.source_error.is_some() {
        return false;
    }
    facts.access.as_ref().is_none_or(|member| {
        member.store.health() == Health::Unknown
            || (member.store.health() == Health::Healthy
                && member.store.sync_state() == SyncState::NotSynced)
    })
}
