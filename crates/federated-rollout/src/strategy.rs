//! A member's rolling update strategy, in pods.

use serde::{Deserialize, Serialize};

/// `strategy.rollingUpdate` of a Deployment in a member, as integers: each cluster would round a percentage by itself.
/// The API server refuses 0 and 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Strategy {
    /// `maxUnavailable`, L.
    pub unavailable: u64,
    /// `maxSurge`.
    pub surge: u64,
}

impl Strategy {
    /// What a member without a loan has.
    pub const WITHOUT_LOAN: Self = Self::new(0, 1);

    /// `maxUnavailable` and `maxSurge`.
    #[must_use]
    pub const fn new(unavailable: u64, surge: u64) -> Self {
        Self { unavailable, surge }
    }

    /// The pods that a Deployment with this strategy can have started and not yet available: it keeps
    /// `pods - new and unavailable >= replicas - L` and `pods <= replicas + surge`.
    #[must_use]
    pub const fn pods(self) -> u64 {
        self.unavailable.saturating_add(self.surge)
    }

    /// Whether `self` allows all that `other` allows.
    #[must_use]
    pub const fn covers(self, other: Self) -> bool {
        self.unavailable >= other.unavailable && self.surge >= other.surge
    }

    /// What either allows.
    pub(crate) fn or(self, other: Self) -> Self {
        Self::new(
            self.unavailable.max(other.unavailable),
            self.surge.max(other.surge),
        )
    }

    /// What both allow.
    pub(crate) fn and(self, other: Self) -> Self {
        Self::new(
            self.unavailable.min(other.unavailable),
            self.surge.min(other.surge),
        )
    }
}
