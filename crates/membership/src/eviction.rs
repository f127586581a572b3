//! Asks the controller of LocalReplicaSets to evict pods (L18): by an annotation on a pod, or a label on a node.

use fedrs_api::{LocalKind, MigrationPhase, annotations::EVICT};
use k8s_openapi::{
    api::core::v1::{Node, Pod},
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    cluster_client::{ClusterClient, RequestError},
    object::{ObjectRef, Write, WriteMode},
};

/// What is asked of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictionRequest {
    /// To evict.
    Evict,
    /// Not to evict what it has not begun to.
    Cancel,
}

/// A request to evict can't be made.
#[derive(Debug, thiserror::Error)]
pub enum EvictionError {
    /// A request failed.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// There is no such pod or node.
    #[error("{0} not found")]
    NotFound(String),
    /// Another controller, or none, has the pod.
    #[error("{0} belongs to no LocalReplicaSet: `kubectl delete` or `kubectl drain` remove it")]
    ForeignPod(String),
    /// Nothing that is migrated has the pod.
    #[error(
        "{0} belongs to no LocalReplicaSet or ReplicaSet: `kubectl delete` or `kubectl drain` remove it"
    )]
    NotMigrated(String),
    /// A MigrationRequest that is to be cancelled or confirmed has ended.
    #[error("{0} has ended: {1}")]
    Ended(String, MigrationPhase),
    /// Nobody waits for a confirmation.
    #[error("{0} waits for no confirmation: its phase is {1}")]
    NotAwaited(String, &'static str),
    /// The pod of a MigrationRequest has to be shut down before anything is confirmed (M7).
    #[error(
        "{0}: its pod has not been shut down: delete it with `kubectl delete pod`. If its machine is destroyed, say so with \
         --machine-is-destroyed"
    )]
    NotShutDown(String),
    /// The new pod of a MigrationRequest waits for its start.
    #[error("{0} waits for no confirmation: start its new pod with `fedrs migrate start`")]
    NotStarted(String),
    /// The pod is not one that a person has to start.
    #[error("{0} has no scheduling gate fedrs.dev/start: nothing of fedrs holds up its start")]
    NotGated(String),
    /// Nothing proves what is to be confirmed.
    #[error(
        "{0}: the kubelet of {1} has not reported that the containers have stopped. See after the machine: once it answers again, its \
         kubelet does. If it is destroyed, say so with --machine-is-destroyed"
    )]
    NotProved(String, String),
}

/// Sets or removes the annotation on a pod of a LocalReplicaSet.
pub async fn request_of_pod(
    cluster: &ClusterClient,
    (namespace, name): (&str, &str),
    request: EvictionRequest,
) -> Result<(), EvictionError> {
    let object = ObjectRef::namespaced::<Pod>(namespace, name);
    let pod = cluster.get(&object).await?;
    let named = format!("pod {namespace}/{name}");
    let pod = pod.ok_or_else(|| EvictionError::NotFound(named.clone()))?;
    let owners = Vec::deserialize(&pod["metadata"]["ownerReferences"]).unwrap_or_default();
    if !matches!(set_of(&owners), Some((LocalKind::LocalReplicaSet, _))) {
        return Err(EvictionError::ForeignPod(named));
    }
    let asked = match request {
        EvictionRequest::Evict => json!("true"),
        // Without the annotation, the label would count.
        EvictionRequest::Cancel if !pod["metadata"]["labels"][EVICT].is_null() => json!("false"),
        EvictionRequest::Cancel => Value::Null,
    };
    let patch =
        json!({ "metadata": { "uid": pod["metadata"]["uid"], "annotations": { EVICT: asked } } });
    let write = Write::Patch(patch);
    cluster.write(&object, &write, WriteMode::Persist).await?;
    Ok(())
}

/// Sets or removes the label on a node, for its pods of all LocalReplicaSets and native ReplicaSets. Returns whether the node is cordoned.
pub async fn request_of_node(
    cluster: &ClusterClient,
    name: &str,
    request: EvictionRequest,
) -> Result<bool, EvictionError> {
    let object = ObjectRef::cluster_scoped::<Node>(name);
    let node = cluster.get(&object).await?;
    let node = node.ok_or_else(|| EvictionError::NotFound(format!("node {name}")))?;
    let asked = match request {
        EvictionRequest::Evict => json!("true"),
        EvictionRequest::Cancel => Value::Null,
    };
    let patch =
        json!({ "metadata": { "uid": node["metadata"]["uid"], "labels": { EVICT: asked } } });
    let write = Write::Patch(patch);
    cluster.write(&object, &write, WriteMode::Persist).await?;
    Ok(node["spec"]["unschedulable"] == true)
}

/// The kind and the name of the set that controls a pod with these owners, if its pods are migrated by MigrationRequests.
pub(crate) fn set_of(owners: &[OwnerReference]) -> Option<(LocalKind, &str)> {
    let owner = owners.iter().find(|owner| owner.controller == Some(true))?;
    let mut kinds = [LocalKind::LocalReplicaSet, LocalKind::ReplicaSet].into_iter();
    let kind = kinds
        .find(|kind| owner.api_version == kind.api_version() && owner.kind == kind.as_str())?;
    Some((kind, &owner.name))
}
