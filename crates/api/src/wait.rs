//! What the controller waits for in a member cluster, and until when.

use std::fmt;

use jiff::{Timestamp, Unit};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::closed_set::closed_set;

closed_set! {
    /// Why the controller waits.
    pub enum WaitReason {
        /// The cluster was just added, and has not answered yet.
        FirstAnswer,
        /// The cluster does not answer; it is lost at the end of its grace period.
        GracePeriod,
        /// The state of this cluster or of another one is unknown, and its replicas stay.
        Recovery,
        /// Replicas are not available yet.
        Availability,
        /// Pods have no node, or can't be created; their replicas are rescheduled at the end of the unscheduled time.
        UnscheduledTimeout,
        /// A capacity probe has to be scheduled before a full cluster gets more replicas.
        CapacityProbe,
        /// Replicas are being removed.
        Removal,
        /// Replicas can't be removed before their replacements in other clusters are available.
        Replacements,
        /// The clients of ready pods are to leave them before they are removed (`spec.drainSeconds`).
        PodDrain,
        /// Writes of a controller process that has ended may still arrive: no replica that runs is removed.
        EarlierWrites,
        /// More replicas would exceed the surge.
        Surge,
        /// The cluster has returned, and has to be healthy for a while before replicas elsewhere are removed.
        StabilizationWindow,
        /// The local ReplicaSet is being deleted: no other one of the name can be created before it is gone.
        Deletion,
        /// The cluster does not have the current revision yet.
        Rollout,
        /// Evictions in a LocalReplicaSet are not finished in time.
        Eviction,
        /// A write that failed, or that another writer undid, is tried again later.
        Backoff,
    }
}

/// What the controller waits for in a member cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterWait {
    /// Why the controller waits. Another version may write other reasons.
    #[schemars(with = "String")]
    pub reason: WaitReason,
    /// What the controller waits for, for people.
    pub message: String,
    /// When the wait ends at the latest; absent if only an event ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}

impl ClusterWait {
    /// A wait, to the second: times by the process's own clock differ by less from one check to the next.
    pub fn new(
        reason: WaitReason,
        message: impl Into<String>,
        until: impl Into<Option<Timestamp>>,
    ) -> Self {
        let until = until.into();
        let until = until.map(|until| until.round(Unit::Second).unwrap_or(until));
        Self {
            reason,
            message: message.into(),
            until: until.map(Time),
        }
    }
}

/// Completes "waiting": `until 2027-01-15T08:02:00Z for 2 pods to be scheduled`.
impl fmt::Display for ClusterWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(until) = &self.until {
            write!(f, "until {:.0} ", until.0)?;
        }
        write!(f, "for {}", self.message)
    }
}
