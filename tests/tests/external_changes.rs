//! Users and other controllers also write the local ReplicaSets: the controller restores them with backoff, and reports it
//! (F29, F31).

#![expect(clippy::unwrap_used, reason = "a test that can't go on ends")]

use std::time::Duration;

use fedrs_tests::{ReadyWatcher, SimFederation, SimFederationSpec, even, frs};
use serde_json::{Value, json};
use sim_cluster::kinds::REPLICA_SETS;

const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
const WEB: &str = "/apis/apps/v1/namespaces/default/replicasets/web";

/// A plain ReplicaSet of another user in a member.
fn foreign(replicas: u32, image: &str, label: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": { "name": "web", "namespace": "default", "labels": { "team": "blue" } },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": label } },
            "template": {
                "metadata": { "labels": { "app": label } },
                "spec": { "containers": [{ "name": "main", "image": image }] },
            },
        },
    })
}

/// The owner references of a ReplicaSet that a Deployment `web` of the member controls. It is paused, so that it creates
/// none, and specifies one replica.
async fn owned_by_a_deployment(federation: &SimFederation, member: &str) -> Value {
    let mut deployment = foreign(1, "old:1", "web");
    deployment["kind"] = json!("Deployment");
    deployment["spec"]["paused"] = json!(true);
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let deployment = federation
        .on_member(member, "POST", path, &deployment)
        .await
        .unwrap();
    json!([{
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "web",
        "uid": deployment["metadata"]["uid"],
        "controller": true,
    }])
}

#[tokio::test(start_paused = true)]
async fn f29_a_local_set_with_another_selector_is_replaced_without_its_pods() {
    let federation = SimFederation::start(SimFederationSpec::default()).await;
    federation
        .on_member("a", "POST", SETS, &foreign(2, "old:1", "old"))
        .await
        .unwrap();
    federation
        .wait_until("2 run in a", 30, async |federation| {
            federation.available("web") == 2
        })
        .await;
    federation.create(&frs("web", 9, &even(true))).await;
    federation
        .wait_until("all clusters have their shares", 90, async |federation| {
            let set = federation.local_set("a", "web").unwrap_or_default();
            set["spec"]["selector"]["matchLabels"]["app"] == "web"
                && federation.available("web") == 9
        })
        .await;
    let pods = federation.on_member(
        "a",
        "GET",
        "/api/v1/namespaces/default/pods?labelSelector=app%3Dold",
        &Value::Null,
    );
    assert_eq!(
        pods.await.unwrap()["items"].as_array().unwrap().len(),
        2,
        "its pods keep running"
    );
    let messages = federation.event_messages("web", "Overwritten").await;
    let expected = "a: deleted an existing ReplicaSet of this name (replicas 2, images old:1, selector app=old) without its \
                    pods, because its selector is immutable";
    assert_eq!(messages, [expected]);
}

#[tokio::test(start_paused = true)]
async fn f40_a_local_set_of_another_federation_is_not_changed() {
    let mut other = foreign(2, "old:1", "web");
    other["metadata"]["labels"]["fedrs.dev/federation"] = json!("another");
    let federation = SimFederation::start(SimFederationSpec::default()).await;
    let made = federation
        .on_member("a", "POST", SETS, &other)
        .await
        .unwrap();
    federation.create(&frs("web", 9, &even(true))).await;
    federation
        .wait_until("the condition is reported", 30, async |federation| {
            federation.condition("web", "NameConflict").await.as_deref() == Some("True")
        })
        .await;
    let set = federation.local_set("a", "web").unwrap();
    assert_eq!(set["spec"], made["spec"]);
    federation
        .wait_until(
            "the other clusters run all replicas",
            180,
            async |federation| {
                let layout = federation.layout("web");
                layout["b"] + layout["c"] == 9
            },
        )
        .await;
}

/// A write of another controller to the local ReplicaSet `web` in member a.
async fn write_as_another_controller(federation: &SimFederation, change: &Value) {
    let path = format!("{WEB}?fieldManager=other-controller");
    // The local ReplicaSet may not exist for a moment.
    let _ = federation.on_member("a", "PATCH", &path, change).await;
}

