//! How the clusters with a weight share: which of them are at a bound that binds, and what the others share by weight.
//!
//! A bound is given as the reason only where it binds: the *upper* one if the cluster's next quotient is higher than a
//! quotient that was granted elsewhere, the *lower* one if its last quotient is lower than one that is free elsewhere. All
//! other clusters share by weight what those leave.

use crate::{
    candidate::Candidate,
    quota::{Quota, Rounding},
    quotient::Quotient,
};

/// Which bound keeps a candidate from its share by weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binding {
    Upper,
    Lower,
    Neither,
}

/// What the candidates that share by weight have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pool {
    /// The sum of their weights.
    weight: u128,
    /// The replicas they share.
    pub(crate) replicas: u64,
    /// The quotient that some of them were granted and others weren't, by their order.
    tie: Option<Quotient>,
}

impl Pool {
    /// The quota of a candidate that shares.
    pub(crate) fn quota(&self, candidate: &Candidate) -> Quota {
        let &Candidate { weight, extra, .. } = candidate;
        let rounding = Rounding::of(weight, self.weight, self.replicas, extra);
        Quota {
            weight,
            total_weight: self.weight,
            replicas: self.replicas,
            rounding: match rounding {
                Rounding::Up if self.is_tied(candidate) => Rounding::UpByOrder,
                Rounding::Down if self.is_tied(candidate) => Rounding::DownByOrder,
                rounding => rounding,
            },
        }
    }

    /// Whether the candidate's last extra, or its next one, is part of the tie.
    fn is_tied(&self, candidate: &Candidate) -> bool {
        let is_tie = |number| self.tie == Some(candidate.quotient(number));
        candidate.extra > 0 && is_tie(candidate.extra) || is_tie(candidate.extra.saturating_add(1))
    }
}

/// Which bound of each of `candidates` binds, and what the others share. Their extras are final; `is_short` says that
/// there were more replicas than all could take.
pub(crate) fn find(candidates: &[Candidate], is_short: bool) -> (Vec<Binding>, Pool) {
    let edge = Edge::of(candidates);
    let (mut weight, mut replicas) = (0, 0);
    let bindings = candidates.iter().map(|candidate| {
        let binding = edge.binding(candidate, is_short);
        if binding == Binding::Neither {
            weight += u128::from(candidate.weight);
            replicas += candidate.extra;
        }
        binding
    });
    let bindings = bindings.collect();
    let tie = edge.tie;
    (
        bindings,
        Pool {
            weight,
            replicas,
            tie,
        },
    )
}

/// Where the granted quotients end and the free ones begin.
struct Edge {
    /// The lowest quotient that was granted, apart from those that only a lower bound explains.
    lowest_granted: Option<Quotient>,
    /// The highest quotient that is free below an upper bound.
    highest_free: Option<Quotient>,
    /// The quotient that some candidates were granted and others weren't, by their order.
    tie: Option<Quotient>,
}

impl Edge {
    fn of(candidates: &[Candidate]) -> Self {
        let lowest_chosen = candidates.iter().filter_map(Candidate::last_quotient).min();
        let highest_free = candidates.iter().filter_map(Candidate::next_quotient).max();
        // An extra that its lower bound explains and that its share would explain as well counts like any other.
        let at_lower = (candidates.iter())
            .filter(|candidate| candidate.extra > 0 && candidate.extra == candidate.lower)
            .map(|candidate| candidate.quotient(candidate.extra))
            .filter(|last| highest_free.is_none_or(|free| *last >= free));
        Self {
            lowest_granted: at_lower.chain(lowest_chosen).min(),
            highest_free,
            tie: lowest_chosen.filter(|chosen| highest_free == Some(*chosen)),
        }
    }

    fn binding(&self, candidate: &Candidate, is_short: bool) -> Binding {
        let &Candidate {
            extra,
            lower,
            upper,
            ..
        } = candidate;
        let next = candidate.quotient(extra.saturating_add(1));
        let last = candidate.quotient(extra);
        if extra == upper && (is_short || self.lowest_granted.is_some_and(|granted| next > granted))
        {
            Binding::Upper
        } else if extra == lower && extra > 0 && self.highest_free.is_some_and(|free| last < free) {
            Binding::Lower
        } else {
            Binding::Neither
        }
    }
}
