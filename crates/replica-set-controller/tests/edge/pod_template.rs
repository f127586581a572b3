//! What the controller adds to the pods of a LocalReplicaSet, and takes away (L1, L3, L12, L18).

use std::collections::BTreeMap;

use fedrs_api::{ResourceUpdates, ValidLocalReplicaSet};
use replica_set_controller::{Change, CompleteTemplate};
use rstest::rstest;
use serde_json::{Value, json};

use crate::fixtures::set_with;

/// The first pod of a set.
fn pod_of(
    template: &CompleteTemplate,
    set: &ValidLocalReplicaSet,
    name: (&str, Option<&str>),
) -> Value {
    template.pod(set, name, &mut template.slots_of([].into_iter()))
}

fn pod(fields: &Value, pods: &Value) -> Value {
    let set = set_with(fields, pods);
    pod_of(&CompleteTemplate::of(&set), &set, ("web-a", None))
}

fn apart(pod: &Value) -> &Value {
    &pod["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
}

#[test]
fn c7_l4_a_pod_belongs_to_its_set_and_has_the_labels_and_the_hash_of_its_template() {
    let pod = pod(&json!({ "accountId": "tmp" }), &json!({}));
    let owner = &pod["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["uid"], &owner["controller"]),
        (&json!("set"), &json!(true))
    );
    let labels = &pod["metadata"]["labels"];
    assert_eq!(labels["app"], "web");
    assert_eq!(labels["fedrs.dev/account"], "tmp", "L1");
    let hash = CompleteTemplate::of(&set_with(&json!({ "accountId": "tmp" }), &json!({}))).hash;
    assert_eq!(labels["controller-revision-hash"], format!("{hash:08x}"));
    let scaled = set_with(&json!({ "accountId": "tmp", "replicas": 9 }), &json!({}));
    assert_eq!(CompleteTemplate::of(&scaled).hash, hash, "L2");
}

#[rstest]
#[case::l3_what_holds_a_pod_back(json!({ "schedulingGates": [{ "name": "x" }] }), "schedulingGates", Value::Null)]
#[case::l3_what_pins_it(json!({ "nodeName": "n" }), "nodeName", Value::Null)]
#[case::l12_the_gate(json!({}), "readinessGates", json!([{ "conditionType": "fedrs.dev/InPlaceUpdate" }]))]
#[case::l12_and_those_of_the_user(
    json!({ "readinessGates": [{ "conditionType": "x" }] }),
    "readinessGates",
    json!([{ "conditionType": "x" }, { "conditionType": "fedrs.dev/InPlaceUpdate" }])
)]
#[case::l1_no_segment(json!({ "nodeSelector": { "disk": "ssd" } }), "nodeSelector", json!({ "disk": "ssd" }))]
fn pods_have_what_the_controller_needs(
    #[case] spec: Value,
    #[case] field: &str,
    #[case] expected: Value,
) {
    assert_eq!(pod(&json!({}), &spec)["spec"][field], expected);
}

/// The taint manager deletes the pods that do not tolerate a node that is not ready, past every budget.
#[rstest]
#[case(json!([]), &[])]
#[case::of_other_taints(json!([{ "key": "gpu", "operator": "Exists" }]), &["gpu"])]
#[case::limited(json!([{ "key": "node.kubernetes.io/not-ready", "effect": "NoExecute", "tolerationSeconds": 10 }]), &[])]
#[case::all_limited(json!([{ "operator": "Exists", "tolerationSeconds": 10, "effect": "NoExecute" }]), &[])]
fn l18_pods_tolerate_nodes_that_are_not_ready_without_limit(
    #[case] tolerations: Value,
    #[case] others: &[&str],
) {
    let pod = pod(&json!({}), &json!({ "tolerations": tolerations }));
    let keys = pod["spec"]["tolerations"].as_array().unwrap().iter();
    let found: Vec<_> = keys
        .clone()
        .map(|one| one["key"].as_str().unwrap())
        .collect();
    let ours = [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ];
    assert_eq!(found, [others, &ours].concat());
    assert!(keys.clone().all(|one| one["tolerationSeconds"].is_null()));
}

#[test]
fn l1_pods_run_in_their_segment() {
    let pod = pod(
        &json!({ "nodeSegmentId": "gpu" }),
        &json!({ "nodeSelector": { "disk": "ssd" } }),
    );
    let expected = json!({ "disk": "ssd", "fedrs.dev/node-segment": "gpu" });
    assert_eq!(pod["spec"]["nodeSelector"], expected);
}

fn constraint(max_pods: u32) -> Value {
    json!({ "constraints": { "antiaffinity": [{ "key": "rack", "maxPods": max_pods }] } })
}

