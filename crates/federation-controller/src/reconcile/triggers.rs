//! What causes checks: changes in the members, and whoever asks for them.

use std::{collections::BTreeSet, time::Duration};

use cluster_informer::{ChangeHandler, WorkloadChange};
use fedrs_api::ObjectKey;

use super::{Reconciler, until};
use crate::{check, trigger::Trigger};

impl ChangeHandler for Reconciler {
    /// The delay of the check that a change in a member causes (F20, F22).
    fn on_workload_change(&self, _cluster: &str, key: &ObjectKey, change: WorkloadChange) {
        let delay = match change {
            WorkloadChange::Drift => Duration::ZERO,
            // Local sets and pods come by two watches: the later one of the two completes the picture of a move (F20).
            WorkloadChange::MoreAvailable | WorkloadChange::Status | WorkloadChange::Pods
                if self.cache.of_key(key, |cached| cached.moving) =>
            {
                Duration::ZERO
            }
            WorkloadChange::PodUnscheduled { since } => {
                let due = check::after(since, self.config.unscheduled_timeout);
                until(self.clock.now(), due).min(self.config.check_delay)
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
        self.sets.namespaces_in(member)
    }

    fn check_namespace(&self, namespace: &str) {
        let keys = self.sets.keys().into_iter();
        for key in keys.filter(|key| *key.namespace == *namespace) {
            self.queue.add_check(key, Duration::ZERO);
        }
    }
}
