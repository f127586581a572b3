//! What a step needs to know of a pod: the facts that the edge reads from the object.

use std::time::Duration;

use jiff::Timestamp;

use crate::resize::Resize;

/// A pod that a set owns, or could adopt. Pods of other owners are not among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts that do not depend on each other"
)]
pub struct Pod<'a> {
    /// The name.
    pub name: &'a str,
    /// The uid.
    pub uid: &'a str,
    /// The hash of the template that it has; `None` if it carries none, as a pod that was adopted.
    pub revision: Option<u32>,
    /// Whether the set owns it.
    pub owner: Owner,
    /// The node that it is scheduled to.
    pub node: Option<Node<'a>>,
    /// Whether it runs.
    pub life: Life<'a>,
    /// Who asks to move it off its node (L18); `None` if nobody does.
    pub eviction: Option<Eviction>,
    /// Where that is asked for.
    pub eviction_by: EvictionBy,
    /// The planned work on its node, if it is known how long that takes (M9).
    pub absence: Option<Absence>,
    /// The request for its migration, if there is one (M1).
    pub migration: Option<RequestedMigration>,
    /// The value of the label by which its set's pods are grouped into shards (M6).
    pub shard: Option<&'a str>,
    /// Whether it stays until its containers have stopped.
    pub guard: Guard,
    /// Whether it is not started until a person does so: it has the scheduling gate (M12).
    pub is_gated: bool,
    /// Whether a person has confirmed that its machine is destroyed.
    pub is_destroyed: bool,
    /// Whether its removal is an eviction that was requested of the API server, or its preemption: `DisruptionTarget`.
    pub is_disrupted: bool,
    /// `controller.kubernetes.io/pod-deletion-cost`; 0 without it. The lower, the earlier it is removed.
    pub deletion_cost: i32,
    /// When it was created.
    pub created: Timestamp,
    /// Restarts of its containers together.
    pub restarts: u32,
    /// Whether the API server has rejected its update in place: it is recreated.
    pub is_refused: bool,
    /// Whether no node has room for it, and another one in its place would get a slot that fewer pods have (L1): see
    /// [`CompleteTemplate::is_crowded`](crate::CompleteTemplate::is_crowded).
    pub is_crowded: bool,
    /// The readiness gate for updates in place.
    pub gate: Gate,
    /// Whether its kubelet has carried out the last update in place.
    pub in_place: InPlace,
    /// Whether it has the CPU and memory that it was last updated to in place.
    pub resize: Resize,
    /// Whether its kubelet can change CPU and memory of its containers, as far as its status says.
    pub is_resizable: bool,
}

/// Why a pod that no node has room for is not scheduled, as the scheduler says it.
pub(crate) const UNSCHEDULABLE: &str = "Unschedulable";
/// Why the gate is closed while clients leave the pod.
pub(crate) const DRAINING: &str = "Draining";

/// Planned work on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absence {
    /// When the node is expected back.
    pub until: Timestamp,
    /// How long it is away.
    pub duration: Duration,
}

/// What a MigrationRequest asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestedMigration {
    /// When the pod is moved whatever holds it up (M15).
    pub deadline: Timestamp,
    /// Whether it is asked for by compaction (M14).
    pub is_compaction: bool,
    /// What persons have confirmed.
    pub confirmed: Confirmed,
}

impl RequestedMigration {
    /// What this request and another one for the same pod ask for together.
    #[must_use]
    pub fn merged(self, other: Self) -> Self {
        let (a, b) = (self.confirmed, other.confirmed);
        Self {
            deadline: self.deadline.min(other.deadline),
            is_compaction: self.is_compaction && other.is_compaction,
            confirmed: Confirmed {
                is_stopped: a.is_stopped || b.is_stopped,
                may_activate: a.may_activate || b.may_activate,
                may_shut_down: a.may_shut_down || b.may_shut_down,
            },
        }
    }
}

/// What persons have confirmed of a migration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Confirmed {
    /// That the pod is down (M7).
    pub is_stopped: bool,
    /// That clients may reach the new pod (M4).
    pub may_activate: bool,
    /// That the old pod may be shut down (M4).
    pub may_shut_down: bool,
}

/// Whether a pod that is being removed stays until its containers have stopped (M11), by a finalizer of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// It has no such finalizer.
    Absent,
    /// It has, and its containers may run.
    Holding,
    /// Nothing but finalizers keeps it, and nothing proves that its containers have stopped: its removal was requested without time to
    /// stop, as its kubelet does at the end, and whoever deletes by force.
    Unproved,
    /// Its containers have stopped: its kubelet has said so of each of them, and has then requested its removal.
    Stopped,
}

/// Where an eviction is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictionBy {
    /// By the pod's own label or annotation.
    Pod,
    /// Only by its node: its next pods are evicted, too, as long as it does.
    Node,
}

/// Whether the set owns a pod, and the pod's labels match its selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The set is its controller, and its labels match.
    Set,
    /// The set is its controller, but its labels do not match any more (C6).
    SetWithoutMatch,
    /// It has no controller, and its labels match.
    Nobody,
}

