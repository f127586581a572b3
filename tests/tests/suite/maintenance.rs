//! Maintenances of nodes in members: which nodes are marked, what the status shows, and what is left afterwards (M9, M15).

use std::collections::BTreeSet;

use control_plane::ProxyMode;
use fedrs_tests::{scenario, scenario::Scenario, test_environment::TestEnvironment};
use serde_json::{Value, json};

use crate::{
    local_migrations::requests,
    maintenance,
    member_set::{Kind, MEMBER, MemberSet, text},
    native_migrations::{guarded_deployment, loosen_budget, until_three},
};

const PATH: &str = "/apis/fedrs.dev/v1alpha1/maintenances";
/// The label of nodes that belong to a Maintenance.
const RACK: &str = "example.com/rack";
const MARK: &str = "fedrs.dev/maintenance";

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario!(maintenance::m9_m15_nodes_of_two_members_are_marked_and_restored),
        scenario!(
            maintenance::m15_the_status_shows_which_pods_wait,
            LocalReplicaSets
        ),
        scenario!(
            maintenance::m15_pods_of_a_native_deployment_leave_within_their_budget,
            LocalReplicaSets
        ),
        scenario!(
            maintenance::a_member_that_is_away_at_the_end_is_restored_when_it_is_back,
            NetworkFaults
        ),
        scenario!(maintenance::bad_input_is_rejected_or_a_condition),
    ]
}

/// The name of the scenario's Maintenance, and the value of its label.
fn name(env: &TestEnvironment) -> String {
    format!("rack-{}", env.namespace())
}

async fn create(env: &TestEnvironment, fields: Value) -> kube::Result<Value> {
    let mut spec = json!({ "nodeSelector": { "matchLabels": { RACK: name(env) } } });
    for (key, value) in fields.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    let object = json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "Maintenance",
        "metadata": { "name": name(env) }, "spec": spec,
    });
    env.on_host("POST", PATH, &object).await
}

async fn get(env: &TestEnvironment) -> Value {
    let path = format!("{PATH}/{}", name(env));
    let found = env.on_host("GET", &path, &Value::Null).await;
    found.unwrap_or(Value::Null)
}

async fn on_host(env: &TestEnvironment, method: &str, body: Value) {
    let path = format!("{PATH}/{}", name(env));
    env.on_host(method, &path, &body).await.unwrap();
}

/// A condition as `STATUS REASON: MESSAGE`; empty if it is absent.
async fn condition(env: &TestEnvironment, type_: &str) -> String {
    let object = get(env).await;
    let conditions = object["status"]["conditions"].as_array();
    let found = (conditions.into_iter().flatten()).find(|condition| condition["type"] == type_);
    found.map_or_else(String::new, |found| {
        let [status, reason, message] = ["status", "reason", "message"].map(|of| text(&found[of]));
        format!("{status} {reason}: {message}")
    })
}

async fn node(env: &TestEnvironment, member: &str, number: u32) -> Value {
    let path = format!("/api/v1/nodes/{member}-node-{number}");
    let node = env.on_member(member, "GET", &path, &Value::Null).await;
    node.unwrap()
}

async fn patch_node(env: &TestEnvironment, member: &str, number: u32, patch: Value) {
    let path = format!("/api/v1/nodes/{member}-node-{number}");
    let patched = env.on_member(member, "PATCH", &path, &patch).await;
    patched.unwrap();
}

/// Puts a node into the scenario's rack, or takes it out.
async fn put_in_rack(env: &TestEnvironment, member: &str, number: u32, is_in: bool) {
    let rack = if is_in { json!(name(env)) } else { Value::Null };
    let label = json!({ "metadata": { "labels": { RACK: rack } } });
    patch_node(env, member, number, label).await;
}

fn is_cordoned(node: &Value) -> bool {
    node["spec"]["unschedulable"] == true
}

fn is_marked(node: &Value) -> bool {
    is_cordoned(node)
        && node["metadata"]["labels"]["fedrs.dev/evict"] == "Maintenance"
        && node["metadata"]["annotations"][MARK].is_string()
}

/// Whether nothing of a Maintenance is left, apart from a cordon.
fn is_restored(node: &Value) -> bool {
    node["metadata"]["labels"]["fedrs.dev/evict"].is_null()
        && node["metadata"]["annotations"][MARK].is_null()
}

