//! Validation of built-in kinds on create and update, and of the smaller kinds themselves.

use std::collections::BTreeSet;

use serde_json::Value;

use super::checks::{fields, immutable, not_negative};
use super::data::{validate_config_map, validate_data_update, validate_secret};
use super::metadata::{validate_metadata, validate_metadata_update};
use super::pod::validate_pod_spec;
use super::pod_update::validate_pod_update;
use super::rights::{validate_role, validate_role_ref};
use super::selector::validate_label_selector;
use super::templates::{validate_template, validate_workload_spec};
use crate::field::{FieldError, FieldErrorKind};
use crate::names::{NameRule, validate_qualified_name};
use crate::quantity::Quantity;

/// Validates a new object, with its defaults, generated name and namespace.
pub(crate) fn validate_create(kind: &str, object: &Value, namespaced: bool) -> Vec<FieldError> {
    let mut errors = validate_metadata(object, namespaced, NameRule::of(kind), true);
    errors.extend(validate_content(kind, object));
    errors
}

/// Validates an update of the main resource or of its `status` subresource.
pub(crate) fn validate_update(
    kind: &str,
    subresource: &str,
    old: &Value,
    new: &Value,
) -> Vec<FieldError> {
    let mut errors = validate_metadata_update(old, new, true);
    if subresource == "status" {
        errors.extend(validate_status(kind, new));
        return errors;
    }
    match kind {
        "Pod" => errors.extend(validate_pod_update(old, new)),
        "Namespace" => {}
        _ => errors.extend(validate_content(kind, new)),
    }
    match kind {
        "ReplicaSet" | "Deployment" if old["spec"]["selector"] != new["spec"]["selector"] => {
            errors.push(immutable("spec.selector", &new["spec"]["selector"]));
        }
        "ControllerRevision" if old["data"] != new["data"] => {
            errors.push(immutable("data", &new["data"]));
        }
        "ConfigMap" | "Secret" => errors.extend(validate_data_update(kind, old, new)),
        "RoleBinding" | "ClusterRoleBinding" if old["roleRef"] != new["roleRef"] => {
            errors.push(FieldError::invalid(
                "roleRef",
                new["roleRef"].clone(),
                "cannot change roleRef",
            ));
        }
        "ResourceQuota" if old["spec"]["scopes"] != new["spec"]["scopes"] => {
            errors.push(immutable("spec.scopes", &new["spec"]["scopes"]));
        }
        _ => {}
    }
    errors
}

fn validate_content(kind: &str, object: &Value) -> Vec<FieldError> {
    match kind {
        "Pod" => validate_pod_spec(&object["spec"], "spec"),
        "PodTemplate" => validate_template(&object["template"], "template"),
        "ReplicaSet" | "Deployment" => validate_workload_spec(kind, &object["spec"]),
        "Node" => validate_node(object),
        "ConfigMap" => validate_config_map(object),
        "Secret" => validate_secret(object),
        "ResourceQuota" => validate_quota(&object["spec"]["hard"], "spec.hard"),
        "Lease" => validate_lease(&object["spec"]),
        "Event" => validate_event(object),
        "ControllerRevision" => validate_revision(object),
        "PodDisruptionBudget" => validate_budget(&object["spec"]),
        "Role" | "ClusterRole" => validate_role(object),
        "RoleBinding" | "ClusterRoleBinding" => validate_role_ref(kind, object),
        _ => Vec::new(),
    }
}

fn validate_status(kind: &str, object: &Value) -> Vec<FieldError> {
    let status = &object["status"];
    match kind {
        "ResourceQuota" => {
            let mut errors = validate_quota(&status["hard"], "status.hard");
            errors.extend(validate_quota(&status["used"], "status.used"));
            errors
        }
        "ReplicaSet" => [
            "replicas",
            "fullyLabeledReplicas",
            "readyReplicas",
            "availableReplicas",
            "observedGeneration",
        ]
        .into_iter()
        .filter_map(|field| not_negative(status, "status", field))
        .chain(more_than_replicas(status))
        .collect(),
        _ => Vec::new(),
    }
}

fn more_than_replicas(status: &Value) -> Vec<FieldError> {
    let count = |field: &str| status[field].as_i64().unwrap_or(0);
    let mut errors = Vec::new();
    let mut at_most = |field: &str, other: &str, words: &str| {
        if count(field) > count(other) {
            errors.push(FieldError::invalid(
                format!("status.{field}"),
                count(field),
                format!("cannot be greater than {words}"),
            ));
        }
    };
    at_most("fullyLabeledReplicas", "replicas", "status.replicas");
    at_most("readyReplicas", "replicas", "status.replicas");
    at_most("availableReplicas", "replicas", "status.replicas");
    at_most("availableReplicas", "readyReplicas", "readyReplicas");
    errors
}

fn validate_node(node: &Value) -> Vec<FieldError> {
    const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, taint) in node["spec"]["taints"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        let at = format!("spec.taints[{index}]");
        let text = |field: &str| taint[field].as_str().unwrap_or_default();
        let wrong = validate_qualified_name(text("key"));
        errors.extend(
            wrong
                .into_iter()
                .map(|what| FieldError::invalid(format!("{at}.key"), text("key"), what)),
        );
        match text("effect") {
            "" => errors.push(FieldError::required(format!("{at}.effect"), "")),
            effect if !EFFECTS.contains(&effect) => {
                errors.push(FieldError::not_supported(
                    format!("{at}.effect"),
                    effect,
                    &EFFECTS,
                ));
            }
            _ => {}
        }
        if !seen.insert((text("key"), text("effect"))) {
            let detail = "taints must be unique by key and effect pair";
            errors.push(FieldError::new(
                FieldErrorKind::Duplicate,
                at,
                taint.clone(),
                detail,
            ));
        }
    }
    errors
}

