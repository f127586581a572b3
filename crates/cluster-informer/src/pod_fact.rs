//! A pod, decoded from the wire into what counts need of it, and dropped.
//!
//! ```text
//! pod JSON (6 KB) --> PodObject (lives for one event) --> PodFact (24 bytes, kept)
//! ```

use std::borrow::Cow;

use jiff::Timestamp;
use reflector::{
    ResourceVersion, Uid, Versioned,
    partial::{Text, for_each_item, is_present, null_as_default},
};
use serde::{Deserialize, Deserializer};

use crate::{
    counts::OwnerId,
    wire::{ControllerOwner, Marks, Seconds, TemplateOf},
};

/// A pod as it comes over the wire, partially.
#[derive(Debug, Deserialize)]
pub struct PodObject {
    pub(crate) metadata: PodMeta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: PodSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: PodStatus,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PodMeta {
    pub(crate) uid: Uid,
    pub(crate) namespace: Box<str>,
    pub(crate) resource_version: Box<str>,
    creation_timestamp: Option<Seconds>,
    #[serde(default, deserialize_with = "is_present")]
    deletion_timestamp: bool,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) labels: Marks,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) annotations: TemplateOf,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) owner_references: ControllerOwner,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodSpec {
    #[serde(default, deserialize_with = "not_empty")]
    node_name: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodStatus {
    #[serde(default, deserialize_with = "finished")]
    phase: bool,
    #[serde(default, deserialize_with = "null_as_default")]
    conditions: PodConditions,
}

#[derive(Debug, Default)]
struct PodConditions {
    ready: bool,
    scheduled: bool,
    /// Of `PodScheduled` while it is false.
    unscheduled_since: Option<Seconds>,
    unscheduled_message: Option<Box<str>>,
}

fn not_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Option::<Text>::deserialize(deserializer)?.is_some_and(|text| !text.0.is_empty()))
}

/// Whether the phase is one that a pod never leaves.
fn finished<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
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
            last_transition_time: Option<Seconds>,
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
    /// Where the pod stands at `now`; `None` if it has finished and is as good as gone (C8).
    ///
    /// A pod without a node waits, be it unschedulable, gated or not looked at yet (F34).
    pub(crate) fn standing(&self, now: Timestamp) -> Option<Standing> {
        let conditions = &self.status.conditions;
        if self.status.phase {
            None
        } else if self.metadata.deletion_timestamp {
            Some(Standing::Terminating)
        } else if !self.spec.node_name && !conditions.scheduled {
            let since = conditions
                .unscheduled_since
                .or(self.metadata.creation_timestamp);
            // A member whose clock is ahead must not put the wait into our future.
            Some(Standing::Unscheduled(
                since.unwrap_or(Seconds::of(now)).min(Seconds::of(now)),
            ))
        } else if conditions.ready {
            Some(Standing::Ready)
        } else {
            Some(Standing::NotReady)
        }
    }

    /// The scheduler's words, while the pod has no node.
    pub(crate) fn waiting_message(&mut self) -> Option<Box<str>> {
        self.status.conditions.unscheduled_message.take()
    }
}

/// What a pod counts as: exactly one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Has a deletion timestamp.
    Terminating,
    /// Has no node since then.
    Unscheduled(Seconds),
    /// Has a node and is not ready.
    NotReady,
    /// Ready.
    Ready,
}

/// A [`Standing`] in 4 bytes: a time, or one of the last numbers, which stand for times in the year 2106.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackedStanding(u32);

impl PackedStanding {
    const READY: u32 = u32::MAX;
    const NOT_READY: u32 = u32::MAX - 1;
    const TERMINATING: u32 = u32::MAX - 2;
}

impl From<Standing> for PackedStanding {
    fn from(standing: Standing) -> Self {
        Self(match standing {
            Standing::Ready => Self::READY,
            Standing::NotReady => Self::NOT_READY,
            Standing::Terminating => Self::TERMINATING,
            Standing::Unscheduled(Seconds(since)) => since.min(Self::TERMINATING - 1),
        })
    }
}

impl From<PackedStanding> for Standing {
    fn from(packed: PackedStanding) -> Self {
        match packed.0 {
            PackedStanding::READY => Self::Ready,
            PackedStanding::NOT_READY => Self::NotReady,
            PackedStanding::TERMINATING => Self::Terminating,
            since => Self::Unscheduled(Seconds(since)),
        }
    }
}

/// What is kept of a pod.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PodFact {
    pub(crate) version: ResourceVersion,
    pub(crate) owner: OwnerId,
    /// The list in which, or the watch after which, it was last seen.
    pub(crate) epoch: u32,
    /// Hash of the template it was made from; 0 if it doesn't say.
    pub(crate) template: u32,
    pub(crate) standing: PackedStanding,
}

impl PodFact {
    pub(crate) fn standing(&self) -> Standing {
        self.standing.into()
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

    fn standing(spec: &Value, status: &Value) -> Option<Standing> {
        pod(spec, status).standing(Seconds(NOW).timestamp())
    }

    fn scheduled(status: &str, since: &str) -> Value {
        json!({"conditions": [{"type": "PodScheduled", "status": status, "lastTransitionTime": since, "message": "0/3 nodes"}]})
    }

    #[test]
    fn f34_waits_since_the_scheduler_said_so_or_since_its_creation() {
        let created = Seconds(86_400);
        for (status, since) in [
            (json!({}), created),
            (Value::Null, created),
            (json!({"conditions": null}), created),
            (
                scheduled("False", "1970-01-03T00:00:00Z"),
                Seconds(2 * 86_400),
            ),
            (
                scheduled("Unknown", "1970-01-03T00:00:00Z"),
                Seconds(2 * 86_400),
            ),
            (scheduled("False", "2050-01-03T00:00:00Z"), Seconds(NOW)),
        ] {
            assert_eq!(
                standing(&json!({}), &status),
                Some(Standing::Unscheduled(since)),
                "{status}"
            );
        }
    }

    #[test]
    fn a_node_or_the_condition_ends_the_wait() {
        let pending = json!({"phase": "Pending"});
        assert_eq!(
            standing(&json!({"nodeName": "n"}), &pending),
            Some(Standing::NotReady)
        );
        assert_eq!(
            standing(&json!({}), &scheduled("True", "1970-01-03T00:00:00Z")),
            Some(Standing::NotReady)
        );
        assert_eq!(
            standing(&json!({"nodeName": ""}), &pending),
            Some(Standing::Unscheduled(Seconds(86_400)))
        );
    }

    #[test]
    fn ready_by_its_condition_and_gone_when_finished() {
        let ready =
            json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        assert_eq!(
            standing(&json!({"nodeName": "n"}), &ready),
            Some(Standing::Ready)
        );
        for phase in ["Succeeded", "Failed"] {
            assert_eq!(
                standing(&json!({"nodeName": "n"}), &json!({"phase": phase})),
                None
            );
        }
    }

    #[test]
    fn the_message_is_the_schedulers() {
        let mut pod = pod(&json!({}), &scheduled("False", "1970-01-03T00:00:00Z"));
        assert_eq!(pod.waiting_message().as_deref(), Some("0/3 nodes"));
    }
}
