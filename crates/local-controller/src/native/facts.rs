//! What objects say about a pod of a ReplicaSet, and about its workload.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, ReplicaSet},
        core::v1::Pod,
    },
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};

/// Who controls a pod.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Owner<'a> {
    /// A native ReplicaSet.
    ReplicaSet { name: &'a str, uid: &'a str },
    /// A LocalReplicaSet, which looks after its requests.
    LocalReplicaSet,
    /// Nobody: a set may adopt it.
    Nobody,
    /// Another kind.
    Other,
}

impl<'a> Owner<'a> {
    /// The one that the metadata of a pod names.
    pub(super) fn of(metadata: &'a ObjectMeta) -> Self {
        let Some(owner) = controller(metadata) else {
            return Self::Nobody;
        };
        match (&*owner.api_version, &*owner.kind) {
            ("apps/v1", "ReplicaSet") => Self::ReplicaSet {
                name: &owner.name,
                uid: &owner.uid,
            },
            (fedrs_api::names::API_VERSION, "LocalReplicaSet") => Self::LocalReplicaSet,
            _ => Self::Other,
        }
    }
}

fn controller(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    let mut owners = metadata.owner_references.iter().flatten();
    owners.find(|owner| owner.controller == Some(true))
}

/// A pod that exists.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each fact holds with or without the others"
)]
#[derive(Clone, Debug, Default)]
pub(super) struct PodFacts {
    /// The name of its node; empty if it has none.
    pub(super) node: String,
    /// Whether another set, or nobody, has taken it over from its ReplicaSet.
    pub(super) is_foreign: bool,
    /// Whether it is being removed.
    pub(super) is_removed: bool,
    /// Whether it is missed when it goes: it is ready.
    pub(super) is_available: bool,
    /// Whether its node does not answer: nobody knows when the pod will be gone.
    pub(super) is_lost: bool,
}

impl PodFacts {
    /// Those of a pod whose ReplicaSet has this name.
    pub(super) fn of(pod: &Pod, set: &str, is_lost: bool) -> Self {
        let is_own = |owner| matches!(owner, Owner::ReplicaSet { name, .. } if name == set);
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        let status = pod.status.as_ref();
        let mut conditions = status
            .into_iter()
            .flat_map(|of| of.conditions.iter().flatten());
        let is_ready = conditions.any(|of| of.type_ == "Ready" && of.status == "True");
        Self {
            node: node.unwrap_or_default(),
            is_foreign: !is_own(Owner::of(&pod.metadata)),
            is_removed: pod.metadata.deletion_timestamp.is_some(),
            is_available: is_ready && !is_lost,
            is_lost,
        }
    }
}

/// A ReplicaSet with its Deployment, if it has one.
#[derive(Clone, Debug, Default)]
pub(super) struct Workload {
    /// The name of the ReplicaSet.
    pub(super) name: String,
    pub(super) uid: String,
    /// The resourceVersion of the ReplicaSet.
    pub(super) version: String,
    /// The labels of the ReplicaSet, by which policies select it.
    pub(super) labels: BTreeMap<String, String>,
    /// The name of the Deployment.
    pub(super) deployment: Option<String>,
    /// The uid of the Deployment.
    pub(super) deployment_uid: Option<String>,
    /// Whether the Deployment updates its pods. One that is paused does not.
    pub(super) is_rolling: bool,
    /// Whether the status is that of the spec.
    pub(super) is_observed: bool,
    /// The pods that there should be.
    pub(super) replicas: usize,
    /// The pods that there are, without those that are being removed.
    pub(super) created: usize,
    /// Those of them that are available.
    pub(super) available: usize,
}

impl Workload {
    pub(super) fn of(set: &ReplicaSet, deployment: Option<&Deployment>) -> Self {
        let spec = set.spec.as_ref();
        let status = set.status.clone().unwrap_or_default();
        Self {
            name: set.metadata.name.clone().unwrap_or_default(),
            uid: set.metadata.uid.clone().unwrap_or_default(),
            version: set.metadata.resource_version.clone().unwrap_or_default(),
            labels: set.metadata.labels.clone().unwrap_or_default(),
            deployment: deployment.and_then(|of| of.metadata.name.clone()),
            deployment_uid: deployment.and_then(|of| of.metadata.uid.clone()),
            is_rolling: deployment.is_some_and(is_rolling),
            is_observed: is_observed(&set.metadata, status.observed_generation),
            replicas: count(spec.map_or(Some(1), |spec| spec.replicas.or(Some(1)))),
            created: count(Some(status.replicas)),
            available: count(status.available_replicas),
        }
    }

