//! A pod, decoded into the few fields that the counts need.
//!
//! ```text
//! pod JSON (6 KB) --> PodObject (dropped after its event) --> PodEntry (24 bytes, kept)
//! ```

use std::borrow::Cow;

use fedrs_api::names;
use jiff::Timestamp;
use reflector::{
    ResourceVersion, Uid, Versioned,
    partial::{Text, for_each_item, is_present, name, null_as_default},
};
use serde::{Deserialize, Deserializer};

use crate::{
    metadata::{FedrsLabels, Owners, PodAnnotations},
    nodes::NodeId,
    unix_seconds::UnixSeconds,
};

/// The fields of a pod that the counts need.
#[derive(Debug, Deserialize)]
pub struct PodObject {
    pub(crate) metadata: PodMetadata,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: PodSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: PodStatus,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PodMetadata {
    pub(crate) uid: Uid,
    #[serde(deserialize_with = "name")]
    pub(crate) namespace: Box<str>,
    #[serde(deserialize_with = "name")]
    pub(crate) resource_version: Box<str>,
    creation_timestamp: Option<UnixSeconds>,
    #[serde(default, deserialize_with = "is_present")]
    deletion_timestamp: bool,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) labels: FedrsLabels,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) annotations: PodAnnotations,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) owner_references: Owners,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodSpec {
    #[serde(default, deserialize_with = "not_empty")]
    node_name: Option<Box<str>>,
    /// Whether a person has to start it (M7, M12).
    #[serde(
        default,
        rename = "schedulingGates",
        deserialize_with = "has_start_gate"
    )]
    is_gated: bool,
}

#[derive(Debug, Default, Deserialize)]
struct PodStatus {
    #[serde(default, rename = "phase", deserialize_with = "is_finished")]
    finished: bool,
    #[serde(default, deserialize_with = "null_as_default")]
    conditions: PodConditions,
}

#[derive(Debug, Default)]
struct PodConditions {
    ready: bool,
    scheduled: bool,
    /// Transition and message of `PodScheduled` while it is not true.
    unscheduled_since: Option<UnixSeconds>,
    unscheduled_message: Option<Box<str>>,
}

fn not_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<str>>, D::Error> {
    let text = Option::<Text>::deserialize(deserializer)?;
    Ok(text
        // The names of nodes are DNS subdomains.
        .filter(|text| (1..=253).contains(&text.0.len()))
        .map(|text| text.0.into()))
}

fn has_start_gate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    #[derive(Deserialize)]
    struct SchedulingGate<'a> {
        #[serde(borrow)]
        name: Cow<'a, str>,
    }
    let mut is_gated = false;
    for_each_item(deserializer, |gate: SchedulingGate<'_>| {
        is_gated |= gate.name == names::START;
    })?;
    Ok(is_gated)
}

/// Whether the phase is final.
fn is_finished<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let phase = Option::<Text>::deserialize(deserializer)?;
    Ok(phase.is_some_and(|phase| matches!(&*phase.0, "Succeeded" | "Failed")))
}

impl<'de> Deserialize<'de> for PodConditions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Condition<'a> {
            #[serde(borrow)]
            r#type: Cow<'a, str>,
            #[serde(borrow)]
            status: Cow<'a, str>,
            last_transition_time: Option<UnixSeconds>,
            #[serde(borrow)]
            message: Option<Cow<'a, str>>,
        }
        let mut conditions = Self::default();
        for_each_item(deserializer, |condition: Condition<'_>| {
            match (&*condition.r#type, &*condition.status) {
                ("Ready", "True") => conditions.ready = true,
                ("PodScheduled", "True") => conditions.scheduled = true,
                ("PodScheduled", _) => {
                    conditions.unscheduled_since = condition.last_transition_time;
                    conditions.unscheduled_message = condition.message.map(Into::into);
                }
                _ => {}
            }
        })?;
        Ok(conditions)
    }
}

