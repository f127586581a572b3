//! What is left in a member that is being drained, and why. Pure.

use fedrs_api::{FederatedReplicaSet, FederatedReplicaSetStatus, MemberCluster, pluralize};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;

/// Sets that are named; more are counted.
const NAMED: usize = 5;

/// What is left in `member`, in words; `None` if the controller says that it is drained, having seen that `generation` of
/// its spec, and no set says otherwise.
pub(super) fn left(
    member: &MemberCluster,
    generation: Option<i64>,
    sets: &[FederatedReplicaSet],
) -> Option<String> {
    let name = member.name_any();
    let present: Vec<Present> = sets.iter().filter_map(|it| present(it, &name)).collect();
    if present.is_empty() {
        return match condition(member, "Drained") {
            Some(drained) if is_current(drained, generation) => {
                let open = drained.status != "True";
                open.then(|| match drained.reason.as_str() {
                    // Its numbers are some seconds old.
                    "Draining" => "the last replicas to end".to_owned(),
                    _ => drained.message.clone(),
                })
            }
            _ => Some("the controller to confirm that nothing is left (does it run?)".to_owned()),
        };
    }
    let mut text = String::new();
    if let Some(ready) = condition(member, "Ready").filter(|it| it.status != "True") {
        text = format!("{name} does not answer ({}); ", ready.message);
    }
    let replicas: i32 = present.iter().map(|it| it.replicas).sum();
    let replicas = pluralize(replicas, "replica");
    let mut named: Vec<String> = present.iter().take(NAMED).map(Present::words).collect();
    if present.len() > NAMED {
        named.push(pluralize(present.len() - NAMED, "more set"));
    }
    Some(format!("{text}{replicas} left: {}", named.join(", ")))
}

/// A set that has replicas in the member.
struct Present {
    set: String,
    replicas: i32,
    /// What keeps them there, if it isn't just that moves take time.
    held: Vec<String>,
}

impl Present {
    fn words(&self) -> String {
        let mut text = format!("{} {}", self.set, self.replicas);
        if !self.held.is_empty() {
            text = format!("{text} ({})", self.held.join("; "));
        }
        text
    }
}

fn present(set: &FederatedReplicaSet, member: &str) -> Option<Present> {
    let status = set.status.as_ref()?;
    let here = status.clusters.iter().find(|it| it.name == member)?;
    (here.replicas > 0).then(|| Present {
        set: format!("{}/{}", set.namespace().unwrap_or_default(), set.name_any()),
        replicas: here.replicas,
        held: held(status),
    })
}

/// Conditions that stop moves.
fn held(status: &FederatedReplicaSetStatus) -> Vec<String> {
    let holding = |it: &&Condition| {
        matches!(
            (it.type_.as_str(), it.status.as_str(), it.reason.as_str()),
            ("Accepted", "False", _)
                | ("Paused" | "MoveBlocked", "True", _)
                | ("Placed", "False", "NoRoom")
        )
    };
    let conditions = status.conditions.iter().filter(holding);
    conditions.map(|it| it.message.clone()).collect()
}

fn condition<'a>(member: &'a MemberCluster, type_: &str) -> Option<&'a Condition> {
    let conditions = member.status.as_ref().map(|it| &it.conditions)?;
    conditions.iter().find(|it| it.type_ == type_)
}

/// Whether a condition is about the spec as it was last changed: an earlier drain's would look like this one's.
fn is_current(condition: &Condition, generation: Option<i64>) -> bool {
    condition.observed_generation >= generation
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

    fn set(name: &str, replicas: i32, conditions: &[Value]) -> FederatedReplicaSet {
        let object = json!({
            "apiVersion": "fedrs.dev/v1alpha1", "kind": "FederatedReplicaSet",
            "metadata": { "namespace": "default", "name": name },
            "spec": {
                "replicas": 4, "selector": {}, "template": { "spec": { "containers": [] } },
            },
            "status": {
                "conditions": conditions,
                "clusters": [
                    { "name": "us", "desiredReplicas": 9, "replicas": 9, "availableReplicas": 9, "message": "" },
                    { "name": "eu", "desiredReplicas": 0, "replicas": replicas, "availableReplicas": 0, "message": "" },
                ],
            },
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_member_is_drained_when_controller_and_sets_say_so() {
        let drained = member(&[condition("Drained", "True", "Drained", 3)]);
        assert_eq!(left(&drained, Some(3), &[set("web", 0, &[])]), None);
        assert_eq!(
            left(&drained, Some(3), &[set("web", 2, &[])]).unwrap(),
            "2 replicas left: default/web 2"
        );
    }

    #[test]
    fn what_the_controller_does_not_know_is_not_drained() {
        for (reason, told) in [
            ("NotKnown", "Drained NotKnown"),
            ("Draining", "the last replicas to end"),
        ] {
            let member = member(&[condition("Drained", "False", reason, 3)]);
            assert_eq!(left(&member, Some(3), &[]).as_deref(), Some(told));
        }
    }

    #[test]
    fn what_was_said_of_an_earlier_drain_does_not_count() {
        let drained = member(&[condition("Drained", "True", "Drained", 3)]);
        for (member, generation) in [(drained, Some(5)), (member(&[]), Some(1))] {
            let left = left(&member, generation, &[]).unwrap();
            assert!(left.contains("the controller to confirm"), "{left}");
        }
    }

    #[test]
    fn what_holds_replicas_is_told() {
        let blocked = [
            condition("Placed", "False", "NoRoom", 1),
            condition("MoveBlocked", "True", "NoReadyReplacement", 1),
            condition("Placed", "False", "Moving", 1),
        ];
        let member = member(&[condition("Ready", "False", "Unreachable", 1)]);
        let sets = [set("web", 2, &blocked), set("shop", 1, &[])];
        assert_eq!(
            left(&member, Some(1), &sets).unwrap(),
            "eu does not answer (Ready Unreachable); 3 replicas left: \
             default/web 2 (Placed NoRoom; MoveBlocked NoReadyReplacement), default/shop 1"
        );
    }

    #[test]
    fn many_sets_are_counted() {
        let sets: Vec<_> = (0..8).map(|it| set(&format!("s{it}"), 1, &[])).collect();
        let left = left(&member(&[]), None, &sets).unwrap();
        assert!(
            left.starts_with("8 replicas left: default/s0 1, "),
            "{left}"
        );
        assert!(left.ends_with(", 3 more sets"), "{left}");
    }
}
