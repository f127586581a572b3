//! Members that reject, hang, disconnect or forget their history.

use std::time::Duration;

use fedrs_tests::{ReadyWatcher, SimFederation, SimFederationSpec, even, frs, minutes};
use serde_json::{Value, json};
use sim_cluster::{RequestMatcher, Status, Verb};

#[tokio::test(start_paused = true)]
async fn f28_rejected_replicas_run_elsewhere_and_return() {
    let federation = SimFederation::start(SimFederationSpec::default()).await;
    let creations = RequestMatcher::all()
        .verb(Verb::Create)
        .resource("replicasets");
    let refusal = sim_cluster::Status::forbidden(
        &sim_cluster::kinds::REPLICA_SETS,
        "web",
        "a webhook says no",
    );
    federation
        .member("c")
        .faults()
        .refuse(creations, 4, refusal);
    federation.create(&frs("web", 12, &even(true))).await;
    federation
        .wait_until(
            "the other clusters run all replicas",
            120,
            async |federation| {
                let layout = federation.layout("web");
                (layout["a"], layout["b"]) == (6, 6) && federation.available("web") == 12
            },
        )
        .await;
    let status = federation.frs("web").await["status"]["clusters"][2].clone();
    assert!(
        status["message"]
            .as_str()
            .unwrap()
            .contains("a webhook says no"),
        "{status}"
    );
    let watcher = ReadyWatcher::start(&federation, "web");
    federation
        .wait_until("c has its share again", 1800, async |federation| {
            federation.sorted_layout("web") == [4, 4, 4] && federation.available("web") == 12
        })
        .await;
    assert_eq!(watcher.lowest(), 12);
    assert!(federation.member("c").faults().counts().refused >= 4);
}

/// The API server of the member responds with an internal error to each change of a ReplicaSet.
#[tokio::test(start_paused = true)]
async fn f28_a_webhook_that_is_down_stops_no_replicas() {
    let federation = SimFederation::running(6).await;
    let changes = RequestMatcher::all()
        .verb(Verb::Patch)
        .resource("replicasets");
    let failure = sim_cluster::Status::internal("failed calling webhook \"images.example.com\"");
    let faults = federation.member("c").faults();
    faults.refuse(changes, u32::MAX, failure);
    let watcher = ReadyWatcher::start(&federation, "web");
    let container = json!([{ "name": "web", "image": "nginx:2" }]);
    let template = json!({ "spec": { "containers": container } });
    let change = json!({ "spec": { "replicas": 12, "template": template } });
    federation.patch("web", &change).await;
    federation
        .wait_until(
            "the other clusters run the new replicas",
            180,
            async |federation| {
                federation.sorted_layout("web") == [2, 5, 5] && federation.available("web") == 12
            },
        )
        .await;
    let status = federation.frs("web").await["status"]["clusters"][2].clone();
    assert_eq!(status["reason"], "WriteRejected", "{status}");
    let message = status["message"].as_str().unwrap();
    assert!(message.contains("images.example.com"), "{status}");
    federation.member("c").faults().heal();
    federation
        .wait_until("c has its share again", 1800, async |federation| {
            federation.sorted_layout("web") == [4, 4, 4] && federation.available("web") == 12
        })
        .await;
    assert_eq!(watcher.lowest(), 6);
}

#[tokio::test(start_paused = true)]
async fn f39_a_member_whose_watches_are_silent_gives_up_nothing_elsewhere() {
    let federation = SimFederation::running(12).await;
    federation.member("c").faults().set_watches_stalled(true);
    for number in 1..=3 {
        federation
            .member("c")
            .fail_node(&format!("c-node-{number}"));
    }
    // Bookmarks came each minute; the pods of c, which are dead by now, were seen last when they were ready.
    tokio::time::sleep(Duration::from_secs(95)).await;
    let elsewhere = |federation: &SimFederation| {
        let sets = federation.sets("web");
        sets["a"].available + sets["b"].available
    };
    assert_eq!(elsewhere(&federation), 8);
    federation
        .patch("web", &json!({ "spec": { "replicas": 8 } }))
        .await;
    for _ in 0..120 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(elsewhere(&federation), 8);
    }
    let status = federation.frs("web").await["status"]["clusters"][2].clone();
    assert_eq!(status["availableReplicas"], 0, "all was listed: {status}");
    federation.member("c").faults().set_watches_stalled(false);
    federation
        .wait_until("the others run all replicas", 300, async |federation| {
            elsewhere(federation) == 8
                && federation
                    .member_condition("c", "Synced")
                    .await
                    .starts_with("True")
        })
        .await;
}

