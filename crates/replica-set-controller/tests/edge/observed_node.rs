//! What a node object says (L18).

use std::time::Duration;

use jiff::Timestamp;
use replica_set_controller::{Eviction, NodeState, ObservedNode};
use rstest::rstest;
use serde_json::{Value, json};

const READY: bool = true;

#[rstest]
#[case::ready(json!({}), json!({}), &[("Ready", "True")], READY, None)]
#[case::not_ready(json!({}), json!({}), &[("Ready", "False")], !READY, None)]
#[case::unreachable(json!({}), json!({}), &[("Ready", "Unknown")], !READY, None)]
#[case::new(json!({}), json!({}), &[], !READY, None)]
#[case::cordoned(
    json!({}),
    json!({ "unschedulable": true, "taints": [{ "key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule" }] }),
    &[("Ready", "True")],
    READY,
    None
)]
#[case::out_of_service(
    json!({}),
    json!({ "taints": [{ "key": "node.kubernetes.io/out-of-service", "effect": "NoExecute" }] }),
    &[("Ready", "True")],
    READY,
    Some(Eviction::Involuntary)
)]
#[case::without_network(
    json!({}),
    json!({}),
    &[("Ready", "True"), ("NetworkUnavailable", "True")],
    READY,
    Some(Eviction::Involuntary)
)]
#[case::with_network(json!({}), json!({}), &[("Ready", "True"), ("NetworkUnavailable", "False")], READY, None)]
#[case::emptied(json!({ "fedrs.dev/evict": "true" }), json!({}), &[("Ready", "True")], READY, Some(Eviction::Voluntary))]
#[case::emptied_at_once(
    json!({ "fedrs.dev/evict": "Involuntary" }),
    json!({}),
    &[("Ready", "True")],
    READY,
    Some(Eviction::Involuntary)
)]
#[case::no_longer_emptied(json!({ "fedrs.dev/evict": "false" }), json!({}), &[("Ready", "True")], READY, None)]
fn l18_a_node_says_whether_its_pods_have_to_leave(
    #[case] labels: Value,
    #[case] spec: Value,
    #[case] conditions: &[(&str, &str)],
    #[case] is_ready: bool,
    #[case] eviction: Option<Eviction>,
) {
    let conditions = conditions.iter();
    let conditions = conditions.map(|(type_, status)| json!({ "type": type_, "status": status }));
    let node = json!({
        "metadata": { "name": "node-1", "resourceVersion": "7", "labels": labels },
        "spec": spec,
        "status": { "conditions": conditions.collect::<Value>() },
    });
    let node: ObservedNode = serde_json::from_value(node).unwrap();
    assert_eq!(node.name(), "node-1");
    let expected = NodeState {
        is_ready,
        not_ready_since: None,
        is_cordoned: node.state().is_cordoned,
        eviction,
        mark: labels.get("fedrs.dev/evict").and(eviction),
        deadline: None,
        absence: None,
    };
    assert_eq!(node.state(), expected);
}

#[rstest]
#[case::of_a_maintenance(
    r#"{"uid":"m","deadline":"2027-01-22T08:00:00Z"}"#,
    Some(1_800_604_800)
)]
#[case::without_one(r#"{"uid":"m"}"#, None)]
#[case::of_nobody(r#"{"deadline":"2027-01-22T08:00:00Z"}"#, None)]
#[case::nonsense("soon", None)]
fn m15_a_node_says_when_its_maintenance_takes_it(
    #[case] mark: &str,
    #[case] expected: Option<i64>,
) {
    let annotations = json!({ "fedrs.dev/maintenance": mark, "other": "x" });
    let node = json!({
        "metadata": { "name": "node-1", "resourceVersion": "7", "annotations": annotations },
    });
    let node: ObservedNode = serde_json::from_value(node).unwrap();
    let deadline = node.state().deadline.map(Timestamp::as_second);
    assert_eq!(deadline, expected);
}

#[rstest]
#[case::known(json!("2027-01-15T09:00:00Z"), json!(600), Some(600))]
#[case::nobody_knows_how_long(json!("2027-01-15T09:00:00Z"), json!(null), None)]
#[case::nobody_knows_until_when(json!(null), json!(600), None)]
#[case::nonsense(json!("2027-01-15T09:00:00Z"), json!(-1), None)]
fn m9_a_node_says_how_long_it_is_away(
    #[case] until: Value,
    #[case] seconds: Value,
    #[case] expected: Option<u64>,
) {
    let mark = json!({ "uid": "m", "until": until, "durationSeconds": seconds });
    let annotations = json!({ "fedrs.dev/maintenance": mark.to_string() });
    let node = json!({
        "metadata": { "name": "node-1", "resourceVersion": "7", "annotations": annotations },
    });
    let node: ObservedNode = serde_json::from_value(node).unwrap();
    let absence = node.state().absence;
    assert_eq!(absence.map(|absence| absence.duration.as_secs()), expected);
}

/// When a node that has not been ready since 100 s evicts its pods: Kubernetes' tolerationSeconds are 300.
#[rstest]
#[case::a_short_loss(300, Some(100), None)]
#[case::lost(300, Some(300), Some(Eviction::Involuntary))]
#[case::at_once(0, Some(0), Some(Eviction::Involuntary))]
#[case::never_ready(300, None, Some(Eviction::Involuntary))]
fn l18_a_node_that_is_not_ready_evicts_its_pods_after_a_while(
    #[case] timeout: u64,
    #[case] lost_for: Option<i64>,
    #[case] eviction: Option<Eviction>,
) {
    let now = Timestamp::from_second(1_800_000_000).unwrap();
    let since = lost_for.map(|seconds| now - jiff::SignedDuration::from_secs(seconds));
    let node = json!({
        "metadata": { "name": "node-1", "resourceVersion": "7" },
        "status": { "conditions": [{ "type": "Ready", "status": "Unknown", "lastTransitionTime": since }] },
    });
    let node: ObservedNode = serde_json::from_value(node).unwrap();
    let state = node.state().at(Duration::from_secs(timeout), now);
    assert_eq!((state.is_ready, state.eviction), (false, eviction));
}