/// A node, as far as its pods depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node<'a> {
    /// The name.
    pub name: &'a str,
    /// Whether it is ready. Pods of one that is not are not available, whatever their status says.
    pub is_ready: bool,
    /// Whether it is cordoned, as before a drain.
    pub is_cordoned: bool,
}

/// Whether a pod runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life<'a> {
    /// Pending or running, and not being removed.
    Live(Readiness<'a>),
    /// It is being removed.
    Terminating {
        /// When its removal was requested; `None` if our request was sent and its result has not been seen.
        since: Option<Timestamp>,
    },
    /// Its phase is Succeeded or Failed. It does not count (C8).
    Terminated,
}

/// Whether a live pod is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness<'a> {
    /// It is ready.
    Ready {
        /// Since when.
        since: Timestamp,
    },
    /// It is not.
    NotReady {
        /// Since when: for a new pod, since its creation.
        since: Timestamp,
        /// Why it will not become ready by itself, as the kubelet or the scheduler says it: `CrashLoopBackOff`. `None` if it is still
        /// starting.
        failure: Option<&'a str>,
    },
}

/// Who asks to move a pod off its node (L18). Involuntary ones go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Eviction {
    /// Its node: hardware, network, kernel.
    Involuntary,
    /// A person, or what a person started.
    Voluntary,
}

impl Eviction {
    /// What an annotation or label of a pod or node asks for: `false` for nothing. Whatever else somebody writes there, pods are to
    /// leave.
    pub(crate) fn parse(asked: &str) -> Option<Self> {
        match asked {
            "false" => None,
            "Involuntary" => Some(Self::Involuntary),
            _ => Some(Self::Voluntary),
        }
    }
}

/// The readiness gate that takes a pod out of endpoints while it is updated in place, and before it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// The pod has no such gate, since another has created it.
    Absent,
    /// The pod has it, but no condition for it yet: Kubernetes takes that for false.
    Unset,
    /// The condition is true.
    Open,
    /// The condition is false.
    Closed,
    /// The condition is false, so that clients leave the pod: it has not been updated in place since.
    Draining {
        /// Since when, by the controller's clock, without fractions of a second.
        since: Timestamp,
    },
}

/// Whether the kubelet has carried out the last update in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InPlace {
    /// It has, or there was none.
    Settled,
    /// Containers have still to be restarted: see [`InPlaceRecord`](crate::InPlaceRecord).
    Restarting {
        /// When the pod was patched.
        since: Timestamp,
    },
}

impl<'a> Pod<'a> {
    /// Whether it counts as a replica: it runs or is about to, and the set owns it or adopts it.
    pub(crate) fn is_live(&self) -> bool {
        matches!(self.life, Life::Live(_)) && self.owner != Owner::SetWithoutMatch
    }

    /// Whether it is being updated in place, as it shows itself.
    pub(crate) fn shows_update(&self) -> bool {
        matches!(self.gate, Gate::Closed | Gate::Draining { .. })
            || self.in_place != InPlace::Settled
            || self.resize != Resize::Settled
    }

    /// Whether clients leave it, since it is to be removed, or its containers are to restart.
    pub(crate) fn is_draining(&self) -> bool {
        matches!(self.gate, Gate::Draining { .. })
    }

    /// Whether it is being removed, and its containers are not known to have stopped.
    #[must_use]
    pub fn may_still_run(&self) -> bool {
        let has_finalizer = matches!(self.guard, Guard::Holding | Guard::Unproved);
        has_finalizer && !self.is_destroyed && matches!(self.life, Life::Terminating { .. })
    }

    /// What persons have confirmed of its migration; `None` if nobody asks for one.
    pub(crate) fn confirmed(&self) -> Option<Confirmed> {
        self.migration.map(|asked| asked.confirmed)
    }

    /// Whether the API server may be asked to change it.
    pub(crate) fn is_owned(&self) -> bool {
        self.owner == Owner::Set
    }

    /// Whether it is being removed because others have evicted it.
    pub(crate) fn is_evicted_by_others(&self) -> bool {
        self.is_disrupted && matches!(self.life, Life::Terminating { .. })
    }

    /// Since when it is ready; `None` if it is not.
    pub(crate) fn ready_since(&self) -> Option<Timestamp> {
        match self.life {
            Life::Live(Readiness::Ready { since }) => Some(since),
            _ => None,
        }
    }

    /// Why it will not become ready by itself, if that is known.
    pub(crate) fn failure(&self) -> Option<&'a str> {
        match self.life {
            Life::Live(Readiness::NotReady { failure, .. }) => failure,
            _ => None,
        }
    }

    /// Whether the scheduler has no node for it.
    #[must_use]
    pub fn is_unschedulable(&self) -> bool {
        self.node.is_none() && self.failure() == Some(UNSCHEDULABLE)
    }

    /// Whether it has a node that does not run it any more.
    pub(crate) fn is_on_lost_node(&self) -> bool {
        self.node.is_some_and(|node| !node.is_ready)
    }
}
