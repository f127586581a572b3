//! What can happen in a run.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::plan::crash;

/// What users, other writers and faults do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum LocalAction {
    /// A user changes the spec of a set by a merge patch.
    EditSet {
        /// The set.
        set: String,
        /// The patch.
        spec: Value,
    },
    /// A user deletes a set.
    DeleteSet {
        /// The set.
        set: String,
        /// Whether its pods stay.
        orphan: bool,
    },
    /// A user creates a set with the spec that it had at the start.
    CreateSet {
        /// The set.
        set: String,
    },
    /// Somebody changes a pod of a set by a merge patch.
    EditPod {
        /// The set.
        set: String,
        /// Which of its pods, in the order of their names.
        index: u32,
        /// The patch of the whole object.
        patch: Value,
    },
    /// Somebody deletes a pod of a set.
    DeletePod {
        /// The set.
        set: String,
        /// Which of its pods, in the order of their names.
        index: u32,
    },
    /// Somebody deletes a pod of a set without waiting for its kubelet.
    ForceDeletePod {
        /// The set.
        set: String,
        /// Which of its pods, in the order of their names.
        index: u32,
    },
    /// A person asks a pod of a set to leave its node.
    Migrate {
        /// The set.
        set: String,
        /// Which of its pods, in the order of their names.
        index: u32,
        /// After how long it moves whatever holds it up, if not by default.
        deadline_seconds: Option<u64>,
    },
    /// The requests of persons for pods of a set are cancelled.
    CancelMigrations {
        /// The set.
        set: String,
    },
    /// Persons confirm what they are asked for of machines that are destroyed.
    ConfirmMigrations,
    /// The machine of a node is destroyed.
    Destroy {
        /// The node, by its number from 0.
        node: u32,
    },
    /// A Maintenance marks a node, as the controller on the host does, or its mark is removed.
    Maintenance {
        /// The node, by its number from 0.
        node: u32,
        /// For how long the machine is said to be away; `None` if the work is over.
        seconds: Option<u32>,
    },
    /// Somebody evicts pods of a set through the API server, one after the other, as `kubectl drain` does.
    EvictPods {
        /// The set.
        set: String,
        /// How many, the first by name first.
        pods: u32,
    },
    /// Somebody creates a pod that the selector of a set matches.
    CreatePod {
        /// The set.
        set: String,
        /// The name of the pod, after that of the set.
        suffix: String,
        /// Whether somebody else controls it.
        is_controlled: bool,
    },
    /// An administrator changes a node by a merge patch.
    EditNode {
        /// The node, by its number from 0.
        node: u32,
        /// The patch of the whole object.
        patch: Value,
    },
    /// A node fails, or is back.
    Node {
        /// The node, by its number from 0.
        node: u32,
        /// Whether it fails.
        fails: bool,
    },
    /// Somebody deletes a node, or it registers again.
    NodeObject {
        /// The node, by its number from 0.
        node: u32,
        /// Whether it exists from now on.
        exists: bool,
    },
    /// An administrator limits the pods of the namespace, or does so no longer.
    Quota {
        /// How many there may be; no limit if absent.
        pods: Option<u32>,
    },
    /// A user has a PodDisruptionBudget of their own for the pods of a set, or deletes it.
    Budget {
        /// The set.
        set: String,
        /// Whether it exists from now on.
        exists: bool,
    },
    /// A fault begins or ends.
    Switch {
        /// The fault.
        fault: LocalFault,
        /// Whether it begins.
        on: bool,
    },
    /// From now on each response takes this much longer.
    Slow {
        /// By how much.
        ms: u64,
    },
    /// The API server rejects the next requests of a kind.
    Reject {
        /// The kind, in the plural.
        resource: String,
        /// `create`, `update`, `patch` or `delete`.
        verb: String,
        /// How many.
        times: u32,
        /// The code of the response.
        code: u16,
    },
    /// The responses to the next requests of a kind are lost.
    LoseResponses {
        /// The kind, in the plural.
        resource: String,
        /// `create`, `update`, `patch` or `delete`.
        verb: String,
        /// How many.
        times: u32,
    },
    /// All watches end.
    CutWatches,
    /// Older versions are gone: watches from them are answered with 410.
    Compact,
    /// A controller crashes, and starts again later.
    Crash {
        /// The process, from 1.
        process: u32,
        /// At which of its next writes; 0 is at once.
        write: u64,
        /// Whether that write still takes effect.
        after: bool,
        /// How long it does not run.
        down_ms: u64,
    },
    /// The election of a controller is suspended: it does not notice that its term ends.
    Suspend {
        /// The process, from 1.
        process: u32,
        /// For how long.
        ms: u64,
    },
}

/// A fault that lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LocalFault {
    /// The API server does not answer: connections fail.
    Unreachable,
    /// Requests wait until the fault ends.
    Hanging,
    /// Watches are open and silent.
    WatchesSilent,
    /// The watch of pods is.
    PodsSilent,
    /// The watch of LocalReplicaSets is.
    SetsSilent,
    /// The watch of nodes is.
    NodesSilent,
    /// The watch of PodDisruptionBudgets is.
    BudgetsSilent,
    /// The controllers of Kubernetes do not run.
    NoControllerManager,
}

