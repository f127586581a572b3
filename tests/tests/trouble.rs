//! Members and people that make trouble: refused, foreign, slow, broken, changed by hand.

use std::time::Duration;

use fedrs_tests::{Fleet, FleetSpec, ReadyWatcher, even, frs};
use serde_json::{Value, json};
use sim_cluster::{RequestMatcher, Verb};

#[tokio::test(start_paused = true)]
async fn f28_refused_creations_go_elsewhere_and_come_back() {
    let fleet = Fleet::start(FleetSpec::default()).await;
    let creations = RequestMatcher::all()
        .verb(Verb::Create)
        .resource("replicasets");
    let refusal = sim_cluster::Status::forbidden(
        &sim_cluster::kinds::REPLICA_SETS,
        "web",
        "a webhook says no",
    );
    fleet.member("c").faults().refuse(creations, 4, refusal);
    fleet.create(&frs("web", 12, &even(true))).await;
    fleet
        .wait_until("the others have it all", 120, async |it| {
            let layout = it.layout("web");
            (layout["a"], layout["b"]) == (6, 6) && it.available("web") == 12
        })
        .await;
    let status = fleet.frs("web").await["status"]["clusters"][2].clone();
    assert!(
        status["message"]
            .as_str()
            .unwrap()
            .contains("a webhook says no"),
        "{status}"
    );
    let watcher = ReadyWatcher::start(&fleet, "web");
    fleet
        .wait_until("c has its share", 1800, async |it| {
            it.sorted_layout("web") == [4, 4, 4] && it.available("web") == 12
        })
        .await;
    assert_eq!(watcher.lowest(), 12);
    assert!(fleet.member("c").faults().counts().refused >= 4);
}

