//! FederatedDeployments whose members have LocalReplicaSets: what these do beyond Deployments, within one budget (L6, L12, L20).

use std::collections::BTreeSet;

use fedrs_tests::{ReadyWatcher, even, frs, test_environment::TestEnvironment};
use serde_json::{Value, json};

/// Runs `web` with 9 replicas, and so many that may be unavailable.
async fn started(env: &TestEnvironment, unavailable: u32) -> ReadyWatcher {
    started_with(env, unavailable, 0).await
}

/// As [`started`], with pods that are available after so many seconds.
async fn started_with(
    env: &TestEnvironment,
    unavailable: u32,
    min_ready_seconds: u32,
) -> ReadyWatcher {
    let mut set = frs("web", 9, &even(true));
    set["spec"]["minReadySeconds"] = min_ready_seconds.into();
    let rolling = json!({ "maxUnavailable": unavailable, "maxSurge": 3 });
    set["spec"]["strategy"] = json!({ "rollingUpdate": rolling });
    env.run(&set).await;
    until_ready(env).await;
    env.watch("web").await
}

async fn until_ready(env: &TestEnvironment) {
    env.wait_until("the set is ready", 60, async |env| {
        env.condition("web", "Ready").await.as_deref() == Some("True")
            && env.condition("web", "Reconciling").await.is_none()
    })
    .await;
}

/// The uids of the pods of all members.
async fn uids(env: &TestEnvironment) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for member in env.member_names() {
        let pods = env.pods(&member).await;
        all.extend(pods.iter().map(|pod| pod["metadata"]["uid"].to_string()));
    }
    all
}

/// Changes the template, and waits until all pods have it.
async fn roll_out(env: &TestEnvironment, template: Value) {
    env.patch("web", &json!({ "spec": { "template": template } }))
        .await;
    until_rolled_out(env).await;
}

/// Waits until all pods have the template of the spec.
async fn until_rolled_out(env: &TestEnvironment) {
    env.wait_until("the template is rolled out", 120, async |env| {
        let set = env.frs("web").await;
        let status = &set["status"];
        status["observedGeneration"] == set["metadata"]["generation"]
            && status["updatedReplicas"] == 9
            && status["currentRevision"] == status["updateRevision"]
            && env.condition("web", "Ready").await.as_deref() == Some("True")
    })
    .await;
}

/// No loan is left: no available pod is updated or evicted.
async fn until_nothing_is_lent(env: &TestEnvironment) {
    env.wait_until("nothing is lent", 60, async |env| {
        let mut is_lent = false;
        for member in env.member_names() {
            let spec = env.local_set(&member, "web").await["spec"].clone();
            is_lent |= spec["deploymentStrategy"]["maxUnavailable"] != 0 || spec["paused"] != true;
        }
        !is_lent
    })
    .await;
}

pub(crate) async fn l12_an_image_is_updated_in_place_in_all_members(env: &mut TestEnvironment) {
    let pods = started(env, 2).await;
    let before = uids(env).await;
    let containers = json!([{ "name": "main", "image": "registry.example/main:2" }]);
    roll_out(env, json!({ "spec": { "containers": containers } })).await;
    assert_eq!(before, uids(env).await);
    pods.assert_never_below(7);
    pods.assert_never_above(9);
    until_nothing_is_lent(env).await;
}

/// Nobody may be unavailable: one more is created first.
pub(crate) async fn l5_a_replica_is_created_first_if_none_may_be_unavailable(
    env: &mut TestEnvironment,
) {
    let pods = started(env, 0).await;
    let annotations = json!({ "kubectl.kubernetes.io/restartedAt": "2027-01-15T09:00:00Z" });
    roll_out(env, json!({ "metadata": { "annotations": annotations } })).await;
    pods.assert_never_below(9);
    pods.assert_never_above(10);
    until_nothing_is_lent(env).await;
    env.wait_until("nine are left", 60, async |env| {
        env.sorted_layout("web").await == [3, 3, 3]
    })
    .await;
    pods.assert_never_below(9);
}

