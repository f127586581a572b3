//! The kstatus of live objects: what Flux and kpt see while the controller works.

use control_plane::ProxyMode;
use fedrs_tests::{even, frs, kstatus, test_environment::TestEnvironment};
use serde_json::{Value, json};

/// The annotation for preferences.
const PREFERENCES: &str = "federation.kubernetes.io/replica-set-preferences";

/// The path of a MemberCluster.
fn member_path(name: &str) -> String {
    format!("{}/{name}", fedrs_tests::MEMBERS_PATH)
}

/// The kstatus of an object on the host, `NotFound` if it does not exist.
async fn status(env: &TestEnvironment, path: &str) -> String {
    let Ok(object) = env.on_host("GET", path, &Value::Null).await else {
        return "NotFound".to_owned();
    };
    let [computed] = &kstatus::compute(&[object])[..] else {
        panic!("one object has one status");
    };
    computed.status.clone()
}

/// Waits until the object has this kstatus.
async fn wait_for_status(env: &TestEnvironment, path: &str, expected: &str) {
    let what = format!("{path} is {expected}");
    env.wait_until(&what, 60, async |env| status(env, path).await == expected)
        .await;
}

pub(crate) async fn a_set_is_current_only_while_it_is_as_asked_for(env: &mut TestEnvironment) {
    let path = env.frs_path("web");
    env.kill_controller().await;
    let mut set = frs("web", 6, &even(true));
    // Long enough to see the set while its pods run, but are not available yet.
    set["spec"]["minReadySeconds"] = 5.into();
    env.create(&set).await;
    assert_eq!(status(env, &path).await, "InProgress", "no controller");

    env.start_controller().await;
    env.wait_until("the pods are ready", 60, async |env| {
        env.frs("web").await["status"]["readyReplicas"] == 6
    })
    .await;
    assert_eq!(status(env, &path).await, "InProgress", "not available yet");
    wait_for_status(env, &path, "Current").await;
    assert_eq!(env.available("web").await, 6);

    env.patch("web", &json!({ "spec": { "replicas": 9 } }))
        .await;
    wait_for_status(env, &path, "Current").await;
    assert_eq!(env.available("web").await, 9, "not current before");

    env.kill_controller().await;
    env.patch("web", &json!({ "spec": { "replicas": 12 } }))
        .await;
    assert_eq!(status(env, &path).await, "InProgress", "not decided");
    env.start_controller().await;
    wait_for_status(env, &path, "Current").await;
    assert_eq!(env.available("web").await, 12);
}

pub(crate) async fn f4_an_invalid_set_fails_until_it_is_repaired(env: &mut TestEnvironment) {
    let path = env.frs_path("web");
    env.run(&frs("web", 6, &even(true))).await;
    let preferences = |text: Option<&str>| json!({ "metadata": { "annotations": { PREFERENCES: text } }, "spec": { "placement": null } });
    env.patch("web", &preferences(Some(r#"{"clusters": 5}"#)))
        .await;
    wait_for_status(env, &path, "Failed").await;
    env.patch("web", &preferences(None)).await;
    wait_for_status(env, &path, "Current").await;

    env.kill_controller().await;
    env.on_host("DELETE", &path, &Value::Null).await.unwrap();
    assert_eq!(status(env, &path).await, "Terminating");
    env.start_controller().await;
    env.wait_until("the set is deleted", 60, async |env| {
        env.frs("web").await.is_null()
    })
    .await;
}

pub(crate) async fn a_member_is_current_while_it_is_ready(env: &mut TestEnvironment) {
    let member = |name: &str| json!({ "apiVersion": "fedrs.dev/v1alpha1", "kind": "MemberCluster", "metadata": { "name": name }, "spec": {} });
    env.kill_controller().await;
    env.on_host("POST", fedrs_tests::MEMBERS_PATH, &member("new"))
        .await
        .unwrap();
    assert_eq!(status(env, &member_path("new")).await, "InProgress");
    env.start_controller().await;
    wait_for_status(env, &member_path("b"), "Current").await;
    env.set_network("b", ProxyMode::Reset);
    wait_for_status(env, &member_path("b"), "InProgress").await;
    env.set_network("b", ProxyMode::Forward(std::time::Duration::ZERO));
    wait_for_status(env, &member_path("b"), "Current").await;
    // A member without a kubeconfig never becomes ready.
    assert_eq!(status(env, &member_path("new")).await, "InProgress");
}