impl LocalFault {
    /// All of them.
    pub(super) const ALL: [Self; 8] = [
        Self::Unreachable,
        Self::Hanging,
        Self::WatchesSilent,
        Self::PodsSilent,
        Self::SetsSilent,
        Self::NodesSilent,
        Self::BudgetsSilent,
        Self::NoControllerManager,
    ];

    /// The resource whose watch is silent.
    pub(in crate::local) fn silent_resource(self) -> Option<&'static str> {
        match self {
            Self::PodsSilent => Some("pods"),
            Self::SetsSilent => Some("localreplicasets"),
            Self::NodesSilent => Some("nodes"),
            Self::BudgetsSilent => Some("poddisruptionbudgets"),
            _ => None,
        }
    }
}

impl LocalAction {
    /// The set that it is about.
    pub(in crate::local) fn set(&self) -> Option<&str> {
        match self {
            Self::EditSet { set, .. }
            | Self::DeleteSet { set, .. }
            | Self::CreateSet { set }
            | Self::EditPod { set, .. }
            | Self::DeletePod { set, .. }
            | Self::ForceDeletePod { set, .. }
            | Self::Migrate { set, .. }
            | Self::CancelMigrations { set }
            | Self::EvictPods { set, .. }
            | Self::CreatePod { set, .. }
            | Self::Budget { set, .. } => Some(set),
            _ => None,
        }
    }
}

impl fmt::Display for LocalAction {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EditSet { set, spec } => write!(to, "user edits {set}: {spec}"),
            Self::DeleteSet { set, orphan } => {
                let pods = if *orphan { ", its pods stay" } else { "" };
                write!(to, "user deletes {set}{pods}")
            }
            Self::CreateSet { set } => write!(to, "user creates {set} again"),
            Self::EditPod { set, index, patch } => {
                write!(to, "somebody edits pod {index} of {set}: {patch}")
            }
            Self::DeletePod { set, index } => write!(to, "somebody deletes pod {index} of {set}"),
            Self::ForceDeletePod { set, index } => {
                write!(to, "somebody deletes pod {index} of {set} by force")
            }
            Self::Migrate {
                set,
                index,
                deadline_seconds,
            } => {
                write!(to, "a person asks pod {index} of {set} to leave its node")?;
                match deadline_seconds {
                    Some(seconds) => write!(to, " within {seconds} s"),
                    None => Ok(()),
                }
            }
            Self::CancelMigrations { set } => write!(to, "migrations of {set} are cancelled"),
            Self::ConfirmMigrations => to.write_str("persons confirm that machines are destroyed"),
            Self::Destroy { node } => write!(to, "the machine of node {node} is destroyed"),
            Self::Maintenance { node, seconds } => match seconds {
                Some(seconds) => write!(to, "node {node} is worked on for {seconds} s"),
                None => write!(to, "the work on node {node} is over"),
            },
            Self::EvictPods { set, pods } => write!(to, "somebody evicts {pods} pods of {set}"),
            Self::CreatePod {
                set,
                suffix,
                is_controlled,
            } => {
                let owner = if *is_controlled { "a" } else { "no" };
                write!(
                    to,
                    "somebody creates pod {set}-{suffix} with {owner} controller"
                )
            }
            Self::EditNode { node, patch } => {
                write!(to, "administrator edits node {node}: {patch}")
            }
            Self::Node { node, fails } => {
                let state = if *fails { "fails" } else { "is back" };
                write!(to, "node {node} {state}")
            }
            Self::NodeObject { node, exists } => {
                let state = if *exists { "registers" } else { "is deleted" };
                write!(to, "node {node} {state}")
            }
            Self::Quota { pods: Some(pods) } => write!(to, "quota of {pods} pods"),
            Self::Quota { pods: None } => to.write_str("no quota"),
            Self::Budget { set, exists } => {
                let change = if *exists { "creates" } else { "deletes" };
                write!(to, "user {change} a PodDisruptionBudget for {set}")
            }
            Self::Switch { fault, on } => {
                let state = if *on { "begins" } else { "ends" };
                write!(to, "{fault} {state}")
            }
            Self::Slow { ms } => write!(to, "responses take {ms} ms longer"),
            Self::Reject {
                resource,
                verb,
                times,
                code,
            } => write!(to, "rejects {verb} {resource} with {code}, {times} times"),
            Self::LoseResponses {
                resource,
                verb,
                times,
            } => write!(to, "loses the response of {verb} {resource}, {times} times"),
            Self::CutWatches => to.write_str("watches end"),
            Self::Compact => to.write_str("history is compacted"),
            Self::Crash {
                process,
                write,
                after,
                down_ms,
            } => to.write_str(&crash(*process, *write, *after, *down_ms)),
            Self::Suspend { process, ms } => {
                write!(to, "controller {process}: election stops for {ms} ms")
            }
        }
    }
}

impl fmt::Display for LocalFault {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Unreachable => "unreachable",
            Self::Hanging => "hanging",
            Self::WatchesSilent => "silent watches",
            Self::PodsSilent => "silent watch of pods",
            Self::SetsSilent => "silent watch of LocalReplicaSets",
            Self::NodesSilent => "silent watch of nodes",
            Self::BudgetsSilent => "silent watch of PodDisruptionBudgets",
            Self::NoControllerManager => "stopped controller manager",
        })
    }
}
