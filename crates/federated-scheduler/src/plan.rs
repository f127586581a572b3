//! From a request to its layout, step by step.

use crate::{bounds::Bounds, divisor, explain, layout::Layout, order, request::Request};

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
    let (bounds, unplaced) = share_out(request, &order::of(request));
    explain::layout(request, &bounds, unplaced)
}

/// The final numbers of all clusters in `order`, and what no cluster can take (F18).
pub(crate) fn share_out(request: &Request<'_>, order: &[usize]) -> (Bounds, u64) {
    let mut bounds = Bounds::of(request, order);
    let (weighted, unweighted) = bounds.candidates.split_at_mut(bounds.weighted);
    let unplaced = if bounds.shrinking {
        // A weight of 0 is a share of 0: these clusters are the furthest above it, and the first to be scaled down (F17).
        let left = divisor::share_out(weighted, bounds.rest);
        divisor::share_out(unweighted, left)
    } else {
        let mut left = bounds.rest;
        for candidate in unweighted {
            candidate.extra = candidate.lower;
            left -= candidate.extra;
        }
        divisor::share_out(weighted, left)
    };
    (bounds, unplaced)
}
