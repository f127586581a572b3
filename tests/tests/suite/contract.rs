//! What a FederatedReplicaSet promises to its user (F1 to F6, F26).

use fedrs_tests::{even, frs, stage::Stage};
use serde_json::{Value, json};

pub(crate) async fn f1_the_status_tells_what_runs_where(stage: &mut Stage) {
    stage.run(&frs("web", 9, &even(true))).await;
    stage
        .wait_until("the status says so", 5, async |it| {
            let status = it.frs("web").await["status"].clone();
            status["readyReplicas"] == 9 && status["summary"] == "3/3"
        })
        .await;
    assert_eq!(stage.sorted_layout("web").await, [3, 3, 3]);
    assert_eq!(
        stage.condition("web", "Ready").await.as_deref(),
        Some("True")
    );
    assert_eq!(stage.frs("web").await["status"]["selector"], "app=web");
    for member in stage.member_names() {
        let set = stage.local_set(&member, "web").await;
        assert_eq!(
            set["metadata"]["labels"]["fedrs.dev/member-cluster"],
            member
        );
    }
}

pub(crate) async fn f1_scale_by_the_subresource(stage: &mut Stage) {
    stage.run(&frs("web", 3, &even(true))).await;
    let path = format!("{}/scale", stage.frs_path("web"));
    let scale = stage.on_host("GET", &path, &Value::Null).await.unwrap();
    assert_eq!(scale["spec"]["replicas"], 3);
    assert_eq!(scale["status"]["selector"], "app=web");
    stage
        .on_host("PATCH", &path, &json!({ "spec": { "replicas": 12 } }))
        .await
        .unwrap();
    stage
        .wait_until("12 run", 30, async |it| it.available("web").await == 12)
        .await;
    assert_eq!(stage.sorted_layout("web").await, [4, 4, 4]);
}

/// As the document writes them.
pub(crate) async fn f2_preferences_may_be_an_annotation(stage: &mut Stage) {
    let mut set = frs("web", 12, &Value::Null);
    set["spec"].as_object_mut().unwrap().remove("placement");
    let preferences = json!({ "Rebalance": true, "Clusters": { "a": { "Weight": 2 }, "*": { "Weight": 1, "MaxReplicas": 4 } } });
    let key = "federation.kubernetes.io/replica-set-preferences";
    set["metadata"]["annotations"] = json!({ key: preferences.to_string() });
    stage.run(&set).await;
    assert_eq!(counts(stage).await, [6, 3, 3]);
    let only_a = json!({ "clusters": { "a": { "weight": 1 } }, "rebalance": true }).to_string();
    let patch = json!({ "metadata": { "annotations": { key: only_a } } });
    stage.patch("web", &patch).await;
    stage
        .wait_until("a has it all", 60, async |it| {
            counts(it).await == [12, 0, 0] && it.available("web").await == 12
        })
        .await;
}

/// Replicas asked of a, b and c.
async fn counts(stage: &Stage) -> Vec<u64> {
    stage.layout("web").await.into_values().collect()
}

pub(crate) async fn f3_a_cluster_without_an_entry_gets_nothing(stage: &mut Stage) {
    let clusters = json!({ "a": { "weight": 1 }, "c": { "weight": 1 } });
    stage
        .run(&frs("web", 6, &json!({ "clusters": clusters })))
        .await;
    assert_eq!(counts(stage).await, [3, 0, 3]);
    let set = stage.local_set("b", "web").await;
    assert!(set.is_null(), "none is made where nothing runs: {set}");
}

