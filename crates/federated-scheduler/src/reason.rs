//! Why a cluster has its number (F19), one reason at a time; `reasons` holds all of one number.

use std::fmt;

use crate::quota::Quota;

/// Why a cluster has its number. `Display` says it in one sentence for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// No entry of its own and no `*` (F3).
    NoPreference,
    /// No replicas are asked for.
    NoReplicas,
    /// Its minimum (F12).
    Minimum {
        /// The minimum of the preferences.
        minimum: u64,
    },
    /// The minimums of earlier clusters left less than its minimum (F12).
    PartOfMinimum {
        /// Replicas given.
        given: u64,
        /// The minimum of the preferences.
        minimum: u64,
    },
    /// Minimums use up all replicas: nothing is left to be kept or shared (F12).
    NothingLeft,
    /// Its part by weight (F14), on top of its minimum. The one reason with a quota: so a reason stays at 32 bytes.
    ByWeight(Quota),
    /// Fewer replicas are wanted than are present, and this cluster is above its share: it gives the surplus up (F17).
    GivesUp {
        /// Replicas present.
        present: u64,
    },
    /// Its maximum binds: by weight it would get more.
    AtMaximum {
        /// The maximum of the preferences.
        maximum: u64,
    },
    /// Its capacity binds (F10): otherwise it would get more.
    AtCapacity {
        /// What it has shown it can run.
        capacity: u64,
    },
    /// What is present stays, more than its share by weight, since `rebalance` is false (F13).
    Kept {
        /// Replicas present.
        present: u64,
    },
    /// Fewer replicas are wanted than are present, and this cluster isn't above its share: it keeps what is present (F17).
    NotAboveShare {
        /// Replicas present.
        present: u64,
    },
    /// What is present in other clusters stays and leaves nothing to be shared out (F13).
    OthersKeep,
    /// Its weight is 0: it gets nothing beyond its minimum and what is kept there.
    WeightZero,
    /// Its weight is 0, so that it is the first to give up what is present (F17).
    WeightZeroGivesUp {
        /// Replicas present.
        present: u64,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoPreference => f.write_str("no preference names it, and there is none for `*`"),
            Self::NoReplicas => f.write_str("no replicas are asked for"),
            Self::Minimum { minimum } => write!(f, "its minimum is {minimum}"),
            Self::PartOfMinimum { given, minimum } => {
                write!(
                    f,
                    "its minimum is {minimum}, of which the minimums of earlier clusters leave {given}"
                )
            }
            Self::NothingLeft => f.write_str("the minimums use all replicas up"),
            Self::ByWeight(quota) => write!(f, "its share by weight is {quota}"),
            Self::GivesUp { present } => {
                write!(
                    f,
                    "it has {present}, more than its share of what is wanted now, and gives the surplus up"
                )
            }
            Self::AtMaximum { maximum } => write!(f, "its maximum is {maximum}"),
            Self::AtCapacity { capacity } => {
                write!(f, "it has shown that it can run {capacity} and no more")
            }
            Self::Kept { present } => {
                write!(
                    f,
                    "it has {present}, and what is present is kept while rebalancing is off"
                )
            }
            Self::NotAboveShare { present } => {
                write!(
                    f,
                    "it has {present}, no more than its share, so that others give up theirs first"
                )
            }
            Self::OthersKeep => f.write_str("what other clusters have is kept and leaves none"),
            Self::WeightZero => {
                f.write_str("its weight is 0: nothing beyond its minimum and what it keeps")
            }
            Self::WeightZeroGivesUp { present } => {
                write!(
                    f,
                    "its weight is 0, so that its {present} are given up before those of clusters with a weight"
                )
            }
        }
    }
}
