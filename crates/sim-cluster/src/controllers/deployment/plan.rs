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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::deployment::views::REVISION_HISTORY;
    use rstest::rstest;
    use serde_json::json;

    /// A Deployment of 2 replicas of the image `new`.
    fn deployment(strategy: &str) -> Value {
        let mut rolling = json!({"type": strategy});
        if strategy == "RollingUpdate" {
            rolling["rollingUpdate"] = json!({"maxSurge": 1, "maxUnavailable": 0});
        }
        json!({
            "metadata": {"name": "web", "generation": 1, "annotations": {REVISION: "9"}},
            "spec": {
                "replicas": 2, "strategy": rolling, "template": {"spec": {"image": "new"}},
                "revisionHistoryLimit": 1,
            },
        })
    }

    fn set(image: &str, revision: i64, replicas: i64) -> Value {
        json!({
            "metadata": {
                "name": format!("{image}-{revision}"), "generation": 1,
                "annotations": {REVISION: revision.to_string()},
            },
            "spec": {"replicas": replicas, "template": {"spec": {"image": image}}},
            "status": {
                "replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas,
                "terminatingReplicas": 0, "observedGeneration": 1,
            },
        })
    }

    /// The writes in short.
    fn planned(deployment: &Value, sets: &[Value], running: &str) -> Vec<String> {
        let sets: Vec<Set<'_>> = sets.iter().map(Set).collect();
        let is_running = |set: Set<'_>| set.name() == running;
        let plan = plan(
            Deployment(deployment),
            &sets,
            is_running,
            Timestamp::UNIX_EPOCH,
        );
        let short = |write: &Write<'_>| match write {
            Write::Update {
                set, annotations, ..
            } => format!("{} to revision {}", set.name(), annotations[REVISION]),
            Write::Create { revision, replicas } => format!("create {revision} with {replicas}"),
            Write::Resize(resize) => format!("{} to {}", resize.set.name(), resize.to),
            Write::Delete(set) => format!("delete {}", set.name()),
        };
        let revision = plan.next.and_then(|next| next.revision);
        (plan.writes.iter().map(short))
            .chain(revision.map(|revision| format!("revision {revision}")))
            .collect()
    }

    #[rstest]
    #[case::first(&[], &["create 1 with 2"])]
    #[case::next(&[set("old", 3, 2)], &["create 4 with 1"])]
    #[case::behind(&[set("new", 3, 0), set("old", 4, 2)], &["new-3 to revision \"5\""])]
    #[case::recorded(&[set("new", 3, 2)], &["revision 3"])]
    #[case::up(&[set("new", 9, 1), set("old", 8, 1)], &["new-9 to 2"])]
    #[case::down(&[set("new", 9, 2), set("old", 8, 1)], &["old-8 to 0"])]
    fn a_rolling_update(#[case] sets: &[Value], #[case] expected: &[&str]) {
        assert_eq!(planned(&deployment("RollingUpdate"), sets, ""), expected);
    }

    #[rstest]
    #[case::first(&[], "", &["create 1 with 2"])]
    #[case::stop(&[set("old", 8, 2), set("new", 9, 0)], "", &["old-8 to 0"])]
    #[case::wait(&[set("old", 8, 0)], "old-8", &[])]
    #[case::next(&[set("old", 8, 0)], "", &["create 9 with 2"])]
    #[case::start(&[set("old", 8, 0), set("new", 9, 0)], "new-9", &["new-9 to 2"])]
    fn recreate(#[case] sets: &[Value], #[case] running: &str, #[case] expected: &[&str]) {
        assert_eq!(planned(&deployment("Recreate"), sets, running), expected);
    }

    #[test]
    fn a_deployment_that_is_deleted_or_paused_starts_nothing() {
        let mut terminating = deployment("RollingUpdate");
        terminating["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        terminating["spec"]["replicas"] = json!(5);
        let sets = [set("new", 9, 1), set("old", 8, 1)];
        assert_eq!(planned(&terminating, &sets, ""), [""; 0]);
        let mut paused = deployment("RollingUpdate");
        paused["spec"]["paused"] = json!(true);
        assert_eq!(planned(&paused, &[], ""), [""; 0]);
        assert_eq!(planned(&paused, &sets[1..], ""), ["old-8 to 2"]);
    }

    #[test]
    fn empty_sets_beyond_the_history_are_deleted_after_the_rollout() {
        let mut complete = deployment("RollingUpdate");
        let status = json!({"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2, "observedGeneration": 1});
        let mut deleted = set("e", 4, 0);
        deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let mut unseen = set("c", 6, 0);
        unseen["metadata"]["generation"] = json!(2);
        unseen["metadata"]["annotations"][REVISION_HISTORY] = json!("1");
        let sets = [
            set("new", 9, 2),
            set("a", 8, 0),
            set("b", 7, 0),
            unseen,
            set("d", 5, 0),
            deleted,
        ];
        assert_eq!(planned(&complete, &sets, ""), [""; 0]);
        complete["status"] = status;
        assert_eq!(planned(&complete, &sets, ""), ["delete d-5", "delete b-7"]);
    }
}
