//! Which pods are removed first (C1, L21).

use std::collections::BTreeSet;

use fedrs_tests::{scenario, scenario::Scenario, test_environment::TestEnvironment};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::compare;
use crate::member_set::{MEMBER, MemberSet, is_ready, name_of};

pub(super) fn scenarios() -> Vec<Scenario> {
    use super::removal;
    vec![
        scenario!(
            removal::c1_l21_pods_whose_loss_hurts_least_are_removed_first,
            LocalReplicaSets
        ),
        scenario!(
            removal::c1_c8_nodes_with_several_pods_are_not_thinned_out,
            LocalReplicaSets
        ),
    ]
}

const COST: &str = "controller.kubernetes.io/pod-deletion-cost";

fn on_node(number: u32) -> Value {
    json!({ "spec": { "nodeName": format!("{MEMBER}-node-{number}") } })
}

fn with_cost(cost: &str) -> Value {
    json!({ "metadata": { "annotations": { COST: cost } } })
}

/// It stays pending: on real clusters by its image, on embedded ones by its annotation.
fn pending() -> Value {
    json!({
        "metadata": { "annotations": { "sim-cluster.dev/fail": "image-pull" } },
        "spec": { "containers": [{ "name": "main", "image": "registry.invalid/main:1" }] },
    })
}

fn not_ready() -> Value {
    json!({ "spec": { "readinessGates": [{ "conditionType": "example.com/never" }] } })
}

fn unscheduled() -> Value {
    json!({ "spec": { "nodeSelector": { "example.com/none": "true" } } })
}

/// Ready since then, with so many restarts. Restarts are compared between pods that became ready in
/// the same second only: of others the ReplicaSet controller takes the one with the lesser uid.
async fn make_old(set: &MemberSet<'_>, name: &str, since: Timestamp, restarts: u32) {
    let pod = set.pod(name).await;
    let mut status = pod["status"].clone();
    for condition in status["conditions"].as_array_mut().unwrap() {
        condition["lastTransitionTime"] = format!("{since:.0}").into();
    }
    status["containerStatuses"][0]["restartCount"] = restarts.into();
    set.patch_pod_status(name, &status).await;
}

/// Waits until all pods but those that never become ready are.
async fn until_ready(set: &MemberSet<'_>, count: usize) {
    set.until("the pods are ready", async || {
        let pods = set.pods().await;
        pods.iter().filter(|pod| is_ready(pod)).count() == count
    })
    .await;
}

/// Scales down by one pod at a time, and returns the names in the order of their removal.
async fn removed(set: &MemberSet<'_>, count: usize) -> Vec<String> {
    let mut removed = Vec::new();
    let mut before: BTreeSet<_> = set.owned().await.iter().map(name_of).collect();
    for left in (0..count).rev() {
        set.scale(left).await;
        set.until_owned(left).await;
        let after: BTreeSet<_> = set.owned().await.iter().map(name_of).collect();
        removed.extend(before.difference(&after).cloned());
        before = after;
    }
    removed
}

async fn c1_l21_pods_whose_loss_hurts_least_are_removed_first(env: &mut TestEnvironment) {
    let expected = [
        "unscheduled",
        "pending",
        "not-ready",
        "cheap",
        "young",
        "restarted",
        "old",
        "expensive",
    ];
    compare(env, &expected, &[], async |set: &MemberSet<'_>| {
        // In another order than that of their removal, and of their names.
        for (name, fields) in [
            ("expensive", with_cost("10")),
            ("old", on_node(1)),
            ("restarted", on_node(2)),
            ("young", on_node(3)),
            ("cheap", with_cost("-10")),
            ("not-ready", not_ready()),
            ("pending", pending()),
            ("unscheduled", unscheduled()),
        ] {
            set.create_pod(name, fields).await;
        }
        until_ready(set, 5).await;
        let an_hour_ago = Timestamp::now() - SignedDuration::from_hours(1);
        make_old(set, "old", an_hour_ago, 0).await;
        make_old(set, "restarted", an_hour_ago, 5).await;
        set.create(8, json!({})).await;
        set.until_owned(8).await;
        removed(set, 8).await
    })
    .await;
}

/// A set has no spreading of its own: how many pods a node has does not matter, unless a Deployment owns the ReplicaSet.
async fn c1_c8_nodes_with_several_pods_are_not_thinned_out(env: &mut TestEnvironment) {
    let expected = ["alone", "together-1", "together-2"];
    compare(env, &expected, &[], async |set: &MemberSet<'_>| {
        for (name, node) in [("together-1", 1), ("together-2", 1), ("alone", 2)] {
            set.create_pod(name, on_node(node)).await;
        }
        until_ready(set, 3).await;
        let an_hour_ago = Timestamp::now() - SignedDuration::from_hours(1);
        make_old(set, "together-1", an_hour_ago, 1).await;
        make_old(set, "together-2", an_hour_ago, 0).await;
        set.create(3, json!({})).await;
        set.until_owned(3).await;
        removed(set, 3).await
    })
    .await;
}
