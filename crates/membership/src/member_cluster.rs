//! The MemberCluster of a member, and how to identify and connect to a cluster.

use fedrs_api::{ClusterType, MemberCluster, MemberClusterSpec, MemberSource};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api,
    api::{Patch, PatchParams},
    config::Cluster,
};
use serde_json::{Value, json};

use crate::{
    Error,
    cluster_client::{ClusterClient, RequestError},
    kubeconfig::KubeconfigSource,
    object::FIELD_MANAGER,
    progress::{Progress, Reporter},
};

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
pub(crate) async fn get(host: &ClusterClient, name: &str) -> Result<MemberCluster, Error> {
    let member = find(host, name).await?;
    member.ok_or_else(|| Error::MemberNotFound(name.to_owned()))
}

/// The namespaces that the member takes, if they are listed.
pub(crate) fn listed_namespaces(member: &MemberCluster) -> Option<Vec<String>> {
    member.spec.namespaces.as_ref()?.names.clone()
}

/// Whether the member takes namespaces by their labels.
pub(crate) fn selects_namespaces(member: &MemberCluster) -> bool {
    let scope = member.spec.namespaces.as_ref();
    scope.is_some_and(|scope| scope.selector.is_some())
}

/// A merge patch for the spec of a MemberCluster, if it has to change, and the progress to report for the member of a name.
pub(crate) type SpecChange = (Option<Value>, fn(String) -> Progress);

/// Makes the change that `decide` derives from the spec of the member `name`, unless the member is changed meanwhile. Returns
/// the new object.
pub(crate) async fn change_spec(
    host: &ClusterClient,
    name: &str,
    decide: fn(&MemberClusterSpec) -> SpecChange,
    reporter: &mut dyn Reporter,
) -> Result<MemberCluster, Error> {
    let mut member = get(host, name).await?;
    let (spec, progress) = decide(&member.spec);
    if let Some(spec) = spec {
        let metadata = &member.metadata;
        let patch = Patch::Merge(json!({
            "metadata": { "uid": metadata.uid, "resourceVersion": metadata.resource_version },
            "spec": spec,
        }));
        let parameters = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default().validation_strict()
        };
        let members: Api<MemberCluster> = Api::all(host.client());
        let request = members.patch(name, &parameters, &patch);
        let operation = format!("patch membercluster/{name}");
        member = host.call(operation, request).await?;
    }
    reporter.progress(progress(name.to_owned()));
    Ok(member)
}

/// A client of the member for the user, and the cluster in the user's kubeconfig.
pub(crate) async fn user_client(
    source: &KubeconfigSource,
) -> Result<(ClusterClient, Cluster), Error> {
    let kubeconfig = source.read()?;
    let cluster = kubeconfig.cluster().clone();
    let config = source.config(kubeconfig).await?;
    Ok((ClusterClient::new(ClusterType::Member, config)?, cluster))
}

/// The identifier of a cluster: the uid of its namespace kube-system.
pub(crate) async fn cluster_id(cluster: &ClusterClient) -> Result<String, RequestError> {
    let namespaces: Api<Namespace> = Api::all(cluster.client());
    let request = namespaces.get("kube-system");
    let namespace = cluster.call("get namespace/kube-system", request).await?;
    namespace.metadata.uid.ok_or_else(|| {
        cluster.invalid_response("identify the cluster", "namespace/kube-system has no uid")
    })
}

/// Whether the controller reads the member's kubeconfig from a file, not from a Secret.
pub(crate) fn is_file(member: &MemberCluster) -> bool {
    let status = member.status.as_ref();
    member.spec.secret_ref.is_none()
        && status.is_some_and(|status| status.source == Some(MemberSource::File))
}
