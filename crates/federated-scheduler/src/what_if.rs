//! What a cluster would get with another capacity.

use crate::{order, plan::share_out, request::Request};

/// Another capacity for one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapacityOverride {
    /// The cluster's position in the request.
    pub cluster: usize,
    /// The most replicas it could run; unlimited if `None`.
    pub capacity: Option<u64>,
}

/// The replicas that the cluster of each override would get if that were the only one: what [`plan`](crate::plan) gives
/// it then.
///
/// # Panics
///
/// If an override names a position that the request doesn't have.
///
/// # Examples
///
/// ```
/// use federated_scheduler::{CapacityOverride, Cluster, Preference, Request, what_if};
///
/// let even = Some(Preference { weight: 1, ..Preference::default() });
/// let cluster = |name, capacity| Cluster { name, preference: even, current: 0, capacity };
/// let clusters = [cluster("eu", None), cluster("us", Some(6)), cluster("asia", Some(8))];
/// let request = Request { key: "default/web", replicas: 50, rebalance: true, clusters: &clusters };
/// let unlimited = [1, 2].map(|cluster| CapacityOverride { cluster, capacity: None });
/// assert_eq!(what_if(&request, &unlimited), [21, 22]);
/// ```
#[must_use]
pub fn what_if(request: &Request<'_>, overrides: &[CapacityOverride]) -> Vec<u64> {
    // Capacities don't change the order.
    let order = order::of(request);
    let mut clusters = request.clusters.to_vec();
    let replicas = |change: &CapacityOverride| {
        let index = change.cluster;
        let capacity = std::mem::replace(&mut clusters[index].capacity, change.capacity);
        let changed = Request {
            clusters: &clusters,
            ..*request
        };
        let (bounds, _) = share_out(&changed, &order);
        clusters[index].capacity = capacity;
        let mut candidates = bounds.candidates.iter();
        let candidate = candidates.find(|candidate| candidate.index == index);
        candidate.expect("each cluster is a candidate").replicas()
    };
    overrides.iter().map(replicas).collect()
}
