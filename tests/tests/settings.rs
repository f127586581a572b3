//! Settings of single FederatedReplicaSets and members, and the writes of a federation with many of them.

use std::time::Duration;

use fedrs_tests::{FRS_PATH, ReadyWatcher, SimFederation, SimFederationSpec, even, frs};
use serde_json::{Value, json};
use sim_cluster::{RequestMatcher, Verb, kinds::REPLICA_SETS};

async fn seconds(count: u64) {
    tokio::time::sleep(Duration::from_secs(count)).await;
}

/// Creates the set `name`, evenly spread, with `rescheduling`, and waits until its 12 replicas run.
async fn run(federation: &SimFederation, name: &str, rescheduling: Value) {
    let mut set = frs(name, 12, &even(true));
    set["spec"]["rescheduling"] = rescheduling;
    federation.create(&set).await;
    federation
        .wait_until("all replicas run", 30, async |federation| {
            federation.available(name) == 12
        })
        .await;
}

/// Replicas of `name` that are requested of all members except c.
fn elsewhere(federation: &SimFederation, name: &str) -> u64 {
    let layout = federation.layout(name);
    layout["a"] + layout["b"]
}

#[tokio::test(start_paused = true)]
async fn f33_each_set_says_how_long_its_replicas_stay_in_an_unreachable_member() {
    let federation = SimFederation::start(SimFederationSpec::default()).await;
    for (name, grace) in [
        ("now", json!({ "lostGracePeriodSeconds": 0 })),
        ("default", json!({})),
        ("later", json!({ "lostGracePeriodSeconds": 300 })),
        ("never", json!({ "lostGracePeriodSeconds": "Never" })),
    ] {
        run(&federation, name, grace).await;
    }
    let moved = |federation: &SimFederation| {
        ["now", "default", "later", "never"].map(|name| elsewhere(federation, name) == 12)
    };
    let watcher = ReadyWatcher::start(&federation, "now");
    federation.member("c").faults().set_unreachable(true);
    for (more, expected) in [
        (10, [false; 4]),
        (40, [true, false, false, false]),
        (40, [true, true, false, false]),
        (190, [true, true, false, false]),
        (60, [true, true, true, false]),
        (1200, [true, true, true, false]),
    ] {
        seconds(more).await;
        assert_eq!(moved(&federation), expected, "after {more} s more");
    }
    let message = federation.condition_message("never", "Reconciling").await;
    assert!(
        message.is_some_and(|message| message.contains("c: waiting for the cluster to recover")),
        "it says that it waits, without a time"
    );
    let patch = json!({ "spec": { "rescheduling": { "lostGracePeriodSeconds": 0 } } });
    federation.patch("never", &patch).await;
    seconds(2).await;
    assert_eq!(moved(&federation), [true; 4], "at once");
    federation.member("c").faults().set_unreachable(false);
    federation
        .wait_until("balanced again", 300, async |federation| {
            federation.sorted_layout("now") == [4, 4, 4]
        })
        .await;
    assert_eq!(watcher.lowest(), 12);
}

