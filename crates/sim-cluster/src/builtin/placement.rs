//! Validation of the placement in a pod's specification: selectors, affinities, spreading, gates, tolerations.

use std::collections::BTreeSet;

use super::metadata::validate_labels;
use super::selector::{Operators, validate_label_selector, validate_requirement};
use crate::names::{is_dns1123_label, validate_label_value, validate_qualified_name};
use crate::validation::Field;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Validates the placement in a pod's specification.
pub(super) fn validate_placement(spec: &Field<'_>) {
    validate_labels(&spec.field("nodeSelector"));
    let affinity = spec.field("affinity");
    validate_node_affinity(&affinity.field("nodeAffinity"));
    validate_pod_affinity(&affinity.field("podAffinity"));
    validate_pod_affinity(&affinity.field("podAntiAffinity"));
    validate_scheduling_gates(spec);
    let constraints: Vec<_> = spec.field("topologySpreadConstraints").items().collect();
    for (index, constraint) in constraints.iter().enumerate() {
        validate_spreading(constraint, &constraints[index + 1..]);
    }
    for toleration in spec.field("tolerations").items() {
        validate_toleration(&toleration);
    }
}

fn validate_node_affinity(affinity: &Field<'_>) {
    let required = affinity.field(REQUIRED);
    let terms = required.field("nodeSelectorTerms");
    if required.value.is_object() && terms.len() == 0 {
        terms.required("must have at least one node selector term");
    }
    for term in terms.items() {
        validate_node_term(&term);
    }
    for term in affinity.field(PREFERRED).items() {
        validate_weight(&term.field("weight"));
        validate_node_term(&term.field("preference"));
    }
}

fn validate_node_term(term: &Field<'_>) {
    for rule in term.field("matchExpressions").items() {
        validate_requirement(&rule, Operators::OfNodes);
    }
    for rule in term.field("matchFields").items() {
        let (key, operator) = (rule.field("key"), rule.field("operator"));
        match operator.text() {
            "In" | "NotIn" if rule.field("values").len() == 1 => {}
            "In" | "NotIn" => rule.field("values").required(
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
            ),
            other => operator.invalid_as(other, "not a valid selector operator"),
        }
        if key.text() != "metadata.name" {
            key.invalid_as(key.text(), "not a valid field selector key");
        }
    }
}

fn validate_pod_affinity(affinity: &Field<'_>) {
    for term in affinity.field(REQUIRED).items() {
        validate_pod_term(&term);
    }
    for term in affinity.field(PREFERRED).items() {
        validate_weight(&term.field("weight"));
        validate_pod_term(&term.field("podAffinityTerm"));
    }
}

fn validate_pod_term(term: &Field<'_>) {
    validate_label_selector(&term.field("labelSelector"));
    validate_label_selector(&term.field("namespaceSelector"));
    for namespace in term.field("namespaces").items() {
        let wrong = is_dns1123_label(namespace.text());
        term.field("namespace")
            .invalid_text(namespace.text(), wrong);
    }
    let key = term.field("topologyKey");
    key.require_text("can not be empty");
    key.invalid_text(key.text(), validate_qualified_name(key.text()));
}

fn validate_weight(weight: &Field<'_>) {
    let number = weight.number().unwrap_or_default();
    if !(1..=100).contains(&number) {
        weight.invalid_as(number, "must be in the range 1-100");
    }
}

/// Validates a constraint for spreading; `later` are those after it.
fn validate_spreading(constraint: &Field<'_>, later: &[Field<'_>]) {
    require_positive(&constraint.field("maxSkew"));
    let (key, action) = (
        constraint.field("topologyKey"),
        constraint.field("whenUnsatisfiable"),
    );
    key.require_text("can not be empty");
    action.require_one_of(&["DoNotSchedule", "ScheduleAnyway"]);
    let is_same = |other: &Field<'_>| {
        let mut fields = ["topologyKey", "whenUnsatisfiable"].into_iter();
        fields.all(|field| other.value[field] == constraint.value[field])
    };
    if later.iter().any(is_same) {
        let pair = format!("{{{}, {}}}", key.text(), action.text()).into();
        let fields = constraint.field("{topologyKey, whenUnsatisfiable}");
        fields.with(&pair).duplicate();
    }
    let domains = constraint.field("minDomains");
    if domains.number().is_some() {
        require_positive(&domains);
        if action.text() != "DoNotSchedule" {
            domains.invalid(&format!(
                "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {}",
                action.text()
            ));
        }
    }
    for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"].map(|name| constraint.field(name)) {
        if policy.value.is_string() {
            policy.require_one_of(&["Ignore", "Honor"]);
        }
    }
    validate_label_selector(&constraint.field("labelSelector"));
}

fn require_positive(field: &Field<'_>) {
    let number = field.number().unwrap_or_default();
    if number <= 0 {
        field.invalid_as(number, "must be greater than zero");
    }
}

fn validate_toleration(toleration: &Field<'_>) {
    let [key, operator, effect] = ["key", "operator", "effect"].map(|name| toleration.field(name));
    let value = toleration.field("value").text();
    if !key.text().is_empty() {
        key.invalid_text(key.text(), validate_qualified_name(key.text()));
    } else if operator.text() != "Exists" {
        let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        operator.invalid_as(operator.text(), detail);
    }
    if toleration.value["tolerationSeconds"].is_i64() && effect.text() != "NoExecute" {
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        effect.invalid_as(effect.text(), detail);
    }
    match operator.text() {
        "" | "Equal" => operator.invalid_text(value, validate_label_value(value)),
        "Exists" if !value.is_empty() => {
            operator.invalid_as(value, "value must be empty when `operator` is 'Exists'");
        }
        "Exists" => {}
        _ => operator.not_supported(&["Equal", "Exists"]),
    }
    let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
    if !effect.text().is_empty() && !effects.contains(&effect.text()) {
        effect.not_supported(&effects);
    }
}

fn validate_scheduling_gates(spec: &Field<'_>) {
    let mut seen = BTreeSet::new();
    for gate in spec.field("schedulingGates").items() {
        let name = gate.field("name");
        name.invalid_text(name.text(), validate_qualified_name(name.text()));
        if !seen.insert(name.text()) {
            name.duplicate();
        }
    }
    if !seen.is_empty() && spec.value["nodeName"].is_string() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        spec.field("nodeName").forbidden(detail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validation::errors_of;
    use rstest::rstest;
    use serde_json::{Value, json};

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
        let errors = errors_of(&spec, validate_placement);
        assert_eq!(errors.len(), wanted.len(), "{errors:?}");
        for (error, wanted) in errors.iter().zip(wanted) {
            assert!(error.to_string().contains(wanted), "{error}");
        }
    }
}
