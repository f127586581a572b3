//! The message and the reason of one cluster in the status (F19).

use std::fmt::{self, Display, Write};

use federated_scheduler::Reason;
use fedrs_api::ClusterReason;
use jiff::Timestamp;

use super::text::{Time, pods, quoted, replicas};
use crate::check::eligibility::UnknownCause;

/// One detail of why a cluster has its replicas.
#[derive(Clone, Copy, Debug)]
pub(in crate::check) enum ClusterDetail<'a> {
    /// The first answer of the cluster is awaited.
    Joining { until: Timestamp },
    /// The state of the cluster is not known.
    Unknown {
        cause: UnknownCause<'a>,
        until: Option<Timestamp>,
    },
    /// The cluster is lost.
    Lost { since: Timestamp },
    /// The cluster is registered twice.
    Duplicate { of: &'a str },
    /// What decided the layout.
    Share(Reason),
    /// The cluster is drained; it has this many replicas.
    Draining { replicas: u64 },
    /// The cluster is cordoned.
    Cordoned,
    /// The cluster rejects the ReplicaSet.
    Rejecting {
        since: Timestamp,
        message: Option<&'a str>,
        next: Option<Timestamp>,
    },
    /// Replicas run here that no other cluster can take.
    Kept { replicas: u64 },
    /// Replicas are pending that no cluster can run.
    Pending { replicas: u64 },
    /// Replicas are pending on top, to detect capacity.
    CapacityProbes { replicas: u64 },
    /// Pods have no node.
    Unschedulable { pods: u64, message: Option<&'a str> },
    /// The cluster can't create pods.
    NotCreated { pods: u64, message: Option<&'a str> },
    /// When unscheduled replicas are rescheduled.
    RescheduledAt(Timestamp),
    /// Earlier writes hold the next one back.
    WriteHeld {
        error: Option<&'a str>,
        until: Timestamp,
    },
    /// Replicas stay until their replacements are ready.
    Surplus { replicas: u64 },
    /// The set is paused.
    Paused,
}

/// The reasons, the most significant first.
const SIGNIFICANCE: [ClusterReason; 30] = [
    ClusterReason::DuplicateMember,
    ClusterReason::Lost,
    ClusterReason::Removed,
    ClusterReason::InvalidKubeconfig,
    ClusterReason::Unreachable,
    ClusterReason::Unauthorized,
    ClusterReason::NotProbed,
    ClusterReason::ProbeFailing,
    ClusterReason::NotSynced,
    ClusterReason::Stale,
    ClusterReason::WritePending,
    ClusterReason::Joining,
    ClusterReason::Paused,
    ClusterReason::WriteRejected,
    ClusterReason::ExternalWriter,
    ClusterReason::CreationRejected,
    ClusterReason::PodsNotCreated,
    ClusterReason::PodsUnschedulable,
    ClusterReason::InsufficientCapacity,
    ClusterReason::KeptInPlace,
    ClusterReason::WaitingForReplacements,
    ClusterReason::Draining,
    ClusterReason::Cordoned,
    ClusterReason::AtCapacity,
    ClusterReason::AtMaximum,
    ClusterReason::AtMinimum,
    ClusterReason::ByWeight,
    ClusterReason::NoShare,
    ClusterReason::NotSelected,
    ClusterReason::CapacityProbes,
];

impl ClusterDetail<'_> {
    fn reason(&self) -> Option<ClusterReason> {
        Some(match self {
            Self::Joining { .. } => ClusterReason::Joining,
            Self::Unknown { cause, .. } => unknown_reason(*cause),
            Self::Lost { .. } => ClusterReason::Lost,
            Self::Duplicate { .. } => ClusterReason::DuplicateMember,
            Self::Share(reason) => share_reason(reason),
            Self::Draining { .. } => ClusterReason::Draining,
            Self::Cordoned => ClusterReason::Cordoned,
            Self::Rejecting { .. } => ClusterReason::CreationRejected,
            Self::Kept { .. } => ClusterReason::KeptInPlace,
            Self::Pending { .. } => ClusterReason::InsufficientCapacity,
            Self::CapacityProbes { .. } => ClusterReason::CapacityProbes,
            Self::Unschedulable { .. } => ClusterReason::PodsUnschedulable,
            Self::NotCreated { .. } => ClusterReason::PodsNotCreated,
            Self::RescheduledAt(_) => return None,
            Self::WriteHeld { error: Some(_), .. } => ClusterReason::WriteRejected,
            Self::WriteHeld { error: None, .. } => ClusterReason::ExternalWriter,
            Self::Surplus { .. } => ClusterReason::WaitingForReplacements,
            Self::Paused => ClusterReason::Paused,
        })
    }
}

fn unknown_reason(cause: UnknownCause<'_>) -> ClusterReason {
    match cause {
        UnknownCause::Removed => ClusterReason::Removed,
        UnknownCause::InvalidKubeconfig(_) => ClusterReason::InvalidKubeconfig,
        UnknownCause::Unreachable(_) => ClusterReason::Unreachable,
        UnknownCause::Unauthorized(_) => ClusterReason::Unauthorized,
        UnknownCause::NotProbed => ClusterReason::NotProbed,
        UnknownCause::ProbeFailing(_) => ClusterReason::ProbeFailing,
        UnknownCause::NotSynced => ClusterReason::NotSynced,
        UnknownCause::Stale { .. } => ClusterReason::Stale,
        UnknownCause::WritePending => ClusterReason::WritePending,
    }
}

fn share_reason(reason: &Reason) -> ClusterReason {
    match reason {
        Reason::NotSelected => ClusterReason::NotSelected,
        Reason::ScaledToZero | Reason::NoReplicasLeft { .. } | Reason::ZeroWeight => {
            ClusterReason::NoShare
        }
        Reason::AtMinimum { .. } | Reason::BelowMinimum { .. } => ClusterReason::AtMinimum,
        Reason::ByWeight(_) | Reason::AboveShare { .. } | Reason::RemovedFirst { .. } => {
            ClusterReason::ByWeight
        }
        Reason::WithinShare { .. } | Reason::KeptInPlace { .. } => ClusterReason::KeptInPlace,
        Reason::AtMaximum { .. } => ClusterReason::AtMaximum,
        Reason::AtCapacity { .. } => ClusterReason::AtCapacity,
    }
}

impl Display for ClusterDetail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Joining { until } => {
                write!(
                    f,
                    "just added: waiting for the first answer until {}",
                    Time(until)
                )
            }
            Self::Unknown { cause, until } => {
                write!(f, "on hold: {cause}")?;
                until.map_or(Ok(()), |until| {
                    write!(f, "; {}", Self::RescheduledAt(until))
                })
            }
            Self::Lost { since } => write!(
                f,
                "lost since {}: replicas are rescheduled to other clusters",
                Time(since)
            ),
            Self::Duplicate { of } => write!(f, "same cluster as {of}, which counts its replicas"),
            Self::Share(reason) => reason.fmt(f),
            Self::Draining { replicas: 0 } => f.write_str("draining: no replicas"),
            Self::Draining { .. } => {
                f.write_str("draining: replicas are rescheduled to other clusters")
            }
            Self::Cordoned => f.write_str("cordoned: no more replicas"),
            Self::Rejecting {
                since,
                message,
                next,
            } => {
                let message = quoted(message);
                write!(f, "rejects the ReplicaSet since {} {message}", Time(since))?;
                next.map_or(Ok(()), |next| write!(f, "; next attempt at {}", Time(next)))
            }
            Self::Kept { replicas: count } => {
                write!(
                    f,
                    "{} kept: no other cluster can take them",
                    replicas(count)
                )
            }
            Self::Pending { replicas: count } => {
                write!(f, "{} pending: no cluster has capacity", replicas(count))
            }
            Self::CapacityProbes { replicas: count } => {
                write!(f, "{} pending to detect capacity", replicas(count))
            }
            Self::Unschedulable {
                pods: count,
                message,
            } => {
                write!(f, "{} unschedulable {}", pods(count), quoted(message))
            }
            Self::NotCreated {
                pods: count,
                message,
            } => {
                write!(f, "{} not created {}", pods(count), quoted(message))
            }
            Self::RescheduledAt(time) => {
                write!(f, "will be rescheduled to other clusters at {}", Time(time))
            }
            Self::WriteHeld { error, until } => {
                match error {
                    Some(error) => write!(f, "last write failed ({error})")?,
                    None => f.write_str("changed by another writer")?,
                }
                write!(f, "; next write at {}", Time(until))
            }
            Self::Surplus { replicas: count } => {
                write!(
                    f,
                    "{} waiting for replacements to be ready",
                    replicas(count)
                )
            }
            Self::Paused => f.write_str("paused"),
        }
    }
}

