//! The status of a ReplicaSet: `set, claimed pods, outcome of creations and deletions -> status`. Pure.
//!
//! The counts are those of the pods before creations and deletions, as in Kubernetes: a set that just created ten pods
//! reports 0 until its next reconciliation.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::controllers::pod::Pod;
use crate::object::{Condition, condition, integer, map, remove_condition, set_condition};
use crate::selectors::object as selector;

use super::plan::wanted;

const REPLICA_FAILURE: &str = "ReplicaFailure";

/// `spec.minReadySeconds`, 0 where absent.
pub(crate) fn min_ready_seconds(set: &Value) -> i64 {
    integer(set, "/spec/minReadySeconds").unwrap_or_default()
}

/// The status of `set`, or `None` if it does not change. `failure` is the API's message, if a creation or deletion failed.
pub(crate) fn status(
    set: &Value,
    claimed: &[Pod<'_>],
    terminating: usize,
    failure: Option<&str>,
    now: Timestamp,
) -> Option<Value> {
    let count = |holds: &dyn Fn(&Pod<'_>) -> bool| claimed.iter().filter(|pod| holds(pod)).count();
    let template_labels = map(set, "/spec/template/metadata/labels");
    let min_ready = min_ready_seconds(set);
    let mut next = json!({"status": set.get("status").cloned().unwrap_or_else(|| json!({}))});
    set_failure(&mut next, set, claimed.len(), failure, now);
    let counts = [
        ("replicas", claimed.len()),
        (
            "fullyLabeledReplicas",
            count(&|pod| selector::contains(pod.labels(), template_labels)),
        ),
        ("readyReplicas", count(&|pod| pod.is_ready())),
        (
            "availableReplicas",
            count(&|pod| pod.is_available(min_ready, now)),
        ),
        ("terminatingReplicas", terminating),
    ];
    let status = next["status"].as_object_mut()?;
    for (field, number) in counts {
        // Kubernetes omits zeros, except for `replicas` (required) and `terminatingReplicas` (a pointer: null means unknown).
        if number > 0 || matches!(field, "replicas" | "terminatingReplicas") {
            status.insert(field.to_owned(), json!(number));
        } else {
            status.remove(field);
        }
    }
    status.insert(
        "observedGeneration".to_owned(),
        set["metadata"]["generation"].clone(),
    );
    if status
        .get("conditions")
        .is_some_and(|conditions| conditions == &json!([]))
    {
        status.remove("conditions");
    }
    (set.get("status") != next.get("status")).then(|| next["status"].take())
}

/// The condition is set with the first failure and keeps its message until creations and deletions succeed again.
fn set_failure(
    next: &mut Value,
    set: &Value,
    claimed: usize,
    failure: Option<&str>,
    now: Timestamp,
) {
    match (failure, condition(set, REPLICA_FAILURE)) {
        (Some(message), None) => {
            let reason = match claimed.cmp(&wanted(set)) {
                std::cmp::Ordering::Less => "FailedCreate",
                std::cmp::Ordering::Greater => "FailedDelete",
                std::cmp::Ordering::Equal => "",
            };
            set_condition(
                next,
                Condition {
                    kind: REPLICA_FAILURE,
                    status: "True",
                    reason,
                    message,
                },
                now,
            );
        }
        (None, Some(_)) => remove_condition(next, REPLICA_FAILURE),
        _ => {}
    }
}

/// When the next ready pod becomes available and the set has to be reconciled; in seconds since the epoch.
pub(crate) fn next_available(set: &Value, claimed: &[Pod<'_>], now: Timestamp) -> Option<i64> {
    let min_ready = min_ready_seconds(set);
    let waiting = claimed
        .iter()
        .filter(|pod| !pod.is_available(min_ready, now));
    waiting
        .filter_map(|pod| pod.ready_since())
        .map(|since| since.as_second() + min_ready)
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn second(s: i64) -> Timestamp {
        Timestamp::from_second(s).unwrap()
    }

    fn set(min_ready: i64) -> Value {
        json!({
            "metadata": {"name": "web", "uid": "rs", "generation": 4},
            "spec": {"replicas": 3, "minReadySeconds": min_ready, "template": {"metadata": {"labels": {"app": "web", "v": "2"}}}},
        })
    }

    fn pod(version: &str, ready_at: Option<i64>) -> Value {
        let mut pod = json!({"metadata": {"labels": {"app": "web", "v": version}}});
        if let Some(at) = ready_at {
            pod["status"]["conditions"] = json!([{"type": "Ready", "status": "True", "lastTransitionTime": second(at).to_string()}]);
        }
        pod
    }

    #[test]
    fn counts_and_observed_generation() {
        let pods = [pod("2", Some(0)), pod("1", Some(95)), pod("2", None)];
        let pods: Vec<Pod<'_>> = pods.iter().map(Pod).collect();
        let expected = json!({
            "replicas": 3, "fullyLabeledReplicas": 2, "readyReplicas": 2, "availableReplicas": 1, "terminatingReplicas": 2,
            "observedGeneration": 4,
        });
        assert_eq!(
            status(&set(10), &pods, 2, None, second(100)),
            Some(expected.clone())
        );
        assert_eq!(next_available(&set(10), &pods, second(100)), Some(105));
        let mut settled = set(10);
        settled["status"] = expected;
        assert_eq!(status(&settled, &pods, 2, None, second(100)), None);
    }

    #[test]
    fn zeros_are_omitted_except_for_two_fields() {
        let expected = json!({"replicas": 0, "terminatingReplicas": 0, "observedGeneration": 4});
        assert_eq!(status(&set(0), &[], 0, None, second(0)), Some(expected));
    }

    #[test]
    fn a_failure_condition_keeps_its_first_message_until_it_is_removed() {
        let mut set = set(0);
        let failure = |set: &Value| condition(set, "ReplicaFailure").cloned();
        set["status"] = status(&set, &[], 0, Some("quota of a"), second(5)).unwrap();
        let first = json!({
            "type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "quota of a",
            "lastTransitionTime": "1970-01-01T00:00:05Z",
        });
        assert_eq!(failure(&set), Some(first));
        assert_eq!(status(&set, &[], 0, Some("quota of b"), second(6)), None);
        set["status"] = status(&set, &[], 0, None, second(7)).unwrap();
        assert_eq!(set["status"].get("conditions"), None);
    }
}
