//! What a node object says, as far as its pods depend on it (L18).

use std::{collections::BTreeMap, time::Duration};

use fedrs_api::{MaintenanceMark, annotations};
use jiff::Timestamp;
use serde::{Deserialize, Deserializer};

use crate::{
    observed_pod::NodeState,
    pod::{Absence, Eviction},
};

/// A node object, decoded into the fields that its pods depend on.
#[derive(Clone, Debug, Deserialize)]
pub struct ObservedNode {
    metadata: Metadata,
    #[serde(default)]
    spec: Option<Spec>,
    #[serde(default)]
    status: Option<Status>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    resource_version: String,
    labels: Option<BTreeMap<String, String>>,
    /// What the Maintenance that has marked it says.
    #[serde(rename = "annotations", default, deserialize_with = "planned_work")]
    work: PlannedWork,
}

/// What a Maintenance says of a node.
#[derive(Clone, Copy, Debug, Default)]
struct PlannedWork {
    deadline: Option<Timestamp>,
    absence: Option<Absence>,
}

fn planned_work<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PlannedWork, D::Error> {
    let annotations = Option::<BTreeMap<String, String>>::deserialize(deserializer)?;
    let annotation = annotations.as_ref();
    let mark = annotation.and_then(|all| all.get(annotations::MAINTENANCE));
    let mark = mark.and_then(|mark| MaintenanceMark::parse(mark));
    let mark = mark.unwrap_or_default();
    let absence = mark.until.zip(mark.duration_seconds);
    Ok(PlannedWork {
        deadline: mark.deadline.map(|deadline| deadline.0),
        absence: absence.and_then(|(until, seconds)| {
            let duration = Duration::from_secs(u64::try_from(seconds).ok()?);
            let until = until.0;
            Some(Absence { until, duration })
        }),
    })
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    taints: Option<Vec<Taint>>,
    unschedulable: Option<bool>,
}

#[derive(Clone, Debug, Deserialize)]
struct Taint {
    key: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    conditions: Option<Vec<Condition>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Condition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
    #[serde(default)]
    last_transition_time: Option<Timestamp>,
}

/// Kubernetes' taint of a node that an administrator knows to be down.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

impl ObservedNode {
    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// The version.
    #[must_use]
    pub fn resource_version(&self) -> &str {
        &self.metadata.resource_version
    }

    /// Whether it runs its pods, and who asks them to leave it. That nothing more is scheduled to it (a cordon) moves nothing.
    #[must_use]
    pub fn state(&self) -> NodeState {
        let taints = self.spec.iter().flat_map(|spec| &spec.taints).flatten();
        let is_out_of_service = taints.into_iter().any(|taint| taint.key == OUT_OF_SERVICE);
        let by_node = is_out_of_service || self.is_true("NetworkUnavailable");
        let labels = self.metadata.labels.as_ref();
        let asked = labels.and_then(|labels| labels.get(annotations::EVICT));
        let by_label = asked.and_then(|asked| Eviction::parse(asked));
        let by_node = by_node.then_some(Eviction::Involuntary);
        let ready = self.condition("Ready");
        let since = ready.and_then(|ready| ready.last_transition_time);
        let is_ready = self.is_true("Ready");
        NodeState {
            is_ready,
            not_ready_since: since.filter(|_| !is_ready),
            is_cordoned: self.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true),
            eviction: by_node.into_iter().chain(by_label).min(),
            mark: by_label,
            deadline: self.metadata.work.deadline,
            absence: self.metadata.work.absence,
        }
    }

    fn is_true(&self, type_: &str) -> bool {
        let condition = self.condition(type_);
        condition.is_some_and(|condition| condition.status == "True")
    }

    fn condition(&self, type_: &str) -> Option<&Condition> {
        let conditions = self.status.iter().flat_map(|status| &status.conditions);
        conditions
            .flatten()
            .find(|condition| condition.type_ == type_)
    }
}
