//! The local ReplicaSet of a set in one member, over time.

use fedrs_api::{labels, names};
use serde_json::Value;
use sim_cluster::Object;
use tokio::time::Instant;

use crate::{crash::DelayedRequest, history::History};

/// A local set over time.
pub(crate) struct LocalSet {
    /// The uid of the ReplicaSet, while there is one.
    pub(super) uid: String,
    /// `spec.replicas`.
    pub(crate) desired: History<u64>,
    /// What the controller wrote there last: others may have changed it since.
    pub(crate) requested: History<u64>,
    /// When others last changed the replicas, or deleted the ReplicaSet.
    pub(super) edited: Option<Instant>,
    /// Whether it is being deleted, so that its pods may end at any time.
    pub(super) is_terminating: bool,
    /// Whether it belongs to a controller of the member.
    pub(crate) is_taken: History<bool>,
    /// Whether it has the label of fedrs: it does until it is released.
    pub(super) is_labeled: History<bool>,
    /// What the status of the FederatedReplicaSet says is desired.
    pub(crate) planned: History<u64>,
    /// When a status of the FederatedReplicaSet last said that the state of the member is not known.
    pub(crate) called_unknown: Option<Instant>,
    /// Pods that are ready, and run.
    pub(crate) ready: History<u64>,
    /// `status.availableReplicas`.
    pub(crate) counted: History<u64>,
    /// Pods with the label of fedrs on nodes that work.
    pub(crate) placed: History<u64>,
    /// Changes that have been sent and take effect later, and whether the controller has to expect each.
    pub(super) in_flight: Vec<(DelayedRequest, bool)>,
}

impl LocalSet {
    /// A set that does not exist yet.
    pub(super) fn new() -> Self {
        Self {
            uid: String::new(),
            desired: History::starting(0),
            requested: History::starting(0),
            edited: None,
            is_terminating: false,
            is_taken: History::starting(false),
            is_labeled: History::starting(false),
            planned: History::starting(0),
            called_unknown: None,
            ready: History::starting(0),
            counted: History::starting(0),
            placed: History::starting(0),
            in_flight: Vec::new(),
        }
    }

    /// Records the current state of the ReplicaSet.
    pub(super) fn put(&mut self, set: Option<&Object>) {
        let now = desired(set);
        self.uid = set.map(uid_of).unwrap_or_default();
        let is_scaled = now != *self.desired.now();
        self.desired.put(now);
        let is_ours = set.is_none_or(|set| is_written_by_fedrs(set));
        if is_scaled && is_ours {
            self.requested.put(now);
        }
        // The controller deletes only what has no replicas, as long as the FederatedReplicaSet exists.
        if is_scaled && (set.is_none() || !is_ours) {
            self.edited = Some(Instant::now());
        }
        let deleted = set.and_then(|set| set["metadata"].get("deletionTimestamp"));
        self.is_terminating = deleted.is_some();
        self.is_taken.put(set.is_some_and(has_controller));
        self.is_labeled.put(set.is_some_and(|set| is_labeled(set)));
        let counted = set.and_then(|set| set["status"]["availableReplicas"].as_u64());
        self.counted.put(counted.unwrap_or(0));
    }

    /// No request that is on its way counts any more.
    pub(super) fn forget_in_flight(&mut self) {
        for (_, counts) in &mut self.in_flight {
            *counts = false;
        }
    }

    /// Whether a change of it has been sent and not taken effect.
    pub(super) fn has_in_flight(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// The fewest replicas that are requested, or will be once all requests that the controller has to expect have arrived. It
    /// may not have seen what others have changed since `oldest`.
    pub(crate) fn fewest_requested(&self, oldest: Instant) -> u64 {
        let known = self.in_flight.iter().filter(|(_, counts)| *counts);
        let replicas = known.filter_map(|(request, _)| request.replicas);
        let is_unseen = self.edited.is_some_and(|edited| edited >= oldest);
        let most = self.desired.since(oldest).max().filter(|_| is_unseen);
        let now = most.unwrap_or(self.desired.now());
        replicas.fold(*now, u64::min)
    }
}

/// `spec.replicas` of a local set.
pub(crate) fn desired(set: Option<&Object>) -> u64 {
    set.and_then(|set| set["spec"]["replicas"].as_u64())
        .unwrap_or(0)
}

/// Whether a local ReplicaSet, or a pod, belongs to a FederatedReplicaSet: it has its label until it is released.
pub(crate) fn is_labeled(object: &Value) -> bool {
    object["metadata"]["labels"]
        .get(labels::REPLICA_SET)
        .is_some()
}

pub(super) fn has_controller(object: &Object) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    let mut owners = owners.into_iter().flatten();
    owners.any(|owner| owner["controller"] == true)
}

fn uid_of(object: &Object) -> String {
    let uid = object["metadata"]["uid"].as_str();
    uid.unwrap_or_default().to_owned()
}

/// Whether fedrs wrote the replicas of a local ReplicaSet last.
pub(crate) fn is_written_by_fedrs(set: &Value) -> bool {
    let managers = set["metadata"]["managedFields"].as_array();
    managers.into_iter().flatten().any(|manager| {
        manager["manager"] == names::FIELD_MANAGER
            && manager.pointer("/fieldsV1/f:spec/f:replicas").is_some()
    })
}
