//! The outcomes of actions, and what of them the next check has to know.

use std::collections::BTreeMap;

use cluster_informer::WorkloadState;
use fedrs_api::{
    ClusterInternalState, ClusterStatus, FederatedReplicaSetStatus, Rejection, RejectionKind,
    SettingsHash, TemplateRecord, TemplateRejection,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{count::to_status, time::after, write_backoff::WriteBackoff};
use crate::config::Config;

/// Hashes of what fedrs writes into the local workloads of a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DesiredHashes {
    /// Of a ReplicaSet: its spec without replicas. Of a Deployment: the template as the user wrote it.
    pub spec: u64,
    /// Of a Deployment: its labels and settings.
    pub settings: Option<SettingsHash>,
}

/// Outcomes of actions, by member.
pub type Outcomes = BTreeMap<String, Outcome>;

/// The outcome of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Written; the set as the member now shows it.
    Written(WorkloadState),
    /// The labels and settings of a Deployment were written, perhaps with its replicas, and its template stays.
    Configured {
        /// The set as the member now shows it.
        set: WorkloadState,
        /// The field manager of an external change that this undoes, if the member shows it.
        by: Option<String>,
    },
    /// Its replicas, or the strategy of a Deployment, were changed, and its template stays.
    Scaled {
        /// The set as the member now shows it.
        set: WorkloadState,
        /// The field manager of an external change that this undoes, if the member shows it.
        by: Option<String>,
    },
    /// There was a set of another owner: overwritten (F29); the set as the member now shows it.
    Adopted {
        /// The set.
        set: WorkloadState,
        /// Whether its template is the desired one now. The one of a Deployment stays as it was found: where it differs, a
        /// rollout is due.
        has_desired: bool,
        /// What was changed in it, for people.
        changed: String,
    },
    /// There was a set of another owner with another selector, which can't be overwritten: deleted without its pods (F29).
    /// The next check creates ours.
    Replaced {
        /// What it was, for people.
        was: String,
    },
    /// Another writer had changed the set: restored; the set as the member now shows it.
    Repaired {
        /// The set.
        set: WorkloadState,
        /// The field manager of the change, if the member shows it.
        by: Option<String>,
    },
    /// Pods that the set adopted got our labels (F30).
    PodsLabeled {
        /// The number of pods.
        pods: usize,
        /// The set's [`spec_version`](WorkloadState::spec_version).
        spec_version: i64,
    },
    /// As many pods drain as are to.
    PodsDraining {
        /// The set's [`spec_version`](WorkloadState::spec_version).
        spec_version: i64,
    },
    /// The member rejected the creation of the set (F28).
    Rejected {
        /// Why.
        kind: RejectionKind,
        /// The member's message.
        message: String,
    },
    /// The member rejected the template (F28): an existing set stays as it is.
    TemplateRejected {
        /// The member's message.
        message: String,
        /// Whether the write would have created the set: the member has none.
        creates: bool,
    },
    /// Not done, because the set is no longer as it was seen: the next check decides.
    Conflict(String),
    /// The member rejected a change of the set, with its message: the next check decides.
    Failed(String),
    /// It is not known whether it was done (a deadline, a broken connection, an error of the API server): the next check
    /// decides.
    Unknown(String),
    /// It is not known whether the set got another template, and perhaps other replicas: the next check decides.
    TemplateUnknown(String),
    /// Not answered yet: nothing is decided about the member before.
    Pending,
}

impl Outcome {
    /// Whether a check has to decide again.
    pub(crate) fn needs_retry(&self) -> bool {
        matches!(
            self,
            Self::Replaced { .. }
                | Self::TemplateRejected { .. }
                | Self::Conflict(_)
                | Self::Failed(_)
                | Self::Unknown(_)
                | Self::TemplateUnknown(_)
        )
    }
}

/// The status with the outcomes of the actions: the next check's previous status.
#[must_use]
pub fn with_outcomes(
    status: FederatedReplicaSetStatus,
    outcomes: &Outcomes,
    desired: DesiredHashes,
    now: Timestamp,
    settings: &Config,
) -> FederatedReplicaSetStatus {
    let mut status = status;
    for cluster in &mut status.clusters {
        if let Some(outcome) = outcomes.get(&cluster.name) {
            record(cluster, outcome, desired, now, settings);
        }
    }
    status
}

