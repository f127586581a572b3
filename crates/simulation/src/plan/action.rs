//! What can happen in a run.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{availability_work::AvailabilityWork, node_work::NodeWork, selected::Selected};

/// What users, other writers and faults do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Action {
    /// A user changes the spec of a FederatedReplicaSet by a merge patch.
    EditSet {
        /// The set.
        set: String,
        /// The patch.
        spec: Value,
    },
    /// A user approves a step for the revision that is being rolled out.
    Approve {
        /// The set.
        set: String,
        /// The step.
        step: String,
    },
    /// A user deletes a FederatedReplicaSet.
    DeleteSet {
        /// The set.
        set: String,
    },
    /// A user creates a FederatedReplicaSet with the spec that it had at the start.
    CreateSet {
        /// The set.
        set: String,
    },
    /// An administrator changes the spec of a MemberCluster by a merge patch.
    EditMember {
        /// The member.
        member: String,
        /// The patch.
        spec: Value,
    },
    /// Somebody creates a ReplicaSet of the name of a FederatedReplicaSet.
    CreateLocalSet {
        /// The member.
        member: String,
        /// The set.
        set: String,
        /// Its replicas.
        replicas: u32,
        /// Whether it has the selector of the FederatedReplicaSet.
        same_selector: bool,
    },
    /// Somebody changes a local ReplicaSet by a merge patch.
    EditLocalSet {
        /// The member.
        member: String,
        /// The set.
        set: String,
        /// The patch of the whole object.
        patch: Value,
    },
    /// Somebody deletes a local ReplicaSet.
    DeleteLocalSet {
        /// The member.
        member: String,
        /// The set.
        set: String,
        /// Whether its pods stay.
        orphan: bool,
    },
    /// A Deployment of the member takes a local ReplicaSet over.
    TakeOver {
        /// The member.
        member: String,
        /// The set.
        set: String,
    },
    /// Somebody changes a pod of a set by a merge patch.
    EditPod {
        /// The pod.
        #[serde(flatten)]
        pod: Selected,
        /// The patch of the whole object.
        patch: Value,
    },
    /// Somebody deletes a pod of a set.
    DeletePod {
        /// The pod.
        #[serde(flatten)]
        pod: Selected,
    },
    /// Somebody limits the pods in the namespace of a member, or removes the limit.
    Quota {
        /// The member.
        member: String,
        /// The most pods; none is no limit.
        pods: Option<u32>,
    },
    /// A fault begins or ends.
    Switch {
        /// The member, or `host`.
        cluster: String,
        /// The fault.
        fault: Fault,
        /// Whether it begins.
        on: bool,
    },
    /// From now on each response of a cluster takes this much longer.
    Slow {
        /// The member, or `host`.
        cluster: String,
        /// By how much.
        ms: u64,
    },
    /// A cluster rejects the next writes of a kind.
    Reject {
        /// The member, or `host`.
        cluster: String,
        /// The kind, in the plural; all if it is empty.
        resource: String,
        /// `create`, `patch`, `update` or `delete`.
        verb: String,
        /// How many.
        times: u32,
        /// The code of the response.
        code: u16,
    },
    /// A cluster carries out the next writes of a kind, but the responses are lost.
    LoseResponses {
        /// The member, or `host`.
        cluster: String,
        /// The kind, in the plural; all if it is empty.
        resource: String,
        /// `create`, `patch`, `update` or `delete`.
        verb: String,
        /// How many.
        times: u32,
    },
    /// The next changes of ReplicaSets in a member take effect late, whether or not the controller still waits for the responses.
    DelayChanges {
        /// The member.
        member: String,
        /// How many.
        times: u32,
        /// How late, in ms.
        ms: u64,
    },
    /// All watches of a cluster end.
    CutWatches {
        /// The member, or `host`.
        cluster: String,
    },
    /// A cluster forgets its history: older versions are answered with 410.
    Compact {
        /// The member, or `host`.
        cluster: String,
    },
    /// A node and what runs on it fails, or is back.
    Node {
        /// The member.
        member: String,
        /// The number of the node, from 1.
        node: u32,
        /// Whether it fails.
        fails: bool,
    },
    /// Moves a clock.
    StepClock {
        /// The member, `host`, or `controller`.
        clock: String,
        /// By how much.
        seconds: i64,
    },
    /// A controller crashes, and another one starts later.
    Crash {
        /// The number of the controller, from 1, modulo the number of controllers.
        #[serde(default = "first")]
        process: u32,
        /// At which of its own writes from now on; 0 is now.
        write: u64,
        /// Whether that write still takes effect.
        after: bool,
        /// How long it does not run.
        down_ms: u64,
    },
    /// Backs up a cluster, and replaces its previous backup.
    BackUp {
        /// The member, or `host`.
        cluster: String,
    },
    /// Restores the last backup of a cluster.
    Restore {
        /// The member, or `host`.
        cluster: String,
    },
    /// The election of a controller is suspended, so that the controller does not notice the end of its term.
    Suspend {
        /// The number of the controller, from 1, modulo the number of controllers.
        process: u32,
        /// How long.
        ms: u64,
    },
    /// Discovery ends, and starts again later.
    RestartDiscovery {
        /// Which snapshots there are then.
        disk: Disk,
        /// How long it does not run.
        down_ms: u64,
    },
    /// Something happens to nodes, or to Maintenances.
    Work(NodeWork),
    /// Something happens to AvailabilitySets, or to the pods that they select.
    Availability(AvailabilityWork),
}

