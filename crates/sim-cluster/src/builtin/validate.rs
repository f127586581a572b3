//! Validation of built-in kinds on create and update, and of the smaller kinds themselves.

use std::collections::BTreeSet;

use serde_json::Value;

use super::data::{validate_config_map, validate_data_update, validate_secret};
use super::metadata::{validate_metadata, validate_metadata_update};
use super::pod::validate_pod_spec;
use super::pod_resize::validate_pod_resize;
use super::pod_resources::quantity;
use super::pod_update::validate_pod_update;
use super::replica_counts::{validate_deployment_counts, validate_replica_set_counts};
use super::rights::{validate_role, validate_role_ref};
use super::selector::validate_label_selector;
use super::templates::{validate_template, validate_workload_spec};
use crate::field::{FieldError, FieldErrorKind};
use crate::names::{NameRule, validate_qualified_name};
use crate::quantity::Quantity;
use crate::validation::{Field, errors_of};

/// Validates a new object, with its defaults, generated name and namespace.
pub(crate) fn validate_create(kind: &str, object: &Value, namespaced: bool) -> Vec<FieldError> {
    let mut errors = validate_metadata(object, namespaced, NameRule::of(kind), true);
    errors.extend(errors_of(object, |object| validate_content(kind, object)));
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
    errors.extend(errors_of(new, |new| {
        if subresource == "status" {
            validate_status(kind, old, &new.field("status"));
        } else if subresource == "resize" {
            validate_pod_resize(old, new);
        } else {
            validate_content_update(kind, old, new);
        }
    }));
    errors
}

fn validate_content_update(kind: &str, old: &Value, new: &Field<'_>) {
    match kind {
        "Pod" => validate_pod_update(old, new),
        "Namespace" => {}
        _ => validate_content(kind, new),
    }
    match kind {
        "ReplicaSet" | "Deployment" => {
            let selector = new.field("spec").field("selector");
            selector.require_unchanged(&old["spec"]["selector"]);
        }
        "ControllerRevision" => new.field("data").require_unchanged(&old["data"]),
        "ConfigMap" | "Secret" => validate_data_update(kind, old, new),
        "RoleBinding" | "ClusterRoleBinding" if *new.field("roleRef").value != old["roleRef"] => {
            new.field("roleRef").invalid("cannot change roleRef");
        }
        "ResourceQuota" => {
            let scopes = new.field("spec").field("scopes");
            scopes.require_unchanged(&old["spec"]["scopes"]);
        }
        _ => {}
    }
}

fn validate_content(kind: &str, object: &Field<'_>) {
    let spec = object.field("spec");
    match kind {
        "Pod" => validate_pod_spec(&spec),
        "PodTemplate" => validate_template(&object.field("template")),
        "ReplicaSet" | "Deployment" => validate_workload_spec(kind, &spec),
        "Node" => validate_taints(&spec.field("taints")),
        "ConfigMap" => validate_config_map(object),
        "Secret" => validate_secret(object),
        "ResourceQuota" => validate_quota(&spec.field("hard")),
        "Lease" => validate_lease(&spec),
        "Event" => validate_event(object),
        "ControllerRevision" => {
            if object.value["data"].is_null() {
                object.field("data").required("data is mandatory");
            }
            object.field("revision").require_not_negative();
        }
        "PodDisruptionBudget" => validate_budget(&spec),
        "Role" | "ClusterRole" => validate_role(object),
        "RoleBinding" | "ClusterRoleBinding" => validate_role_ref(kind, object),
        _ => {}
    }
}

fn validate_status(kind: &str, old: &Value, status: &Field<'_>) {
    match kind {
        "ResourceQuota" => {
            validate_quota(&status.field("hard"));
            validate_quota(&status.field("used"));
        }
        "ReplicaSet" => validate_replica_set_counts(status),
        "Deployment" => validate_deployment_counts(&old["status"], status),
        _ => {}
    }
}

fn validate_taints(taints: &Field<'_>) {
    let mut seen = BTreeSet::new();
    for taint in taints.items() {
        let (key, effect) = (taint.field("key"), taint.field("effect"));
        key.invalid_text(key.text(), validate_qualified_name(key.text()));
        effect.require_one_of(&["NoSchedule", "PreferNoSchedule", "NoExecute"]);
        if !seen.insert((key.text(), effect.text())) {
            let detail = "taints must be unique by key and effect pair";
            taint.report(FieldErrorKind::Duplicate, taint.value.clone(), detail);
        }
    }
}

/// Validates amounts of a quota.
fn validate_quota(amounts: &Field<'_>) {
    const OBJECTS: &[&str] = &[
        "pods",
        "services",
        "secrets",
        "configmaps",
        "replicationcontrollers",
        "resourcequotas",
    ];
    for (name, value) in amounts.entries() {
        let Some(amount) = quantity(value.value) else {
            continue;
        };
        if amount.is_negative() {
            value.invalid_as(amount.to_string(), "must be greater than or equal to 0");
        }
        let counts_objects = name.starts_with("count/") || OBJECTS.contains(&name.as_str());
        if counts_objects && amount != Quantity::units(amount.value()) {
            value.invalid_as(amount.to_string(), "must be an integer");
        }
    }
}

fn validate_lease(spec: &Field<'_>) {
    let duration = spec.field("leaseDurationSeconds");
    if duration.number().is_some_and(|seconds| seconds <= 0) {
        duration.invalid("must be greater than 0");
    }
    spec.field("leaseTransitions").require_not_negative();
}

/// Validates that an event is in the namespace of its object.
fn validate_event(event: &Field<'_>) {
    let has = |field: &&str| event.value.get(*field).is_some();
    let field = Some("involvedObject").filter(has).unwrap_or("regarding");
    let namespace = event.field(field).field("namespace");
    let (of, own) = (
        namespace.text(),
        event.field("metadata").field("namespace").text(),
    );
    // Events about cluster-scoped objects are in the default namespace.
    let fits = of == own || (of.is_empty() && ["default", "kube-system"].contains(&own));
    if !fits {
        namespace.invalid_as(of, "does not match event.namespace");
    }
}

fn validate_budget(spec: &Field<'_>) {
    if !spec.value["minAvailable"].is_null() && !spec.value["maxUnavailable"].is_null() {
        spec.invalid("minAvailable and maxUnavailable cannot be both set");
    }
    validate_label_selector(&spec.field("selector"));
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
    fn an_absent_selector_matches_no_template() {
        let set = replica_set(|set| set["spec"]["selector"] = Value::Null);
        let errors = validate_create("ReplicaSet", &set, true);
        let fields: Vec<&str> = errors.iter().map(|error| error.path.as_str()).collect();
        assert_eq!(fields, ["spec.selector", "spec.template.metadata.labels"]);
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