fn validate_quota(hard: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (name, value) in fields(hard) {
        let at = format!("{path}[{name}]");
        let Some(amount) = value
            .as_str()
            .and_then(|text| text.parse::<Quantity>().ok())
        else {
            continue;
        };
        if amount.is_negative() {
            errors.push(FieldError::invalid(
                &at,
                amount.to_string(),
                "must be greater than or equal to 0",
            ));
        }
        let counts_objects = name.starts_with("count/")
            || [
                "pods",
                "services",
                "secrets",
                "configmaps",
                "replicationcontrollers",
                "resourcequotas",
            ]
            .contains(&name.as_str());
        if counts_objects && amount != Quantity::units(amount.value()) {
            errors.push(FieldError::invalid(
                at,
                amount.to_string(),
                "must be an integer",
            ));
        }
    }
    errors
}

fn validate_lease(spec: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(seconds) = spec["leaseDurationSeconds"]
        .as_i64()
        .filter(|seconds| *seconds <= 0)
    {
        errors.push(FieldError::invalid(
            "spec.leaseDurationSeconds",
            seconds,
            "must be greater than 0",
        ));
    }
    errors.extend(not_negative(spec, "spec", "leaseTransitions"));
    errors
}

fn validate_event(event: &Value) -> Vec<FieldError> {
    let about = event
        .get("involvedObject")
        .or_else(|| event.get("regarding"));
    let field = if event.get("involvedObject").is_some() {
        "involvedObject"
    } else {
        "regarding"
    };
    let of = about
        .and_then(|about| about["namespace"].as_str())
        .unwrap_or_default();
    let own = event["metadata"]["namespace"].as_str().unwrap_or_default();
    // Events about cluster-scoped objects are in the default namespace.
    let fits = of == own || (of.is_empty() && ["default", "kube-system"].contains(&own));
    if fits {
        return Vec::new();
    }
    vec![FieldError::invalid(
        format!("{field}.namespace"),
        of,
        "does not match event.namespace",
    )]
}

fn validate_revision(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if object["data"].is_null() {
        errors.push(FieldError::required("data", "data is mandatory"));
    }
    if let Some(number) = object["revision"].as_i64().filter(|number| *number < 0) {
        errors.push(FieldError::invalid(
            "revision",
            number,
            "must be greater than or equal to 0",
        ));
    }
    errors
}

fn validate_budget(spec: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null() {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        errors.push(FieldError::invalid("spec", spec.clone(), detail));
    }
    errors.extend(validate_label_selector(&spec["selector"], "spec.selector"));
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn replica_set(change: impl Fn(&mut Value)) -> Value {
        let mut set = json!({
            "metadata": { "name": "web", "namespace": "default" },
            "spec": { "selector": { "matchLabels": { "app": "web" } }, "template": {
                "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [{ "name": "a", "image": "x" }] } } }
        });
        change(&mut set);
        super::super::defaults("ReplicaSet", &mut set);
        set
    }

    #[rstest]
    #[case("/spec/template/metadata/labels/app", json!("other"), "spec.template.metadata.labels: Invalid value: {\"app\":\"other\"}: `selector` does not match template `labels`")]
    #[case("/spec/template/spec", json!({"restartPolicy": "Never", "containers": [{"name": "a", "image": "x"}]}), "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\"")]
    #[case("/spec/selector", json!({}), "spec.selector: Invalid value: {}: empty selector is invalid for deployment")]
    #[case("/spec/selector", Value::Null, "spec.selector: Required value")]
    #[case("/metadata/name", json!(""), "metadata.name: Required value: name or generateName is required")]
    fn a_bad_replica_set_is_explained(
        #[case] pointer: &str,
        #[case] value: Value,
        #[case] message: &str,
    ) {
        let set = replica_set(|set| *set.pointer_mut(pointer).unwrap() = value.clone());
        let texts: Vec<String> = validate_create("ReplicaSet", &set, true)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(texts, [message]);
    }

    #[test]
    fn a_selector_never_changes() {
        let old = replica_set(|_| {});
        let new = replica_set(|set| {
            set["spec"]["selector"]["matchLabels"] = json!({ "app": "other" });
            set["spec"]["template"]["metadata"]["labels"] = json!({ "app": "other" });
        });
        let errors = validate_update("ReplicaSet", "", &old, &new);
        assert_eq!(
            errors[0].to_string(),
            r#"spec.selector: Invalid value: {"matchLabels":{"app":"other"}}: field is immutable"#
        );
        assert_eq!(errors.len(), 1);
    }

    #[test]
    fn a_revision_keeps_its_data() {
        let old = json!({ "metadata": { "name": "a" }, "data": { "x": 1 }, "revision": 1 });
        let mut new = old.clone();
        new["data"]["x"] = 2.into();
        assert_eq!(
            validate_update("ControllerRevision", "", &old, &new)[0].to_string(),
            r#"data: Invalid value: {"x":2}: field is immutable"#
        );
    }
}
