//! What the controller reads of objects in members, as decoded from their JSON, and what it has read of one member.

use std::{collections::BTreeMap, sync::Arc};

use fedrs_api::{DisruptionLimit, LocalReplicaSet, ObservedLimit, annotations, labels, selector};
use kube::Resource;
use reflector::partial::{is_present, name, null_as_default};
use selector::LabelSelector;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// What was read of one member. PodDisruptionBudgets and LocalReplicaSets were read before pods, so that all evictions that they had
/// granted are seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observed {
    pub(crate) sets: Vec<LocalSet>,
    pub(crate) budgets: Vec<Budget>,
    /// The pods that the selector selects.
    pub(crate) pods: Vec<Pod>,
    /// Those of the PodDisruptionBudget of a set that contains this one, if there is one.
    pub(crate) covering: Vec<Pod>,
    pub(crate) nodes: Arc<BTreeMap<String, Node>>,
}

/// What is known of one member.
#[derive(Clone, Debug)]
pub(crate) enum Seen {
    Observed(Observed),
    /// It does not answer, for people: its pods can't be reached.
    Away(String),
    /// It could not be read, for people: what was known of it last holds.
    NotRead(String),
}

/// The metadata of an object.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Meta {
    #[serde(deserialize_with = "name")]
    pub(crate) name: String,
    #[serde(deserialize_with = "name")]
    pub(crate) uid: String,
    #[serde(deserialize_with = "name")]
    pub(crate) resource_version: String,
    pub(crate) generation: i64,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) labels: BTreeMap<String, String>,
    /// Those of fedrs.
    #[serde(deserialize_with = "annotations_of_fedrs")]
    pub(crate) annotations: BTreeMap<String, String>,
    #[serde(deserialize_with = "is_present")]
    pub(crate) deletion_timestamp: bool,
    #[serde(deserialize_with = "null_as_default")]
    owner_references: Vec<Owner>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Owner {
    #[serde(deserialize_with = "null_as_default")]
    api_version: String,
    #[serde(deserialize_with = "null_as_default")]
    kind: String,
    #[serde(deserialize_with = "null_as_default")]
    name: String,
    #[serde(deserialize_with = "null_as_default")]
    controller: bool,
}

impl Meta {
    /// The name of the LocalReplicaSet that controls it.
    pub(crate) fn local_set(&self) -> Option<&str> {
        let is_local_set = |owner: &&Owner| {
            owner.controller
                && owner.kind == *LocalReplicaSet::kind(&())
                && owner.api_version == *LocalReplicaSet::api_version(&())
        };
        let owner = self.owner_references.iter().find(is_local_set)?;
        Some(&owner.name)
    }

    /// The limit of the AvailabilitySet with this name.
    pub(crate) fn limit_of(&self, set: &str) -> Option<DisruptionLimit> {
        let key = [annotations::AVAILABILITY_PREFIX, set].concat();
        let annotation = self.annotations.get(&key)?;
        Some(DisruptionLimit::parse(annotation))
    }
}

fn annotations_of_fedrs<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    let mut all: BTreeMap<String, String> = null_as_default(from)?;
    all.retain(|key, value| {
        let is_ours = key.starts_with(annotations::AVAILABILITY_PREFIX);
        is_ours && value.len() <= DisruptionLimit::BYTES_MAX
    });
    Ok(all)
}

/// A condition of a pod or a node.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Condition {
    #[serde(rename = "type", deserialize_with = "null_as_default")]
    type_: String,
    #[serde(deserialize_with = "null_as_default")]
    status: String,
}

