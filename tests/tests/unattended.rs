//! Members whose controllers do not act, and deletions that hang: the replicas are rescheduled meanwhile, the status says why,
//! and they return without intervention.

#![expect(clippy::unwrap_used, reason = "a test that can't go on ends")]

use std::time::Duration;

use fedrs_tests::{MEMBERS_PATH, ReadyWatcher, SimFederation, SimFederationSpec, even, frs};
use serde_json::{Value, json};
use sim_cluster::kinds::{NAMESPACES, PODS, REPLICA_SETS};

const WEB: &str = "/apis/apps/v1/namespaces/default/replicasets/web";
const TEAM: &str = "/api/v1/namespaces/team";
const TEAM_SETS: &str = "/apis/fedrs.dev/v1alpha1/namespaces/team/federatedreplicasets";

async fn seconds(count: u64) {
    tokio::time::sleep(Duration::from_secs(count)).await;
}

/// The message about `member` in the status of `web` in `namespace`.
async fn message(federation: &SimFederation, namespace: &str, member: &str) -> String {
    let path = format!("/apis/fedrs.dev/v1alpha1/namespaces/{namespace}/federatedreplicasets/web");
    let frs = federation.on_host("GET", &path, &Value::Null).await;
    let frs = frs.unwrap();
    let mut clusters = frs["status"]["clusters"].as_array().unwrap().iter();
    let cluster = clusters.find(|cluster| cluster["name"] == member).unwrap();
    format!("{}: {}", cluster["reason"], cluster["message"])
}

/// A patch that sets the finalizers of an object.
fn finalizers(finalizers: &[&str]) -> Value {
    json!({ "metadata": { "finalizers": finalizers } })
}

async fn balanced(federation: &SimFederation) {
    federation
        .wait_until("balanced again", 3600, async |federation| {
            federation.sorted_layout("web") == [4, 4, 4] && federation.available("web") == 12
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn f32_without_a_controller_manager_the_replicas_go_elsewhere_and_return() {
    let federation = SimFederation::running(6).await;
    federation.member("c").stop_controller_manager();
    federation
        .patch("web", &json!({ "spec": { "replicas": 12 } }))
        .await;
    seconds(50).await;
    assert_eq!(federation.available("web"), 10, "two are missing in c");
    // A short watch shows that no event is missing.
    seconds(20).await;
    assert_eq!(federation.available("web"), 12);
    let text = message(&federation, "default", "c").await;
    assert!(
        text.starts_with("\"ControllersNotActing\"") && text.contains("have not acted since"),
        "{text}"
    );
    let (watcher, writes) = (ReadyWatcher::start(&federation, "web"), federation.writes());
    seconds(1800).await;
    assert!(federation.writes() <= writes + 2, "nothing swings");
    federation.member("c").start_controller_manager();
    balanced(&federation).await;
    watcher.assert_never_below(12);
}

#[tokio::test(start_paused = true)]
async fn f32_leaders_of_50_s_replace_what_no_controller_creates() {
    let mut federation = SimFederation::running(6).await;
    federation.member("c").stop_controller_manager();
    federation
        .patch("web", &json!({ "spec": { "replicas": 12 } }))
        .await;
    for _ in 0..3 {
        seconds(50).await;
        federation.stop_controller().await;
        federation.start_controller().await;
    }
    seconds(30).await;
    assert_eq!(federation.available("web"), 12);
}

#[tokio::test(start_paused = true)]
async fn f33_leaders_of_50_s_replace_the_replicas_of_a_dead_node() {
    let mut federation = SimFederation::running(12).await;
    let dead = "c-node-1";
    federation.member("c").fail_node(dead);
    // After 40 s the member knows that the node is dead, after 340 s it replaces the pods itself.
    for _ in 0..4 {
        seconds(50).await;
        federation.stop_controller().await;
        federation.start_controller().await;
    }
    seconds(30).await;
    let sets = federation.sets("web");
    let elsewhere = sets["a"].available + sets["b"].available;
    let pods = federation.member("c").api().list(&PODS, Some("default"));
    let runs = |pod: &&sim_cluster::Object| pod["spec"]["nodeName"] != dead;
    let alive = pods.iter().filter(runs).count() as u64;
    assert!(elsewhere + alive >= 12, "{elsewhere} and {alive} run");
    assert!(alive < 4, "the node had none");
}

#[tokio::test(start_paused = true)]
async fn f28_a_set_that_hangs_in_deletion_is_replaced_elsewhere_and_created_anew_when_it_is_gone() {
    let federation = SimFederation::running(12).await;
    let hold = finalizers(&["example.com/hold"]);
    federation
        .on_member("c", "PATCH", WEB, &hold)
        .await
        .unwrap();
    let foreground = json!({
        "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Foreground",
    });
    federation
        .on_member("c", "DELETE", WEB, &foreground)
        .await
        .unwrap();
    seconds(50).await;
    let reconciling = federation.condition_message("web", "Reconciling").await;
    let reconciling = reconciling.unwrap();
    assert!(
        reconciling.contains("for the deletion of the ReplicaSet, which waits for finalizer"),
        "{reconciling}"
    );
    seconds(30).await;
    let elsewhere = |federation: &SimFederation| {
        let sets = federation.sets("web");
        sets["a"].available + sets["b"].available
    };
    assert_eq!(elsewhere(&federation), 12);
    let text = message(&federation, "default", "c").await;
    assert!(
        text.starts_with("\"ReplicaSetTerminating\"") && text.contains("example.com/hold"),
        "{text}"
    );
    let writes = federation.writes();
    seconds(1800).await;
    assert!(federation.writes() <= writes + 1);
    let watcher = ReadyWatcher::start(&federation, "web");
    let none = finalizers(&[]);
    federation
        .on_member("c", "PATCH", WEB, &none)
        .await
        .unwrap();
    balanced(&federation).await;
    watcher.assert_never_below(12);
}

/// A FederatedReplicaSet in the namespace `team`, of which six replicas run.
async fn team(policy: &str) -> SimFederation {
    let federation = SimFederation::start(SimFederationSpec::default()).await;
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "team" } });
    let namespaces = "/api/v1/namespaces";
    federation
        .on_host("POST", namespaces, &namespace)
        .await
        .unwrap();
    let mut set = frs("web", 6, &even(true));
    set["metadata"]["namespace"] = "team".into();
    set["spec"]["deletionPolicy"] = policy.into();
    federation.on_host("POST", TEAM_SETS, &set).await.unwrap();
    federation
        .wait_until("all run", 30, async |federation| {
            team_layout(federation) == [2, 2, 2]
        })
        .await;
    federation
}

