//! What is known of a local workload, a ReplicaSet, a Deployment or a LocalReplicaSet, and its pods.

use std::sync::Arc;

use fedrs_api::WorkloadKey;
use jiff::Timestamp;
use reflector::Uid;
use xxhash_rust::xxh3::xxh3_64;

use crate::deployment_state::{DeploymentState, OwningDeployment};

/// A local ReplicaSet or Deployment as the member cluster last showed it, without its template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadState {
    /// Namespace and name, and the kind of the set that it is a part of.
    pub key: WorkloadKey,
    /// The object's uid.
    pub uid: String,
    /// The object's resourceVersion, for conditional writes.
    pub resource_version: String,
    /// `metadata.generation`.
    pub generation: i64,
    /// `status.observedGeneration`.
    pub observed_generation: i64,
    /// `spec.replicas`.
    pub replicas: u32,
    /// `status.replicas`.
    pub status_replicas: u32,
    /// `status.readyReplicas`.
    pub ready_replicas: u32,
    /// `status.availableReplicas`.
    pub available_replicas: u32,
    /// `status.fullyLabeledReplicas`. In the view of a Deployment, those of its pods that carry our labels according to its
    /// ReplicaSets (F30); 0 elsewhere.
    pub fully_labeled_replicas: u32,
    /// The condition `ReplicaFailure`, while it is true.
    pub replica_failure: Option<Box<ReplicaFailure>>,
    /// Hash of `spec.template`, `spec.minReadySeconds` and `spec.selector` as the member cluster shows them (F29); of a Deployment
    /// that of `spec.template` alone.
    pub spec_hash: u64,
    /// The lowest `spec.replicas` that the member's controller may still act on: written since it last caught up
    /// (`observedGeneration == generation`). Replicas above this number may be deleted at any moment.
    pub lowest_replicas: u32,
    /// The most `spec.replicas`, above the present ones, that a request of ours sets which may still be carried out.
    pub open_scale_up: Option<u32>,
    /// The label with the federation that owns the workload (F40).
    pub federation: Arc<str>,
    /// The label with the name of the member cluster in the federation (F40).
    pub member_cluster: Arc<str>,
    /// The deletion of the workload, while it waits for something.
    pub deletion: Option<Box<Deletion>>,
    /// Since when, by our clock, the status has been behind the spec without any progress.
    pub behind_since: Option<Timestamp>,
    /// Whether the workload has owner references.
    pub has_owners: bool,
    /// Whether a controller owns the workload: fedrs never writes it.
    pub has_controller: bool,
    /// What only a Deployment or a LocalReplicaSet has; `None` of a ReplicaSet.
    pub deployment: Option<Box<DeploymentState>>,
    /// The Deployment that is the controller of a ReplicaSet.
    pub owned_by: Option<Box<OwningDeployment>>,
}

/// A deletion that is not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// When it began: by our clock, once a table has the workload.
    pub since: Timestamp,
    /// The finalizers that it waits for; of many the first few.
    pub finalizers: Vec<String>,
}

impl WorkloadState {
    /// Whether the member's controllers have something to do: they have not seen the spec, or pods are missing and they do not
    /// say why. Of a workload that is being deleted they create none.
    pub(crate) fn is_behind(&self) -> bool {
        let misses_pods = self.status_replicas < self.replicas && self.replica_failure.is_none();
        self.deletion.is_none() && (self.observed_generation < self.generation || misses_pods)
    }

    /// Whether `other` has another strategy, or is paused while this one is not.
    pub(crate) fn has_other_rollout(&self, other: &Self) -> bool {
        let states = self.deployment.as_ref().zip(other.deployment.as_ref());
        states.is_some_and(|(one, other)| one.has_other_spec(other))
    }

    /// A number that another writer's change of the spec changes, and nothing else: the generation, but of a Deployment a hash.
    /// The member's controller writes annotations of it, which count as a generation.
    #[must_use]
    pub fn spec_version(&self) -> i64 {
        let Some(deployment) = &self.deployment else {
            return self.generation;
        };
        let (strategy, paused, min_ready_seconds, local) = deployment.settings();
        let mut spec = vec![
            i64::from(self.replicas),
            self.spec_hash.cast_signed(),
            strategy.max_unavailable.into(),
            strategy.max_surge.into(),
            strategy.is_fixed.into(),
            paused.into(),
            min_ready_seconds.into(),
        ];
        if let Some(local) = local {
            let speed = local.speed;
            spec.extend([
                i64::from(local.progress_deadline_seconds),
                local.revision_history_limit.into(),
                local.drain_seconds.into(),
                speed.map_or(-1, |speed| speed.update_portion.into()),
                speed.map_or(-1, |speed| speed.min_delay.into()),
                local.has_others.into(),
            ]);
            // Without a policy as before there were any: statuses have the number.
            spec.extend(local.migration_policy.map(u64::cast_signed));
        }
        let bytes: Vec<_> = spec.into_iter().flat_map(i64::to_le_bytes).collect();
        let hash = xxh3_64(&bytes);
        i64::try_from(hash >> 1).unwrap_or_default()
    }

