//! The kinds of local workloads.

use derive_more::Display;
use fedrs_api::LocalReplicaSet;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use kube::api::ApiResource;

/// The kind of a local workload.
#[derive(Clone, Copy, Debug, Display, PartialEq, Eq)]
#[display(rename_all = "lowercase")]
pub enum LocalKind {
    /// That of a FederatedReplicaSet.
    ReplicaSet,
    /// That of a FederatedDeployment.
    Deployment,
    /// That of a FederatedDeployment with `localKind: LocalReplicaSet`.
    LocalReplicaSet,
}

impl LocalKind {
    /// All kinds.
    pub(crate) const ALL: [Self; 3] = [Self::ReplicaSet, Self::Deployment, Self::LocalReplicaSet];

    /// The resource in requests.
    pub(crate) fn resource(self) -> ApiResource {
        match self {
            Self::ReplicaSet => ApiResource::erase::<ReplicaSet>(&()),
            Self::Deployment => ApiResource::erase::<Deployment>(&()),
            Self::LocalReplicaSet => ApiResource::erase::<LocalReplicaSet>(&()),
        }
    }
}
