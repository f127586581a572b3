//! Validation of writes of a pod's subresource `resize`: CPU and memory of its containers.

use serde_json::Value;

use super::checks::{fields, items};
use super::pod::validate_resources;
use super::pod_resources::qos_class;
use crate::validation::Field;

/// Validates the resize of a pod; `old` and `new` are complete pods that differ in the resources of their containers.
pub(super) fn validate_pod_resize(old: &Value, new: &Field<'_>) {
    let spec = new.field("spec");
    if qos_class(old) != qos_class(new.value) {
        spec.invalid_as(
            old["status"]["qosClass"].clone(),
            "Pod QOS Class may not change as a result of resizing",
        );
    }
    for list in ["containers", "initContainers"] {
        let before = items(&old["spec"], list);
        for (container, (_, before)) in spec.field(list).items().zip(before) {
            let resources = container.field("resources");
            validate_resources(&resources);
            for of in ["limits", "requests"] {
                validate_kept(&before["resources"][of], &resources.field(of), of);
            }
            if others(&before["resources"]) != others(resources.value) {
                spec.forbidden("only cpu and memory resources are mutable");
            }
            let is_sidecar = container.value["restartPolicy"] == "Always";
            if list == "initContainers" && !is_sidecar && before["resources"] != *resources.value {
                resources.forbidden("resources for non-sidecar init containers are immutable");
            }
        }
    }
}

fn validate_kept(before: &Value, amounts: &Field<'_>, of: &str) {
    let is_removed = |(name, _): (&String, &Value)| amounts.value.get(name).is_none();
    if fields(before).any(is_removed) {
        amounts.forbidden(&format!("resource {of} cannot be removed"));
    }
}

/// The resources but for CPU and memory.
fn others(resources: &Value) -> Value {
    let mut others = resources.clone();
    for of in ["limits", "requests"] {
        if let Some(amounts) = others.get_mut(of).and_then(Value::as_object_mut) {
            amounts.retain(|name, _| !["cpu", "memory"].contains(&name.as_str()));
            if amounts.is_empty() {
                others[of] = Value::Null;
            }
        }
    }
    if let Some(fields) = others.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    others
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validation::errors_of;
    use rstest::rstest;
    use serde_json::json;

    fn pod(resources: &Value) -> Value {
        let class = qos_class(&json!({ "spec": { "containers": [{ "resources": resources }] } }));
        json!({
            "spec": { "containers": [{ "name": "a", "resources": resources }] },
            "status": { "qosClass": class },
        })
    }

    #[rstest]
    #[case(json!({"requests": {"cpu": "2"}}), None)]
    #[case(json!({"requests": {"cpu": "1", "memory": "1Gi"}}), None)]
    #[case(json!({"requests": {"memory": "1Gi"}}), Some("spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed"))]
    #[case(json!({"requests": {"cpu": "1", "ephemeral-storage": "1Gi"}}), Some("spec: Forbidden: only cpu and memory resources are mutable"))]
    #[case(
        json!({"requests": {"cpu": "1", "memory": "1"}, "limits": {"cpu": "1", "memory": "1"}}),
        Some("spec: Invalid value: \"Burstable\": Pod QOS Class may not change as a result of resizing")
    )]
    fn cpu_and_memory_may_change(#[case] resources: Value, #[case] message: Option<&str>) {
        let old = pod(&json!({"requests": {"cpu": "1"}}));
        let errors = errors_of(&pod(&resources), |new| validate_pod_resize(&old, new));
        let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(errors, Vec::from_iter(message));
    }
}
