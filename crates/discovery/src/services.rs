//! The Services of a member, as far as they say which endpoints an EndpointSet has.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::{balancer::LoadBalancer, freshness::Freshness};

/// Namespace and name of a Service.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ServiceKey {
    pub(crate) namespace: Arc<str>,
    pub(crate) name: Arc<str>,
}

impl ServiceKey {
    pub(crate) fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

/// What a Service that selects pods says of its endpoints.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Service {
    /// Which pods it has.
    pub(crate) selector: LabelSelector,
    /// Its load balancer, once that has an address.
    pub(crate) balancer: Option<LoadBalancer>,
}

/// The Services of a member.
#[derive(Debug, Default)]
pub(crate) struct Services {
    /// Those that have a selector.
    known: BTreeMap<ServiceKey, Arc<Service>>,
    /// How current they are.
    pub(crate) freshness: Freshness,
}

impl Services {
    /// Those that a snapshot has.
    pub(crate) fn loaded(kept: KeptServices, freshness: Freshness) -> Self {
        Self {
            known: kept.into_iter().collect(),
            freshness,
        }
    }

    /// All, for a snapshot; `None` if they are not known.
    pub(crate) fn kept(&self) -> Option<KeptServices> {
        let known = self.known.iter();
        let known = known.map(|(key, service)| (key.clone(), Arc::clone(service)));
        self.freshness.is_known.then(|| known.collect())
    }

    /// The Service, if it selects pods.
    pub(crate) fn get(&self, key: &ServiceKey) -> Option<&Arc<Service>> {
        self.known.get(key)
    }

    /// A Service is this, or selects no pods. Returns whether that changes anything.
    pub(crate) fn set(&mut self, key: &ServiceKey, service: Option<Service>) -> bool {
        if self.get(key).map(|known| &**known) == service.as_ref() {
            return false;
        }
        match service {
            Some(service) => _ = self.known.insert(key.clone(), Arc::new(service)),
            None => _ = self.known.remove(key),
        }
        true
    }

    /// Those that are not among `listed`.
    pub(crate) fn unlisted(&self, listed: &HashSet<ServiceKey>) -> Vec<ServiceKey> {
        let known = self.known.keys();
        known.filter(|key| !listed.contains(key)).cloned().collect()
    }
}

/// The Services of a member that select pods.
pub(crate) type KeptServices = Vec<(ServiceKey, Arc<Service>)>;