/// The snapshots of discovery when it starts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Disk {
    /// It has written the last ones when it ended.
    Written,
    /// It was killed: there are those of up to 10 s before.
    Kept,
    /// There are none.
    Lost,
}

fn first() -> u32 {
    1
}

/// A fault that begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Fault {
    /// Connections fail.
    Unreachable,
    /// Requests and watches wait until the end of the fault.
    Hanging,
    /// Watches are silent, and catch up at the end.
    WatchesSilent,
    /// The watch of pods alone is silent: what the others show is ahead of it.
    PodsSilent,
    /// The watch of ReplicaSets alone is silent.
    ReplicaSetsSilent,
    /// The watch of nodes alone is silent.
    NodesSilent,
    /// API server, controllers and nodes have no power. At the end the API server is back first, the nodes 20 s later.
    NoPower,
    /// The kube-controller-manager does not run.
    NoControllerManager,
    /// The member's kubeconfig is gone.
    NoKubeconfig,
    /// Half of all responses and of the events of watches have random mutations.
    Mutations,
    /// Requests for lists and watches are rejected.
    ReadsRejected,
}

impl Action {
    /// Requests for a resource of a cluster fail: with a code, or their responses are lost.
    pub(super) fn failing(
        (cluster, resource, verb): (String, &str, &str),
        times: u32,
        code: Option<u16>,
    ) -> Self {
        let (resource, verb) = (resource.to_owned(), verb.to_owned());
        match code {
            None => Self::LoseResponses {
                cluster,
                resource,
                verb,
                times,
            },
            Some(code) => Self::Reject {
                cluster,
                resource,
                verb,
                times,
                code,
            },
        }
    }

    /// The names of members, sets and clocks that the action concerns. A plan without one of them does not need the action.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Self::EditSet { set, .. }
            | Self::Approve { set, .. }
            | Self::DeleteSet { set }
            | Self::CreateSet { set } => vec![set],
            Self::EditMember { member, .. }
            | Self::Quota { member, .. }
            | Self::DelayChanges { member, .. }
            | Self::Node { member, .. } => vec![member],
            Self::CreateLocalSet { member, set, .. }
            | Self::EditLocalSet { member, set, .. }
            | Self::DeleteLocalSet { member, set, .. }
            | Self::TakeOver { member, set } => {
                vec![member, set]
            }
            Self::EditPod { pod, .. } | Self::DeletePod { pod } => vec![&pod.member, &pod.set],
            Self::Switch { cluster, .. }
            | Self::Slow { cluster, .. }
            | Self::Reject { cluster, .. }
            | Self::LoseResponses { cluster, .. }
            | Self::CutWatches { cluster }
            | Self::Compact { cluster }
            | Self::BackUp { cluster }
            | Self::Restore { cluster } => vec![cluster],
            Self::StepClock { clock, .. } => vec![clock],
            Self::Work(work) => work.names(),
            Self::Availability(work) => work.names(),
            Self::Crash { .. } | Self::Suspend { .. } | Self::RestartDiscovery { .. } => Vec::new(),
        }
    }
}