pub(crate) async fn l20_evictions_in_all_members_share_the_budget(env: &mut TestEnvironment) {
    let pods = started(env, 2).await;
    let before = uids(env).await;
    let namespace = env.namespace();
    for member in env.member_names() {
        for pod in env.pods(&member).await {
            let name = pod["metadata"]["name"].as_str().unwrap();
            let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
            let evict = json!({ "metadata": { "annotations": { "fedrs.dev/evict": "true" } } });
            env.on_member(&member, "PATCH", &path, &evict)
                .await
                .unwrap();
        }
    }
    env.wait_until("all pods were replaced", 180, async |env| {
        let after = uids(env).await;
        after.is_disjoint(&before) && env.available("web").await == 9
    })
    .await;
    pods.assert_never_below(7);
    pods.assert_never_above(9);
    until_nothing_is_lent(env).await;
}

/// Nodes of a member are drained while its pods are updated: first in place, then recreated.
pub(crate) async fn l20_kubectl_drains_nodes_during_a_rollout(env: &mut TestEnvironment) {
    const MEMBER: &str = "a";
    let pods = started_with(env, 2, 2).await;
    let image = json!([{ "name": "main", "image": "registry.example/main:2" }]);
    let variables = json!([{ "name": "LEVEL", "value": "debug" }]);
    let variable =
        json!([{ "name": "main", "image": "registry.example/main:2", "env": variables }]);
    for containers in [image, variable] {
        until_ready(env).await;
        let template = json!({ "spec": { "containers": containers } });
        env.patch("web", &json!({ "spec": { "template": template } }))
            .await;
        env.wait_until("the rollout begins", 30, async |env| {
            let status = env.frs("web").await["status"].clone();
            status["currentRevision"] != status["updateRevision"]
                && status["updatedReplicas"].as_u64() > Some(0)
        })
        .await;
        let node = env.pods(MEMBER).await[0]["spec"]["nodeName"].clone();
        let node = node.as_str().expect("the pod has a node").to_owned();
        drain(env, MEMBER, &node).await;
        let left = env.pods(MEMBER).await;
        assert!(
            left.iter().all(|pod| pod["spec"]["nodeName"] != *node),
            "{left:?}"
        );
        until_rolled_out(env).await;
        env.kubectl_of(MEMBER)
            .must(&format!("uncordon {node}"))
            .await;
    }
    pods.assert_never_below(7);
    pods.assert_never_above(9);
    until_nothing_is_lent(env).await;
}

/// Drains a node that has pods, as an administrator does.
pub(crate) async fn drain(env: &TestEnvironment, member: &str, node: &str) {
    let drain = format!("drain {node} --ignore-daemonsets --delete-emptydir-data --timeout=180s");
    let output = env.kubectl_of(member).must(&drain).await;
    assert!(output.contains("evicting pod"), "{output}");
}

/// Users who change a LocalReplicaSet of a member.
pub(crate) async fn f29_what_others_change_in_a_local_set_is_undone(env: &mut TestEnvironment) {
    let pods = started(env, 2).await;
    let before = env.local_set("a", "web").await["spec"].clone();
    let speed = json!({ "updatePortion": 1, "minDelay": 9 });
    let rack = json!({ "antiaffinity": [{ "key": "rack", "maxPods": 1 }] });
    for change in [
        json!({ "stopped": true }),
        json!({ "paused": false }),
        json!({ "updateMode": "Never" }),
        json!({ "accountId": "other" }),
        json!({ "constraints": rack }),
        json!({ "migrationPolicy": "other" }),
        json!({ "deploymentStrategy": { "deploySpeed": speed } }),
        json!({ "deploymentStrategy": { "maxUnavailable": "50%" } }),
        json!({ "deploymentStrategy": { "maxSurge": 3 } }),
        json!({ "revisionHistoryLimit": 3, "progressDeadlineSeconds": 5 }),
        json!({ "removalTimeoutSeconds": 5, "evictionTimeoutSeconds": 5, "nodeTimeoutSeconds": 5 }),
    ] {
        let path = env.set_path("web");
        let patch = json!({ "spec": change });
        env.on_member("a", "PATCH", &path, &patch).await.unwrap();
        env.wait_until(&format!("{change} is undone"), 120, async |env| {
            let mut spec = env.local_set("a", "web").await["spec"].clone();
            without_defaults(&mut spec);
            let mut wanted = before.clone();
            without_defaults(&mut wanted);
            spec == wanted
        })
        .await;
    }
    until_ready(env).await;
    pods.assert_never_below(7);
}

