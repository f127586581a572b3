//! Pods on their nodes: start, readiness, crashes, images, ends; and that the same seed does the same.

use std::time::Duration;

use serde_json::{Value, json};
use sim_cluster::{ChangeEvent, NodeSpec, Settings, kinds};

use crate::cluster::{Cluster, condition, is_ready, pod_spec};

fn create_pod(cluster: &Cluster, annotations: &Value) {
    let pod = json!({"metadata": {"name": "p", "labels": {"app": "p"}, "annotations": annotations}, "spec": pod_spec()});
    cluster.create(&kinds::PODS, pod);
}

fn container(cluster: &Cluster) -> Value {
    cluster.pod("p")["status"]["containerStatuses"][0].clone()
}

/// Rounded to tenths of a second: other parts take milliseconds.
async fn tenths_until_ready(settings: Settings, annotations: Value) -> i128 {
    let cluster = Cluster::with(1, 110, settings).await;
    let before = cluster.api.clock().now();
    create_pod(&cluster, &annotations);
    cluster
        .until("it is ready", |c| is_ready(&c.pod("p")))
        .await;
    cluster
        .api
        .clock()
        .now()
        .duration_since(before)
        .as_millis()
        .saturating_add(50)
        / 100
}

#[tokio::test(start_paused = true)]
async fn start_and_readiness_take_the_time_set() {
    let slow = Settings {
        start_time: Duration::from_secs(4),
        ready_delay: Duration::from_secs(3),
        ..Settings::default()
    };
    assert_eq!(tenths_until_ready(slow.clone(), json!({})).await, 70);
    let quick =
        json!({"sim-cluster.dev/start-seconds": "0.5", "sim-cluster.dev/ready-seconds": "0.1"});
    assert_eq!(tenths_until_ready(slow, quick).await, 6);
}