/// The reasons of the events about the object with this uid.
async fn event_reasons(env: &TestEnvironment, uid: &Value) -> Vec<String> {
    let path = "/api/v1/namespaces/default/events";
    let events = env.on_host("GET", path, &Value::Null).await.unwrap();
    let events = events["items"].as_array().into_iter().flatten();
    let own = events.filter(|event| event["involvedObject"]["uid"] == *uid);
    own.map(|event| text(&event["reason"]).to_owned()).collect()
}

async fn until_gone(env: &TestEnvironment) {
    on_host(env, "DELETE", json!({})).await;
    env.wait_until("the Maintenance is gone", 60, async |env| {
        get(env).await.is_null()
    })
    .await;
}

async fn until_phase(env: &TestEnvironment, phase: &str) {
    env.wait_until(&format!("its phase is {phase}"), 90, async |env| {
        get(env).await["status"]["phase"] == phase
    })
    .await;
}

async fn m9_m15_nodes_of_two_members_are_marked_and_restored(env: &mut TestEnvironment) {
    for member in ["a", "b"] {
        put_in_rack(env, member, 1, true).await;
    }
    let cordon = |value: Value| json!({ "spec": { "unschedulable": value } });
    patch_node(env, "b", 1, cordon(true.into())).await;
    let fields = json!({
        "startTime": "2020-01-15T08:00:00Z", "durationSeconds": 3600,
        "deadline": "2037-01-22T08:00:00Z", "reason": "power supply",
    });
    create(env, fields).await.unwrap();
    until_phase(env, "Ready").await;
    for member in ["a", "b"] {
        let node = node(env, member, 1).await;
        assert!(is_marked(&node), "{node}");
        let mark = text(&node["metadata"]["annotations"][MARK]);
        let mark: Value = serde_json::from_str(mark).unwrap();
        let expected = json!({
            "name": name(env), "uid": get(env).await["metadata"]["uid"],
            "deadline": "2037-01-22T08:00:00Z", "until": "2020-01-15T09:00:00Z", "durationSeconds": 3600,
            "reason": "power supply", "wasCordoned": member == "b",
        });
        assert_eq!(mark, expected);
    }
    for member in env.member_names() {
        let other = node(env, &member, 2).await;
        assert!(is_restored(&other) && !is_cordoned(&other), "{other}");
    }
    let status = get(env).await["status"].clone();
    assert_eq!(
        status["nodes"],
        json!({ "matched": 2, "cordoned": 2, "emptied": 2 })
    );
    let clusters = status["clusters"].as_array().unwrap();
    let names: Vec<_> = clusters
        .iter()
        .map(|cluster| text(&cluster["name"]))
        .collect();
    assert_eq!(names, ["a", "b"]);
    // Another leader changes nothing.
    let written = async |env: &TestEnvironment, member: &str| {
        let node = node(env, member, 1).await;
        let fields = node["metadata"]["managedFields"].as_array().cloned();
        let mut fields = fields.unwrap_or_default();
        fields.retain(|field| field["manager"] == "fedrs");
        assert!(!fields.is_empty(), "{node}");
        fields
    };
    let before = [written(env, "a").await, written(env, "b").await];
    env.kill_controller().await;
    env.start_controller().await;
    // What it does first, it does before this one.
    put_in_rack(env, "c", 1, true).await;
    env.wait_until("another node is marked", 60, async |env| {
        is_marked(&node(env, "c", 1).await)
    })
    .await;
    assert_eq!([written(env, "a").await, written(env, "b").await], before);
    // A node that leaves the rack keeps nothing.
    put_in_rack(env, "c", 1, false).await;
    env.wait_until("it is restored", 60, async |env| {
        let node = node(env, "c", 1).await;
        is_restored(&node) && !is_cordoned(&node)
    })
    .await;
    on_host(env, "PATCH", json!({ "spec": { "ended": true } })).await;
    env.wait_until("the nodes are restored", 60, async |env| {
        is_restored(&node(env, "a", 1).await) && is_restored(&node(env, "b", 1).await)
    })
    .await;
    until_phase(env, "Ended").await;
    assert!(!is_cordoned(&node(env, "a", 1).await));
    assert!(is_cordoned(&node(env, "b", 1).await), "as before");
    let uid = get(env).await["metadata"]["uid"].clone();
    env.wait_until("there are events", 60, async |env| {
        let reasons = event_reasons(env, &uid).await;
        ["Started", "Emptied", "Ended"]
            .iter()
            .all(|reason| reasons.iter().any(|found| found == reason))
    })
    .await;
    env.wait_until("its finalizer is removed", 60, async |env| {
        get(env).await["metadata"]["finalizers"].is_null()
    })
    .await;
    until_gone(env).await;
    patch_node(env, "b", 1, cordon(Value::Null)).await;
    for member in ["a", "b"] {
        put_in_rack(env, member, 1, false).await;
    }
}

