//! What a plan does to AvailabilitySets, and to the pods that they select.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::selected::Selected;

/// What happens to AvailabilitySets, which have the names of the sets whose pods they select, and to these pods.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "availability",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum AvailabilityWork {
    /// A user creates the AvailabilitySet of a set.
    Create {
        /// The set.
        set: String,
        /// The spec without the selector.
        spec: Value,
    },
    /// A user changes the spec of an AvailabilitySet by a merge patch.
    Edit {
        /// The set.
        set: String,
        /// The patch.
        spec: Value,
    },
    /// A user deletes an AvailabilitySet.
    Delete {
        /// The set.
        set: String,
    },
    /// Somebody evicts a pod of a set, as `kubectl drain` does.
    Evict {
        /// The pod.
        #[serde(flatten)]
        pod: Selected,
    },
}

impl AvailabilityWork {
    /// The names of members and sets that it concerns.
    pub(super) fn names(&self) -> Vec<&str> {
        match self {
            Self::Create { set, .. } | Self::Edit { set, .. } | Self::Delete { set } => vec![set],
            Self::Evict { pod } => vec![&pod.member, &pod.set],
        }
    }
}

impl fmt::Display for AvailabilityWork {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create { set, spec } => write!(to, "user creates AvailabilitySet {set}: {spec}"),
            Self::Edit { set, spec } => write!(to, "user edits AvailabilitySet {set}: {spec}"),
            Self::Delete { set } => write!(to, "user deletes AvailabilitySet {set}"),
            Self::Evict { pod } => write!(to, "{}: somebody evicts {pod}", pod.member),
        }
    }
}
