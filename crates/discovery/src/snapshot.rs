//! What an EndpointSet resolves to, at one version.

use std::{net::IpAddr, sync::Arc};

use fedrs_api::ValidEndpointSet;

use crate::pod::Pod;

/// The endpoints of a set. Never changes; another version is another snapshot.
#[derive(Debug)]
pub struct EndpointSnapshot {
    /// Grows with each change, also over restarts: microseconds since 1970.
    pub version: u64,
    /// The endpoints, by cluster and name.
    pub endpoints: Arc<Vec<Endpoint>>,
    pub(crate) set: Arc<ValidEndpointSet>,
}

/// A pod that clients can reach, or see (D1). Its key is cluster and name: the networks of clusters may overlap.
#[derive(Clone, Debug, PartialEq)]
pub struct Endpoint {
    pub(crate) pod: Arc<Pod>,
    /// A word less than a slice: there may be a million endpoints.
    ports: Arc<Vec<EndpointPort>>,
}

/// A port of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndpointPort {
    /// The name by which clients know it.
    pub name: Arc<str>,
    /// The number.
    pub number: u16,
}

impl EndpointSnapshot {
    /// The endpoints that new requests may be sent to.
    pub fn ready(&self) -> impl Iterator<Item = &Endpoint> {
        self.endpoints.iter().filter(|one| one.is_ready(&self.set))
    }

    /// Whether the set may have endpoints in the cluster.
    #[must_use]
    pub fn concerns(&self, cluster: &str) -> bool {
        concerns(&self.set, cluster)
    }
}

/// Whether the set may have endpoints in the cluster.
pub(crate) fn concerns(set: &ValidEndpointSet, cluster: &str) -> bool {
    (set.clusters.as_ref()).is_none_or(|clusters| clusters.contains(cluster))
}

impl Endpoint {
    pub(crate) fn new(pod: &Arc<Pod>, ports: Arc<Vec<EndpointPort>>) -> Self {
        Self {
            pod: Arc::clone(pod),
            ports,
        }
    }

    /// The name of the pod, or of the Service whose load balancer it is.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.pod.name
    }

    /// The name of its cluster.
    #[must_use]
    pub fn cluster(&self) -> &str {
        &self.pod.cluster
    }

    /// The name of its node.
    #[must_use]
    pub fn node(&self) -> Option<&str> {
        self.pod.node.as_ref().map(|node| &*node.name)
    }

    /// The zone of its node.
    #[must_use]
    pub fn zone(&self) -> Option<&str> {
        self.pod.node.as_ref()?.zone.as_deref()
    }

    /// Its addresses, the IPv4 one first.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.pod.addresses()
    }

    /// Its ports, in the order of the set's.
    #[must_use]
    pub fn ports(&self) -> &[EndpointPort] {
        &self.ports
    }

    /// Whether it takes requests, or counts as if it did. Also while it is being removed, as `serving` of an EndpointSlice.
    #[must_use]
    pub fn is_serving(&self, snapshot: &EndpointSnapshot) -> bool {
        self.serves(&snapshot.set)
    }

    /// Whether new requests may be sent to it.
    pub(crate) fn is_ready(&self, set: &ValidEndpointSet) -> bool {
        self.serves(set) && !self.is_terminating()
    }

    pub(crate) fn serves(&self, set: &ValidEndpointSet) -> bool {
        self.pod.has_address() && (self.pod.is_ready || set.publish_not_ready)
    }

    /// Whether it is being removed.
    #[must_use]
    pub fn is_terminating(&self) -> bool {
        self.pod.is_terminating
    }
}