impl Versioned for PodObject {
    fn resource_version(&self) -> Option<&str> {
        Some(&self.metadata.resource_version)
    }
}

impl PodObject {
    /// The pod's state; `None` if it has finished, which counts as deleted (C8).
    ///
    /// A pod without a node is unscheduled, whether it is unschedulable, gated or not yet seen by the scheduler (F34); not one that a person
    /// has to start (M12), for which another cluster would do no better. `began` returns since when by our clock; the member's own time is its
    /// argument.
    pub(crate) fn state(
        &self,
        began: impl FnOnce(Option<Timestamp>) -> Timestamp,
    ) -> Option<PodState> {
        let conditions = &self.status.conditions;
        if self.status.finished {
            None
        } else if self.metadata.deletion_timestamp {
            Some(PodState::Terminating)
        } else if self.spec.node_name.is_none() && !conditions.scheduled && !self.spec.is_gated {
            let since = conditions
                .unscheduled_since
                .or(self.metadata.creation_timestamp);
            let since = began(since.map(UnixSeconds::timestamp));
            Some(PodState::Unscheduled(UnixSeconds::of(since)))
        } else if conditions.ready && self.metadata.annotations.draining.is_some() {
            Some(PodState::Draining)
        } else if conditions.ready {
            Some(PodState::Ready)
        } else {
            Some(PodState::NotReady)
        }
    }

    /// The node that it is bound to.
    pub(crate) fn node_name(&self) -> Option<&str> {
        self.spec.node_name.as_deref()
    }

    /// The scheduler's message, while the pod has no node.
    pub(crate) fn take_unscheduled_message(&mut self) -> Option<Box<str>> {
        self.status.conditions.unscheduled_message.take()
    }
}

/// The state of a pod that has not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PodState {
    /// Being deleted.
    Terminating,
    /// Without a node since then, by our clock.
    Unscheduled(UnixSeconds),
    /// With a node, not ready.
    NotReady,
    /// Ready.
    Ready,
    /// Ready, and clients are to leave it.
    Draining,
}

/// A [`PodState`] in 4 bytes, with the node: a pod has either a time since which it has no node, up to the year 2072, or a
/// node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackedPodState(u32);

impl PackedPodState {
    const WITH_NODE: u32 = 0b11 << 30;
    const STATE_SHIFT: u32 = 28;
    /// No node is known by this number: the last of 28 bits.
    const NO_NODE: u32 = (1 << Self::STATE_SHIFT) - 1;

    pub(crate) fn new(state: PodState, node: Option<NodeId>) -> Self {
        let number = match state {
            PodState::Unscheduled(UnixSeconds(since)) => {
                return Self(since.min(Self::WITH_NODE - 1));
            }
            PodState::Terminating => 0,
            PodState::NotReady => 1,
            PodState::Ready => 2,
            PodState::Draining => 3,
        };
        let node = node.map_or(Self::NO_NODE, |node| node.0.min(Self::NO_NODE));
        Self(Self::WITH_NODE | number << Self::STATE_SHIFT | node)
    }

    fn state(self) -> PodState {
        if self.0 < Self::WITH_NODE {
            return PodState::Unscheduled(UnixSeconds(self.0));
        }
        match self.0 >> Self::STATE_SHIFT & 0b11 {
            0 => PodState::Terminating,
            1 => PodState::NotReady,
            2 => PodState::Ready,
            _ => PodState::Draining,
        }
    }

    fn node(self) -> Option<NodeId> {
        let node = self.0 & Self::NO_NODE;
        (self.0 >= Self::WITH_NODE && node != Self::NO_NODE).then_some(NodeId(node))
    }
}

/// Index of an owner: 4 bytes in each [`PodEntry`] instead of a uid of 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnerId(pub(crate) u32);

/// What is kept of a pod.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PodEntry {
    pub(crate) version: ResourceVersion,
    pub(crate) owner: OwnerId,
    /// The number of the list during or after which the pod was last seen.
    pub(crate) epoch: u32,
    /// Hash of the template it was created from; 0 if the annotation is absent.
    pub(crate) template: u32,
    pub(crate) state: PackedPodState,
}

