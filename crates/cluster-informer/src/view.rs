//! What others read of a member: snapshots by key, and notices of change.

use fedrs_api::SetKey;
use jiff::Timestamp;

use crate::about::About;

/// A local set as the member last showed it, without its template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetFact {
    /// Namespace and name.
    pub key: SetKey,
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
    pub current: u32,
    /// `status.readyReplicas`.
    pub ready: u32,
    /// `status.availableReplicas`.
    pub available: u32,
    /// `status.fullyLabeledReplicas`.
    pub fully_labeled: u32,
    /// The condition `ReplicaFailure`, while it is true.
    pub replica_failure: Option<ReplicaFailure>,
    /// Hash of `spec.template`, `spec.minReadySeconds` and `spec.selector` as the member shows them (F29).
    pub spec_hash: u64,
    /// The lowest `spec.replicas` written since the member's controller last caught up
    /// (`observedGeneration == generation`): no more than these can still be counted on.
    pub floor: u32,
    /// The label of the federation that owns it (F40).
    pub federation: String,
    /// The label of the member's name in the federation (F40).
    pub member: String,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Whether it has a controller owner, so that it is somebody else's.
    pub controlled: bool,
}

/// Why the member's controller could not create pods (F32).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaFailure {
    /// The condition's last transition.
    pub since: Timestamp,
    /// The condition's message.
    pub message: String,
}

/// Counts over the pods of one local set: those whose controller owner is the set's uid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodCounts {
    /// Pods that exist and are not terminating.
    pub present: u32,
    /// Of these: ready.
    pub ready: u32,
    /// Of these: without a node.
    pub unscheduled: u32,
    /// Pods with a deletion timestamp.
    pub terminating: u32,
    /// How many of the pods that are present were made from which template, by its hash; 0 where a pod doesn't say.
    pub templates: Vec<(u32, u32)>,
    /// Since when how many pods wait for a node, oldest first.
    pub waiting: Vec<(Timestamp, u32)>,
    /// The scheduler's own words about one of the waiting pods.
    pub waiting_message: Option<String>,
}

/// Everything known of one key in one member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetView {
    /// The local set, if there is one with our labels.
    pub set: Option<SetFact>,
    /// Its pods.
    pub pods: PodCounts,
}

impl SetView {
    /// Whether the set counts pods that the watch doesn't show, since they don't carry our marks: it adopted them (F30).
    ///
    /// The number of its pods that match the template alone doesn't tell: it also falls when users change the template's
    /// labels.
    pub fn has_unmarked_pods(&self) -> bool {
        self.set
            .as_ref()
            .is_some_and(|set| set.fully_labeled < set.current && self.pods.present < set.current)
    }
}

/// Whether what is known of a member is current (F39).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// The first lists are not done yet.
    NotSynced,
    /// Lists are done and the watches run.
    Synced,
    /// A watch has been down since then; what is known is at least that old.
    Stale {
        /// When the view was last current.
        since: Timestamp,
    },
}

/// What the liveness probe says (F33).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Not probed yet.
    Unknown,
    /// `/readyz` answers.
    Healthy,
    /// Failing for fewer times in a row than it takes to call it unreachable.
    Failing {
        /// The first failure of the row.
        since: Timestamp,
        /// What went wrong, without addresses of secrets.
        message: String,
    },
    /// As many failures in a row as it takes.
    Unreachable {
        /// The first failure of the row: the grace period counts from here.
        since: Timestamp,
        /// What went wrong.
        message: String,
    },
    /// 401 or 403: the member lives but does not let us in.
    Unauthorized {
        /// What the member said.
        message: String,
    },
}

/// What a member holds over all sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Local sets that have replicas, or are asked for some.
    pub sets: u32,
    /// Replicas that are there, or asked for.
    pub replicas: u64,
    /// The first of these sets, in order.
    pub first: Vec<SetKey>,
}

/// Reads of one member's store. Cheap, without waiting: short locks only.
pub trait MemberView: Send + std::marker::Sync + 'static {
    /// What is known of `key`.
    fn set_view(&self, key: &SetKey) -> SetView;
    /// Whether the view is current.
    fn sync(&self) -> Sync;
    /// What the probe says.
    fn health(&self) -> Health;
    /// What the member last told of itself.
    fn about(&self) -> About;
    /// How much it holds in all, with at most so many names of sets.
    fn held(&self, names: usize) -> Held;
    /// Takes in the answer to our own write at once, ahead of the watch.
    fn observe(&self, set: SetFact);
    /// Takes in that our delete of `key` with this uid succeeded.
    fn observe_deleted(&self, key: &SetKey, uid: &str);
    /// Takes in that `key` with this uid has no labels of ours any more since `version`: it may get them again.
    fn observe_released(&self, key: &SetKey, uid: &str, version: &str);
}

/// What happened in a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A local set came or changed in what it reports; nothing to repair by itself.
    SetChanged,
    /// A local set is gone, or its spec or labels were changed by somebody.
    SetDrifted,
    /// More replicas became available: a move may go on.
    BecameReady,
    /// A pod came, went or changed its phase.
    PodChanged,
    /// A pod waits for a node since then.
    PodWaiting {
        /// Since when.
        since: Timestamp,
    },
}

/// Told of changes, from the task that owns the member's state: must not block.
pub trait ChangeSink: Send + std::marker::Sync + 'static {
    /// `key` changed in `member`.
    fn changed(&self, member: &str, key: &SetKey, change: Change);
    /// `member` changed its health or sync: everything is to be looked at (F23).
    fn member_changed(&self, member: &str);
}
