//! Has clients leave the pods that a local workload removes next (`spec.drainSeconds`, D2).
//!
//! Such a pod has an annotation with the time, by which EndpointSets leave it out, and the lowest `pod-deletion-cost`, by which the
//! member's ReplicaSet controller removes it before others that are ready. One that is no longer to be removed gets back what it had.

use std::{cmp::Reverse, collections::BTreeSet};

use controller_base::calls::CallError;
use fedrs_api::annotations;
use jiff::Timestamp;
use reflector::partial::{self, Text, for_each_entry, for_each_item, is_present, null_as_default};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::{
    LocalWorkload,
    pod_labels::{ControllerUid, DependentRef, Resource},
};
use crate::{
    check::{Outcome, Precondition},
    manifest::Source,
};

/// The most pods that change at once: the next check goes on.
const MAX_PODS: usize = 1000;

/// A pod, as far as it matters which is removed.
#[derive(Debug, Deserialize)]
struct Pod {
    metadata: PodMeta,
    #[serde(default, deserialize_with = "null_as_default")]
    status: PodStatus,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodMeta {
    #[serde(deserialize_with = "partial::name")]
    name: Box<str>,
    #[serde(deserialize_with = "partial::name")]
    uid: Box<str>,
    #[serde(default, deserialize_with = "is_present")]
    deletion_timestamp: bool,
    #[serde(default, deserialize_with = "null_as_default")]
    annotations: Annotations,
    #[serde(
        rename = "ownerReferences",
        default,
        deserialize_with = "null_as_default"
    )]
    controller: ControllerUid,
}

#[derive(Debug, Default)]
struct Annotations {
    draining: Option<Timestamp>,
    cost: Option<i32>,
    cost_before: Option<i32>,
}

impl<'de> Deserialize<'de> for Annotations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut found = Self::default();
        let keys = [
            annotations::DRAINING,
            annotations::POD_DELETION_COST,
            annotations::DELETION_COST_BEFORE,
        ];
        for_each_entry(deserializer, &keys, |key, value| match key {
            annotations::DRAINING => {
                found.draining = Some(value.parse().unwrap_or(Timestamp::UNIX_EPOCH));
            }
            annotations::POD_DELETION_COST => found.cost = value.parse().ok(),
            _ => found.cost_before = value.parse().ok(),
        })?;
        Ok(found)
    }
}

#[derive(Debug, Default, Deserialize)]
struct PodStatus {
    #[serde(default, rename = "conditions", deserialize_with = "ready_since")]
    ready_since: Option<Timestamp>,
}

/// Since when the pod is ready, if it is.
fn ready_since<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Condition<'a> {
        #[serde(borrow)]
        r#type: Text<'a>,
        #[serde(borrow)]
        status: Text<'a>,
        #[serde(borrow)]
        last_transition_time: Option<Text<'a>>,
    }
    let mut ready = None;
    for_each_item(deserializer, |condition: Condition<'_>| {
        if (&*condition.r#type.0, &*condition.status.0) == ("Ready", "True") {
            let since = condition.last_transition_time;
            let since = since.and_then(|since| since.0.parse().ok());
            ready = Some(since.unwrap_or(Timestamp::UNIX_EPOCH));
        }
    })?;
    Ok(ready)
}

impl Pod {
    fn is_ready(&self) -> bool {
        self.status.ready_since.is_some()
    }

    fn draining(&self) -> Option<Timestamp> {
        self.metadata.annotations.draining
    }

    /// The pods that a ReplicaSet would remove first come first: of a low cost, then those that are ready for a short time.
    fn by_removal(&self) -> impl Ord + use<> {
        let cost = self.metadata.annotations.cost.unwrap_or(0);
        let since = Reverse(self.status.ready_since);
        (cost, since, self.metadata.name.clone())
    }

    /// The metadata of a pod that drains `since` then, or no longer.
    fn patch(&self, since: Option<Timestamp>) -> Value {
        let Annotations {
            cost, cost_before, ..
        } = self.metadata.annotations;
        let text = |number: i32| number.to_string();
        let (cost, before) = match since {
            Some(_) => (Some(i32::MIN), cost),
            None => (cost_before, None),
        };
        json!({ "annotations": {
            annotations::DRAINING: since.map(|since| since.to_string()),
            annotations::POD_DELETION_COST: cost.map(text),
            annotations::DELETION_COST_BEFORE: before.map(text),
        } })
    }
}

/// The changes after which `wanted` of the ready `pods` drain: those that have drained for longest, and others `since` now.
fn changes(mut pods: Vec<Pod>, wanted: usize, since: Timestamp) -> Vec<(DependentRef, Value)> {
    pods.sort_by_cached_key(|pod| (pod.draining().unwrap_or(Timestamp::MAX), pod.by_removal()));
    let ready = pods.iter().filter(|pod| pod.is_ready()).take(wanted);
    let chosen: BTreeSet<_> = ready.map(|pod| pod.metadata.uid.clone()).collect();
    let change = |pod: Pod| {
        let is_chosen = chosen.contains(&pod.metadata.uid);
        let patch = match pod.draining() {
            None if is_chosen => pod.patch(Some(since)),
            // One that is not ready, and may be again, is removed before others: it may go on draining.
            Some(_) if !is_chosen && (pod.is_ready() || wanted == 0) => pod.patch(None),
            _ => return None,
        };
        let PodMeta { name, uid, .. } = pod.metadata;
        Some((DependentRef { name, uid }, patch))
    };
    pods.into_iter().filter_map(change).take(MAX_PODS).collect()
}