#[tokio::test(start_paused = true)]
async fn f33_a_member_and_the_configuration_may_say_never_and_zero() {
    for (of_member, of_config, lost_at) in [
        (json!(null), Some(Duration::ZERO), Some(50)),
        (json!(null), None, None),
        (json!("Never"), Some(Duration::ZERO), None),
        (json!(0), None, Some(50)),
    ] {
        let mut spec = SimFederationSpec::default();
        spec.config.lost_grace_period = of_config;
        let federation = SimFederation::start(spec).await;
        run(&federation, "web", json!({})).await;
        let patch = json!({ "spec": { "lostGracePeriodSeconds": of_member } });
        federation.patch_member("c", &patch).await;
        federation.member("c").faults().set_unreachable(true);
        seconds(lost_at.unwrap_or(900)).await;
        let is_lost = elsewhere(&federation, "web") == 12;
        assert_eq!(is_lost, lost_at.is_some(), "{of_member} {of_config:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn f34_each_set_says_how_long_its_pods_wait_for_a_node() {
    let mut spec = SimFederationSpec::default();
    for member in &mut spec.members {
        if member.name == "c" {
            (member.nodes, member.pods_per_node) = (1, 1);
        }
    }
    let federation = SimFederation::start(spec).await;
    for (name, seconds) in [
        ("now", json!(0)),
        ("later", json!(300)),
        ("never", json!("Never")),
    ] {
        let mut set = frs(name, 12, &even(true));
        set["spec"]["rescheduling"] = json!({ "unscheduledTimeoutSeconds": seconds });
        federation.create(&set).await;
    }
    let available = |federation: &SimFederation| {
        ["now", "later", "never"].map(|name| federation.available(name) == 12)
    };
    for (second, expected) in [
        (20, [true, false, false]),
        (260, [true, false, false]),
        (60, [true, true, false]),
        (1200, [true, true, false]),
    ] {
        seconds(second).await;
        assert_eq!(available(&federation), expected, "after {second} s more");
    }
    let writes = federation.writes();
    seconds(1200).await;
    assert!(federation.writes() < writes + 60, "nothing swings");
    let patch = json!({ "spec": { "rescheduling": { "unscheduledTimeoutSeconds": 0 } } });
    federation.patch("never", &patch).await;
    seconds(10).await;
    assert_eq!(available(&federation), [true; 3], "at once");
}

#[tokio::test(start_paused = true)]
async fn f2_the_api_server_rejects_what_is_no_time_and_no_surge() {
    let federation = SimFederation::start(SimFederationSpec::default()).await;
    for (field, value) in [
        ("maxMoveSurge", json!(0)),
        ("maxMoveSurge", json!("0%")),
        ("maxMoveSurge", json!("25")),
        ("maxMoveSurge", json!(true)),
        ("unscheduledTimeoutSeconds", json!(-1)),
        ("unscheduledTimeoutSeconds", json!("60s")),
        ("lostGracePeriodSeconds", json!("never")),
        ("lostGracePeriodSeconds", json!(3_000_000_000_u32)),
    ] {
        let mut set = frs("web", 3, &even(true));
        set["spec"]["rescheduling"] = json!({ field: value });
        let error = federation
            .on_host("POST", FRS_PATH, &set)
            .await
            .unwrap_err();
        assert!(
            error
                .to_string()
                .contains(&format!("spec.rescheduling.{field}")),
            "{error}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn f33_one_failed_probe_writes_no_set() {
    let federation = SimFederation::start(SimFederationSpec::default()).await;
    for number in 0..20 {
        run(&federation, &format!("set-{number}"), json!({})).await;
    }
    seconds(120).await;
    let before = federation.writes();
    federation.member("c").faults().set_unreachable(true);
    seconds(12).await;
    federation.member("c").faults().set_unreachable(false);
    seconds(120).await;
    let written = federation.writes() - before;
    // The MemberCluster becomes not ready, and ready again; its watches are opened again.
    assert!(written <= 6, "{written} writes for 20 sets");
}

#[tokio::test(start_paused = true)]
async fn f28_a_set_that_every_member_rejects_is_not_accepted() {
    let federation = SimFederation::start(SimFederationSpec::default()).await;
    for member in federation.member_names() {
        let creations = RequestMatcher::all()
            .verb(Verb::Create)
            .resource("replicasets");
        let why = "admission webhook \"policy\" denied the request";
        let refusal = sim_cluster::Status::forbidden(&REPLICA_SETS, "web", why);
        federation
            .member(&member)
            .faults()
            .refuse(creations, 3, refusal);
    }
    federation.create(&frs("web", 12, &even(true))).await;
    seconds(30).await;
    let accepted = federation.condition("web", "Accepted").await;
    assert_eq!(accepted.as_deref(), Some("True"), "it may be a moment");
    seconds(60).await;
    let message = federation
        .condition_message("web", "Accepted")
        .await
        .unwrap();
    assert!(message.contains("denied the request"), "{message}");
    for (type_, status) in [
        ("Accepted", "False"),
        ("Stalled", "True"),
        ("Ready", "False"),
    ] {
        let found = federation.condition("web", type_).await;
        assert_eq!(found.as_deref(), Some(status), "{type_}");
    }
    federation
        .wait_until(
            "it is tried again, and accepted",
            1200,
            async |federation| {
                federation.available("web") == 12
                    && federation.condition("web", "Accepted").await.as_deref() == Some("True")
            },
        )
        .await;
}
