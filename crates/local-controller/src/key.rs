//! The key of a set in the store, in queues and in logs.

use std::{collections::BTreeSet, fmt, sync::Arc};

/// The collection of all sets.
pub(crate) const SETS: &str = "/apis/fedrs.dev/v1alpha1/localreplicasets";

/// Sets to reconcile.
pub(crate) type Changed = BTreeSet<SetKey>;

/// Namespace and name of a set.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SetKey {
    pub(crate) namespace: Arc<str>,
    pub(crate) name: Arc<str>,
}

impl SetKey {
    pub(crate) fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// The path of the set.
    pub(crate) fn path(&self) -> String {
        let Self { namespace, name } = self;
        format!("/apis/fedrs.dev/v1alpha1/namespaces/{namespace}/localreplicasets/{name}")
    }
}

/// How an object is known while its kind is listed.
pub(crate) fn id(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

impl fmt::Display for SetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
