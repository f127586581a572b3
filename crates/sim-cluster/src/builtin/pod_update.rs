//! Validation of updates of a pod's specification.

use serde_json::Value;

use super::checks::items;
use crate::field::FieldError;

/// The mutable fields of a pod, as the error for all others lists them.
const MUTABLE_WORDS: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Validates an update of a pod's specification; `old` and `new` are complete pods.
pub(super) fn validate_pod_update(old: &Value, new: &Value) -> Vec<FieldError> {
    let (before, after) = (&old["spec"], &new["spec"]);
    let mut errors = Vec::new();
    for list in ["containers", "initContainers"] {
        if items(before, list).count() != items(after, list).count() {
            errors.push(FieldError::forbidden(
                format!("spec.{list}"),
                "pod updates may not add or remove containers",
            ));
            return errors;
        }
        for (index, container) in items(after, list) {
            let image = container["image"].as_str().unwrap_or_default();
            if image.is_empty() {
                errors.push(FieldError::required(
                    format!("spec.{list}[{index}].image"),
                    "",
                ));
            }
        }
    }
    errors.extend(deadline_errors(before, after));
    errors.extend(toleration_errors(before, after));
    let gates = |spec: &Value| {
        items(spec, "schedulingGates")
            .map(|(_, gate)| gate["name"].clone())
            .collect::<Vec<_>>()
    };
    let known = gates(before);
    for (index, gate) in gates(after).iter().enumerate() {
        if known.contains(gate) {
            continue;
        }
        let name = gate.as_str().unwrap_or_default();
        let detail = format!("only deletion is allowed, but found new scheduling gate '{name}'");
        let at = format!("spec.schedulingGates[{index}].name");
        errors.push(FieldError::forbidden(at, detail));
    }
    if errors.is_empty() && frozen(before, before) != frozen(after, before) {
        errors.push(FieldError::forbidden("spec", MUTABLE_WORDS));
    }
    errors
}

fn deadline_errors(before: &Value, after: &Value) -> Option<FieldError> {
    const PATH: &str = "spec.activeDeadlineSeconds";
    let (old, new) = (
        before["activeDeadlineSeconds"].as_i64(),
        after["activeDeadlineSeconds"].as_i64(),
    );
    match (old, new) {
        (Some(old), Some(new)) if new > old => Some(FieldError::invalid(
            PATH,
            new,
            "must be less than or equal to previous value",
        )),
        (Some(_), None) => Some(FieldError::invalid(
            PATH,
            Value::Null,
            "must not update from a positive integer to nil value",
        )),
        _ => None,
    }
}

fn toleration_errors(before: &Value, after: &Value) -> Option<FieldError> {
    let without_seconds = |toleration: &Value| {
        let mut toleration = toleration.clone();
        if let Value::Object(fields) = &mut toleration {
            fields.remove("tolerationSeconds");
        }
        toleration
    };
    let kept: Vec<Value> = items(after, "tolerations")
        .map(|(_, one)| without_seconds(one))
        .collect();
    let lost = items(before, "tolerations").any(|(_, one)| !kept.contains(&without_seconds(one)));
    lost.then(|| {
        FieldError::forbidden(
            "spec.tolerations",
            "existing toleration can not be modified except its tolerationSeconds",
        )
    })
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
    use serde_json::json;

    fn pod(spec: &Value) -> Value {
        let mut pod = json!({ "spec": spec });
        super::super::defaults("Pod", &mut pod);
        pod
    }

    #[test]
    fn only_the_image_of_a_container_may_change() {
        let old = pod(&json!({ "containers": [{ "name": "a", "image": "x" }] }));
        let mut image = old.clone();
        image["spec"]["containers"][0]["image"] = "y".into();
        assert_eq!(validate_pod_update(&old, &image), []);
        let mut command = old.clone();
        command["spec"]["containers"][0]["command"] = json!(["sh"]);
        assert!(validate_pod_update(&old, &command)[0].to_string().starts_with("spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"));
    }
}
