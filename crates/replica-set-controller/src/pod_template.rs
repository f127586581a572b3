//! The complete template of a set's pods: what the user wrote, and what the controller adds (L1, L3).
//!
//! It has all fields that differ between the pods of two templates, so that its hash identifies the template of a pod, and
//! [`Change`](crate::Change) compares all of them.

use std::{collections::BTreeMap, sync::Arc};

use fedrs_api::{
    PodTemplate, TemplateMetadata, ValidLocalReplicaSet, labels, names, template_hash,
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use xxhash_rust::xxh3::xxh3_64;

/// The taints that Kubernetes adds to nodes that are not ready, or can't be reached. Its taint manager would delete their pods past
/// every budget: the controller evicts them.
const UNREACHABLE: [&str; 2] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
];

/// The segment of all nodes.
const DEFAULT_SEGMENT: &str = "default";

/// The template of a set's pods.
#[derive(Clone, Debug, PartialEq)]
pub struct CompleteTemplate {
    /// What all pods have in common.
    pub template: Arc<PodTemplate>,
    /// Its hash.
    pub hash: u32,
    /// Labels of which each pod has one of several values.
    pub slots: Vec<Slots>,
}

/// The slots of a constraint with `maxPods` above 1: two pods of one slot never share a value of the constraint's label, so that
/// at most as many pods as there are slots do. Any scheduler enforces that, as pod anti-affinity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slots {
    /// The label that has the number of the slot.
    pub label: String,
    /// How many there are.
    pub count: u32,
}

/// How many pods have each slot, by the slots of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotUse(Vec<BTreeMap<u32, usize>>);

impl CompleteTemplate {
    /// That of `set`.
    #[must_use]
    pub fn of(set: &ValidLocalReplicaSet) -> Self {
        let mut metadata = set.template.metadata.clone();
        let slots: Vec<_> = (set.antiaffinity.iter())
            .filter(|constraint| constraint.max_pods > 1)
            .map(|constraint| Slots {
                label: slot_label(&constraint.key),
                count: constraint.max_pods,
            })
            .collect();
        if !set.account_id.is_empty() {
            let account = (labels::ACCOUNT.to_owned(), set.account_id.clone());
            metadata.labels.extend([account]);
        }
        let mut spec = serde_json::from_str(set.template.spec.as_str())
            .expect("a valid template has an object as its spec");
        complete_spec(set, &mut spec);
        let template = PodTemplate {
            metadata,
            spec: Value::Object(spec),
        };
        Self {
            hash: template_hash(&template),
            template: Arc::new(template),
            slots,
        }
    }

    /// The slots that pods with these labels have: see [`ObservedPod::labels_with_slots`](crate::ObservedPod::labels_with_slots).
    #[must_use]
    pub fn slots_of<'a>(
        &self,
        labels: impl Iterator<Item = &'a BTreeMap<String, String>>,
    ) -> SlotUse {
        let mut slots_in_use = SlotUse(vec![BTreeMap::new(); self.slots.len()]);
        if self.slots.is_empty() {
            return slots_in_use;
        }
        for labels in labels {
            for (slots, counts) in self.slots.iter().zip(&mut slots_in_use.0) {
                if let Some(slot) = slots.of(labels) {
                    *counts.entry(slot).or_default() += 1;
                }
            }
        }
        slots_in_use
    }

    /// Whether a pod with these labels has a slot that at least two pods more have than another one. No two pods of one slot share a
    /// value of the constraint's label: when pods or nodes have come and gone, there may be no node for a pod of a slot that is in use
    /// everywhere, and room for one of another slot.
    #[must_use]
    pub fn is_crowded(&self, labels: &BTreeMap<String, String>, slots_in_use: &SlotUse) -> bool {
        self.slots
            .iter()
            .zip(&slots_in_use.0)
            .any(|(slots, counts)| {
                let count = slots.of(labels).and_then(|slot| counts.get(&slot));
                count.is_some_and(|count| *count >= slots.least(counts) + 2)
            })
    }

    /// The manifest of the pod `name` of `set`. It takes the slots that the fewest pods have.
    #[must_use]
    pub fn pod(
        &self,
        set: &ValidLocalReplicaSet,
        (name, prefers): (&str, Option<&str>),
        slots_in_use: &mut SlotUse,
    ) -> Value {
        let TemplateMetadata {
            mut labels,
            annotations,
            ..
        } = self.template.metadata.clone();
        let mut spec = self.template.spec.clone();
        labels.insert(labels::REVISION_HASH.to_owned(), hash_text(self.hash));
        for (slots, counts) in self.slots.iter().zip(&mut slots_in_use.0) {
            let slot = slots.take_least_used(counts).to_string();
            put_slot(&mut spec, &slots.label, &slot);
            labels.insert(slots.label.clone(), slot);
        }
        if let Some(node) = prefers {
            prefer(&mut spec, node);
        }
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": set.namespace,
                "labels": labels,
                "annotations": annotations,
                "ownerReferences": [owner_reference(set)],
            },
            "spec": spec,
        })
    }
}

impl Slots {
    /// The slot of a pod with these labels.
    fn of(&self, labels: &BTreeMap<String, String>) -> Option<u32> {
        let slot = labels.get(&self.label)?.parse().ok()?;
        (slot < self.count).then_some(slot)
    }

    /// How many pods have the slot that the fewest have.
    fn least(&self, counts: &BTreeMap<u32, usize>) -> usize {
        let are_all_in_use = u32::try_from(counts.len()) == Ok(self.count);
        let least = counts.values().min().filter(|_| are_all_in_use);
        least.copied().unwrap_or_default()
    }

