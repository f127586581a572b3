//! Migrations that persons confirm: copies, and pods that persons move.

use fedrs_tests::{scenario, scenario::Scenario, test_environment::TestEnvironment};
use serde_json::{Value, json};

use crate::{
    local_confirmations,
    local_migrations::{path_of, policy, requests},
    local_updates::{local, started, until_updated},
    member_set::{name_of, text},
};

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario!(
            local_confirmations::m2_m4_a_pod_is_copied_as_persons_confirm,
            LocalReplicaSets
        ),
        scenario!(
            local_confirmations::m7_m12_persons_move_a_pod,
            LocalReplicaSets
        ),
    ]
}

/// Asks a pod to leave its node by a policy that the controller knows, and that asks persons. Returns its name.
async fn ask(env: &TestEnvironment, spec: &Value) -> String {
    policy(env, spec).await;
    let set = local(env);
    set.until(
        "nobody is notified of what persons have to do",
        async || set.condition("NotificationsMissing").await == "True NoWebhook",
    )
    .await;
    let pod = name_of(&set.owned().await[0]);
    let request = json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "MigrationRequest",
        "metadata": { "name": "one" }, "spec": { "podName": pod },
    });
    set.request("POST", &path_of(env, "migrationrequests"), &request)
        .await;
    pod
}

async fn status(env: &TestEnvironment) -> Value {
    let requests = requests(env).await;
    let one = requests.iter().find(|of| name_of(of) == "one");
    one.map_or(Value::Null, |one| one["status"].clone())
}

async fn until_awaits(env: &TestEnvironment, awaited: &str) {
    local(env)
        .until(&format!("it waits for {awaited}"), async || {
            status(env).await["awaits"] == *awaited
        })
        .await;
}

async fn confirm(env: &TestEnvironment, spec: &Value) {
    let path = format!("{}/one", path_of(env, "migrationrequests"));
    let confirmed = json!({ "spec": spec });
    local(env).request("PATCH", &path, &confirmed).await;
}

async fn until_done(env: &TestEnvironment) {
    local(env)
        .until("it is done", async || status(env).await["phase"] == "Done")
        .await;
    until_updated(env, 3).await;
}

/// No replica is missing at any time, and there is one pod more for the time.
async fn m2_m4_a_pod_is_copied_as_persons_confirm(env: &mut TestEnvironment) {
    started(env, 3, 1).await;
    let pods = env.watch(local(env).name()).await;
    let copy = json!({ "confirmBeforeActivation": true, "confirmBeforeShutdown": true });
    let old = ask(env, &json!({ "method": "Copy", "copy": copy })).await;
    until_awaits(env, "ConfirmActivation").await;
    assert_eq!(local(env).owned().await.len(), 4);
    confirm(env, &json!({ "activationConfirmedBy": "jane" })).await;
    until_awaits(env, "ConfirmShutdown").await;
    confirm(env, &json!({ "shutdownConfirmedBy": "jane" })).await;
    until_done(env).await;
    let owned = local(env).owned().await;
    assert!(owned.iter().all(|pod| name_of(pod) != old), "{owned:?}");
    pods.assert_never_below(3);
    pods.assert_never_above(4);
}

/// Real clusters have no kubelets here, and what is in their place removes the finalizers of others: there, nobody is asked whether the pod
/// has stopped.
async fn m7_m12_persons_move_a_pod(env: &mut TestEnvironment) {
    started(env, 3, 1).await;
    let pod = ask(env, &json!({ "method": "Manual" })).await;
    until_awaits(env, "ShutDown").await;
    let set = local(env);
    let uid = set.pod(&pod).await["metadata"]["uid"].clone();
    set.delete_pod(&pod).await;
    let awaits = async || text(&status(env).await["awaits"]).to_owned();
    set.until("the pod has to be confirmed, or is gone", async || {
        ["ConfirmStopped", "Start"].contains(&&*awaits().await)
    })
    .await;
    if awaits().await == "ConfirmStopped" {
        assert_eq!(set.pod(&pod).await["metadata"]["uid"], uid, "it stays");
        confirm(env, &json!({ "confirmation": { "confirmedBy": "jane" } })).await;
        until_awaits(env, "Start").await;
    }
    let new = set.pod(&pod).await;
    assert_ne!(new["metadata"]["uid"], uid);
    assert_eq!(
        text(&new["spec"]["schedulingGates"][0]["name"]),
        "fedrs.dev/start"
    );
    // In a strategic merge patch, an empty list changes nothing.
    set.patch_pod(&pod, &json!({ "spec": { "schedulingGates": null } }))
        .await;
    until_done(env).await;
}
