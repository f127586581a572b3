//! The plan of a Deployment's reconciliation: `Deployment, ReplicaSets -> Plan {writes, status}`. Pure.
//!
//! ```text
//! paused, resumed?   -> condition
//! new set is behind? -> its annotations -> revision of the Deployment
//! paused, scaled?    -> sizes in proportion
//! otherwise          -> rolling: new set up, or old ones down, or old ones removed
//!                       recreate: old ones to 0, no pod of them runs, new one up
//! ```
//!
//! A plan that writes the Deployment's revision or creates a ReplicaSet ends there: the change that it causes leads to the
//! next plan.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::limits::Limits;
use super::progress;
use super::revisions::{Revisions, updated_annotations};
use super::rolling::{new_replicas, resize_new, shrink_old};
use super::scaling::{self, Resize};
use super::status::Status;
use super::views::{Deployment, REVISION, Set, sum, total};
use crate::object::{annotation, generation, integer, is_terminating};

/// What to write, in this order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Plan<'a> {
    pub(super) writes: Vec<Write<'a>>,
    /// The Deployment's next revision and status, if they change.
    pub(super) next: Option<Next>,
    /// When to plan again if nothing changes before.
    pub(super) look_again: Option<Timestamp>,
}

/// A write to a ReplicaSet.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Write<'a> {
    /// Brings the new ReplicaSet up to date with its Deployment.
    Update {
        set: Set<'a>,
        annotations: Map<String, Value>,
        min_ready_seconds: i64,
    },
    /// Creates the new ReplicaSet; the Deployment's status depends on the outcome.
    Create { revision: i64, replicas: i64 },
    /// Changes the number of replicas.
    Resize(Resize<'a>),
    /// Deletes an old ReplicaSet.
    Delete(Set<'a>),
}

/// What is written to the Deployment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Next {
    /// The revision annotation; `None` leaves it as it is.
    pub(super) revision: Option<String>,
    pub(super) status: Value,
}

/// A Deployment with its ReplicaSets at one time.
struct Planner<'a> {
    deployment: Deployment<'a>,
    revisions: Revisions<'a>,
    limits: Limits,
    now: Timestamp,
}

/// Plans for a Deployment. `has_running_pods` says whether pods of a ReplicaSet have not terminated.
pub(super) fn plan<'a>(
    deployment: Deployment<'a>,
    sets: &[Set<'a>],
    has_running_pods: impl Fn(Set<'a>) -> bool,
    now: Timestamp,
) -> Plan<'a> {
    let planner = Planner {
        deployment,
        revisions: Revisions::of(deployment, sets),
        limits: Limits::of(deployment),
        now,
    };
    let terminating = deployment.is_terminating();
    if let Some(status) = progress::paused_or_resumed(deployment, now).filter(|_| !terminating) {
        return Plan {
            next: next(deployment, None, status),
            ..Plan::default()
        };
    }
    if let Some(plan) = planner.catch_up() {
        return plan;
    }
    if terminating {
        planner.with_counts(Vec::new())
    } else if deployment.is_paused() || scaling::is_due(deployment, &planner.revisions) {
        planner.scale()
    } else if deployment.is_rolling() {
        planner.roll()
    } else {
        planner.recreate(has_running_pods)
    }
}

/// What to write to the Deployment, if it changes.
pub(super) fn next(
    deployment: Deployment<'_>,
    revision: Option<&str>,
    status: Status,
) -> Option<Next> {
    let had = annotation(deployment.0, REVISION).unwrap_or_default();
    let revision = revision.filter(|revision| *revision != had);
    if revision.is_none() && status == Status::of(deployment) {
        return None;
    }
    Some(Next {
        revision: revision.map(str::to_owned),
        status: status.into_value(),
    })
}

