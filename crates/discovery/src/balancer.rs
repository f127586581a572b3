//! The load balancers of Services: the endpoints of a set where pods can't be reached from other clusters.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

use fedrs_api::ValidEndpointSet;
use serde::{Deserialize, Serialize};

use crate::{
    pod::{Pod, PortNames},
    resolve::ports_of,
    snapshot::Endpoint,
};

/// Where the load balancer of a Service is reached: one address at least.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LoadBalancer {
    pub(crate) v4: Option<Ipv4Addr>,
    pub(crate) v6: Option<Ipv6Addr>,
    /// The ports of the Service that have names.
    pub(crate) ports: PortNames,
}

impl LoadBalancer {
    /// It takes the place of all pods of its Service in the cluster.
    pub(crate) fn in_place_of_pods(&self, cluster: &Arc<str>, service: &str) -> Pod {
        Pod {
            name: service.into(),
            cluster: Arc::clone(cluster),
            node: None,
            labels: Arc::default(),
            ports: Arc::new(self.ports.clone()),
            v4: self.v4,
            v6: self.v6.map(Box::new),
            is_ready: false,
            is_terminating: false,
        }
    }
}

/// The load balancers of a set: one in each cluster at most.
#[derive(Debug)]
pub(crate) struct Balancers {
    /// By cluster.
    all: BTreeMap<Arc<str>, Pod>,
    endpoints: Arc<Vec<Endpoint>>,
}

impl Balancers {
    /// Those of a set without ready pods.
    pub(crate) fn new(set: &ValidEndpointSet, all: BTreeMap<Arc<str>, Pod>) -> Self {
        let endpoints = Arc::default();
        let mut new = Self { all, endpoints };
        new.refresh(set, &[]);
        new
    }

    /// Each is ready while a pod of its cluster is. Returns whether that changes an endpoint.
    pub(crate) fn refresh(&mut self, set: &ValidEndpointSet, pods: &[Endpoint]) -> bool {
        let ready = pods.iter().filter(|pod| pod.is_ready(set));
        let ready: BTreeSet<_> = ready.map(Endpoint::cluster).collect();
        let endpoints = self.all.values().filter_map(|balancer| {
            let balancer = Pod {
                is_ready: ready.contains(&*balancer.cluster),
                ..balancer.clone()
            };
            let ports = ports_of(set, &balancer)?;
            Some(Endpoint::new(&Arc::new(balancer), Arc::new(ports)))
        });
        let endpoints: Vec<_> = endpoints.collect();
        let has_changed = *self.endpoints != endpoints;
        if has_changed {
            self.endpoints = Arc::new(endpoints);
        }
        has_changed
    }

    /// The endpoints, by cluster.
    pub(crate) fn endpoints(&self) -> &Arc<Vec<Endpoint>> {
        &self.endpoints
    }

    /// All, also those that are no endpoint now.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Pod> {
        self.all.values()
    }
}
