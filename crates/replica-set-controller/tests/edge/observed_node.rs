//! What a node object says (L18).

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
        is_cordoned: node.state().is_cordoned,
        eviction,
    };
    assert_eq!(node.state(), expected);
}
