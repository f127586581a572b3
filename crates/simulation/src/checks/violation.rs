//! What must hold, and what did not.

use std::fmt;

/// What must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invariant {
    /// A scale-down leaves N replicas, or as many as there were (F20).
    NoDip,
    /// Nothing is removed because of replicas in a member whose state is not known (F39).
    NoRelianceOnUnknown,
    /// No more is requested than N, the surge and the capacity probes (F20).
    NoSurplus,
    /// Nothing is changed but what belongs to a set, or what a set adopts (F29, F30).
    OnlyOurs,
    /// No local ReplicaSet is deleted but those of deleted sets (F5, F39).
    NoDeletion,
    /// No cluster is found to be full below what it runs (F34).
    KnownCapacity,
    /// The numbers of a status add up, and no member with replicas is said to be drained (F6).
    TrueStatus,
    /// Nothing is changed of a set that is paused or invalid, and no member that takes no replicas gets more (F4).
    Switches,
    /// No more of a rollout is lent to the members than its budget (L14).
    Budget,
    /// A template is written with a loan, as users want it now, and in the order of the steps (L8, L10, L14).
    Rollout,
    /// Pods of a new template start no faster than users want (L15).
    Speed,
    /// A pod loses the finalizer once its containers have stopped, and nothing takes its place before (M11).
    Proof,
    /// Nodes that match a Maintenance are marked, and lose the mark as they were before (M9, M15).
    Marks,
    /// A set that is gone has left nothing behind (F5).
    NothingLeft,
    /// What fails is tried again at a bounded rate (F28, F38).
    BoundedRate,
    /// Only the holder of the Lease writes.
    OneWriter,
    /// What is answered of a pod was true of it, not longer ago than what is known of its cluster may be old (D1 to D3).
    TrueEndpoints,
    /// No endpoint that serves is missing in an answer (D3).
    NoLostEndpoint,
    /// No set with a pod that serves is answered as empty, or not at all (D3).
    NoEmptyAnswer,
    /// Versions of answers only grow, and each has one content (D3).
    VersionsGrow,
    /// The controller does not panic.
    NoPanic,
    /// When faults stop, the desired state is reached.
    Reached,
    /// What has been reached stays, and nothing is written any more.
    Settled,
    /// In a healthy federation a change has its effect within seconds.
    InTime,
}

impl fmt::Display for Invariant {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::NoDip => "no dip",
            Self::NoRelianceOnUnknown => "no reliance on unknown members",
            Self::NoSurplus => "no surplus",
            Self::OnlyOurs => "only ours",
            Self::NoDeletion => "no deletion",
            Self::KnownCapacity => "known capacity",
            Self::TrueStatus => "true status",
            Self::Switches => "switches",
            Self::Budget => "budget",
            Self::Rollout => "rollout",
            Self::Speed => "speed",
            Self::Proof => "proof",
            Self::Marks => "marks",
            Self::NothingLeft => "nothing left",
            Self::BoundedRate => "bounded rate",
            Self::OneWriter => "one writer",
            Self::TrueEndpoints => "true endpoints",
            Self::NoLostEndpoint => "no lost endpoint",
            Self::NoEmptyAnswer => "no empty answer",
            Self::VersionsGrow => "versions grow",
            Self::NoPanic => "no panic",
            Self::Reached => "reached",
            Self::Settled => "settled",
            Self::InTime => "in time",
        })
    }
}

/// An invariant that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The invariant.
    pub invariant: Invariant,
    /// What happened.
    pub text: String,
}

impl Violation {
    /// Makes violations of an invariant from their texts.
    pub(crate) fn of(invariant: Invariant) -> impl Fn(String) -> Self {
        move |text| Self { invariant, text }
    }
}
