//! The metadata of a local ReplicaSet or Deployment.

use fedrs_api::{LocalKind, WorkloadKey};
use jiff::Timestamp;
use reflector::{
    Uid,
    partial::{Text, for_each_item, name, null_as_default},
};
use serde::{Deserialize, Deserializer};

use crate::{
    metadata::{FedrsLabels, Finalizers},
    workload::{Deletion, WorkloadState},
    workload_status::WorkloadStatus,
};

/// The metadata of a ReplicaSet or a Deployment.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkloadMetadata {
    #[serde(deserialize_with = "name")]
    name: Box<str>,
    #[serde(deserialize_with = "name")]
    pub(crate) namespace: Box<str>,
    #[serde(deserialize_with = "name")]
    uid: String,
    #[serde(deserialize_with = "name")]
    resource_version: String,
    #[serde(default)]
    generation: i64,
    deletion_timestamp: Option<Timestamp>,
    #[serde(default, deserialize_with = "null_as_default")]
    finalizers: Finalizers,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) labels: FedrsLabels,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) owner_references: WorkloadOwners,
}

impl WorkloadMetadata {
    pub(crate) fn resource_version(&self) -> &str {
        &self.resource_version
    }

    /// The state of a workload of a kind, without what only one of the kinds has. `lowest_replicas` is its own `replicas`: only
    /// the table knows earlier ones.
    pub(crate) fn into_state(
        self,
        kind: LocalKind,
        replicas: u32,
        spec_hash: u64,
        status: WorkloadStatus,
    ) -> WorkloadState {
        WorkloadState {
            key: WorkloadKey::of_kind(kind, self.namespace, self.name),
            uid: self.uid,
            resource_version: self.resource_version,
            generation: self.generation,
            observed_generation: status.observed_generation,
            replicas,
            status_replicas: status.replicas,
            ready_replicas: status.ready_replicas,
            available_replicas: status.available_replicas,
            fully_labeled_replicas: status.fully_labeled_replicas,
            replica_failure: status.conditions.failure,
            spec_hash,
            lowest_replicas: replicas,
            open_scale_up: None,
            federation: self.labels.federation.unwrap_or_default().into(),
            member_cluster: self.labels.member_cluster.unwrap_or_default().into(),
            deletion: (self.deletion_timestamp).map(|since| {
                Box::new(Deletion {
                    since,
                    finalizers: self.finalizers.0,
                })
            }),
            behind_since: None,
            has_owners: self.owner_references.any,
            has_controller: self.owner_references.has_controller,
            deployment: None,
            owned_by: None,
        }
    }
}

/// The owner references of a workload.
#[derive(Debug, Default)]
pub(crate) struct WorkloadOwners {
    /// Whether there are any.
    any: bool,
    /// Whether one of them is a controller.
    has_controller: bool,
    /// The uid and the name of the Deployment that is its controller.
    pub(crate) deployment: Option<(Uid, Box<str>)>,
}

impl<'de> Deserialize<'de> for WorkloadOwners {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Owner<'a> {
            #[serde(borrow)]
            uid: Text<'a>,
            #[serde(default, deserialize_with = "null_as_default")]
            controller: bool,
            #[serde(borrow)]
            api_version: Option<Text<'a>>,
            #[serde(borrow)]
            kind: Option<Text<'a>>,
            #[serde(borrow)]
            name: Option<Text<'a>>,
        }
        let mut owners = Self::default();
        for_each_item(deserializer, |owner: Owner<'_>| {
            owners.any = true;
            if !owner.controller {
                return;
            }
            owners.has_controller = true;
            let of_group = |text: &Text<'_>| text.0.starts_with("apps/");
            let is_deployment = owner.api_version.as_ref().is_some_and(of_group)
                && owner.kind.is_some_and(|kind| kind.0 == "Deployment");
            // Names are DNS subdomains: no API server stores longer ones.
            let name = owner.name.filter(|name| name.0.len() <= 253);
            owners.deployment = name
                .filter(|_| is_deployment)
                .map(|name| (Uid::of(&owner.uid.0), name.0.into()));
        })?;
        Ok(owners)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn only_a_deployment_that_controls_owns_the_pods() {
        let owner = |change: fn(&mut Value)| {
            let mut owner = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": true });
            change(&mut owner);
            let owners: WorkloadOwners = serde_json::from_value(json!([owner])).unwrap();
            (owners.has_controller, owners.deployment)
        };
        let deployment = Some((Uid::of("d"), "web".into()));
        assert_eq!(owner(|_| {}), (true, deployment));
        for (change, has_controller) in [
            (
                (|owner| owner["controller"] = json!(false)) as fn(&mut Value),
                false,
            ),
            (|owner| owner["controller"] = json!(null), false),
            (|owner| owner["kind"] = json!("Rollout"), true),
            (|owner| owner["kind"] = json!("DeploymentSet"), true),
            (|owner| owner["apiVersion"] = json!("example.com/v1"), true),
            (|owner| owner["name"] = json!(null), true),
            (|owner| owner["name"] = json!("x".repeat(254)), true),
        ] {
            assert_eq!(owner(change), (has_controller, None));
        }
    }
}
