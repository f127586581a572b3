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
