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
    /// It does not take the namespace, and nothing of the set is in it: nothing is ever written.
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
        let cause = "the kubeconfig was removed".to_owned();
        return out_of_contact(member, ClusterReason::Removed, cause);
    }
    if let Some(error) = &member.invalid_kubeconfig {
        let cause = format!("the kubeconfig is invalid: {error}");
        return unknown(ClusterReason::InvalidKubeconfig, cause);
    }
    // A member without an entry had no replicas, and no problem.
    let was_eligible = previous.map_or(!is_new_set, |previous| {
        previous.state == Some(ClusterState::Eligible)
    });
    let joining_until = after(member.joined, settings.joining_timeout);
    let is_unconfirmed = member.sync == SyncState::Unconfirmed;
    let is_current = member.sync == SyncState::Synced || is_unconfirmed;
    match (&member.health, member.sync) {
        // The MemberCluster has the message of the probe: a set's status does not change with it.
        (Health::Unreachable { .. }, _) => {
            let cause = "the API server is unreachable".to_owned();
            out_of_contact(member, ClusterReason::Unreachable, cause)
        }
        (Health::Unauthorized { .. }, _) => {
            let cause = "the API server rejects the credentials".to_owned();
            out_of_contact(member, ClusterReason::Unauthorized, cause)
        }
        (Health::Healthy, _) if member.no_ready_nodes => {
            let cause = "none of its nodes is ready".to_owned();
            out_of_contact(member, ClusterReason::NoReadyNodes, cause)
        }
        (Health::Failing { .. }, _) if is_current && was_eligible => eligible(member, true),
        (Health::Failing { .. }, _) => {
            let cause = "the liveness probe fails".to_owned();
            unknown(ClusterReason::ProbeFailing, cause)
        }
        (Health::Unknown, _) | (Health::Healthy, SyncState::NotSynced) if now < joining_until => {
            Eligibility::Joining {
                until: joining_until,
            }
        }
        (Health::Unknown, _) => unknown(
            ClusterReason::NotProbed,
            "the cluster has not answered yet".to_owned(),
        ),
        (Health::Healthy, SyncState::NotSynced) => unknown(
            ClusterReason::NotSynced,
            "ReplicaSets and pods are not listed yet".to_owned(),
        ),
        (Health::Healthy, SyncState::Stale { since }) => {
            let cause = format!("the watch is down, the view is from {since:.0}");
            unknown(ClusterReason::Stale, cause)
        }
        (Health::Healthy, SyncState::Unconfirmed) if !was_eligible => unknown(
            ClusterReason::Stale,
            "a watch was silent and is being reopened".to_owned(),
        ),
        (Health::Healthy, SyncState::Synced) if member.write_pending && !was_eligible => unknown(
            ClusterReason::WritePending,
            "a previous write is pending".to_owned(),
        ),
        (Health::Healthy, SyncState::Synced | SyncState::Unconfirmed) => {
            eligible(member, member.write_pending || is_unconfirmed)
        }
    }
}

/// Whether the member has no replicas of the set: it shows none, or had none when its view was current.
fn has_nothing(member: &Member, previous: Option<&ClusterStatus>) -> bool {
    let is_empty = |set: &WorkloadState| set.replicas == 0 && set.status_replicas == 0;
    let is_current = member.sync == SyncState::Synced && !member.write_pending;
    let had_replicas = previous.is_some_and(ClusterStatus::has_replicas);
    member.own_set().is_none_or(is_empty) && (is_current || !had_replicas)
}

/// A member that is healthy and known, unless it is not known whether it takes the namespace.
fn eligible<'a>(member: &Member, on_hold: bool) -> Eligibility<'a> {
    match &member.namespace {
        NamespaceState::Unknown(why) => unknown(ClusterReason::NamespaceUnknown, why.clone()),
        _ => Eligibility::Eligible { on_hold },
    }
}

fn unknown<'a>(reason: ClusterReason, cause: String) -> Eligibility<'a> {
    Eligibility::Unknown {
        reason,
        cause,
        until: None,
    }
}

fn out_of_contact<'a>(member: &Member, reason: ClusterReason, cause: String) -> Eligibility<'a> {
    Eligibility::Unknown {
        reason,
        cause,
        until: match member.outage {
            Outage::Until(time) => Some(time),
            Outage::None | Outage::Lost { .. } => None,
        },
    }
}