impl PodEntry {
    pub(crate) fn state(&self) -> PodState {
        self.state.state()
    }

    /// The node that it is bound to.
    pub(crate) fn node(&self) -> Option<NodeId> {
        self.state.node()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const NOW: u32 = 1_000_000;

    fn pod(spec: &Value, status: &Value) -> PodObject {
        serde_json::from_value(json!({
            "metadata": {
                "uid": "p", "namespace": "default", "resourceVersion": "7", "creationTimestamp": "1970-01-02T00:00:00Z",
                "labels": {"app": "web", "fedrs.dev/replica-set": "web"}, "managedFields": [{"manager": "x"}],
                "ownerReferences": [{"uid": "s", "controller": true, "kind": "ReplicaSet"}],
            },
            "spec": spec, "status": status,
        }))
        .unwrap()
    }

    fn state(spec: &Value, status: &Value) -> Option<PodState> {
        pod(spec, status).state(|since| since.unwrap_or(UnixSeconds(NOW).timestamp()))
    }

    fn scheduled(status: &str, since: &str) -> Value {
        json!({"conditions": [{"type": "PodScheduled", "status": status, "lastTransitionTime": since, "message": "0/3 nodes"}]})
    }

    #[test]
    fn f34_unscheduled_since_the_condition_or_since_its_creation() {
        let created = UnixSeconds(86_400);
        for (status, since) in [
            (json!({}), created),
            (Value::Null, created),
            (json!({"conditions": null}), created),
            (
                scheduled("False", "1970-01-03T00:00:00Z"),
                UnixSeconds(2 * 86_400),
            ),
            (
                scheduled("Unknown", "1970-01-03T00:00:00Z"),
                UnixSeconds(2 * 86_400),
            ),
        ] {
            assert_eq!(
                state(&json!({}), &status),
                Some(PodState::Unscheduled(since)),
                "{status}"
            );
        }
    }

    #[test]
    fn scheduled_by_its_node_or_by_the_condition() {
        let pending = json!({"phase": "Pending"});
        assert_eq!(
            state(&json!({"nodeName": "n"}), &pending),
            Some(PodState::NotReady)
        );
        assert_eq!(
            state(&json!({}), &scheduled("True", "1970-01-03T00:00:00Z")),
            Some(PodState::NotReady)
        );
        assert_eq!(
            state(&json!({"nodeName": ""}), &pending),
            Some(PodState::Unscheduled(UnixSeconds(86_400)))
        );
    }

    #[test]
    fn ready_by_its_condition_and_without_a_state_when_finished() {
        let ready =
            json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        assert_eq!(
            state(&json!({"nodeName": "n"}), &ready),
            Some(PodState::Ready)
        );
        for phase in ["Succeeded", "Failed"] {
            assert_eq!(
                state(&json!({"nodeName": "n"}), &json!({"phase": phase})),
                None
            );
        }
    }

    #[test]
    fn the_message_is_that_of_the_scheduler() {
        let mut pod = pod(&json!({}), &scheduled("False", "1970-01-03T00:00:00Z"));
        assert_eq!(pod.take_unscheduled_message().as_deref(), Some("0/3 nodes"));
    }

    /// The gates of others hold a pod back as a lack of room does.
    #[test]
    fn f34_m12_a_pod_that_a_person_has_to_start_is_not_unscheduled() {
        let pending = scheduled("False", "1970-01-02T00:00:00Z");
        let unscheduled = PodState::Unscheduled(UnixSeconds(86_400));
        for (gates, expected) in [
            (json!(null), unscheduled),
            (json!([{ "name": "example.com/quota" }]), unscheduled),
            (json!([{ "name": "fedrs.dev/start" }]), PodState::NotReady),
        ] {
            let spec = json!({ "schedulingGates": gates });
            assert_eq!(state(&spec, &pending), Some(expected));
        }
    }
}
