//! F2, F4: valid FederatedReplicaSets, and the errors of invalid ones.

use fedrs_api::{FederatedReplicaSet, Placement, ValidFrs};
use rstest::rstest;
use serde_json::{Value, json};

/// A valid set, changed at the JSON pointers given.
fn frs(changes: &[(&str, Value)]) -> FederatedReplicaSet {
    let mut object = json!({
        "apiVersion": "fedrs.dev/v1alpha1",
        "kind": "FederatedReplicaSet",
        "metadata": {"name": "web", "namespace": "default", "generation": 3, "uid": "u", "annotations": {}},
        "spec": {
            "replicas": 5,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web", "tier": "front"}},
                "spec": {"containers": [{"name": "web", "image": "web:1"}]},
            },
        },
    });
    for (pointer, value) in changes {
        let (parent, name) = pointer.rsplit_once('/').expect("a pointer has a slash");
        object.pointer_mut(parent).expect("the parent exists")[name] = value.clone();
    }
    serde_json::from_value(object).expect("the shape is right")
}

fn with_annotation(preferences: &str) -> FederatedReplicaSet {
    let mut frs = frs(&[]);
    let name = fedrs_api::annotations::PREFERENCES.to_owned();
    frs.metadata
        .annotations
        .get_or_insert_default()
        .insert(name, preferences.to_owned());
    frs
}

fn errors(frs: &FederatedReplicaSet) -> Vec<String> {
    ValidFrs::check(frs)
        .expect_err("is invalid")
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn f1_a_valid_set_is_taken_over() {
    let valid = ValidFrs::check(&frs(&[])).expect("is valid");
    assert_eq!(valid.key.to_string(), "default/web");
    assert_eq!(
        (valid.uid.as_str(), valid.generation, valid.replicas),
        ("u", 3, 5)
    );
    assert_eq!(valid.selector_text, "app=web");
    assert_eq!(valid.placement, Placement::even());
    assert_eq!(valid.preferences_hash, None);
}

#[rstest]
#[case("/metadata/name", json!("web.eu"), "metadata.name: must be a DNS label")]
#[case("/metadata/name", json!("a".repeat(64)), "metadata.name: must be a DNS label")]
#[case("/spec/federation", json!("Prod"), "spec.federation: must be a DNS label")]
#[case("/spec/replicas", json!(-1), "spec.replicas: must not be negative, but is -1")]
#[case("/spec/minReadySeconds", json!(-2), "spec.minReadySeconds: must not be negative, but is -2")]
#[case("/spec/selector", json!({}), "spec.selector: must not be empty")]
#[case("/spec/selector", json!({"matchLabels": {"app": "api"}}), "spec.selector: does not match spec.template.metadata.labels")]
#[case("/spec/selector", json!({"matchLabels": {"a b": "c"}}), "spec.selector.matchLabels[a b]: is not a valid label key")]
#[case(
    "/spec/selector",
    json!({"matchExpressions": [{"key": "app", "operator": "Is"}]}),
    "spec.selector.matchExpressions[0].operator: \"Is\" is none of"
)]
#[case(
    "/spec/selector",
    json!({"matchExpressions": [{"key": "app", "operator": "In"}]}),
    "spec.selector.matchExpressions[0].values: must not be empty"
)]
#[case("/spec/template/spec", json!([]), "spec.template.spec: must be an object")]
#[case("/spec/template/spec", json!({}), "spec.template.spec.containers: must be a list of at least one")]
#[case(
    "/spec/template/spec",
    json!({"containers": [{}], "restartPolicy": "Never"}),
    "spec.template.spec.restartPolicy: must be Always"
)]
#[case(
    "/spec/template/metadata/labels/fedrs.dev~1replica-set",
    json!("x"),
    "spec.template.metadata.labels[fedrs.dev~1replica-set]: is not a valid label key"
)]
#[case(
    "/spec/placement",
    json!({"clusters": {"eu": {"minReplicas": 3, "maxReplicas": 2}}}),
    "spec.placement.clusters[eu].maxReplicas: must not be below minReplicas (3), but is 2"
)]
#[case(
    "/spec/placement",
    json!({"clusters": {"eu": {"weight": -1}}}),
    "spec.placement.clusters[eu].weight: must not be negative, but is -1"
)]
#[case("/spec/placement", json!({"clusters": {"E U": {}}}), "spec.placement.clusters[E U]: must be '*' or the name")]
fn f4_what_is_wrong_is_named_with_its_field(
    #[case] pointer: &str,
    #[case] value: Value,
    #[case] message: &str,
) {
    let errors = errors(&frs(&[(pointer, value)]));
    assert!(
        errors.iter().any(|error| error.starts_with(message)),
        "{errors:?}"
    );
}

#[test]
fn f4_all_errors_are_reported() {
    let broken = frs(&[
        ("/spec/replicas", json!(-1)),
        ("/spec/selector", json!({})),
        ("/spec/template/spec", json!({})),
    ]);
    assert_eq!(errors(&broken).len(), 3);
}