#[test]
fn l1_one_pod_in_each_rack() {
    let pod = pod(&constraint(1), &json!({}));
    let term =
        json!({ "labelSelector": { "matchLabels": { "app": "web" } }, "topologyKey": "rack" });
    assert_eq!(*apart(&pod), json!([term]));
}

/// Pods of one slot are kept apart, so that at most as many as there are slots share a rack. Those of one plan, too, have each slot
/// as often.
#[test]
fn l1_two_pods_in_each_rack() {
    let set = set_with(&constraint(2), &json!({}));
    let template = CompleteTemplate::of(&set);
    let label = &template.slots[0].label;
    let with_slot = |slot: &str| BTreeMap::from([(label.clone(), slot.to_owned())]);
    for (existing, expected) in [
        (vec![], ["0", "1", "0", "1"]),
        (vec!["0", "0", "1"], ["1", "0", "1", "0"]),
        // Of an earlier constraint, or nonsense.
        (vec!["7", "x"], ["0", "1", "0", "1"]),
    ] {
        let existing: Vec<_> = existing.into_iter().map(with_slot).collect();
        let mut slots_in_use = template.slots_of(existing.iter());
        for slot in expected {
            let pod = template.pod(&set, ("web-a", None), &mut slots_in_use);
            assert_eq!(pod["metadata"]["labels"][label], slot);
            let term = &apart(&pod)[0];
            assert_eq!(term["labelSelector"]["matchLabels"][label], slot);
        }
    }
}

/// A pod that no rack has room for is crowded if another slot has two pods less: it takes that one when it is created again.
#[rstest]
#[case::even(3, &["0", "1", "2", "0"], &[])]
#[case::one_less(3, &["0", "0", "1", "1", "2"], &[])]
#[case::two_less(3, &["0", "0", "0", "1", "2"], &["0"])]
#[case::unused(3, &["0", "0", "1", "1"], &["0", "1"])]
#[case::of_another_constraint(3, &["0", "0", "7", "x"], &["0"])]
#[case::without_slots(1, &["0", "0", "0"], &[])]
fn l1_slots_that_too_many_have_are_crowded(
    #[case] max_pods: u32,
    #[case] existing: &[&str],
    #[case] crowded: &[&str],
) {
    let template = CompleteTemplate::of(&set_with(&constraint(max_pods), &json!({})));
    let label = template.slots.first().map(|slots| slots.label.clone());
    let with_slot = |slot: &&str| {
        let slot = (label.clone().unwrap_or_default(), (*slot).to_owned());
        BTreeMap::from([slot])
    };
    let existing: Vec<_> = existing.iter().map(with_slot).collect();
    let slots_in_use = template.slots_of(existing.iter());
    let found = ["0", "1", "2", "7"].into_iter();
    let found = found.filter(|slot| template.is_crowded(&with_slot(slot), &slots_in_use));
    assert_eq!(found.collect::<Vec<_>>(), crowded);
}

/// As many slots as a user likes cost nothing.
#[test]
fn l1_billions_of_pods_in_each_rack() {
    let set = set_with(&constraint(2_147_483_647), &json!({}));
    let template = CompleteTemplate::of(&set);
    let pod = pod_of(&template, &set, ("web-a", None));
    let label = &template.slots[0].label;
    assert_eq!(pod["metadata"]["labels"][label], "0");
    let labels = BTreeMap::from([(label.clone(), "0".to_owned())]);
    let slots_in_use = template.slots_of([&labels, &labels].into_iter());
    assert!(template.is_crowded(&labels, &slots_in_use));
}

#[rstest]
#[case(1, 2)]
#[case(3, 2)]
fn l1_another_constraint_recreates_the_pods(#[case] from: u32, #[case] to: u32) {
    let template = |max_pods| CompleteTemplate::of(&set_with(&constraint(max_pods), &json!({})));
    let (from, to) = (template(from), template(to));
    assert_ne!(from.hash, to.hash);
    let change = Change::between(&from.template, &to.template, ResourceUpdates::Recreate);
    assert_eq!(change, Change::Recreate(vec!["spec.affinity".to_owned()]));
}

#[test]
fn l12_a_pod_that_is_recreated_prefers_its_node_and_keeps_the_affinity_of_the_user() {
    let affinity = json!({ "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [
        { "weight": 1, "preference": { "matchExpressions": [] } },
    ] } });
    let set = set_with(&json!({}), &json!({ "affinity": affinity }));
    let template = CompleteTemplate::of(&set);
    let pod = pod_of(&template, &set, ("web-a", Some("node-1")));
    let preferred =
        &pod["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"];
    assert_eq!(preferred.as_array().unwrap().len(), 2);
    let fields = &preferred[1]["preference"]["matchFields"][0];
    assert_eq!(fields["values"], json!(["node-1"]));
    let unchanged = &template.template.spec["affinity"];
    assert_eq!(*unchanged, affinity, "the template is not changed");
}
