//! What a pod object says, as facts for a step.

mod stopped;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use fedrs_api::{ValidLocalReplicaSet, annotations, labels, names, selector};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::{
    in_place::InPlaceRecord,
    kept::{
        self, CONDITIONS, DISRUPTED, JsonList, READY, RESIZE_IN_PROGRESS, RESIZE_PENDING, SCHEDULED,
    },
    pod::{
        Absence, DRAINING, Eviction, EvictionBy, Gate, InPlace, Life, Node, Owner, Pod, Readiness,
        UNSCHEDULABLE,
    },
    resize::{Container, Resize, ResizeStatus},
    resources::Resources,
    time::after,
};

/// A node, as far as its pods depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeState {
    /// Whether it is ready.
    pub is_ready: bool,
    /// Since when it is not ready; `None` if it is, or never was.
    pub not_ready_since: Option<Timestamp>,
    /// Whether it is cordoned.
    pub is_cordoned: bool,
    /// Who asks its pods to leave it.
    pub eviction: Option<Eviction>,
    /// What its label `fedrs.dev/evict` asks for, which is a part of that.
    pub mark: Option<Eviction>,
    /// When they leave it whatever holds them up, as its Maintenance says (M15).
    pub deadline: Option<Timestamp>,
    /// When it is expected back, and how long it is away, as its Maintenance says (M9).
    pub absence: Option<Absence>,
}

impl NodeState {
    /// The state at `now`. A node that has not been ready for `timeout` evicts its pods, as Kubernetes does after the
    /// `tolerationSeconds` of a pod.
    #[must_use]
    pub fn at(self, timeout: Duration, now: Timestamp) -> Self {
        let is_lost = !self.is_ready && self.evicts_at(timeout).is_none_or(|at| at <= now);
        let by_loss = is_lost.then_some(Eviction::Involuntary);
        Self {
            eviction: self.eviction.into_iter().chain(by_loss).min(),
            ..self
        }
    }

    /// When it evicts its pods if it does not become ready.
    #[must_use]
    pub fn evicts_at(&self, timeout: Duration) -> Option<Timestamp> {
        self.not_ready_since.map(|since| after(since, timeout))
    }
}

/// A pod object, decoded into the fields that a step needs.
#[derive(Clone, Debug, Deserialize)]
pub struct ObservedPod {
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
    namespace: String,
    uid: String,
    resource_version: String,
    generation: Option<i64>,
    creation_timestamp: Timestamp,
    deletion_timestamp: Option<Timestamp>,
    deletion_grace_period_seconds: Option<i64>,
    #[serde(default, deserialize_with = "kept::shared")]
    labels: Option<Arc<BTreeMap<String, String>>>,
    #[serde(default, deserialize_with = "kept::own_annotations")]
    annotations: Option<BTreeMap<String, String>>,
    owner_references: Option<Box<[OwnerReference]>>,
    /// Whether it has the finalizer of shutdowns.
    #[serde(
        rename = "finalizers",
        default,
        deserialize_with = "kept::has_shutdown"
    )]
    has_finalizer: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OwnerReference {
    uid: String,
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    controller: Option<bool>,
}

/// Who controls a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodController<'a> {
    /// Nobody: a set may adopt it.
    Nobody,
    /// The LocalReplicaSet with this uid.
    Set(&'a str),
    /// Somebody else.
    Other,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    node_name: Option<String>,
    readiness_gates: Option<Box<[ReadinessGate]>>,
    tolerations: JsonList,
    /// Whether it has the scheduling gate of pods that a person starts.
    #[serde(rename = "schedulingGates", deserialize_with = "kept::has_start_gate")]
    is_gated: bool,
    containers: Option<Box<[SpecContainer]>>,
    init_containers: Option<Box<[SpecContainer]>>,
}

