//! The Services of a member, as far as their selectors say whose pods an EndpointSet has.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::freshness::Freshness;

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

/// The Services of a member.
#[derive(Debug, Default)]
pub(crate) struct Services {
    /// The selectors of those that have one.
    selectors: BTreeMap<ServiceKey, Arc<LabelSelector>>,
    /// How current they are.
    pub(crate) freshness: Freshness,
}

impl Services {
    /// Those that a snapshot has.
    pub(crate) fn loaded(kept: KeptServices, freshness: Freshness) -> Self {
        Self {
            selectors: kept.into_iter().collect(),
            freshness,
        }
    }

    /// All, for a snapshot; `None` if they are not known.
    pub(crate) fn kept(&self) -> Option<KeptServices> {
        let selectors = self.selectors.iter();
        let selectors = selectors.map(|(key, selector)| (key.clone(), Arc::clone(selector)));
        self.freshness.is_known.then(|| selectors.collect())
    }

    /// Which pods a Service selects.
    pub(crate) fn selector(&self, key: &ServiceKey) -> Option<&LabelSelector> {
        self.selectors.get(key).map(|selector| &**selector)
    }

    /// Which pods a Service selects, for a replica.
    pub(crate) fn shared_selector(&self, key: &ServiceKey) -> Option<Arc<LabelSelector>> {
        self.selectors.get(key).cloned()
    }

    /// A Service has this selector, or none. Returns whether that changes anything.
    pub(crate) fn set(&mut self, key: &ServiceKey, selector: Option<LabelSelector>) -> bool {
        if self.selector(key) == selector.as_ref() {
            return false;
        }
        match selector {
            Some(selector) => _ = self.selectors.insert(key.clone(), Arc::new(selector)),
            None => _ = self.selectors.remove(key),
        }
        true
    }

    /// Those that are not among `listed`.
    pub(crate) fn unlisted(&self, listed: &HashSet<ServiceKey>) -> Vec<ServiceKey> {
        let known = self.selectors.keys();
        known.filter(|key| !listed.contains(key)).cloned().collect()
    }
}

/// The selectors of Services.
pub(crate) type KeptServices = Vec<(ServiceKey, Arc<LabelSelector>)>;
