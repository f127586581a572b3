//! Which MigrationPolicy a set has (M1).

use fedrs_api::ValidMigrationPolicy;

/// The MigrationPolicy of a set.
#[derive(Clone, Copy, Debug, Default)]
pub enum Policy<'a> {
    /// There is none: pods are evicted within the budget, and those in their place get other names (L18).
    #[default]
    None,
    /// The one that the set names does not exist, or is invalid: running pods stay until their deadlines.
    Unknown,
    /// This one: pods move under their names (M5).
    Is(&'a ValidMigrationPolicy),
}

impl Policy<'_> {
    /// Whether a pod that has to leave its node waits for updates to end (M1). Without a policy it is the other way round (L19): its eviction
    /// is recorded at once, and updates wait for it.
    pub(crate) fn waits_for_updates(self) -> bool {
        !matches!(self, Self::None)
    }
}
