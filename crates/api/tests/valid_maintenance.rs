//! M9, M15: valid Maintenances, the errors of invalid ones, and the marks of nodes.

#![expect(clippy::unwrap_used, reason = "a test that can't go on ends")]

use std::time::Duration;

use fedrs_api::{FieldError, MaintenanceMark, MaintenanceSpec, ValidMaintenance};
use rstest::rstest;
use serde_json::{Value, json};

fn check(mut fields: Value) -> Result<ValidMaintenance, Vec<FieldError>> {
    if fields["nodeSelector"].is_null() {
        fields["nodeSelector"] = json!({ "matchLabels": { "rack": "r7" } });
    }
    let spec: MaintenanceSpec = serde_json::from_value(fields).unwrap();
    ValidMaintenance::check(&spec)
}

#[test]
fn m9_m15_a_maintenance_may_begin_at_once_and_have_no_end() {
    let valid = check(json!({})).unwrap();
    assert_eq!((valid.start_time, valid.deadline), (None, None));
    assert_eq!((valid.duration, valid.clusters), (None, None));
    let valid = check(json!({ "durationSeconds": 3600, "clusters": ["eu"], "nodeSelector": {} }));
    assert_eq!(valid.unwrap().duration, Some(Duration::from_hours(1)));
}

#[rstest]
#[case::all_machines(json!({ "nodeSelector": {} }), &["spec.nodeSelector"])]
#[case::empty_lists(json!({ "nodeSelector": { "matchExpressions": [], "matchLabels": {} } }), &["spec.nodeSelector"])]
#[case::label(json!({ "nodeSelector": { "matchLabels": { "a b": "c d" } } }), &["spec.nodeSelector.matchLabels[a b]"; 2])]
#[case::operator(json!({ "nodeSelector": { "matchExpressions": [{ "key": "a", "operator": "Is" }] } }), &["spec.nodeSelector.matchExpressions[0].operator"])]
#[case::no_clusters(json!({ "clusters": [] }), &["spec.clusters"])]
#[case::names(json!({ "clusters": ["eu", "E U", "eu"] }), &["spec.clusters[1]", "spec.clusters[2]"])]
#[case::no_duration(json!({ "durationSeconds": 0 }), &["spec.durationSeconds"])]
#[case::negative_duration(json!({ "durationSeconds": -1 }), &["spec.durationSeconds"])]
#[case::endless_duration(json!({ "durationSeconds": i64::MAX }), &["spec.durationSeconds"])]
#[case::deadline(json!({ "startTime": "2027-01-15T08:00:00Z", "deadline": "2027-01-15T09:00:00+01:00" }), &["spec.deadline"])]
fn errors_name_their_fields(#[case] fields: Value, #[case] expected: &[&str]) {
    let errors = check(fields).unwrap_err();
    let fields: Vec<_> = errors.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(fields, expected);
}

#[test]
fn a_mark_is_read_as_it_was_written_and_by_earlier_versions() {
    let mark = MaintenanceMark {
        name: "rack-7".to_owned(),
        uid: "u".to_owned(),
        was_cordoned: true,
        ..MaintenanceMark::default()
    };
    let text = mark.to_annotation();
    assert_eq!(text, r#"{"name":"rack-7","uid":"u","wasCordoned":true}"#);
    let later = text.replace('{', r#"{"later":[1],"#);
    for text in [text, later] {
        assert_eq!(MaintenanceMark::parse(&text), Some(mark.clone()));
    }
}

#[rstest]
#[case::nothing("")]
#[case::no_json("rack-7")]
#[case::no_uid(r#"{"name":"rack-7"}"#)]
#[case::wrong_type(r#"{"uid":1}"#)]
#[case::no_time(r#"{"uid":"u","until":"soon"}"#)]
#[case::list("[]")]
fn what_is_no_mark_counts_as_none(#[case] annotation: &str) {
    assert_eq!(MaintenanceMark::parse(annotation), None);
}

#[test]
fn s6_a_mark_has_a_limit() {
    let mark = MaintenanceMark {
        uid: "u".to_owned(),
        reason: "\u{1}".repeat(1024),
        ..MaintenanceMark::default()
    };
    assert_eq!(
        MaintenanceMark::parse(&mark.to_annotation()),
        Some(mark.clone())
    );
    let reason = "a".repeat(20_000);
    let longer = MaintenanceMark { reason, ..mark };
    assert_eq!(MaintenanceMark::parse(&longer.to_annotation()), None);
}
