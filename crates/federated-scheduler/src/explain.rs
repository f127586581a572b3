//! Says what decided each number (F19), from the finished numbers alone.
//!
//! A bound is given as the reason only where it binds: a cluster is *at its upper bound* if its next seat
//! is cheaper than a seat that was filled elsewhere, and *kept* at its lower bound if its last seat is
//! dearer than a free one elsewhere. All others share by weight what the bound ones leave.

use crate::{
    Cluster, Layout, Request, Share,
    bounds::{Bounds, Candidate, ceiling, minimum},
    quota::Quota,
    reason::Reason,
    reasons::Reasons,
    seat::Seat,
};

/// The layout of the finished `bounds`, with reasons. `ranks` is memory for a number of each cluster.
pub(crate) fn layout(request: &Request<'_>, bounds: &Bounds<'_>, ranks: &mut [u64]) -> Layout {
    let given = |candidate: &Candidate| candidate.minimum + candidate.extra;
    let unplaced = request.replicas - bounds.candidates.iter().map(given).sum::<u64>();
    let (weighted, unweighted) = bounds.candidates.split_at(bounds.weighted);
    let tiers = [
        Tier::new(request, bounds, weighted, true, unplaced > 0),
        Tier::new(request, bounds, unweighted, false, unplaced > 0),
    ];
    // Shares are large and written once, in the request's order; finding their ranks first is cheaper.
    for (candidate, rank) in bounds.candidates.iter().zip(0..) {
        ranks[candidate.index] = rank;
    }
    let share = |&mut rank: &mut u64| {
        let rank = rank as usize;
        let candidate = &bounds.candidates[rank];
        let tier = &tiers[usize::from(rank >= bounds.weighted)];
        Share {
            replicas: given(candidate),
            rank,
            reasons: tier.reasons(candidate),
        }
    };
    let shares = ranks.iter_mut().map(share).collect();
    Layout { shares, unplaced }
}

/// Candidates that share with each other: those with a weight, or those without.
struct Tier<'a> {
    request: &'a Request<'a>,
    bounds: &'a Bounds<'a>,
    weighted: bool,
    /// More was to be had than all could take: every upper bound binds.
    unplaced: bool,
    /// The dearest seat that was filled, apart from those that lower bounds fill.
    dearest_filled: Option<Seat>,
    /// The cheapest free seat below the upper bounds.
    cheapest_free: Option<Seat>,
    /// A seat of the price at which some were filled and others weren't, by the order alone.
    tie: Option<Seat>,
    /// The weight and the extras of the candidates that share by weight.
    free_weight: u128,
    free_replicas: u64,
}

/// How a candidate's extras came about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    AtUpper,
    AtLower,
    Free,
}

impl<'a> Tier<'a> {
    fn new(
        request: &'a Request<'a>,
        bounds: &'a Bounds<'a>,
        candidates: &[Candidate],
        weighted: bool,
        unplaced: bool,
    ) -> Self {
        let mut tier = Self {
            request,
            bounds,
            weighted,
            unplaced,
            dearest_filled: None,
            cheapest_free: None,
            tie: None,
            free_weight: 0,
            free_replicas: 0,
        };
        if !weighted && !bounds.shrinking {
            // Without a weight nothing is shared: all that can be said is in the candidate.
            return tier;
        }
        // The rank only tells seats apart here, and which of equal prices came first was decided before.
        for candidate in candidates {
            tier.dearest_filled = tier.dearest_filled.max(Seat::last_filled(candidate, 0));
            if let Some(seat) = Seat::first_free(candidate, 0) {
                tier.cheapest_free = Some(
                    tier.cheapest_free
                        .map_or(seat, |cheapest| cheapest.min(seat)),
                );
            }
        }
        tier.tie = tier.dearest_filled.filter(|filled| {
            tier.cheapest_free
                .is_some_and(|free| filled.cmp_price(&free).is_eq())
        });
        for candidate in candidates {
            if tier.standing(candidate) == Standing::Free {
                tier.free_weight += u128::from(candidate.weight);
                tier.free_replicas += candidate.extra;
            }
        }
        tier
    }