fn is_ready(conditions: &[Condition]) -> bool {
    let mut conditions = conditions.iter();
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Node {
    pub(crate) metadata: Meta,
    #[serde(deserialize_with = "null_as_default")]
    spec: NodeSpec,
    #[serde(deserialize_with = "null_as_default")]
    status: NodeStatus,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct NodeSpec {
    #[serde(deserialize_with = "null_as_default")]
    unschedulable: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct NodeStatus {
    #[serde(deserialize_with = "null_as_default")]
    conditions: Vec<Condition>,
}

impl Node {
    pub(crate) fn is_ready(&self) -> bool {
        is_ready(&self.status.conditions)
    }

    /// Whether its pods have to leave it.
    pub(crate) fn is_to_be_left(&self) -> bool {
        let label = self.metadata.labels.get(annotations::EVICT);
        self.spec.unschedulable || label.is_some_and(|value| value != "false")
    }
}

/// A pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Pod {
    pub(crate) metadata: Meta,
    #[serde(deserialize_with = "null_as_default")]
    spec: PodSpec,
    #[serde(deserialize_with = "null_as_default")]
    status: PodStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodSpec {
    #[serde(deserialize_with = "null_as_default")]
    node_name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct PodStatus {
    #[serde(deserialize_with = "null_as_default")]
    phase: String,
    #[serde(deserialize_with = "null_as_default")]
    conditions: Vec<Condition>,
}

impl Pod {
    /// Whether it has neither ended nor is being removed.
    pub(crate) fn is_live(&self) -> bool {
        let has_ended = matches!(&*self.status.phase, "Succeeded" | "Failed");
        !has_ended && !self.metadata.deletion_timestamp
    }

    /// Whether it counts while it is live.
    pub(crate) fn is_enabled(&self) -> bool {
        let label = self.metadata.labels.get(labels::ENABLED);
        label.is_none_or(|value| value != "false")
    }

    /// The node; empty if it has none.
    pub(crate) fn node(&self) -> &str {
        &self.spec.node_name
    }

    /// Whether it is ready, on a node that is.
    pub(crate) fn is_reachable(&self, nodes: &BTreeMap<String, Node>) -> bool {
        let node = nodes.get(self.node());
        is_ready(&self.status.conditions) && node.is_some_and(Node::is_ready)
    }
}

/// A PodDisruptionBudget.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Budget {
    pub(crate) metadata: Meta,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) spec: BudgetSpec,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) status: BudgetStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct BudgetSpec {
    pub(crate) max_unavailable: Value,
    pub(crate) min_available: Value,
    pub(crate) selector: Option<LabelSelector>,
    pub(crate) unhealthy_pod_eviction_policy: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct BudgetStatus {
    #[serde(deserialize_with = "null_as_default")]
    observed_generation: i64,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) disruptions_allowed: u64,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) expected_pods: u64,
    #[serde(deserialize_with = "null_as_default")]
    disrupted_pods: BTreeMap<String, Value>,
}

impl Budget {
    /// Whether the member has observed its present state, and all evictions that were granted are seen.
    pub(crate) fn is_settled(&self) -> bool {
        let observed = self.status.observed_generation;
        observed > 0
            && observed >= self.metadata.generation
            && self.status.disrupted_pods.is_empty()
    }

    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let matching = self.spec.selector.as_ref();
        matching.is_some_and(|matching| selector::matches(matching, labels))
    }

    pub(crate) fn matches_any(&self, pods: &[&Pod]) -> bool {
        pods.iter().any(|pod| self.matches(&pod.metadata.labels))
    }
}

/// `updateMode` of LocalReplicaSets whose pods stay as they are.
const UPDATES_NONE: &str = "Never";

/// A LocalReplicaSet.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct LocalSet {
    pub(crate) metadata: Meta,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) spec: LocalSpec,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) status: LocalStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct LocalSpec {
    pub(crate) replicas: u32,
    #[serde(deserialize_with = "null_as_default")]
    paused: bool,
    #[serde(deserialize_with = "null_as_default")]
    stopped: bool,
    #[serde(deserialize_with = "null_as_default")]
    update_mode: String,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) template: Template,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Template {
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) metadata: TemplateMeta,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct TemplateMeta {
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) labels: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct LocalStatus {
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) unavailable: u32,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) evictable: u32,
    #[serde(deserialize_with = "null_as_default")]
    waiting_evictions: u32,
    #[serde(deserialize_with = "null_as_default")]
    updated_replicas: u32,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) limits: Vec<ObservedLimit>,
}

impl LocalSet {
    /// Its pods that are to be evicted or updated.
    pub(crate) fn waiting(&self) -> u32 {
        let LocalSpec {
            replicas,
            paused,
            stopped,
            ..
        } = self.spec;
        let updates = !paused && self.spec.update_mode != UPDATES_NONE;
        let outdated = replicas.saturating_sub(self.status.updated_replicas);
        let evictions = self.status.waiting_evictions;
        match (stopped, updates) {
            (true, _) => 0,
            (false, true) => evictions.max(outdated),
            (false, false) => evictions,
        }
    }

    /// The number of the write that its controller has seen.
    pub(crate) fn seen_revision(&self, set: &str) -> Option<i64> {
        let mut limits = self.status.limits.iter();
        let seen = limits.find(|limit| limit.availability_set == set)?;
        Some(seen.revision)
    }
}