    /// The name of the Deployment that controls a ReplicaSet.
    pub(super) fn deployment_of(set: &ReplicaSet) -> Option<&str> {
        let owner = controller(&set.metadata)?;
        let is_deployment = owner.api_version == "apps/v1" && owner.kind == "Deployment";
        is_deployment.then_some(&owner.name)
    }

    /// Makes it the controller of an object: the Deployment if there is one, as its ReplicaSets come and go.
    pub(super) fn as_owner(&self) -> OwnerReference {
        let (kind, name, uid) = match (&self.deployment, &self.deployment_uid) {
            (Some(name), Some(uid)) => ("Deployment", name, uid),
            _ => ("ReplicaSet", &self.name, &self.uid),
        };
        OwnerReference {
            api_version: "apps/v1".to_owned(),
            kind: kind.to_owned(),
            name: name.clone(),
            uid: uid.clone(),
            controller: Some(true),
            block_owner_deletion: None,
        }
    }

    /// The pods that are missing or not available.
    pub(super) fn unavailable(&self) -> usize {
        self.replicas.saturating_sub(self.available)
    }
}

fn is_observed(metadata: &ObjectMeta, observed: Option<i64>) -> bool {
    observed.unwrap_or_default() >= metadata.generation.unwrap_or_default()
}

fn is_rolling(deployment: &Deployment) -> bool {
    let spec = deployment.spec.clone().unwrap_or_default();
    let status = deployment.status.clone().unwrap_or_default();
    if spec.paused == Some(true) {
        return false;
    }
    let updated = status.updated_replicas.unwrap_or_default();
    !is_observed(&deployment.metadata, status.observed_generation)
        || updated < spec.replicas.unwrap_or(1)
        || updated < status.replicas.unwrap_or_default()
}

fn count(number: Option<i32>) -> usize {
    usize::try_from(number.unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn rolling(generation: i64, spec: &Value, status: &Value) -> bool {
        let deployment: Deployment = serde_json::from_value(json!({
            "metadata": { "name": "web", "generation": generation },
            "spec": {
                "replicas": 3, "paused": spec["paused"],
                "selector": {}, "template": {},
            },
            "status": status,
        }))
        .unwrap();
        is_rolling(&deployment)
    }

    #[test]
    fn m1_a_deployment_is_updated_until_all_pods_are_of_its_template() {
        let status = |observed: i64, updated: i32, all: i32| json!({ "observedGeneration": observed, "updatedReplicas": updated, "replicas": all });
        let (runs, paused) = (json!({}), json!({ "paused": true }));
        for (generation, spec, status, expected) in [
            (2, &runs, status(2, 3, 3), false),
            (2, &runs, status(1, 3, 3), true),
            (2, &runs, status(2, 2, 3), true),
            // Old pods are left.
            (2, &runs, status(2, 3, 4), true),
            // One was evicted.
            (2, &runs, status(2, 2, 2), true),
            (2, &paused, status(2, 1, 3), false),
            (1, &runs, json!({}), true),
        ] {
            assert_eq!(rolling(generation, spec, &status), expected, "{status}");
        }
    }

    #[test]
    fn m1_only_the_controller_of_a_pod_counts() {
        let owner = |api: &str, kind: &str, controller: bool| json!([{ "apiVersion": api, "kind": kind, "name": "web", "uid": "1", "controller": controller }]);
        let set = Owner::ReplicaSet {
            name: "web",
            uid: "1",
        };
        for (owners, expected) in [
            (owner("apps/v1", "ReplicaSet", true), set),
            (owner("apps/v1", "ReplicaSet", false), Owner::Nobody),
            (owner("apps/v1", "StatefulSet", true), Owner::Other),
            (owner("example.com/v1", "ReplicaSet", true), Owner::Other),
            (
                owner("fedrs.dev/v1alpha1", "LocalReplicaSet", true),
                Owner::LocalReplicaSet,
            ),
            (Value::Null, Owner::Nobody),
        ] {
            let pod = json!({ "metadata": { "ownerReferences": owners } });
            let pod: Pod = serde_json::from_value(pod).unwrap();
            assert_eq!(Owner::of(&pod.metadata), expected);
        }
    }
}
