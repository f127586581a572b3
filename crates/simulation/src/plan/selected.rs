//! A pod, as a plan names it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One of the pods of a set in a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Selected {
    /// The member.
    pub member: String,
    /// The set.
    pub set: String,
    /// The index among the pods of the set, ordered by name, modulo their number.
    pub index: usize,
}

impl fmt::Display for Selected {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "pod {} of {}", self.index, self.set)
    }
}
