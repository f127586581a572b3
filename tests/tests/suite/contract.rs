//! The API of a FederatedReplicaSet (F1 to F6, F26).

use fedrs_api::SetKind;
use fedrs_tests::{even, frs, test_environment::TestEnvironment};
use serde_json::{Value, json};

pub(crate) async fn f1_f6_the_status_reports_the_replicas_of_each_cluster(
    env: &mut TestEnvironment,
) {
    env.run(&frs("web", 9, &even(true))).await;
    env.wait_until("the status reports it", 5, async |env| {
        let status = env.frs("web").await["status"].clone();
        status["readyReplicas"] == 9 && status["summary"] == "3/3"
    })
    .await;
    assert_eq!(env.sorted_layout("web").await, [3, 3, 3]);
    assert_eq!(env.condition("web", "Ready").await.as_deref(), Some("True"));
    assert_eq!(env.frs("web").await["status"]["selector"], "app=web");
    for member in env.member_names() {
        let set = env.local_set(&member, "web").await;
        assert_eq!(
            set["metadata"]["labels"]["fedrs.dev/member-cluster"],
            member
        );
    }
}

pub(crate) async fn f1_scale_by_the_subresource(env: &mut TestEnvironment) {
    env.run(&frs("web", 3, &even(true))).await;
    let has_status =
        async |env: &TestEnvironment| env.frs("web").await["status"]["observedGeneration"] == 1;
    env.wait_until("the status follows", 10, has_status).await;
    let path = format!("{}/scale", env.frs_path("web"));
    let scale = env.on_host("GET", &path, &Value::Null).await.unwrap();
    assert_eq!(scale["spec"]["replicas"], 3);
    assert_eq!(scale["status"]["selector"], "app=web");
    env.on_host("PATCH", &path, &json!({ "spec": { "replicas": 12 } }))
        .await
        .unwrap();
    env.wait_until("12 run", 30, async |env| env.available("web").await == 12)
        .await;
    assert_eq!(env.sorted_layout("web").await, [4, 4, 4]);
}

/// Preferences in the format of `KubeFed`.
pub(crate) async fn f2_preferences_may_be_an_annotation(env: &mut TestEnvironment) {
    let mut set = frs("web", 12, &Value::Null);
    set["spec"].as_object_mut().unwrap().remove("placement");
    let preferences = json!({ "Rebalance": true, "Clusters": { "a": { "Weight": 2 }, "*": { "Weight": 1, "MaxReplicas": 4 } } });
    let key = "federation.kubernetes.io/replica-set-preferences";
    set["metadata"]["annotations"] = json!({ key: preferences.to_string() });
    env.run(&set).await;
    assert_eq!(counts(env).await, [6, 3, 3]);
    let only_a = json!({ "clusters": { "a": { "weight": 1 } }, "rebalance": true }).to_string();
    let patch = json!({ "metadata": { "annotations": { key: only_a } } });
    env.patch("web", &patch).await;
    env.wait_until("all replicas are in a", 60, async |env| {
        counts(env).await == [12, 0, 0] && env.available("web").await == 12
    })
    .await;
}

/// The desired replicas of a, b and c.
async fn counts(env: &TestEnvironment) -> Vec<u64> {
    env.layout("web").await.into_values().collect()
}

pub(crate) async fn f4_the_api_server_rejects_a_change_of_the_federation(
    env: &mut TestEnvironment,
) {
    env.create(&frs("web", 0, &even(true))).await;
    let patch = json!({ "spec": { "federation": "blue" } });
    let result = env.on_host("PATCH", &env.frs_path("web"), &patch).await;
    let Err(kube::Error::Api(status)) = result else {
        panic!("{result:?}");
    };
    assert_eq!(status.code, 422);
    assert!(
        status.message.contains("the federation is immutable"),
        "{}",
        status.message
    );
}

