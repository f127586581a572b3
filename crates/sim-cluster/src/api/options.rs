//! The options of writes and deletions, as the query and the bodies of requests carry them.

use std::sync::Arc;

use crate::authentication::User;

/// Options of create, update and patch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Check and answer, but store nothing.
    pub dry_run: bool,
    /// Who writes, for `managedFields`; empty means the API handle's own.
    pub field_manager: String,
    /// What to do about unknown and duplicate fields.
    pub field_validation: FieldValidation,
    /// Fields that the request's body has twice; a parsed object no longer shows them.
    pub duplicate_fields: Vec<String>,
    /// Server-side apply: take fields from other managers.
    pub force: bool,
    /// Who writes, for rights that show only at the write: to create what was to be updated, to give away rights.
    /// `None` is the cluster itself, which may everything.
    pub user: Option<Arc<User>>,
}

/// What to do about unknown and duplicate fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Drop them silently. What controllers in this process want: their objects are made by code.
    #[default]
    Ignore,
    /// Drop them with a warning; the default over HTTP.
    Warn,
    /// Refuse with 400.
    Strict,
}

/// Options of a deletion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// Seconds the object gets to end; `None` means its kind's or its own default.
    pub grace_period: Option<i64>,
    /// What happens to dependants; `None` means the kind's default (background).
    pub propagation: Option<Propagation>,
    /// What the object must still be.
    pub preconditions: Preconditions,
    /// Check and answer, but delete nothing.
    pub dry_run: bool,
}

/// What happens to the objects that the deleted one owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They stay and lose the owner.
    Orphan,
    /// The owner goes at once, they follow.
    Background,
    /// They go first.
    Foreground,
}

/// What an object must be for a deletion to go through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preconditions {
    /// Its uid.
    pub uid: Option<String>,
    /// Its version.
    pub resource_version: Option<String>,
}
