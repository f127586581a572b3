//! External changes in a member: people, Deployments, quotas (E1 to E7, F28 to F32).

use std::time::Duration;

use fedrs_api::{LocalKind, SetKind};
use fedrs_tests::{even, frs, test_environment::TestEnvironment};
use serde_json::{Value, json};

pub(crate) async fn f28_rejected_replicas_run_elsewhere_and_return(env: &mut TestEnvironment) {
    let resource = match env.local_kind() {
        LocalKind::ReplicaSet => "count/replicasets.apps",
        LocalKind::Deployment => "count/deployments.apps",
        LocalKind::LocalReplicaSet => "count/localreplicasets.fedrs.dev",
    };
    env.set_quota("c", resource, 0).await;
    env.create(&frs("web", 12, &even(true))).await;
    env.wait_until("the other clusters run all replicas", 60, async |env| {
        env.sorted_layout("web").await == [0, 6, 6] && env.available("web").await == 12
    })
    .await;
    let status = env.frs("web").await["status"]["clusters"][2].clone();
    assert!(status["message"].to_string().contains("quota"), "{status}");
    let dips = env.watch("web").await;
    env.remove_quota("c").await;
    env.wait_until("c has its share again", 90, async |env| {
        env.sorted_layout("web").await == [4, 4, 4] && env.available("web").await == 12
    })
    .await;
    dips.assert_never_below(12);
}

/// Each change is in another member: repeated drift of the same local ReplicaSet is repaired with backoff.
pub(crate) async fn f29_drift_is_repaired(env: &mut TestEnvironment) {
    env.run(&frs("web", 9, &even(true))).await;
    let path = env.set_path("web");
    let image = json!([{ "name": "main", "image": "registry.example/other:1" }]);
    for (member, change, is_repaired) in [
        (
            "a",
            json!({
                "metadata": { "labels": { "fedrs.dev/member-cluster": "b" } },
                "spec": { "replicas": 7 },
            }),
            (|set| {
                let member = &set["metadata"]["labels"]["fedrs.dev/member-cluster"];
                set["spec"]["replicas"] == 3 && member == "a"
            }) as fn(&Value) -> bool,
        ),
        (
            "b",
            json!({ "metadata": { "labels": { "fedrs.dev/replica-set": null } } }),
            |set| set["metadata"]["labels"]["fedrs.dev/replica-set"] == "web",
        ),
        (
            "c",
            json!({ "spec": { "template": { "spec": { "containers": image } } } }),
            |set| {
                let containers = &set["spec"]["template"]["spec"]["containers"];
                containers[0]["image"] == "registry.example/main:1"
            },
        ),
    ] {
        let changed = env.on_member(member, "PATCH", &path, &change).await;
        assert!(!is_repaired(&changed.unwrap()), "{member}");
        env.wait_until(&format!("{member} is repaired"), 5, async |env| {
            is_repaired(&env.local_set(member, "web").await)
        })
        .await;
    }
    env.wait_until("an event reports the drift", 5, async |env| {
        env.event_reasons("web")
            .await
            .contains(&"DriftRepaired".to_owned())
    })
    .await;
}

/// A plain workload of another user in a member.
fn foreign(kind: &str, replicas: u32) -> Value {
    let mut set = frs("web", replicas, &Value::Null);
    set["apiVersion"] = json!("apps/v1");
    set["kind"] = json!(kind);
    set["metadata"] = json!({ "name": "web", "labels": { "team": "blue" } });
    set["spec"].as_object_mut().unwrap().remove("placement");
    set["spec"]["template"]["spec"]["containers"][0]["image"] = json!("registry.example/old:1");
    set
}

fn sets_path(env: &TestEnvironment) -> String {
    env.set_path("").trim_end_matches('/').to_owned()
}

