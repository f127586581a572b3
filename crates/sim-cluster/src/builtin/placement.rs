//! Validation of the placement in a pod's specification: selectors, affinities, spreading, gates, tolerations.

use std::collections::BTreeSet;

use serde_json::Value;

use super::checks::{fields, items, one_of};
use super::selector::{Operators, validate_label_selector, validate_requirement};
use crate::field::FieldError;
use crate::names::{is_dns1123_label, validate_label_value, validate_qualified_name};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Validates the placement in the specification at `path`.
pub(super) fn validate_placement(spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate_node_selector(spec, path, &mut errors);
    let at = format!("{path}.affinity");
    validate_node_affinity(
        &spec["affinity"]["nodeAffinity"],
        &format!("{at}.nodeAffinity"),
        &mut errors,
    );
    for kind in ["podAffinity", "podAntiAffinity"] {
        validate_pod_affinity(
            &spec["affinity"][kind],
            &format!("{at}.{kind}"),
            &mut errors,
        );
    }
    validate_scheduling_gates(spec, path, &mut errors);
    validate_spreading(spec, path, &mut errors);
    validate_tolerations(spec, path, &mut errors);
    errors
}

fn validate_node_selector(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (key, value) in fields(&spec["nodeSelector"]) {
        let at = format!("{path}.nodeSelector");
        errors.extend(
            validate_qualified_name(key)
                .into_iter()
                .map(|what| FieldError::invalid(&at, key.as_str(), what)),
        );
        let text = value.as_str().unwrap_or_default();
        errors.extend(
            validate_label_value(text)
                .into_iter()
                .map(|what| FieldError::invalid(&at, text, what)),
        );
    }
}

fn validate_node_affinity(affinity: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let required = &affinity[REQUIRED];
    let at = format!("{path}.{REQUIRED}.nodeSelectorTerms");
    if required.is_object() && items(required, "nodeSelectorTerms").next().is_none() {
        errors.push(FieldError::required(
            at.clone(),
            "must have at least one node selector term",
        ));
    }
    for (index, term) in items(required, "nodeSelectorTerms") {
        validate_node_term(term, &format!("{at}[{index}]"), errors);
    }
    for (index, term) in items(affinity, PREFERRED) {
        let at = format!("{path}.{PREFERRED}[{index}]");
        validate_weight(term, &at, errors);
        validate_node_term(&term["preference"], &format!("{at}.preference"), errors);
    }
}

fn validate_node_term(term: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (index, rule) in items(term, "matchExpressions") {
        let at = format!("{path}.matchExpressions[{index}]");
        errors.extend(validate_requirement(rule, &at, Operators::OfNodes));
    }
    for (index, rule) in items(term, "matchFields") {
        let at = format!("{path}.matchFields[{index}]");
        let text = |field: &str| rule[field].as_str().unwrap_or_default();
        match text("operator") {
            "In" | "NotIn" if items(rule, "values").count() == 1 => {}
            "In" | "NotIn" => {
                let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                errors.push(FieldError::required(format!("{at}.values"), detail));
            }
            other => {
                let detail = "not a valid selector operator";
                errors.push(FieldError::invalid(format!("{at}.operator"), other, detail));
            }
        }
        if text("key") != "metadata.name" {
            let detail = "not a valid field selector key";
            errors.push(FieldError::invalid(
                format!("{at}.key"),
                text("key"),
                detail,
            ));
        }
    }
}

fn validate_pod_affinity(affinity: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (index, term) in items(affinity, REQUIRED) {
        validate_pod_term(term, &format!("{path}.{REQUIRED}[{index}]"), errors);
    }
    for (index, term) in items(affinity, PREFERRED) {
        let at = format!("{path}.{PREFERRED}[{index}]");
        validate_weight(term, &at, errors);
        validate_pod_term(
            &term["podAffinityTerm"],
            &format!("{at}.podAffinityTerm"),
            errors,
        );
    }
}

fn validate_pod_term(term: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for selector in ["labelSelector", "namespaceSelector"] {
        errors.extend(validate_label_selector(
            &term[selector],
            &format!("{path}.{selector}"),
        ));
    }
    for (_, namespace) in items(term, "namespaces") {
        let namespace = namespace.as_str().unwrap_or_default();
        let wrong = is_dns1123_label(namespace).into_iter();
        errors.extend(
            wrong.map(|what| FieldError::invalid(format!("{path}.namespace"), namespace, what)),
        );
    }
    let key = term["topologyKey"].as_str().unwrap_or_default();
    let at = format!("{path}.topologyKey");
    if key.is_empty() {
        errors.push(FieldError::required(at.clone(), "can not be empty"));
    }
    let wrong = validate_qualified_name(key).into_iter();
    errors.extend(wrong.map(|what| FieldError::invalid(&at, key, what)));
}

