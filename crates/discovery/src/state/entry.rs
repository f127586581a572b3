//! A set, with what selects its pods, and its endpoints.

use std::{cmp::Ordering, collections::BTreeSet, sync::Arc};

use fedrs_api::{EndpointSetSpec, FieldError, ValidEndpointSet};

use crate::{
    balancer::Balancers,
    pod::Pod,
    resolve::{is_included, ports_of},
    set::Selectors,
    snapshot::{Endpoint, EndpointPort},
    source::Source,
};

/// An EndpointSet, and its endpoints.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The set, or what is wrong with it.
    pub(crate) set: Result<Arc<ValidEndpointSet>, Vec<FieldError>>,
    pub(super) spec: Arc<EndpointSetSpec>,
    /// What its pods match; nothing if the set is invalid, or its source does not exist.
    pub(super) selectors: Selectors,
    /// What its source is, if it is a federated set.
    federated: Option<Arc<Source>>,
    /// Clusters in which endpoints end if they are lost.
    pub(super) ended: Arc<BTreeSet<Arc<str>>>,
    /// By cluster and name of the pod. What is published of them is the same vector, until they change.
    endpoints: Arc<Vec<Endpoint>>,
    /// Its load balancers, if they are the endpoints that answers have, and not the pods.
    balancers: Option<Balancers>,
    /// The ports of an endpoint that has been added: most have the same.
    ports: Arc<Vec<EndpointPort>>,
}

impl Entry {
    /// A set without endpoints.
    pub(super) fn new(
        set: Result<Arc<ValidEndpointSet>, Vec<FieldError>>,
        spec: Arc<EndpointSetSpec>,
        selectors: Selectors,
        balancers: Option<Balancers>,
        federated: Option<Arc<Source>>,
        ended: Arc<BTreeSet<Arc<str>>>,
    ) -> Self {
        Self {
            set,
            spec,
            selectors,
            federated,
            ended,
            endpoints: Arc::default(),
            balancers,
            ports: Arc::default(),
        }
    }

    /// The endpoints that answers have, by cluster and name. Those in clusters that are lost only if no other one serves, and for a
    /// time: replicas may run in their place, and whether they run themselves is not known (D2).
    pub(crate) fn endpoints(&self) -> Arc<Vec<Endpoint>> {
        if let Some(balancers) = &self.balancers {
            return Arc::clone(balancers.endpoints());
        }
        if !self.has_lost() {
            return Arc::clone(&self.endpoints);
        }
        let answered = self.all().filter(|(_, is_omitted)| !is_omitted);
        Arc::new(answered.map(|(endpoint, _)| endpoint.clone()).collect())
    }

    /// Its load balancers, if they are its endpoints.
    pub(crate) fn balancers(&self) -> Option<&Balancers> {
        self.balancers.as_ref()
    }

    /// All endpoints, and whether answers leave them out.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Endpoint, bool)> {
        let others_serve = self.others_serve();
        let balancers = self.balancers.as_ref();
        let endpoints = balancers.map_or(&self.endpoints, Balancers::endpoints);
        endpoints.iter().map(move |one| {
            let ends = others_serve || self.ended.contains(one.cluster());
            (one, ends && self.is_lost(one))
        })
    }

    /// Whether it has lost clusters, and new requests may be sent to endpoints in others.
    fn others_serve(&self) -> bool {
        let serves = |set: &Arc<_>| {
            let mut endpoints = self.endpoints.iter();
            endpoints.any(|one| one.is_ready(set) && !self.is_lost(one))
        };
        self.has_lost() && self.set.as_ref().is_ok_and(serves)
    }

    /// Whether its source is lost in a cluster.
    fn has_lost(&self) -> bool {
        (self.federated.as_ref()).is_some_and(|source| !source.lost.is_empty())
    }

    /// Whether it is lost in one of these clusters.
    pub(super) fn is_lost_in<'a>(&self, clusters: impl IntoIterator<Item = &'a Arc<str>>) -> bool {
        let source = self.federated.as_ref();
        source.is_some_and(|source| clusters.into_iter().any(|name| source.lost.contains(name)))
    }

    fn is_lost(&self, endpoint: &Endpoint) -> bool {
        let source = self.federated.as_ref();
        source.is_some_and(|source| source.lost.contains(endpoint.cluster()))
    }

    /// Whether its source exists, at least in one member, and has a selector.
    pub(crate) fn has_source(&self) -> bool {
        self.selectors.iter().next().is_some()
    }

    /// Whether it is a pod of the source, whatever its state.
    pub(crate) fn selects(&self, pod: &Pod) -> bool {
        let selector = self.selectors.of(&pod.cluster);
        selector.is_some_and(|selector| selector.matches(&pod.labels))
    }

    /// What pods, by cluster and name, are to the set now. Returns whether that changes an endpoint.
    pub(super) fn refresh<'a>(
        &mut self,
        pods: impl IntoIterator<Item = (&'a str, &'a str, Option<&'a Arc<Pod>>)>,
    ) -> bool {
        let mut has_changed = false;
        for (cluster, name, pod) in pods {
            has_changed |= self.refresh_pod(cluster, name, pod);
        }
        match (&mut self.balancers, &self.set) {
            (Some(balancers), Ok(set)) if has_changed => balancers.refresh(set, &self.endpoints),
            _ => has_changed,
        }
    }

    fn refresh_pod(&mut self, cluster: &str, name: &str, pod: Option<&Arc<Pod>>) -> bool {
        let endpoint = pod.and_then(|pod| self.endpoint(pod));
        let key = (cluster, name);
        let order = |endpoint: &Endpoint| (endpoint.cluster(), endpoint.name()).cmp(&key);
        let place = match self.endpoints.last().map(order) {
            // Lists and snapshots have pods in this order.
            None | Some(Ordering::Less) => Err(self.endpoints.len()),
            Some(_) => self.endpoints.binary_search_by(order),
        };
        match (place, endpoint) {
            (Ok(place), Some(endpoint)) if self.endpoints.get(place) == Some(&endpoint) => {
                return false;
            }
            (Err(_), None) => return false,
            (Ok(place), Some(endpoint)) => {
                Arc::make_mut(&mut self.endpoints)[place] = endpoint;
            }
            (Ok(place), None) => _ = Arc::make_mut(&mut self.endpoints).remove(place),
            (Err(place), Some(endpoint)) => {
                Arc::make_mut(&mut self.endpoints).insert(place, endpoint);
            }
        }
        true
    }

    fn endpoint(&mut self, pod: &Arc<Pod>) -> Option<Endpoint> {
        let set = self.set.as_ref().ok()?;
        let ports = self.selects(pod).then(|| match self.balancers {
            None => ports_of(set, pod),
            // Its ports are those of the Service.
            Some(_) => is_included(set, pod).then(Vec::new),
        })??;
        if *self.ports != *ports {
            self.ports = Arc::new(ports);
        }
        Some(Endpoint::new(pod, Arc::clone(&self.ports)))
    }
}