/// Available replicas of `team/web` in a, b and c.
fn team_layout(federation: &SimFederation) -> Vec<u64> {
    let available = |name: &String| {
        let set = federation
            .member(name)
            .api()
            .get(&REPLICA_SETS, "team", "web");
        set.map_or(0, |set| {
            set["status"]["availableReplicas"].as_u64().unwrap_or(0)
        })
    };
    federation.member_names().iter().map(available).collect()
}

/// Deletes the namespace `team` of c, which waits for the finalizer of an object in the collection `plural`.
async fn delete_namespace(federation: &SimFederation, plural: &str, kind: &str, spec: Value) {
    let object = json!({
        "apiVersion": "v1", "kind": kind, "spec": spec,
        "metadata": { "name": "hold", "namespace": "team", "finalizers": ["example.com/hold"] },
    });
    let path = format!("{TEAM}/{plural}");
    let created = federation.on_member("c", "POST", &path, &object).await;
    created.unwrap();
    let deleted = federation.on_member("c", "DELETE", TEAM, &Value::Null);
    deleted.await.unwrap();
}

/// The namespace of c is being deleted: the others run all replicas, c says `expected`, and has its share again afterwards.
async fn replaced_until_gone(federation: &SimFederation, plural: &str, expected: [&str; 2]) {
    federation
        .wait_until("the others run all replicas", 180, async |federation| {
            team_layout(federation) == [3, 3, 0]
        })
        .await;
    let text = message(federation, "team", "c").await;
    assert!(
        text.starts_with(expected[0]) && text.contains(expected[1]),
        "{text}"
    );
    let writes = federation.writes();
    seconds(1800).await;
    assert!(federation.writes() < writes + 60, "it backs off");
    let (path, none) = (format!("{TEAM}/{plural}/hold"), finalizers(&[]));
    let released = federation.on_member("c", "PATCH", &path, &none).await;
    released.unwrap();
    federation
        .wait_until("c runs its share again", 3600, async |federation| {
            team_layout(federation) == [2, 2, 2]
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn f28_a_namespace_of_a_member_that_is_being_deleted_counts_as_a_rejection() {
    let federation = team("Orphan").await;
    delete_namespace(&federation, "configmaps", "ConfigMap", Value::Null).await;
    let expected = [
        "\"CreationRejected\"",
        "in namespace team because it is being terminated",
    ];
    replaced_until_gone(&federation, "configmaps", expected).await;
}

#[tokio::test(start_paused = true)]
async fn f32_while_the_pods_of_a_namespace_are_deleted_its_set_gets_none() {
    let federation = team("Orphan").await;
    // Pods are deleted before all other objects: the set stays, and its controller may create none.
    let spec = json!({ "containers": [{ "name": "main", "image": "registry.example/main:1" }] });
    delete_namespace(&federation, "pods", "Pod", spec).await;
    let expected = ["\"ControllersNotActing\"", "2 pods not created"];
    replaced_until_gone(&federation, "pods", expected).await;
}

#[tokio::test(start_paused = true)]
async fn f5_a_namespace_of_the_host_that_is_being_deleted_takes_its_sets_along_as_their_policy_says()
 {
    for (policy, left) in [("Orphan", [2, 2, 2]), ("Delete", [0, 0, 0])] {
        let federation = team(policy).await;
        federation
            .on_host("DELETE", TEAM, &Value::Null)
            .await
            .unwrap();
        federation
            .wait_until("the namespace is gone", 60, async |federation| {
                federation
                    .host()
                    .api()
                    .get(&NAMESPACES, "", "team")
                    .is_err()
            })
            .await;
        seconds(60).await;
        assert_eq!(team_layout(&federation), left, "{policy}");
    }
}

#[tokio::test(start_paused = true)]
async fn f5_a_set_with_a_finalizer_of_somebody_else_is_released_once() {
    let federation = SimFederation::running(6).await;
    let ours = "fedrs.dev/members";
    let both = finalizers(&[ours, "example.com/hold"]);
    federation.patch("web", &both).await;
    federation.delete("web").await;
    federation
        .wait_until("our finalizer is removed", 30, async |federation| {
            federation.frs("web").await["metadata"]["finalizers"] == json!(["example.com/hold"])
        })
        .await;
    seconds(5).await;
    let messages = federation.event_messages("web", "DeletionPending").await;
    assert_eq!(
        messages,
        ["all members are cleaned up; the deletion waits for finalizer example.com/hold"]
    );
    let writes = federation.writes();
    seconds(1800).await;
    // Others change it meanwhile.
    let labels = json!({ "metadata": { "labels": { "x": "y" } } });
    federation.patch("web", &labels).await;
    seconds(60).await;
    assert_eq!(federation.writes(), writes, "our part is done");
    assert_eq!(federation.available("web"), 6);
    federation.patch("web", &finalizers(&[])).await;
    assert!(federation.frs("web").await.is_null());
}

#[tokio::test(start_paused = true)]
async fn a_member_cluster_with_a_finalizer_of_somebody_else_stays_a_member_until_it_is_gone() {
    let federation = SimFederation::running(12).await;
    let path = format!("{MEMBERS_PATH}/c");
    let held = finalizers(&["example.com/hold"]);
    federation.on_host("PATCH", &path, &held).await.unwrap();
    federation
        .on_host("DELETE", &path, &Value::Null)
        .await
        .unwrap();
    seconds(10).await;
    let writes = federation.writes();
    seconds(1800).await;
    assert_eq!(federation.writes(), writes);
    assert_eq!(federation.sorted_layout("web"), [4, 4, 4]);
    federation
        .on_host("PATCH", &path, &finalizers(&[]))
        .await
        .unwrap();
    seconds(10).await;
    let condition = federation.member_condition("c", "Ready").await;
    assert!(condition.starts_with("True"), "created again: {condition}");
    assert_eq!(federation.sorted_layout("web"), [4, 4, 4]);
}
