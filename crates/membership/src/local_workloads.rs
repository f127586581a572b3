//! The local workloads of a federation in a member: a drained member keeps them, with 0 replicas.

use std::collections::BTreeSet;

use fedrs_api::labels;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Preconditions},
};

use crate::{
    cleanup::Actor,
    cluster_client::{ClusterClient, RequestError},
    local_kind::LocalKind,
    membership::Membership,
    object::none_if_not_found,
    progress::{Progress, Reporter},
};

/// How often a workload that changes meanwhile is read again before its deletion fails.
const MAX_READS: u32 = 10;

/// A local workload.
struct Workload {
    kind: LocalKind,
    object: DynamicObject,
}

/// The workloads of the federation in `member`.
async fn list(
    member: &ClusterClient,
    membership: &Membership,
    namespaces: Option<&[String]>,
    actor: Actor,
) -> Result<Vec<Workload>, RequestError> {
    let mut workloads = Vec::new();
    for kind in LocalKind::ALL {
        match list_kind(member, membership, namespaces, kind).await {
            // An earlier version of join granted the account no permission for others than ReplicaSets: it has created none.
            Err(error)
                if error.code() == Some(403)
                    && kind != LocalKind::ReplicaSet
                    && actor == Actor::ServiceAccount => {}
            // The member has no CRD of them.
            Err(error) if error.code() == Some(404) && kind == LocalKind::LocalReplicaSet => {}
            objects => {
                let objects = objects?.into_iter();
                workloads.extend(objects.map(|object| Workload { kind, object }));
            }
        }
    }
    Ok(workloads)
}

async fn list_kind(
    member: &ClusterClient,
    membership: &Membership,
    namespaces: Option<&[String]>,
    kind: LocalKind,
) -> Result<Vec<DynamicObject>, RequestError> {
    let selector = format!(
        "{}={},{}={}",
        labels::FEDERATION,
        membership.federation_label(),
        labels::MEMBER_CLUSTER,
        membership.name
    );
    let resource = kind.resource();
    let selected = ListParams::default().labels(&selector);
    let Some(namespaces) = namespaces else {
        let api: Api<DynamicObject> = Api::all_with(member.client(), &resource);
        let operation = format!("list {}", resource.plural);
        return Ok(member.call(operation, api.list(&selected)).await?.items);
    };
    let mut objects = Vec::new();
    for namespace in namespaces {
        let api: Api<DynamicObject> = Api::namespaced_with(member.client(), namespace, &resource);
        let operation = format!("list {} in namespace {namespace}", resource.plural);
        objects.extend(member.call(operation, api.list(&selected)).await?.items);
    }
    Ok(objects)
}

/// The namespaces of `member` in which workloads of the federation have replicas.
pub(crate) async fn namespaces_with_replicas(
    member: &ClusterClient,
    membership: &Membership,
) -> Result<BTreeSet<String>, RequestError> {
    let workloads = list(member, membership, None, Actor::User).await?;
    let objects = workloads.iter().map(|workload| &workload.object);
    let running = objects.filter(|object| replicas(object) > 0);
    Ok(running.filter_map(ResourceExt::namespace).collect())
}

/// The namespaces of `member` with workloads of the federation.
pub(crate) async fn namespaces(
    member: &ClusterClient,
    membership: &Membership,
) -> Result<BTreeSet<String>, RequestError> {
    let workloads = list(member, membership, None, Actor::User).await?;
    let namespaces = workloads.iter();
    let namespaces = namespaces.filter_map(|workload| workload.object.namespace());
    Ok(namespaces.collect())
}

/// Deletes the workloads of the federation in `member` that have no replicas, and reports those that have some. Only in
/// `namespaces`, if there are any.
pub(crate) async fn delete_empty(
    member: &ClusterClient,
    membership: &Membership,
    namespaces: Option<&[String]>,
    actor: Actor,
    reporter: &mut dyn Reporter,
) -> Result<(), RequestError> {
    for workload in list(member, membership, namespaces, actor).await? {
        let kind = workload.kind;
        let namespace = workload.object.namespace().unwrap_or_default();
        let name = workload.object.name_any();
        // A large future, in those of all commands that delete.
        let replicas = Box::pin(delete_if_empty(member, workload)).await?;
        reporter.progress(match replicas {
            None => Progress::WorkloadDeleted {
                kind,
                namespace,
                name,
            },
            Some(replicas) => Progress::WorkloadKept {
                kind,
                namespace,
                name,
                replicas,
            },
        });
    }
    Ok(())
}

/// Desired or existing replicas, whichever is more.
fn replicas(workload: &DynamicObject) -> i64 {
    let count = |part: &str| workload.data[part]["replicas"].as_i64().unwrap_or(0);
    count("spec").max(count("status"))
}

/// Deletes `workload` if it has no replicas; returns how many it has otherwise. Reads it again if it was changed since it was
/// read: its status follows the pods.
async fn delete_if_empty(
    member: &ClusterClient,
    workload: Workload,
) -> Result<Option<i64>, RequestError> {
    let Workload { kind, mut object } = workload;
    let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
    let api: Api<DynamicObject> =
        Api::namespaced_with(member.client(), &namespace, &kind.resource());
    let mut reads_left = MAX_READS;
    loop {
        if replicas(&object) > 0 {
            return Ok(Some(replicas(&object)));
        }
        let parameters = DeleteParams::background().preconditions(Preconditions {
            uid: object.uid(),
            resource_version: object.resource_version(),
        });
        let operation = format!("delete {kind} {namespace}/{name}");
        let deletion = api.delete(&name, &parameters);
        match none_if_not_found(member.call(operation, deletion).await) {
            Err(error) if error.code() == Some(409) && reads_left > 0 => reads_left -= 1,
            response => return response.map(|_| None),
        }
        let operation = format!("get {kind} {namespace}/{name}");
        let Some(live) = member.call(operation, api.get_opt(&name)).await? else {
            return Ok(None);
        };
        object = live;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_workload_is_empty_if_it_neither_desires_nor_has_replicas() {
        for (spec, status, expected) in [(0, 0, 0), (2, 1, 2), (0, 3, 3)] {
            let workload = json!({
                "apiVersion": "apps/v1", "kind": "ReplicaSet",
                "metadata": {
                    "namespace": "default", "name": "web", "uid": "u", "resourceVersion": "1",
                },
                "spec": { "replicas": spec, "selector": {} }, "status": { "replicas": status },
            });
            assert_eq!(
                replicas(&serde_json::from_value(workload).unwrap()),
                expected
            );
        }
        let new = json!({ "metadata": { "name": "web" }, "spec": { "replicas": 1 } });
        assert_eq!(replicas(&serde_json::from_value(new).unwrap()), 1);
    }
}
