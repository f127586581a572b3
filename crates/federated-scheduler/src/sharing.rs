//! How the clusters with a weight share: which of them are at a bound, and what the others share by weight.
//!
//! A bound is given as the reason only where it binds: a cluster is *at its upper bound* if its next seat
//! is cheaper than a seat that was filled elsewhere, and *kept* at its lower bound if its last seat is
//! dearer than a free one elsewhere. All others share by weight what the bound ones leave.

use crate::{bounds::Candidate, number::Number, quota::Pool, seat::Price};

/// How a candidate's extras came about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Standing {
    AtUpper,
    AtLower,
    #[default]
    Free,
}

/// Finds the standing of each of `candidates`, whose extras are finished, and what those at no bound share. `unplaced`
/// says that more was to be had than all could take.
pub(crate) fn settle<N: Number>(candidates: &mut [Candidate<N>], unplaced: bool) -> Pool<N> {
    let edge = Edge::of(candidates);
    let (mut weight, mut replicas) = (N::Sum::default(), N::default());
    for candidate in candidates {
        candidate.standing = edge.standing(candidate, unplaced);
        if candidate.standing == Standing::Free {
            weight += candidate.weight.wide();
            replicas = replicas + candidate.extra;
        }
    }
    Pool {
        weight,
        replicas,
        tie: edge.tie,
    }
}

/// Where the filled seats end and the free ones begin.
struct Edge<N> {
    /// The dearest seat that was filled, apart from those of candidates kept at their lower bounds.
    dearest_filled: Option<Price<N>>,
    /// The cheapest free seat below the upper bounds.
    cheapest_free: Option<Price<N>>,
    /// The price at which some of the last seats were filled and others weren't, by order.
    tie: Option<Price<N>>,
}

impl<N: Number> Edge<N> {
    fn of(candidates: &[Candidate<N>]) -> Self {
        let mut dearest_chosen = None::<Price<N>>;
        let mut cheapest_free = None::<Price<N>>;
        for candidate in candidates {
            if let Some(price) = candidate.last_filled()
                && dearest_chosen.is_none_or(|dearest| price > dearest)
            {
                dearest_chosen = Some(price);
            }
            if let Some(price) = candidate.first_free()
                && cheapest_free.is_none_or(|cheapest| price < cheapest)
            {
                cheapest_free = Some(price);
            }
        }
        // A seat that its lower bound fills and that its share would fill as well counts as any other.
        let mut dearest_filled = dearest_chosen;
        for candidate in candidates
            .iter()
            .filter(|it| it.extra > N::default() && it.extra == it.lower)
        {
            let last = candidate.price(candidate.extra);
            let is_kept = cheapest_free.is_some_and(|free| last > free);
            if !is_kept && dearest_filled.is_none_or(|dearest| last > dearest) {
                dearest_filled = Some(last);
            }
        }
        Self {
            dearest_filled,
            cheapest_free,
            tie: dearest_chosen.filter(|filled| cheapest_free == Some(*filled)),
        }
    }

    #[inline]
    fn standing(&self, candidate: &Candidate<N>, unplaced: bool) -> Standing {
        let &Candidate {
            extra,
            lower,
            upper,
            ..
        } = candidate;
        let next = || candidate.price(extra.next());
        let last = || candidate.price(extra);
        if extra == upper && (unplaced || self.dearest_filled.is_some_and(|filled| next() < filled))
        {
            Standing::AtUpper
        } else if extra == lower
            && extra > N::default()
            && self.cheapest_free.is_some_and(|free| last() > free)
        {
            Standing::AtLower
        } else {
            Standing::Free
        }
    }
}