impl Action {
    /// For how long it may start pods, or make some fail, beside what a rollout does.
    pub(crate) fn disturbs(&self) -> Duration {
        match self {
            Self::EditSet { spec, .. } => {
                let starts_none = ["template", "paused"]
                    .iter()
                    .any(|field| spec.get(field).is_some());
                Duration::from_secs(if starts_none { 0 } else { 60 })
            }
            Self::Approve { .. }
            | Self::Slow { .. }
            | Self::Reject { .. }
            | Self::LoseResponses { .. }
            | Self::CutWatches { .. }
            | Self::Compact { .. }
            | Self::Crash { .. }
            | Self::Suspend { .. }
            | Self::RestartDiscovery { .. } => Duration::ZERO,
            Self::EditMember { .. } | Self::EditLocalSet { .. } => Duration::from_secs(60),
            // Pods of nodes that stop are replaced after minutes.
            _ => Duration::from_secs(900),
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EditSet { set, spec } => write!(to, "user edits {set}: {spec}"),
            Self::Approve { set, step } => write!(to, "user approves step {step} of {set}"),
            Self::DeleteSet { set } => write!(to, "user deletes {set}"),
            Self::CreateSet { set } => write!(to, "user creates {set}"),
            Self::EditMember { member, spec } => {
                write!(to, "user edits MemberCluster {member}: {spec}")
            }
            Self::CreateLocalSet {
                member,
                set,
                replicas,
                same_selector,
            } => {
                write!(
                    to,
                    "{member}: somebody creates the local set {set}: replicas {replicas}, same selector {same_selector}"
                )
            }
            Self::EditLocalSet { member, set, patch } => {
                write!(to, "{member}: somebody edits the local set {set}: {patch}")
            }
            Self::DeleteLocalSet {
                member,
                set,
                orphan,
            } => {
                let pods = if *orphan { ", its pods stay" } else { "" };
                write!(to, "{member}: somebody deletes the local set {set}{pods}")
            }
            Self::TakeOver { member, set } => {
                write!(to, "{member}: a Deployment takes ReplicaSet {set} over")
            }
            Self::EditPod { pod, patch } => {
                write!(to, "{}: somebody edits {pod}: {patch}", pod.member)
            }
            Self::DeletePod { pod } => write!(to, "{}: somebody deletes {pod}", pod.member),
            Self::Quota { member, pods } => match pods {
                Some(pods) => write!(to, "{member}: quota of {pods} pods"),
                None => write!(to, "{member}: no quota"),
            },
            Self::Switch { cluster, fault, on } => {
                let state = if *on { "begins" } else { "ends" };
                write!(to, "{cluster}: {fault} {state}")
            }
            Self::Slow { cluster, ms } => write!(to, "{cluster}: responses take {ms} ms longer"),
            Self::Reject {
                cluster,
                resource,
                verb,
                times,
                code,
            } => write!(
                to,
                "{cluster}: rejects {verb} {resource} with {code}, {times} times"
            ),
            Self::LoseResponses {
                cluster,
                resource,
                verb,
                times,
            } => write!(
                to,
                "{cluster}: loses the response of {verb} {resource}, {times} times"
            ),
            Self::DelayChanges { member, times, ms } => write!(
                to,
                "{member}: changes of ReplicaSets take effect {ms} ms late, {times} times"
            ),
            Self::CutWatches { cluster } => write!(to, "{cluster}: watches end"),
            Self::Compact { cluster } => write!(to, "{cluster}: history is compacted"),
            Self::Node {
                member,
                node,
                fails,
            } => {
                let state = if *fails { "fails" } else { "is back" };
                write!(to, "{member}: node {node} {state}")
            }
            Self::StepClock { clock, seconds } => {
                write!(to, "clock of {clock} moves by {seconds} s")
            }
            Self::Crash {
                process,
                write,
                after,
                down_ms,
            } => to.write_str(&crash(*process, *write, *after, *down_ms)),
            Self::BackUp { cluster } => write!(to, "{cluster}: backup"),
            Self::Restore { cluster } => write!(to, "{cluster}: the backup is restored"),
            Self::Suspend { process, ms } => {
                write!(to, "controller {process}: election stops for {ms} ms")
            }
            Self::RestartDiscovery { disk, down_ms } => {
                write!(to, "discovery {disk}, restarts after {down_ms} ms")
            }
            Self::Work(work) => work.fmt(to),
            Self::Availability(work) => work.fmt(to),
        }
    }
}

/// That a controller crashes.
pub(crate) fn crash(process: u32, write: u64, after: bool, down_ms: u64) -> String {
    let when = match (write, after) {
        (0, _) => String::new(),
        (write, false) => format!(" before write {write} from now"),
        (write, true) => format!(" after write {write} from now"),
    };
    format!("controller {process} crashes{when}, restarts after {down_ms} ms")
}

impl fmt::Display for Fault {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Unreachable => "unreachable",
            Self::Hanging => "hanging",
            Self::WatchesSilent => "silent watches",
            Self::PodsSilent => "silent watch of pods",
            Self::ReplicaSetsSilent => "silent watch of ReplicaSets",
            Self::NodesSilent => "silent watch of nodes",
            Self::NoPower => "loss of power",
            Self::NoControllerManager => "stopped controller manager",
            Self::NoKubeconfig => "missing kubeconfig",
            Self::Mutations => "mutated responses",
            Self::ReadsRejected => "rejected lists and watches",
        })
    }
}

impl fmt::Display for Disk {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Written => "ends",
            Self::Kept => "is killed",
            Self::Lost => "loses its disk",
        })
    }
}
