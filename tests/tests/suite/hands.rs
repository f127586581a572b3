//! Other hands in a member: people, Deployments, quotas (E1 to E7, F28 to F32).

use std::time::Duration;

use fedrs_tests::{even, frs, stage::Stage};
use serde_json::{Value, json};

pub(crate) async fn f28_a_refused_creation_goes_elsewhere_and_comes_back(stage: &mut Stage) {
    stage.limit("c", "count/replicasets.apps", 0).await;
    stage.create(&frs("web", 12, &even(true))).await;
    stage
        .wait_until("the others have it all", 60, async |it| {
            it.sorted_layout("web").await == [0, 6, 6] && it.available("web").await == 12
        })
        .await;
    let status = stage.frs("web").await["status"]["clusters"][2].clone();
    assert!(status["message"].to_string().contains("quota"), "{status}");
    let dips = stage.watch("web").await;
    stage.unlimit("c").await;
    stage
        .wait_until("c has its share", 90, async |it| {
            it.sorted_layout("web").await == [4, 4, 4] && it.available("web").await == 12
        })
        .await;
    dips.assert_never_below(12);
}

/// In another member each: what is changed again and again is put right more slowly.
pub(crate) async fn f29_drift_is_repaired(stage: &mut Stage) {
    stage.run(&frs("web", 9, &even(true))).await;
    let path = stage.set_path("web");
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
        let changed = stage.on_member(member, "PATCH", &path, &change).await;
        assert!(!is_repaired(&changed.unwrap()), "{member}");
        stage
            .wait_until(&format!("{member} is repaired"), 5, async |it| {
                is_repaired(&it.local_set(member, "web").await)
            })
            .await;
    }
    stage
        .wait_until("an event says so", 5, async |it| {
            it.event_reasons("web")
                .await
                .contains(&"DriftRepaired".to_owned())
        })
        .await;
}

/// A plain ReplicaSet that somebody made in a member.
fn foreign(replicas: u32) -> Value {
    let mut set = frs("web", replicas, &Value::Null);
    set["apiVersion"] = json!("apps/v1");
    set["kind"] = json!("ReplicaSet");
    set["metadata"] = json!({ "name": "web", "labels": { "team": "blue" } });
    set["spec"].as_object_mut().unwrap().remove("placement");
    set["spec"]["template"]["spec"]["containers"][0]["image"] = json!("registry.example/old:1");
    set
}

fn sets_path(stage: &Stage) -> String {
    stage.set_path("").trim_end_matches('/').to_owned()
}

pub(crate) async fn f29_f30_a_foreign_set_is_overwritten_and_its_pods_are_adopted(
    stage: &mut Stage,
) {
    let made = stage
        .on_member("a", "POST", &sets_path(stage), &foreign(5))
        .await
        .unwrap();
    stage
        .wait_until("5 run in a", 60, async |it| it.available("web").await == 5)
        .await;
    let dips = stage.watch("web").await;
    stage.create(&frs("web", 9, &even(true))).await;
    stage
        .wait_until("shared out", 60, async |it| {
            it.sorted_layout("web").await == [3, 3, 3] && it.available("web").await == 9
        })
        .await;
    let set = stage.local_set("a", "web").await;
    assert_eq!(
        set["metadata"]["uid"], made["metadata"]["uid"],
        "written over, not made anew"
    );
    assert_eq!(
        set["metadata"]["labels"]["team"], "blue",
        "others' labels stay"
    );
    assert_eq!(
        set["spec"]["template"]["spec"]["containers"][0]["image"],
        "registry.example/main:1"
    );
    let reasons = stage.event_reasons("web").await;
    assert!(reasons.contains(&"Overwritten".to_owned()), "{reasons:?}");
    stage
        .wait_until("its pods are marked", 90, async |it| {
            let pods = it.pods("a").await;
            let alive = pods
                .iter()
                .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
            let mut marks = alive.map(|pod| &pod["metadata"]["labels"]["fedrs.dev/replica-set"]);
            marks.all(|mark| mark == "web")
        })
        .await;
    stage
        .wait_until("told that they are of another template", 10, async |it| {
            it.condition("web", "TemplateOutdated").await.as_deref() == Some("True")
        })
        .await;
    dips.assert_never_below(5);
}

pub(crate) async fn f29_a_set_that_a_deployment_owns_is_left_alone(stage: &mut Stage) {
    let mut deployment = foreign(2);
    deployment["kind"] = json!("Deployment");
    let path = sets_path(stage).replace("replicasets", "deployments");
    let deployment = stage
        .on_member("a", "POST", &path, &deployment)
        .await
        .unwrap();
    let mut set = foreign(2);
    // A Deployment lets go of what its selector doesn't match.
    set["metadata"]["labels"]["app"] = json!("web");
    set["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "web",
        "uid": deployment["metadata"]["uid"],
        "controller": true,
    }]);
    let made = stage
        .on_member("a", "POST", &sets_path(stage), &set)
        .await
        .unwrap();
    stage.create(&frs("web", 9, &even(true))).await;
    stage
        .wait_until("told", 30, async |it| {
            it.condition("web", "NameConflict").await.as_deref() == Some("True")
        })
        .await;
    stage
        .wait_until("the others have it all", 120, async |it| {
            let layout = it.layout("web").await;
            layout["b"] + layout["c"] == 9
        })
        .await;
    let set = stage.local_set("a", "web").await;
    assert_eq!(set["metadata"]["labels"], made["metadata"]["labels"]);
    assert_eq!(set["spec"], made["spec"]);
}

pub(crate) async fn f31_a_deleted_set_is_made_again(stage: &mut Stage) {
    stage.run(&frs("web", 9, &even(true))).await;
    let dips = stage.watch("web").await;
    let orphan = json!({ "propagationPolicy": "Orphan" });
    let path = stage.set_path("web");
    stage
        .on_member("a", "DELETE", &path, &orphan)
        .await
        .unwrap();
    stage
        .wait_until("made again, and its pods adopted", 10, async |it| {
            let set = it.local_set("a", "web").await;
            set["metadata"]["deletionTimestamp"].is_null()
                && set["status"]["availableReplicas"] == 3
                && it.available("web").await == 9
        })
        .await;
    // Pods without an owner are in nobody's count for a moment, but they go on.
    dips.assert_never_below(6);
}

pub(crate) async fn f32_a_quota_moves_what_could_not_be_created(stage: &mut Stage) {
    stage.limit("c", "pods", 2).await;
    stage.run(&frs("web", 12, &even(true))).await;
    stage
        .wait_until("the status tells of the quota", 60, async |it| {
            let status = it.frs("web").await["status"]["clusters"][2].clone();
            status["desiredReplicas"] == 2 && status["message"].to_string().contains("quota")
        })
        .await;
    stage.unlimit("c").await;
    stage
        .wait_until("c has its share", 120, async |it| {
            it.sorted_layout("web").await == [4, 4, 4] && it.available("web").await == 12
        })
        .await;
}

pub(crate) async fn another_writer_of_replicas_is_outlasted(stage: &mut Stage) {
    stage.run(&frs("web", 9, &even(true))).await;
    let path = stage.set_path("web");
    for replicas in [8, 1, 5] {
        let patch = json!({ "spec": { "replicas": replicas } });
        stage.on_member("b", "PATCH", &path, &patch).await.unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    stage
        .wait_until("as it was", 90, async |it| {
            it.sorted_layout("web").await == [3, 3, 3] && it.available("web").await == 9
        })
        .await;
}
