//! Whether the controller places replicas in a member, leaves it as it is, or reschedules its replicas (F33, F39).

use cluster_informer::{Health, SyncState, WorkloadState};
use fedrs_api::{ClusterReason, ClusterState, ClusterStatus};
use jiff::Timestamp;

use super::{
    snapshot::{Member, NamespaceState, Outage},
    time::after,
};
use crate::config::Config;

/// How a check treats a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Eligibility<'a> {
    /// Just added; nothing at all is decided before its first answer.
    Joining {
        /// The end of the wait.
        until: Timestamp,
    },
    /// Healthy and known: replicas are placed in it.
    Eligible {
        /// Whether it is not changed at the moment, although its target is decided like any other's: a probe failed, but fewer
        /// in a row than the failure threshold, a write has not been answered, or a silent watch is being reopened. What will
        /// be known in seconds must not rewrite the status of every set.
        on_hold: bool,
    },
    /// Its state is not known: it counts as it was last seen, and nothing changes because of it (F39).
    Unknown {
        /// Why.
        reason: ClusterReason,
        /// Why, for people.
        cause: String,
        /// When its replicas are rescheduled, if it stays unknown.
        until: Option<Timestamp>,
    },
    /// Unreachable or removed for longer than its grace period: its replicas are rescheduled (F33).
    Lost {
        /// Since when.
        since: Timestamp,
    },
    /// Registered under another name as well, which counts its replicas.
    Duplicate {
        /// The name that counts them.
        of: &'a str,
    },
    /// It does not take the namespace, or has no such workloads, and nothing of the set is in it: nothing is ever written.
    Refused {
        /// Why.
        reason: ClusterReason,
    },
}

impl Eligibility<'_> {
    pub(super) fn is_eligible(&self) -> bool {
        matches!(self, Self::Eligible { .. })
    }

    /// Whether the member has a part in the layout: while its state is not known, what was last requested of it (F39).
    pub(super) fn is_laid_out(&self) -> bool {
        matches!(self, Self::Eligible { .. } | Self::Unknown { .. })
    }

    /// Whether the member may be changed.
    pub(super) fn is_writable(&self) -> bool {
        *self == Self::Eligible { on_hold: false }
    }

    pub(super) fn is_joining(&self) -> bool {
        matches!(self, Self::Joining { .. })
    }

    pub(super) fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown { .. })
    }

    pub(super) fn is_duplicate(&self) -> bool {
        matches!(self, Self::Duplicate { .. })
    }

    pub(super) fn state(&self) -> ClusterState {
        match self {
            Self::Joining { .. } => ClusterState::Joining,
            Self::Eligible { .. } => ClusterState::Eligible,
            Self::Unknown { .. } => ClusterState::Unknown,
            Self::Lost { .. } => ClusterState::Lost,
            Self::Duplicate { .. } => ClusterState::Duplicate,
            Self::Refused { .. } => ClusterState::Refused,
        }
    }
}

/// How to treat `member`, whatever other members there are; `is_new_set` if no check has placed replicas of the set.
pub(super) fn of_member<'a>(
    member: &Member,
    previous: Option<&ClusterStatus>,
    is_new_set: bool,
    now: Timestamp,
    settings: &Config,
) -> Eligibility<'a> {
    match member.namespace {
        NamespaceState::System => {
            let reason = ClusterReason::SystemNamespace;
            return Eligibility::Refused { reason };
        }
        // Without replicas there is nothing to know of it, nor to wait for.
        NamespaceState::NotTaken if has_nothing(member, previous) => {
            let reason = ClusterReason::NamespaceNotTaken;
            return Eligibility::Refused { reason };
        }
        _ => {}
    }
    // A lost member stays so until it is known to be back, whatever its view shows meanwhile.
    if let Outage::Lost { since } = member.outage {
        return Eligibility::Lost { since };
    }
    if member.removed.is_some() {
        return out_of_contact(member, ClusterReason::Removed, "the kubeconfig was removed");
    }
    if let Some(error) = &member.invalid_kubeconfig {
        let cause = format!("the kubeconfig is invalid: {error}");
        return unknown(ClusterReason::InvalidKubeconfig, cause);
    }
    // A member without an entry had no replicas, and no problem.
    let was_eligible = previous.map_or(!is_new_set, |previous| {
        previous.state == Some(ClusterState::Eligible)
    });
    of_health(member, was_eligible, now, settings)
}