/// One pod after the other leaves a node, and the status says who waits.
async fn m15_the_status_shows_which_pods_wait(env: &mut TestEnvironment) {
    env.start_local_controller(MEMBER).await;
    let set = MemberSet {
        env,
        kind: Kind::Local,
    };
    let of = |plural: &str| set.path().replace("localreplicasets/local", plural);
    // No pod may leave before its deadline.
    let between = json!({ "hardware": 86400, "compaction": 0 });
    let spec = json!({ "selector": {}, "maxUnavailable": 1, "minSecondsBetween": between });
    let policy = json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "MigrationPolicy",
        "metadata": { "name": "all" }, "spec": spec,
    });
    set.request("POST", &of("migrationpolicies"), &policy).await;
    set.run(6).await;
    let pods = set.owned().await;
    let node_of = |pod: &Value| text(&pod["spec"]["nodeName"]).to_owned();
    let leaving = node_of(&pods[0]);
    let number: u32 = leaving.rsplit('-').next().unwrap().parse().unwrap();
    let count = pods.iter().filter(|pod| node_of(pod) == leaving).count();
    assert!(count > 1, "{count} pods on {leaving}");
    put_in_rack(env, MEMBER, number, true).await;
    create(env, json!({ "reason": "disks" })).await.unwrap();
    env.wait_until("all but the first wait", 90, async |env| {
        get(env).await["status"]["blockingTotal"] == count - 1
    })
    .await;
    let status = get(env).await["status"].clone();
    assert_eq!(status["phase"], "Draining");
    assert_eq!(status["nodes"]["emptied"], 0);
    assert_eq!(status["clusters"][0]["podsLeft"], count - 1);
    let first = &status["blocking"][0];
    assert_eq!(first["phase"], "WaitingForBudget", "{first}");
    assert_eq!(
        (text(&first["cluster"]), text(&first["node"])),
        (MEMBER, &*leaving)
    );
    assert!(
        first["deadline"].is_string() && !text(&first["message"]).is_empty(),
        "{first}"
    );
    // The policy allows the others to go.
    let between = json!({ "spec": { "minSecondsBetween": { "hardware": 0 } } });
    let path = format!("{}/all", of("migrationpolicies"));
    set.request("PATCH", &path, &between).await;
    until_phase(env, "Ready").await;
    assert_eq!(get(env).await["status"]["blockingTotal"], 0);
    let pods = set.owned().await;
    assert!(pods.iter().all(|pod| node_of(pod) != leaving));
    until_gone(env).await;
    assert!(is_restored(&node(env, MEMBER, number).await));
    put_in_rack(env, MEMBER, number, false).await;
}

