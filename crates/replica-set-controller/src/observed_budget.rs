//! What a PodDisruptionBudget says, and the requests for that of a set.

use std::collections::BTreeMap;

use fedrs_api::{
    ValidLocalReplicaSet, annotations, labels,
    selector::{self, LabelSelector},
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    disruption::{BudgetChange, DisruptionBudget},
    pod_template::owner_reference,
    request::{Request, Verb},
};

/// A PodDisruptionBudget, decoded into the fields that matter to sets.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ObservedBudget {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    namespace: String,
    uid: String,
    resource_version: String,
    #[serde(default)]
    generation: i64,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    owner_references: Option<Vec<OwnerReference>>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OwnerReference {
    uid: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    controller: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    min_available: Value,
    max_unavailable: Value,
    selector: Option<LabelSelector>,
    unhealthy_pod_eviction_policy: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    observed_generation: Option<i64>,
    current_healthy: usize,
    disrupted_pods: Option<BTreeMap<String, Value>>,
}

/// Pods that are not healthy may be evicted at any time: they use the budget anyway.
const POLICY: &str = "AlwaysAllow";

/// The collection of all.
pub const BUDGETS: &str = "/apis/policy/v1/poddisruptionbudgets";

/// The name of the PodDisruptionBudget of the set with this name.
#[must_use]
pub fn budget_name(set: &str) -> String {
    format!("lrs-{set}")
}

/// The path of the PodDisruptionBudget of a set.
#[must_use]
pub fn budget_path(set: &ValidLocalReplicaSet) -> String {
    format!("{}/{}", collection(set), budget_name(&set.name))
}

fn collection(set: &ValidLocalReplicaSet) -> String {
    let namespace = &set.namespace;
    format!("/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets")
}

