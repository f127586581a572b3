//! What became of the actions, and what of it the next check has to know.

use std::collections::BTreeMap;

use cluster_informer::WorkloadState;
use fedrs_api::{ClusterStatus, FederatedReplicaSetStatus, RejectionKind, TemplateRecord};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{report, snapshot::CheckSettings, writes::Writes};

/// Outcomes of actions, by member: what the executor found out.
pub type Outcomes = BTreeMap<String, Outcome>;

/// What became of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Written; the set as the member now shows it.
    Written(WorkloadState),
    /// There was a set of somebody: written over (F29); the set as the member now shows it.
    Adopted {
        /// The set.
        set: WorkloadState,
        /// What was changed in it, in words.
        changed: String,
    },
    /// There was a set of somebody, of another selector, which can't be written over: deleted without its pods (F29). Ours
    /// is made by the next check.
    Replaced {
        /// What it was, in words.
        was: String,
    },
    /// Somebody else had changed the set: written as it should be; the set as the member now shows it.
    Repaired {
        /// The set.
        set: WorkloadState,
        /// The field manager of the change, where the member says so.
        by: Option<String>,
    },
    /// So many pods that the set adopted carry our marks now (F30); it is still at this generation.
    PodsLabeled {
        /// How many had none.
        pods: usize,
        /// The set's generation.
        generation: i64,
    },
    /// The member rejected the creation of the set (F28).
    Rejected {
        /// Why.
        kind: RejectionKind,
        /// The member's message.
        message: String,
    },
    /// It didn't happen, because the set is no longer what it was meant for: it is decided anew.
    Conflict(String),
    /// The member refused to write a set that is there, and its words: it is decided anew.
    Failed(String),
    /// Whether it happened nobody knows, and it is decided anew: a deadline, a broken connection.
    Unknown(String),
    /// The answer is still awaited: until it comes nothing is decided about the member.
    Pending,
}

impl Outcome {
    /// Whether what was to be done is decided once more.
    pub(crate) fn needs_retry(&self) -> bool {
        matches!(
            self,
            Self::Replaced { .. } | Self::Conflict(_) | Self::Failed(_) | Self::Unknown(_)
        )
    }
}

/// Says in the status that the spec can't be carried out (F4); everything else stays as it was.
pub fn reject(status: &mut FederatedReplicaSetStatus, message: &str, now: Timestamp) {
    let accepted = report::condition(
        &status.conditions,
        "Accepted",
        false,
        "Invalid",
        message,
        now,
    );
    let accepted = Condition {
        observed_generation: status.observed_generation,
        ..accepted
    };
    status.conditions.retain(|it| it.type_ != "Accepted");
    status.conditions.insert(0, accepted);
}

/// Takes what the executor found out into the status: it is the next check's memory.
pub fn remember(
    status: &mut FederatedReplicaSetStatus,
    outcomes: &Outcomes,
    wanted: u64,
    now: Timestamp,
    settings: &CheckSettings,
) {
    for cluster in &mut status.clusters {
        match outcomes.get(&cluster.name) {
            Some(Outcome::Written(set) | Outcome::Adopted { set, .. }) => {
                remember_written(cluster, set, wanted, None);
            }
            Some(Outcome::Repaired { set, by }) => {
                remember_written(cluster, set, wanted, by.clone());
            }
            Some(Outcome::PodsLabeled { generation, .. }) => {
                change_writes(cluster, |it| it.succeed(*generation, None));
            }
            Some(Outcome::Rejected { kind, message }) => {
                report::refused(cluster, *kind, message, now, settings);
            }
            Some(Outcome::Conflict(_) | Outcome::Replaced { .. }) => {
                change_writes(cluster, |it| it.fail(None, now));
            }
            Some(Outcome::Failed(error)) => {
                change_writes(cluster, |it| it.fail(Some(error.clone()), now));
            }
            Some(Outcome::Unknown(error)) => change_writes(cluster, |it| {
                it.fail(Some(error.clone()), now);
                it.lose_track();
            }),
            Some(Outcome::Pending) => change_writes(cluster, Writes::lose_track),
            None => {}
        }
    }
}

fn remember_written(
    cluster: &mut ClusterStatus,
    set: &WorkloadState,
    wanted: u64,
    by: Option<String>,
) {
    let live = set.spec_hash;
    cluster.internal.template = Some(TemplateRecord::new(wanted, live));
    if cluster.internal.rejection.take().is_some() {
        (
            cluster.internal.failures,
            cluster.internal.next_attempt_time,
        ) = (0, None);
    }
    change_writes(cluster, |it| it.succeed(set.generation, by));
}

fn change_writes(cluster: &mut ClusterStatus, change: impl FnOnce(&mut Writes)) {
    let mut writes = Writes::recall(&cluster.internal);
    change(&mut writes);
    writes.record(&mut cluster.internal);
}
