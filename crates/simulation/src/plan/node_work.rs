//! What happens to nodes and to the Maintenances of them.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What administrators do with Maintenances, and others with nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "work",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum NodeWork {
    /// An administrator creates a Maintenance on the host.
    Create {
        /// Its name.
        maintenance: String,
        /// Its spec.
        spec: Value,
    },
    /// An administrator changes the spec of a Maintenance by a merge patch.
    Edit {
        /// Its name.
        maintenance: String,
        /// The patch.
        spec: Value,
    },
    /// An administrator deletes a Maintenance.
    Delete {
        /// Its name.
        maintenance: String,
    },
    /// Somebody changes a node by a merge patch.
    EditNode {
        /// The member.
        member: String,
        /// The number of the node, from 1.
        node: u32,
        /// The patch of the whole object.
        patch: Value,
    },
    /// A node disappears from a member, or is added to it again as another object.
    NodeObject {
        /// The member.
        member: String,
        /// The number of the node, from 1.
        node: u32,
        /// Whether it exists from now on.
        exists: bool,
    },
}

impl NodeWork {
    /// The names of members that it concerns.
    pub(super) fn names(&self) -> Vec<&str> {
        match self {
            Self::EditNode { member, .. } | Self::NodeObject { member, .. } => vec![member],
            Self::Create { .. } | Self::Edit { .. } | Self::Delete { .. } => Vec::new(),
        }
    }
}

impl fmt::Display for NodeWork {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create { maintenance, spec } => {
                write!(
                    to,
                    "administrator creates Maintenance {maintenance}: {spec}"
                )
            }
            Self::Edit { maintenance, spec } => {
                write!(to, "administrator edits Maintenance {maintenance}: {spec}")
            }
            Self::Delete { maintenance } => {
                write!(to, "administrator deletes Maintenance {maintenance}")
            }
            Self::EditNode {
                member,
                node,
                patch,
            } => write!(to, "{member}: somebody edits node {node}: {patch}"),
            Self::NodeObject {
                member,
                node,
                exists,
            } => {
                let what = if *exists { "is added" } else { "disappears" };
                write!(to, "{member}: node {node} {what}")
            }
        }
    }
}
