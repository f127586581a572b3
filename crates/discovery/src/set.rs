//! An EndpointSet of the host.

use std::{collections::BTreeMap, fmt, sync::Arc};

use fedrs_api::{EndpointSet, ObjectKey, ValidEndpointSet, ValidEndpointSource, selector};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::services::ServiceKey;

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

/// What an EndpointSet has the pods of, unless it selects them itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SourceKey {
    /// A federated set of the host.
    Set(ObjectKey),
    /// A Service, which each member may have or not.
    Service(ServiceKey),
}

impl SourceKey {
    /// That of the EndpointSet `key`, in its namespace.
    pub(crate) fn of(key: &SetKey, set: &ValidEndpointSet) -> Option<Self> {
        let namespace = Arc::clone(&key.namespace);
        match &set.source {
            ValidEndpointSource::Set(kind, name) => {
                Some(Self::Set(ObjectKey::of_kind(*kind, namespace, &**name)))
            }
            ValidEndpointSource::Service(name) => {
                Some(Self::Service(ServiceKey::new(namespace, &**name)))
            }
            ValidEndpointSource::Selector(_) => None,
        }
    }
}

/// Whether the EndpointSet has the pods of a Service.
pub(crate) fn is_of_service(set: &ValidEndpointSet) -> bool {
    matches!(set.source, ValidEndpointSource::Service(_))
}

/// Which pods an EndpointSet has.
#[derive(Clone, Debug)]
pub(crate) enum Selectors {
    /// The same in all members; none if its source does not exist.
    All(Option<ParsedSelector>),
    /// In each member those of its own.
    OfMembers(BTreeMap<Arc<str>, ParsedSelector>),
}

impl Selectors {
    /// That of this member.
    pub(crate) fn of(&self, member: &str) -> Option<&ParsedSelector> {
        match self {
            Self::All(selector) => selector.as_ref(),
            Self::OfMembers(selectors) => selectors.get(member),
        }
    }

    /// Those of all members. Several may be the same.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &ParsedSelector> {
        let (all, of_members) = match self {
            Self::All(selector) => (selector.as_ref(), None),
            Self::OfMembers(selectors) => (None, Some(selectors.values())),
        };
        all.into_iter().chain(of_members.into_iter().flatten())
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