pub(crate) async fn f3_a_cluster_without_an_entry_gets_nothing(env: &mut TestEnvironment) {
    let clusters = json!({ "a": { "weight": 1 }, "c": { "weight": 1 } });
    env.run(&frs("web", 6, &json!({ "clusters": clusters })))
        .await;
    assert_eq!(counts(env).await, [3, 0, 3]);
    let set = env.local_set("b", "web").await;
    assert!(
        set.is_null(),
        "no local set is created without replicas: {set}"
    );
}

pub(crate) async fn f6_lists_and_status_show_the_members(env: &mut TestEnvironment) {
    env.run(&frs("web", 9, &even(true))).await;
    env.wait_until("the columns show the counts", 5, async |env| {
        let table = env.table(&env.frs_path("web")).await;
        let columns = table["columnDefinitions"].as_array().unwrap().iter();
        let cells = table["rows"][0]["cells"].as_array().unwrap();
        // The age is random.
        let line = columns.zip(cells).filter(|(env, _)| env["priority"] == 0);
        let line: Vec<_> = line
            .map(|(column, cell)| (column["name"].as_str().unwrap(), cell.clone()))
            .filter(|(name, _)| *name != "Age")
            .collect();
        let of_deployments = [("Up-to-date", json!(9)), ("Available", json!(9))];
        let of_deployments =
            (of_deployments.into_iter()).filter(|_| env.kind() == SetKind::FederatedDeployment);
        let mut expected = vec![
            ("Name", json!("web")),
            ("Desired", json!(9)),
            ("Ready", json!(9)),
        ];
        expected.extend(of_deployments);
        expected.extend([("Placed", json!(9)), ("Clusters", json!("3/3"))]);
        line == expected
    })
    .await;
    let status = env.frs("web").await["status"].clone();
    let clusters = status["clusters"].as_array().unwrap();
    for (cluster, member) in clusters.iter().zip(["a", "b", "c"]) {
        let counts = ["desiredReplicas", "availableReplicas"].map(|field| cluster[field].as_u64());
        assert_eq!(
            (&cluster["name"], counts),
            (&json!(member), [Some(3); 2]),
            "{cluster}"
        );
        assert!(
            !cluster["message"].as_str().unwrap().is_empty(),
            "{cluster}"
        );
    }
    assert_eq!(clusters.len(), 3);
}

pub(crate) async fn f4_invalid_preferences_change_nothing(env: &mut TestEnvironment) {
    env.run(&frs("web", 9, &even(true))).await;
    let annotation =
        json!({ "federation.kubernetes.io/replica-set-preferences": "{\"clusters\": 5}" });
    let patch = json!({ "metadata": { "annotations": annotation }, "spec": { "placement": null, "replicas": 30 } });
    env.patch("web", &patch).await;
    env.wait_until("the spec is rejected", 5, async |env| {
        env.condition("web", "Accepted").await.as_deref() == Some("False")
    })
    .await;
    assert_eq!(env.sorted_layout("web").await, [3, 3, 3]);
}

pub(crate) async fn f5_deleting_leaves_the_local_sets_running(env: &mut TestEnvironment) {
    env.run(&frs("web", 9, &even(true))).await;
    let dips = env.watch("web").await;
    let path = env.frs_path("web");
    env.on_host("DELETE", &path, &Value::Null).await.unwrap();
    env.wait_until("the object is deleted", 30, async |env| {
        env.frs("web").await.is_null()
    })
    .await;
    for member in env.member_names() {
        let set = env.local_set(&member, "web").await;
        assert_eq!(set["spec"]["replicas"], 3, "{member}");
        let labels = set["metadata"]["labels"].to_string();
        assert!(!labels.contains("fedrs.dev"), "{labels}");
        // In a Deployment a change of the template would replace the pods.
        if env.kind() == SetKind::FederatedReplicaSet {
            let template = set["spec"]["template"].to_string();
            assert!(!template.contains("fedrs.dev"), "{template}");
        }
        for pod in env.pods(&member).await {
            let metadata = &pod["metadata"];
            let marks = match env.kind() {
                SetKind::FederatedReplicaSet => {
                    format!("{} {}", metadata["labels"], metadata["annotations"])
                }
                SetKind::FederatedDeployment => metadata["labels"].to_string(),
            };
            assert!(!marks.contains("fedrs.dev"), "{marks}");
        }
    }
    dips.assert_never_below(9);
}