/// A policy that is known in all members, another one that is not, and none.
pub(crate) async fn m1_a_migration_policy_reaches_all_members_without_a_rollout(
    env: &mut TestEnvironment,
) {
    const POLICY: &str = "stateful";
    let policies = format!(
        "/apis/fedrs.dev/v1alpha1/namespaces/{}/migrationpolicies",
        env.namespace()
    );
    let policy = json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "MigrationPolicy", "metadata": { "name": POLICY }, "spec": {},
    });
    for member in env.member_names() {
        let created = env.on_member(&member, "POST", &policies, &policy).await;
        created.unwrap();
    }
    let mut set = frs("web", 9, &even(true));
    set["spec"]["migrationPolicy"] = POLICY.into();
    env.run(&set).await;
    until_policy_is(env, Some(POLICY), "none").await;
    until_ready(env).await;
    let pods = env.watch("web").await;
    let before = (revision(env).await, uids(env).await);
    for (policy, unknown) in [
        (Some("other"), "True"),
        (None, "none"),
        (Some(POLICY), "none"),
    ] {
        env.patch("web", &json!({ "spec": { "migrationPolicy": policy } }))
            .await;
        until_policy_is(env, policy, unknown).await;
        until_ready(env).await;
        let after = (revision(env).await, uids(env).await);
        assert_eq!(after, before, "{policy:?}");
    }
    pods.assert_never_below(9);
    pods.assert_never_above(9);
    until_nothing_is_lent(env).await;
}

/// What a deletion has left behind names a policy; the set that adopts it has another one, or none.
pub(crate) async fn m1_f29_an_adopted_local_set_has_the_policy_of_the_set(
    env: &mut TestEnvironment,
) {
    let mut set = frs("web", 9, &even(true));
    set["spec"]["migrationPolicy"] = "first".into();
    env.run(&set).await;
    let pods = env.watch("web").await;
    let before = uids(env).await;
    for (policy, unknown) in [(Some("second"), "True"), (None, "none")] {
        let path = env.frs_path("web");
        env.on_host("DELETE", &path, &Value::Null).await.unwrap();
        env.wait_until("the object is deleted", 30, async |env| {
            env.frs("web").await.is_null()
        })
        .await;
        set["spec"]["migrationPolicy"] = policy.into();
        env.create(&set).await;
        until_policy_is(env, policy, unknown).await;
        until_ready(env).await;
        assert_eq!(uids(env).await, before, "{policy:?}");
    }
    pods.assert_never_below(9);
}

