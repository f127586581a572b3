//! Decides how many replicas each cluster gets, and why (rules F10 to F19). Pure: no clock, no IO.
//!
//! ```text
//! Request -> order    clusters by weight, then by a hash of key and name (F11)
//!         -> bounds   minimums in that order (F12); what is present, max and capacity as bounds (F13)
//!         -> divisor  the rest by weight within the bounds: Webster's method (F14, F16, F17)
//!         -> explain  which bound or preference decided each number (F19)
//!         -> Layout   a share for each cluster, and what no cluster can take (F18)
//! ```
//!
//! # Why not round-up passes
//!
//! The predecessors go through the clusters and give each its share of what is left, rounded up, until
//! nothing is left. Rounding up starves whoever comes last: 4 replicas over 3 equal clusters become
//! ⌈4/3⌉ = 2, then ⌈4/3⌉ = 2, then nothing: **2/2/0**, although 2/1/1 is possible; 11 over 10 leave four
//! clusters empty. It isn't monotone either: with 3 replicas each cluster has one (1/1/1), so that the
//! fourth replica takes one away from the last cluster. A scale-up must never stop a running pod.
//!
//! A divisor method hands out replicas one at a time, each to the cluster with the best claim to one
//! more. Handing out one more never changes what was handed out before, so N + 1 replicas are the layout
//! of N and one replica (house monotone, F16), for any bounds. Webster's divisors (1, 3, 5, ...) favour
//! neither heavy nor light clusters: 4 over 3 are 2/1/1, 11 over 10 are one each and one more.
//!
//! # What it does not do
//!
//! It doesn't know pods, time or Kubernetes, and doesn't move anything: the controller compares the
//! layout with what runs and decides on the steps.

mod bounds;
mod divisor;
mod explain;
mod lookup;
mod number;
mod order;
mod quota;
mod reason;
mod reasons;
mod seat;
mod sharing;
mod what_if;

use bounds::{Bounds, Candidate};
pub use lookup::Lookup;
use number::{Number, Small};
use order::Order;
pub use quota::{Quota, Rounding};
pub use reason::Reason;
pub use reasons::Reasons;
pub use what_if::{Change, what_if};

/// Clusters up to which all working memory is on the stack. Most federations have fewer.
const FEW_CLUSTERS: usize = 8;

/// What is to be laid out.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Names the set (`namespace/name`): ties between clusters fall differently for different keys (F11).
    pub key: &'a str,
    /// Replicas wanted over all clusters, N.
    pub replicas: u64,
    /// Whether replicas that are present may be moved to bring clusters to their shares (F13).
    pub rebalance: bool,
    /// The clusters that can be used, in any order, each name once.
    pub clusters: &'a [Cluster<'a>],
}

/// One cluster as the scheduler sees it.
#[derive(Clone, Copy, Debug)]
pub struct Cluster<'a> {
    /// The cluster's name.
    pub name: &'a str,
    /// Its preferences; without any it gets nothing (F3).
    pub preference: Option<Preference>,
    /// Replicas present (F13). Used where `rebalance` is false.
    pub current: u64,
    /// The most it has shown it can run (F10); unlimited if `None`.
    pub capacity: Option<u64>,
}

/// Preferences for one cluster (F2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preference {
    /// Replicas given before any are shared out by weight.
    pub min: u64,
    /// The most replicas; no limit if `None`. Binds where it is below `min`.
    pub max: Option<u64>,
    /// Part of the replicas shared out, relative to the other weights.
    pub weight: u64,
}

/// How many replicas each cluster gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// One share for each cluster of the request, in the request's order.
    pub shares: Vec<Share>,
    /// Replicas that no cluster can take (F18).
    pub unplaced: u64,
}

/// What one cluster gets, and why (F19).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Replicas for this cluster.
    pub replicas: u64,
    /// The cluster's place in the order of F11, from 0: the lower, the earlier it is served.
    pub rank: usize,
    /// What decided the number, in the order of the decisions. Never empty.
    pub reasons: Reasons,
}

/// Lays out `request` (F10 to F19). Takes O(C log C) time for C clusters, whatever the number of replicas.
///
/// # Examples
///
/// ```
/// use federated_scheduler::{Cluster, Preference, Request, plan};
///
/// let even = Some(Preference { weight: 1, ..Preference::default() });
/// let clusters = ["eu", "us", "asia"].map(|name| Cluster { name, preference: even, current: 0, capacity: None });
/// let layout = plan(&Request { key: "default/web", replicas: 4, rebalance: true, clusters: &clusters });
///
/// let mut replicas: Vec<u64> = layout.shares.iter().map(|share| share.replicas).collect();
/// replicas.sort_unstable();
/// assert_eq!(replicas, [1, 1, 2]);
/// println!("{}", layout.shares[0].reasons);
/// ```
#[must_use]
pub fn plan(request: &Request<'_>) -> Layout {
    let count = request.clusters.len();
    if count <= FEW_CLUSTERS {
        plan_in(request, &mut [0; FEW_CLUSTERS][..count])
    } else {
        plan_in(request, &mut vec![0; count])
    }
}

/// Lays out `request` in the memory given: a place for each cluster.
fn plan_in(request: &Request<'_>, places: &mut [u64]) -> Layout {
    let order = Order::of(request, places);
    if has_small_numbers(request) {
        lay_out::<Small>(request, &order)
    } else {
        lay_out::<u64>(request, &order)
    }
}

/// Whether all numbers are small from which shares are computed. Minimums and limits don't count: those that are not small
/// are cut down to the number of replicas.
fn has_small_numbers(request: &Request<'_>) -> bool {
    let bits = request.clusters.iter().fold(request.replicas, |bits, it| {
        let kept = if request.rebalance { 0 } else { it.current };
        bits | order::weight(it) | kept
    });
    Small::has_room_for(bits)
}

/// Lays out `request` in `order`.
fn lay_out<N: Number>(request: &Request<'_>, order: &Order<'_>) -> Layout {
    let count = request.clusters.len();
    if count <= FEW_CLUSTERS {
        let mut candidates = [Candidate::<N>::default(); FEW_CLUSTERS];
        lay_out_in(request, order, &mut candidates[..count])
    } else {
        lay_out_in(request, order, &mut vec![Candidate::<N>::default(); count])
    }
}

/// Lays out `request` in `order`, in the memory of `candidates`: one for each cluster.
fn lay_out_in<N: Number>(
    request: &Request<'_>,
    order: &Order<'_>,
    candidates: &mut [Candidate<N>],
) -> Layout {
    let mut bounds = Bounds::new(request, order, candidates);
    let unplaced = divide(&mut bounds);
    explain::layout(request, &mut bounds, unplaced.get())
}

/// Shares out what the minimums leave (F14, F17): sets the candidates' extras. Returns what no cluster can take (F18).
fn divide<N: Number>(bounds: &mut Bounds<'_, N>) -> N {
    let (weighted, unweighted) = bounds.candidates.split_at_mut(bounds.weighted);
    if bounds.shrinking {
        // Weight 0 means a share of 0: these are the furthest above it, so they give up theirs first (F17).
        let left = divisor::share_out(weighted, bounds.rest);
        divisor::share_out(unweighted, left)
    } else {
        let mut left = bounds.rest;
        for candidate in unweighted {
            candidate.extra = candidate.lower;
            left = left - candidate.extra;
        }
        divisor::share_out(weighted, left)
    }
}
