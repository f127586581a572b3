//! What a cluster would get if its capacity were another one.
//!
//! A layout fills the cheapest seats (see `seat`). With more room a cluster adds seats of its own to those on offer, and
//! all others stay what they are: it gets what was left over, and then the seats that are cheaper than the dearest ones
//! that were filled. So one layout answers for all clusters:
//!
//! ```text
//! filled seats, the dearest first:  9.0  8.5  8.5  7.0  6.5 ...
//! a full cluster's next ones:       5.0  6.0  7.0 8.0           takes three: 5.0 < 9.0, 6.0 < 8.5, 7.0 < 8.5, 8.0 > 7.0
//! ```

use std::collections::BinaryHeap;

use crate::{
    Cluster, Request,
    bounds::{Bounds, Candidate, ceiling, minimum},
    divide, has_small_numbers,
    number::{Number, Small},
    order::Order,
    seat::Seat,
};

/// Another capacity for one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The cluster's position in the request.
    pub cluster: usize,
    /// The most it could run; unlimited if `None`.
    pub capacity: Option<u64>,
}

/// The replicas that the cluster of each change would get if that alone were changed: what [`plan`](crate::plan) gives it
/// then. Takes about as long as one plan, as long as the changed clusters don't get many more replicas each than there
/// are clusters.
///
/// # Panics
///
/// If a change is about a position that the request doesn't have.
///
/// # Examples
///
/// ```
/// use federated_scheduler::{Change, Cluster, Preference, Request, what_if};
///
/// let even = Some(Preference { weight: 1, ..Preference::default() });
/// let cluster = |name, capacity| Cluster { name, preference: even, current: 0, capacity };
/// let clusters = [cluster("eu", None), cluster("us", Some(6)), cluster("asia", Some(8))];
/// let request = Request { key: "default/web", replicas: 50, rebalance: true, clusters: &clusters };
/// let with_room = [1, 2].map(|cluster| Change { cluster, capacity: None });
/// assert_eq!(what_if(&request, &with_room), [21, 22]);
/// ```
#[must_use]
pub fn what_if(request: &Request<'_>, changes: &[Change]) -> Vec<u64> {
    let mut places = vec![0; request.clusters.len()];
    let order = Order::of(request, &mut places);
    if has_small_numbers(request) {
        answers::<Small>(request, &order, changes)
    } else {
        answers::<u64>(request, &order, changes)
    }
}

fn answers<N: Number>(request: &Request<'_>, order: &Order<'_>, changes: &[Change]) -> Vec<u64> {
    let mut candidates = vec![Candidate::<N>::default(); request.clusters.len()];
    let mut bounds = Bounds::new(request, order, &mut candidates);
    let left = divide(&mut bounds);
    let mut ranks = vec![0; request.clusters.len()];
    for (rank, index) in order.iter().enumerate() {
        ranks[index] = rank;
    }
    let mut filled = Filled::of(&bounds);
    let mut answer = |change: &Change| {
        let cluster = &request.clusters[change.cluster];
        let most = ceiling(&change.apply_to(cluster));
        let rank = ranks[change.cluster];
        let candidate = &bounds.candidates[rank];
        if !only_makes_room(cluster, most, request.rebalance) {
            return None;
        }
        if rank >= bounds.weighted || bounds.shrinking {
            // Its bounds are what is present, for which there was room.
            return Some(candidate.replicas());
        }
        let upper = N::of((most - candidate.minimum.get()).min(request.replicas));
        let extra = filled.extra_up_to(upper, rank, left)?;
        Some(candidate.minimum.get() + extra.get())
    };
    let answer =
        |change| answer(change).unwrap_or_else(|| lay_out_anew::<N>(request, order, change));
    changes.iter().map(answer).collect()
}

/// Whether a ceiling of `most` changes nothing for `cluster` but that it could take more: neither its minimum nor what it
/// keeps.
fn only_makes_room(cluster: &Cluster<'_>, most: u64, rebalance: bool) -> bool {
    let ceiling = ceiling(cluster);
    let kept = if rebalance { 0 } else { cluster.current };
    most == ceiling || most > ceiling && minimum(cluster).max(kept) <= ceiling
}

/// Lays everything out with `change`.
fn lay_out_anew<N: Number>(request: &Request<'_>, order: &Order<'_>, change: &Change) -> u64 {
    let mut clusters = request.clusters.to_vec();
    clusters[change.cluster] = change.apply_to(&clusters[change.cluster]);
    let clusters = &clusters;
    let mut candidates = vec![Candidate::<N>::default(); clusters.len()];
    let mut bounds = Bounds::new(
        &Request {
            clusters,
            ..*request
        },
        order,
        &mut candidates,
    );
    divide(&mut bounds);
    let changed = candidates.iter().find(|it| it.index == change.cluster);
    changed.expect("each cluster is a candidate").replicas()
}

impl Change {
    fn apply_to<'a>(&self, cluster: &Cluster<'a>) -> Cluster<'a> {
        Cluster {
            capacity: self.capacity,
            ..*cluster
        }
    }
}

/// The seats that are filled by share, and by no lower bound; put in order as far as anybody asked.
struct Filled<'a, N: Number> {
    candidates: &'a [Candidate<N>],
    /// The dearest ones, the very dearest first.
    dearest: Vec<Seat<N>>,
    /// Of each candidate the last one that is not among those.
    others: BinaryHeap<Seat<N>>,
}

impl<'a, N: Number> Filled<'a, N> {
    fn of(bounds: &'a Bounds<'_, N>) -> Self {
        let candidates = &bounds.candidates[..bounds.weighted];
        let last = |(rank, candidate): (usize, &Candidate<N>)| {
            let price = candidate.last_filled()?;
            Some(Seat { price, rank })
        };
        Self {
            candidates,
            dearest: Vec::new(),
            others: candidates.iter().enumerate().filter_map(last).collect(),
        }
    }

    /// The extras of the candidate at `rank` with `upper` as its upper bound, not below the one it has, if `left` are left
    /// over without. `None` if it would take more steps than there are candidates to say.
    fn extra_up_to(&mut self, upper: N, rank: usize, left: N) -> Option<N> {
        let candidate = &self.candidates[rank];
        let mut extra = candidate.extra + left.min(upper - candidate.upper);
        for place in 0..=self.candidates.len() {
            // No seat of its own gets in the way: those it has are cheaper than its next one.
            let next = Seat {
                price: candidate.price(extra.next()),
                rank,
            };
            if extra == upper || self.get(place).is_none_or(|filled| filled < next) {
                return Some(extra);
            }
            extra = extra.next();
        }
        None
    }

    /// The seat with `place` dearer ones.
    fn get(&mut self, place: usize) -> Option<Seat<N>> {
        while self.dearest.len() <= place {
            let seat = self.others.pop()?;
            self.dearest.push(seat);
            let candidate = &self.candidates[seat.rank];
            let number = seat.price.number - N::ONE;
            if number > candidate.lower {
                let price = candidate.price(number);
                self.others.push(Seat { price, ..seat });
            }
        }
        Some(self.dearest[place])
    }
}