fn record(
    cluster: &mut ClusterStatus,
    outcome: &Outcome,
    desired: DesiredHashes,
    now: Timestamp,
    settings: &Config,
) {
    let internal = &mut cluster.internal;
    let desired_spec_hash = desired.spec;
    let writes = WriteBackoff(internal.writes.clone());
    if let Outcome::Written(set)
    | Outcome::Adopted { set, .. }
    | Outcome::Repaired { set, .. }
    | Outcome::Configured { set, .. }
    | Outcome::Scaled { set, .. } = outcome
    {
        // A response with more replicas than were requested is not believed.
        let replicas = to_status(set.replicas.into());
        internal.requested_replicas = internal.requested_replicas.map(|most| most.min(replicas));
        let believed = internal.requested_replicas.unwrap_or(0);
        let left = replicas.saturating_sub(believed).max(0);
        internal.unpublished_replicas = internal.unpublished_replicas.min(left);
    }
    let writes = match outcome {
        Outcome::Adopted {
            set,
            has_desired: false,
            ..
        } => {
            internal.settings = desired.settings;
            record_created(internal);
            writes.succeeded(set.spec_version(), None)
        }
        Outcome::Written(set) | Outcome::Adopted { set, .. } => {
            record_written(internal, set, desired);
            writes.succeeded(set.spec_version(), None)
        }
        Outcome::Repaired { set, by } => {
            record_written(internal, set, desired);
            writes.succeeded(set.spec_version(), by.clone())
        }
        Outcome::Configured { set, by } => {
            internal.settings = desired.settings;
            writes.succeeded(set.spec_version(), by.clone())
        }
        Outcome::Scaled { set, by } => writes.succeeded(set.spec_version(), by.clone()),
        Outcome::PodsLabeled { spec_version, .. } | Outcome::PodsDraining { spec_version } => {
            writes.succeeded(*spec_version, None)
        }
        Outcome::Rejected { kind, message } => {
            return record_rejection(internal, *kind, message, now, settings);
        }
        Outcome::TemplateRejected { message, creates } => {
            record_template_rejection(internal, desired_spec_hash, message, now, settings);
            if *creates {
                record_rejection(internal, RejectionKind::Rejected, message, now, settings);
            }
            return;
        }
        Outcome::Conflict(_) | Outcome::Replaced { .. } => {
            let writes = writes.failed(None, now);
            // Something changes the set all the time, or rejects our writes in this way.
            if writes.conflicts_for_long() {
                writes.rejected(now)
            } else {
                writes
            }
        }
        Outcome::Failed(error) => writes.failed(Some(error.clone()), now).rejected(now),
        Outcome::Unknown(error) => {
            let writes = writes.failed(Some(error.clone()), now).without_generation();
            // Perhaps a webhook of the member is down: that can last, like a rejection.
            if writes.fails_repeatedly() {
                writes.rejected(now)
            } else {
                writes
            }
        }
        Outcome::TemplateUnknown(error) => {
            let writes = writes.failed(Some(error.clone()), now).without_generation();
            let earlier = internal.template_rejection.as_ref();
            // Replicas must not wait for a template that is never confirmed.
            if writes.fails_repeatedly()
                || earlier.is_some_and(|earlier| earlier.is_of(desired_spec_hash))
            {
                record_template_rejection(internal, desired_spec_hash, error, now, settings);
            }
            writes
        }
        Outcome::Pending => writes.without_generation(),
    };
    internal.writes = writes.0;
}

fn record_written(
    internal: &mut ClusterInternalState,
    set: &WorkloadState,
    desired: DesiredHashes,
) {
    internal.template = Some(TemplateRecord::new(desired.spec, set.spec_hash));
    internal.settings = desired.settings;
    internal.template_rejection = None;
    record_created(internal);
}

/// The member has the workload: no creation is rejected any more.
fn record_created(internal: &mut ClusterInternalState) {
    if internal.rejection.take().is_some() {
        (internal.failures, internal.next_attempt_time) = (0, None);
    }
}

/// A rejected creation (F28): since when, and when to try again.
fn record_rejection(
    internal: &mut ClusterInternalState,
    kind: RejectionKind,
    message: &str,
    now: Timestamp,
    settings: &Config,
) {
    let earlier = internal.rejection.take();
    internal.rejection = Some(Box::new(Rejection {
        since: earlier.map_or(Time(now), |earlier| earlier.since),
        kind,
        message: message.to_owned(),
    }));
    internal.failures = internal.failures.saturating_add(1);
    let failures = u32::try_from(internal.failures).unwrap_or(1);
    internal.next_attempt_time = Some(Time(after(now, settings.backoff(failures))));
}

/// A rejected template: since when, and when to try it again. The set keeps the one that it has, and is scaled.
fn record_template_rejection(
    internal: &mut ClusterInternalState,
    desired_spec_hash: u64,
    message: &str,
    now: Timestamp,
    settings: &Config,
) {
    let earlier = internal.template_rejection.take();
    let since = earlier
        .as_ref()
        .map_or(Time(now), |earlier| earlier.since.clone());
    let failures = earlier.filter(|earlier| earlier.is_of(desired_spec_hash));
    let failures = failures
        .map_or(0, |earlier| earlier.failures)
        .saturating_add(1);
    let backoff = settings.backoff(u32::try_from(failures).unwrap_or(1));
    internal.template_rejection = Some(Box::new(TemplateRejection {
        failures,
        next_attempt_time: Time(after(now, backoff)),
        ..TemplateRejection::new(desired_spec_hash, since, message.to_owned())
    }));
}