    fn standing(&self, candidate: &Candidate) -> Standing {
        let &Candidate {
            extra,
            lower,
            upper,
            ..
        } = candidate;
        let next = || Seat::new(candidate, extra.saturating_add(1), 0);
        let last = || Seat::new(candidate, extra, 0);
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

    fn reasons(&self, candidate: &Candidate) -> Reasons {
        let cluster = &self.request.clusters[candidate.index];
        let mut reasons = Reasons::new();
        if cluster.preference.is_none() {
            reasons.push(Reason::NoPreference);
            return reasons;
        }
        if self.request.replicas == 0 {
            reasons.push(Reason::NoReplicas);
            return reasons;
        }
        if explain_minimum(cluster, candidate, &mut reasons) {
            return reasons;
        }
        if self.bounds.rest == 0 {
            reasons.push(Reason::NothingLeft);
        } else if self.bounds.shrinking {
            self.explain_shrinking(cluster, candidate, &mut reasons);
        } else {
            self.explain_growing(cluster, candidate, &mut reasons);
        }
        reasons
    }

    fn explain_shrinking(
        &self,
        cluster: &Cluster<'_>,
        candidate: &Candidate,
        reasons: &mut Reasons,
    ) {
        let present = cluster.current;
        let all_kept = candidate.extra == candidate.upper;
        let decisive = match (self.weighted, candidate.upper) {
            (true, 1..) if all_kept => Reason::NotAboveShare { present },
            (true, 1..) => {
                reasons.push(Reason::GivesUp { present });
                Reason::ByWeight(self.quota(candidate))
            }
            (true, 0) => Reason::OthersKeep,
            (false, 1..) if !all_kept => Reason::WeightZeroGivesUp { present },
            (false, 1..) => Reason::Kept { present },
            (false, 0) => Reason::WeightZero,
        };
        reasons.push(decisive);
    }

    fn explain_growing(&self, cluster: &Cluster<'_>, candidate: &Candidate, reasons: &mut Reasons) {
        let standing = if self.weighted {
            self.standing(candidate)
        } else {
            Standing::AtLower
        };
        match standing {
            Standing::AtUpper => reasons.push(binding_ceiling(cluster)),
            Standing::AtLower => {
                if candidate.extra > 0 {
                    reasons.push(Reason::Kept {
                        present: cluster.current,
                    });
                }
                if !self.request.rebalance && candidate.minimum + candidate.extra < cluster.current
                {
                    reasons.push(binding_ceiling(cluster));
                } else if !self.weighted {
                    reasons.push(Reason::WeightZero);
                }
            }
            Standing::Free if self.free_replicas == 0 => reasons.push(Reason::OthersKeep),
            Standing::Free => reasons.push(Reason::ByWeight(self.quota(candidate))),
        }
    }

    fn quota(&self, candidate: &Candidate) -> Quota {
        let tied = || {
            self.tie.is_some_and(|tie| {
                let is_tied = |number| Seat::new(candidate, number, 0).cmp_price(&tie).is_eq();
                candidate.extra > 0 && is_tied(candidate.extra)
                    || is_tied(candidate.extra.saturating_add(1))
            })
        };
        Quota::new(
            candidate.weight,
            self.free_weight,
            self.free_replicas,
            candidate.extra,
            tied,
        )
    }
}

/// Explains the candidate's minimum, if it has one. Returns whether that is all: it didn't get its minimum.
fn explain_minimum(cluster: &Cluster<'_>, candidate: &Candidate, reasons: &mut Reasons) -> bool {
    let (minimum, given) = (minimum(cluster), candidate.minimum);
    if given == minimum {
        if minimum > 0 {
            reasons.push(Reason::Minimum { minimum });
        }
        return false;
    }
    if given == ceiling(cluster) {
        reasons.push(Reason::Minimum { minimum });
        reasons.push(binding_ceiling(cluster));
    } else {
        reasons.push(Reason::PartOfMinimum { given, minimum });
    }
    true
}

/// Which of maximum and capacity binds. The maximum where both do: the user chose it.
fn binding_ceiling(cluster: &Cluster<'_>) -> Reason {
    let maximum = cluster.preference.and_then(|preference| preference.max);
    match (maximum, cluster.capacity) {
        (Some(maximum), Some(capacity)) if capacity < maximum => Reason::AtCapacity { capacity },
        (Some(maximum), _) => Reason::AtMaximum { maximum },
        (None, Some(capacity)) => Reason::AtCapacity { capacity },
        (None, None) => {
            unreachable!("a cluster without maximum and capacity has no ceiling to be at")
        }
    }
}