    /// One more pod takes the first of the slots that the fewest have.
    fn take_least_used(&self, counts: &mut BTreeMap<u32, usize>) -> u32 {
        let free = (0..self.count).find(|slot| !counts.contains_key(slot));
        let least = || counts.iter().min_by_key(|(_, count)| **count);
        let slot = free.or_else(|| least().map(|(slot, _)| *slot));
        let slot = slot.expect("a constraint has slots");
        *counts.entry(slot).or_default() += 1;
        slot
    }
}

/// The owner reference of a set's pods, with which the garbage collector deletes them after the set (C7).
pub(crate) fn owner_reference(set: &ValidLocalReplicaSet) -> Value {
    json!({
        "apiVersion": names::API_VERSION,
        "kind": "LocalReplicaSet",
        "name": set.name,
        "uid": set.uid,
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// The hash of a template as pods carry it.
pub(crate) fn hash_text(hash: u32) -> String {
    format!("{hash:08x}")
}

fn complete_spec(set: &ValidLocalReplicaSet, spec: &mut Map<String, Value>) {
    // L3: what would hold a pod back, or pin it.
    spec.remove("schedulingGates");
    spec.remove("nodeName");
    push(
        spec,
        "readinessGates",
        json!({ "conditionType": names::IN_PLACE_UPDATE }),
    );
    tolerate_unreachable(spec);
    if set.node_segment_id != DEFAULT_SEGMENT {
        let selector = spec.entry("nodeSelector").or_insert_with(|| json!({}));
        if let Some(selector) = selector.as_object_mut() {
            let segment = set.node_segment_id.clone().into();
            selector.insert(labels::NODE_SEGMENT.to_owned(), segment);
        }
    }
    for constraint in &set.antiaffinity {
        let mut selector = set.selector.clone();
        if constraint.max_pods > 1 {
            // Its own number takes the place of this when a pod is created; a template for another number differs.
            let slot = (
                slot_label(&constraint.key),
                format!("of-{}", constraint.max_pods),
            );
            selector.match_labels.get_or_insert_default().extend([slot]);
        }
        keep_apart(spec, &selector, &constraint.key);
    }
}

/// Pods tolerate nodes that are not ready without limit, whatever the user wrote of these taints.
fn tolerate_unreachable(spec: &mut Map<String, Value>) {
    let is_limited = |toleration: &Value| {
        let key = toleration["key"].as_str().unwrap_or_default();
        let is_no_execute = matches!(toleration["effect"].as_str(), None | Some("NoExecute" | ""));
        is_no_execute
            && (UNREACHABLE.contains(&key) || key.is_empty())
            && !toleration["tolerationSeconds"].is_null()
    };
    if let Some(tolerations) = spec.get_mut("tolerations").and_then(Value::as_array_mut) {
        tolerations.retain(|toleration| !is_limited(toleration));
    }
    for key in UNREACHABLE {
        let toleration = json!({ "key": key, "operator": "Exists", "effect": "NoExecute" });
        push(spec, "tolerations", toleration);
    }
}

/// Adds an anti-affinity against the pods that `selector` selects.
fn keep_apart(spec: &mut Map<String, Value>, selector: &impl Serialize, topology: &str) {
    let term = json!({ "labelSelector": selector, "topologyKey": topology });
    let affinity = object(spec, "affinity");
    let Some(affinity) = affinity else { return };
    if let Some(apart) = object(affinity, "podAntiAffinity") {
        push(
            apart,
            "requiredDuringSchedulingIgnoredDuringExecution",
            term,
        );
    }
}

/// Puts the slot of a pod into the anti-affinity against pods of the same slot.
fn put_slot(spec: &mut Value, label: &str, slot: &str) {
    let terms = spec
        .pointer_mut("/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution");
    for term in terms.and_then(Value::as_array_mut).into_iter().flatten() {
        let labels = term.pointer_mut("/labelSelector/matchLabels");
        let value = labels
            .and_then(Value::as_object_mut)
            .and_then(|labels| labels.get_mut(label));
        if let Some(value) = value {
            *value = slot.into();
        }
    }
}

/// Has the pod prefer the node that the one before had.
fn prefer(spec: &mut Value, node: &str) {
    let fields = json!([{ "key": "metadata.name", "operator": "In", "values": [node] }]);
    let term = json!({ "weight": 100, "preference": { "matchFields": fields } });
    let affinity = spec
        .as_object_mut()
        .and_then(|spec| object(spec, "affinity"));
    if let Some(nodes) = affinity.and_then(|affinity| object(affinity, "nodeAffinity")) {
        push(
            nodes,
            "preferredDuringSchedulingIgnoredDuringExecution",
            term,
        );
    }
}

fn slot_label(topology: &str) -> String {
    let hash = xxh3_64(topology.as_bytes()) >> 32;
    format!("{}-{hash:08x}", labels::SLOT)
}

fn object<'v>(
    parent: &'v mut Map<String, Value>,
    name: &str,
) -> Option<&'v mut Map<String, Value>> {
    let value = parent.entry(name).or_insert(Value::Null);
    if value.is_null() {
        *value = json!({});
    }
    value.as_object_mut()
}

fn push(parent: &mut Map<String, Value>, name: &str, item: Value) {
    let list = parent.entry(name).or_insert(Value::Null);
    if list.is_null() {
        *list = json!([]);
    }
    if let Some(list) = list.as_array_mut()
        && !list.contains(&item)
    {
        list.push(item);
    }
}
