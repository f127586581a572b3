//! Finds the reasons for each cluster's replicas (F19), from the final numbers alone.

use crate::{
    binding::{self, Binding, Pool},
    bounds::Bounds,
    candidate::Candidate,
    layout::{Layout, Share},
    reason::{Reason, Reasons, TakenBy},
    request::{Cluster, Request},
};

/// The layout of `bounds`, whose extras are final, with reasons. `unplaced` is what no cluster can take.
pub(crate) fn layout(request: &Request<'_>, bounds: &Bounds, unplaced: u64) -> Layout {
    let (bindings, pool) = binding::find(&bounds.candidates[..bounds.weighted], unplaced > 0);
    let explanation = Explanation {
        request,
        bounds,
        pool,
    };
    let mut ranks = vec![0; bounds.candidates.len()];
    for (rank, candidate) in bounds.candidates.iter().enumerate() {
        ranks[candidate.index] = rank;
    }
    let share = |rank: usize| {
        let candidate = &bounds.candidates[rank];
        Share {
            replicas: candidate.replicas(),
            rank,
            reasons: explanation.reasons(candidate, bindings.get(rank).copied()),
        }
    };
    let shares = ranks.into_iter().map(share).collect();
    Layout { shares, unplaced }
}

/// What the reasons follow from.
struct Explanation<'a> {
    request: &'a Request<'a>,
    bounds: &'a Bounds,
    /// What the candidates share that have a weight and are at no bound.
    pool: Pool,
}

impl Explanation<'_> {
    /// Why the cluster of `candidate` gets its replicas. `binding` is `None` if the cluster has no weight.
    fn reasons(&self, candidate: &Candidate, binding: Option<Binding>) -> Reasons {
        let cluster = &self.request.clusters[candidate.index];
        let minimum = cluster.minimum();
        let mut reasons = Reasons::default();
        if cluster.preference.is_none() {
            reasons.share = Some(Reason::NotSelected);
        } else if self.request.replicas == 0 {
            reasons.share = Some(Reason::ScaledToZero);
        } else if candidate.minimum < minimum && candidate.minimum < cluster.ceiling() {
            let granted = candidate.minimum;
            reasons.minimum = Some(Reason::BelowMinimum { granted, minimum });
        } else {
            reasons.minimum = (minimum > 0).then_some(Reason::AtMinimum { minimum });
            if candidate.minimum < minimum {
                reasons.share = Some(binding_ceiling(cluster));
            } else if self.bounds.rest == 0 {
                reasons.share = Some(no_replicas_left(TakenBy::Minimums));
            } else if self.bounds.shrinking {
                self.explain_shrinking(cluster, candidate, binding, &mut reasons);
            } else {
                self.explain_growing(cluster, candidate, binding, &mut reasons);
            }
        }
        reasons
    }

    /// Current replicas exceed what is left: clusters above their share are scaled down.
    fn explain_shrinking(
        &self,
        cluster: &Cluster<'_>,
        candidate: &Candidate,
        binding: Option<Binding>,
        reasons: &mut Reasons,
    ) {
        let (has_weight, current) = (binding.is_some(), cluster.current);
        let keeps_all = candidate.extra == candidate.upper;
        (reasons.current, reasons.share) = match (candidate.upper, has_weight) {
            (0, true) => (None, Some(no_replicas_left(TakenBy::KeptInPlace))),
            (0, false) => (None, Some(Reason::ZeroWeight)),
            (_, true) if keeps_all => (Some(Reason::WithinShare { current }), None),
            (_, false) if keeps_all => (Some(Reason::KeptInPlace { current }), None),
            (_, true) => {
                let share = Reason::ByWeight(self.pool.quota(candidate));
                (Some(Reason::AboveShare { current }), Some(share))
            }
            (_, false) => (Some(Reason::RemovedFirst { current }), None),
        };
    }

    /// What is left is shared out on top of current replicas.
    fn explain_growing(
        &self,
        cluster: &Cluster<'_>,
        candidate: &Candidate,
        binding: Option<Binding>,
        reasons: &mut Reasons,
    ) {
        let current = cluster.current;
        reasons.share = match binding {
            Some(Binding::Upper) => Some(binding_ceiling(cluster)),
            Some(Binding::Neither) if self.pool.replicas == 0 => {
                Some(no_replicas_left(TakenBy::KeptInPlace))
            }
            Some(Binding::Neither) => Some(Reason::ByWeight(self.pool.quota(candidate))),
            Some(Binding::Lower) | None => {
                let keeps = candidate.extra > 0;
                reasons.current = keeps.then_some(Reason::KeptInPlace { current });
                if !self.request.rebalance && candidate.replicas() < current {
                    Some(binding_ceiling(cluster))
                } else {
                    binding.is_none().then_some(Reason::ZeroWeight)
                }
            }
        };
    }
}

fn no_replicas_left(taken_by: TakenBy) -> Reason {
    Reason::NoReplicasLeft { taken_by }
}

/// Which of maximum and capacity binds. The maximum where both do: the user chose it.
fn binding_ceiling(cluster: &Cluster<'_>) -> Reason {
    let maximum = cluster.preference.and_then(|preference| preference.max);
    match (maximum, cluster.capacity) {
        (Some(maximum), Some(capacity)) if capacity < maximum => Reason::AtCapacity { capacity },
        (Some(maximum), _) => Reason::AtMaximum { maximum },
        (None, Some(capacity)) => Reason::AtCapacity { capacity },
        (None, None) => unreachable!("a cluster without maximum and capacity has no ceiling"),
    }
}
