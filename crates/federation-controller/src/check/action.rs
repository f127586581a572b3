//! Changes of the members' local ReplicaSets, each conditional on the set that it was decided for.

use cluster_informer::WorkloadState;
use fedrs_api::{EventReason, pluralize};

use crate::event::Event;

/// One change of one member's local ReplicaSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// The member.
    pub member: String,
    /// The change.
    pub change: SetChange,
    /// Whether it restores the set after an external change (F29, F31).
    pub repairs: bool,
    /// The event to record once it is done.
    pub event: Event,
}

/// How a local ReplicaSet changes. Carries the precondition of the write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetChange {
    /// Create the set, which does not exist.
    Create {
        /// Its `spec.replicas`.
        replicas: u32,
    },
    /// Change its replicas.
    Scale {
        /// The set as it was seen.
        seen: Precondition,
        /// Its replicas.
        from: u32,
        /// Its replicas afterwards.
        to: u32,
    },
    /// Write all of it: its template is not the desired one (F29).
    Overwrite {
        /// The set as it was seen.
        seen: Precondition,
        /// Its `spec.replicas`.
        replicas: u32,
        /// Whether another writer changed the set. If not, the FederatedReplicaSet has changed.
        drifted: bool,
    },
    /// Label the pods that the set adopted (F30).
    LabelPods {
        /// The set as it was seen.
        seen: Precondition,
    },
}

impl SetChange {
    /// Whether the change creates the set.
    pub(crate) fn creates(&self) -> bool {
        matches!(self, Self::Create { .. })
    }

    /// The event of the change in `cluster`, once it is done; `why` decided the replicas. `repairs` after an external change.
    pub(super) fn event(&self, cluster: &str, why: &str, repairs: bool) -> Event {
        let replicas = |count: u32| pluralize(count, "replica");
        let (reason, text) = match *self {
            Self::Create { replicas: count } if repairs => {
                let text = format!("deleted externally; recreated with {}", replicas(count));
                (EventReason::DriftRepaired, text)
            }
            Self::Scale { from, to, .. } if repairs => {
                let text = format!("scaled externally to {from}; restored to {to}");
                (EventReason::DriftRepaired, text)
            }
            Self::Overwrite { drifted: true, .. } => {
                let text = "changed externally; restored".to_owned();
                (EventReason::DriftRepaired, text)
            }
            Self::Create { replicas: count } => {
                let text = format!("created with {}: {why}", replicas(count));
                (EventReason::Created, text)
            }
            Self::Scale { from, to, .. } if to > from => {
                let text = format!("scaled up from {from} to {to}: {why}");
                (EventReason::ScaledUp, text)
            }
            Self::Scale { from, to, .. } => {
                let text = format!("scaled down from {from} to {to}: {why}");
                (EventReason::ScaledDown, text)
            }
            Self::Overwrite { .. } => (EventReason::Updated, "template updated".to_owned()),
            Self::LabelPods { .. } => (EventReason::PodsAdopted, "adopted pods labeled".to_owned()),
        };
        let text = format!("{cluster}: {text}");
        match reason {
            EventReason::DriftRepaired => Event::warning(reason, text),
            _ => Event::normal(reason, text),
        }
    }
}

/// The object, in the state that a write was decided for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Precondition {
    /// The object's uid.
    pub uid: String,
    /// The object's generation: every change of its spec raises it.
    pub generation: i64,
    /// Whether the object has owner references. One that a controller adopts meanwhile must not be written.
    pub has_owners: bool,
    /// The object's resourceVersion, which a change of the status raises as well: set if the status decided the write.
    pub resource_version: Option<String>,
}

impl From<&WorkloadState> for Precondition {
    fn from(set: &WorkloadState) -> Self {
        Self {
            uid: set.uid.clone(),
            generation: set.generation,
            has_owners: set.has_owners,
            // Only the version shows which owners these are.
            resource_version: set.has_owners.then(|| set.resource_version.clone()),
        }
    }
}
