//! Pods that stay until their containers have stopped (M11), and that no set looks after.

use std::sync::Arc;

use replica_set_controller::{ObservedPod, PodController};

use super::State;

impl State {
    /// The pods with the finalizer that no set looks after any more, and that are to lose it: those that are being removed, once nothing but
    /// finalizers keeps them, and those that stay without a set.
    pub(crate) fn abandoned(&self) -> Vec<Arc<ObservedPod>> {
        let guarded = self.pods.all().filter(|pod| pod.has_finalizer());
        let abandoned = guarded.filter(|pod| {
            let stays = match pod.controller() {
                PodController::Set(uid) if self.is_looked_after(uid) => return false,
                PodController::Set(_) => false,
                PodController::Nobody | PodController::Other => true,
            };
            if pod.is_terminating() {
                pod.is_kept_by_finalizers()
            } else {
                stays
            }
        });
        let mut abandoned: Vec<_> = abandoned.map(Arc::clone).collect();
        abandoned.sort_by(|a, b| (a.namespace(), a.name()).cmp(&(b.namespace(), b.name())));
        abandoned
    }

    fn is_looked_after(&self, set: &str) -> bool {
        let entry = self.sets.of_uid(set).and_then(|key| self.sets.get(key));
        entry.is_some_and(|entry| !entry.is_deleted)
    }
}
