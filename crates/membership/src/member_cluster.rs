//! The MemberCluster of a member, and the identity of a cluster.

use fedrs_api::{MemberCluster, MemberSource};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::{
    cluster_client::{ClusterClient, RequestError},
    object::{MEMBER_CLUSTER, NAMESPACE, ObjectRef, Write, WriteMode},
};

/// A MemberCluster can't be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum MemberClusterError {
    /// It does not exist.
    #[error("member {0} not found: run `kubectl get mc` to list the members")]
    NotFound(String),
    /// A request failed.
    #[error(transparent)]
    Request(#[from] RequestError),
}

/// Reads the MemberCluster `name`; `None` if it does not exist.
pub(crate) async fn find(
    host: &ClusterClient,
    name: &str,
) -> Result<Option<MemberCluster>, RequestError> {
    let members: Api<MemberCluster> = Api::all(host.client());
    let operation = format!("get membercluster/{name}");
    host.call(operation, members.get_opt(name)).await
}

/// Reads the MemberCluster `name`.
pub(crate) async fn get(
    host: &ClusterClient,
    name: &str,
) -> Result<MemberCluster, MemberClusterError> {
    let member = find(host, name).await?;
    member.ok_or_else(|| MemberClusterError::NotFound(name.to_owned()))
}

/// Changes the spec of `member` by a merge patch, if it has not been changed since. Returns the new object.
pub(crate) async fn patch_spec(
    host: &ClusterClient,
    member: &MemberCluster,
    spec: Value,
) -> Result<MemberCluster, RequestError> {
    let metadata = &member.metadata;
    let patch = json!({
        "metadata": { "uid": metadata.uid, "resourceVersion": metadata.resource_version },
        "spec": spec,
    });
    let object = ObjectRef::cluster_scoped(MEMBER_CLUSTER, member.name_any());
    let written = host
        .write(&object, &Write::Patch(patch), WriteMode::Persist)
        .await?;
    serde_json::from_value(written.unwrap_or_default()).map_err(|_| {
        host.invalid_response(
            format!("patch {object}"),
            "the response is not a MemberCluster",
        )
    })
}

/// The identifier of a cluster: the uid of its namespace kube-system.
pub(crate) async fn cluster_id(cluster: &ClusterClient) -> Result<String, RequestError> {
    let object = ObjectRef::cluster_scoped(NAMESPACE, "kube-system");
    let namespace = cluster.get(&object).await?.unwrap_or_default();
    let uid = namespace["metadata"]["uid"].as_str();
    uid.map(str::to_owned).ok_or_else(|| {
        cluster.invalid_response("identify the cluster", "namespace/kube-system has no uid")
    })
}

/// Whether the controller reads the member's kubeconfig from a file, not from a Secret.
pub(crate) fn is_file(member: &MemberCluster) -> bool {
    let status = member.status.as_ref();
    member.spec.secret_ref.is_none()
        && status.is_some_and(|status| status.source == Some(MemberSource::File))
}
