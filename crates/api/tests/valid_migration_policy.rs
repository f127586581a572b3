//! M1, M6, M10, M14, M15: valid MigrationPolicies, and the errors of invalid ones.

#![expect(clippy::unwrap_used, reason = "a test that can't go on ends")]

use std::{collections::BTreeMap, time::Duration};

use fedrs_api::{
    FieldError, MigrationPhase, MigrationPolicySpec, MigrationRequestStatus, ValidMigrationPolicy,
};
use rstest::rstest;
use serde_json::{Value, json};

fn check(spec: Value) -> Result<ValidMigrationPolicy, Vec<FieldError>> {
    let spec: MigrationPolicySpec = serde_json::from_value(spec).unwrap();
    ValidMigrationPolicy::check(&spec)
}

#[test]
fn m14_without_fields_a_policy_allows_one_migration_an_hour_and_one_compaction_a_week() {
    let policy = check(json!({})).unwrap();
    assert_eq!(policy.min_between, Duration::from_hours(1));
    assert_eq!(policy.min_between_compactions, Duration::from_hours(7 * 24));
    assert_eq!((policy.max_unavailable, policy.per_shard), (None, None));
    assert_eq!(policy.deadline, None);
}

#[rstest]
#[case::by_name_only(json!({}), false)]
#[case::all(json!({ "selector": {} }), true)]
#[case::those_with_a_label(json!({ "selector": { "matchLabels": { "tier": "front" } } }), true)]
#[case::those_with_another(json!({ "selector": { "matchLabels": { "tier": "back" } } }), false)]
fn m1_a_selector_selects_sets_by_their_labels(#[case] spec: Value, #[case] expected: bool) {
    let labels = BTreeMap::from([("tier".to_owned(), "front".to_owned())]);
    assert_eq!(check(spec).unwrap().selects(&labels), expected);
}

#[rstest]
#[case::nothing_may_move(json!({ "maxUnavailable": 0 }), &["spec.maxUnavailable"])]
#[case::nothing_by_percent(json!({ "maxUnavailable": "0%", "atLeastPercent": 5 }), &["spec.maxUnavailable"])]
#[case::no_number(json!({ "maxUnavailable": "many" }), &["spec.maxUnavailable"])]
#[case::above_all(json!({ "maxUnavailable": "101%" }), &["spec.maxUnavailable"])]
#[case::percent_above_all(json!({ "atLeastPercent": 101 }), &["spec.atLeastPercent"])]
#[case::shards(json!({ "perShard": { "label": "a b", "maxUnavailable": 0 } }), &["spec.perShard.label", "spec.perShard.maxUnavailable"])]
#[case::seconds(json!({ "minSecondsBetween": { "hardware": -1, "compaction": -1 } }), &["spec.minSecondsBetween.hardware", "spec.minSecondsBetween.compaction"])]
#[case::deadline(json!({ "deadlineSeconds": 0 }), &["spec.deadlineSeconds"])]
#[case::selector(json!({ "selector": { "matchLabels": { "a b": "c" } } }), &["spec.selector.matchLabels[a b]"])]
fn m1_errors_name_their_fields(#[case] spec: Value, #[case] expected: &[&str]) {
    let errors = check(spec).unwrap_err();
    let fields: Vec<_> = errors.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(fields, expected);
}

#[test]
fn m10_a_number_of_0_with_a_percentage_is_the_percentage() {
    let policy = check(json!({ "maxUnavailable": 0, "atLeastPercent": 5 })).unwrap();
    assert_eq!(policy.max_unavailable.unwrap().of(39), 2);
}

/// A migration that waits again and again keeps its first and last steps.
#[test]
fn m8_the_history_of_a_request_is_bounded() {
    let mut status = MigrationRequestStatus::default();
    let at = |second| jiff::Timestamp::from_second(second).unwrap();
    for second in 0..100 {
        let phase = [MigrationPhase::Requested, MigrationPhase::WaitingForBudget];
        let phase = phase[usize::try_from(second % 2).unwrap()];
        status.reach(phase, at(second));
        status.reach(phase, at(second));
    }
    assert_eq!(status.ended(), None);
    status.reach(MigrationPhase::Done, at(200));
    assert_eq!(status.history.len(), 32);
    assert_eq!(status.history[0].at.0, at(0));
    assert_eq!(status.ended(), Some(at(200)));
}
