//! Read-only views of a Deployment and of its ReplicaSets: `&Value -> facts`.

use std::cmp::Ordering;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::object::{self, annotation, flag, integer, list, map, text, time};

/// The number of the rollout, on the Deployment and its ReplicaSets.
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
/// The earlier revisions of a ReplicaSet that was rolled back to.
pub(super) const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// The replicas of the Deployment when it last scaled the ReplicaSet.
pub(super) const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
/// These replicas and `maxSurge`.
pub(super) const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";

/// The value with which `progressDeadlineSeconds` and `revisionHistoryLimit` mean: without a limit.
const UNLIMITED: i64 = i32::MAX as i64;

/// A Deployment as JSON, read by name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deployment<'a>(pub(super) &'a Value);

impl<'a> Deployment<'a> {
    pub(super) fn name(self) -> &'a str {
        object::name(self.0)
    }

    /// `spec.replicas`; 1 if the field is absent.
    pub(super) fn replicas(self) -> i64 {
        integer(self.0, "/spec/replicas").unwrap_or(1)
    }

    pub(super) fn min_ready_seconds(self) -> i64 {
        integer(self.0, "/spec/minReadySeconds").unwrap_or_default()
    }

    /// Whether the strategy is `RollingUpdate`, otherwise it is `Recreate`.
    pub(super) fn is_rolling(self) -> bool {
        text(self.0, "/spec/strategy/type") == "RollingUpdate"
    }

    pub(super) fn is_paused(self) -> bool {
        flag(self.0, "/spec/paused")
    }

    pub(super) fn is_terminating(self) -> bool {
        object::is_terminating(self.0)
    }

    /// `spec.progressDeadlineSeconds`, unless progress has no deadline.
    pub(super) fn progress_deadline(self) -> Option<i64> {
        integer(self.0, "/spec/progressDeadlineSeconds").filter(|seconds| *seconds != UNLIMITED)
    }

    /// `spec.revisionHistoryLimit`, unless all old ReplicaSets are kept.
    pub(super) fn history_limit(self) -> Option<i64> {
        integer(self.0, "/spec/revisionHistoryLimit").filter(|limit| *limit != UNLIMITED)
    }

    pub(super) fn annotations(self) -> Option<&'a Map<String, Value>> {
        map(self.0, "/metadata/annotations")
    }

    pub(super) fn conditions(self) -> &'a [Value] {
        list(self.0, "/status/conditions")
    }
}

/// A ReplicaSet of a Deployment as JSON, read by name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Set<'a>(pub(super) &'a Value);

impl<'a> Set<'a> {
    pub(super) fn name(self) -> &'a str {
        object::name(self.0)
    }

    pub(super) fn uid(self) -> &'a str {
        object::uid(self.0)
    }

    /// `spec.replicas`; 1 if the field is absent.
    pub(super) fn replicas(self) -> i64 {
        integer(self.0, "/spec/replicas").unwrap_or(1)
    }

    /// Whether it specifies any replicas.
    pub(super) fn is_active(self) -> bool {
        self.replicas() > 0
    }

    /// A count of the status; 0 where absent.
    pub(super) fn status(self, count: &str) -> i64 {
        object::at(self.0, "/status")
            .and_then(|status| status.get(count))
            .and_then(Value::as_i64)
            .unwrap_or_default()
    }

    pub(super) fn available(self) -> i64 {
        self.status("availableReplicas")
    }

    pub(super) fn conditions(self) -> &'a [Value] {
        list(self.0, "/status/conditions")
    }

    pub(super) fn annotation(self, key: &str) -> Option<&'a str> {
        annotation(self.0, key)
    }

    /// An annotation that is a number of replicas; `None` if it is absent or no such number.
    pub(super) fn replicas_annotation(self, key: &str) -> Option<i64> {
        let number = self.annotation(key)?.parse::<i32>().ok()?;
        (number >= 0).then_some(i64::from(number))
    }

    /// Its revision; 0 if it has none, or none that is a number.
    pub(super) fn revision(self) -> i64 {
        self.annotation(REVISION)
            .and_then(|revision| revision.parse().ok())
            .unwrap_or_default()
    }

    /// Older ReplicaSets come first; of two that were created in the same second, the one with the smaller name.
    pub(super) fn by_age(self, other: Set<'_>) -> Ordering {
        let key =
            |set: Set<'_>| -> Option<Timestamp> { time(set.0, "/metadata/creationTimestamp") };
        key(self)
            .cmp(&key(other))
            .then_with(|| self.name().cmp(other.name()))
    }
}

/// The specified replicas of all these ReplicaSets.
pub(super) fn total<'a>(sets: impl IntoIterator<Item = Set<'a>>) -> i64 {
    sets.into_iter().map(Set::replicas).sum()
}

/// A count in the status of all these ReplicaSets.
pub(super) fn sum<'a>(sets: impl IntoIterator<Item = Set<'a>>, count: &str) -> i64 {
    sets.into_iter().map(|set| set.status(count)).sum()
}
