//! What the schema can't see: an FRS checked into a type that can't be wrong (F2, F4).

use std::fmt;

/// What is wrong with an object, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Path of the field: `spec.placement.clusters[eu-1].maxReplicas`.
    pub field: String,
    /// What is wrong, as a sentence without the field's name.
    pub message: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl std::error::Error for FieldError {}

/// A FederatedReplicaSet that has been checked: the only form the controller works with.
#[derive(Clone, Debug)]
pub struct ValidFrs {}
