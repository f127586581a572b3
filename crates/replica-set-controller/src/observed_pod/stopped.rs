//! Whether the containers of a pod are known to have stopped (M11).

use super::{ContainerStatus, ObservedPod, SpecContainer};
use crate::pod::Guard;

impl ObservedPod {
    /// Whether it has the finalizer of shutdowns.
    #[must_use]
    pub fn has_finalizer(&self) -> bool {
        self.metadata.has_finalizer
    }

    /// Whether nothing but finalizers keeps it.
    #[must_use]
    pub fn is_kept_by_finalizers(&self) -> bool {
        self.is_terminating() && self.metadata.deletion_grace_period_seconds == Some(0)
    }

    /// Whether it stays until its containers have stopped, and whether they have.
    pub(super) fn guard(&self) -> Guard {
        match (self.has_finalizer(), self.is_kept_by_finalizers()) {
            (false, _) => Guard::Absent,
            // No scheduler binds it any more.
            (true, _) if self.is_terminating() && self.node().is_none() => Guard::Stopped,
            (true, true) if self.are_containers_terminated() => Guard::Stopped,
            (true, true) => Guard::Unproved,
            (true, false) => Guard::Holding,
        }
    }

    /// Whether its kubelet has reported the end of each container. The phase does not say so: the pod garbage collector sets it, too. One
    /// that is missing from the statuses was never reported; an init container that is not finished may run.
    fn are_containers_terminated(&self) -> bool {
        let statuses = |all: Option<&Box<[ContainerStatus]>>, name: &str| {
            let mut all = all.into_iter().flatten();
            let status = all.find(|status| status.name == name)?;
            Some(status.state.as_ref().is_some_and(|state| state.terminated))
        };
        let (Some(spec), Some(status)) = (self.spec(), self.status()) else {
            return false;
        };
        let mut containers = spec.containers.iter().flatten();
        let mut init_containers = spec.init_containers.iter().flatten();
        let has_ended = |container: &SpecContainer| {
            statuses(status.container_statuses.as_ref(), &container.name) == Some(true)
        };
        let may_run = |container: &SpecContainer| {
            statuses(status.init_container_statuses.as_ref(), &container.name) == Some(false)
        };
        containers.all(has_ended) && !init_containers.any(may_run)
    }
}
