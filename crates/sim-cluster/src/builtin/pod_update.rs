//! Validation of updates of a pod's specification.

use serde_json::Value;

use super::checks::items;
use crate::validation::Field;

/// The mutable fields of a pod, as the error for all others lists them.
const MUTABLE_WORDS: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Validates an update of a pod's specification; `old` and `new` are complete pods.
pub(super) fn validate_pod_update(old: &Value, new: &Field<'_>) {
    let (before, after) = (&old["spec"], new.field("spec"));
    for list in ["containers", "initContainers"] {
        let containers = after.field(list);
        if items(before, list).count() != containers.len() {
            return containers.forbidden("pod updates may not add or remove containers");
        }
        for container in containers.items() {
            container.field("image").require_text("");
        }
    }
    validate_deadline(
        &before["activeDeadlineSeconds"],
        &after.field("activeDeadlineSeconds"),
    );
    validate_tolerations(&before["tolerations"], &after.field("tolerations"));
    for gate in after.field("schedulingGates").items() {
        let name = gate.field("name");
        if !items(before, "schedulingGates").any(|(_, known)| known["name"] == *name.value) {
            name.forbidden(&format!(
                "only deletion is allowed, but found new scheduling gate '{}'",
                name.text()
            ));
        }
    }
    if !after.has_errors() && frozen(before, before) != frozen(after.value, before) {
        after.forbidden(MUTABLE_WORDS);
    }
}

/// A deadline can be set or shortened.
fn validate_deadline(old: &Value, new: &Field<'_>) {
    match (old.as_i64(), new.number()) {
        (Some(old), Some(number)) if number > old => {
            new.invalid("must be less than or equal to previous value");
        }
        (Some(_), None) => {
            new.invalid_as(
                Value::Null,
                "must not update from a positive integer to nil value",
            );
        }
        _ => {}
    }
}

/// Tolerations can be added; of the existing ones only `tolerationSeconds` can change.
fn validate_tolerations(old: &Value, new: &Field<'_>) {
    let all = |list: &Value| {
        let mut tolerations = list.as_array().cloned().unwrap_or_default();
        for toleration in tolerations.iter_mut().filter_map(Value::as_object_mut) {
            toleration.remove("tolerationSeconds");
        }
        tolerations
    };
    let kept = all(new.value);
    if all(old).iter().any(|toleration| !kept.contains(toleration)) {
        new.forbidden("existing toleration can not be modified except its tolerationSeconds");
    }
}

/// The specification without its mutable fields; the placement of a gated pod is mutable as well.
fn frozen(spec: &Value, before: &Value) -> Value {
    let mut spec = spec.clone();
    let was_gated = items(before, "schedulingGates").next().is_some();
    let grace_was_negative = before["terminationGracePeriodSeconds"]
        .as_i64()
        .is_some_and(|seconds| seconds < 0);
    let Value::Object(fields) = &mut spec else {
        return spec;
    };
    for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        fields.remove(field);
    }
    if was_gated {
        fields.remove("nodeSelector");
        fields.remove("affinity");
    }
    if grace_was_negative {
        fields.remove("terminationGracePeriodSeconds");
    }
    for list in ["containers", "initContainers"] {
        for container in fields
            .get_mut(list)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            if let Value::Object(container) = container {
                container.remove("image");
            }
        }
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::FieldError;
    use crate::validation::errors_of;
    use serde_json::json;

    fn pod(spec: &Value) -> Value {
        let mut pod = json!({ "spec": spec });
        super::super::defaults("Pod", &mut pod);
        pod
    }

    fn update_errors(old: &Value, new: &Value) -> Vec<FieldError> {
        errors_of(new, |new| validate_pod_update(old, new))
    }

    #[test]
    fn only_the_image_of_a_container_may_change() {
        let old = pod(&json!({ "containers": [{ "name": "a", "image": "x" }] }));
        let mut image = old.clone();
        image["spec"]["containers"][0]["image"] = "y".into();
        assert_eq!(update_errors(&old, &image), []);
        let mut command = old.clone();
        command["spec"]["containers"][0]["command"] = json!(["sh"]);
        assert!(update_errors(&old, &command)[0].to_string().starts_with("spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"));
    }
}