/// Deployments are watched once the first FederatedDeployment needs them, and one member answers later than the others.
#[tokio::test(start_paused = true)]
async fn f23_the_first_deployment_of_a_federation_is_laid_out_over_all_members() {
    let mut federation = SimFederation::start(SimFederationSpec::default()).await;
    minutes(5).await;
    let lists = RequestMatcher::all()
        .verb(Verb::List)
        .resource("deployments");
    let busy = Status::new(503, "ServiceUnavailable", "the server is starting");
    federation.member("c").faults().refuse(lists, 2, busy);
    federation.deploys("web");
    federation.create(&frs("web", 12, &even(false))).await;
    federation
        .wait_until("all replicas run", 60, async |federation| {
            federation.available("web") == 12
        })
        .await;
    assert_eq!(federation.member("c").faults().counts().refused, 2);
    let frs = federation.frs("web").await;
    let clusters = frs["status"]["clusters"].as_array().unwrap();
    let replicas: Vec<_> = clusters
        .iter()
        .map(|cluster| cluster["replicas"].as_u64())
        .collect();
    assert_eq!(replicas, [Some(4); 3]);
}

#[tokio::test(start_paused = true)]
async fn a_hanging_member_blocks_no_other_member() {
    let federation = SimFederation::start(SimFederationSpec::default()).await;
    federation.create(&frs("first", 3, &even(true))).await;
    federation
        .wait_until("the first set is available", 30, async |federation| {
            federation.available("first") == 3
        })
        .await;
    federation.member("c").faults().set_hanging(true);
    let names: Vec<String> = (0..20).map(|n| format!("web-{n}")).collect();
    for name in &names {
        federation.create(&frs(name, 4, &even(true))).await;
    }
    federation
        .wait_until("a and b have their shares", 5, async |federation| {
            names
                .iter()
                .all(|name| federation.layout(name)["a"] >= 1 && federation.layout(name)["b"] >= 1)
        })
        .await;
    federation.member("c").faults().heal();
    federation
        .wait_until(
            "events report c, too, although it answered late",
            60,
            async |federation| {
                let events = federation.event_messages("web-0", "Created").await;
                events.iter().any(|event| event.contains("c: created"))
            },
        )
        .await;
    federation
        .wait_until("all replicas are available", 180, async |federation| {
            names.iter().all(|name| federation.available(name) >= 4)
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn f39_a_lost_watch_and_a_compacted_history_change_nothing() {
    let federation = SimFederation::running(12).await;
    let watcher = ReadyWatcher::start(&federation, "web");
    for name in federation.member_names() {
        federation.member(&name).faults().compact();
        federation.member(&name).faults().cut_watches();
    }
    federation.host().faults().compact();
    federation.host().faults().cut_watches();
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!((watcher.lowest(), watcher.highest()), (12, 12));
    federation
        .patch("web", &json!({ "spec": { "replicas": 15 } }))
        .await;
    federation
        .wait_until("the set scales up", 30, async |federation| {
            federation.available("web") == 15
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn f40_a_set_of_another_federation_is_not_handled() {
    let federation = SimFederation::start(SimFederationSpec::default()).await;
    let mut set = frs("web", 3, &even(true));
    set["spec"]["federation"] = json!("another");
    federation.create(&set).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(federation.sorted_layout("web"), [0, 0, 0]);
    // The default of the CRD: no controller has observed it.
    let status = &federation.frs("web").await["status"];
    assert_eq!(status["observedGeneration"], -1, "{status}");
}

/// With a name of its own, the controller needs no permission to read the id of the host.
#[tokio::test(start_paused = true)]
async fn f40_a_federation_with_a_name_needs_no_id_of_its_host() {
    let mut spec = SimFederationSpec::default();
    spec.config.federation = "fleet".to_owned();
    let mut federation = SimFederation::start_clusters(spec).await;
    let id = RequestMatcher::all().verb(Verb::Get).resource("namespaces");
    let kind = &sim_cluster::kinds::NAMESPACES;
    let refusal = sim_cluster::Status::forbidden(kind, "kube-system", "no rule for it");
    federation.host().faults().refuse(id, u32::MAX, refusal);
    federation.start_controller().await;
    let mut set = frs("web", 3, &even(true));
    set["spec"]["federation"] = json!("fleet");
    federation.create(&set).await;
    federation
        .wait_until("all replicas are available", 30, async |federation| {
            federation.available("web") == 3
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn f39_a_returned_member_is_listed_before_its_replicas_count() {
    // The member is unreachable for so short a time that no watch becomes stale.
    let mut spec = SimFederationSpec::default();
    spec.config.probe.period = Duration::from_secs(1);
    spec.config.lost_grace_period = Some(Duration::from_secs(4));
    spec.config.stabilization_window = Duration::from_secs(4);
    let federation = SimFederation::start(spec).await;
    federation.create(&frs("web", 50, &even(true))).await;
    federation
        .wait_until("50 run", 30, async |federation| {
            federation.available("web") == 50
        })
        .await;
    federation.member("b").faults().set_unreachable(true);
    federation
        .wait_until(
            "its replicas run in other clusters",
            180,
            async |federation| federation.available("web") >= 66,
        )
        .await;
    // b loses all its replicas while it is unreachable.
    let none = |set: &mut Value| set["spec"]["replicas"] = json!(0);
    let kind = &sim_cluster::kinds::REPLICA_SETS;
    federation
        .member("b")
        .api()
        .modify(kind, None, "default", "web", none)
        .unwrap();
    federation
        .wait_until("b has no replicas", 30, async |federation| {
            federation.available("web") == 50
        })
        .await;
    let watcher = ReadyWatcher::start(&federation, "web");
    federation.member("b").faults().set_unreachable(false);
    federation
        .wait_until("balanced again", 60, async |federation| {
            federation.sorted_layout("web") == [16, 17, 17] && federation.available("web") == 50
        })
        .await;
    assert_eq!(watcher.lowest(), 50);
}

#[tokio::test(start_paused = true)]
async fn f5_an_unreachable_member_blocks_deletion_until_the_deadline() {
    let federation = SimFederation::running(9).await;
    federation.member("c").faults().set_unreachable(true);
    let path = "/apis/fedrs.dev/v1alpha1/namespaces/default/federatedreplicasets/web";
    tokio::time::sleep(Duration::from_secs(40)).await;
    federation
        .on_host("DELETE", path, &Value::Null)
        .await
        .unwrap();
    let has_event = async |federation: &SimFederation, reason: &str| {
        federation
            .event_reasons("web")
            .await
            .contains(&reason.to_owned())
    };
    federation
        .wait_until("the condition is reported", 10, async |federation| {
            has_event(federation, "DeletionPending").await
        })
        .await;
    tokio::time::sleep(Duration::from_secs(500)).await;
    assert!(
        !federation.frs("web").await.is_null(),
        "the deadline of 10 min is not over"
    );
    federation
        .wait_until("the object is deleted", 120, async |federation| {
            federation.frs("web").await.is_null()
        })
        .await;
    assert!(has_event(&federation, "LeftBehind").await);
    assert_eq!(federation.available("web"), 9, "all replicas keep running");
}

#[tokio::test(start_paused = true)]
async fn f5_a_deletion_does_not_change_a_member_whose_kubeconfig_was_removed() {
    let mut federation = SimFederation::running(9).await;
    federation.remove_member("c").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let path = "/apis/fedrs.dev/v1alpha1/namespaces/default/federatedreplicasets/web";
    federation
        .on_host("DELETE", path, &Value::Null)
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(590)).await;
    assert!(!federation.frs("web").await.is_null(), "the deletion waits");
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(federation.frs("web").await.is_null());
    let reasons = federation.event_reasons("web").await;
    assert!(reasons.contains(&"LeftBehind".to_owned()), "{reasons:?}");
    let labels = federation.local_set("c", "web").unwrap()["metadata"]["labels"].to_string();
    assert!(labels.contains("fedrs.dev"), "{labels}");
}

#[tokio::test(start_paused = true)]
async fn f5_a_deletion_waits_for_a_pending_creation() {
    let federation = SimFederation::start(SimFederationSpec::default()).await;
    // By then the controller knows all members.
    tokio::time::sleep(Duration::from_secs(12)).await;
    federation
        .member("c")
        .faults()
        .set_latency(Duration::from_secs(4));
    federation.create(&frs("web", 9, &even(true))).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let path = "/apis/fedrs.dev/v1alpha1/namespaces/default/federatedreplicasets/web";
    federation
        .on_host("DELETE", path, &Value::Null)
        .await
        .unwrap();
    federation
        .wait_until("the object is deleted", 60, async |federation| {
            federation.frs("web").await.is_null()
        })
        .await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    for member in federation.member_names() {
        let set = federation.local_set(&member, "web").unwrap_or_default();
        let labels = set["metadata"]["labels"].to_string();
        assert!(!labels.contains("fedrs.dev"), "{member}: {labels}");
    }
}

#[tokio::test(start_paused = true)]
async fn f5_a_deletion_waits_for_a_member_that_may_have_carried_out_a_failed_creation() {
    let federation = SimFederation::start(SimFederationSpec::default()).await;
    // By then the controller knows all members.
    tokio::time::sleep(Duration::from_secs(12)).await;
    let faults = federation.member("c").faults();
    faults.set_resource_stalled("replicasets", true);
    let creations = RequestMatcher::all()
        .verb(Verb::Create)
        .resource("replicasets");
    faults.lose_responses(creations, 1);
    federation.create(&frs("web", 9, &even(true))).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(federation.local_set("c", "web").is_some());
    faults.set_unreachable(true);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let path = "/apis/fedrs.dev/v1alpha1/namespaces/default/federatedreplicasets/web";
    federation
        .on_host("DELETE", path, &Value::Null)
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!federation.frs("web").await.is_null(), "the deletion waits");
    faults.heal();
    federation
        .wait_until("the object is deleted", 60, async |federation| {
            federation.frs("web").await.is_null()
        })
        .await;
    let labels = federation.local_set("c", "web").unwrap()["metadata"]["labels"].to_string();
    assert!(!labels.contains("fedrs.dev"), "{labels}");
}

#[tokio::test(start_paused = true)]
async fn f20_what_is_created_beside_others_is_recorded_first() {
    let mut spec = SimFederationSpec::default();
    spec.members.truncate(2);
    let federation = SimFederation::start(spec).await;
    let clusters = |a: u32, b: u32| json!({ "a": { "weight": a }, "b": { "weight": b } });
    let placement = json!({ "rebalance": true, "clusters": clusters(1, 0) });
    federation.create(&frs("web", 4, &placement)).await;
    federation
        .wait_until("a runs all replicas", 30, async |federation| {
            federation.available("web") == 4
        })
        .await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let path = "/apis/fedrs.dev/v1alpha1/namespaces/default/federatedreplicasets/web";
    let spread = json!({ "spec": { "placement": { "clusters": clusters(1, 1) } } });
    federation.on_host("PATCH", path, &spread).await.unwrap();
    let statuses = RequestMatcher::all()
        .verb(Verb::Patch)
        .resource("federatedreplicasets");
    let refusal = sim_cluster::Status::internal("no space left");
    federation.host().faults().refuse(statuses, 2, refusal);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(
        federation.local_set("b", "web").is_none(),
        "the host does not know of it yet"
    );
    federation
        .wait_until("both run replicas", 60, async |federation| {
            federation.sorted_layout("web") == [2, 2]
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn f39_a_decision_that_waited_too_long_is_made_again() {
    let mut spec = SimFederationSpec::default();
    spec.members.truncate(1);
    spec.config.calls_per_member = 1;
    let federation = SimFederation::start(spec).await;
    let names = ["web", "shop", "mail"];
    for name in names {
        federation.create(&frs(name, 3, &even(true))).await;
    }
    federation
        .wait_until("all replicas are available", 30, async |federation| {
            names.iter().all(|name| federation.available(name) == 3)
        })
        .await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let generation = |federation: &SimFederation| {
        let set = federation.local_set("a", "mail").unwrap();
        set["metadata"]["generation"].clone()
    };
    let before = generation(&federation);
    // Each call takes longer than its timeout; the other calls wait for it.
    federation
        .member("a")
        .faults()
        .set_latency(Duration::from_secs(15));
    for name in names {
        federation
            .patch(name, &json!({ "spec": { "replicas": 5 } }))
            .await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    federation
        .patch("mail", &json!({ "spec": { "replicas": 3 } }))
        .await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    federation.member("a").faults().heal();
    federation
        .wait_until(
            "the other clusters have scaled up",
            120,
            async |federation| {
                federation.available("web") == 5 && federation.available("shop") == 5
            },
        )
        .await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(generation(&federation), before, "c was never scaled");
}

/// As if the set had changed since: the requests are known not to be carried out, so that all replicas stay available.
#[tokio::test(start_paused = true)]
async fn f20_scale_downs_that_members_reject_are_decided_again_at_once() {
    let federation = SimFederation::running(12).await;
    for name in federation.member_names() {
        let patches = RequestMatcher::all()
            .verb(Verb::Patch)
            .resource("replicasets");
        let refusal = sim_cluster::Status::conflict(
            &sim_cluster::kinds::REPLICA_SETS,
            "web",
            "the object has been modified",
        );
        federation
            .member(&name)
            .faults()
            .refuse(patches, 1, refusal);
    }
    federation
        .patch("web", &json!({ "spec": { "replicas": 6 } }))
        .await;
    federation
        .wait_until("scaled down", 10, async |federation| {
            federation.sorted_layout("web") == [2, 2, 2] && federation.available("web") == 6
        })
        .await;
}
