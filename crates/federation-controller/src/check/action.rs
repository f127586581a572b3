//! Changes of the members' local workloads, each conditional on the workload that it was decided for.

use cluster_informer::WorkloadState;
use controller_base::event::Event;
use federated_rollout::{Action as RolloutAction, Strategy};
use fedrs_api::{EventReason, SetKind, pluralize};
use jiff::Timestamp;

/// One change of one member's local workload.
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
    /// Whether people want to know of it: else it is only logged.
    pub is_news: bool,
}

/// How a local workload, a ReplicaSet or a Deployment, changes. Carries the precondition of the write.
///
/// The template of a Deployment that exists changes by [`Rollout`](Self::Rollout) only: any difference replaces its pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetChange {
    /// Create the workload, which does not exist. A Deployment gets the strategy
    /// [`WITHOUT_LOAN`](federated_rollout::Strategy::WITHOUT_LOAN). One of its name that exists is adopted (F29).
    Create {
        /// Its `spec.replicas`.
        replicas: u32,
        /// The revision of its template, if that is not the one that is rolled out: the one that all members had last.
        revision: Option<String>,
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
    /// Write all of a ReplicaSet: its template is not the desired one (F29). Of a Deployment, write all but the template and the
    /// strategy, and end a pause of another writer.
    Overwrite {
        /// The set as it was seen.
        seen: Precondition,
        /// Its `spec.replicas`.
        replicas: u32,
        /// Whether another writer changed the set. If not, the federated set has changed.
        drifted: bool,
        /// Whether a pause of the Deployment is that of the rollout.
        keeps_pause: bool,
    },
    /// Label the pods that the set adopted (F30), and the ReplicaSets of a Deployment.
    LabelPods {
        /// The set as it was seen.
        seen: Precondition,
    },
    /// Have clients leave pods that are removed next, or go back to them (`spec.drainSeconds`).
    DrainPods {
        /// The set as it was seen.
        seen: Precondition,
        /// How many of its ready pods are to drain: others of them do no longer.
        pods: u32,
        /// When those that begin do.
        since: Timestamp,
    },
    /// Carry out a write of the rollout in a Deployment.
    Rollout {
        /// The Deployment as it was seen; the generation is that of [`Write`](federated_rollout::Write).
        seen: Precondition,
        /// What to write.
        action: RolloutAction,
    },
}

impl SetChange {
    /// Whether the change creates the set.
    pub(crate) fn creates(&self) -> bool {
        matches!(self, Self::Create { .. })
    }

    /// The revision of the template that it writes, if that is not the one that is rolled out.
    pub(crate) fn earlier_revision(&self) -> Option<&str> {
        match self {
            Self::Create { revision, .. } => revision.as_deref(),
            _ => None,
        }
    }

    /// The event of the change of a local workload of a set of this kind in `cluster`, once it is done; `why` decided the replicas.
    /// `repairs` after an external change.
    pub(super) fn event(&self, kind: SetKind, cluster: &str, why: &str, repairs: bool) -> Event {
        let replicas = |count: u32| pluralize(count, "replica");
        let (reason, text) = match *self {
            Self::Create {
                replicas: count, ..
            } if repairs => {
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
            Self::Create {
                replicas: count, ..
            } => {
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
            Self::Overwrite { .. } => {
                let what = match kind {
                    SetKind::FederatedReplicaSet => "template",
                    SetKind::FederatedDeployment => "settings",
                };
                (EventReason::Updated, format!("{what} updated"))
            }
            Self::LabelPods { .. } => (EventReason::PodsAdopted, "adopted pods labeled".to_owned()),
            Self::DrainPods { pods, .. } => {
                let text = format!("clients are to leave {}", pluralize(pods, "pod"));
                (EventReason::PodsDraining, text)
            }
            Self::Rollout { action, .. } => {
                let text = match action {
                    RolloutAction::Roll(strategy) => {
                        format!("template updated with {}", described(strategy))
                    }
                    RolloutAction::Shrink(strategy) => {
                        format!("strategy set to {}", described(strategy))
                    }
                    RolloutAction::Lend(strategy) => {
                        format!("strategy set to {} for evictions", described(strategy))
                    }
                    RolloutAction::Pause => "rollout paused".to_owned(),
                    RolloutAction::Resume => "rollout resumed".to_owned(),
                    RolloutAction::Fence => "earlier writes of the template fenced off".to_owned(),
                };
                (EventReason::Updated, text)
            }
        };
        let text = format!("{cluster}: {text}");
        match reason {
            EventReason::DriftRepaired => Event::warning(reason, text),
            _ => Event::normal(reason, text),
        }
    }
}

/// The replicas with which a workload is written that claims (`spec.replicas`, `status.replicas`), where so many are `wanted` of
/// N = `desired`. Pods that exist stay: later checks remove the surplus without a dip. A member may claim any number; what does
/// not exist is not needed beyond N (F20, F30).
pub(crate) fn kept_replicas(wanted: u32, (claimed, existing): (u32, u32), desired: u32) -> u32 {
    wanted.max(claimed.min(existing.max(desired)))
}

fn described(strategy: Strategy) -> String {
    let Strategy { unavailable, surge } = strategy;
    format!("maxUnavailable {unavailable} and maxSurge {surge}")
}

/// The object, in the state that a write was decided for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Precondition {
    /// The object's uid.
    pub uid: String,
    /// The object's generation: every change of its spec raises it.
    pub generation: i64,
    /// The object's [`spec_version`](WorkloadState::spec_version).
    pub spec_version: i64,
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
            spec_version: set.spec_version(),
            has_owners: set.has_owners,
            // Only the version shows which owners these are.
            resource_version: set.has_owners.then(|| set.resource_version.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// N is 9, of which 3 are wanted.
    #[test]
    fn f30_pods_that_exist_stay_and_what_a_member_only_claims_is_not_needed_beyond_n() {
        for (claimed, existing, kept) in [
            (0, 0, 3),
            (1, 1, 3),
            (5, 0, 5),
            (20, 20, 20),
            (20, 12, 12),
            (5, 12, 5),
            (u32::MAX, 2, 9),
        ] {
            let replicas = kept_replicas(3, (claimed, existing), 9);
            assert_eq!(replicas, kept, "{claimed} {existing}");
        }
    }
}
