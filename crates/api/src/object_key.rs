//! The key of an object in queues, stores and logs.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

/// The kind of a federated set, and so of the workloads that it has in the members.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub enum SetKind {
    /// A FederatedReplicaSet has a ReplicaSet in each member.
    #[default]
    FederatedReplicaSet,
    /// A FederatedDeployment has a Deployment in each member.
    FederatedDeployment,
}

impl SetKind {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::FederatedReplicaSet, Self::FederatedDeployment];

    /// The kind as objects have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FederatedReplicaSet => "FederatedReplicaSet",
            Self::FederatedDeployment => "FederatedDeployment",
        }
    }
}

/// Kind, namespace and name of a federated set, and of its local workloads. Cheap to clone.
///
/// Sets of different kinds may have the same namespace and name: they are different sets. Keys are in the order of their
/// namespaces, then of their names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// Namespace, the same on the host and in every member.
    pub namespace: Arc<str>,
    /// Name, the same on the host and in every member.
    pub name: Arc<str>,
    /// The kind of the set.
    pub kind: SetKind,
}

impl ObjectKey {
    /// The key of the FederatedReplicaSet `namespace/name`.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self::of_kind(SetKind::FederatedReplicaSet, namespace, name)
    }

    /// The key of the set `namespace/name` of a kind.
    pub fn of_kind(
        kind: SetKind,
        namespace: impl Into<Arc<str>>,
        name: impl Into<Arc<str>>,
    ) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            kind,
        }
    }
}

/// `namespace/name` of a FederatedReplicaSet; before that of another kind is the kind.
impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            SetKind::FederatedReplicaSet => {}
            kind @ SetKind::FederatedDeployment => write!(f, "{} ", kind.as_str())?,
        }
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_one_name_and_different_kinds_are_different() {
        let set = ObjectKey::new("default", "web");
        let deployment = ObjectKey::of_kind(SetKind::FederatedDeployment, "default", "web");
        assert_ne!(set, deployment);
        assert_eq!(set.to_string(), "default/web");
        assert_eq!(deployment.to_string(), "FederatedDeployment default/web");
        let other = ObjectKey::new("default", "x");
        assert!(set < deployment && deployment < other, "by name first");
    }

    /// There are several for each workload of each member.
    #[test]
    fn a_key_is_two_texts_and_a_word() {
        assert_eq!(size_of::<ObjectKey>(), 5 * size_of::<usize>());
    }
}