pub(crate) async fn f29_f30_an_existing_set_is_adopted_with_its_pods(env: &mut TestEnvironment) {
    let mut found = foreign(env.local_kind().as_str(), 5);
    found["apiVersion"] = env.local_kind().api_version().into();
    let made = env
        .on_member("a", "POST", &sets_path(env), &found)
        .await
        .unwrap();
    env.wait_until("5 run in a", 60, async |env| {
        env.available("web").await == 5
    })
    .await;
    let dips = env.watch("web").await;
    env.create(&frs("web", 9, &even(true))).await;
    env.wait_until("all clusters have their shares", 60, async |env| {
        env.sorted_layout("web").await == [3, 3, 3] && env.available("web").await == 9
    })
    .await;
    // That of a Deployment is rolled out, within the budget.
    env.wait_until("a has the template", 60, async |env| {
        let set = env.local_set("a", "web").await;
        let container = &set["spec"]["template"]["spec"]["containers"][0];
        container["image"] == "registry.example/main:1"
    })
    .await;
    let set = env.local_set("a", "web").await;
    assert_eq!(
        set["metadata"]["uid"], made["metadata"]["uid"],
        "the local set is updated, not recreated"
    );
    assert_eq!(
        set["metadata"]["labels"]["team"], "blue",
        "labels of others stay"
    );
    let reasons = env.event_reasons("web").await;
    assert!(reasons.contains(&"Overwritten".to_owned()), "{reasons:?}");
    env.wait_until("its pods are labelled", 90, async |env| {
        let pods = env.pods("a").await;
        let running = pods
            .iter()
            .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        let mut marks = running.map(|pod| &pod["metadata"]["labels"]["fedrs.dev/replica-set"]);
        marks.all(|mark| mark == "web")
    })
    .await;
    env.wait_until(
        "the status reports outdated pods, or none",
        60,
        async |env| {
            let condition = env.condition("web", "TemplateOutdated").await;
            match env.kind() {
                SetKind::FederatedReplicaSet => condition.as_deref() == Some("True"),
                SetKind::FederatedDeployment => {
                    condition.is_none()
                        && env.condition("web", "Ready").await.as_deref() == Some("True")
                }
            }
        },
    )
    .await;
    dips.assert_never_below(5);
}

pub(crate) async fn f29_a_local_set_that_a_deployment_owns_is_not_changed(
    env: &mut TestEnvironment,
) {
    let mut deployment = foreign("Deployment", 2);
    // It creates no ReplicaSet of its own.
    deployment["spec"]["paused"] = json!(true);
    let path = sets_path(env).replace("replicasets", "deployments");
    let deployment = env
        .on_member("a", "POST", &path, &deployment)
        .await
        .unwrap();
    let mut set = foreign("ReplicaSet", 2);
    // A Deployment releases ReplicaSets that its selector does not match.
    set["metadata"]["labels"]["app"] = json!("web");
    set["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "web",
        "uid": deployment["metadata"]["uid"],
        "controller": true,
    }]);
    let made = env
        .on_member("a", "POST", &sets_path(env), &set)
        .await
        .unwrap();
    env.create(&frs("web", 9, &even(true))).await;
    env.wait_until("the condition is reported", 30, async |env| {
        env.condition("web", "NameConflict").await.as_deref() == Some("True")
    })
    .await;
    env.wait_until("the other clusters run all replicas", 120, async |env| {
        let layout = env.layout("web").await;
        layout["b"] + layout["c"] == 9
    })
    .await;
    let set = env.local_set("a", "web").await;
    assert_eq!(set["metadata"]["labels"], made["metadata"]["labels"]);
    assert_eq!(set["spec"], made["spec"]);
}

pub(crate) async fn f31_a_deleted_local_set_is_recreated(env: &mut TestEnvironment) {
    env.run(&frs("web", 9, &even(true))).await;
    let dips = env.watch("web").await;
    let orphan = json!({ "propagationPolicy": "Orphan" });
    let path = env.set_path("web");
    env.on_member("a", "DELETE", &path, &orphan).await.unwrap();
    env.wait_until(
        "the local set is recreated with its pods",
        10,
        async |env| {
            let set = env.local_set("a", "web").await;
            set["metadata"]["deletionTimestamp"].is_null()
                && set["status"]["availableReplicas"] == 3
                && env.available("web").await == 9
        },
    )
    .await;
    // For a moment the pods have no owner and no status counts them, but they keep running.
    dips.assert_never_below(6);
}

pub(crate) async fn f32_replicas_over_a_quota_run_elsewhere(env: &mut TestEnvironment) {
    env.set_quota("c", "pods", 2).await;
    env.run(&frs("web", 12, &even(true))).await;
    env.wait_until("the status reports the quota", 60, async |env| {
        let status = env.frs("web").await["status"]["clusters"][2].clone();
        status["desiredReplicas"] == 2 && status["message"].to_string().contains("quota")
    })
    .await;
    env.remove_quota("c").await;
    env.wait_until("c has its share again", 120, async |env| {
        env.sorted_layout("web").await == [4, 4, 4] && env.available("web").await == 12
    })
    .await;
}

pub(crate) async fn f29_another_writer_of_replicas_is_overwritten(env: &mut TestEnvironment) {
    env.run(&frs("web", 9, &even(true))).await;
    let path = env.set_path("web");
    for replicas in [8, 1, 5] {
        let patch = json!({ "spec": { "replicas": replicas } });
        env.on_member("b", "PATCH", &path, &patch).await.unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    env.wait_until("all clusters have their shares again", 90, async |env| {
        env.sorted_layout("web").await == [3, 3, 3] && env.available("web").await == 9
    })
    .await;
}