/// A node that has been emptied has none of them, and each that has left was asked by one MigrationRequest.
async fn m15_pods_of_a_native_deployment_leave_within_their_budget(env: &mut TestEnvironment) {
    env.start_local_controller(MEMBER).await;
    let pods = guarded_deployment(env).await;
    let node_of = |pod: &Value| text(&pod["spec"]["nodeName"]).to_owned();
    let leaving = node_of(&pods[0]);
    let number: u32 = leaving.rsplit('-').next().unwrap().parse().unwrap();
    let of_node = pods.iter().filter(|pod| node_of(pod) == leaving);
    let uids: BTreeSet<_> = of_node.map(|pod| text(&pod["metadata"]["uid"])).collect();
    let count = uids.len();
    put_in_rack(env, MEMBER, number, true).await;
    create(env, json!({ "deadline": "2037-01-22T08:00:00Z" }))
        .await
        .unwrap();
    env.wait_until("the budget holds them up", 120, async |env| {
        let status = get(env).await["status"].clone();
        let first = &status["blocking"][0];
        let is_held = text(&first["message"]).contains("disruption budget");
        is_held && status["blockingTotal"] == count
    })
    .await;
    let status = get(env).await["status"].clone();
    assert_eq!(status["phase"], "Draining");
    assert_eq!(status["clusters"][0]["podsLeft"], count);
    let first = &status["blocking"][0];
    assert_eq!(first["node"], *leaving);
    // Of the Maintenance, or by the configuration.
    assert!(first["deadline"].is_string(), "{first}");
    assert_eq!(condition(env, "PodsNotAsked").await, "");
    loosen_budget(env).await;
    until_phase(env, "Ready").await;
    let after = until_three(env).await;
    assert!(after.iter().all(|pod| node_of(pod) != leaving), "{after:?}");
    let requests = requests(env).await;
    let asked = requests.iter().map(|of| text(&of["spec"]["podUid"]));
    let asked: Vec<_> = asked.filter(|uid| uids.contains(uid)).collect();
    assert_eq!(asked.len(), count, "{requests:?}");
    until_gone(env).await;
    assert!(is_restored(&node(env, MEMBER, number).await));
    put_in_rack(env, MEMBER, number, false).await;
}

async fn a_member_that_is_away_at_the_end_is_restored_when_it_is_back(env: &mut TestEnvironment) {
    for member in ["a", "b"] {
        put_in_rack(env, member, 2, true).await;
    }
    create(env, json!({})).await.unwrap();
    until_phase(env, "Ready").await;
    env.set_network("b", ProxyMode::Blackhole);
    on_host(env, "DELETE", json!({})).await;
    env.wait_until("the other member is restored", 60, async |env| {
        is_restored(&node(env, "a", 2).await)
    })
    .await;
    env.wait_until("the status says who is waited for", 60, async |env| {
        let condition = condition(env, "MembersReachable").await;
        condition
            .starts_with("False MembersUnreachable: waiting for members that do not answer: b:")
    })
    .await;
    assert!(is_marked(&node(env, "b", 2).await));
    env.set_network("b", ProxyMode::Forward(std::time::Duration::ZERO));
    env.wait_until("the Maintenance is gone", 90, async |env| {
        get(env).await.is_null()
    })
    .await;
    let back = node(env, "b", 2).await;
    assert!(is_restored(&back) && !is_cordoned(&back), "{back}");
    for member in ["a", "b"] {
        put_in_rack(env, member, 2, false).await;
    }
}

async fn bad_input_is_rejected_or_a_condition(env: &mut TestEnvironment) {
    for (fields, part) in [
        (json!({ "nodeSelector": {} }), "spec.nodeSelector"),
        (json!({ "nodeSelector": null }), "spec.nodeSelector"),
        (json!({ "durationSeconds": 0 }), "spec.durationSeconds"),
        (json!({ "clusters": [] }), "spec.clusters"),
        (
            json!({ "startTime": "2027-01-15T08:00:00Z", "deadline": "2027-01-15T08:00:00Z" }),
            "spec.deadline",
        ),
    ] {
        let error = create(env, fields).await.unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    create(env, json!({ "clusters": ["a", "aa"] }))
        .await
        .unwrap();
    for (patch, type_, expected) in [
        (
            json!({}),
            "Accepted",
            "False UnknownCluster: spec.clusters[1]: there is no member aa",
        ),
        (
            json!({ "spec": { "clusters": ["a"] } }),
            "NodesFound",
            "False NoNodes: spec.nodeSelector matches no node of the clusters",
        ),
        (
            json!({ "spec": { "nodeSelector": { "matchLabels": { "a b": "c" } } } }),
            "Accepted",
            "False InvalidSpec: spec.nodeSelector.matchLabels[a b]: is not a valid label key",
        ),
    ] {
        on_host(env, "PATCH", patch).await;
        env.wait_until(expected, 60, async |env| {
            condition(env, type_).await == expected
        })
        .await;
    }
    on_host(env, "PATCH", json!({ "spec": { "ended": true } })).await;
    let path = format!("{PATH}/{}", name(env));
    let resume = json!({ "spec": { "ended": false } });
    let resumed = env.on_host("PATCH", &path, &resume).await.unwrap_err();
    assert!(resumed.to_string().contains("stays ended"), "{resumed}");
    until_gone(env).await;
}
