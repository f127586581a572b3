//! What a check looks at: everything it needs to decide, read from local stores alone (F26).

use std::time::Duration;

use cluster_informer::{Health, SyncState, WorkloadState, WorkloadView};
use fedrs_api::{FederatedReplicaSetStatus, ValidFrs};
use jiff::Timestamp;

/// One FederatedReplicaSet and all members, as they are known at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot<'a> {
    /// What the user wants.
    pub frs: &'a ValidFrs,
    /// Hash of the local set's spec as fedrs writes it, without replicas.
    pub desired_spec_hash: u64,
    /// Hash of the template, as pods that were made from it carry it.
    pub template_hash: u32,
    /// What the last check answered and learnt: the memory that outlives the process.
    pub previous: &'a FederatedReplicaSetStatus,
    /// The members of the federation, by name, each once.
    pub members: &'a [Member],
    /// Names of other sets of the namespace whose selectors overlap with this one's.
    pub overlapping: &'a [String],
    /// Durations and bounds.
    pub settings: &'a CheckSettings,
    /// Whether only the status is wanted: nothing is changed in a member (F22).
    pub observe_only: bool,
}

impl Snapshot<'_> {
    /// Whether the memory answers this very spec and these preferences.
    pub(super) fn is_answered(&self) -> bool {
        self.previous.observed_generation == Some(self.frs.generation)
            && self.previous.observed_preferences_hash == self.frs.preferences_hash
    }
}

/// One member cluster as a check sees it.
#[derive(Clone, Debug)]
pub struct Member {
    /// The member's name.
    pub name: String,
    /// Whether replicas may be added (`spec.unschedulable` of the MemberCluster).
    pub schedulable: bool,
    /// Whether all replicas are to leave it (`spec.drain` of the MemberCluster), whatever preferences say.
    pub draining: bool,
    /// How long it may be unreachable before its replicas go elsewhere (F33).
    pub grace_period: Duration,
    /// When it was added, or the controller started.
    pub joined: Timestamp,
    /// Since when its kubeconfig is gone: a removed member is a lost one, with its grace.
    pub removed: Option<Timestamp>,
    /// Why its kubeconfig can't be used, where none ever could.
    pub invalid_kubeconfig: Option<String>,
    /// What the probe says.
    pub health: Health,
    /// Whether `view` is current.
    pub sync: SyncState,
    /// Whether an earlier write for this FederatedReplicaSet has not been answered yet.
    pub write_pending: bool,
    /// What it holds for this FederatedReplicaSet.
    pub view: WorkloadView,
}

impl Member {
    /// The local set, if it is ours: one with a controller owner is somebody else's (F29).
    pub(super) fn own_set(&self) -> Option<&WorkloadState> {
        self.view
            .workload
            .as_ref()
            .filter(|set| !set.has_controller)
    }

    /// Whether the set still carries the member's name (F40).
    pub(super) fn is_marked(&self) -> bool {
        self.own_set()
            .is_some_and(|set| set.member_cluster == self.name)
    }
}

/// The durations and bounds of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckSettings {
    /// How long a pod may wait for a node, or for its creation, before it counts as failed (F34, X).
    pub unscheduled_timeout: Duration,
    /// How long a member that was just added may take to answer before others get its replicas.
    pub joining_timeout: Duration,
    /// When to look again at a set that is not settled (F27).
    pub recheck_interval: Duration,
    /// Surplus replicas during moves, in percent of N, at least one replica (F20).
    pub max_move_surge_percent: u32,
    /// Replicas left waiting in a full cluster (F34).
    pub probe_replicas: u32,
    /// Time before the second try of a refused creation (F28) or of a growth that failed (F34); doubles each time.
    pub backoff_initial: Duration,
    /// Longest time between two tries.
    pub backoff_max: Duration,
}

impl Default for CheckSettings {
    fn default() -> Self {
        Self {
            unscheduled_timeout: Duration::from_secs(60),
            joining_timeout: Duration::from_secs(10),
            recheck_interval: Duration::from_secs(60),
            max_move_surge_percent: 25,
            probe_replicas: 2,
            backoff_initial: Duration::from_secs(60),
            backoff_max: Duration::from_secs(600),
        }
    }
}

impl CheckSettings {
    /// How long to wait after `failures` failed tries in a row: doubling, bounded, without jitter so that
    /// a new leader comes to the same time.
    pub(crate) fn backoff(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(16);
        self.backoff_initial
            .saturating_mul(1 << doublings)
            .min(self.backoff_max)
    }

    /// Replicas above N that a move may use at once (F20).
    pub(crate) fn surge(&self, replicas: u64) -> u64 {
        (replicas * u64::from(self.max_move_surge_percent) / 100).max(1)
    }
}
