//! What causes checks: changes in the members, and requests by other parts of the controller.

use std::{collections::BTreeSet, time::Duration};

use cluster_informer::{ChangeHandler, WorkloadChange};
use fedrs_api::{ObjectKey, WorkloadKey};

use super::{Reconciler, until};
use crate::{check, frs_store::Entry, trigger::Trigger};

impl ChangeHandler for Reconciler {
    /// The delay of the check that a change in a member causes (F20, F22).
    fn on_workload_change(&self, _cluster: &str, key: &WorkloadKey, change: WorkloadChange) {
        let key = &key.of_set();
        let delay = match change {
            WorkloadChange::Drift => Duration::ZERO,
            // ReplicaSets and pods come by two watches: the later one of the two completes the picture of a move (F20).
            WorkloadChange::MoreAvailable | WorkloadChange::Status | WorkloadChange::Pods
                if self.cache.of_key(key, |cached| cached.moving) =>
            {
                Duration::ZERO
            }
            WorkloadChange::PodUnscheduled { since } => {
                let entry = self.sets.get(key);
                let frs = entry.as_ref().and_then(|entry| entry.valid.as_ref().ok());
                let own = frs.and_then(|frs| frs.rescheduling.unscheduled_timeout);
                let timeout = own.map_or(self.config.unscheduled_timeout, |limit| limit.0);
                let due = check::after_limit(since, timeout);
                let delay = due.map(|due| until(self.clock.now(), due));
                delay
                    .into_iter()
                    .fold(self.config.check_delay, Duration::min)
            }
            WorkloadChange::MoreAvailable | WorkloadChange::Status | WorkloadChange::Pods => {
                self.config.check_delay
            }
        };
        self.queue.add_check(key.clone(), delay);
        self.queue.add_status(key.clone());
    }

    fn on_cluster_change(&self, _cluster: &str) {
        self.check_all();
    }
}

impl Trigger for Reconciler {
    fn check_all(&self) {
        for key in self.sets.keys() {
            self.queue.add_check(key, Duration::ZERO);
        }
    }

    fn namespaces_in(&self, member: &str) -> BTreeSet<String> {
        // The statuses on the host may be older.
        let has_replicas = |key: &ObjectKey, entry: &Entry| {
            self.cache.of_object(key, entry, |cached| {
                let mut clusters = cached.status.clusters.iter();
                clusters.any(|cluster| cluster.name == member && cluster.has_replicas())
            })
        };
        let mut keys = self.sets.keys();
        keys.retain(|key| {
            self.sets
                .get(key)
                .is_some_and(|entry| has_replicas(key, &entry))
        });
        keys.iter().map(|key| key.namespace.to_string()).collect()
    }

    fn check_namespace(&self, namespace: &str) {
        let keys = self.sets.keys().into_iter();
        for key in keys.filter(|key| *key.namespace == *namespace) {
            self.queue.add_check(key, Duration::ZERO);
        }
    }
}
