//! Validation of the specification of ReplicaSets and Deployments, and of pod templates.

use serde_json::Value;

use super::metadata::{validate_annotations, validate_labels};
use super::pod::validate_pod_spec;
use super::selector::validate_label_selector;
use crate::field::FieldError;
use crate::selectors::object as selector;

/// Validates the specification of a ReplicaSet or Deployment: counts, selector, and a template that the selector matches.
pub(super) fn validate_workload_spec(kind: &str, spec: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in ["replicas", "minReadySeconds"] {
        if let Some(number) = spec[field].as_i64().filter(|number| *number < 0) {
            errors.push(FieldError::invalid(
                format!("spec.{field}"),
                number,
                "must be greater than or equal to 0",
            ));
        }
    }
    let selector = &spec["selector"];
    if selector.is_null() {
        errors.push(FieldError::required("spec.selector", ""));
    } else {
        errors.extend(validate_label_selector(selector, "spec.selector"));
        if selector::is_empty(selector) {
            // The message is the same for both kinds.
            errors.push(FieldError::invalid(
                "spec.selector",
                selector.clone(),
                "empty selector is invalid for deployment",
            ));
        }
    }
    let template = &spec["template"];
    let labels = &template["metadata"]["labels"];
    if !selector.is_null()
        && !selector::is_empty(selector)
        && !selector::matches(selector, labels.as_object())
    {
        let shown = if labels.is_null() {
            serde_json::json!({})
        } else {
            labels.clone()
        };
        let detail = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid(
            "spec.template.metadata.labels",
            shown,
            detail,
        ));
    }
    errors.extend(validate_template(template, "spec.template"));
    if template["spec"]["restartPolicy"] != "Always"
        && template["spec"]["restartPolicy"].is_string()
    {
        let policy = template["spec"]["restartPolicy"].clone();
        errors.push(FieldError::not_supported(
            "spec.template.spec.restartPolicy",
            policy,
            &["Always"],
        ));
    }
    if !template["spec"]["activeDeadlineSeconds"].is_null() {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.push(FieldError::forbidden(
            "spec.template.spec.activeDeadlineSeconds",
            detail,
        ));
    }
    errors
}

/// Validates a pod template at `path`.
pub(super) fn validate_template(template: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = validate_labels(&template["metadata"]["labels"], &format!("{path}.labels"));
    errors.extend(validate_annotations(
        &template["metadata"]["annotations"],
        &format!("{path}.annotations"),
    ));
    errors.extend(validate_pod_spec(
        &template["spec"],
        &format!("{path}.spec"),
    ));
    errors
}
