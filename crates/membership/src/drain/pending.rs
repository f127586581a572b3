//! What is left in a member that is being drained, and why. Pure.

use std::fmt;

use derive_more::Display;
use fedrs_api::{
    ConditionReason, ConditionType, MemberCluster, MemberConditionType, MemberReason, ObjectKey,
    SetKind, conditions, pluralize,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;

use crate::read_set::FederatedSet;

/// The number of sets that are listed; others are only counted.
const LISTED_SETS: usize = 5;
/// Why replicas of a Deployment with pods of several templates stay: its controller would remove some of each template.
const ROLLING: &str = "a rollout replaces its pods first";

/// What a drain waits for.
#[derive(Clone, Debug, Display, PartialEq, Eq)]
pub enum DrainPending {
    /// The controller has not observed the drain.
    #[display("the controller has not observed the drain (is it running?)")]
    NotObserved,
    /// The last replicas are terminating.
    #[display("the last replicas are terminating")]
    Terminating,
    /// The controller does not report the member as drained: the message.
    NotDrained(String),
    /// Replicas are left.
    Replicas(PendingReplicas),
}

/// The replicas that are left in a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingReplicas {
    /// The message of the Ready condition, if the member is not ready.
    pub not_ready: Option<String>,
    /// The sets with replicas.
    pub sets: Vec<PendingSet>,
}

impl fmt::Display for PendingReplicas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(message) = &self.not_ready {
            write!(f, "the member is not ready ({message}); ")?;
        }
        let replicas: i64 = self.sets.iter().map(|set| i64::from(set.replicas)).sum();
        let listed = self.sets.iter().take(LISTED_SETS);
        let mut sets: Vec<String> = listed.map(ToString::to_string).collect();
        if self.sets.len() > LISTED_SETS {
            sets.push(pluralize(self.sets.len() - LISTED_SETS, "more set"));
        }
        write!(
            f,
            "{} left: {}",
            pluralize(replicas, "replica"),
            sets.join(", ")
        )
    }
}

/// A set with replicas in the member.
#[derive(Clone, Debug, Display, PartialEq, Eq)]
#[display("{set} {replicas}{}", in_parentheses(blocked_by))]
pub struct PendingSet {
    /// Its key.
    pub set: ObjectKey,
    /// Its replicas in the member.
    pub replicas: i32,
    /// What keeps them there, for people; empty if they are just moving.
    pub blocked_by: Vec<String>,
}

fn in_parentheses(messages: &[String]) -> String {
    match messages {
        [] => String::new(),
        messages => format!(" ({})", messages.join("; ")),
    }
}

/// What is left in `member`. `None` if no set has replicas there, and the controller reports the drain of the spec with this
/// `generation` as complete.
pub(super) fn pending(
    member: &MemberCluster,
    generation: Option<i64>,
    sets: &[FederatedSet],
) -> Option<DrainPending> {
    let name = member.name_any();
    let sets: Vec<PendingSet> = sets
        .iter()
        .filter_map(|set| pending_set(set, &name))
        .collect();
    if sets.is_empty() {
        return condition_pending(member, generation);
    }
    let ready = condition(member, MemberConditionType::Ready);
    let not_ready = ready.filter(|condition| condition.status != "True");
    Some(DrainPending::Replicas(PendingReplicas {
        not_ready: not_ready.map(|condition| condition.message.clone()),
        sets,
    }))
}

/// What the controller reports about a member without replicas.
fn condition_pending(member: &MemberCluster, generation: Option<i64>) -> Option<DrainPending> {
    // The condition of an earlier drain has an older generation.
    let drained = condition(member, MemberConditionType::Drained)
        .filter(|condition| condition.observed_generation >= generation);
    let Some(drained) = drained else {
        return Some(DrainPending::NotObserved);
    };
    if drained.status == "True" {
        return None;
    }
    // The message counts replicas, and is some seconds older than the status of the sets.
    let is_draining = drained.reason == MemberReason::Draining.as_str();
    Some(if is_draining {
        DrainPending::Terminating
    } else {
        DrainPending::NotDrained(drained.message.clone())
    })
}

fn pending_set(set: &FederatedSet, member: &str) -> Option<PendingSet> {
    let status = &set.status;
    let mut clusters = status.clusters.iter();
    let cluster = clusters.find(|cluster| cluster.name == member)?;
    let conditions = status.conditions.iter();
    let conditions = conditions.filter(|condition| stops_moves(condition));
    let updated = cluster.updated_replicas;
    let is_rolling =
        set.kind == SetKind::FederatedDeployment && updated > 0 && updated < cluster.replicas;
    (cluster.replicas > 0).then(|| PendingSet {
        set: set.key(),
        replicas: cluster.replicas,
        blocked_by: conditions
            .map(|condition| condition.message.clone())
            .chain(is_rolling.then(|| ROLLING.to_owned()))
            .collect(),
    })
}

/// Whether replicas do not move because of the condition.
fn stops_moves(condition: &Condition) -> bool {
    let is_true = condition.status == "True";
    match ConditionType::parse(&condition.type_) {
        Some(ConditionType::Paused | ConditionType::MoveBlocked) => is_true,
        Some(ConditionType::Accepted) => !is_true,
        Some(ConditionType::Placed) => {
            // A reason that only another version of the controller knows may block moves.
            let moves = [
                ConditionReason::Rescheduling,
                ConditionReason::WaitingForMembers,
            ];
            let reason = ConditionReason::parse(&condition.reason);
            !is_true && !reason.is_some_and(|reason| moves.contains(&reason))
        }
        _ => false,
    }
}

