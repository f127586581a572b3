//! Deployments: rollouts, rollback, pausing, scaling in a rollout, progress, history, adoption.

use serde_json::{Value, json};
use sim_cluster::{Propagation, kinds};

use crate::cluster::{Cluster, condition, name, owner, set};
use crate::web::{count, deployment, image, reason, rolling, sizes};

const REVISION: &str = "deployment.kubernetes.io/revision";

#[tokio::test(start_paused = true)]
async fn a_deployment_creates_a_replica_set_with_its_hash() {
    let cluster = Cluster::new(2, 110).await;
    let mut web = deployment(3);
    web["metadata"]["annotations"] = json!({"kubernetes.io/change-cause": "first"});
    let web = cluster.create_deployment(web);
    cluster.until_rolled_out().await;
    let set = &cluster.sets()[0];
    let hash = set["metadata"]["labels"]["pod-template-hash"]
        .as_str()
        .unwrap();
    assert_eq!(name(set), format!("web-{hash}"));
    assert_eq!(owner(set), web["metadata"]["uid"]);
    let labels = json!({"app": "web", "pod-template-hash": hash});
    assert_eq!(set["spec"]["selector"], json!({"matchLabels": labels}));
    assert_eq!(
        set["metadata"]["annotations"],
        json!({
            "kubernetes.io/change-cause": "first", REVISION: "1",
            "deployment.kubernetes.io/desired-replicas": "3", "deployment.kubernetes.io/max-replicas": "4",
        })
    );
    for pod in cluster.pods() {
        assert_eq!(pod["metadata"]["labels"], labels);
        assert!(name(&pod).starts_with(&format!("web-{hash}-")));
    }
    let mut status = cluster.web()["status"].clone();
    let conditions = status["conditions"].take();
    let expected = json!({
        "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3, "terminatingReplicas": 0,
        "observedGeneration": 1, "conditions": null,
    });
    assert_eq!(status, expected);
    let described = |kind: &str| {
        let found = conditions.as_array().unwrap().iter();
        let found = found.filter(|condition| condition["type"] == kind);
        let fields = |c: &Value| ["status", "reason", "message"].map(|field| c[field].clone());
        found.map(fields).next().unwrap()
    };
    let message = "Deployment has minimum availability.";
    assert_eq!(
        described("Available"),
        ["True", "MinimumReplicasAvailable", message]
    );
    let message = format!("ReplicaSet \"web-{hash}\" has successfully progressed.");
    assert_eq!(
        described("Progressing"),
        ["True", "NewReplicaSetAvailable", &message]
    );
    assert_eq!(
        cluster.messages(),
        [format!("Scaled up replica set web-{hash} from 0 to 3")]
    );
    assert_eq!(cluster.web()["metadata"]["annotations"][REVISION], "1");
}

#[tokio::test(start_paused = true)]
async fn a_settled_deployment_causes_no_writes() {
    let cluster = Cluster::new(1, 110).await;
    cluster.create_deployment(deployment(2));
    cluster.until_rolled_out().await;
    cluster.pass(5).await;
    let versions = |c: &Cluster| -> Vec<Value> {
        let objects = c.sets().into_iter().chain([c.web()]);
        objects
            .map(|object| object["metadata"]["resourceVersion"].clone())
            .collect()
    };
    let before = versions(&cluster);
    cluster.pass(1_800).await;
    assert_eq!(versions(&cluster), before);
}

#[tokio::test(start_paused = true)]
async fn a_rolling_update_stays_within_its_limits() {
    let cluster = Cluster::new(3, 110).await;
    cluster.create_deployment(rolling(10, 3, 2));
    cluster.until_rolled_out().await;
    cluster.set_image("app:2");
    cluster
        .until("it is rolled out within its limits", |c| {
            let specified: u64 = c.sizes().iter().map(|(_, size)| size).sum();
            assert!(specified <= 13, "{:?}", c.sizes());
            assert!(c.ready_pods() >= 8, "{} are ready", c.ready_pods());
            image(&c.web()) == "app:2" && c.sets().len() == 2 && c.is_rolled_out()
        })
        .await;
    assert_eq!(cluster.sizes(), sizes(&[("app:1", 0), ("app:2", 10)]));
    let (old, new) = (cluster.set_of("app:1"), cluster.set_of("app:2"));
    let expected = [
        format!("Scaled up replica set {} from 0 to 10", name(&old)),
        format!("Scaled up replica set {} from 0 to 3", name(&new)),
        format!("Scaled down replica set {} from 10 to 8", name(&old)),
        format!("Scaled up replica set {} from 3 to 5", name(&new)),
    ];
    let messages = cluster.messages();
    assert!(
        expected.iter().all(|message| messages.contains(message)),
        "{messages:#?}"
    );
    assert_eq!(new["metadata"]["annotations"][REVISION], "2");
}