#[derive(Clone, Debug, Deserialize)]
struct SpecContainer {
    name: String,
    #[serde(default)]
    resources: Option<Resources>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReadinessGate {
    condition_type: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    phase: Option<String>,
    observed_generation: Option<i64>,
    #[serde(deserialize_with = "known_conditions")]
    conditions: Option<Box<[Condition]>>,
    container_statuses: Option<Box<[ContainerStatus]>>,
    init_container_statuses: Option<Box<[ContainerStatus]>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Condition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    last_transition_time: Option<Timestamp>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContainerStatus {
    name: String,
    #[serde(rename = "containerID", default)]
    container_id: Option<String>,
    #[serde(default)]
    restart_count: Option<u32>,
    #[serde(default)]
    state: Option<ContainerState>,
    #[serde(default)]
    resources: Option<Resources>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerState {
    waiting: Option<Waiting>,
    #[serde(deserialize_with = "kept::is_present")]
    terminated: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Waiting {
    reason: Option<String>,
}

impl ObservedPod {
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

    /// The uid.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.metadata.uid
    }

    /// The version.
    #[must_use]
    pub fn resource_version(&self) -> &str {
        &self.metadata.resource_version
    }

    /// Whether it is being removed.
    #[must_use]
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Who controls it.
    #[must_use]
    pub fn controller(&self) -> PodController<'_> {
        let mut owners = self.metadata.owner_references.iter().flatten();
        match owners.find(|owner| owner.controller == Some(true)) {
            None => PodController::Nobody,
            Some(owner) if owner.kind == KIND && owner.api_version == names::API_VERSION => {
                PodController::Set(&owner.uid)
            }
            Some(_) => PodController::Other,
        }
    }

    /// Whether the LocalReplicaSet with this uid controls it.
    #[must_use]
    pub fn is_controlled_by(&self, set: &str) -> bool {
        self.controller() == PodController::Set(set)
    }

    /// The node that it is scheduled to; `None` before that.
    #[must_use]
    pub fn node(&self) -> Option<&str> {
        let name = self.spec().and_then(|spec| spec.node_name.as_deref());
        name.filter(|name| !name.is_empty())
    }

    /// The labels; `None` if it has none.
    #[must_use]
    pub fn labels(&self) -> Option<&BTreeMap<String, String>> {
        self.metadata.labels.as_deref()
    }

    /// Keeps one copy of the labels, if `sibling` has the same: most pods of a set do.
    pub fn share_labels(&mut self, sibling: &Self) {
        if self.metadata.labels == sibling.metadata.labels {
            self.metadata.labels.clone_from(&sibling.metadata.labels);
        }
    }

    /// The tolerations.
    pub(crate) fn tolerations(&self) -> Vec<Value> {
        self.spec()
            .map_or_else(Vec::new, |spec| spec.tolerations.items())
    }

    /// The generation of the spec; `None` before Kubernetes 1.33.
    pub(crate) fn generation(&self) -> Option<i64> {
        self.metadata.generation
    }

    /// The containers and init containers.
    pub(crate) fn containers(&self) -> Vec<Container<'_>> {
        let lists = (self.spec()).map(|spec| [&spec.containers, &spec.init_containers]);
        let wanted = |name: &str| {
            let mut containers = lists.into_iter().flatten().flatten().flatten();
            let container = containers.find(|container| container.name == name)?;
            Some(container.resources.unwrap_or_default())
        };
        let containers = self.container_statuses();
        containers
            .map(|container| Container {
                name: &container.name,
                id: container
                    .container_id
                    .as_deref()
                    .filter(|id| !id.is_empty()),
                wanted: wanted(&container.name),
                resources: container.resources,
            })
            .collect()
    }

    /// The facts for a step of `set`; `None` if the pod has nothing to do with it. A node that `nodes` does not show was deleted: its
    /// pods have to leave it. Whether one that is not ready evicts them, `nodes` says: [`NodeState::at`].
    #[must_use]
    pub fn facts<'a>(
        &'a self,
        set: &ValidLocalReplicaSet,
        nodes: impl FnOnce(&str) -> Option<NodeState>,
    ) -> Option<Pod<'a>> {
        let owner = self.owner(set)?;
        let node = self.node().map(|name| (name, nodes(name)));
        let by_node = node.and_then(|(_, state)| match state {
            Some(state) => state.eviction,
            None => Some(Eviction::Involuntary),
        });
        let (in_place, resize) = self.in_place();
        let own = self.eviction();
        Some(Pod {
            name: &self.metadata.name,
            uid: &self.metadata.uid,
            revision: self
                .label(labels::REVISION_HASH)
                .and_then(|hash| u32::from_str_radix(hash, 16).ok()),
            owner,
            node: node.map(|(name, state)| Node {
                name,
                is_ready: state.is_some_and(|state| state.is_ready),
                is_cordoned: state.is_some_and(|state| state.is_cordoned),
            }),
            life: self.life(),
            eviction: own.into_iter().chain(by_node).min(),
            eviction_by: own.map_or(EvictionBy::Node, |_| EvictionBy::Pod),
            absence: node.and_then(|(_, state)| state?.absence),
            migration: None,
            shard: None,
            guard: self.guard(),
            is_gated: self.spec().is_some_and(|spec| spec.is_gated),
            is_destroyed: false,
            is_disrupted: self
                .condition(DISRUPTED)
                .is_some_and(|condition| condition.status == "True"),
            deletion_cost: self
                .annotation(annotations::POD_DELETION_COST)
                .and_then(|cost| cost.parse().ok())
                .unwrap_or_default(),
            created: self.metadata.creation_timestamp,
            restarts: (self.container_statuses())
                .filter_map(|container| container.restart_count)
                .fold(0, u32::saturating_add),
            is_refused: false,
            is_crowded: false,
            gate: self.gate(),
            in_place,
            resize,
            is_resizable: self.is_resizable(),
        })
    }

    /// The labels of a pod that may use slots of `set` (L1): its own pods, and those without a controller, such as one that it has
    /// released, whose own anti-affinity keeps pods of its slot off its node. One that is being removed gives its slots up.
    #[must_use]
    pub fn labels_with_slots(
        &self,
        set: &ValidLocalReplicaSet,
    ) -> Option<&BTreeMap<String, String>> {
        let may_be_ours = match self.controller() {
            PodController::Nobody => true,
            PodController::Set(uid) => uid == set.uid,
            PodController::Other => false,
        };
        let is_live = matches!(self.life(), Life::Live(_));
        self.labels().filter(|_| may_be_ours && is_live)
    }

    fn owner(&self, set: &ValidLocalReplicaSet) -> Option<Owner> {
        let owners = self.metadata.owner_references.iter().flatten();
        let mut controllers = owners.filter(|owner| owner.controller == Some(true));
        let none = BTreeMap::new();
        let labels = self.labels().unwrap_or(&none);
        let matches = selector::matches(&set.selector, labels);
        match controllers.next() {
            Some(owner) if owner.uid != set.uid => None,
            Some(_) if matches => Some(Owner::Set),
            Some(_) => Some(Owner::SetWithoutMatch),
            None => matches.then_some(Owner::Nobody),
        }
    }

    fn life(&self) -> Life<'_> {
        let phase = self.status().and_then(|status| status.phase.as_deref());
        if let Some(at) = self.metadata.deletion_timestamp {
            // The API server sets the time by which the pod has to be gone.
            let grace = self.metadata.deletion_grace_period_seconds.unwrap_or(0);
            let since = at.checked_sub(SignedDuration::from_secs(grace));
            return Life::Terminating {
                since: Some(since.unwrap_or(at)),
            };
        }
        if matches!(phase, Some("Succeeded" | "Failed")) {
            return Life::Terminated;
        }
        let created = self.metadata.creation_timestamp;
        let ready = self.condition(READY);
        let since = ready.and_then(|ready| ready.last_transition_time);
        let since = since.unwrap_or(created);
        Life::Live(match ready {
            Some(ready) if ready.status == "True" => Readiness::Ready { since },
            _ => Readiness::NotReady {
                since,
                failure: self.failure(),
            },
        })
    }

    /// Why it will not become ready by itself.
    fn failure(&self) -> Option<&str> {
        let statuses = self.container_statuses();
        let waiting = statuses.filter_map(|container| {
            let state = container.state.as_ref()?;
            state.waiting.as_ref()?.reason.as_deref()
        });
        let unscheduled = self
            .condition(SCHEDULED)
            .filter(|condition| condition.status == "False");
        let unscheduled = unscheduled.and_then(|condition| condition.reason.as_deref());
        let mut failures = waiting
            .filter(|reason| is_failure(reason))
            .chain(unscheduled.filter(|reason| *reason == UNSCHEDULABLE));
        failures.next()
    }

    fn eviction(&self) -> Option<Eviction> {
        let asked = self
            .annotation(annotations::EVICT)
            .or(self.label(annotations::EVICT))?;
        Eviction::parse(asked)
    }

    pub(crate) fn gate(&self) -> Gate {
        let gates = self.spec().and_then(|spec| spec.readiness_gates.as_ref());
        let is_ours = |gate: &ReadinessGate| gate.condition_type == names::IN_PLACE_UPDATE;
        if !gates.into_iter().flatten().any(is_ours) {
            return Gate::Absent;
        }
        match self.condition(names::IN_PLACE_UPDATE) {
            None => Gate::Unset,
            Some(condition) if condition.status == "True" => Gate::Open,
            Some(condition) => self.closed_gate(condition),
        }
    }

    fn closed_gate(&self, condition: &Condition) -> Gate {
        let since = condition.last_transition_time;
        let since = since.filter(|_| condition.reason.as_deref() == Some(DRAINING));
        let is_patched = |since| {
            let record = self.in_place_record();
            record.is_some_and(|record| record.drained == Some(since))
        };
        let since = since.filter(|since| !is_patched(*since));
        since.map_or(Gate::Closed, |since| Gate::Draining { since })
    }

    /// What was written when it was last updated in place. Somebody else wrote what can't be read, or nobody: nothing is waited for.
    pub(crate) fn in_place_record(&self) -> Option<InPlaceRecord> {
        let record = self.annotation(annotations::IN_PLACE_UPDATE)?;
        serde_json::from_str(record).ok()
    }

    fn in_place(&self) -> (InPlace, Resize) {
        let Some(record) = self.in_place_record() else {
            return (InPlace::Settled, Resize::Settled);
        };
        let observed = self.status().and_then(|status| status.observed_generation);
        // Kubelets before Kubernetes 1.33 do not say so.
        let is_observed = observed.is_none_or(|observed| {
            (self.metadata.generation).is_none_or(|generation| observed >= generation)
        });
        let containers = &*self.containers();
        let reason = |type_| {
            let condition = self.condition(type_);
            let condition = condition.filter(|condition| condition.status == "True");
            condition.map(|condition| condition.reason.as_deref().unwrap_or_default())
        };
        let resize = record.resize(&ResizeStatus {
            containers,
            generation: self.generation(),
            is_observed,
            pending: reason(RESIZE_PENDING),
            in_progress: reason(RESIZE_IN_PROGRESS),
        });
        (record.state(containers, is_observed, resize), resize)
    }

    /// A kubelet that can change resources says which each container has.
    fn is_resizable(&self) -> bool {
        let statuses = self.status().map(|status| &status.container_statuses);
        let statuses = statuses.and_then(Option::as_deref).unwrap_or_default();
        let has_resources = |container: &ContainerStatus| container.resources.is_some();
        !statuses.is_empty() && statuses.iter().all(has_resources)
    }

    fn spec(&self) -> Option<&Spec> {
        self.spec.as_ref()
    }

    fn status(&self) -> Option<&Status> {
        self.status.as_ref()
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.metadata.labels.as_ref()?.get(key).map(String::as_str)
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata
            .annotations
            .as_ref()?
            .get(key)
            .map(String::as_str)
    }

    fn condition(&self, type_: &str) -> Option<&Condition> {
        let mut conditions = self.status()?.conditions.iter().flatten();
        conditions.find(|condition| condition.type_ == type_)
    }

    fn container_statuses(&self) -> impl Iterator<Item = &ContainerStatus> {
        let status = self.status();
        let lists =
            status.map(|status| [&status.container_statuses, &status.init_container_statuses]);
        lists.into_iter().flatten().flatten().flatten()
    }
}

/// The kind of the sets.
const KIND: &str = "LocalReplicaSet";

/// The conditions that decisions depend on.
fn known_conditions<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Box<[Condition]>>, D::Error> {
    kept::items(
        |condition: &Condition| CONDITIONS.contains(&condition.type_.as_str()),
        deserializer,
    )
}

/// Whether a container that waits for this reason needs somebody to act: `CrashLoopBackOff`, `ErrImagePull`,
/// `CreateContainerConfigError`, but not `ContainerCreating`.
fn is_failure(reason: &str) -> bool {
    ["BackOff", "Error"].iter().any(|end| reason.ends_with(end))
        || [
            "ErrImagePull",
            "ErrImageNeverPull",
            "InvalidImageName",
            "RegistryUnavailable",
        ]
        .contains(&reason)
}