/// The default policy leaves the local ReplicaSets, also in a foreground deletion; the policy `Delete` deletes them, also in the
/// background.
pub(crate) async fn f5_the_deletion_policy_decides_whatever_the_cascade(env: &mut TestEnvironment) {
    env.run(&frs("web", 9, &even(true))).await;
    let path = env.frs_path("web");
    for (policy, cascade) in [("Orphan", "Foreground"), ("Delete", "Background")] {
        let patch = json!({ "spec": { "deletionPolicy": policy } });
        env.patch("web", &patch).await;
        let options = json!({ "propagationPolicy": cascade });
        env.on_host("DELETE", &path, &options).await.unwrap();
        env.wait_until("the object is deleted", 30, async |env| {
            env.frs("web").await.is_null()
        })
        .await;
        if policy == "Orphan" {
            assert_eq!(env.sorted_layout("web").await, [3, 3, 3]);
            env.run(&frs("web", 9, &even(true))).await;
            // Its replicas were available before it existed: they are adopted first.
            env.wait_until("they are adopted", 30, async |env| {
                env.condition("web", "Ready").await.as_deref() == Some("True")
            })
            .await;
        }
    }
    env.wait_until("all its sets are gone", 30, async |env| {
        env.available("web").await == 0 && env.local_set("a", "web").await.is_null()
    })
    .await;
}

pub(crate) async fn f26_a_missing_namespace_is_created(env: &mut TestEnvironment) {
    let path = format!("/api/v1/namespaces/{}", env.namespace());
    env.on_member("b", "DELETE", &path, &Value::Null)
        .await
        .unwrap();
    env.wait_until("b has no such namespace", 60, async |env| {
        env.on_member("b", "GET", &path, &Value::Null)
            .await
            .is_err()
    })
    .await;
    env.create(&frs("web", 3, &even(true))).await;
    env.wait_until("the namespace is created in b", 10, async |env| {
        env.layout("web").await["b"] == 1
    })
    .await;
    env.wait_until("all replicas are available", 60, async |env| {
        env.available("web").await == 3
    })
    .await;
    assert_eq!(env.sorted_layout("web").await, [1, 1, 1]);
}

pub(crate) async fn thirty_sets_at_once(env: &mut TestEnvironment) {
    let names: Vec<_> = (1..=30).map(|number| format!("web-{number}")).collect();
    for name in &names {
        env.create(&frs(name, 3, &even(true))).await;
    }
    for name in &names {
        env.wait_until("each set is available and evenly spread", 60, async |env| {
            env.available(name).await == 3 && env.sorted_layout(name).await == [1, 1, 1]
        })
        .await;
    }
}

/// Without pod metrics on the host, the autoscaler keeps the set between its minimum and its maximum.
pub(crate) async fn an_autoscaler_scales_the_set(env: &mut TestEnvironment) {
    let kind = match env.kind() {
        SetKind::FederatedReplicaSet => "FederatedReplicaSet",
        SetKind::FederatedDeployment => "FederatedDeployment",
    };
    env.run(&frs("web", 3, &even(true))).await;
    let path = format!(
        "/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers",
        env.namespace()
    );
    let autoscaler = json!({
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": { "name": "web" },
        "spec": {
            "scaleTargetRef": { "apiVersion": "fedrs.dev/v1alpha1", "kind": kind, "name": "web" },
            "minReplicas": 9,
            "maxReplicas": 12,
        },
    });
    env.on_host("POST", &path, &autoscaler).await.unwrap();
    env.wait_until("9 run", 60, async |env| env.available("web").await == 9)
        .await;
    let lower = json!({ "spec": { "minReplicas": 1, "maxReplicas": 6 } });
    env.on_host("PATCH", &format!("{path}/web"), &lower)
        .await
        .unwrap();
    env.wait_until("6 run", 60, async |env| env.available("web").await == 6)
        .await;
    assert_eq!(env.sorted_layout("web").await, [2, 2, 2]);
}