    /// `status.updatedReplicas` of a Deployment.
    pub(crate) fn updated_replicas(&self) -> u32 {
        (self.deployment.as_ref()).map_or(0, |deployment| deployment.updated_replicas)
    }

    /// The bytes of its own texts, and of what few have: the labels are shared.
    pub(crate) fn text_bytes(&self) -> usize {
        let failure = self.replica_failure.iter().map(|failure| &failure.message);
        let deletion = self.deletion.iter();
        let finalizers = deletion.flat_map(|deletion| &deletion.finalizers);
        let texts = [&self.uid, &self.resource_version];
        let texts = texts.into_iter().chain(failure).chain(finalizers);
        let bytes: usize = texts.map(String::capacity).sum();
        let deployment = self.deployment.as_ref().map(|state| state.bytes());
        let owner = self.owned_by.as_ref().map(|owner| owner.bytes());
        let rare = deployment.unwrap_or_default() + owner.unwrap_or_default();
        bytes + rare + self.key.namespace.len() + self.key.name.len()
    }

    /// The uid as pods refer to it.
    pub(crate) fn id(&self) -> Uid {
        Uid::of(&self.uid)
    }
}

/// Why the member's controller could not create pods (F32).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaFailure {
    /// The condition's last transition, if it has one: by our clock, once a table has the workload.
    pub since: Option<Timestamp>,
    /// The condition's message.
    pub message: String,
}

/// Counts of the pods of one local workload: those that a ReplicaSet owns as their controller, by uid; of a Deployment those
/// of all its ReplicaSets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodCounts {
    /// Active pods: neither finished nor being deleted.
    pub active: u32,
    /// Active pods that are ready, on nodes that confirm it.
    pub ready: u32,
    /// Active pods whose status is ready, on nodes that are not ready, or have not reported since the member returned.
    pub doubtful: u32,
    /// Active pods without a node, or on a node that is not ready.
    pub unscheduled: u32,
    /// Pods that are being deleted.
    pub terminating: u32,
    /// Ready pods that clients are to leave, because they are removed next.
    pub draining: u32,
    /// When the last of them began to drain, by the clock of the controller that chose it; absent without one.
    pub draining_since: Option<Timestamp>,
    /// Active pods by the hash of the template they were created from; 0 for pods without the annotation.
    pub by_template: Vec<(u32, u32)>,
    /// The unscheduled pods by the time since which they have no node, or it is not ready, oldest first.
    pub unscheduled_since: Vec<(Timestamp, u32)>,
    /// The scheduler's message about one of the pods without a node.
    pub unscheduled_message: Option<String>,
}

impl PodCounts {
    /// The counts of the pods of both, which have different controllers.
    #[must_use]
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            active: self.active + other.active,
            ready: self.ready + other.ready,
            doubtful: self.doubtful + other.doubtful,
            unscheduled: self.unscheduled + other.unscheduled,
            terminating: self.terminating + other.terminating,
            draining: self.draining + other.draining,
            draining_since: self.draining_since.max(other.draining_since),
            by_template: merge(self.by_template, other.by_template),
            unscheduled_since: merge(self.unscheduled_since, other.unscheduled_since),
            unscheduled_message: self.unscheduled_message.or(other.unscheduled_message),
        }
    }
}

/// The sums of two lists of counts by keys, in the order of the keys.
fn merge<K: Copy + Ord>(mut counts: Vec<(K, u32)>, others: Vec<(K, u32)>) -> Vec<(K, u32)> {
    counts.extend(others);
    counts.sort_by_key(|(key, _)| *key);
    counts.dedup_by(|(key, count), (kept, sum)| {
        let is_same = key == kept;
        *sum += if is_same { *count } else { 0 };
        is_same
    });
    counts
}

/// What is known of one local workload in one member cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkloadView {
    /// The workload, if one with our labels exists.
    pub workload: Option<WorkloadState>,
    /// Its pods.
    pub pods: PodCounts,
    /// Whether the nodes of the member have to report before pods on them count, because the member has returned.
    pub nodes_report: bool,
    /// When the watch of the workloads last showed that it works, by our clock: no event of before is missing.
    pub current_at: Option<Timestamp>,
}

impl WorkloadView {
    /// Whether the workload counts pods that the watch does not show because it adopted them and they lack our labels (F30).
    ///
    /// `fullyLabeledReplicas` alone is not enough: it also falls when users change the labels of the template.
    #[must_use]
    pub fn has_unlabeled_pods(&self) -> bool {
        self.workload.as_ref().is_some_and(|workload| {
            workload.fully_labeled_replicas < workload.status_replicas
                && self.pods.active < workload.status_replicas
        })
    }

    /// Active pods that were created from the template with this hash. Pods without our labels or our annotation, such as
    /// adopted ones, do not count.
    #[must_use]
    pub fn updated_replicas(&self, template: u32) -> u32 {
        let mut templates = self.pods.by_template.iter();
        templates
            .find(|(hash, _)| *hash == template)
            .map_or(0, |(_, pods)| *pods)
    }
}
