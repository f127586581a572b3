//! An EndpointSet of the host.

use std::{fmt, sync::Arc};

use fedrs_api::{EndpointSet, ObjectKey, SetKind, ValidEndpointSet, ValidEndpointSource, selector};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// The longest names of namespaces, and of other objects.
const MOST_NAMESPACE_BYTES: usize = 63;
const MOST_NAME_BYTES: usize = 253;

/// Namespace and name of an EndpointSet. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SetKey {
    /// The namespace, the same on the host and in every member.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

impl SetKey {
    /// The key of `namespace/name`.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// Whether an object may have this name: one that is too long is nobody's.
    pub(crate) fn can_exist(&self) -> bool {
        self.namespace.len() <= MOST_NAMESPACE_BYTES && self.name.len() <= MOST_NAME_BYTES
    }

    /// The key of an object.
    pub(crate) fn of(object: &EndpointSet) -> Self {
        let metadata = &object.metadata;
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        Self::new(namespace, metadata.name.as_deref().unwrap_or_default())
    }
}

impl fmt::Display for SetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The federated set of this kind and name in the namespace of the EndpointSet `key`.
pub(crate) fn source(key: &SetKey, kind: SetKind, name: &str) -> ObjectKey {
    ObjectKey::of_kind(kind, Arc::clone(&key.namespace), name)
}

/// Whether the EndpointSet `key` has the pods of this federated set.
pub(crate) fn is_source(key: &SetKey, set: &ValidEndpointSet, federated: &ObjectKey) -> bool {
    match &set.source {
        ValidEndpointSource::Set(kind, name) => source(key, *kind, name) == *federated,
        ValidEndpointSource::Selector(_) => false,
    }
}

/// A selector that is parsed once. Pods without labels match none: those of sets have some.
#[derive(Clone, Debug)]
pub(crate) struct ParsedSelector {
    pub(crate) labels: LabelSelector,
    parsed: kube::core::Selector,
}

impl ParsedSelector {
    /// `None` if it is invalid, or empty.
    pub(crate) fn parse(labels: &LabelSelector) -> Option<Self> {
        selector::check(labels, "spec.selector").ok()?;
        let parsed = kube::core::Selector::try_from(labels.clone()).ok()?;
        let labels = selector::normalized(labels);
        Some(Self { labels, parsed })
    }

    pub(crate) fn matches(&self, labels: &crate::pod::Labels) -> bool {
        use kube::core::SelectorExt;
        self.parsed.matches(labels)
    }
}
