//! What each cluster gets before anything is shared out, and the bounds within which it shares in the rest.
//!
//! ```text
//! N -> minimums in order (F12) -> rest -> growing   each keeps what is present: lower bounds (F13)
//!                                      -> shrinking present is more than the rest: upper bounds (F17)
//! ```

use crate::{
    Cluster, Request,
    number::Number,
    order::{Order, weight},
    sharing::Standing,
};

/// A cluster on its way to a share. Its place in the slice is its rank in the order of F11.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Candidate<N> {
    /// The cluster's position in the request.
    pub(crate) index: usize,
    /// Its weight, 1 where that is 0: clusters without weight are only ever compared with each other.
    pub(crate) weight: N,
    /// Replicas given as its minimum (F12). Extras come on top.
    pub(crate) minimum: N,
    /// The fewest extras.
    pub(crate) lower: N,
    /// The most extras.
    pub(crate) upper: N,
    /// Extras given.
    pub(crate) extra: N,
    /// How they came about.
    pub(crate) standing: Standing,
}

impl<N: Number> Candidate<N> {
    /// Replicas given, once its extras are finished.
    pub(crate) fn replicas(&self) -> u64 {
        self.minimum.get() + self.extra.get()
    }
}

/// All candidates in the order of F11, and what is left for them.
pub(crate) struct Bounds<'a, N> {
    /// One for each cluster of the request.
    pub(crate) candidates: &'a mut [Candidate<N>],
    /// How many candidates have a weight: the first ones, by the order.
    pub(crate) weighted: usize,
    /// Replicas left after the minimums.
    pub(crate) rest: N,
    /// Whether less is left than is present and would be kept (F17).
    pub(crate) shrinking: bool,
}

impl<'a, N: Number> Bounds<'a, N> {
    /// Gives the minimums and derives the bounds of the extras, in the memory of `candidates`: one for each cluster.
    #[expect(
        clippy::inline_always,
        reason = "a call copies the answer: a plan over three clusters takes a tenth longer"
    )]
    #[inline(always)]
    pub(crate) fn new(
        request: &Request<'_>,
        order: &Order<'_>,
        candidates: &'a mut [Candidate<N>],
    ) -> Self {
        let mut rest = request.replicas;
        let mut present = N::Sum::default();
        let mut weighted = 0;
        for (candidate, index) in candidates.iter_mut().zip(order.iter()) {
            let cluster = &request.clusters[index];
            let ceiling = ceiling(cluster);
            let minimum = minimum(cluster).min(ceiling).min(rest);
            rest -= minimum;
            let kept = if request.rebalance {
                0
            } else {
                cluster.current.min(ceiling)
            };
            let lower = N::of(kept.saturating_sub(minimum));
            present += lower.wide();
            let weight = weight(cluster);
            weighted += usize::from(weight > 0);
            // Nobody can get more than everything.
            let upper = (ceiling - minimum).min(request.replicas);
            *candidate = Candidate {
                index,
                weight: N::of(weight.max(1)),
                minimum: N::of(minimum),
                lower,
                upper: if weight > 0 { N::of(upper) } else { lower },
                extra: N::default(),
                standing: Standing::Free,
            };
        }
        let rest = N::of(rest);
        let shrinking = present > rest.wide();
        if shrinking {
            for candidate in &mut *candidates {
                (candidate.lower, candidate.upper) = (N::default(), candidate.lower);
            }
        }
        Self {
            candidates,
            weighted,
            rest,
            shrinking,
        }
    }
}

/// The most replicas the cluster may have: its maximum or its capacity, whichever is less. 0 without preferences (F3).
pub(crate) fn ceiling(cluster: &Cluster<'_>) -> u64 {
    let Some(preference) = cluster.preference else {
        return 0;
    };
    preference
        .max
        .unwrap_or(u64::MAX)
        .min(cluster.capacity.unwrap_or(u64::MAX))
}

/// The minimum the cluster's preferences ask for.
pub(crate) fn minimum(cluster: &Cluster<'_>) -> u64 {
    cluster.preference.map_or(0, |preference| preference.min)
}
