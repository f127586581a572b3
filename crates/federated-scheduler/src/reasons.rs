//! All reasons of one number, in the space of a few words.
//!
//! A layout over a thousand clusters is mostly reasons, and few of them are ever read. So what is kept is what they
//! are made of, next to each other: a third of the space of three [`Reason`]s, which are put together when they are read.

use std::fmt;

use crate::{
    quota::{Quota, Rounding},
    reason::Reason,
};

/// Why a cluster has its number (F19), in the order of the decisions. Never empty.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Reasons {
    // No number has two reasons that need the same field. What no reason needs is 0, so that equal reasons have equal fields.
    minimum: u64,
    /// Replicas present, or given of the minimum.
    count: u64,
    /// The maximum, the capacity or the weight: by weight is who is at neither.
    bound: u64,
    /// The rest of a quota.
    of_replicas: u64,
    of_weight_low: u64,
    of_weight_high: u32,
    rounding: Rounding,
    /// At most one of each decision: the minimum, what is present, and a bound or the share by weight.
    kinds: [Option<Kind>; 3],
}

/// Which [`Reason`] it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    NoPreference,
    NoReplicas,
    Minimum,
    PartOfMinimum,
    NothingLeft,
    ByWeight,
    GivesUp,
    AtMaximum,
    AtCapacity,
    Kept,
    NotAboveShare,
    OthersKeep,
    WeightZero,
    WeightZeroGivesUp,
}

impl Kind {
    /// Which of the decisions it is about, in their order.
    const fn decision(self) -> usize {
        match self {
            Self::Minimum | Self::PartOfMinimum => 0,
            Self::GivesUp | Self::Kept | Self::NotAboveShare | Self::WeightZeroGivesUp => 1,
            _ => 2,
        }
    }
}

impl Reasons {
    pub(crate) const fn new() -> Self {
        Self {
            minimum: 0,
            count: 0,
            bound: 0,
            of_replicas: 0,
            of_weight_low: 0,
            of_weight_high: 0,
            rounding: Rounding::Exact,
            kinds: [None; 3],
        }
    }

    /// Adds a reason. At most one of each decision, and the number of replicas of one alone.
    #[inline]
    pub(crate) fn push(&mut self, reason: Reason) {
        let kind = match reason {
            Reason::NoPreference => Kind::NoPreference,
            Reason::NoReplicas => Kind::NoReplicas,
            Reason::Minimum { minimum } => {
                self.minimum = minimum;
                Kind::Minimum
            }
            Reason::PartOfMinimum { given, minimum } => {
                (self.count, self.minimum) = (given, minimum);
                Kind::PartOfMinimum
            }
            Reason::NothingLeft => Kind::NothingLeft,
            Reason::ByWeight(quota) => {
                self.bound = quota.weight;
                self.of_replicas = quota.of_replicas;
                self.of_weight_low = quota.of_weight_low;
                self.of_weight_high = quota.of_weight_high;
                self.rounding = quota.rounding;
                Kind::ByWeight
            }
            Reason::GivesUp { present } => self.pluralize(Kind::GivesUp, present),
            Reason::AtMaximum { maximum } => self.bounded(Kind::AtMaximum, maximum),
            Reason::AtCapacity { capacity } => self.bounded(Kind::AtCapacity, capacity),
            Reason::Kept { present } => self.pluralize(Kind::Kept, present),
            Reason::NotAboveShare { present } => self.pluralize(Kind::NotAboveShare, present),
            Reason::OthersKeep => Kind::OthersKeep,
            Reason::WeightZero => Kind::WeightZero,
            Reason::WeightZeroGivesUp { present } => {
                self.pluralize(Kind::WeightZeroGivesUp, present)
            }
        };
        self.kinds[kind.decision()] = Some(kind);
    }

    fn pluralize(&mut self, kind: Kind, count: u64) -> Kind {
        self.count = count;
        kind
    }

    fn bounded(&mut self, kind: Kind, bound: u64) -> Kind {
        self.bound = bound;
        kind
    }

    /// The reasons, the first decision first.
    pub fn iter(&self) -> impl Iterator<Item = Reason> + use<'_> {
        self.kinds.iter().flatten().map(|kind| self.reason(*kind))
    }

    /// How many there are: one to three.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kinds.iter().flatten().count()
    }

    /// Whether there is none, which is never so.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn reason(&self, kind: Kind) -> Reason {
        let &Self {
            minimum,
            count,
            bound,
            ..
        } = self;
        match kind {
            Kind::NoPreference => Reason::NoPreference,
            Kind::NoReplicas => Reason::NoReplicas,
            Kind::Minimum => Reason::Minimum { minimum },
            Kind::PartOfMinimum => Reason::PartOfMinimum {
                given: count,
                minimum,
            },
            Kind::NothingLeft => Reason::NothingLeft,
            Kind::ByWeight => Reason::ByWeight(Quota {
                weight: bound,
                of_replicas: self.of_replicas,
                rounding: self.rounding,
                of_weight_low: self.of_weight_low,
                of_weight_high: self.of_weight_high,
            }),
            Kind::GivesUp => Reason::GivesUp { present: count },
            Kind::AtMaximum => Reason::AtMaximum { maximum: bound },
            Kind::AtCapacity => Reason::AtCapacity { capacity: bound },
            Kind::Kept => Reason::Kept { present: count },
            Kind::NotAboveShare => Reason::NotAboveShare { present: count },
            Kind::OthersKeep => Reason::OthersKeep,
            Kind::WeightZero => Reason::WeightZero,
            Kind::WeightZeroGivesUp => Reason::WeightZeroGivesUp { present: count },
        }
    }
}

impl fmt::Debug for Reasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// All reasons in one line: `its minimum is 20; its share by weight is 10 of 30 (weight 1 of 3)`.
impl fmt::Display for Reasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, reason) in self.iter().enumerate() {
            let separator = if place == 0 { "" } else { "; " };
            write!(f, "{separator}{reason}")?;
        }
        Ok(())
    }
}
