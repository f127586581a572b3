//! Writes statuses, each conditional on the version that it was decided from.

use std::{sync::Arc, time::Duration};

use controller_base::calls::{self, within};
use fedrs_api::LocalReplicaSetStatus;
use kube::Client;
use tokio::time::Instant;

use crate::{
    entry::{Entry, SetObject},
    key::SetKey,
    memory::Memory,
    metrics::LocalMetrics,
    queue::Queue,
    store::{State, Store},
};

/// The pause before a status that was not written is decided again.
const RETRY: Duration = Duration::from_secs(1);

/// Writes the statuses of sets.
pub(crate) struct Publisher {
    pub(crate) client: Client,
    pub(crate) store: Arc<Store>,
    pub(crate) queue: Queue,
    pub(crate) metrics: LocalMetrics,
    pub(crate) call_timeout: Duration,
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
        let call = calls::put_status::<SetObject>(&self.client, &path, of, status);
        let error = match within(self.call_timeout, call).await {
            Ok(object) => {
                self.store.update(|state| state.update_set(object));
                return Ok(());
            }
            Err(error) => error,
        };
        let is_outdated = error.is_failed_test() || matches!(error.code(), Some(404 | 409));
        if !is_outdated {
            self.metrics.failed_requests.inc();
            tracing::warn!(set = %entry.key, %error, "failed to write the status");
        }
        self.read_again(&entry.key).await;
        Err(Unpublished)
    }

    /// Reads a set that has changed meanwhile, or whose status may have been written.
    async fn read_again(&self, key: &SetKey) {
        let path = key.path();
        let call = calls::get::<SetObject>(&self.client, &path);
        if let Ok(object) = within(self.call_timeout, call).await {
            let changed = self
                .store
                .update(|state: &mut State| state.update_set(object));
            for key in changed {
                self.queue.add(key, Duration::ZERO);
            }
        }
    }
}
