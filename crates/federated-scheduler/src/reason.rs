//! Why a cluster gets its replicas (F19), as data. `messages` has the texts.

use crate::quota::Quota;

/// Why a cluster gets its replicas. `Display` is a message for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The preferences have no entry for the cluster and none for `*` (F3).
    NotSelected,
    /// No replicas are desired.
    ScaledToZero,
    /// Its minimum (F12).
    AtMinimum {
        /// The minimum of the preferences.
        minimum: u64,
    },
    /// The minimums of earlier clusters leave less than its minimum (F12).
    BelowMinimum {
        /// Replicas granted.
        granted: u64,
        /// The minimum of the preferences.
        minimum: u64,
    },
    /// Nothing is left for the cluster to keep or to share (F12, F13).
    NoReplicasLeft {
        /// What takes all replicas.
        taken_by: TakenBy,
    },
    /// Its share by weight (F14), on top of its minimum.
    ByWeight(Quota),
    /// It has more than its share of fewer replicas, and is scaled down to its share (F17).
    AboveShare {
        /// Current replicas.
        current: u64,
    },
    /// It has no more than its share of fewer replicas, and keeps them (F17).
    WithinShare {
        /// Current replicas.
        current: u64,
    },
    /// It keeps its current replicas, more than its share by weight, since `rebalance` is false (F13).
    KeptInPlace {
        /// Current replicas.
        current: u64,
    },
    /// Its maximum binds: by weight it would get more.
    AtMaximum {
        /// The maximum of the preferences.
        maximum: u64,
    },
    /// Its capacity binds (F10): otherwise it would get more.
    AtCapacity {
        /// The most replicas it has shown it can run.
        capacity: u64,
    },
    /// Its weight is 0: it gets nothing beyond its minimum and the current replicas that it keeps.
    ZeroWeight,
    /// Its weight is 0, so that it is scaled down before clusters with a weight (F17).
    RemovedFirst {
        /// Current replicas.
        current: u64,
    },
}

/// What takes all replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakenBy {
    /// The minimums of all clusters.
    Minimums,
    /// Replicas that other clusters keep.
    KeptInPlace,
}

impl Reason {
    /// The reason in one word, for machines.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::NotSelected => "NotSelected",
            Self::ScaledToZero => "ScaledToZero",
            Self::AtMinimum { .. } => "AtMinimum",
            Self::BelowMinimum { .. } => "BelowMinimum",
            Self::NoReplicasLeft { .. } => "NoReplicasLeft",
            Self::ByWeight(_) => "ByWeight",
            Self::AboveShare { .. } => "AboveShare",
            Self::WithinShare { .. } => "WithinShare",
            Self::KeptInPlace { .. } => "KeptInPlace",
            Self::AtMaximum { .. } => "AtMaximum",
            Self::AtCapacity { .. } => "AtCapacity",
            Self::ZeroWeight => "ZeroWeight",
            Self::RemovedFirst { .. } => "RemovedFirst",
        }
    }
}

/// Why a cluster gets its replicas, by decision: at least one reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reasons {
    /// What the cluster gets as its minimum.
    pub minimum: Option<Reason>,
    /// What becomes of its current replicas.
    pub current: Option<Reason>,
    /// The bound that binds, or its share by weight; or why it has neither.
    pub share: Option<Reason>,
}

impl Reasons {
    /// The reasons in the order of the decisions.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Reason> {
        [&self.minimum, &self.current, &self.share]
            .into_iter()
            .flatten()
    }

    /// The one reason to be shown where there is room for one: that of the last decision. A weight of 0 only says why there
    /// are no more replicas, not why there are some.
    #[must_use]
    pub fn decisive(&self) -> Option<&Reason> {
        let explains_replicas = |reason: &&Reason| **reason != Reason::ZeroWeight;
        self.iter()
            .rev()
            .find(explains_replicas)
            .or(self.share.as_ref())
    }
}
