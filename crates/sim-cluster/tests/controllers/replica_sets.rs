//! Replica sets: creation, scaling, repair, adoption, release, status.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sim_cluster::Propagation;
use sim_cluster::kinds;

use crate::cluster::{Cluster, condition, is_ready, name, owner, set};

fn names(cluster: &Cluster) -> BTreeSet<String> {
    cluster.pods().iter().map(|pod| name(pod)).collect()
}

#[tokio::test(start_paused = true)]
async fn ten_replicas_become_ten_ready_pods() {
    let cluster = Cluster::new(3, 110).await;
    cluster.create_set("web", 10);
    cluster
        .until("ten are available", |c| {
            c.set("web")["status"]["availableReplicas"] == 10
        })
        .await;
    let status = cluster.set("web")["status"].clone();
    let expected = json!({
        "replicas": 10, "fullyLabeledReplicas": 10, "readyReplicas": 10, "availableReplicas": 10, "terminatingReplicas": 0,
        "observedGeneration": 1,
    });
    assert_eq!(status, expected);
    for pod in cluster.pods() {
        assert!(
            name(&pod).starts_with("web-") && name(&pod).len() == 9,
            "{}",
            name(&pod)
        );
        assert_eq!(
            pod["metadata"]["ownerReferences"][0]["blockOwnerDeletion"],
            true
        );
        assert_eq!(pod["status"]["phase"], "Running");
        assert!(
            cluster
                .events(&name(&pod))
                .contains(&"Scheduled".to_owned())
        );
    }
    assert_eq!(
        (cluster.pods_on("node-1"), cluster.pods_on("node-2")),
        (4, 3)
    );
    assert_eq!(cluster.events("web"), ["SuccessfulCreate"; 10]);
}

#[tokio::test(start_paused = true)]
async fn a_settled_set_causes_no_writes() {
    let cluster = Cluster::new(1, 110).await;
    cluster.create_set("web", 3);
    cluster
        .until("three are ready", |c| {
            c.set("web")["status"]["readyReplicas"] == 3
        })
        .await;
    cluster.pass(5).await;
    let versions = |c: &Cluster| -> Vec<Value> {
        let objects = c.pods().into_iter().chain([c.set("web")]);
        objects
            .map(|object| object["metadata"]["resourceVersion"].clone())
            .collect()
    };
    let before = versions(&cluster);
    cluster.pass(600).await;
    assert_eq!(versions(&cluster), before);
}

