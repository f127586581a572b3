//! What the controller of LocalReplicaSets does with pods of native Deployments that have to leave their nodes.

use fedrs_tests::{scenario, scenario::Scenario, test_environment::TestEnvironment};
use serde_json::{Value, json};

use crate::{
    local_migrations::{path_of, policy, requests},
    local_updates::local,
    member_set::{IMAGE, MEMBER, is_live, name_of, text},
    native_migrations,
};

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![scenario!(
        native_migrations::m5_m14_pods_of_a_deployment_are_evicted_within_their_budget,
        LocalReplicaSets
    )]
}

async fn create(env: &TestEnvironment, api: &str, plural: &str, object: Value) {
    let path = format!("/apis/{api}/namespaces/{}/{plural}", env.namespace());
    local(env).request("POST", &path, &object).await;
}

/// The live pods, once there are three and all are ready.
pub(crate) async fn until_three(env: &TestEnvironment) -> Vec<Value> {
    let is_ready = |pod: &Value| {
        let conditions = pod["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        is_live(pod) && conditions.any(|of| of["type"] == "Ready" && of["status"] == "True")
    };
    let set = local(env);
    set.until("three pods are ready", async || {
        let pods = set.pods().await;
        pods.iter().filter(|pod| is_ready(pod)).count() == 3
    })
    .await;
    let mut pods = set.pods().await;
    pods.retain(is_ready);
    pods
}

async fn status(env: &TestEnvironment, request: &str) -> Value {
    let requests = requests(env).await;
    let found = requests.iter().find(|of| name_of(of) == request);
    found.map_or(Value::Null, |found| found["status"].clone())
}

async fn until(env: &TestEnvironment, request: &str, field: &str, expected: &str) {
    let what = format!("{request} has the {field} {expected}");
    local(env)
        .until(&what, async || {
            status(env, request).await[field] == *expected
        })
        .await;
}

/// A Deployment of three pods, and a PodDisruptionBudget that allows none of them to be evicted. Returns the pods.
pub(crate) async fn guarded_deployment(env: &TestEnvironment) -> Vec<Value> {
    let labels = json!({ "app": "native" });
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "native" },
        "spec": {
            "replicas": 3,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "main", "image": IMAGE }] },
            },
        },
    });
    create(env, "apps/v1", "deployments", deployment).await;
    let pods = until_three(env).await;
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "native" },
        "spec": { "minAvailable": 3, "selector": { "matchLabels": labels } },
    });
    create(env, "policy/v1", "poddisruptionbudgets", budget).await;
    pods
}

/// One pod of that Deployment may be evicted at a time.
pub(crate) async fn loosen_budget(env: &TestEnvironment) {
    let path = format!(
        "/apis/policy/v1/namespaces/{}/poddisruptionbudgets/native",
        env.namespace()
    );
    let loose = json!({ "spec": { "minAvailable": 2 } });
    local(env).request("PATCH", &path, &loose).await;
}

/// Two of its pods have to leave: their PodDisruptionBudget holds up the first one, and that one the second, also after a restart.
async fn m5_m14_pods_of_a_deployment_are_evicted_within_their_budget(env: &mut TestEnvironment) {
    env.start_local_controller(MEMBER).await;
    let before = guarded_deployment(env).await;
    let seldom = json!({ "hardware": 100_000, "compaction": 100_000 });
    policy(env, &json!({ "minSecondsBetween": seldom })).await;
    let of_requests = path_of(env, "migrationrequests");
    for (name, pod) in [("one", &before[0]), ("two", &before[1])] {
        let request = json!({
            "apiVersion": "fedrs.dev/v1alpha1", "kind": "MigrationRequest",
            "metadata": { "name": name }, "spec": { "podName": name_of(pod) },
        });
        local(env).request("POST", &of_requests, &request).await;
        let reason = if name == "one" { "Budget" } else { "Queued" };
        until(env, name, "reason", reason).await;
    }
    let waiting = status(env, "one").await;
    let message = text(&waiting["message"]);
    assert!(message.contains("disruption budget"), "{message}");
    loosen_budget(env).await;
    until(env, "one", "phase", "Done").await;
    env.kill_local_controller(MEMBER).await;
    env.start_local_controller(MEMBER).await;
    until(env, "two", "reason", "TooSoon").await;
    let after = until_three(env).await;
    let has = |pods: &[Value], of: &Value| {
        let uid = &of["metadata"]["uid"];
        pods.iter().any(|pod| pod["metadata"]["uid"] == *uid)
    };
    assert!(!has(&after, &before[0]), "{after:?}");
    assert!(
        before[1..].iter().all(|pod| has(&after, pod)),
        "{before:?} {after:?}"
    );
}