impl<'a> Planner<'a> {
    /// Brings the new ReplicaSet up to date, if there is one, then the revision of the Deployment.
    fn catch_up(&self) -> Option<Plan<'a>> {
        let (deployment, set) = (self.deployment, self.revisions.new?);
        let annotations = updated_annotations(deployment, set, self.revisions.next_revision());
        let min_ready_seconds = deployment.min_ready_seconds();
        let has = integer(set.0, "/spec/minReadySeconds").unwrap_or_default();
        if annotations.is_some() || has != min_ready_seconds {
            let current = || crate::object::map(set.0, "/metadata/annotations").cloned();
            let annotations = annotations.or_else(current).unwrap_or_default();
            return Some(Plan {
                writes: vec![Write::Update {
                    set,
                    annotations,
                    min_ready_seconds,
                }],
                ..Plan::default()
            });
        }
        let status = progress::found(deployment, set.name(), self.now)
            .unwrap_or_else(|| Status::of(deployment));
        let next = next(deployment, Some(set.annotation(REVISION)?), status)?;
        Some(Plan {
            next: Some(next),
            ..Plan::default()
        })
    }

    fn scale(&self) -> Plan<'a> {
        let resizes = scaling::scale(self.deployment, &self.revisions, self.limits);
        let mut writes: Vec<Write<'a>> = resizes.into_iter().map(Write::Resize).collect();
        if self.deployment.is_paused() {
            writes.extend(self.surplus_history());
        }
        self.with_counts(writes)
    }

    fn roll(&self) -> Plan<'a> {
        let (deployment, revisions, limits) = (self.deployment, &self.revisions, self.limits);
        let Some(new) = revisions.new else {
            return self.create();
        };
        let mut resizes: Vec<Resize<'a>> = resize_new(deployment, revisions, new, limits)
            .into_iter()
            .collect();
        if resizes.is_empty() {
            resizes = shrink_old(deployment, revisions, new, limits);
        }
        if resizes.is_empty() {
            return self.with_progress(self.history_of_complete());
        }
        self.with_progress(resizes.into_iter().map(Write::Resize).collect())
    }

    fn recreate(&self, has_running_pods: impl Fn(Set<'a>) -> bool) -> Plan<'a> {
        let old = &self.revisions.old;
        let stop: Vec<Write<'a>> = (old.iter())
            .filter_map(|set| Resize::of(*set, 0))
            .map(Write::Resize)
            .collect();
        if !stop.is_empty() {
            return self.with_progress(stop);
        }
        let is_running = sum(old.iter().copied(), "replicas") > 0
            || old.iter().any(|set| has_running_pods(*set));
        if is_running {
            return self.with_progress(Vec::new());
        }
        let Some(new) = self.revisions.new else {
            return self.create();
        };
        let resize = Resize::of(new, self.deployment.replicas()).map(Write::Resize);
        let mut writes: Vec<Write<'a>> = resize.into_iter().collect();
        writes.extend(self.history_of_complete());
        self.with_progress(writes)
    }

    fn create(&self) -> Plan<'a> {
        let all = total(self.revisions.all());
        let create = Write::Create {
            revision: self.revisions.next_revision(),
            replicas: new_replicas(self.deployment, self.limits, all, 0),
        };
        Plan {
            writes: vec![create],
            ..Plan::default()
        }
    }

    /// The old ReplicaSets to delete after a rollout is complete.
    fn history_of_complete(&self) -> Vec<Write<'a>> {
        if Status::of(self.deployment).is_complete(self.deployment) {
            self.surplus_history()
        } else {
            Vec::new()
        }
    }

    /// The old ReplicaSets above the history's limit, with the lowest revisions, unless they still have pods.
    fn surplus_history(&self) -> Vec<Write<'a>> {
        let Some(limit) = self.deployment.history_limit() else {
            return Vec::new();
        };
        let old = self.revisions.old.iter().copied();
        let mut kept: Vec<Set<'a>> = old.filter(|set| !is_terminating(set.0)).collect();
        kept.sort_by_key(|set| set.revision());
        let surplus = kept
            .len()
            .saturating_sub(usize::try_from(limit).unwrap_or_default());
        let first = kept.into_iter().take(surplus);
        let is_empty = |set: &Set<'_>| {
            set.status("replicas") == 0
                && !set.is_active()
                && generation(set.0) <= set.status("observedGeneration")
        };
        first.filter(is_empty).map(Write::Delete).collect()
    }

    /// The writes and the counts, without progress: nothing is rolled out.
    fn with_counts(&self, writes: Vec<Write<'a>>) -> Plan<'a> {
        Plan {
            writes,
            next: next(self.deployment, None, self.computed()),
            look_again: None,
        }
    }

    /// The writes, the counts and the progress of a rollout.
    fn with_progress(&self, writes: Vec<Write<'a>>) -> Plan<'a> {
        let computed = self.computed();
        let status = progress::estimate(self.deployment, &self.revisions, computed, self.now);
        let look_again = progress::check_at(self.deployment, &status);
        Plan {
            writes,
            next: next(self.deployment, None, status),
            look_again,
        }
    }

    fn computed(&self) -> Status {
        Status::computed(self.deployment, &self.revisions, self.limits, self.now)
    }
}
