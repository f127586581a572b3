//! The local ReplicaSets of a federation in a member: a drained member keeps them, with 0 replicas.

use fedrs_api::labels;
use serde_json::{Value, json};

use crate::{
    cluster_client::{ClusterClient, RequestError},
    membership::Membership,
    object::none_if_not_found,
    progress::{Progress, Reporter},
};

/// A local ReplicaSet.
#[derive(Debug, PartialEq, Eq)]
struct LocalReplicaSet {
    namespace: String,
    name: String,
    uid: String,
    resource_version: String,
    /// Desired or existing replicas, whichever is more.
    replicas: u64,
}

impl LocalReplicaSet {
    fn from_value(set: &Value) -> Self {
        let text = |field: &str| {
            let value = set["metadata"][field].as_str();
            value.unwrap_or_default().to_owned()
        };
        let replicas = |part: &str| set[part]["replicas"].as_u64().unwrap_or_default();
        Self {
            namespace: text("namespace"),
            name: text("name"),
            uid: text("uid"),
            resource_version: text("resourceVersion"),
            replicas: replicas("spec").max(replicas("status")),
        }
    }

    /// Deletes the set, if it has not been changed since it was read.
    async fn delete(&self, member: &ClusterClient) -> Result<(), RequestError> {
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
            "preconditions": { "uid": self.uid, "resourceVersion": self.resource_version },
        });
        let (namespace, name) = (&self.namespace, &self.name);
        let operation = format!("delete replicaset {namespace}/{name}");
        let path = format!("/apis/apps/v1/namespaces/{namespace}/replicasets/{name}");
        let response = member
            .send(operation, "DELETE", &path, Some(&options))
            .await;
        none_if_not_found(response).map(drop)
    }
}

/// Deletes the ReplicaSets of the federation in `member` that have no replicas, and reports those that have some.
pub(crate) async fn delete_empty(
    member: &ClusterClient,
    membership: &Membership,
    reporter: &mut dyn Reporter,
) -> Result<(), RequestError> {
    let selector = |label: &str, value: &str| format!("{}%3D{value}", label.replace('/', "%2F"));
    let uri = format!(
        "/apis/apps/v1/replicasets?labelSelector={}%2C{}",
        selector(labels::FEDERATION, membership.federation_label()),
        selector(labels::MEMBER_CLUSTER, &membership.name)
    );
    let list = member
        .send("list the replicasets of the federation", "GET", &uri, None)
        .await?;
    let items = list["items"].as_array().into_iter().flatten();
    let sets = items.map(LocalReplicaSet::from_value);
    let (empty, others): (Vec<_>, Vec<_>) = sets.partition(|set| set.replicas == 0);
    for set in empty {
        set.delete(member).await?;
        reporter.progress(Progress::ReplicaSetDeleted {
            namespace: set.namespace,
            name: set.name,
        });
    }
    for set in others {
        reporter.progress(Progress::ReplicaSetKept {
            namespace: set.namespace,
            name: set.name,
            replicas: set.replicas,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_empty_if_it_neither_desires_nor_has_replicas() {
        for (spec, status, replicas) in [(0, 0, 0), (2, 1, 2), (0, 3, 3)] {
            let set = json!({
                "metadata": {
                    "namespace": "default", "name": "web", "uid": "u", "resourceVersion": "1",
                },
                "spec": { "replicas": spec }, "status": { "replicas": status },
            });
            assert_eq!(LocalReplicaSet::from_value(&set).replicas, replicas);
        }
    }
}
