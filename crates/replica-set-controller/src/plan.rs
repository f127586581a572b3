//! What a step decided: the output.

use fedrs_api::LocalRecord;
use jiff::Timestamp;

use crate::{
    account::{Account, BudgetUser},
    change::Patch,
    disruption::DisruptionPlan,
    group::Counts,
    migration::MigrationWait,
    order::RemovalRank,
    pod::{Eviction, Gate, Pod},
    resize::ResizeWait,
};

/// What to record, what to do, and what is waited for.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan<'a> {
    /// The record to publish. Only once it is recorded does what is new in it lead to actions. Equal to the recorded one if nothing
    /// has changed.
    pub record: LocalRecord,
    /// Actions that the recorded record allows: safe in any order, whether the new one is published or not. At most one for each
    /// pod.
    pub actions: Vec<Action<'a>>,
    /// What the set and its pods wait for.
    pub waits: Vec<Wait<'a>>,
    /// Available pods of cordoned nodes, for whose evictions through the API server a part of the budget is kept or asked for (L19).
    pub drained: usize,
    /// The pods, for the status.
    pub counts: Counts,
    /// The budget and its use, with what is new in the record.
    pub account: Account,
    /// What becomes of the PodDisruptionBudget.
    pub disruption: DisruptionPlan,
    /// When to decide again if nothing happens before.
    pub next: Option<Timestamp>,
}

/// A request. Its precondition is the uid of the pod, and its version unless [`Action::needs_version`] says otherwise.
#[derive(Clone, Debug, PartialEq)]
pub enum Action<'a> {
    /// Make the set the controller of a pod that matches and has none.
    Adopt {
        /// The pod.
        pod: &'a Pod<'a>,
    },
    /// Stop being the controller of a pod that does not match any more (C6).
    Release {
        /// The pod.
        pod: &'a Pod<'a>,
    },
    /// Create a pod of the current template with the gate, if it is not there.
    Create {
        /// Its name. That it exists already is no error if it belongs to the set.
        name: String,
        /// The node that it prefers.
        prefers: Option<String>,
        /// The shard of the pod in whose place it is, as the value of the label of shards (M6).
        shard: Option<String>,
        /// When its containers start, and clients reach it.
        start: Start,
        /// Why.
        reason: CreateReason,
    },
    /// Delete a pod, gracefully.
    Remove {
        /// The pod.
        pod: &'a Pod<'a>,
        /// Why.
        reason: RemoveReason<'a>,
    },
    /// Delete a pod that does not shut down, without waiting for its node (L17).
    ForceRemove {
        /// The pod.
        pod: &'a Pod<'a>,
        /// Since when it is being removed.
        since: Timestamp,
    },
    /// Have a pod stay until its containers have stopped when it is removed (M11): it gets the finalizer.
    AddFinalizer {
        /// The pod.
        pod: &'a Pod<'a>,
    },
    /// Nothing keeps it any more: it loses the finalizer.
    RemoveFinalizer {
        /// The pod.
        pod: &'a Pod<'a>,
    },
    /// Take the pod out of endpoints: its gate becomes false, and with it its readiness.
    CloseGate {
        /// The pod.
        pod: &'a Pod<'a>,
    },
    /// The same, so that clients leave the pod before it is removed or its containers restart.
    Drain {
        /// The pod.
        pod: &'a Pod<'a>,
    },
    /// Update a pod in place, together with the hash of the current template and an [`InPlaceRecord`](crate::InPlaceRecord).
    Patch {
        /// The pod.
        pod: &'a Pod<'a>,
        /// What to patch.
        patch: &'a Patch,
    },
    /// Change CPU and memory of a pod as its [`InPlaceRecord`](crate::InPlaceRecord) says, through its subresource `resize`.
    Resize {
        /// The pod.
        pod: &'a Pod<'a>,
    },
    /// Put the pod into endpoints once its containers are ready: its gate becomes true.
    OpenGate {
        /// The pod.
        pod: &'a Pod<'a>,
    },
}

impl<'a> Action<'a> {
    /// The pod that it changes; `None` if it creates one.
    #[must_use]
    pub fn pod(&self) -> Option<&'a Pod<'a>> {
        match self {
            Self::Create { .. } => None,
            Self::Adopt { pod }
            | Self::Release { pod }
            | Self::Remove { pod, .. }
            | Self::ForceRemove { pod, .. }
            | Self::AddFinalizer { pod }
            | Self::RemoveFinalizer { pod }
            | Self::CloseGate { pod }
            | Self::Drain { pod }
            | Self::Patch { pod, .. }
            | Self::Resize { pod }
            | Self::OpenGate { pod } => Some(pod),
        }
    }

    /// Whether the version of the pod is a precondition: a request that arrives late must not make a pod unavailable that was updated
    /// in the meantime, or that has left the set. One that is deleted by force does not change any more. A new pod is changed by
    /// the scheduler and its kubelet while its gate is opened, which takes nothing from it: if that arrives late, and opens a gate
    /// that was closed since, the patch that was to follow finds another version, and the gate is closed again.
    #[must_use]
    pub fn needs_version(&self) -> bool {
        match self {
            Self::Create { .. } | Self::ForceRemove { .. } => false,
            Self::OpenGate { pod } => pod.gate != Gate::Unset,
            _ => true,
        }
    }
}

