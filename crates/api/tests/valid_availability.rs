//! A1, A2: valid AvailabilitySets, the errors of invalid ones, and the limits of LocalReplicaSets.

#![expect(clippy::unwrap_used, reason = "a test that can't go on ends")]

use std::collections::BTreeMap;

use federated_rollout::Amount;
use fedrs_api::{AvailabilitySetSpec, DisruptionLimit, FieldError, ValidAvailabilitySet};
use rstest::rstest;
use serde_json::{Value, json};

fn check(mut fields: Value) -> Result<ValidAvailabilitySet, Vec<FieldError>> {
    for (key, value) in [
        ("selector", json!({ "matchLabels": { "app": "web" } })),
        ("budget", json!(1)),
    ] {
        if fields[key].is_null() {
            fields[key] = value;
        }
    }
    let spec: AvailabilitySetSpec = serde_json::from_value(fields).unwrap();
    ValidAvailabilitySet::check(&spec)
}

#[test]
fn a2_racks_and_zones_have_the_labels_of_kubernetes() {
    let valid = check(json!({ "budget": "10%" })).unwrap();
    assert_eq!(valid.budget, Amount::Percent(10));
    assert_eq!(valid.domain_labels.rack, "topology.kubernetes.io/rack");
    assert_eq!(valid.domain_labels.zone, "topology.kubernetes.io/zone");
    let valid = check(json!({ "domainLabels": { "rack": "rack" } })).unwrap();
    assert_eq!(valid.domain_labels.rack, "rack");
    assert_eq!(valid.domain_labels.zone, "topology.kubernetes.io/zone");
}

#[rstest]
#[case::all_pods(json!({ "selector": {} }), &["spec.selector"])]
#[case::label(json!({ "selector": { "matchLabels": { "a b": "c" } } }), &["spec.selector.matchLabels[a b]"])]
#[case::a1_nothing(json!({ "budget": 0 }), &["spec.budget"])]
#[case::a1_no_percent(json!({ "budget": "0%" }), &["spec.budget"])]
#[case::negative(json!({ "budget": -1 }), &["spec.budget"])]
#[case::more_than_all(json!({ "budget": "101%" }), &["spec.budget"])]
#[case::word(json!({ "budget": "some" }), &["spec.budget"])]
#[case::keys(json!({ "domainLabels": { "rack": "a b", "zone": "" } }), &["spec.domainLabels.rack", "spec.domainLabels.zone"])]
fn errors_name_their_fields(#[case] fields: Value, #[case] expected: &[&str]) {
    let errors = check(fields).unwrap_err();
    let fields: Vec<_> = errors.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(fields, expected);
}

#[test]
fn a1_a_limit_that_cannot_be_read_lets_nothing_be_unavailable() {
    let limit = DisruptionLimit {
        max_unavailable: 2,
        revision: 7,
        federation: "f".to_owned(),
        one_cluster_at_a_time: false,
    };
    let long = format!("\"{}\"", "x".repeat(DisruptionLimit::BYTES_MAX));
    let annotations: BTreeMap<_, _> = [
        ("availability.fedrs.dev/web", limit.to_annotation()),
        ("availability.fedrs.dev/db", "7".to_owned()),
        ("availability.fedrs.dev/long", long),
        ("fedrs.dev/web", limit.to_annotation()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into();
    let limits = DisruptionLimit::all(Some(&annotations));
    let none = DisruptionLimit::default();
    let expected = [("db", none.clone()), ("long", none), ("web", limit)];
    assert_eq!(
        limits,
        expected.map(|(set, of)| (set.to_owned(), of)).into()
    );
}

#[rstest]
#[case::itself(json!({ "matchLabels": { "app": "web" } }), true)]
#[case::one_more_requirement(json!({ "matchLabels": { "app": "web", "tier": "front" } }), true)]
#[case::as_an_expression(json!({ "matchExpressions": [{ "key": "app", "operator": "In", "values": ["web", "web"] }] }), true)]
#[case::another_value(json!({ "matchLabels": { "app": "db" } }), false)]
#[case::more_values(json!({ "matchExpressions": [{ "key": "app", "operator": "In", "values": ["web", "db"] }] }), false)]
#[case::another_operator(json!({ "matchExpressions": [{ "key": "app", "operator": "NotIn", "values": ["web"] }] }), false)]
#[case::other_requirements_only(json!({ "matchLabels": { "tier": "front" } }), false)]
fn a1_a_selector_contains_those_that_have_all_its_requirements(
    #[case] narrow: Value,
    #[case] expected: bool,
) {
    let wide = serde_json::from_value(json!({ "matchLabels": { "app": "web" } })).unwrap();
    let narrow = serde_json::from_value(narrow).unwrap();
    assert_eq!(fedrs_api::selector::contains(&wide, &narrow), expected);
}
