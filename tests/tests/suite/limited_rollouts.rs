//! Rollouts of FederatedDeployments within the budgets of AvailabilitySets (A1).

use fedrs_tests::test_environment::TestEnvironment;
use serde_json::{Value, json};

use crate::rollouts::{started, strategy, until_rolled_out, version, web};

/// Creates the AvailabilitySet `spread`, with a budget of 1, of the pods of a set. Returns its path.
async fn spread(env: &TestEnvironment, set: &Value) -> String {
    let namespace = env.namespace();
    let path = format!("/apis/fedrs.dev/v1alpha1/namespaces/{namespace}/availabilitysets");
    let object = json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "AvailabilitySet",
        "metadata": { "name": "spread" },
        "spec": { "selector": set["spec"]["selector"], "budget": 1 },
    });
    env.on_host("POST", &path, &object).await.unwrap();
    format!("{path}/spread")
}

async fn until_lent(env: &TestEnvironment, path: &str, pods: u64) {
    let what = format!("{pods} pods are lent to the rollout");
    env.wait_until(&what, 60, async |env| {
        let set = env.on_host("GET", path, &Value::Null).await.unwrap();
        set["status"]["rollouts"][0]["maxUnavailable"] == pods
    })
    .await;
}

/// The strategy would let 4 pods be unavailable. Evictions and the rollout have one budget together.
pub(crate) async fn a1_the_rollout_of_a_deployment_keeps_to_an_availability_set(
    env: &mut TestEnvironment,
) {
    let set = web(json!({ "strategy": strategy(4, 0) }));
    let pods = started(env, &set).await;
    let path = spread(env, &set).await;
    until_lent(env, &path, 0).await;
    env.patch("web", &version(2, true)).await;
    until_lent(env, &path, 1).await;
    until_rolled_out(env, "2", 9).await;
    pods.assert_never_below(8);
    env.on_host("DELETE", &path, &json!({})).await.unwrap();
    env.wait_until("nothing limits it", 60, async |env| {
        let set = env.frs("web").await;
        set["metadata"]["annotations"]["availability.fedrs.dev/spread"].is_null()
    })
    .await;
    pods.reset();
    env.patch("web", &version(3, true)).await;
    until_rolled_out(env, "3", 9).await;
    pods.assert_never_below(5);
}

/// Four pods of a bad version are more than the budget, and stay so without the next version.
pub(crate) async fn a1_the_rollout_of_a_deployment_replaces_broken_pods_beyond_the_budget(
    env: &mut TestEnvironment,
) {
    let set = web(json!({ "strategy": strategy(4, 0) }));
    let pods = started(env, &set).await;
    env.patch("web", &version(2, false)).await;
    env.wait_until("four pods are broken", 60, async |env| {
        env.frs("web").await["status"]["availableReplicas"] == 5
    })
    .await;
    spread(env, &set).await;
    env.wait_until("the rollout is limited", 60, async |env| {
        let set = env.frs("web").await;
        set["metadata"]["annotations"]["availability.fedrs.dev/spread"].is_string()
    })
    .await;
    env.patch("web", &version(3, true)).await;
    until_rolled_out(env, "3", 9).await;
    pods.assert_never_below(5);
}