#[tokio::test(start_paused = true)]
async fn a_rollback_uses_the_old_replica_set_with_a_new_revision() {
    let cluster = Cluster::new(1, 110).await;
    cluster.create_deployment(deployment(2));
    cluster.until_rolled_out().await;
    let first = name(&cluster.sets()[0]);
    cluster.set_image("app:2");
    cluster
        .until("the second is there", |c| c.sets().len() == 2)
        .await;
    cluster.until_rolled_out().await;
    cluster.set_image("app:1");
    cluster
        .until("the first grows again", |c| {
            count(&c.set(&first), "availableReplicas") == 2
        })
        .await;
    cluster.until_rolled_out().await;
    assert_eq!(cluster.sizes(), sizes(&[("app:1", 2), ("app:2", 0)]));
    let annotations = &cluster.set(&first)["metadata"]["annotations"];
    assert_eq!(annotations[REVISION], "3");
    assert_eq!(
        annotations["deployment.kubernetes.io/revision-history"],
        "1"
    );
    assert_eq!(cluster.web()["metadata"]["annotations"][REVISION], "3");
}

#[tokio::test(start_paused = true)]
async fn a_paused_deployment_scales_and_does_not_roll_out() {
    let cluster = Cluster::new(1, 110).await;
    cluster.create_deployment(deployment(2));
    cluster.until_rolled_out().await;
    cluster.change(|spec| spec["paused"] = json!(true));
    cluster
        .until("it is paused", |c| {
            reason(&c.web(), "Progressing") == "DeploymentPaused"
        })
        .await;
    cluster.set_image("app:2");
    cluster.change(|spec| spec["replicas"] = json!(4));
    cluster
        .until("four are available", |c| {
            count(&c.web(), "availableReplicas") == 4
        })
        .await;
    cluster.pass(3_600).await;
    assert_eq!(cluster.sizes(), sizes(&[("app:1", 4)]));
    assert_eq!(count(&cluster.web(), "updatedReplicas"), 0);
    cluster.change(|spec| spec["paused"] = json!(false));
    cluster
        .until("it is resumed", |c| {
            reason(&c.web(), "Progressing") == "DeploymentResumed"
        })
        .await;
    cluster.until_rolled_out().await;
    assert_eq!(cluster.sizes(), sizes(&[("app:1", 0), ("app:2", 4)]));
}

#[tokio::test(start_paused = true)]
async fn recreate_stops_all_old_pods_before_the_first_new_one() {
    let cluster = Cluster::new(1, 110).await;
    let mut web = deployment(3);
    web["spec"]["strategy"] = json!({"type": "Recreate"});
    cluster.create_deployment(web);
    cluster.until_rolled_out().await;
    cluster.set_image("app:2");
    cluster
        .until("it is rolled out without both at once", |c| {
            let pods = c.pods();
            let images: std::collections::BTreeSet<_> = pods.iter().map(|pod| image(pod)).collect();
            assert!(images.len() < 2, "{images:?}");
            c.sets().len() == 2 && c.is_rolled_out()
        })
        .await;
    assert_eq!(cluster.sizes(), sizes(&[("app:1", 0), ("app:2", 3)]));
}

