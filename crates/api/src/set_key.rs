//! The key of a federated workload in queues, stores and logs.

use std::{fmt, sync::Arc};

/// Namespace and name of a FederatedReplicaSet, shared by its local workloads. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SetKey {
    /// Namespace, the same on the host and in every member.
    pub namespace: Arc<str>,
    /// Name, the same on the host and in every member.
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
}

impl fmt::Display for SetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
