//! The status of a Deployment: `Deployment, Revisions -> status`. Pure.
//!
//! The counts are sums over the ReplicaSets as they were before the writes of this reconciliation, as in Kubernetes.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::conditions::{self, Condition};
use super::limits::Limits;
use super::revisions::Revisions;
use super::views::{Deployment, Set, sum, total};
use crate::object::{at, generation, integer};

/// The status of a Deployment while it is computed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Status {
    pub(super) replicas: i64,
    pub(super) updated: i64,
    pub(super) ready: i64,
    pub(super) available: i64,
    pub(super) unavailable: i64,
    /// `None` if a ReplicaSet does not report its terminating pods.
    pub(super) terminating: Option<i64>,
    pub(super) observed_generation: i64,
    pub(super) collisions: Option<i64>,
    pub(super) conditions: Vec<Value>,
}

impl Status {
    /// The status that the Deployment has.
    pub(super) fn of(deployment: Deployment<'_>) -> Self {
        let count = |field: &str| {
            let status = at(deployment.0, "/status").and_then(|status| status.get(field));
            status.and_then(Value::as_i64)
        };
        let number = |field: &str| count(field).unwrap_or_default();
        Self {
            replicas: number("replicas"),
            updated: number("updatedReplicas"),
            ready: number("readyReplicas"),
            available: number("availableReplicas"),
            unavailable: number("unavailableReplicas"),
            terminating: count("terminatingReplicas"),
            observed_generation: number("observedGeneration"),
            collisions: count("collisionCount"),
            conditions: deployment.conditions().to_vec(),
        }
    }

    /// The current counts, and the condition `Available`.
    pub(super) fn computed(
        deployment: Deployment<'_>,
        revisions: &Revisions<'_>,
        limits: Limits,
        now: Timestamp,
    ) -> Self {
        let all = revisions.all();
        let available = sum(all.clone(), "availableReplicas");
        let mut conditions = deployment.conditions().to_vec();
        let is_available = available >= deployment.replicas() - limits.unavailable;
        conditions::set(&mut conditions, availability(is_available).at(now));
        Self {
            replicas: sum(all.clone(), "replicas"),
            updated: sum(revisions.new, "replicas"),
            ready: sum(all.clone(), "readyReplicas"),
            available,
            // While the Deployment is scaled down, more pods can be available than are specified.
            unavailable: (total(all.clone()) - available).max(0),
            terminating: terminating(all),
            observed_generation: generation(deployment.0),
            collisions: integer(deployment.0, "/status/collisionCount"),
            conditions,
        }
    }

    /// Whether all specified replicas are updated and available, and there are no others.
    pub(super) fn is_complete(&self, deployment: Deployment<'_>) -> bool {
        let replicas = deployment.replicas();
        [self.updated, self.replicas, self.available] == [replicas; 3]
            && self.observed_generation >= generation(deployment.0)
    }

    /// The status as it is written: without zeros, except for counts that can be unknown.
    pub(super) fn into_value(self) -> Value {
        let counts = [
            ("replicas", self.replicas),
            ("updatedReplicas", self.updated),
            ("readyReplicas", self.ready),
            ("availableReplicas", self.available),
            ("unavailableReplicas", self.unavailable),
            ("observedGeneration", self.observed_generation),
        ];
        let counts = counts.into_iter().filter(|(_, number)| *number != 0);
        let known = [
            ("terminatingReplicas", self.terminating),
            ("collisionCount", self.collisions),
        ];
        let known = known
            .into_iter()
            .filter_map(|(field, number)| Some((field, number?)));
        let fields = counts.chain(known);
        let mut status: Map<String, Value> = fields
            .map(|(field, number)| (field.to_owned(), json!(number)))
            .collect();
        if !self.conditions.is_empty() {
            status.insert("conditions".to_owned(), json!(self.conditions));
        }
        Value::Object(status)
    }
}

fn availability(is_available: bool) -> Condition<'static> {
    let (status, reason, message) = if is_available {
        (
            "True",
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
        )
    } else {
        (
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        )
    };
    Condition {
        kind: "Available",
        status,
        reason,
        message,
    }
}

/// The terminating pods of all ReplicaSets; one whose controller has not seen it yet has none.
fn terminating<'a>(sets: impl Iterator<Item = Set<'a>>) -> Option<i64> {
    let mut sum = 0;
    for set in sets {
        match integer(set.0, "/status/terminatingReplicas") {
            Some(count) => sum += count,
            None if set.status("observedGeneration") == 0 => {}
            None => return None,
        }
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(image: &str, replicas: i64, status: &Value) -> Value {
        json!({
            "metadata": {"name": image, "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"replicas": replicas, "template": {"spec": {"image": image}}}, "status": status,
        })
    }

    fn deployment() -> Value {
        json!({
            "metadata": {"name": "web", "generation": 3},
            "spec": {
                "replicas": 4, "template": {"spec": {"image": "new"}},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}},
            },
        })
    }

    fn computed(deployment: &Value, sets: &[Value]) -> Status {
        let sets: Vec<Set<'_>> = sets.iter().map(Set).collect();
        let deployment = Deployment(deployment);
        let revisions = Revisions::of(deployment, &sets);
        Status::computed(
            deployment,
            &revisions,
            Limits::of(deployment),
            Timestamp::UNIX_EPOCH,
        )
    }

    #[test]
    fn counts_are_sums_and_zeros_are_omitted() {
        let old = json!({"replicas": 3, "readyReplicas": 3, "availableReplicas": 2, "terminatingReplicas": 1, "observedGeneration": 2});
        let new = json!({"replicas": 2, "readyReplicas": 1, "availableReplicas": 1, "terminatingReplicas": 0, "observedGeneration": 1});
        let unseen = json!({"replicas": 0});
        let sets = [
            set("old", 3, &old),
            set("new", 2, &new),
            set("unseen", 0, &unseen),
        ];
        let status = computed(&deployment(), &sets);
        assert!(!status.is_complete(Deployment(&deployment())));
        let mut value = status.into_value();
        assert_eq!(value["conditions"][0]["reason"], "MinimumReplicasAvailable");
        value.as_object_mut().unwrap().remove("conditions");
        let expected = json!({
            "replicas": 5, "updatedReplicas": 2, "readyReplicas": 4, "availableReplicas": 3, "unavailableReplicas": 2,
            "terminatingReplicas": 1, "observedGeneration": 3,
        });
        assert_eq!(value, expected);
    }

    #[test]
    fn without_pods_a_deployment_is_unavailable_and_nothing_terminates() {
        let status = computed(&deployment(), &[]);
        assert_eq!(status.conditions[0]["reason"], "MinimumReplicasUnavailable");
        assert_eq!(status.terminating, Some(0));
        let silent = json!({"replicas": 1, "observedGeneration": 1});
        let status = computed(&deployment(), &[set("old", 1, &silent)]);
        assert_eq!(status.terminating, None);
    }

    #[test]
    fn a_written_status_reads_as_the_same() {
        let ready = json!({"replicas": 4, "readyReplicas": 4, "availableReplicas": 4, "terminatingReplicas": 0, "observedGeneration": 1});
        let mut deployment = deployment();
        let status = computed(&deployment, &[set("new", 4, &ready)]);
        assert!(status.is_complete(Deployment(&deployment)));
        deployment["status"] = status.clone().into_value();
        assert_eq!(Status::of(Deployment(&deployment)), status);
    }
}
