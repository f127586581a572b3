//! Whether a local ReplicaSet and its pods are as the FederatedReplicaSet has them (F29, F30, F40): compared with the object
//! that the user wrote, and not with what the controller makes of it.

use fedrs_api::{SetKind, labels};
use serde_json::Value;
use sim_cluster::{Object, kinds};

use crate::{checks::is_labeled, run::runner::Runner, sim_federation::NAMESPACE};

/// What is wrong with the local ReplicaSet of `frs` in `member`, besides its replicas. One that is not ours has nothing wrong.
pub(in crate::run) fn wrong_object(runner: &Runner, member: &str, frs: &Value) -> Option<String> {
    let name = frs["metadata"]["name"].as_str()?;
    let kind = runner.federation.kind_of(name);
    let set = runner.federation.local_set(member, name)?;
    if !is_labeled(&set) {
        return None;
    }
    if let Some(field) = wrong_field(&set, member, frs, kind) {
        return Some(format!(
            "{name}: the ReplicaSet in {member} has a wrong {field}"
        ));
    }
    let pod = unlabeled_pod(runner, member, &set)?;
    Some(format!(
        "{name}: pod {pod} in {member} lacks labels of fedrs"
    ))
}

/// The first field that differs from what the user wrote.
fn wrong_field(set: &Value, member: &str, frs: &Value, kind: SetKind) -> Option<&'static str> {
    let (wanted, spec) = (&frs["spec"], &set["spec"]);
    let (wanted_template, template) = (&wanted["template"], &spec["template"]);
    let (wanted_pod, pod) = (&wanted_template["metadata"], &template["metadata"]);
    let metadata = &set["metadata"];
    let has_own = |labels: &Value| {
        labels[labels::REPLICA_SET] == frs["metadata"]["name"]
            && labels[labels::FEDERATION] == metadata["labels"][labels::FEDERATION]
    };
    let seconds = |spec: &Value| spec["minReadySeconds"].as_u64().unwrap_or(0);
    let delay = wanted["rollout"]["speed"]["minDelaySeconds"]
        .as_u64()
        .unwrap_or(0);
    // An adopted Deployment keeps its template.
    let is_adopted = kind == SetKind::FederatedDeployment;
    let checks = [
        (
            "minReadySeconds",
            seconds(wanted).max(delay) == seconds(spec),
        ),
        ("selector", wanted["selector"] == spec["selector"]),
        (
            "template",
            is_part(&wanted_template["spec"], &template["spec"]),
        ),
        (
            "label of the template",
            is_part(&wanted_pod["labels"], &pod["labels"])
                && (is_adopted || has_own(&pod["labels"])),
        ),
        (
            "annotation of the template",
            is_part(&wanted_pod["annotations"], &pod["annotations"]),
        ),
        (
            "label",
            is_part(&frs["metadata"]["labels"], &metadata["labels"])
                && has_own(&metadata["labels"])
                && metadata["labels"][labels::MEMBER_CLUSTER] == member,
        ),
    ];
    let wrong = checks.iter().find(|(_, is_right)| !is_right);
    wrong.map(|(field, _)| *field)
}

/// A pod of the set without the labels by which the controller watches it (F30).
fn unlabeled_pod(runner: &Runner, member: &str, set: &Value) -> Option<String> {
    let own = &set["metadata"]["labels"];
    let is_labeled = |pod: &Object| {
        let labels = &pod["metadata"]["labels"];
        [labels::REPLICA_SET, labels::FEDERATION]
            .iter()
            .all(|label| labels[label] == own[label])
    };
    let pods = pods_of(runner, member, set);
    let pod = pods.iter().find(|pod| !is_labeled(pod))?;
    Some(crate::name_of(pod))
}

/// The pods that a local set owns and that are not terminating.
pub(in crate::run) fn pods_of(runner: &Runner, member: &str, set: &Value) -> Vec<Object> {
    let api = runner.federation.member(member).api();
    let mut pods = api.list(&kinds::PODS, Some(NAMESPACE));
    let sets = api.list(&kinds::REPLICA_SETS, Some(NAMESPACE));
    let is_owned = |object: &Object, by: &Value| {
        object["metadata"]["ownerReferences"][0]["uid"] == by["metadata"]["uid"]
    };
    let own: Vec<_> = sets.iter().filter(|own| is_owned(own, set)).collect();
    pods.retain(|pod| {
        let metadata = &pod["metadata"];
        (is_owned(pod, set) || own.iter().any(|own| is_owned(pod, own)))
            && metadata.get("deletionTimestamp").is_none()
    });
    pods
}

/// Whether `part` is in `whole`, to which an API server has added defaults.
fn is_part(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), _) => part
            .iter()
            .all(|(key, value)| whole.get(key).is_some_and(|whole| is_part(value, whole))),
        (Value::Array(part), Value::Array(whole)) => {
            let mut pairs = part.iter().zip(whole);
            part.len() == whole.len() && pairs.all(|(part, whole)| is_part(part, whole))
        }
        (Value::Null, _) => true,
        (part, whole) => part == whole,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn defaults_of_an_api_server_are_no_difference_and_other_values_are() {
        let written = json!({ "containers": [{ "name": "main", "image": "a:1" }] });
        let stored = json!({ "containers": [{ "name": "main", "image": "a:1", "ports": [] }], "dnsPolicy": "ClusterFirst" });
        assert!(is_part(&written, &stored));
        assert!(!is_part(&stored, &written));
        let other = json!({ "containers": [{ "name": "main", "image": "a:2" }] });
        assert!(!is_part(&written, &other));
        let more =
            json!({ "containers": [{ "name": "main", "image": "a:1" }, { "name": "more" }] });
        assert!(!is_part(&written, &more));
        assert!(is_part(&Value::Null, &stored));
    }
}
