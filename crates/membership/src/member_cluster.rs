//! A cluster's identity, and the MemberCluster of a member: read, and asked for something.

use anyhow::Context;
use fedrs_api::MemberCluster;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::{
    cluster_client::{ClusterClient, RequestError},
    object::{Change, MEMBER_CLUSTER, NAMESPACE, ObjectRef, Write},
};

/// The MemberCluster `name`, if there is one.
pub(crate) async fn read(
    host: &ClusterClient,
    name: &str,
) -> Result<Option<MemberCluster>, RequestError> {
    let members: Api<MemberCluster> = Api::all(host.client());
    let doing = format!("read membercluster/{name}");
    host.call(doing, members.get_opt(name)).await
}

/// The MemberCluster `name`, which must be there.
pub(crate) async fn existing(host: &ClusterClient, name: &str) -> anyhow::Result<MemberCluster> {
    let member = read(host, name).await?;
    member.with_context(|| format!("there is no member {name}: `kubectl get mc` lists all"))
}

/// Changes the spec of `member` by a merge patch, if it has not been changed meanwhile. Answers it as it is then.
pub(crate) async fn ask(
    host: &ClusterClient,
    member: &MemberCluster,
    spec: Value,
) -> anyhow::Result<MemberCluster> {
    let metadata = &member.metadata;
    let patch = json!({
        "metadata": { "uid": metadata.uid, "resourceVersion": metadata.resource_version },
        "spec": spec,
    });
    let address = ObjectRef::cluster(MEMBER_CLUSTER, member.name_any());
    let written = host
        .carry_out(&address, &Change::Patch(patch), Write::Real)
        .await?;
    let written = written.context("host: its answer holds no object")?;
    serde_json::from_value(written).context("host: its answer is no MemberCluster")
}

/// The id that tells a cluster from all others: the uid of its kube-system namespace.
pub(crate) async fn id(remote: &ClusterClient) -> Result<String, RequestError> {
    let address = ObjectRef::cluster(NAMESPACE, "kube-system");
    let system = remote.get(&address).await?;
    let uid = system
        .as_ref()
        .and_then(|it| it["metadata"]["uid"].as_str());
    uid.map(str::to_owned).ok_or_else(|| {
        remote.failure(
            "tell it from other clusters",
            "its namespace kube-system has no uid",
        )
    })
}

/// Whether the controller has the member's kubeconfig from its folder, not from a Secret.
pub(crate) fn is_file(member: &MemberCluster) -> bool {
    let conditions = member.status.iter().flat_map(|it| &it.conditions);
    let mut ready = conditions.filter(|it| it.type_ == "Ready");
    let known = ready.any(|it| it.reason != "Removed" && it.reason != "Unknown");
    member.spec.secret_ref.is_none() && known
}
