//! A member cluster's version and nodes.

use std::collections::BTreeMap;

use fedrs_api::quantity;
use jiff::Timestamp;
use reflector::{
    Versioned,
    partial::{Text, for_each_item, name, null_as_default},
};
use serde::{Deserialize, Deserializer};
use xxhash_rust::xxh3::xxh3_64;

/// A member cluster's version and nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterInfo {
    /// The version of its API server.
    pub version: Option<String>,
    /// Its nodes.
    pub nodes: NodeInfo,
}

/// What is known of a member cluster's nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeInfo {
    /// Not listed yet.
    #[default]
    Unknown,
    /// The controller's account may not list nodes.
    Forbidden,
    /// As of the last list.
    Known(NodeTotals),
}

impl NodeInfo {
    /// Whether there are nodes, and none of them is ready: no pod runs.
    #[must_use]
    pub fn none_is_ready(&self) -> bool {
        matches!(self, Self::Known(totals) if totals.total > 0 && totals.ready == 0)
    }

    /// Whether none of the ready nodes has reported since the member returned.
    #[must_use]
    pub fn none_is_confirmed(&self) -> bool {
        matches!(self, Self::Known(totals) if totals.ready > 0 && totals.ready == totals.unconfirmed)
    }
}

/// Sums over all nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeTotals {
    /// Nodes.
    pub total: u32,
    /// Nodes that are ready.
    pub ready: u32,
    /// Of these, nodes that have not reported since the member returned.
    pub unconfirmed: u32,
    /// Allocatable CPU of the nodes that are ready and not cordoned, in thousandths of a core.
    pub cpu_millis: u64,
    /// Allocatable memory of the same nodes, in bytes.
    pub memory_bytes: u64,
    /// Allocatable pods of the same nodes.
    pub pods: u64,
}

impl NodeTotals {
    /// The allocatable resources as canonical quantities, by name.
    #[must_use]
    pub fn allocatable(&self) -> BTreeMap<String, String> {
        [
            ("cpu", quantity::of_millis(self.cpu_millis)),
            ("memory", quantity::of_bytes(self.memory_bytes)),
            ("pods", self.pods.to_string()),
        ]
        .map(|(resource, amount)| (resource.to_owned(), amount))
        .into()
    }

    /// These and `other` nodes.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            total: self.total.saturating_add(other.total),
            ready: self.ready.saturating_add(other.ready),
            unconfirmed: self.unconfirmed.saturating_add(other.unconfirmed),
            cpu_millis: self.cpu_millis.saturating_add(other.cpu_millis),
            memory_bytes: self.memory_bytes.saturating_add(other.memory_bytes),
            pods: self.pods.saturating_add(other.pods),
        }
    }

    /// The same nodes, none of which has reported.
    pub(crate) fn unconfirmed(self) -> Self {
        Self {
            unconfirmed: self.ready,
            ..self
        }
    }

    pub(crate) fn add(&mut self, node: &NodeObject) {
        self.total = self.total.saturating_add(1);
        if !node.is_ready() {
            return;
        }
        self.ready = self.ready.saturating_add(1);
        if node.spec.unschedulable {
            return;
        }
        let amount = |text: &str, unit| {
            let millis = quantity::millis(text).unwrap_or_default();
            u64::try_from(millis / unit).unwrap_or(u64::MAX)
        };
        let allocatable = &node.status.allocatable;
        self.cpu_millis = self.cpu_millis.saturating_add(amount(&allocatable.cpu, 1));
        self.memory_bytes = self
            .memory_bytes
            .saturating_add(amount(&allocatable.memory, 1000));
        self.pods = self.pods.saturating_add(amount(&allocatable.pods, 1000));
    }
}

