//! How the clusters with a weight share: which of them are at a bound, and what the others share by weight.
//!
//! A bound is given as the reason only where it binds: a cluster is *at its upper bound* if its next seat
//! is cheaper than a seat that was filled elsewhere, and *kept* at its lower bound if its last seat is
//! dearer than a free one elsewhere. All others share by weight what the bound ones leave.

use crate::{
    bounds::Candidate,
    quota::{Pool, Quota},
    seat::Price,
};

/// What the finished numbers of all clusters with a weight say about each of them.
pub(crate) struct Sharing {
    /// More was to be had than all could take: every upper bound binds.
    unplaced: bool,
    /// The dearest seat that was filled, apart from those of candidates kept at their lower bounds.
    dearest_filled: Option<Price>,
    /// The cheapest free seat below the upper bounds.
    cheapest_free: Option<Price>,
    /// What those at no bound share.
    pool: Pool,
}

/// How a candidate's extras came about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    AtUpper,
    AtLower,
    Free,
}

impl Sharing {
    /// How `candidates` share. `unplaced` says that they can't take everything.
    pub(crate) fn of(candidates: &[Candidate], unplaced: bool) -> Self {
        // Of the seats that no lower bound fills.
        let mut dearest_chosen = None::<Price>;
        let mut cheapest_free = None::<Price>;
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
        let mut sharing = Self {
            unplaced,
            dearest_filled: dearest_chosen,
            cheapest_free,
            pool: Pool {
                weight: 0,
                replicas: 0,
                tie: dearest_chosen.filter(|filled| cheapest_free == Some(*filled)),
            },
        };
        // A seat that its lower bound fills and that its share would fill as well counts as any other.
        for candidate in candidates
            .iter()
            .filter(|it| it.extra > 0 && it.extra == it.lower)
        {
            let last = candidate.price(candidate.extra);
            let is_kept = cheapest_free.is_some_and(|free| last > free);
            if !is_kept && sharing.dearest_filled.is_none_or(|dearest| last > dearest) {
                sharing.dearest_filled = Some(last);
            }
        }
        for candidate in candidates {
            if sharing.standing(candidate) == Standing::Free {
                sharing.pool.weight += u128::from(candidate.weight);
                sharing.pool.replicas += candidate.extra;
            }
        }
        sharing
    }

    #[inline]
    pub(crate) fn standing(&self, candidate: &Candidate) -> Standing {
        let &Candidate {
            extra,
            lower,
            upper,
            ..
        } = candidate;
        let next = || candidate.price(extra.saturating_add(1));
        let last = || candidate.price(extra);
        if extra == upper
            && (self.unplaced || self.dearest_filled.is_some_and(|filled| next() < filled))
        {
            Standing::AtUpper
        } else if extra == lower
            && extra > 0
            && self.cheapest_free.is_some_and(|free| last() > free)
        {
            Standing::AtLower
        } else {
            Standing::Free
        }
    }

    /// Whether those at no bound share anything.
    pub(crate) fn shares_any(&self) -> bool {
        self.pool.replicas > 0
    }

    /// The quota of a candidate that shares by weight.
    #[inline]
    pub(crate) fn quota(&self, candidate: &Candidate) -> Quota {
        let rounding = self.pool.rounding(candidate.weight, candidate.extra);
        Quota::new(candidate.weight, &self.pool, rounding)
    }
}
