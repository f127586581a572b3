//! Validation of the specification of ReplicaSets and Deployments, and of pod templates.

use super::metadata::{validate_annotations, validate_labels};
use super::pod::validate_pod_spec;
use super::rollout::validate_rollout;
use super::selector::validate_label_selector;
use crate::selectors::object as selectors;
use crate::validation::Field;

/// Validates the specification of a ReplicaSet or Deployment: counts, selector, and a template that the selector matches.
pub(super) fn validate_workload_spec(kind: &str, spec: &Field<'_>) {
    spec.field("replicas").require_not_negative();
    if kind == "ReplicaSet" {
        spec.field("minReadySeconds").require_not_negative();
    }
    let (selector, template) = (spec.field("selector"), spec.field("template"));
    if selector.value.is_null() {
        selector.required("");
    } else {
        validate_label_selector(&selector);
    }
    if !selector.value.is_null() && selectors::is_empty(selector.value) {
        // The message is the same for both kinds.
        selector.invalid("empty selector is invalid for deployment");
    } else {
        let labels = template.field("metadata").field("labels");
        // An absent selector matches nothing.
        if !selectors::matches(selector.value, labels.value.as_object()) {
            let shown = labels.value.as_object().cloned();
            let detail = "`selector` does not match template `labels`";
            labels.invalid_as(shown.unwrap_or_default(), detail);
        }
    }
    validate_template(&template);
    let pod = template.field("spec");
    let policy = pod.field("restartPolicy");
    if policy.value.is_string() && policy.text() != "Always" {
        policy.not_supported(&["Always"]);
    }
    let deadline = pod.field("activeDeadlineSeconds");
    if !deadline.value.is_null() {
        // The message is the same for both kinds.
        deadline.forbidden("activeDeadlineSeconds in ReplicaSet is not Supported");
    }
    if kind == "Deployment" {
        validate_rollout(spec);
    }
}

/// Validates a pod template at `path`.
pub(super) fn validate_template(template: &Field<'_>) {
    // The paths have no `metadata`.
    let metadata = &template.value["metadata"];
    validate_labels(&template.field("labels").with(&metadata["labels"]));
    validate_annotations(&template.field("annotations").with(&metadata["annotations"]));
    validate_pod_spec(&template.field("spec"));
}