#[tokio::test(start_paused = true)]
async fn a_crashing_pod_restarts_less_and_less_often() {
    let cluster = Cluster::new(1, 110).await;
    create_pod(&cluster, &json!({"sim-cluster.dev/fail": "crash"}));
    cluster
        .until("it backs off", |c| {
            container(c)["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        })
        .await;
    assert_eq!(
        container(&cluster)["lastState"]["terminated"]["exitCode"],
        1
    );
    // 10 + 20 + 40 + 80 s of waiting, and a second or two of each try.
    cluster.pass(155).await;
    assert_eq!(container(&cluster)["restartCount"], 4);
    cluster.edit(&kinds::PODS, "p", |pod| {
        pod["metadata"]["annotations"] = json!({});
    });
    cluster.until("it is well", |c| is_ready(&c.pod("p"))).await;
    cluster.pass(600).await;
    assert_eq!(container(&cluster)["restartCount"], 5);
}

#[tokio::test(start_paused = true)]
async fn a_missing_image_can_be_corrected_in_place() {
    let cluster = Cluster::new(1, 110).await;
    create_pod(&cluster, &json!({"sim-cluster.dev/fail": "image-pull"}));
    cluster
        .until("it waits", |c| {
            container(c)["state"]["waiting"]["reason"] == "ImagePullBackOff"
        })
        .await;
    assert_eq!(cluster.pod("p")["status"]["phase"], "Pending");
    cluster.edit(&kinds::PODS, "p", |pod| {
        pod["metadata"]["annotations"] = json!({});
    });
    cluster.until("it is well", |c| is_ready(&c.pod("p"))).await;
}

/// A pod that requests one CPU of a node with `cpus`, beside another that requests two.
async fn pod_to_resize(cpus: &str, policy: &str) -> Cluster {
    let cluster = Cluster::new(0, 110).await;
    cluster.add_node(&NodeSpec::new("big").capacity("cpu", cpus));
    for (name, cpu) in [("p", "1"), ("other", "2")] {
        let mut spec = pod_spec();
        spec["containers"][0]["resources"] = json!({"requests": {"cpu": cpu}});
        spec["containers"][0]["resizePolicy"] =
            json!([{"resourceName": "cpu", "restartPolicy": policy}]);
        let pod = json!({"metadata": {"name": name, "labels": {"app": "p"}}, "spec": spec});
        cluster.create(&kinds::PODS, pod);
        cluster
            .until("it is ready", |c| is_ready(&c.pod(name)))
            .await;
    }
    cluster
}

fn resize(cluster: &Cluster, cpu: &str) {
    let change = |pod: &mut Value| {
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!(cpu);
        pod["spec"]["containers"][0]["image"] = json!("ignored:2");
    };
    (cluster.api)
        .modify(&kinds::PODS, Some("resize"), "default", "p", change)
        .unwrap();
}

#[rstest::rstest]
#[case::running("NotRequired", 0)]
#[case::restarted("RestartContainer", 1)]
#[tokio::test(start_paused = true)]
async fn a_pod_is_resized_in_place(#[case] policy: &str, #[case] restarts: u32) {
    let cluster = pod_to_resize("8", policy).await;
    let before = cluster.pod("p");
    resize(&cluster, "3");
    cluster
        .until("it has the resources, and is ready", |c| {
            container(c)["resources"]["requests"]["cpu"] == "3" && is_ready(&c.pod("p"))
        })
        .await;
    let after = cluster.pod("p");
    assert_eq!(container(&cluster)["restartCount"], restarts);
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(after["metadata"]["generation"], 2);
    let image = &before["spec"]["containers"][0]["image"];
    assert_eq!(
        after["spec"]["containers"][0]["image"], *image,
        "only resources"
    );
}

/// Beside a pod of two CPUs, and never, on a node of four; with room for it once the other one is gone.
#[tokio::test(start_paused = true)]
async fn a_resize_waits_for_room_on_the_node() {
    let cluster = pod_to_resize("4", "NotRequired").await;
    let pending = |c: &Cluster| condition(&c.pod("p"), "PodResizePending")["reason"].clone();
    resize(&cluster, "5");
    cluster
        .until("it never fits", |c| pending(c) == "Infeasible")
        .await;
    resize(&cluster, "3");
    cluster
        .until("it has to wait", |c| pending(c) == "Deferred")
        .await;
    assert_eq!(container(&cluster)["resources"]["requests"]["cpu"], "1");
    cluster.delete(&kinds::PODS, "other", None);
    cluster
        .until("it has the resources", |c| {
            container(c)["resources"]["requests"]["cpu"] == "3"
        })
        .await;
    assert_eq!(pending(&cluster), Value::Null);
}

#[tokio::test(start_paused = true)]
async fn an_image_changed_in_place_restarts_the_container_of_the_same_pod() {
    let cluster = Cluster::new(1, 110).await;
    create_pod(&cluster, &json!({}));
    cluster
        .until("it is ready", |c| is_ready(&c.pod("p")))
        .await;
    let before = cluster.pod("p");
    cluster.edit(&kinds::PODS, "p", |pod| {
        pod["spec"]["containers"][0]["image"] = json!("app:2");
    });
    cluster
        .until("it is down", |c| !is_ready(&c.pod("p")))
        .await;
    cluster
        .until("it is up again", |c| is_ready(&c.pod("p")))
        .await;
    let (old, new) = (&before["status"], cluster.pod("p"));
    assert_eq!(
        (
            &container(&cluster)["image"],
            &container(&cluster)["restartCount"]
        ),
        (&json!("app:2"), &json!(1))
    );
    assert_ne!(
        container(&cluster)["imageID"],
        old["containerStatuses"][0]["imageID"]
    );
    assert_eq!(
        (&new["metadata"]["uid"], &new["status"]["podIP"]),
        (&before["metadata"]["uid"], &old["podIP"])
    );
}

#[tokio::test(start_paused = true)]
async fn a_readiness_gate_decides_whether_the_pod_is_ready() {
    let cluster = Cluster::new(1, 110).await;
    let mut spec = pod_spec();
    spec["readinessGates"] = json!([{"conditionType": "example.com/open"}]);
    cluster.create(
        &kinds::PODS,
        json!({"metadata": {"name": "p"}, "spec": spec}),
    );
    cluster
        .until("its containers are ready", |c| {
            condition(&c.pod("p"), "ContainersReady")["status"] == "True"
        })
        .await;
    assert_eq!(
        condition(&cluster.pod("p"), "Ready")["reason"],
        "ReadinessGatesNotReady"
    );
    for (gate, ready) in [("True", true), ("False", false), ("True", true)] {
        let turn = |pod: &mut Value| {
            let conditions = pod["status"]["conditions"].as_array_mut().unwrap();
            conditions.retain(|c| c["type"] != "example.com/open");
            conditions.push(json!({"type": "example.com/open", "status": gate}));
        };
        cluster
            .api
            .modify(&kinds::PODS, Some("status"), "default", "p", turn)
            .unwrap();
        cluster
            .until("readiness follows", |c| is_ready(&c.pod("p")) == ready)
            .await;
    }
}

/// Everything that happened, as kinds, names and phases, with simulated times.
async fn trace() -> Vec<String> {
    let cluster = Cluster::new(3, 4).await;
    let mut changes = cluster.api.changes();
    cluster.create_set("web", 10);
    cluster.create_set("db", 5);
    let mut lines = Vec::new();
    for round in 0..300 {
        match round {
            100 => cluster.fail_node("node-2"),
            120 => cluster.scale("web", 4),
            200 => cluster.recover_node("node-2"),
            _ => {}
        }
        let ChangeEvent::Change(change) = changes.next().await else {
            panic!("the log is long enough")
        };
        let new = change.new.as_ref().map(std::string::ToString::to_string);
        lines.push(format!(
            "{} {} {} {new:?}",
            cluster.api.clock().now(),
            change.kind.kind,
            change.name
        ));
    }
    lines
}

#[test]
fn the_same_seed_does_the_same() {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(trace())
    };
    assert_eq!(run(), run());
}
