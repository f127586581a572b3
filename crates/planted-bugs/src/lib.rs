//! Bugs that `cargo xtask simulate` switches on, to see whether the simulation finds them.
//!
//! ```text
//! simulation --plant(bug)--> this process --is_planted(bug)?--> the code that the bug is in
//! ```
//!
//! Without the feature `plantable`, which only `cargo xtask simulate` enables, [`is_planted`] is a constant: no bug is in the binary.

/// A bug that can be switched on: what controllers of this kind got wrong, or fedrs itself once did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlantedBug {
    /// A member that cannot be changed now counts with its `spec.replicas`, and not with its target: other members lose
    /// replicas that were requested of them.
    UnknownMembersBySpec,
    /// After a loss of power, the pods of a member whose status is ready count at once, and others are removed for them.
    ReturnedPodsBelieved,
    /// Pods without a node that a scale-down is about to delete lower the capacity.
    CapacityFromLeavingPods,
    /// A member that rejects the template is not scaled, either.
    TemplateBlocksScaling,
    /// The deletion of a set does not check the current owner of the local ReplicaSet.
    OwnerIgnoredByDeletion,
    /// A scale-down whose response is lost is ignored: the replicas that it may remove count as available.
    LostScaleDownForgotten,
    /// Replicas count as available as soon as they are requested.
    RequestedIsAvailable,
    /// Each cluster gets a surge of its own.
    SurgeOfEachCluster,
    /// What is deleted in a member while its watch is closed stays known.
    DeletionLostInRelist,
    /// The status is written after each check, also if it has not changed.
    StatusNotCompared,
    /// What is lent to one member is lent to others as well.
    BudgetLentTwice,
    /// What is unavailable at the moment is lent beside the budget.
    UnavailableLentBesideTheBudget,
    /// After a restart, what is lent does not count for the speed.
    SpeedForgottenByRestart,
    /// After a restart, the updates of a LocalReplicaSet that have begun do not count for the speed.
    StartedUpdatesForgottenByRestart,
    /// Evictions of a LocalReplicaSet begin beside the budget.
    EvictionsBesideTheBudget,
    /// That a pod was deleted by force proves that its containers have stopped.
    ForcedDeletionProves,
    /// A pod that others have removed is replaced at once, though it may still run and its policy waits.
    PlaceOfRunningPodTaken,
    /// A pod that is copied is removed before its copy is available.
    CopyNotAwaited,
    /// A pod that persons have to shut down is moved without them.
    PersonNotAwaited,
    /// When a member is listed again, discovery begins by forgetting its endpoints.
    EndpointsForgottenByRelist,
    /// Endpoints that go while the watch of a member is away stay after the next list.
    EndpointsKeptByRelist,
}

impl PlantedBug {
    /// All of them.
    pub const ALL: [Self; 21] = [
        Self::UnknownMembersBySpec,
        Self::ReturnedPodsBelieved,
        Self::CapacityFromLeavingPods,
        Self::TemplateBlocksScaling,
        Self::OwnerIgnoredByDeletion,
        Self::LostScaleDownForgotten,
        Self::RequestedIsAvailable,
        Self::SurgeOfEachCluster,
        Self::DeletionLostInRelist,
        Self::StatusNotCompared,
        Self::BudgetLentTwice,
        Self::UnavailableLentBesideTheBudget,
        Self::SpeedForgottenByRestart,
        Self::StartedUpdatesForgottenByRestart,
        Self::EvictionsBesideTheBudget,
        Self::ForcedDeletionProves,
        Self::PlaceOfRunningPodTaken,
        Self::CopyNotAwaited,
        Self::PersonNotAwaited,
        Self::EndpointsForgottenByRelist,
        Self::EndpointsKeptByRelist,
    ];
}

#[cfg(feature = "plantable")]
mod active {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::PlantedBug;

    /// The number of the bug, from 1 on; 0 for none.
    static ACTIVE: AtomicU8 = AtomicU8::new(0);

    /// Whether `bug` is switched on in this process.
    #[must_use]
    pub fn is_planted(bug: PlantedBug) -> bool {
        ACTIVE.load(Ordering::Relaxed) == bug as u8 + 1
    }

    /// Switches `bug` on in this process, and the one before it off. Returns whether this build can.
    pub fn plant(bug: Option<PlantedBug>) -> bool {
        ACTIVE.store(bug.map_or(0, |bug| bug as u8 + 1), Ordering::Relaxed);
        true
    }
}

#[cfg(not(feature = "plantable"))]
mod active {
    use super::PlantedBug;

    /// Whether `bug` is switched on: never.
    #[must_use]
    pub const fn is_planted(_bug: PlantedBug) -> bool {
        false
    }

    /// Switches nothing on. Returns that this build cannot.
    pub fn plant(_bug: Option<PlantedBug>) -> bool {
        false
    }
}

pub use active::{is_planted, plant};