/// Why a pod is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateReason {
    /// Fewer pods exist than there should be (L13).
    Missing,
    /// The pod of this name was removed to be recreated, with another template (L12) or on another node (M5).
    Recreated,
    /// It is to take the place of a pod that has to leave its node (M2).
    Copied,
}

/// When the containers of a new pod start, and clients reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At once.
    AtOnce,
    /// Its containers start at once, and clients reach it once a person has confirmed it (M4): its readiness gate stays closed.
    Held,
    /// Once a person starts it (M7, M12): it has the scheduling gate.
    Gated,
}

/// Why a pod is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoveReason<'a> {
    /// More pods exist than there should be, and it is among the first of them (L13, L21).
    Surplus {
        /// What it has before the others.
        rank: RemovalRank,
    },
    /// No node has room for it, and may have for another one in its place (L1).
    Crowded,
    /// It has to leave its node (L18).
    Evicted {
        /// Who asks; `None` if nobody does any more: the eviction has begun.
        by: Option<Eviction>,
    },
    /// It can't be updated in place (L12).
    Recreated {
        /// The fields of the template because of which; empty if its template is not known, or the pod can't be changed.
        fields: &'a [String],
    },
}

/// What something waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait<'a> {
    /// Nothing is changed: the user has stopped it (L8).
    Stopped,
    /// Updates wait for the user (L8), or do not happen by the mode of the set (C4).
    UpdatesOff {
        /// Pods of other revisions.
        pods: usize,
    },
    /// Updates wait until the number of pods is right (L13).
    Scaling {
        /// Pods of other revisions.
        pods: usize,
    },
    /// Creations wait, because the API server accepts them one after the other, or rejected some.
    Creation {
        /// Pods to create.
        pods: usize,
        /// Until when; `None` for the answers to the creations of this plan.
        until: Option<Timestamp>,
    },
    /// Updates wait for evictions (L19).
    Evictions {
        /// Pods of other revisions.
        pods: usize,
        /// Evictions that are not finished.
        evictions: usize,
        /// Until when at most.
        until: Timestamp,
    },
    /// Available pods can't be updated or evicted, since the budget is in use (L14, L20).
    Budget {
        /// What waits.
        purpose: Purpose,
        /// How many pods.
        pods: usize,
        /// Who uses the budget, by name. What is missing from [`Account::in_use`] is missing as pods.
        by: Vec<BudgetUser<'a>>,
    },
    /// Available pods can't be updated or evicted until the PodDisruptionBudget lends less to evictions of others, and all that it has
    /// allowed are seen.
    DisruptionBudget {
        /// How many pods.
        pods: usize,
    },
    /// Available pods wait for the drain of cordoned nodes (L19).
    Drains {
        /// Pods of other revisions.
        pods: usize,
        /// Until when at most.
        until: Timestamp,
    },
    /// As many updates have begun as may (L15).
    Speed {
        /// Pods that wait.
        pods: usize,
        /// Until when; `None` until the updates that were recorded are seen to have begun.
        until: Option<Timestamp>,
    },
    /// A pod that has to leave its node.
    Migration {
        /// Its name.
        pod: &'a str,
        /// Its uid.
        uid: &'a str,
        /// What it waits for.
        reason: MigrationWait<'a>,
    },
    /// An eviction is not finished in time, and no longer delays updates (L19).
    EvictionBlocked {
        /// The pod.
        pod: &'a str,
        /// Since when its eviction was requested.
        since: Timestamp,
    },
    /// A pod.
    Pod {
        /// Its name.
        pod: &'a str,
        /// What it waits for.
        reason: PodWait,
    },
}

/// What waits for the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Updates (L14).
    Update,
    /// Evictions (L20).
    Eviction,
}

/// What a pod waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodWait {
    /// What was begun has to be recorded first.
    Record,
    /// It has to be adopted first.
    Adoption,
    /// It has to be seen out of endpoints before it is updated or removed.
    OutOfEndpoints,
    /// Clients have to leave it before it is removed, or its containers restart.
    Drain {
        /// Until when.
        until: Timestamp,
    },
    /// Its kubelet has to restart its containers.
    Restart,
    /// Its kubelet has to change its CPU or memory.
    Resize(ResizeWait),
    /// Its containers have to stop: the policy asks for a proof of it (M11).
    Stop {
        /// Until when; `None` if there is no limit.
        until: Option<Timestamp>,
    },
    /// Its containers have not stopped in time: a person has to confirm that they have (M11).
    HandsUp,
    /// Its containers have stopped, which a person has to confirm (M7).
    Confirmation,
    /// It has to shut down.
    Shutdown {
        /// When it is deleted by force; `None` if its removal has just been requested.
        force_at: Option<Timestamp>,
    },
}