fn validate_weight(term: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let weight = term["weight"].as_i64().unwrap_or_default();
    if !(1..=100).contains(&weight) {
        let detail = "must be in the range 1-100";
        errors.push(FieldError::invalid(
            format!("{path}.weight"),
            weight,
            detail,
        ));
    }
}

fn validate_spreading(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let all: Vec<&Value> = items(spec, "topologySpreadConstraints")
        .map(|(_, one)| one)
        .collect();
    for (index, constraint) in all.iter().enumerate() {
        let at = format!("{path}.topologySpreadConstraints[{index}]");
        let text = |field: &str| constraint[field].as_str().unwrap_or_default();
        errors.extend(not_positive(constraint, &at, "maxSkew"));
        if text("topologyKey").is_empty() {
            errors.push(FieldError::required(
                format!("{at}.topologyKey"),
                "can not be empty",
            ));
        }
        errors.extend(one_of(
            constraint,
            &at,
            "whenUnsatisfiable",
            &["DoNotSchedule", "ScheduleAnyway"],
        ));
        let same = |other: &&Value| {
            let mut fields = ["topologyKey", "whenUnsatisfiable"].into_iter();
            fields.all(|field| other[field] == constraint[field])
        };
        if all[index + 1..].iter().any(same) {
            let pair = format!("{{{}, {}}}", text("topologyKey"), text("whenUnsatisfiable"));
            errors.push(FieldError::duplicate(
                format!("{at}.{{topologyKey, whenUnsatisfiable}}"),
                pair,
            ));
        }
        validate_min_domains(constraint, &at, errors);
        for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            if constraint[policy].is_string() {
                errors.extend(one_of(constraint, &at, policy, &["Ignore", "Honor"]));
            }
        }
        errors.extend(validate_label_selector(
            &constraint["labelSelector"],
            &format!("{at}.labelSelector"),
        ));
    }
}

fn not_positive(constraint: &Value, path: &str, field: &str) -> Option<FieldError> {
    let number = constraint[field].as_i64().unwrap_or_default();
    let detail = "must be greater than zero";
    (number <= 0).then(|| FieldError::invalid(format!("{path}.{field}"), number, detail))
}

fn validate_min_domains(constraint: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(number) = constraint["minDomains"].as_i64() else {
        return;
    };
    errors.extend(not_positive(constraint, path, "minDomains"));
    let action = constraint["whenUnsatisfiable"].as_str().unwrap_or_default();
    if action != "DoNotSchedule" {
        let detail =
            format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
        errors.push(FieldError::invalid(
            format!("{path}.minDomains"),
            number,
            detail,
        ));
    }
}

fn validate_tolerations(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (index, toleration) in items(spec, "tolerations") {
        let at = format!("{path}.tolerations[{index}]");
        let text = |field: &str| toleration[field].as_str().unwrap_or_default();
        if !text("key").is_empty() {
            let wrong = validate_qualified_name(text("key"));
            errors.extend(
                wrong
                    .into_iter()
                    .map(|what| FieldError::invalid(format!("{at}.key"), text("key"), what)),
            );
        } else if text("operator") != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(FieldError::invalid(
                format!("{at}.operator"),
                text("operator"),
                detail,
            ));
        }
        if toleration["tolerationSeconds"].is_i64() && text("effect") != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(FieldError::invalid(
                format!("{at}.effect"),
                text("effect"),
                detail,
            ));
        }
        match text("operator") {
            "" | "Equal" => {
                let wrong = validate_label_value(text("value"));
                errors.extend(wrong.into_iter().map(|what| {
                    FieldError::invalid(format!("{at}.operator"), text("value"), what)
                }));
            }
            "Exists" if !text("value").is_empty() => {
                let detail = "value must be empty when `operator` is 'Exists'";
                errors.push(FieldError::invalid(
                    format!("{at}.operator"),
                    text("value"),
                    detail,
                ));
            }
            "Exists" => {}
            other => errors.push(FieldError::not_supported(
                format!("{at}.operator"),
                other,
                &["Equal", "Exists"],
            )),
        }
        if !["", "NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&text("effect")) {
            let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
            errors.push(FieldError::not_supported(
                format!("{at}.effect"),
                text("effect"),
                &effects,
            ));
        }
    }
}