#[tokio::test(start_paused = true)]
async fn a_missing_image_exceeds_the_deadline_and_is_rolled_back() {
    let cluster = Cluster::new(1, 110).await;
    let mut web = rolling(4, 1, 1);
    web["spec"]["progressDeadlineSeconds"] = json!(60);
    cluster.create_deployment(web);
    cluster.until_rolled_out().await;
    cluster.change(|spec| {
        spec["template"]["metadata"]["annotations"] = json!({"sim-cluster.dev/fail": "image-pull"});
    });
    let started = cluster.api.clock().now();
    cluster
        .until("the deadline is exceeded", |c| {
            reason(&c.web(), "Progressing") == "ProgressDeadlineExceeded"
        })
        .await;
    let waited = cluster.api.clock().now().duration_since(started).as_secs();
    assert!((60..70).contains(&waited), "{waited} s");
    let web = cluster.web();
    assert_eq!(condition(&web, "Progressing")["status"], "False");
    assert_eq!(reason(&web, "Available"), "MinimumReplicasAvailable");
    assert_eq!(
        (
            count(&web, "updatedReplicas"),
            count(&web, "availableReplicas")
        ),
        (2, 3)
    );
    cluster.change(|spec| spec["template"]["metadata"]["annotations"] = Value::Null);
    cluster.until_rolled_out().await;
    assert_eq!(cluster.ready_pods(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_deployment_that_is_scaled_in_a_rollout_scales_both_sets() {
    let cluster = Cluster::new(2, 110).await;
    cluster.create_deployment(rolling(10, 3, 2));
    cluster.until_rolled_out().await;
    cluster.change(|spec| {
        spec["template"]["spec"]["containers"][0]["image"] = json!("app:2");
        spec["template"]["metadata"]["annotations"] =
            json!({"sim-cluster.dev/fail": "never-ready"});
    });
    cluster
        .until("it is stuck", |c| {
            c.sizes() == sizes(&[("app:1", 8), ("app:2", 5)])
        })
        .await;
    cluster.pass(30).await;
    cluster.change(|spec| spec["replicas"] = json!(15));
    cluster
        .until("both grow", |c| {
            c.sizes() == sizes(&[("app:1", 11), ("app:2", 7)])
        })
        .await;
    cluster.pass(30).await;
    for set in cluster.sets() {
        let annotations = &set["metadata"]["annotations"];
        let [desired, most] = ["desired", "max"]
            .map(|which| annotations[format!("deployment.kubernetes.io/{which}-replicas")].clone());
        assert_eq!([desired, most], ["15", "18"]);
    }
    assert_eq!(cluster.sizes(), sizes(&[("app:1", 11), ("app:2", 7)]));
}

#[tokio::test(start_paused = true)]
async fn old_replica_sets_beyond_the_limit_are_deleted() {
    let cluster = Cluster::new(1, 110).await;
    let mut web = deployment(1);
    web["spec"]["revisionHistoryLimit"] = json!(2);
    cluster.create_deployment(web);
    cluster.until_rolled_out().await;
    for number in 2..=5 {
        let image = format!("app:{number}");
        cluster.set_image(&image);
        cluster
            .until("there is a new one", |c| {
                c.sets().iter().any(|set| self::image(set) == image)
            })
            .await;
        cluster.until_rolled_out().await;
    }
    cluster
        .until("two old ones are left", |c| c.sets().len() == 3)
        .await;
    let kept = sizes(&[("app:3", 0), ("app:4", 0), ("app:5", 1)]);
    assert_eq!(cluster.sizes(), kept);
    cluster.change(|spec| spec["revisionHistoryLimit"] = json!(0));
    cluster
        .until("no old ones are left", |c| c.sets().len() == 1)
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_orphaned_replica_set_is_adopted_with_its_pods() {
    let cluster = Cluster::new(1, 110).await;
    cluster.create_deployment(deployment(3));
    cluster.until_rolled_out().await;
    let (set, pods) = (
        name(&cluster.sets()[0]),
        cluster
            .pods()
            .iter()
            .map(|pod| name(pod))
            .collect::<Vec<_>>(),
    );
    cluster.delete(&kinds::DEPLOYMENTS, "web", Some(Propagation::Orphan));
    cluster
        .until("it is gone", |c| !c.exists(&kinds::DEPLOYMENTS, "web"))
        .await;
    cluster.pass(10).await;
    assert_eq!(owner(&cluster.set(&set)), "");
    let web = cluster.create_deployment(deployment(3));
    cluster.until_rolled_out().await;
    assert_eq!(owner(&cluster.set(&set)), web["metadata"]["uid"]);
    let now: Vec<_> = cluster.pods().iter().map(|pod| name(pod)).collect();
    assert_eq!((now, cluster.sets().len()), (pods, 1));
    assert_eq!(cluster.web()["metadata"]["annotations"][REVISION], "1");
}

#[tokio::test(start_paused = true)]
async fn a_replica_set_without_a_hash_is_adopted_and_a_changed_one_released() {
    let cluster = Cluster::new(1, 110).await;
    cluster.create(&kinds::REPLICA_SETS, set("web", 2));
    // The set has no labels of its own: nothing matches it.
    cluster
        .until("two are ready", |c| c.ready_pods() == 2)
        .await;
    cluster.edit(&kinds::REPLICA_SETS, "web", |set| {
        set["metadata"]["labels"] = json!({"app": "web"});
    });
    let pods: Vec<_> = cluster.pods().iter().map(|pod| name(pod)).collect();
    let web = cluster.create_deployment(deployment(2));
    cluster.until_rolled_out().await;
    assert_eq!(owner(&cluster.set("web")), web["metadata"]["uid"]);
    assert_eq!(cluster.sets().len(), 1);
    let now: Vec<_> = cluster.pods().iter().map(|pod| name(pod)).collect();
    assert_eq!(now, pods);
    cluster.edit(&kinds::REPLICA_SETS, "web", |set| {
        set["metadata"]["labels"] = json!({"app": "other"});
    });
    cluster
        .until("another is created", |c| c.sets().len() == 2)
        .await;
    assert_eq!(owner(&cluster.set("web")), "");
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_taken_leads_to_another_hash() {
    let cluster = Cluster::new(1, 110).await;
    cluster.create_deployment(deployment(1));
    cluster.until_rolled_out().await;
    let taken = name(&cluster.sets()[0]);
    cluster.edit(&kinds::REPLICA_SETS, &taken, |set| {
        set["metadata"]["labels"] = json!({"app": "other"});
    });
    cluster
        .until("another is created", |c| c.sets().len() == 2)
        .await;
    cluster.until_rolled_out().await;
    assert_eq!(cluster.web()["status"]["collisionCount"], 1);
}

#[tokio::test(start_paused = true)]
async fn pods_count_as_available_after_min_ready_seconds() {
    let cluster = Cluster::new(1, 110).await;
    let mut web = rolling(2, 1, 0);
    web["spec"]["minReadySeconds"] = json!(30);
    cluster.create_deployment(web);
    let started = cluster.api.clock().now();
    cluster.until_rolled_out().await;
    let waited = cluster.api.clock().now().duration_since(started).as_secs();
    assert!((30..35).contains(&waited), "{waited} s");
    cluster.change(|spec| spec["minReadySeconds"] = json!(5));
    cluster
        .until("its set follows", |c| {
            c.sets()[0]["spec"]["minReadySeconds"] == 5
        })
        .await;
    assert_eq!(cluster.sets().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_quota_is_a_replica_failure_until_it_is_lifted() {
    let cluster = Cluster::new(1, 110).await;
    cluster.create(
        &kinds::RESOURCE_QUOTAS,
        json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}}),
    );
    cluster
        .until("the quota is counted", |c| {
            let quota = c.api.get(&kinds::RESOURCE_QUOTAS, "default", "q").unwrap();
            quota["status"]["hard"]["pods"] == "1"
        })
        .await;
    cluster.create_deployment(deployment(2));
    cluster
        .until("a failure is reported", |c| {
            reason(&c.web(), "ReplicaFailure") == "FailedCreate"
        })
        .await;
    assert_eq!(
        reason(&cluster.web(), "Available"),
        "MinimumReplicasUnavailable"
    );
    cluster.delete(&kinds::RESOURCE_QUOTAS, "q", None);
    cluster.until_rolled_out().await;
    assert_eq!(reason(&cluster.web(), "ReplicaFailure"), "");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_deployment_takes_its_sets_and_pods_along() {
    let cluster = Cluster::new(1, 110).await;
    cluster.create_deployment(deployment(2));
    cluster.until_rolled_out().await;
    cluster.delete(&kinds::DEPLOYMENTS, "web", Some(Propagation::Foreground));
    cluster
        .until("all is gone", |c| {
            !c.exists(&kinds::DEPLOYMENTS, "web") && c.sets().is_empty() && c.pods().is_empty()
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn annotations_are_copied_and_count_as_a_generation() {
    let cluster = Cluster::new(1, 110).await;
    cluster.create_deployment(deployment(1));
    cluster.until_rolled_out().await;
    cluster.edit(&kinds::DEPLOYMENTS, "web", |web| {
        web["metadata"]["annotations"]["kubernetes.io/change-cause"] = json!("second");
    });
    assert_eq!(cluster.web()["metadata"]["generation"], 2);
    cluster
        .until("its set has it", |c| {
            c.sets()[0]["metadata"]["annotations"]["kubernetes.io/change-cause"] == "second"
        })
        .await;
    cluster.until_rolled_out().await;
    assert_eq!(cluster.sets().len(), 1);
}

/// A change of the replicas right after one of the template, before the controller has seen either.
#[tokio::test(start_paused = true)]
async fn a_template_and_replicas_that_change_at_once_are_rolled_out() {
    let cluster = Cluster::new(2, 110).await;
    cluster.create_deployment(rolling(3, 0, 1));
    cluster.until_rolled_out().await;
    cluster.set_image("app:2");
    cluster.change(|spec| spec["replicas"] = json!(2));
    cluster.until_rolled_out().await;
    assert_eq!(cluster.sizes(), sizes(&[("app:1", 0), ("app:2", 2)]));
}