#[tokio::test(start_paused = true)]
async fn a_member_that_hangs_holds_up_nobody_else() {
    let fleet = Fleet::start(FleetSpec::default()).await;
    fleet.create(&frs("first", 3, &even(true))).await;
    fleet
        .wait_until("first runs", 30, async |it| it.available("first") == 3)
        .await;
    fleet.member("c").faults().set_hanging(true);
    let names: Vec<String> = (0..20).map(|n| format!("web-{n}")).collect();
    for name in &names {
        fleet.create(&frs(name, 4, &even(true))).await;
    }
    fleet
        .wait_until("a and b have theirs", 5, async |it| {
            names
                .iter()
                .all(|name| it.layout(name)["a"] >= 1 && it.layout(name)["b"] >= 1)
        })
        .await;
    fleet.member("c").faults().heal();
    let told_of = async |fleet: &Fleet| {
        let reasons = fleet.event_reasons("web-0").await;
        reasons.iter().filter(|reason| *reason == "Created").count()
    };
    fleet
        .wait_until(
            "told of c, too, although it answered late",
            60,
            async |it| told_of(it).await == 3,
        )
        .await;
    fleet
        .wait_until("all run", 180, async |it| {
            names.iter().all(|name| it.available(name) >= 4)
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn f39_a_lost_watch_and_a_compacted_history_change_nothing() {
    let fleet = Fleet::running(12).await;
    let watcher = ReadyWatcher::start(&fleet, "web");
    for name in fleet.member_names() {
        fleet.member(&name).faults().compact();
        fleet.member(&name).faults().cut_watches();
    }
    fleet.host().faults().compact();
    fleet.host().faults().cut_watches();
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!((watcher.lowest(), watcher.highest()), (12, 12));
    fleet
        .patch("web", &json!({ "spec": { "replicas": 15 } }))
        .await;
    fleet
        .wait_until("it goes on", 30, async |it| it.available("web") == 15)
        .await;
}

#[tokio::test(start_paused = true)]
async fn f40_a_set_of_another_federation_is_not_handled() {
    let fleet = Fleet::start(FleetSpec::default()).await;
    let mut set = frs("web", 3, &even(true));
    set["spec"]["federation"] = json!("another");
    fleet.create(&set).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(fleet.sorted_layout("web"), [0, 0, 0]);
    assert_eq!(fleet.frs("web").await.get("status"), None);
}

#[tokio::test(start_paused = true)]
async fn f39_a_member_that_is_back_is_listed_before_its_replicas_are_counted_on() {
    // Gone for so short a time that no watch has been down for long enough to be stale by itself.
    let mut spec = FleetSpec::default();
    spec.config.probe.period = Duration::from_secs(1);
    spec.config.lost_grace_period = Duration::from_secs(4);
    let fleet = Fleet::start(spec).await;
    fleet.create(&frs("web", 50, &even(true))).await;
    fleet
        .wait_until("50 run", 30, async |it| it.available("web") == 50)
        .await;
    fleet.member("b").faults().set_unreachable(true);
    fleet
        .wait_until("its replicas run elsewhere", 180, async |it| {
            it.available("web") >= 66
        })
        .await;
    // Nobody sees that b loses all it ran.
    let none = |set: &mut Value| set["spec"]["replicas"] = json!(0);
    let kind = &sim_cluster::kinds::REPLICA_SETS;
    fleet
        .member("b")
        .api()
        .modify(kind, None, "default", "web", none)
        .unwrap();
    fleet
        .wait_until("b is empty", 30, async |it| it.available("web") == 50)
        .await;
    let watcher = ReadyWatcher::start(&fleet, "web");
    fleet.member("b").faults().set_unreachable(false);
    fleet
        .wait_until("balanced again", 60, async |it| {
            it.sorted_layout("web") == [16, 17, 17] && it.available("web") == 50
        })
        .await;
    assert_eq!(watcher.lowest(), 50);
}

#[tokio::test(start_paused = true)]
async fn f5_a_member_that_is_offline_holds_up_deletion_until_the_deadline_and_says_so() {
    let fleet = Fleet::running(9).await;
    fleet.member("c").faults().set_unreachable(true);
    let path = "/apis/fedrs.dev/v1alpha1/namespaces/default/federatedreplicasets/web";
    tokio::time::sleep(Duration::from_secs(40)).await;
    fleet.on_host("DELETE", path, &Value::Null).await.unwrap();
    let told = async |fleet: &Fleet, reason: &str| {
        fleet
            .event_reasons("web")
            .await
            .contains(&reason.to_owned())
    };
    fleet
        .wait_until("told", 10, async |it| told(it, "DeletionPending").await)
        .await;
    tokio::time::sleep(Duration::from_secs(500)).await;
    assert!(
        !fleet.frs("web").await.is_null(),
        "the deadline of 10 min is not over"
    );
    fleet
        .wait_until("gone", 120, async |it| it.frs("web").await.is_null())
        .await;
    assert!(told(&fleet, "LeftBehind").await);
    assert_eq!(fleet.available("web"), 9, "all go on");
}

#[tokio::test(start_paused = true)]
async fn f5_a_member_whose_kubeconfig_is_gone_is_not_touched_by_a_deletion() {
    let mut fleet = Fleet::running(9).await;
    fleet.remove_member("c").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let path = "/apis/fedrs.dev/v1alpha1/namespaces/default/federatedreplicasets/web";
    fleet.on_host("DELETE", path, &Value::Null).await.unwrap();
    tokio::time::sleep(Duration::from_secs(590)).await;
    assert!(!fleet.frs("web").await.is_null(), "it waits");
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(fleet.frs("web").await.is_null());
    let reasons = fleet.event_reasons("web").await;
    assert!(reasons.contains(&"LeftBehind".to_owned()), "{reasons:?}");
    let labels = fleet.local_set("c", "web").unwrap()["metadata"]["labels"].to_string();
    assert!(labels.contains("fedrs.dev"), "{labels}");
}

#[tokio::test(start_paused = true)]
async fn f5_a_creation_under_way_is_waited_for_by_the_deletion() {
    let fleet = Fleet::start(FleetSpec::default()).await;
    // All members are known by then.
    tokio::time::sleep(Duration::from_secs(12)).await;
    fleet
        .member("c")
        .faults()
        .set_latency(Duration::from_secs(4));
    fleet.create(&frs("web", 9, &even(true))).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let path = "/apis/fedrs.dev/v1alpha1/namespaces/default/federatedreplicasets/web";
    fleet.on_host("DELETE", path, &Value::Null).await.unwrap();
    fleet
        .wait_until("gone", 60, async |it| it.frs("web").await.is_null())
        .await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    for member in fleet.member_names() {
        let set = fleet.local_set(&member, "web").unwrap_or_default();
        let labels = set["metadata"]["labels"].to_string();
        assert!(!labels.contains("fedrs.dev"), "{member}: {labels}");
    }
}

#[tokio::test(start_paused = true)]
async fn f39_what_had_to_wait_for_its_turn_is_decided_anew() {
    let mut spec = FleetSpec::default();
    spec.members.truncate(1);
    spec.config.calls_per_member = 1;
    let fleet = Fleet::start(spec).await;
    let names = ["web", "shop", "mail"];
    for name in names {
        fleet.create(&frs(name, 3, &even(true))).await;
    }
    fleet
        .wait_until("all run", 30, async |it| {
            names.iter().all(|name| it.available(name) == 3)
        })
        .await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let generation = |fleet: &Fleet| {
        let set = fleet.local_set("a", "mail").unwrap();
        set["metadata"]["generation"].clone()
    };
    let before = generation(&fleet);
    // Each call takes longer than it may; the others wait for it.
    fleet
        .member("a")
        .faults()
        .set_latency(Duration::from_secs(15));
    for name in names {
        fleet
            .patch(name, &json!({ "spec": { "replicas": 5 } }))
            .await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    fleet
        .patch("mail", &json!({ "spec": { "replicas": 3 } }))
        .await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    fleet.member("a").faults().heal();
    fleet
        .wait_until("the others have grown", 120, async |it| {
            it.available("web") == 5 && it.available("shop") == 5
        })
        .await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(generation(&fleet), before, "it was never scaled");
}
