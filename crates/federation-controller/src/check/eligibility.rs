//! Whether the controller places replicas in a member, leaves it as it is, or reschedules its replicas (F33, F39).

use cluster_informer::{Health, SyncState};
use fedrs_api::{ClusterState, ClusterStatus};
use jiff::Timestamp;

use super::{settings::CheckSettings, snapshot::Member, time::after};

/// How a check treats a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Eligibility<'a> {
    /// Just added; nothing at all is decided before its first answer.
    Joining {
        /// The end of the wait.
        until: Timestamp,
    },
    /// Healthy and known: replicas are placed in it.
    Eligible {
        /// Why it is not changed at the moment, although its target is decided like any other's.
        hold: Option<Hold>,
    },
    /// Its state is not known: it counts as it was last seen, and nothing changes because of it (F39).
    Unknown {
        /// Why.
        cause: UnknownCause<'a>,
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
}

/// Why an eligible member is not changed: what will be known in seconds must not rewrite the status of every set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// A liveness probe failed, but fewer in a row than the failure threshold.
    ProbeFailing,
    /// A previous write has not been answered yet.
    WritePending,
}

/// Why the state of a member is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnknownCause<'a> {
    /// The kubeconfig was removed.
    Removed,
    /// The kubeconfig can't be used.
    InvalidKubeconfig(&'a str),
    /// The API server can't be reached.
    Unreachable(&'a str),
    /// The API server rejects the credentials.
    Unauthorized(&'a str),
    /// The member has not been probed yet.
    NotProbed,
    /// A liveness probe failed.
    ProbeFailing(&'a str),
    /// Local sets and pods are not listed yet.
    NotSynced,
    /// The watch is down.
    Stale {
        /// When the view was last current.
        since: Timestamp,
    },
    /// A previous write has not been answered yet.
    WritePending,
}

impl Eligibility<'_> {
    pub(super) fn is_eligible(&self) -> bool {
        matches!(self, Self::Eligible { .. })
    }

    /// Whether the member may be changed.
    pub(super) fn is_writable(&self) -> bool {
        *self == Self::Eligible { hold: None }
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
        }
    }
}

/// How to treat `member`, whatever other members there are.
pub(super) fn of_member<'a>(
    member: &'a Member,
    previous: Option<&ClusterStatus>,
    now: Timestamp,
    settings: &CheckSettings,
) -> Eligibility<'a> {
    if let Some(removed) = member.removed {
        let since = match member.health {
            // A member that was lost before stays lost.
            Health::Unreachable { since, .. } => since.min(removed),
            _ => removed,
        };
        return lost_after_grace_period(member, since, now, UnknownCause::Removed);
    }
    if let Some(error) = &member.invalid_kubeconfig {
        return unknown(UnknownCause::InvalidKubeconfig(error));
    }
    let is_current = member.sync == SyncState::Synced;
    let was_eligible =
        previous.is_some_and(|previous| previous.state == Some(ClusterState::Eligible));
    match &member.health {
        Health::Unreachable { since, message } => {
            lost_after_grace_period(member, *since, now, UnknownCause::Unreachable(message))
        }
        Health::Unauthorized { message } => unknown(UnknownCause::Unauthorized(message)),
        Health::Unknown => joining(member, now, settings, UnknownCause::NotProbed),
        Health::Failing { .. } if is_current && was_eligible => Eligibility::Eligible {
            hold: Some(Hold::ProbeFailing),
        },
        Health::Failing { message, .. } => unknown(UnknownCause::ProbeFailing(message)),
        Health::Healthy => match member.sync {
            SyncState::Synced if !member.write_pending => Eligibility::Eligible { hold: None },
            SyncState::Synced if was_eligible => Eligibility::Eligible {
                hold: Some(Hold::WritePending),
            },
            SyncState::Synced => unknown(UnknownCause::WritePending),
            SyncState::NotSynced => joining(member, now, settings, UnknownCause::NotSynced),
            SyncState::Stale { since } => unknown(UnknownCause::Stale { since }),
        },
    }
}

fn unknown(cause: UnknownCause<'_>) -> Eligibility<'_> {
    Eligibility::Unknown { cause, until: None }
}

fn lost_after_grace_period<'a>(
    member: &Member,
    since: Timestamp,
    now: Timestamp,
    cause: UnknownCause<'a>,
) -> Eligibility<'a> {
    let until = after(since, member.grace_period);
    if now >= until {
        Eligibility::Lost { since }
    } else {
        Eligibility::Unknown {
            cause,
            until: Some(until),
        }
    }
}

fn joining<'a>(
    member: &Member,
    now: Timestamp,
    settings: &CheckSettings,
    cause: UnknownCause<'a>,
) -> Eligibility<'a> {
    let until = after(member.joined, settings.joining_timeout);
    if now < until {
        Eligibility::Joining { until }
    } else {
        unknown(cause)
    }
}