/// The fields of a node that the sums need.
#[derive(Debug, Deserialize)]
pub(crate) struct NodeObject {
    pub(crate) metadata: NodeMetadata,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: NodeSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: NodeStatus,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeMetadata {
    #[serde(deserialize_with = "name")]
    pub(crate) name: Box<str>,
    #[serde(default, deserialize_with = "name")]
    resource_version: Box<str>,
}

impl Versioned for NodeObject {
    fn resource_version(&self) -> Option<&str> {
        Some(&self.metadata.resource_version)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NodeSpec {
    unschedulable: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NodeStatus {
    #[serde(deserialize_with = "null_as_default")]
    allocatable: Allocatable,
    #[serde(rename = "conditions", deserialize_with = "null_as_default")]
    ready: ReadyCondition,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Allocatable {
    cpu: String,
    memory: String,
    pods: String,
}

/// The condition `Ready`.
#[derive(Debug, Default)]
struct ReadyCondition {
    is_true: bool,
    since: Option<Timestamp>,
    heartbeat: Option<u64>,
}

/// The hash of a text, of which only changes matter. For `#[serde(deserialize_with)]`.
pub(crate) fn text_hash<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u64>, D::Error> {
    let text = Option::<Text<'_>>::deserialize(deserializer)?;
    Ok(text.map(|text| xxh3_64(text.0.as_bytes())))
}

impl<'de> Deserialize<'de> for ReadyCondition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Condition<'a> {
            #[serde(borrow)]
            r#type: Text<'a>,
            #[serde(borrow)]
            status: Text<'a>,
            last_transition_time: Option<Timestamp>,
            #[serde(default, deserialize_with = "text_hash")]
            last_heartbeat_time: Option<u64>,
        }
        let mut ready = None;
        for_each_item(deserializer, |condition: Condition<'_>| {
            if condition.r#type.0 == "Ready" {
                ready.get_or_insert(Self {
                    is_true: condition.status.0 == "True",
                    since: condition.last_transition_time,
                    heartbeat: condition.last_heartbeat_time,
                });
            }
        })?;
        Ok(ready.unwrap_or_default())
    }
}

impl NodeObject {
    pub(crate) fn is_ready(&self) -> bool {
        self.status.ready.is_true
    }

    /// Since when it has been ready, or not, by the cluster's clock.
    pub(crate) fn since(&self) -> Option<Timestamp> {
        self.status.ready.since
    }

    /// The hash of the time at which its kubelet last reported that it is ready.
    pub(crate) fn heartbeat(&self) -> Option<u64> {
        self.status.ready.heartbeat
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(cpu: &str, memory: &str, ready: &str, unschedulable: bool) -> Value {
        json!({
            "metadata": { "name": "n" },
            "spec": if unschedulable { json!({ "unschedulable": true }) } else { json!({}) },
            "status": {
                "allocatable": { "cpu": cpu, "memory": memory, "pods": "110", "hugepages-2Mi": "0" },
                "conditions": [{ "type": "MemoryPressure", "status": "False" }, { "type": "Ready", "status": ready }],
            },
        })
    }

    #[test]
    fn allocatable_resources_of_ready_nodes_are_added_up() {
        let nodes = [
            node("3920m", "16311504Ki", "True", false),
            node("4", "16Gi", "True", false),
            node("64", "256Gi", "True", true),
            node("64", "256Gi", "False", false),
            node("64", "256Gi", "Unknown", false),
            json!({ "metadata": { "name": "new" }, "status": null }),
            json!({ "metadata": { "name": "odd" }, "status": { "allocatable": { "cpu": "no number" }, "conditions": [{ "type": "Ready", "status": "True" }] } }),
        ];
        let mut totals = NodeTotals::default();
        for node in nodes {
            totals.add(&serde_json::from_value(node).expect("a node"));
        }
        assert_eq!((totals.total, totals.ready), (7, 4));
        let expected = [("cpu", "7920m"), ("memory", "33088720Ki"), ("pods", "220")];
        let expected = expected.map(|(name, amount)| (name.to_owned(), amount.to_owned()));
        assert_eq!(totals.allocatable(), expected.into());
    }
}