#[rstest]
#[case(
    r#"{"rebalance": true, "clusters": {"eu": {"minReplicas": 1, "maxReplicas": 9, "weight": 2}}}"#
)]
#[case(
    r#"{"Rebalance": true, "Clusters": {"eu": {"MinReplicas": 1, "MaxReplicas": 9, "Weight": 2}}}"#
)]
fn f2_both_spellings_of_the_annotation_are_read(#[case] text: &str) {
    let valid = ValidFrs::check(&with_annotation(text)).expect("is valid");
    assert!(valid.placement.rebalance);
    let eu = valid.placement.for_cluster("eu").expect("is there");
    assert_eq!(
        (eu.min_replicas, eu.max_replicas, eu.weight),
        (1, Some(9), 2)
    );
    assert!(valid.preferences_hash.is_some());
}

#[rstest]
#[case(
    "{\"clusters\": {,}}",
    ": is not JSON: key must be a string at line 1 column 15"
)]
#[case("[]", ": must be an object, not a list")]
#[case(
    r#"{"cluster": {}}"#,
    ".cluster: is not a known field; the fields are rebalance and clusters"
)]
#[case(
    r#"{"rebalance": "yes"}"#,
    ".rebalance: must be true or false, not a string"
)]
#[case(
    r#"{"clusters": {"*": {"wait": 1}}}"#,
    ".clusters[*].wait: is not a known field; the fields are minReplicas, maxReplicas and weight"
)]
#[case(
    r#"{"clusters": {"*": {"weight": 1, "Weight": 1}}}"#,
    ".clusters[*].weight: duplicates weight"
)]
#[case(
    r#"{"clusters": {"*": {"Weight": -1}}}"#,
    ".clusters[*].Weight: must not be negative, but is -1"
)]
#[case(
    r#"{"clusters": {"*": {"weight": 1.5}}}"#,
    ".clusters[*].weight: must be an integer from 0 to"
)]
#[case(
    r#"{"clusters": {"*": {"weight": 9223372036854775808}}}"#,
    ".clusters[*].weight: must be an integer from 0 to"
)]
#[case(
    r#"{"clusters": {"eu": {"minReplicas": 3, "maxReplicas": 2}}}"#,
    ".clusters[eu].maxReplicas: must not be below minReplicas (3), but is 2"
)]
fn f4_a_broken_annotation_is_named_with_its_field(#[case] text: &str, #[case] message: &str) {
    let message =
        format!("metadata.annotations[federation.kubernetes.io/replica-set-preferences]{message}");
    let errors = errors(&with_annotation(text));
    assert!(
        errors.iter().any(|error| error.starts_with(&message)),
        "{errors:?}"
    );
}

#[test]
fn f2_preferences_in_both_places_are_an_error() {
    let mut frs = with_annotation("{}");
    frs.spec.placement = Some(Placement::even());
    assert_eq!(
        errors(&frs),
        [
            "spec.placement: must not be set together with metadata.annotations\
             [federation.kubernetes.io/replica-set-preferences]: remove one of them"
        ]
    );
}

#[rstest]
#[case(json!({"matchLabels": {"b": "2", "a": "1"}}), "a=1,b=2")]
#[case(json!({"matchExpressions": [{"key": "tier", "operator": "In", "values": ["front", "back"]}]}), "tier in (back,front)")]
#[case(json!({"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}], "matchLabels": {"app": "web"}}), "app=web,!x")]
#[case(json!({"matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["y"]}, {"key": "app", "operator": "Exists"}]}), "app,x notin (y)")]
fn f1_the_selector_is_written_as_kubectl_reads_it(#[case] selector: Value, #[case] text: &str) {
    let valid = ValidFrs::check(&frs(&[
        ("/spec/selector", selector),
        (
            "/spec/template/metadata/labels",
            json!({"app": "web", "tier": "front", "a": "1", "b": "2"}),
        ),
    ]));
    assert_eq!(valid.expect("is valid").selector_text, text);
}

#[test]
fn f29_empty_lists_of_a_selector_are_the_same_as_none() {
    let selector_of = |selector: Value| {
        let valid = ValidFrs::check(&frs(&[("/spec/selector", selector)]));
        json!(valid.expect("is valid").selector)
    };
    let labels = json!({"matchLabels": {"app": "web"}});
    let empty = json!({"matchLabels": {"app": "web"}, "matchExpressions": []});
    assert_eq!(selector_of(empty), labels);
    let exists = json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]});
    let empty = json!({"matchLabels": {}, "matchExpressions": [{"key": "app", "operator": "Exists", "values": []}]});
    assert_eq!(selector_of(empty), exists);
}

#[rstest]
#[case(json!({}))]
#[case(json!({"rebalance": true}))]
#[case(json!({"clusters": {}}))]
fn f2_a_placement_without_clusters_spreads_evenly(#[case] placement: Value) {
    let rebalance = placement["rebalance"] == true;
    let valid = ValidFrs::check(&frs(&[("/spec/placement", placement)])).expect("is valid");
    let expected = Placement {
        rebalance,
        ..Placement::even()
    };
    assert_eq!(valid.placement, expected);
}

#[test]
fn f4_a_misspelt_preference_is_named_with_its_field() {
    let frs = json!({ "spec": { "placement": { "clusters": { "eu": { "wieght": 1 } } } } });
    let errors: Vec<_> =
        fedrs_api::crd::schema_errors(fedrs_api::SetKind::FederatedReplicaSet, &frs)
            .iter()
            .map(ToString::to_string)
            .collect();
    let expected = "spec.placement.clusters[eu].wieght: is not a known field".to_owned();
    assert!(errors.contains(&expected), "{errors:?}");
}
