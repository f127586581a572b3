//! Writes the MemberClusters on the host: one for each member, with what is known of it in the status.
//!
//! ```text
//! every second: registry --> wanted status --> differs from what was written? --> host
//! ```

use std::{sync::Arc, time::Duration};

use cluster_informer::{Health, SyncState};
use controller_base::calls::{self, CallError};
use fedrs_api::{MemberCluster, MemberClusterSpec, MemberClusterStatus};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    Context,
    registry::MemberState,
    status::{PROGRESS_PERIOD, is_urgent, status},
};

/// How often the wanted status is compared with the one that was written.
const PERIOD: Duration = Duration::from_secs(1);
/// Where MemberClusters are.
pub(crate) const PATH: &str = "/apis/fedrs.dev/v1alpha1/memberclusters";

/// Writes the MemberCluster of one member.
pub(super) struct MemberClusterStatusWriter {
    pub(super) context: Arc<Context>,
    pub(super) name: String,
}

impl MemberClusterStatusWriter {
    /// Keeps the object current until `cancel`, or until the member is forgotten.
    pub(super) async fn run(self, cancel: CancellationToken) {
        let mut written: Option<MemberCluster> = None;
        let no_status = MemberClusterStatus::default();
        let mut deletions = 0;
        let started = Instant::now();
        let mut last_progress: Option<Instant> = None;
        let mut ignored_until: Option<Instant> = None;
        let mut ticks = tokio::time::interval(PERIOD);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while cancel.run_until_cancelled(ticks.tick()).await.is_some() {
            let Some(mut member) = self.context.registry.get(&self.name) else {
                return;
            };
            if std::mem::replace(&mut deletions, member.object.deletions) != member.object.deletions
            {
                written = None;
            }
            let should_exist = member.object.is_kept || member.object.uid.is_some();
            let is_ignored = ignored_until.is_some_and(|time| Instant::now() < time);
            if written.is_none() && should_exist && !is_ignored {
                written = self.read(member.object.is_kept).await;
            }
            let Some(before) = &written else { continue };
            if before.spec.federation != self.context.config.federation {
                if ignored_until.is_none() {
                    let whose = &before.spec.federation;
                    tracing::warn!(cluster = %self.name, "the MemberCluster belongs to federation {whose:?}: status not updated");
                }
                ignored_until = Some(Instant::now() + PROGRESS_PERIOD);
                written = None;
                continue;
            }
            ignored_until = None;
            // Wait until the watch has shown its spec.
            if member.object.uid != before.metadata.uid {
                continue;
            }
            let status_before = before.status.as_ref().unwrap_or(&no_status);
            // After a restart the previous status is a better guess than none.
            let has_conditions = !status_before.conditions.is_empty();
            if has_conditions
                && started.elapsed() < self.context.config.joining_timeout
                && is_joining(&member)
            {
                continue;
            }
            // Its namespaces may be watched anew before its new spec is seen here.
            if member.spec.drain {
                member.occupied = self.context.trigger.namespaces_in(&self.name);
            }
            let wanted = status(status_before, &member, self.context.clock.now());
            if wanted == *status_before {
                continue;
            }
            let is_urgent = is_urgent(status_before, &wanted);
            let is_progress_due =
                last_progress.is_none_or(|time| time.elapsed() >= PROGRESS_PERIOD);
            if is_progress_due || is_urgent {
                // If the write failed, the object may have changed or be gone: it is read, or created, again.
                written = self.write(before, wanted).await;
                if !is_urgent {
                    last_progress = Some(Instant::now());
                }
            }
        }
    }

    /// Reads the object; creates it if it does not exist and `is_kept`. A restart writes nothing.
    async fn read(&self, is_kept: bool) -> Option<MemberCluster> {
        match self
            .call(calls::get(&self.context.host, &self.path()))
            .await
        {
            Err(error) if error.code() == Some(404) && is_kept => {
                let spec = MemberClusterSpec {
                    federation: self.context.config.federation.clone(),
                    ..MemberClusterSpec::default()
                };
                let object = MemberCluster::new(&self.name, spec);
                let object = serde_json::to_value(object).expect("an object is plain data");
                let created = self
                    .call(calls::post(&self.context.host, PATH, &object))
                    .await;
                self.object_in(created)
            }
            found => self.object_in(found),
        }
    }

    /// Writes `status` if the object has not changed since `before`.
    async fn write(
        &self,
        before: &MemberCluster,
        status: MemberClusterStatus,
    ) -> Option<MemberCluster> {
        let metadata = &before.metadata;
        let seen = (
            metadata.uid.as_deref(),
            metadata.resource_version.as_deref(),
        );
        let path = self.path();
        let call = calls::put_status(&self.context.host, &path, seen, &status);
        let written = self.object_in(self.call(call).await)?;
        // The host may have truncated times: the next status is compared with the intended one.
        Some(MemberCluster {
            status: Some(status),
            ..written
        })
    }

    fn object_in(&self, object: Result<MemberCluster, CallError>) -> Option<MemberCluster> {
        if let Err(error) = &object {
            tracing::debug!(cluster = %self.name, %error, "failed to read or write the MemberCluster");
        }
        object.ok()
    }

    fn path(&self) -> String {
        format!("{PATH}/{}", self.name)
    }

    async fn call(
        &self,
        call: impl Future<Output = kube::Result<MemberCluster>>,
    ) -> Result<MemberCluster, CallError> {
        calls::within(self.context.config.call_timeout, call).await
    }
}

/// Whether the member has not answered yet.
fn is_joining(member: &MemberState) -> bool {
    if member.removed.is_some() || member.source_error.is_some() {
        return false;
    }
    member.access.as_ref().is_none_or(|member| {
        member.store.health() == Health::Unknown
            || (member.store.health() == Health::Healthy
                && member.store.sync_state() == SyncState::NotSynced)
    })
}
