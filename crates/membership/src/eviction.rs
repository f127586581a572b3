//! Asks the controller of LocalReplicaSets to evict pods (L18): by an annotation on a pod, or a label on a node.

use std::fmt;

use fedrs_api::{LocalReplicaSet, MigrationPhase, annotations::EVICT};
use k8s_openapi::{
    Resource as _,
    api::{
        apps::v1::ReplicaSet,
        core::v1::{Node, Pod},
    },
};
use kube::Resource;
use serde::Serialize;
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
    if PodSetKind::of(&pod) != Some(PodSetKind::LocalReplicaSet) {
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

/// The kinds of sets whose pods are migrated by MigrationRequests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum PodSetKind {
    /// A LocalReplicaSet.
    LocalReplicaSet,
    /// A native ReplicaSet, with or without a Deployment.
    ReplicaSet,
}

impl PodSetKind {
    /// That of the set that controls the pod; `None` if none of them does.
    pub(crate) fn of(pod: &Value) -> Option<Self> {
        let (version, kind) = controller(pod)?;
        let is_local =
            version == LocalReplicaSet::api_version(&()) && kind == LocalReplicaSet::kind(&());
        let is_native = (version, kind) == (ReplicaSet::API_VERSION, ReplicaSet::KIND);
        (is_local.then_some(Self::LocalReplicaSet)).or(is_native.then_some(Self::ReplicaSet))
    }

    /// As in `kind` of an object.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LocalReplicaSet => "LocalReplicaSet",
            Self::ReplicaSet => "ReplicaSet",
        }
    }
}

impl fmt::Display for PodSetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The version and kind of what controls the pod.
fn controller(pod: &Value) -> Option<(&str, &str)> {
    let owners = pod["metadata"]["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|owner| owner["controller"] == true)?;
    owner["apiVersion"].as_str().zip(owner["kind"].as_str())
}