impl ObservedBudget {
    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// The namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.metadata.namespace
    }

    /// The version.
    #[must_use]
    pub fn resource_version(&self) -> &str {
        &self.metadata.resource_version
    }

    /// Whether it is that of the set, or was before the set of this name was deleted without its pods (C7).
    #[must_use]
    pub fn is_of(&self, set: &ValidLocalReplicaSet) -> bool {
        let labels = self.metadata.labels.as_ref();
        let label = labels.and_then(|labels| labels.get(labels::LOCAL_REPLICA_SET));
        self.metadata.name == budget_name(&set.name)
            && match self.controller() {
                Some(owner) => owner.uid == set.uid,
                None => label == Some(&set.name),
            }
    }

    /// The name of the set that it belongs to; `None` if it is another's.
    #[must_use]
    pub fn set(&self) -> Option<&str> {
        let owner = self
            .controller()
            .filter(|owner| owner.kind == "LocalReplicaSet")?;
        (self.metadata.name == budget_name(&owner.name)).then_some(&owner.name)
    }

    /// Whether the set must not have one of its own if this one matches its pods. Of two sets with overlapping selectors the first by
    /// name has one.
    #[must_use]
    pub fn excludes_that_of(&self, set: &ValidLocalReplicaSet) -> bool {
        let owner = self.controller();
        let is_of_later_set =
            owner.is_some_and(|owner| owner.kind == "LocalReplicaSet" && owner.name > set.name);
        !is_of_later_set
    }

    /// Whether it matches a pod with these labels.
    #[must_use]
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let matching = self.spec.selector.as_ref();
        matching.is_some_and(|matching| selector::matches(matching, labels))
    }

    /// Whether sets may have to do something that they had not to do when it was like `before`. Its version alone, and more healthy
    /// pods, change nothing.
    #[must_use]
    pub fn is_news_after(&self, before: &Self) -> bool {
        self.metadata.uid != before.metadata.uid
            || self.metadata.generation != before.metadata.generation
            || self.metadata.labels != before.metadata.labels
            || self.metadata.annotations != before.metadata.annotations
            || self.metadata.owner_references != before.metadata.owner_references
            || self.is_settled() != before.is_settled()
            || self.status.current_healthy < before.status.current_healthy
    }

    /// The facts for a step of `set`.
    #[must_use]
    pub fn facts(&self, set: &ValidLocalReplicaSet) -> DisruptionBudget<'_> {
        let min_available = self.spec.min_available.as_u64();
        let wanted = selector::normalized(&set.selector);
        let selector = self.spec.selector.as_ref().map(selector::normalized);
        let has_spec = selector == Some(wanted)
            && self.spec.max_unavailable.is_null()
            && self.spec.unhealthy_pod_eviction_policy.as_deref() == Some(POLICY);
        let replicas = self.replicas();
        DisruptionBudget {
            uid: &self.metadata.uid,
            generation: self.metadata.generation,
            min_available: min_available.map_or(0, number),
            replicas: replicas.unwrap_or_default(),
            is_intact: has_spec
                && min_available.is_some()
                && replicas.is_some()
                && self.controller().is_some(),
            is_settled: self.is_settled(),
            healthy: self.status.current_healthy,
        }
    }

    fn is_settled(&self) -> bool {
        // Nothing is granted before it is observed for the first time.
        let observed = self.status.observed_generation.unwrap_or_default();
        let disrupted = self.status.disrupted_pods.as_ref();
        (observed == 0 || observed >= self.metadata.generation)
            && disrupted.is_none_or(BTreeMap::is_empty)
    }

    fn replicas(&self) -> Option<usize> {
        let annotations = self.metadata.annotations.as_ref()?;
        annotations.get(annotations::REPLICAS)?.parse().ok()
    }

    fn controller(&self) -> Option<&OwnerReference> {
        let mut owners = self.metadata.owner_references.iter().flatten();
        owners.find(|owner| owner.controller == Some(true))
    }

    /// The operations that make it what it should be, at this version.
    fn patch(&self, set: &ValidLocalReplicaSet, min_available: usize) -> Value {
        let Metadata {
            uid,
            resource_version,
            annotations,
            owner_references,
            ..
        } = &self.metadata;
        let replicas = set.replicas.to_string();
        let annotation = if annotations.is_some() {
            let key = annotations::REPLICAS.replace('/', "~1");
            json!({ "op": "add", "path": format!("/metadata/annotations/{key}"), "value": replicas })
        } else {
            let all = json!({ annotations::REPLICAS: replicas });
            json!({ "op": "add", "path": "/metadata/annotations", "value": all })
        };
        let mut operations = vec![
            json!({ "op": "test", "path": "/metadata/uid", "value": uid }),
            json!({ "op": "test", "path": "/metadata/resourceVersion", "value": resource_version }),
            annotation,
            json!({ "op": "add", "path": "/spec", "value": spec(set, min_available) }),
        ];
        if self.controller().is_none() {
            let owner = owner_reference(set);
            operations.push(if owner_references.is_some() {
                json!({ "op": "add", "path": "/metadata/ownerReferences/-", "value": owner })
            } else {
                json!({ "op": "add", "path": "/metadata/ownerReferences", "value": [owner] })
            });
        }
        operations.into()
    }
}

/// The request for a change of the PodDisruptionBudget of `set`, which was last seen as `observed`. A patch is a JSON patch.
#[must_use]
pub fn budget_request(
    set: &ValidLocalReplicaSet,
    observed: Option<&ObservedBudget>,
    change: BudgetChange,
) -> Request {
    match (observed, change.min_available()) {
        (Some(observed), Some(min_available)) => Request {
            verb: Verb::Patch,
            path: budget_path(set),
            body: observed.patch(set, min_available),
        },
        (None, Some(min_available)) => Request {
            verb: Verb::Create,
            path: collection(set),
            body: json!({
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {
                    "name": budget_name(&set.name),
                    "namespace": set.namespace,
                    "labels": { labels::LOCAL_REPLICA_SET: set.name },
                    "annotations": { annotations::REPLICAS: set.replicas.to_string() },
                    "ownerReferences": [owner_reference(set)],
                },
                "spec": spec(set, min_available),
            }),
        },
        (observed, None) => {
            let uid = observed.map(|observed| &observed.metadata.uid);
            Request {
                verb: Verb::Delete,
                path: budget_path(set),
                body: json!({ "preconditions": { "uid": uid } }),
            }
        }
    }
}

fn spec(set: &ValidLocalReplicaSet, min_available: usize) -> Value {
    json!({
        "minAvailable": min_available,
        "selector": set.selector,
        "unhealthyPodEvictionPolicy": POLICY,
    })
}

fn number(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}