pub(crate) async fn f6_lists_and_status_show_the_members(stage: &mut Stage) {
    stage.run(&frs("web", 9, &even(true))).await;
    stage
        .wait_until("the line says so", 5, async |it| {
            let table = it.table(&it.frs_path("web")).await;
            let columns = table["columnDefinitions"].as_array().unwrap().iter();
            let cells = table["rows"][0]["cells"].as_array().unwrap();
            // The age is chance.
            let line = columns.zip(cells).filter(|(it, _)| it["priority"] == 0);
            let line: Vec<_> = line
                .map(|(column, cell)| (column["name"].as_str().unwrap(), cell.clone()))
                .filter(|(name, _)| *name != "Age")
                .collect();
            line == [
                ("Name", json!("web")),
                ("Desired", json!(9)),
                ("Ready", json!(9)),
                ("Placed", json!(9)),
                ("Clusters", json!("3/3")),
            ]
        })
        .await;
    let status = stage.frs("web").await["status"].clone();
    let clusters = status["clusters"].as_array().unwrap();
    for (cluster, member) in clusters.iter().zip(["a", "b", "c"]) {
        let counts = ["desiredReplicas", "availableReplicas"].map(|it| cluster[it].as_u64());
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

pub(crate) async fn f4_invalid_preferences_change_nothing(stage: &mut Stage) {
    stage.run(&frs("web", 9, &even(true))).await;
    let annotation =
        json!({ "federation.kubernetes.io/replica-set-preferences": "{\"clusters\": 5}" });
    let patch = json!({ "metadata": { "annotations": annotation }, "spec": { "placement": null, "replicas": 30 } });
    stage.patch("web", &patch).await;
    stage
        .wait_until("it is refused", 5, async |it| {
            it.condition("web", "Accepted").await.as_deref() == Some("False")
        })
        .await;
    assert_eq!(stage.sorted_layout("web").await, [3, 3, 3]);
}

pub(crate) async fn f5_deleting_leaves_the_local_sets_running(stage: &mut Stage) {
    stage.run(&frs("web", 9, &even(true))).await;
    let dips = stage.watch("web").await;
    let path = stage.frs_path("web");
    stage.on_host("DELETE", &path, &Value::Null).await.unwrap();
    stage
        .wait_until("it is gone", 30, async |it| it.frs("web").await.is_null())
        .await;
    for member in stage.member_names() {
        let set = stage.local_set(&member, "web").await;
        assert_eq!(set["spec"]["replicas"], 3, "{member}");
        let labels = set["metadata"]["labels"].to_string();
        assert!(!labels.contains("fedrs.dev"), "{labels}");
        let template = set["spec"]["template"].to_string();
        assert!(!template.contains("fedrs.dev"), "{template}");
        for pod in stage.pods(&member).await {
            let metadata = &pod["metadata"];
            let marks = format!("{} {}", metadata["labels"], metadata["annotations"]);
            assert!(!marks.contains("fedrs.dev"), "{marks}");
        }
    }
    dips.assert_never_below(9);
}

/// The default policy leaves the local sets, also in a foreground deletion; the policy `Delete` deletes them, also in the
/// background.
pub(crate) async fn f5_the_deletion_policy_decides_whatever_the_cascade(stage: &mut Stage) {
    stage.run(&frs("web", 9, &even(true))).await;
    let path = stage.frs_path("web");
    for (policy, cascade) in [("Orphan", "Foreground"), ("Delete", "Background")] {
        let patch = json!({ "spec": { "deletionPolicy": policy } });
        stage.patch("web", &patch).await;
        let options = json!({ "propagationPolicy": cascade });
        stage.on_host("DELETE", &path, &options).await.unwrap();
        stage
            .wait_until("it is gone", 30, async |it| it.frs("web").await.is_null())
            .await;
        if policy == "Orphan" {
            assert_eq!(stage.sorted_layout("web").await, [3, 3, 3]);
            stage.run(&frs("web", 9, &even(true))).await;
        }
    }
    stage
        .wait_until("all its sets are gone", 30, async |it| {
            it.available("web").await == 0 && it.local_set("a", "web").await.is_null()
        })
        .await;
}

pub(crate) async fn f26_a_missing_namespace_is_made(stage: &mut Stage) {
    let path = format!("/api/v1/namespaces/{}", stage.namespace());
    stage
        .on_member("b", "DELETE", &path, &Value::Null)
        .await
        .unwrap();
    stage
        .wait_until("b has no such namespace", 60, async |it| {
            it.on_member("b", "GET", &path, &Value::Null).await.is_err()
        })
        .await;
    stage.create(&frs("web", 3, &even(true))).await;
    stage
        .wait_until("it is made there", 10, async |it| {
            it.layout("web").await["b"] == 1
        })
        .await;
    stage
        .wait_until("all run", 60, async |it| it.available("web").await == 3)
        .await;
    assert_eq!(stage.sorted_layout("web").await, [1, 1, 1]);
}

pub(crate) async fn thirty_sets_at_once(stage: &mut Stage) {
    let names: Vec<_> = (1..=30).map(|number| format!("web-{number}")).collect();
    for name in &names {
        stage.create(&frs(name, 3, &even(true))).await;
    }
    for name in &names {
        stage
            .wait_until("each runs, evenly", 60, async |it| {
                it.available(name).await == 3 && it.sorted_layout(name).await == [1, 1, 1]
            })
            .await;
    }
}

/// Without metrics of pods on the host it keeps the set between its minimum and its maximum.
pub(crate) async fn an_autoscaler_scales_the_set(stage: &mut Stage) {
    stage.run(&frs("web", 3, &even(true))).await;
    let path = format!(
        "/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers",
        stage.namespace()
    );
    let autoscaler = json!({
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": { "name": "web" },
        "spec": {
            "scaleTargetRef": { "apiVersion": "fedrs.dev/v1alpha1", "kind": "FederatedReplicaSet", "name": "web" },
            "minReplicas": 9,
            "maxReplicas": 12,
        },
    });
    stage.on_host("POST", &path, &autoscaler).await.unwrap();
    stage
        .wait_until("9 run", 60, async |it| it.available("web").await == 9)
        .await;
    let lower = json!({ "spec": { "minReplicas": 1, "maxReplicas": 6 } });
    stage
        .on_host("PATCH", &format!("{path}/web"), &lower)
        .await
        .unwrap();
    stage
        .wait_until("6 run", 60, async |it| it.available("web").await == 6)
        .await;
    assert_eq!(stage.sorted_layout("web").await, [2, 2, 2]);
}