impl Display for UnknownCause<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Removed => f.write_str("the kubeconfig was removed"),
            Self::InvalidKubeconfig(error) => write!(f, "the kubeconfig is invalid ({error})"),
            Self::Unreachable(error) => write!(f, "the API server is unreachable ({error})"),
            Self::Unauthorized(error) => {
                write!(f, "the API server rejects the credentials ({error})")
            }
            Self::NotProbed => f.write_str("the cluster has not answered yet"),
            Self::ProbeFailing(error) => write!(f, "the liveness probe fails ({error})"),
            Self::NotSynced => f.write_str("ReplicaSets and pods are not listed yet"),
            Self::Stale { since } => {
                write!(f, "the watch is down, the view is from {}", Time(*since))
            }
            Self::WritePending => f.write_str("a previous write is pending"),
        }
    }
}

/// The message of a cluster, and the most significant reason of its details.
#[derive(Clone, Debug, Default)]
pub(in crate::check) struct ClusterMessage {
    pub(in crate::check) reason: Option<ClusterReason>,
    pub(in crate::check) text: String,
}

impl ClusterMessage {
    /// Adds `detail`.
    pub(in crate::check) fn push(&mut self, detail: ClusterDetail<'_>) {
        if !self.text.is_empty() {
            self.text.push_str("; ");
        }
        write!(self.text, "{detail}").expect("a String takes any text");
        let significance =
            |reason: &ClusterReason| SIGNIFICANCE.iter().position(|known| known == reason);
        let reasons = self.reason.into_iter().chain(detail.reason());
        self.reason = reasons.min_by_key(significance);
    }
}