/// Waits until the local set of each member names the policy, and its condition `MigrationPolicyUnknown` is as expected.
async fn until_policy_is(env: &TestEnvironment, policy: Option<&str>, unknown: &str) {
    let what = format!("{policy:?} is the policy of all members");
    env.wait_until(&what, 60, async |env| {
        let mut have_it = true;
        for member in env.member_names() {
            let set = env.local_set(&member, "web").await;
            let conditions = set["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            let found = conditions.find(|of| of["type"] == "MigrationPolicyUnknown");
            let found = found.map_or("none", |of| of["status"].as_str().unwrap_or_default());
            have_it &= set["spec"]["migrationPolicy"].as_str() == policy && found == unknown;
        }
        have_it
    })
    .await;
}

/// The revision that is rolled out.
async fn revision(env: &TestEnvironment) -> Value {
    env.frs("web").await["status"]["updateRevision"].clone()
}

/// Removes what means the same if it is absent.
fn without_defaults(spec: &mut Value) {
    let spec = spec.as_object_mut().unwrap();
    for (field, default) in [
        ("stopped", json!(false)),
        ("accountId", json!("")),
        ("constraints", Value::Null),
        ("migrationPolicy", Value::Null),
    ] {
        if spec.get(field) == Some(&default) {
            spec.remove(field);
        }
    }
}

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CRD: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/localreplicasets.fedrs.dev";

/// A member in which nobody has installed them: it gets none of their replicas, and is as usual for all other sets.
pub(crate) async fn f33_a_member_without_the_crd_has_other_sets(env: &mut TestEnvironment) {
    env.on_member("c", "DELETE", CRD, &Value::Null)
        .await
        .unwrap();
    env.create(&frs("web", 9, &even(true))).await;
    let mut other = frs("other", 9, &even(true));
    other["metadata"]["namespace"] = env.namespace().into();
    other["spec"]["selector"] = json!({ "matchLabels": { "app": "other" } });
    other["spec"]["template"]["metadata"]["labels"] = json!({ "app": "other" });
    let namespace = env.namespace();
    let sets = format!("/apis/fedrs.dev/v1alpha1/namespaces/{namespace}/federatedreplicasets");
    env.on_host("POST", &sets, &other).await.unwrap();
    env.wait_until("the others run all replicas", 120, async |env| {
        env.sorted_layout("web").await == [0, 4, 5] && env.available("web").await == 9
    })
    .await;
    let path = format!("{sets}/other");
    env.wait_until("c has replicas of the other set", 60, async |env| {
        let other = env.on_host("GET", &path, &Value::Null).await.unwrap();
        other["status"]["clusters"][2]["availableReplicas"] == 3
    })
    .await;
    assert_says_what_is_missing(env).await;
}

/// The status of the set and that of the member say why `c` has no replicas.
async fn assert_says_what_is_missing(env: &TestEnvironment) {
    // A watch that the API server leaves open is silent for a while first.
    env.wait_until("the set says why", 300, async |env| {
        let set = env.frs("web").await;
        let entry = &set["status"]["clusters"][2];
        entry["name"] == "c"
            && entry["state"] == "Refused"
            && entry["reason"] == "KindNotInstalled"
            && entry["message"].as_str().is_some_and(says_it)
            && entry["desiredReplicas"] == 0
    })
    .await;
    let path = "/apis/fedrs.dev/v1alpha1/memberclusters/c";
    env.wait_until("the member says it", 60, async |env| {
        let member = env.on_host("GET", path, &Value::Null).await.unwrap();
        let conditions = member["status"]["conditions"].as_array().cloned();
        let conditions = conditions.unwrap_or_default();
        let mut synced = conditions
            .iter()
            .filter(|condition| condition["type"] == "Synced");
        synced.any(|synced| synced["message"].as_str().is_some_and(says_it))
    })
    .await;
}

fn says_it(message: &str) -> bool {
    message.contains("LocalReplicaSets are not installed")
}

/// The member deletes all LocalReplicaSets with their CRD, and their pods.
pub(crate) async fn f33_replicas_leave_a_member_whose_crd_is_deleted_until_it_returns(
    env: &mut TestEnvironment,
) {
    let _pods = started(env, 2).await;
    let crd = env.on_member("c", "GET", CRD, &Value::Null).await.unwrap();
    env.on_member("c", "DELETE", CRD, &Value::Null)
        .await
        .unwrap();
    env.wait_until("the others run all replicas", 180, async |env| {
        env.sorted_layout("web").await == [0, 4, 5] && env.available("web").await == 9
    })
    .await;
    assert_says_what_is_missing(env).await;
    let metadata = json!({ "name": crd["metadata"]["name"] });
    let again = json!({ "apiVersion": crd["apiVersion"], "kind": crd["kind"], "metadata": metadata, "spec": crd["spec"] });
    env.on_member("c", "POST", CRDS, &again).await.unwrap();
    env.wait_until("c has its share again", 180, async |env| {
        env.sorted_layout("web").await == [3, 3, 3] && env.available("web").await == 9
    })
    .await;
    until_ready(env).await;
}
