//! The kinds of steps, and how often a plan has each.

use rand::{RngExt, rngs::StdRng};

use super::Fault;

/// A kind of step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Scale,
    Placement,
    Template,
    Pause,
    Lifecycle,
    Cordon,
    Namespaces,
    ExternalScale,
    ExternalDelete,
    ExternalCreate,
    TakeOver,
    Labels,
    PodDeletion,
    Quota,
    Switch(Fault),
    HostSwitch(Fault),
    Flapping,
    Slow,
    Rejections,
    LostResponses,
    LateChanges,
    Watches,
    Node,
    Clock,
    Crash,
    CrashLoop,
    Suspend,
    HostRestore,
    MemberRestore,
}

impl Kind {
    /// Edits by users.
    const EDITS: [Self; 7] = [
        Self::Scale,
        Self::Placement,
        Self::Template,
        Self::Pause,
        Self::Lifecycle,
        Self::Cordon,
        Self::Namespaces,
    ];
    /// Edits by other writers, and faults.
    const FAULTS: [Self; 33] = [
        Self::ExternalScale,
        Self::ExternalDelete,
        Self::ExternalCreate,
        Self::TakeOver,
        Self::Labels,
        Self::PodDeletion,
        Self::Quota,
        Self::Switch(Fault::Unreachable),
        Self::Switch(Fault::Hanging),
        Self::Switch(Fault::WatchesSilent),
        Self::Switch(Fault::PodsSilent),
        Self::Switch(Fault::ReplicaSetsSilent),
        Self::Switch(Fault::NodesSilent),
        Self::Switch(Fault::NoPower),
        Self::Switch(Fault::NoControllerManager),
        Self::Switch(Fault::NoKubeconfig),
        Self::Switch(Fault::Mutations),
        Self::HostSwitch(Fault::Unreachable),
        Self::HostSwitch(Fault::Hanging),
        Self::HostSwitch(Fault::WatchesSilent),
        Self::Flapping,
        Self::Slow,
        Self::Rejections,
        Self::LostResponses,
        Self::LateChanges,
        Self::Watches,
        Self::Node,
        Self::Clock,
        Self::Crash,
        Self::CrashLoop,
        Self::Suspend,
        Self::HostRestore,
        Self::MemberRestore,
    ];

    /// Some kinds, each with a weight: one or more edits, and up to all faults.
    pub(super) fn some(random: &mut StdRng) -> Vec<(Self, u32)> {
        let (edits, faults) = (
            random.random_range(0.2..0.8),
            random.random_range(0.05..0.6),
        );
        let mut kinds = vec![(Self::Scale, 2)];
        for (all, share) in [(&Self::EDITS[..], edits), (&Self::FAULTS[..], faults)] {
            for kind in all {
                if random.random_bool(share) {
                    kinds.push((*kind, random.random_range(1..=4)));
                }
            }
        }
        kinds
    }
}
