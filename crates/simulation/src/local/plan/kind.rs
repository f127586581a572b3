//! The kinds of steps, and how often a plan has each.

use rand::{RngExt, rngs::StdRng};

use super::LocalFault;

/// A kind of step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Scale,
    Image,
    Template,
    BadImage,
    Strategy,
    Constraints,
    Pause,
    Lifecycle,
    PodEviction,
    NodeEviction,
    Drain,
    PodDeletion,
    PodLabels,
    StrangePod,
    Cordon,
    OutOfService,
    Node,
    NodeDeletion,
    Quota,
    UsersBudget,
    Switch(LocalFault),
    Slow,
    Rejections,
    LostResponses,
    Watches,
    Crash,
    CrashLoop,
    Suspend,
}

impl Kind {
    /// Edits by users.
    const EDITS: [Self; 8] = [
        Self::Scale,
        Self::Image,
        Self::Template,
        Self::BadImage,
        Self::Strategy,
        Self::Constraints,
        Self::Pause,
        Self::Lifecycle,
    ];
    /// What happens to pods and nodes.
    const EVENTS: [Self; 12] = [
        Self::PodEviction,
        Self::NodeEviction,
        Self::Drain,
        Self::PodDeletion,
        Self::PodLabels,
        Self::StrangePod,
        Self::Cordon,
        Self::OutOfService,
        Self::Node,
        Self::NodeDeletion,
        Self::Quota,
        Self::UsersBudget,
    ];
    /// Faults of the API server, the network and the controller.
    const FAULTS: [Self; 7] = [
        Self::Slow,
        Self::Rejections,
        Self::LostResponses,
        Self::Watches,
        Self::Crash,
        Self::CrashLoop,
        Self::Suspend,
    ];

    /// Some kinds, each with a weight: one or more edits, and up to all faults.
    pub(super) fn some(random: &mut StdRng) -> Vec<(Self, u32)> {
        let shares = [
            random.random_range(0.3..0.9),
            random.random_range(0.0..0.6),
            random.random_range(0.0..0.6),
            random.random_range(0.0..0.4),
        ];
        let switches = LocalFault::ALL.map(Self::Switch);
        let all = [
            &Self::EDITS[..],
            &Self::EVENTS[..],
            &Self::FAULTS[..],
            &switches[..],
        ];
        // Every run updates pods.
        let mut kinds = vec![(Self::Image, 3)];
        for (all, share) in all.into_iter().zip(shares) {
            for kind in all {
                if random.random_bool(share) {
                    kinds.push((*kind, random.random_range(1..=4)));
                }
            }
        }
        kinds
    }
}