fn validate_scheduling_gates(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (index, gate) in items(spec, "schedulingGates") {
        let at = format!("{path}.schedulingGates[{index}].name");
        let name = gate["name"].as_str().unwrap_or_default();
        errors.extend(
            validate_qualified_name(name)
                .into_iter()
                .map(|what| FieldError::invalid(&at, name, what)),
        );
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(at, name));
        }
    }
    if !seen.is_empty() && spec["nodeName"].is_string() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        errors.push(FieldError::forbidden(format!("{path}.nodeName"), detail));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn near(term: &Value) -> Value {
        json!({ "affinity": { "podAffinity": { REQUIRED: [term] } } })
    }

    fn node(rule: &Value) -> Value {
        json!({ "affinity": { "nodeAffinity": { REQUIRED: { "nodeSelectorTerms": [{ "matchExpressions": [rule] }] } } } })
    }

    fn spread(more: &Value) -> Value {
        let mut constraint =
            json!({ "topologyKey": "a", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule" });
        for (field, value) in more.as_object().unwrap() {
            constraint[field] = value.clone();
        }
        json!({ "topologySpreadConstraints": [constraint] })
    }

    #[rstest]
    #[case::anywhere(json!({}), &[])]
    #[case::near(near(&json!({ "topologyKey": "zone", "labelSelector": { "matchLabels": { "a": "b" } } })), &[])]
    #[case::no_key(near(&json!({})), &["topologyKey: Required value: can not be empty", "topologyKey: Invalid value: \"\": name part must be non-empty",
        "topologyKey: Invalid value: \"\": name part must consist of"])]
    #[case::a_namespace(near(&json!({ "topologyKey": "a", "namespaces": ["A"] })), &["namespace: Invalid value: \"A\": a lowercase RFC 1123 label"])]
    #[case::greater(node(&json!({ "key": "a", "operator": "Gt", "values": ["1"] })), &[])]
    #[case::greater_than_two(node(&json!({ "key": "a", "operator": "Gt", "values": ["1", "2"] })), &["values: Required value: must be specified single value"])]
    #[case::no_terms(json!({ "affinity": { "nodeAffinity": { REQUIRED: {} } } }), &["nodeSelectorTerms: Required value: must have at least one node selector term"])]
    #[case::another_field(json!({ "affinity": { "nodeAffinity": { REQUIRED: { "nodeSelectorTerms": [{ "matchFields": [{ "key": "x", "operator": "Exists" }] }] } } } }),
        &["operator: Invalid value: \"Exists\": not a valid selector operator", "key: Invalid value: \"x\": not a valid field selector key"])]
    #[case::weight(json!({ "affinity": { "nodeAffinity": { PREFERRED: [{ "weight": 101, "preference": {} }] } } }), &["weight: Invalid value: 101: must be in the range 1-100"])]
    #[case::spread(spread(&json!({})), &[])]
    #[case::no_skew(spread(&json!({ "maxSkew": 0 })), &["maxSkew: Invalid value: 0: must be greater than zero"])]
    #[case::maybe(spread(&json!({ "whenUnsatisfiable": "Maybe" })), &["whenUnsatisfiable: Unsupported value: \"Maybe\""])]
    #[case::domains(spread(&json!({ "minDomains": 2, "whenUnsatisfiable": "ScheduleAnyway" })), &["minDomains: Invalid value: 2: can only use minDomains if"])]
    #[case::policy(spread(&json!({ "nodeTaintsPolicy": "x" })), &["nodeTaintsPolicy: Unsupported value: \"x\""])]
    #[case::a_value(json!({ "tolerations": [{ "operator": "Exists", "value": "x" }] }), &["operator: Invalid value: \"x\": value must be empty"])]
    fn a_bad_placement_is_explained(#[case] spec: Value, #[case] wanted: &[&str]) {
        let errors = validate_placement(&spec, "spec");
        assert_eq!(errors.len(), wanted.len(), "{errors:?}");
        for (error, wanted) in errors.iter().zip(wanted) {
            assert!(error.to_string().contains(wanted), "{error}");
        }
    }
}
