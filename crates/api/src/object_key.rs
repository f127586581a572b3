//! The key of an object in queues, stores and logs.

use std::{fmt, sync::Arc};

/// Namespace and name of a FederatedReplicaSet, and of its local ReplicaSets. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// Namespace, the same on the host and in every member.
    pub namespace: Arc<str>,
    /// Name, the same on the host and in every member.
    pub name: Arc<str>,
}

impl ObjectKey {
    /// The key of `namespace/name`.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
