//! Says what decided each number (F19), from the finished numbers alone.

use crate::{
    Cluster, Layout, Request, Share,
    bounds::{Bounds, Candidate, ceiling, minimum},
    number::Number,
    quota::{Pool, Quota},
    reason::Reason,
    reasons::Reasons,
    sharing::{self, Standing},
};

/// The layout of the finished `bounds`, with reasons. `unplaced` is what no cluster can take.
pub(crate) fn layout<N: Number>(
    request: &Request<'_>,
    bounds: &mut Bounds<'_, N>,
    unplaced: u64,
) -> Layout {
    let pool = sharing::settle(&mut bounds.candidates[..bounds.weighted], unplaced > 0);
    let explanation = Explanation {
        request,
        bounds,
        pool: &pool,
    };
    // Each share is written where it stays: to move it there in one piece, the processor would have to wait for all of
    // its small parts.
    let unwritten = Share {
        replicas: 0,
        rank: 0,
        reasons: Reasons::new(),
    };
    let mut shares = vec![unwritten; bounds.candidates.len()];
    for (rank, candidate) in bounds.candidates.iter().enumerate() {
        let cluster = &request.clusters[candidate.index];
        let share = &mut shares[candidate.index];
        share.replicas = candidate.replicas();
        share.rank = rank;
        explanation.explain(
            cluster,
            candidate,
            rank < bounds.weighted,
            &mut share.reasons,
        );
    }
    Layout { shares, unplaced }
}

/// What the numbers are explained by.
struct Explanation<'a, N: Number> {
    request: &'a Request<'a>,
    bounds: &'a Bounds<'a, N>,
    /// What those share that have a weight and are at no bound.
    pool: &'a Pool<N>,
}

impl<N: Number> Explanation<'_, N> {
    /// Gives the `reasons` why `cluster` has the numbers of `candidate`. `weighted` says if it has a weight.
    #[inline]
    fn explain(
        &self,
        cluster: &Cluster<'_>,
        candidate: &Candidate<N>,
        weighted: bool,
        reasons: &mut Reasons,
    ) {
        if cluster.preference.is_none() {
            reasons.push(Reason::NoPreference);
        } else if self.request.replicas == 0 {
            reasons.push(Reason::NoReplicas);
        } else if !explain_minimum(cluster, candidate, reasons) {
            if self.bounds.rest == N::default() {
                reasons.push(Reason::NothingLeft);
            } else if self.bounds.shrinking {
                self.explain_shrinking(cluster, candidate, weighted, reasons);
            } else if weighted {
                self.explain_growing(cluster, candidate, reasons);
            } else {
                self.explain_kept(cluster, candidate, false, reasons);
            }
        }
    }

    fn explain_shrinking(
        &self,
        cluster: &Cluster<'_>,
        candidate: &Candidate<N>,
        weighted: bool,
        reasons: &mut Reasons,
    ) {
        let present = cluster.current;
        let all_kept = candidate.extra == candidate.upper;
        let decisive = match (weighted, candidate.upper.get()) {
            (true, 1..) if all_kept => Reason::NotAboveShare { present },
            (true, 1..) => {
                reasons.push(Reason::GivesUp { present });
                Reason::ByWeight(Quota::of(candidate, self.pool))
            }
            (true, 0) => Reason::OthersKeep,
            (false, 1..) if !all_kept => Reason::WeightZeroGivesUp { present },
            (false, 1..) => Reason::Kept { present },
            (false, 0) => Reason::WeightZero,
        };
        reasons.push(decisive);
    }

    #[inline]
    fn explain_growing(
        &self,
        cluster: &Cluster<'_>,
        candidate: &Candidate<N>,
        reasons: &mut Reasons,
    ) {
        match candidate.standing {
            Standing::Free if self.pool.replicas == N::default() => {
                reasons.push(Reason::OthersKeep);
            }
            Standing::Free => reasons.push(Reason::ByWeight(Quota::of(candidate, self.pool))),
            Standing::AtUpper => reasons.push(binding_ceiling(cluster)),
            Standing::AtLower => self.explain_kept(cluster, candidate, true, reasons),
        }
    }

    /// Explains a cluster that shares in nothing: it has what is kept there.
    fn explain_kept(
        &self,
        cluster: &Cluster<'_>,
        candidate: &Candidate<N>,
        weighted: bool,
        reasons: &mut Reasons,
    ) {
        let present = cluster.current;
        if candidate.extra > N::default() {
            reasons.push(Reason::Kept { present });
        }
        if !self.request.rebalance && candidate.replicas() < present {
            reasons.push(binding_ceiling(cluster));
        } else if !weighted {
            reasons.push(Reason::WeightZero);
        }
    }
}

/// Explains the candidate's minimum, if it has one. Returns whether that is all: it didn't get its minimum.
fn explain_minimum<N: Number>(
    cluster: &Cluster<'_>,
    candidate: &Candidate<N>,
    reasons: &mut Reasons,
) -> bool {
    let (minimum, given) = (minimum(cluster), candidate.minimum.get());
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
