//! What the controller of LocalReplicaSets does with pods that have to leave their nodes by a MigrationPolicy.

use fedrs_tests::{scenario, scenario::Scenario, test_environment::TestEnvironment};
use serde_json::{Value, json};

use crate::{
    local_migrations,
    local_updates::{local, of_pods, started, until_updated},
    member_set::{name_of, text},
};

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario!(
            local_migrations::m5_m10_pods_move_under_their_names,
            LocalReplicaSets
        ),
        scenario!(
            local_migrations::m11_nothing_takes_the_place_of_a_pod_that_may_still_run,
            LocalReplicaSets
        ),
    ]
}

/// The path of another kind in the namespace of the set.
pub(crate) fn path_of(env: &TestEnvironment, plural: &str) -> String {
    local(env).path().replace("localreplicasets/local", plural)
}

/// Creates a policy for all sets, without a time between two migrations.
pub(crate) async fn policy(env: &TestEnvironment, spec: &Value) {
    let mut policy = json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "MigrationPolicy", "metadata": { "name": "all" },
        "spec": { "selector": {}, "minSecondsBetween": { "hardware": 0, "compaction": 0 } },
    });
    for (name, value) in spec.as_object().unwrap() {
        policy["spec"][name] = value.clone();
    }
    let path = path_of(env, "migrationpolicies");
    local(env).request("POST", &path, &policy).await;
}

pub(crate) async fn requests(env: &TestEnvironment) -> Vec<Value> {
    let path = path_of(env, "migrationrequests");
    let list = local(env).request("GET", &path, &Value::Null).await;
    list["items"].as_array().cloned().unwrap_or_default()
}

/// A node is emptied by a MigrationPolicy: each pod of it has a request, and its name afterwards.
async fn m5_m10_pods_move_under_their_names(env: &mut TestEnvironment) {
    started(env, 6, 3).await;
    let pods = env.watch(local(env).name()).await;
    let set = local(env);
    policy(env, &json!({ "maxUnavailable": 1 })).await;
    let node_of = |pod: &Value| text(&pod["spec"]["nodeName"]).to_owned();
    let before = of_pods(env, node_of).await;
    let node = before.values().next().expect("there are pods").clone();
    let leaving = before.values().filter(|of| **of == node).count();
    let path = format!("/api/v1/nodes/{node}");
    let label = |value: Value| json!({ "metadata": { "labels": { "fedrs.dev/evict": value } } });
    let mut drained = label("true".into());
    drained["spec"] = json!({ "unschedulable": true });
    set.request("PATCH", &path, &drained).await;
    set.until("all of its pods have moved", async || {
        let requests = requests(env).await;
        let is_done = |request: &Value| request["status"]["phase"] == "Done";
        requests.len() == leaving && requests.iter().all(is_done)
    })
    .await;
    until_updated(env, 6).await;
    let after = of_pods(env, node_of).await;
    assert!(after.keys().eq(before.keys()), "{before:?} {after:?}");
    assert!(after.values().all(|of| *of != node), "{after:?}");
    pods.assert_never_below(5);
    pods.assert_never_above(6);
    let mut back = label(Value::Null);
    back["spec"] = json!({ "unschedulable": null });
    set.request("PATCH", &path, &back).await;
}

/// The phase of the request for a pod; empty if there is none.
async fn phase(env: &TestEnvironment, pod: &str) -> String {
    let requests = requests(env).await;
    let request = requests.iter().find(|of| of["spec"]["podName"] == *pod);
    request.map_or_else(String::new, |of| {
        of["status"]["phase"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    })
}

/// What a kubelet reports and requests once the containers of a pod have stopped that is being removed.
async fn report_stopped(env: &TestEnvironment, pod: &str) {
    let set = local(env);
    let path = set.pod_path(pod);
    let mut pod = set.request("GET", &path, &Value::Null).await;
    let statuses = pod["status"]["containerStatuses"].as_array_mut().unwrap();
    for status in statuses {
        status["state"] = json!({ "terminated": { "exitCode": 0 } });
    }
    let stopped = json!({ "status": { "containerStatuses": pod["status"]["containerStatuses"] } });
    set.request("PATCH", &format!("{path}/status"), &stopped)
        .await;
    set.request("DELETE", &path, &json!({ "gracePeriodSeconds": 0 }))
        .await;
}

/// Waits until the pod with this uid is gone, and so is every wait for it. Real clusters have no kubelets here, so that a person is
/// asked: then `answer` is given. Until then, nothing is in its place.
async fn until_replaced(
    env: &TestEnvironment,
    (name, uid): (&str, &str),
    answer: impl AsyncFn(&TestEnvironment),
) {
    let set = local(env);
    let has_it = async || {
        let pods = set.pods().await;
        assert!(pods.len() <= 3, "{pods:?}");
        pods.iter().any(|pod| pod["metadata"]["uid"] == *uid)
    };
    set.until("it is gone, or a person is asked", async || {
        !has_it().await || phase(env, name).await == "HandsUp"
    })
    .await;
    if has_it().await {
        let asked = "True ConfirmationNeeded";
        set.until("a condition says so", async || {
            set.condition("PodsNotStopped").await == asked
        })
        .await;
        answer(env).await;
    }
    set.until("it is gone", async || !has_it().await).await;
    until_updated(env, 3).await;
    assert_eq!(set.condition("PodsNotStopped").await, "none");
}

/// First its kubelet says that it has stopped, then a person, whoever has removed it.
async fn m11_nothing_takes_the_place_of_a_pod_that_may_still_run(env: &mut TestEnvironment) {
    started(env, 3, 1).await;
    let shutdown = json!({ "timeoutSeconds": 5, "onTimeout": "HandsUp" });
    policy(env, &json!({ "shutdown": shutdown })).await;
    let set = local(env);
    set.until("all pods have the finalizer", async || {
        let ours = json!(["fedrs.dev/shutdown"]);
        let pods = set.owned().await;
        pods.iter().all(|pod| pod["metadata"]["finalizers"] == ours)
    })
    .await;
    let pods = set.owned().await;
    let [moved, deleted] = [0, 1].map(|index| {
        let (name, uid) = (name_of(&pods[index]), &pods[index]["metadata"]["uid"]);
        (name, text(uid).to_owned())
    });
    let request = json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "MigrationRequest",
        "metadata": { "name": "one" }, "spec": { "podName": moved.0 },
    });
    let of_requests = path_of(env, "migrationrequests");
    set.request("POST", &of_requests, &request).await;
    until_replaced(env, (&moved.0, &moved.1), async |env| {
        report_stopped(env, &moved.0).await;
    })
    .await;
    set.until("the request says so", async || {
        phase(env, &moved.0).await == "Done"
    })
    .await;

    // By force, which proves nothing.
    set.request(
        "DELETE",
        &set.pod_path(&deleted.0),
        &json!({ "gracePeriodSeconds": 0 }),
    )
    .await;
    until_replaced(env, (&deleted.0, &deleted.1), async |env| {
        let requests = requests(env).await;
        let request = requests
            .iter()
            .find(|of| of["spec"]["podName"] == *deleted.0);
        let name = name_of(request.expect("a person is asked"));
        let confirmation = json!({ "confirmedBy": "jane", "machineIsDestroyed": true });
        let confirmed = json!({ "spec": { "confirmation": confirmation } });
        let path = format!("{of_requests}/{name}");
        local(env).request("PATCH", &path, &confirmed).await;
    })
    .await;
}