/// How to treat `member`, which has a kubeconfig and is not lost, by its probe and its view.
fn of_health<'a>(
    member: &Member,
    was_eligible: bool,
    now: Timestamp,
    settings: &Config,
) -> Eligibility<'a> {
    let until = after(member.joined, settings.joining_timeout);
    let is_unconfirmed = member.sync == SyncState::Unconfirmed;
    let is_current = member.sync == SyncState::Synced || is_unconfirmed;
    let out_of_contact = |reason, cause| out_of_contact(member, reason, cause);
    match (&member.health, member.sync) {
        // The MemberCluster has the message of the probe: a set's status does not change with it.
        (Health::Unreachable { .. }, _) => {
            out_of_contact(ClusterReason::Unreachable, "the API server is unreachable")
        }
        (Health::Unauthorized { .. }, _) => out_of_contact(
            ClusterReason::Unauthorized,
            "the API server rejects the credentials",
        ),
        (Health::Healthy, _) if member.no_ready_nodes => {
            out_of_contact(ClusterReason::NoReadyNodes, "none of its nodes is ready")
        }
        (Health::Healthy, _) if member.lacks_kind => Eligibility::Refused {
            reason: ClusterReason::KindNotInstalled,
        },
        (Health::Failing { .. }, _) if is_current && was_eligible => eligible(member, true),
        (Health::Failing { .. }, _) => {
            unknown(ClusterReason::ProbeFailing, "the liveness probe fails")
        }
        (Health::Unknown, _) | (Health::Healthy, SyncState::NotSynced) if now < until => {
            Eligibility::Joining { until }
        }
        (Health::Unknown, _) => {
            unknown(ClusterReason::NotProbed, "the cluster has not answered yet")
        }
        (Health::Healthy, SyncState::NotSynced) => {
            let listed_later = "ReplicaSets and pods are not listed yet".to_owned();
            let cause = member.unlisted.as_ref().map_or(listed_later, |failure| {
                format!("LocalReplicaSets and pods are not listed: {failure}; LocalReplicaSets need their CRD and controller")
            });
            unknown(ClusterReason::NotSynced, cause)
        }
        (Health::Healthy, SyncState::Stale { since }) => {
            let cause = format!("the watch is down, the view is from {since:.0}");
            unknown(ClusterReason::Stale, cause)
        }
        (Health::Healthy, SyncState::Unconfirmed) if !was_eligible => unknown(
            ClusterReason::Stale,
            "a watch was silent and is being reopened",
        ),
        (Health::Healthy, SyncState::Synced) if member.write_pending && !was_eligible => {
            unknown(ClusterReason::WritePending, "a previous write is pending")
        }
        (Health::Healthy, SyncState::Synced | SyncState::Unconfirmed) => {
            eligible(member, member.write_pending || is_unconfirmed)
        }
    }
}

/// Whether the member has no replicas of the set, and gets none: it shows none, or had none when its view was current.
fn has_nothing(member: &Member, previous: Option<&ClusterStatus>) -> bool {
    let is_empty = |set: &WorkloadState| {
        set.replicas == 0 && set.status_replicas == 0 && set.open_scale_up.is_none()
    };
    let is_current = member.sync == SyncState::Synced && !member.write_pending;
    let had_replicas = previous.is_some_and(ClusterStatus::has_replicas);
    member.own_set().is_none_or(is_empty) && (is_current || !had_replicas)
}

/// A member that is healthy and known, unless it is not known whether it takes the namespace.
fn eligible<'a>(member: &Member, on_hold: bool) -> Eligibility<'a> {
    match &member.namespace {
        NamespaceState::Unknown(why) => unknown(ClusterReason::NamespaceUnknown, why),
        _ => Eligibility::Eligible { on_hold },
    }
}

fn unknown<'a>(reason: ClusterReason, cause: impl Into<String>) -> Eligibility<'a> {
    Eligibility::Unknown {
        reason,
        cause: cause.into(),
        until: None,
    }
}

fn out_of_contact<'a>(member: &Member, reason: ClusterReason, cause: &str) -> Eligibility<'a> {
    Eligibility::Unknown {
        reason,
        cause: cause.to_owned(),
        until: match member.outage {
            Outage::Until(time) => Some(time),
            Outage::None | Outage::Lost { .. } => None,
        },
    }
}
