//! The keys of objects in queues, stores and logs.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

/// The kind of a federated set.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub enum SetKind {
    /// A FederatedReplicaSet has a ReplicaSet in each member.
    #[default]
    FederatedReplicaSet,
    /// A FederatedDeployment has a Deployment in each member, or a LocalReplicaSet.
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

    /// The field of the spec that stops every change. `paused` of a FederatedDeployment stops rollouts only (L8).
    #[must_use]
    pub const fn stopping_field(self) -> &'static str {
        match self {
            Self::FederatedReplicaSet => "paused",
            Self::FederatedDeployment => "stopped",
        }
    }
}

/// The kind of the workload that a set has in each member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LocalKind {
    /// An apps/v1 ReplicaSet, of a FederatedReplicaSet.
    #[default]
    ReplicaSet,
    /// An apps/v1 Deployment, of a FederatedDeployment.
    Deployment,
    /// A LocalReplicaSet, of a FederatedDeployment that asks for it (L6).
    LocalReplicaSet,
}

impl LocalKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::ReplicaSet, Self::Deployment, Self::LocalReplicaSet];

    /// The kind as objects have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReplicaSet => "ReplicaSet",
            Self::Deployment => "Deployment",
            Self::LocalReplicaSet => "LocalReplicaSet",
        }
    }

    /// The name in paths.
    #[must_use]
    pub const fn resource(self) -> &'static str {
        match self {
            Self::ReplicaSet => "replicasets",
            Self::Deployment => "deployments",
            Self::LocalReplicaSet => "localreplicasets",
        }
    }

    /// Group and version.
    #[must_use]
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::ReplicaSet | Self::Deployment => "apps/v1",
            Self::LocalReplicaSet => "fedrs.dev/v1alpha1",
        }
    }

    /// The kind of the sets that have it.
    #[must_use]
    pub const fn of_sets(self) -> SetKind {
        match self {
            Self::ReplicaSet => SetKind::FederatedReplicaSet,
            Self::Deployment | Self::LocalReplicaSet => SetKind::FederatedDeployment,
        }
    }
}

/// Kind, namespace and name of a federated set.
pub type ObjectKey = NamespacedKey<SetKind>;

/// Kind, namespace and name of a local workload.
pub type WorkloadKey = NamespacedKey<LocalKind>;

/// Kind, namespace and name of a federated set, or of one of its local workloads. Cheap to clone.
///
/// Objects of different kinds may have the same namespace and name: they are different objects. Keys are in the order of their
/// namespaces, then of their names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NamespacedKey<K> {
    /// Namespace, the same on the host and in every member.
    pub namespace: Arc<str>,
    /// Name, the same on the host and in every member.
    pub name: Arc<str>,
    /// The kind of the object.
    pub kind: K,
}

impl ObjectKey {
    /// The key of the FederatedReplicaSet `namespace/name`.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self::of_kind(SetKind::FederatedReplicaSet, namespace, name)
    }

    /// The key of the local workloads of this kind that the set has.
    #[must_use]
    pub fn workload(&self, kind: LocalKind) -> WorkloadKey {
        WorkloadKey::of_kind(kind, Arc::clone(&self.namespace), Arc::clone(&self.name))
    }
}

impl WorkloadKey {
    /// The key of the ReplicaSet `namespace/name`.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self::of_kind(LocalKind::ReplicaSet, namespace, name)
    }

    /// The key of the workload of this namespace, name and `kind`.
    #[must_use]
    pub fn with_kind(&self, kind: LocalKind) -> Self {
        Self::of_kind(kind, Arc::clone(&self.namespace), Arc::clone(&self.name))
    }

    /// The key of the set that it is a part of.
    #[must_use]
    pub fn of_set(&self) -> ObjectKey {
        let (namespace, name) = (Arc::clone(&self.namespace), Arc::clone(&self.name));
        ObjectKey::of_kind(self.kind.of_sets(), namespace, name)
    }
}

impl<K> NamespacedKey<K> {
    /// The key of the object `namespace/name` of a kind.
    pub fn of_kind(kind: K, namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
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

/// As that of the set that it is a part of.
impl fmt::Display for WorkloadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.of_set().fmt(f)
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
        assert_eq!(size_of::<WorkloadKey>(), 5 * size_of::<usize>());
    }
}
