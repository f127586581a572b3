//! The input of a check, read from local stores alone (F26).

use cluster_informer::{Health, SyncState, WorkloadState, WorkloadView};
use federated_rollout::{Limit, State};
use fedrs_api::{FederatedReplicaSetStatus, RolloutSettings, ValidFrs};
use jiff::Timestamp;

use super::outcome::DesiredHashes;
use crate::config::Config;

/// One FederatedReplicaSet and all members, as they are known at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot<'a> {
    /// The desired state.
    pub frs: &'a ValidFrs,
    /// Hashes of what fedrs writes into the local workloads.
    pub desired: DesiredHashes,
    /// Hash of the template, as pods that were created from it carry it.
    pub template_hash: u32,
    /// The rollout of a FederatedDeployment; `None` of a FederatedReplicaSet.
    pub rollout: Option<RolloutSnapshot<'a>>,
    /// The status that the last check decided: the state that outlives the process.
    pub previous: &'a FederatedReplicaSetStatus,
    /// The members of the federation, by name, each once.
    pub members: &'a [Member],
    /// Names of other sets of the namespace whose selectors overlap with this one's.
    pub overlapping: &'a [String],
    /// Until when no replica that runs is removed, if this process continues the term of one that has died: a write of that
    /// one may still be carried out.
    pub keeps_running_until: Option<Timestamp>,
    /// Durations and bounds.
    pub settings: &'a Config,
}

/// The rollout of a FederatedDeployment, as it is known at one moment.
#[derive(Clone, Copy, Debug)]
pub struct RolloutSnapshot<'a> {
    /// How a new template reaches the members.
    pub settings: &'a RolloutSettings,
    /// The name of the revision that all members should have.
    pub revision: &'a str,
    /// The name of the revision of the spec: another one if it has failed, and is undone.
    pub spec_revision: &'a str,
    /// What an AvailabilitySet allows of the budget, and its name.
    pub limit: Option<(&'a str, Limit)>,
    /// Why a pod of a revision that has failed is not available, if the members were asked.
    pub failing_pod: Option<&'a str>,
    /// What the host has recorded: the status of the last check may be ahead of it.
    pub recorded: &'a RolloutRecord,
}

/// What of a rollout must be on the host before it is used.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RolloutRecord {
    /// The revision that all members had last.
    pub current_revision: Option<String>,
    /// The revision of the spec that has failed, and is undone.
    pub failed_revision: Option<String>,
    /// What is lent to members.
    pub state: State,
}

impl RolloutRecord {
    /// Whether all that is lent here is lent in `recorded`: this record need not be on the host at once.
    pub(crate) fn is_covered_by(&self, recorded: &Self) -> bool {
        self.current_revision == recorded.current_revision
            && self.failed_revision == recorded.failed_revision
            && self.state.is_covered_by(&recorded.state)
    }

    /// What `status` records.
    pub fn of(status: &FederatedReplicaSetStatus) -> Self {
        let Some(rollout) = status.rollout.as_deref() else {
            return Self::default();
        };
        Self {
            current_revision: status.current_revision.clone(),
            failed_revision: rollout.failed_revision.clone(),
            state: rollout.record.clone(),
        }
    }
}

impl RolloutSnapshot<'_> {
    /// The revision that all members had last, while another one is rolled out.
    pub(super) fn previous_revision(&self) -> Option<&str> {
        let current = self.recorded.current_revision.as_deref();
        current.filter(|current| *current != self.revision)
    }
}

impl Snapshot<'_> {
    /// Whether the previous status was decided for this very spec and these preferences.
    pub(super) fn is_observed(&self) -> bool {
        self.previous.observed_generation == Some(self.frs.generation)
            && self.previous.observed_preferences_hash == self.frs.preferences_hash
    }
}

/// One member cluster as a check sees it.
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, each read where it decides something"
)]
#[derive(Clone, Debug)]
pub struct Member {
    /// The member's name.
    pub name: String,
    /// Whether replicas may be added (`spec.unschedulable` of the MemberCluster).
    pub schedulable: bool,
    /// Whether all replicas have to leave it (`spec.drain` of the MemberCluster), whatever the preferences are.
    pub draining: bool,
    /// Whether it takes the namespace of the set.
    pub namespace: NamespaceState,
    /// What its outage means, if there is one: decided for all members together (F33).
    pub outage: Outage,
    /// Until when it has to be healthy, because it was lost: until then, nothing elsewhere is removed for its replicas (F33).
    pub stabilizes_at: Option<Timestamp>,
    /// Whether it has nodes, and none of them is ready.
    pub no_ready_nodes: bool,
    /// When it was added, or the controller started, or the first set needed to know its workloads of this kind: its first answer is
    /// waited for.
    pub joined: Timestamp,
    /// Whether every set waits for its first answer, because the controller has just started. Otherwise those wait that are new, or had
    /// replicas in it.
    pub awaited: bool,
    /// Since when it has no kubeconfig: a removed member is a lost one, with its grace period.
    pub removed: Option<Timestamp>,
    /// Why its kubeconfig can't be used, if none ever could.
    pub invalid_kubeconfig: Option<String>,
    /// The result of the liveness probe.
    pub health: Health,
    /// Whether `view` is current.
    pub sync: SyncState,
    /// What fails while LocalReplicaSets can't be listed: their CRD may be missing.
    pub unlisted: Option<String>,
    /// Whether there are no such workloads in it: nobody has installed LocalReplicaSets, or somebody has deleted their CRD and with
    /// it all of them. `view` shows none then.
    pub lacks_kind: bool,
    /// Whether a previous write for this FederatedReplicaSet has not been answered yet.
    pub write_pending: bool,
    /// Its local ReplicaSet and pods for this FederatedReplicaSet.
    pub view: WorkloadView,
}

/// Whether a member takes the namespace of a set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NamespaceState {
    /// It does.
    #[default]
    Taken,
    /// It does not: replicas that it has move to other members, as in a drain.
    NotTaken,
    /// It is a system namespace, in which nothing is ever written.
    System,
    /// That is not known, and why: nothing changes because of it.
    Unknown(String),
}

/// What the outage of a member means for its replicas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outage {
    /// Nothing: there is none, or nothing is rescheduled because of it.
    #[default]
    None,
    /// The member is lost at this time, if the outage lasts.
    Until(Timestamp),
    /// The replicas are rescheduled.
    Lost {
        /// When the outage began.
        since: Timestamp,
    },
}

impl Member {
    /// Whether all replicas have to leave it.
    pub(super) fn is_evacuated(&self) -> bool {
        self.draining || self.namespace == NamespaceState::NotTaken
    }

    /// The local ReplicaSet, if it is ours: one with a controller is not (F29).
    pub(super) fn own_set(&self) -> Option<&WorkloadState> {
        self.view
            .workload
            .as_ref()
            .filter(|set| !set.has_controller)
    }

    /// Whether the local ReplicaSet still has the label with the member's name (F40).
    pub(super) fn has_label(&self) -> bool {
        self.own_set()
            .is_some_and(|set| *set.member_cluster == *self.name)
    }
}