#[tokio::test(start_paused = true)]
async fn scale_down_deletes_unready_then_cheap_pods_first() {
    let cluster = Cluster::new(2, 110).await;
    cluster.create_set("web", 4);
    cluster
        .until("four are ready", |c| c.ready_pods() == 4)
        .await;
    let cheap = name(&cluster.pods()[2]);
    cluster.edit(&kinds::PODS, &cheap, |pod| {
        pod["metadata"]["annotations"] =
            json!({"controller.kubernetes.io/pod-deletion-cost": "-1"});
    });
    cluster.edit(&kinds::REPLICA_SETS, "web", |set| {
        set["spec"]["replicas"] = json!(5);
        set["spec"]["template"]["metadata"]["annotations"] =
            json!({"sim-cluster.dev/fail": "never-ready"});
    });
    cluster
        .until("the fifth runs", |c| {
            c.pods()
                .iter()
                .filter(|pod| pod["status"]["phase"] == "Running")
                .count()
                == 5
        })
        .await;
    let unready = cluster
        .pods()
        .iter()
        .find(|pod| !is_ready(pod))
        .map(|pod| name(pod))
        .unwrap();
    cluster.scale("web", 4);
    cluster.until("one is gone", |c| c.pods().len() == 4).await;
    assert!(!cluster.exists(&kinds::PODS, &unready));
    cluster.scale("web", 3);
    cluster
        .until("another is gone", |c| c.pods().len() == 3)
        .await;
    assert!(!cluster.exists(&kinds::PODS, &cheap));
    assert_eq!(cluster.ready_pods(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_is_replaced_before_it_is_removed() {
    let cluster = Cluster::new(1, 110).await;
    cluster.create_set("web", 2);
    cluster
        .until("two are ready", |c| c.ready_pods() == 2)
        .await;
    let victim = name(&cluster.pods()[0]);
    cluster.delete(&kinds::PODS, &victim, None);
    cluster
        .until("a third is there", |c| c.pods().len() == 3)
        .await;
    assert!(cluster.exists(&kinds::PODS, &victim));
    cluster
        .until("it is counted", |c| {
            c.set("web")["status"]["terminatingReplicas"] == 1
        })
        .await;
    cluster
        .until("the old one is gone", |c| !c.exists(&kinds::PODS, &victim))
        .await;
    cluster
        .until("two are ready again", |c| {
            c.set("web")["status"]["readyReplicas"] == 2
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn orphaned_pods_are_adopted() {
    let cluster = Cluster::new(1, 110).await;
    cluster.create_set("web", 3);
    cluster
        .until("three are ready", |c| c.ready_pods() == 3)
        .await;
    let before = names(&cluster);
    cluster.delete(&kinds::REPLICA_SETS, "web", Some(Propagation::Orphan));
    cluster
        .until("the set is gone", |c| {
            !c.exists(&kinds::REPLICA_SETS, "web")
        })
        .await;
    cluster.pass(60).await;
    assert!(cluster.pods().iter().all(|pod| owner(pod).is_empty()));
    let new = cluster.create_set("web", 3);
    cluster
        .until("all are adopted", |c| {
            c.set("web")["status"]["readyReplicas"] == 3
        })
        .await;
    assert_eq!(names(&cluster), before);
    assert!(
        cluster
            .pods()
            .iter()
            .all(|pod| owner(pod) == new["metadata"]["uid"])
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_no_longer_matches_is_released_and_replaced() {
    let cluster = Cluster::new(1, 110).await;
    cluster.create_set("web", 2);
    cluster
        .until("two are ready", |c| c.ready_pods() == 2)
        .await;
    let released = name(&cluster.pods()[0]);
    cluster.edit(&kinds::PODS, &released, |pod| {
        pod["metadata"]["labels"] = json!({"app": "debug"});
    });
    cluster
        .until("there are three", |c| c.ready_pods() == 3)
        .await;
    assert_eq!(owner(&cluster.pod(&released)), "");
    cluster.edit(&kinds::PODS, &released, |pod| {
        pod["metadata"]["labels"] = json!({"app": "web"});
    });
    cluster
        .until("it is taken back and one goes", |c| c.pods().len() == 2)
        .await;
    assert_eq!(cluster.set("web")["status"]["replicas"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_failed_pod_does_not_count() {
    let cluster = Cluster::new(1, 110).await;
    cluster.create_set("web", 1);
    cluster.until("one is ready", |c| c.ready_pods() == 1).await;
    let failed = name(&cluster.pods()[0]);
    cluster
        .api
        .modify(&kinds::PODS, Some("status"), "default", &failed, |pod| {
            pod["status"]["phase"] = json!("Failed");
        })
        .unwrap();
    cluster
        .until("another is ready", |c| {
            c.pods()
                .iter()
                .any(|pod| is_ready(pod) && name(pod) != failed)
        })
        .await;
    assert!(cluster.exists(&kinds::PODS, &failed));
}

#[tokio::test(start_paused = true)]
async fn pods_are_available_after_min_ready_seconds() {
    let cluster = Cluster::new(1, 110).await;
    let mut web = set("web", 2);
    web["spec"]["minReadySeconds"] = json!(30);
    cluster.create(&kinds::REPLICA_SETS, web);
    cluster
        .until("two are ready", |c| {
            c.set("web")["status"]["readyReplicas"] == 2
        })
        .await;
    let ready_at = cluster.api.clock().now();
    assert_eq!(
        cluster.set("web")["status"]["availableReplicas"],
        Value::Null
    );
    cluster
        .until("two are available", |c| {
            c.set("web")["status"]["availableReplicas"] == 2
        })
        .await;
    let waited = cluster
        .api
        .clock()
        .now()
        .duration_since(ready_at)
        .as_millis();
    assert!((29_000..31_000).contains(&waited), "{waited} ms");
}

#[tokio::test(start_paused = true)]
async fn many_sets_settle_in_little_simulated_time() {
    let cluster = Cluster::new(10, 110).await;
    for number in 0..20 {
        cluster.create_set(&format!("web-{number}"), 20);
    }
    let before = cluster.api.clock().now();
    let ready =
        |c: &Cluster, number| c.set(&format!("web-{number}"))["status"]["readyReplicas"] == 20;
    cluster
        .until("all are ready", |c| (0..20).all(|number| ready(c, number)))
        .await;
    let took = cluster.api.clock().now().duration_since(before).as_millis();
    // 400 bindings of a millisecond each, a second to start, and then a status each.
    assert!((1_390..2_000).contains(&took), "{took} ms");
}

#[tokio::test(start_paused = true)]
async fn creation_stops_at_a_quota_and_continues_when_it_is_raised() {
    let cluster = Cluster::new(1, 110).await;
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "3"}}});
    cluster.create(&kinds::RESOURCE_QUOTAS, quota);
    cluster.pass(1).await;
    cluster.create_set("web", 5);
    let failure = |c: &Cluster| condition(&c.set("web"), "ReplicaFailure");
    cluster
        .until("the set says so", |c| {
            failure(c)["status"] == "True" && c.ready_pods() == 3
        })
        .await;
    assert_eq!(failure(&cluster)["reason"], "FailedCreate");
    let message = failure(&cluster)["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("pods \"web-"), "{message}");
    assert!(
        message.ends_with(
            "is forbidden: exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3"
        ),
        "{message}"
    );
    assert!(cluster.events("web").contains(&"FailedCreate".to_owned()));
    cluster.pass(300).await;
    assert_eq!(
        failure(&cluster)["message"],
        message,
        "the first message stays"
    );
    assert_eq!(cluster.set("web")["status"]["replicas"], 3);
    cluster.edit(&kinds::RESOURCE_QUOTAS, "q", |quota| {
        quota["spec"]["hard"]["pods"] = json!("9");
    });
    cluster
        .until("all are ready", |c| {
            c.set("web")["status"]["readyReplicas"] == 5
        })
        .await;
    cluster
        .until("the condition is gone", |c| failure(c).is_null())
        .await;
}