/// The writes of fedrs to the local ReplicaSet in member a, by its generation; `others` are the writes of others.
fn writes_of_fedrs(federation: &SimFederation, others: i64) -> i64 {
    let set = federation.local_set("a", "web").unwrap();
    set["metadata"]["generation"].as_i64().unwrap() - others
}

#[tokio::test(start_paused = true)]
async fn f29_another_writer_of_a_local_set_is_overwritten_with_backoff() {
    let image = json!([{ "name": "main", "image": "registry.example/other:1" }]);
    let template = json!({ "spec": { "template": { "spec": { "containers": image } } } });
    for (change, is_undone) in [
        (
            json!({ "spec": { "replicas": 7 } }),
            (|set| set["spec"]["replicas"] == 3) as fn(&Value) -> bool,
        ),
        (template, |set| {
            let containers = &set["spec"]["template"]["spec"]["containers"];
            containers[0]["image"] == "registry.example/main:1"
        }),
    ] {
        let federation = SimFederation::running(9).await;
        let watcher = ReadyWatcher::start(&federation, "web");
        let before = writes_of_fedrs(&federation, 0);
        let (mut changes, mut undone) = (0, Vec::new());
        let started = tokio::time::Instant::now();
        // Another controller reverts our write immediately, for five minutes.
        while started.elapsed() < Duration::from_secs(300) {
            let set = federation.local_set("a", "web").unwrap();
            if is_undone(&set) {
                undone.push(started.elapsed().as_secs());
                write_as_another_controller(&federation, &change).await;
                changes += 1;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(
            undone,
            [0, 0, 10, 30, 70, 130, 190, 250],
            "the drift is repaired immediately, then with backoff up to a minute"
        );
        assert_eq!(
            writes_of_fedrs(&federation, changes) - before,
            7,
            "one write for each"
        );
        assert_eq!(watcher.lowest(), 9, "no replica stopped");
        drop(watcher);
        let message = federation
            .condition_message("web", "Contended")
            .await
            .unwrap();
        assert!(
            message.contains("the ReplicaSet in a") && message.contains("other-controller"),
            "{message}"
        );
        let reasons = federation.event_reasons("web").await;
        for reason in ["DriftRepaired", "Contended"] {
            assert!(reasons.contains(&reason.to_owned()), "{reasons:?}");
        }
        federation
            .wait_until("the drift is repaired", 61, async |federation| {
                is_undone(&federation.local_set("a", "web").unwrap())
            })
            .await;
        drift_counts_expire(&federation).await;
    }
}

/// Drift counts expire after ten minutes without drift, and cause no further write.
async fn drift_counts_expire(federation: &SimFederation) {
    tokio::time::sleep(Duration::from_secs(590)).await;
    assert!(federation.condition("web", "Contended").await.is_some());
    federation
        .wait_until("the drift count expires", 12, async |federation| {
            federation.condition("web", "Contended").await.is_none()
        })
        .await;
    let writes = federation.writes();
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(federation.writes(), writes);
}

#[tokio::test(start_paused = true)]
async fn f31_a_local_set_that_is_deleted_repeatedly_is_recreated_with_backoff() {
    let federation = SimFederation::running(9).await;
    let orphan = json!({ "propagationPolicy": "Orphan" });
    let (started, mut made) = (tokio::time::Instant::now(), Vec::new());
    while started.elapsed() < Duration::from_secs(200) {
        if federation.local_set("a", "web").is_some() {
            made.push(started.elapsed().as_secs());
            federation
                .on_member("a", "DELETE", WEB, &orphan)
                .await
                .unwrap();
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(made, [0, 0, 10, 30, 70, 130, 190]);
    assert_eq!(
        federation.condition("web", "Contended").await.as_deref(),
        Some("True")
    );
    federation
        .wait_until(
            "the local set is recreated with its pods",
            70,
            async |federation| {
                federation.sorted_layout("web") == [3, 3, 3] && federation.available("web") == 9
            },
        )
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_write_fails_if_the_spec_changed_since_its_decision() {
    let spec = |set: &mut Value| set["spec"]["replicas"] = json!(7);
    let mark = |set: &mut Value| set["metadata"]["labels"]["fedrs.dev/federation"] = json!("other");
    let note = |set: &mut Value| set["metadata"]["annotations"] = json!({ "note": "by hand" });
    let status = |set: &mut Value| set["status"]["terminatingReplicas"] = json!(1);
    for (what, subresource, change, conflicts) in [
        ("spec", None, spec as fn(&mut Value), 1),
        ("federation", None, mark, 1),
        ("annotation", None, note, 0),
        ("status", Some("status"), status, 0),
    ] {
        let federation = SimFederation::running(9).await;
        federation
            .member("a")
            .faults()
            .set_latency(Duration::from_secs(5));
        let before = federation.conflicts();
        federation
            .patch("web", &json!({ "spec": { "replicas": 15 } }))
            .await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        // Our write is in flight.
        let api = federation.member("a").api();
        api.modify(&REPLICA_SETS, subresource, "default", "web", change)
            .unwrap();
        tokio::time::sleep(Duration::from_secs(6)).await;
        assert_eq!(federation.conflicts() - before, conflicts, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn f29_a_local_set_that_gets_a_controller_owner_is_released() {
    let federation = SimFederation::running(9).await;
    let owners = owned_by_a_deployment(&federation, "a").await;
    let adopt = |set: &mut Value| {
        set["metadata"]["ownerReferences"] = owners.clone();
        // A Deployment releases ReplicaSets that its selector does not match.
        set["metadata"]["labels"]["app"] = json!("web");
        set["spec"]["replicas"] = json!(1);
    };
    let api = federation.member("a").api();
    api.modify(&REPLICA_SETS, None, "default", "web", adopt)
        .unwrap();
    federation
        .wait_until("the condition is reported", 10, async |federation| {
            federation.condition("web", "NameConflict").await.as_deref() == Some("True")
        })
        .await;
    federation
        .wait_until(
            "the other clusters run all replicas",
            180,
            async |federation| {
                let layout = federation.layout("web");
                layout["a"] == 1 && layout["b"] + layout["c"] == 9
            },
        )
        .await;
}

#[tokio::test(start_paused = true)]
async fn f28_a_template_that_all_members_reject_stops_no_scaling() {
    let federation = SimFederation::running(6).await;
    let container = |port: u32| {
        json!({ "spec": { "template": { "spec": { "containers": [{
            "name": "main", "image": "registry.example/main:1", "ports": [{ "containerPort": port }],
        }] } } } })
    };
    federation.patch("web", &container(99_999_999)).await;
    federation
        .wait_until("the rejection is reported", 30, async |federation| {
            federation.condition("web", "Accepted").await.as_deref() == Some("False")
        })
        .await;
    let message = federation
        .condition_message("web", "Accepted")
        .await
        .unwrap();
    let field = "spec.template.spec.containers[0].ports[0].containerPort";
    assert!(message.contains(field), "{message}");
    assert_eq!(
        federation.condition("web", "Stalled").await.as_deref(),
        Some("True")
    );
    federation
        .patch("web", &json!({ "spec": { "replicas": 12 } }))
        .await;
    federation
        .wait_until("12 run", 30, async |federation| {
            federation.available("web") == 12
        })
        .await;
    federation.patch("web", &container(8080)).await;
    federation
        .wait_until(
            "the corrected template is accepted",
            30,
            async |federation| {
                let set = federation.local_set("a", "web").unwrap_or_default();
                set["spec"]["template"]["spec"]["containers"][0]["ports"][0]["containerPort"]
                    == 8080
                    && federation.condition("web", "Accepted").await.as_deref() == Some("True")
            },
        )
        .await;
    assert_eq!(federation.condition("web", "Stalled").await, None);
    assert_eq!(federation.available("web"), 12);
}
