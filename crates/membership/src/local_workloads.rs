//! The local ReplicaSets of a federation in a member: a drained member keeps them, with 0 replicas.

use std::collections::BTreeSet;

use fedrs_api::labels;
use k8s_openapi::api::apps::v1::ReplicaSet;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Preconditions},
};

use crate::{
    cluster_client::{ClusterClient, RequestError},
    membership::Membership,
    object::none_if_not_found,
    progress::{Progress, Reporter},
};

/// How often a ReplicaSet that changes meanwhile is read again before its deletion fails.
const MAX_READS: u32 = 10;

/// The ReplicaSets of the federation in `member`.
async fn list(
    member: &ClusterClient,
    membership: &Membership,
    namespaces: Option<&[String]>,
) -> Result<Vec<ReplicaSet>, RequestError> {
    let selector = format!(
        "{}={},{}={}",
        labels::FEDERATION,
        membership.federation_label(),
        labels::MEMBER_CLUSTER,
        membership.name
    );
    let Some(namespaces) = namespaces else {
        return member.list(&selector).await;
    };
    let mut sets = Vec::new();
    for namespace in namespaces {
        let api: Api<ReplicaSet> = Api::namespaced(member.client(), namespace);
        let selected = ListParams::default().labels(&selector);
        let operation = format!("list replicasets in namespace {namespace}");
        sets.extend(member.call(operation, api.list(&selected)).await?.items);
    }
    Ok(sets)
}

/// The namespaces of `member` in which ReplicaSets of the federation have replicas.
pub(crate) async fn namespaces_with_replicas(
    member: &ClusterClient,
    membership: &Membership,
) -> Result<BTreeSet<String>, RequestError> {
    let sets = list(member, membership, None).await?;
    let running = sets.iter().filter(|set| replicas(set) > 0);
    Ok(running.filter_map(ResourceExt::namespace).collect())
}

/// The namespaces of `member` with ReplicaSets of the federation.
pub(crate) async fn namespaces(
    member: &ClusterClient,
    membership: &Membership,
) -> Result<BTreeSet<String>, RequestError> {
    let sets = list(member, membership, None).await?;
    Ok(sets.iter().filter_map(ResourceExt::namespace).collect())
}

/// Deletes the ReplicaSets of the federation in `member` that have no replicas, and reports those that have some. Only in
/// `namespaces`, if there are any.
pub(crate) async fn delete_empty(
    member: &ClusterClient,
    membership: &Membership,
    namespaces: Option<&[String]>,
    reporter: &mut dyn Reporter,
) -> Result<(), RequestError> {
    for set in list(member, membership, namespaces).await? {
        let (namespace, name) = (set.namespace().unwrap_or_default(), set.name_any());
        // A large future, in those of all commands that delete.
        let replicas = Box::pin(delete_if_empty(member, set)).await?;
        reporter.progress(match replicas {
            None => Progress::ReplicaSetDeleted { namespace, name },
            Some(replicas) => Progress::ReplicaSetKept {
                namespace,
                name,
                replicas,
            },
        });
    }
    Ok(())
}

/// Desired or existing replicas, whichever is more.
fn replicas(set: &ReplicaSet) -> i32 {
    let desired = set.spec.as_ref().and_then(|spec| spec.replicas);
    let existing = set.status.as_ref().map(|status| status.replicas);
    desired.max(existing).unwrap_or_default()
}

/// Deletes `set` if it has no replicas; returns how many it has otherwise. Reads it again if it was changed since it was read:
/// its status follows the pods.
async fn delete_if_empty(
    member: &ClusterClient,
    mut set: ReplicaSet,
) -> Result<Option<i32>, RequestError> {
    let (namespace, name) = (set.namespace().unwrap_or_default(), set.name_any());
    let sets: Api<ReplicaSet> = Api::namespaced(member.client(), &namespace);
    let mut reads_left = MAX_READS;
    loop {
        if replicas(&set) > 0 {
            return Ok(Some(replicas(&set)));
        }
        let parameters = DeleteParams::background().preconditions(Preconditions {
            uid: set.uid(),
            resource_version: set.resource_version(),
        });
        let operation = format!("delete replicaset {namespace}/{name}");
        let deletion = sets.delete(&name, &parameters);
        match none_if_not_found(member.call(operation, deletion).await) {
            Err(error) if error.code() == Some(409) && reads_left > 0 => reads_left -= 1,
            response => return response.map(|_| None),
        }
        let operation = format!("get replicaset {namespace}/{name}");
        let Some(live) = member.call(operation, sets.get_opt(&name)).await? else {
            return Ok(None);
        };
        set = live;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_set_is_empty_if_it_neither_desires_nor_has_replicas() {
        for (spec, status, expected) in [(0, 0, 0), (2, 1, 2), (0, 3, 3)] {
            let set = json!({
                "apiVersion": "apps/v1", "kind": "ReplicaSet",
                "metadata": {
                    "namespace": "default", "name": "web", "uid": "u", "resourceVersion": "1",
                },
                "spec": { "replicas": spec, "selector": {} }, "status": { "replicas": status },
            });
            assert_eq!(replicas(&serde_json::from_value(set).unwrap()), expected);
        }
    }
}
