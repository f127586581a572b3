//! Writes statuses, each conditional on the version that it was decided from.

use std::{sync::Arc, time::Duration};

use controller_base::calls;
use fedrs_api::LocalReplicaSetStatus;
use tokio::time::Instant;

use crate::{
    entry::{Entry, SetObject},
    execute::Executor,
    memory::Memory,
};

/// The pause before a status that was not written is decided again.
const RETRY: Duration = Duration::from_secs(1);

/// Writes the statuses of sets.
pub(crate) struct Publisher {
    pub(crate) executor: Arc<Executor>,
    /// The shortest time between two statuses of a set.
    pub(crate) status_delay: Duration,
}

/// The status was not written.
pub(crate) struct Unpublished;

impl Publisher {
    /// Publishes `status` if it says something new, and the last one is not too young. Returns when to try again.
    pub(crate) async fn publish_if_due(
        &self,
        entry: &Entry,
        previous: &LocalReplicaSetStatus,
        status: &LocalReplicaSetStatus,
        memory: &mut Memory,
    ) -> Option<Duration> {
        if status == previous {
            return None;
        }
        let age = memory.written.map(|at| at.elapsed());
        let wait = age.and_then(|age| self.status_delay.checked_sub(age));
        if let Some(wait) = wait.filter(|wait| !wait.is_zero()) {
            return Some(wait);
        }
        (self.publish(entry, status, memory).await)
            .err()
            .map(|Unpublished| RETRY)
    }

    /// Publishes `status`, if the set is as it was decided from.
    pub(crate) async fn publish(
        &self,
        entry: &Entry,
        status: &LocalReplicaSetStatus,
        memory: &mut Memory,
    ) -> Result<(), Unpublished> {
        memory.written = Some(Instant::now());
        let path = entry.key.path();
        let of = (Some(&*entry.uid), Some(&*entry.version));
        let executor = &self.executor;
        let call = calls::put_status::<SetObject>(&executor.client, &path, of, status);
        let error = match executor.call(call).await {
            Ok(object) => {
                executor.store.update(|state| state.update_set(object));
                return Ok(());
            }
            Err(error) => error,
        };
        let is_outdated = error.is_failed_test() || matches!(error.code(), Some(404 | 409));
        if !is_outdated {
            executor.metrics.failed_requests.inc();
            tracing::warn!(set = %entry.key, %error, "failed to write the status");
        }
        // It has changed meanwhile, or is gone, or its status may have been written.
        executor.refresh_set(entry).await;
        Err(Unpublished)
    }
}
