//! The options of writes and deletions, which requests have in their query or body.

use std::sync::Arc;

use crate::authentication::User;

/// Options of create, update and patch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Validate and answer, but store nothing.
    pub dry_run: bool,
    /// The field manager in `managedFields`; empty means that of the API handle.
    pub field_manager: String,
    /// How unknown and duplicate fields are treated.
    pub field_validation: FieldValidation,
    /// Fields that occur twice in the body of the request; a parsed object does not show them.
    pub duplicate_fields: Vec<String>,
    /// Server-side apply: take over fields that other managers own.
    pub force: bool,
    /// The user, for permissions that only the write itself can check: to create an absent object, to grant permissions.
    /// `None` is the cluster itself, which has all permissions.
    pub user: Option<Arc<User>>,
}

/// How unknown and duplicate fields are treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Drop them silently. The default for code in this process.
    #[default]
    Ignore,
    /// Drop them and warn; the default over HTTP.
    Warn,
    /// Reject the write with 400.
    Strict,
}

/// Options of a deletion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// The grace period in seconds; `None` means that of the object or of its kind.
    pub grace_period: Option<i64>,
    /// What happens to dependents; `None` means the default of the kind (background).
    pub propagation: Option<Propagation>,
    /// The object that is meant.
    pub preconditions: Preconditions,
    /// Validate and answer, but delete nothing.
    pub dry_run: bool,
}

/// What happens to the objects that a deleted object owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// The dependents stay, without the owner reference.
    Orphan,
    /// The owner is deleted at once, its dependents after it.
    Background,
    /// The dependents are deleted before the owner.
    Foreground,
}

/// The conditions on the object under which a deletion takes effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preconditions {
    /// The uid of the object.
    pub uid: Option<String>,
    /// The resource version of the object.
    pub resource_version: Option<String>,
}
