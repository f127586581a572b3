//! What each cluster gets before anything is shared out, and the bounds within which it shares in the rest.
//!
//! ```text
//! N -> minimums in order (F12) -> rest -> growing    each cluster keeps its current replicas: lower bounds (F13)
//!                                      -> shrinking  current replicas exceed the rest: upper bounds (F17)
//! ```

use crate::{
    candidate::Candidate,
    request::{Cluster, Request},
};

/// All candidates in the order of F11, and what is left for them.
pub(crate) struct Bounds {
    /// One for each cluster of the request.
    pub(crate) candidates: Vec<Candidate>,
    /// How many candidates have a weight: the first ones, by the order.
    pub(crate) weighted: usize,
    /// Replicas left after the minimums.
    pub(crate) rest: u64,
    /// Whether current replicas that `rebalance: false` keeps exceed the rest (F17).
    pub(crate) shrinking: bool,
}

impl Bounds {
    /// Grants the minimums and derives the bounds of the extras. `order` has the positions of all clusters.
    pub(crate) fn of(request: &Request<'_>, order: &[usize]) -> Self {
        let mut rest = request.replicas;
        let candidate = |&index: &usize| {
            let cluster = &request.clusters[index];
            let candidate = candidate(cluster, index, request, rest);
            rest -= candidate.minimum;
            candidate
        };
        let mut candidates: Vec<Candidate> = order.iter().map(candidate).collect();
        let kept: u128 = candidates
            .iter()
            .map(|candidate| u128::from(candidate.lower))
            .sum();
        let shrinking = kept > u128::from(rest);
        if shrinking {
            for candidate in &mut candidates {
                (candidate.lower, candidate.upper) = (0, candidate.lower);
            }
        }
        let has_weight = |&index: &usize| request.clusters[index].weight() > 0;
        Self {
            weighted: order.partition_point(has_weight),
            candidates,
            rest,
            shrinking,
        }
    }
}

/// The cluster at `index` with its minimum, as far as `left` replicas allow, and its bounds while growing.
fn candidate(cluster: &Cluster<'_>, index: usize, request: &Request<'_>, left: u64) -> Candidate {
    let ceiling = cluster.ceiling();
    let minimum = cluster.minimum().min(ceiling).min(left);
    let kept = if request.rebalance {
        0
    } else {
        cluster.current.min(ceiling)
    };
    let lower = kept.saturating_sub(minimum);
    let upper = match cluster.weight() {
        0 => lower,
        // No cluster can get more than all replicas.
        _ => (ceiling - minimum).min(request.replicas),
    };
    Candidate {
        index,
        weight: cluster.weight().max(1),
        minimum,
        lower,
        upper,
        extra: 0,
    }
}
