//! What a status is made from.

use fedrs_api::LocalReplicaSetStatus;
use jiff::Timestamp;
use replica_set_controller::{Plan, Set};

use crate::{
    entry::{Entry, ValidSet},
    key::SetKey,
    memory::Memory,
    notify::NotNotified,
};

/// What a status is made from.
pub(crate) struct Report<'a> {
    pub(crate) entry: &'a Entry,
    pub(crate) valid: &'a ValidSet,
    pub(crate) previous: &'a LocalReplicaSetStatus,
    pub(crate) set: &'a Set<'a>,
    pub(crate) plan: &'a Plan<'a>,
    pub(crate) memory: &'a Memory,
    /// Sets whose selectors overlap.
    pub(crate) overlapping: &'a [SetKey],
    /// The name of another PodDisruptionBudget that matches its pods.
    pub(crate) other_budget: Option<&'a str>,
    /// Why its MigrationPolicy is not known.
    pub(crate) unknown_policy: Option<&'a str>,
    /// Why those are not notified of migrations who should be.
    pub(crate) not_notified: Option<NotNotified>,
    pub(crate) now: Timestamp,
}

impl Report<'_> {
    /// When an update without progress has failed.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        (self.memory.progress).deadline(self.set.progress_deadline)
    }
}