impl LocalWorkload<'_> {
    /// Has as many of the ready pods of the workload that was `seen` drain as are `wanted`.
    pub(super) async fn drain_pods(
        self,
        source: &Source<'_>,
        seen: &Precondition,
        (wanted, since): (u32, Timestamp),
    ) -> Result<Outcome, CallError> {
        let selector = &source.frs.selector_text;
        self.set_draining(selector, &seen.uid, (wanted, since))
            .await?;
        Ok(Outcome::PodsDraining {
            spec_version: seen.spec_version,
        })
    }

    /// Has as many of the ready pods of the workload with this uid, which `selector` matches, drain as are `wanted`.
    pub(super) async fn set_draining(
        self,
        selector: &str,
        uid: &str,
        (wanted, since): (u32, Timestamp),
    ) -> Result<(), CallError> {
        let owners = self.owners_of_pods(selector, uid).await?;
        let mut pods = Vec::new();
        let list = self.list_each(Resource::Pods, selector, |pod: Pod| {
            let is_live = !pod.metadata.deletion_timestamp;
            if is_live && pod.metadata.controller.is_one_of(&owners) {
                pods.push(pod);
            }
        });
        list.await?;
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        let changes = changes(pods, wanted, since);
        self.patch_each(Resource::Pods, changes).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ready since second 10, or not ready.
    fn pod(name: &str, ready: bool, annotations: &Value) -> Pod {
        let status = if ready { "True" } else { "False" };
        let pod = json!({
            "metadata": { "name": name, "uid": name, "annotations": annotations },
            "status": { "conditions": [
                { "type": "Ready", "status": status, "lastTransitionTime": "1970-01-01T00:00:10Z" },
            ] },
        });
        serde_json::from_str(&pod.to_string()).unwrap()
    }

    fn idle(name: &str) -> Pod {
        pod(name, true, &json!({}))
    }

    fn draining(name: &str, second: i64) -> Pod {
        let since = Timestamp::from_second(second).unwrap().to_string();
        let cost = i32::MIN.to_string();
        let annotations = json!({
            annotations::DRAINING: since,
            annotations::POD_DELETION_COST: cost,
            annotations::DELETION_COST_BEFORE: "5",
        });
        pod(name, true, &annotations)
    }

    /// Which pods begin to drain (`+`), or end that (`-`).
    fn changed(pods: Vec<Pod>, wanted: usize) -> Vec<String> {
        let changes = changes(pods, wanted, Timestamp::UNIX_EPOCH);
        let text = |(pod, patch): (DependentRef, Value)| {
            let begins = patch["annotations"][annotations::DRAINING].is_string();
            format!("{}{}", if begins { '+' } else { '-' }, pod.name)
        };
        changes.into_iter().map(text).collect()
    }

    #[test]
    fn d2_as_many_ready_pods_drain_as_are_to_be_removed() {
        let newest = || {
            let mut pod = idle("new");
            pod.status.ready_since = Timestamp::from_second(20).ok();
            pod
        };
        let cheap = || {
            let cost = json!({ annotations::POD_DELETION_COST: "-7" });
            pod("cheap", true, &cost)
        };
        let unready = || pod("unready", false, &json!({}));
        for (name, pods, wanted, expected) in [
            ("none", vec![idle("a")], 0, &[][..]),
            ("by name", vec![idle("b"), idle("a")], 1, &["+a"]),
            ("the newest", vec![idle("a"), newest()], 1, &["+new"]),
            ("by cost", vec![newest(), cheap()], 1, &["+cheap"]),
            ("ready ones", vec![unready(), idle("a")], 2, &["+a"]),
            (
                "beside others",
                vec![draining("a", 1), idle("b")],
                2,
                &["+b"],
            ),
            ("as it is", vec![draining("a", 1), idle("b")], 1, &[]),
            (
                "the latest ends",
                vec![draining("a", 2), draining("b", 1)],
                1,
                &["-a"],
            ),
            ("all end", vec![draining("a", 2), idle("b")], 0, &["-a"]),
        ] {
            assert_eq!(changed(pods, wanted), expected, "{name}");
        }
    }

    #[test]
    fn d2_a_pod_gets_back_its_cost() {
        let since = Timestamp::from_second(30).unwrap();
        let costly = json!({ annotations::POD_DELETION_COST: "9" });
        let marked = pod("a", true, &costly).patch(Some(since));
        let expected = json!({ "annotations": {
            annotations::DRAINING: "1970-01-01T00:00:30Z",
            annotations::POD_DELETION_COST: "-2147483648",
            annotations::DELETION_COST_BEFORE: "9",
        } });
        assert_eq!(marked, expected);
        let unmarked = draining("a", 1).patch(None);
        let expected = json!({ "annotations": {
            annotations::DRAINING: null,
            annotations::POD_DELETION_COST: "5",
            annotations::DELETION_COST_BEFORE: null,
        } });
        assert_eq!(unmarked, expected);
    }
}