fn condition(member: &MemberCluster, type_: MemberConditionType) -> Option<&Condition> {
    conditions::find(&member.status.as_ref()?.conditions, type_)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn member(conditions: &[Value]) -> MemberCluster {
        let object = json!({
            "apiVersion": "fedrs.dev/v1alpha1", "kind": "MemberCluster", "metadata": { "name": "eu" },
            "spec": { "drain": true }, "status": { "conditions": conditions },
        });
        serde_json::from_value(object).unwrap()
    }

    fn condition(type_: &str, status: &str, reason: &str, generation: i64) -> Value {
        json!({
            "type": type_, "status": status, "reason": reason, "message": format!("{type_} {reason}"),
            "observedGeneration": generation, "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    }

    fn set(name: &str, replicas: i32, conditions: &[Value]) -> FederatedSet {
        FederatedSet::of_frs(serde_json::from_value(object(name, replicas, conditions)).unwrap())
    }

    fn object(name: &str, replicas: i32, conditions: &[Value]) -> Value {
        json!({
            "apiVersion": "fedrs.dev/v1alpha1", "kind": "FederatedReplicaSet",
            "metadata": { "namespace": "default", "name": name },
            "spec": {
                "replicas": 4, "selector": {}, "template": { "spec": { "containers": [] } },
            },
            "status": {
                "conditions": conditions,
                "clusters": [
                    { "name": "us", "desiredReplicas": 9, "replicas": 9 },
                    { "name": "eu", "desiredReplicas": 0, "replicas": replicas, "updatedReplicas": 1 },
                ],
            },
        })
    }

    /// The text of what is pending; empty if nothing is.
    fn text(member: &MemberCluster, generation: Option<i64>, sets: &[FederatedSet]) -> String {
        let pending = pending(member, generation, sets);
        pending.map_or_else(String::new, |pending| pending.to_string())
    }

    #[test]
    fn a_member_is_drained_when_the_controller_and_all_sets_report_it() {
        let drained = member(&[condition("Drained", "True", "Drained", 3)]);
        assert_eq!(text(&drained, Some(3), &[set("web", 0, &[])]), "");
        assert_eq!(
            text(&drained, Some(3), &[set("web", 2, &[])]),
            "2 replicas left: default/web 2"
        );
    }

    #[test]
    fn a_member_of_unknown_state_is_not_drained() {
        for (reason, expected) in [
            ("Unknown", "Drained Unknown"),
            ("Draining", "the last replicas are terminating"),
        ] {
            let member = member(&[condition("Drained", "False", reason, 3)]);
            assert_eq!(text(&member, Some(3), &[]), expected);
        }
    }

    #[test]
    fn the_condition_of_an_earlier_drain_does_not_count() {
        let drained = member(&[condition("Drained", "True", "Drained", 3)]);
        for (member, generation) in [(drained, Some(5)), (member(&[]), Some(1))] {
            let pending = pending(&member, generation, &[]);
            assert_eq!(pending, Some(DrainPending::NotObserved));
        }
    }

    #[test]
    fn conditions_that_block_moves_are_listed() {
        let blocked = [
            condition("Placed", "False", "InsufficientCapacity", 1),
            condition("MoveBlocked", "True", "ReplacementsNotReady", 1),
            condition("Placed", "False", "Rescheduling", 1),
        ];
        let member = member(&[condition("Ready", "False", "Unreachable", 1)]);
        let sets = [set("web", 2, &blocked), set("shop", 1, &[])];
        assert_eq!(
            text(&member, Some(1), &sets),
            "the member is not ready (Ready Unreachable); 3 replicas left: \
             default/web 2 (Placed InsufficientCapacity; MoveBlocked ReplacementsNotReady), default/shop 1"
        );
    }

    #[test]
    fn a_federated_deployment_is_named_with_its_kind_and_its_rollout() {
        let deployment = |replicas| {
            let mut object = object("web", replicas, &[]);
            object["kind"] = "FederatedDeployment".into();
            FederatedSet::of_deployment(serde_json::from_value(object).unwrap())
        };
        for (replicas, expected) in [
            (
                0,
                "the controller has not observed the drain (is it running?)",
            ),
            (1, "1 replica left: FederatedDeployment default/web 1"),
            (
                3,
                "3 replicas left: FederatedDeployment default/web 3 (a rollout replaces its pods first)",
            ),
        ] {
            assert_eq!(text(&member(&[]), None, &[deployment(replicas)]), expected);
        }
        let both = [set("web", 2, &[]), deployment(1)];
        let expected = "3 replicas left: default/web 2, FederatedDeployment default/web 1";
        assert_eq!(text(&member(&[]), None, &both), expected);
    }

    #[test]
    fn many_sets_are_counted() {
        let sets: Vec<_> = (0..8)
            .map(|number| set(&format!("s{number}"), 1, &[]))
            .collect();
        let text = text(&member(&[]), None, &sets);
        assert!(
            text.starts_with("8 replicas left: default/s0 1, "),
            "{text}"
        );
        assert!(text.ends_with(", 3 more sets"), "{text}");
    }
}
