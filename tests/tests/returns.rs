//! Members that are lost and return: power, network, flapping, and when the controller relies on them again.

use std::time::Duration;

use fedrs_tests::{ReadyWatcher, SimFederation, SimFederationSpec, even, frs};
use sim_cluster::kinds::PODS;

async fn seconds(count: u64) {
    tokio::time::sleep(Duration::from_secs(count)).await;
}

/// Restarts all nodes of a member that lost power.
fn start_nodes(federation: &SimFederation, member: &str) {
    for number in 1..=3 {
        let node = format!("{member}-node-{number}");
        federation.member(member).recover_node(&node);
    }
}

/// Ready replicas of `web` in all members except `dead`, where no pod runs.
fn running_without(federation: &SimFederation, dead: &str) -> u64 {
    let sets = federation.sets("web").into_iter();
    let others = sets.filter(|(member, _)| member != dead);
    others.map(|(_, set)| set.available).sum()
}

/// Waits until `member`, which does not answer, is lost and the others run all `replicas`.
async fn replaced(federation: &SimFederation, member: &str, replicas: u64) {
    federation
        .wait_until("the others run all replicas", 180, async |federation| {
            running_without(federation, member) == replicas
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn f33_dead_replicas_of_a_returned_member_replace_nothing() {
    let federation = SimFederation::running(12).await;
    federation.member("c").lose_power();
    replaced(&federation, "c", 12).await;
    // The API server is back, and no node is; the status of its pods is still ready.
    federation.member("c").restore_power();
    for _ in 0..300 {
        seconds(1).await;
        assert_eq!(running_without(&federation, "c"), 12);
    }
    let condition = federation.member_condition("c", "Ready").await;
    assert!(condition.starts_with("False NoReadyNodes"), "{condition}");
    let watcher = ReadyWatcher::start(&federation, "web");
    start_nodes(&federation, "c");
    federation
        .wait_until("balanced again", 300, async |federation| {
            federation.sorted_layout("web") == [4, 4, 4] && federation.available("web") == 12
        })
        .await;
    watcher.assert_never_below(12);
}

/// Neither the first leader nor the next one sees that the nodes are dead.
#[tokio::test(start_paused = true)]
async fn f33_a_new_leader_believes_dead_replicas_of_a_returned_member_no_more() {
    let mut federation = SimFederation::running(12).await;
    federation.member("c").lose_power();
    replaced(&federation, "c", 12).await;
    federation.member("c").stop_controller_manager();
    federation.member("c").restore_power();
    for _ in 0..3 {
        seconds(40).await;
        federation.stop_controller().await;
        federation.start_controller().await;
        for _ in 0..150 {
            seconds(1).await;
            assert_eq!(running_without(&federation, "c"), 12);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn f33_nodes_that_return_in_time_are_believed_once_they_report() {
    let federation = SimFederation::running(12).await;
    federation.member("c").lose_power();
    replaced(&federation, "c", 12).await;
    federation.member("c").restore_power();
    // One node of three is back before the others are known to be dead.
    federation.member("c").recover_node("c-node-1");
    let dead = |federation: &SimFederation| {
        let pods = federation.member("c").api().list(&PODS, Some("default"));
        let runs = |pod: &&sim_cluster::Object| pod["spec"]["nodeName"] == "c-node-1";
        pods.iter().filter(runs).count() as u64
    };
    for _ in 0..240 {
        seconds(1).await;
        let running = running_without(&federation, "c") + dead(&federation);
        assert!(running >= 12, "{running} run");
    }
}

#[tokio::test(start_paused = true)]
async fn f33_a_controller_that_was_cut_off_moves_nothing() {
    let federation = SimFederation::running(12).await;
    let watcher = ReadyWatcher::start(&federation, "web");
    let layout = federation.layout("web");
    let names = federation.member_names();
    let writes = federation.writes();
    for name in &names {
        federation.member(name).faults().set_unreachable(true);
    }
    seconds(300).await;
    for name in &names {
        let condition = federation.member_condition(name, "Ready").await;
        assert!(
            condition.starts_with("Unknown ControllerDisconnected"),
            "{condition}"
        );
    }
    let cut_off = federation.writes();
    seconds(300).await;
    assert_eq!(federation.writes(), cut_off, "nothing is written");
    // The members are back one after another.
    for name in &names {
        federation.member(name).faults().set_unreachable(false);
        seconds(25).await;
        assert_eq!(federation.layout("web"), layout);
    }
    seconds(300).await;
    assert_eq!(federation.layout("web"), layout);
    assert_eq!((watcher.lowest(), watcher.highest()), (12, 12));
    assert!(federation.writes() < writes + 60);
}

#[tokio::test(start_paused = true)]
async fn f33_after_a_disconnection_a_member_that_stays_away_is_lost_after_a_grace_of_its_own() {
    let federation = SimFederation::running(12).await;
    for name in federation.member_names() {
        federation.member(&name).faults().set_unreachable(true);
    }
    seconds(600).await;
    federation.member("a").faults().set_unreachable(false);
    federation.member("b").faults().set_unreachable(false);
    seconds(58).await;
    assert_eq!(
        federation.sorted_layout("web"),
        [4, 4, 4],
        "its grace lasts"
    );
    replaced(&federation, "c", 12).await;
}

#[tokio::test(start_paused = true)]
async fn f33_a_flapping_member_does_not_make_replicas_swing() {
    let federation = SimFederation::running(12).await;
    let unreachable = |on| federation.member("c").faults().set_unreachable(on);
    unreachable(true);
    replaced(&federation, "c", 12).await;
    // Up for 15 s, down for 100 s.
    for _ in 0..12 {
        unreachable(false);
        seconds(15).await;
        assert_eq!(running_without(&federation, "c"), 12);
        unreachable(true);
        seconds(100).await;
        assert_eq!(running_without(&federation, "c"), 12);
    }
    unreachable(false);
    seconds(600).await;
    assert_eq!(running_without(&federation, "c"), 12, "the hold has grown");
    let condition = federation.member_condition("c", "Ready").await;
    assert!(
        condition.contains("2027-"),
        "it says until when: {condition}"
    );
    federation
        .wait_until("balanced again", 1900, async |federation| {
            federation.sorted_layout("web") == [4, 4, 4]
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn f33_controllers_that_live_for_50_s_replace_a_lost_member() {
    let mut federation = SimFederation::running(12).await;
    federation.member("c").faults().set_unreachable(true);
    for _ in 0..6 {
        seconds(50).await;
        federation.stop_controller().await;
        seconds(600).await;
        federation.start_controller().await;
    }
    assert_eq!(running_without(&federation, "c"), 12);
}

#[tokio::test(start_paused = true)]
async fn f33_a_controller_that_starts_finds_out_by_itself_that_a_member_is_lost() {
    let mut federation = SimFederation::running(12).await;
    federation.member("c").faults().set_unreachable(true);
    seconds(55).await;
    federation.stop_controller().await;
    federation.member("c").faults().set_unreachable(false);
    seconds(600).await;
    let watcher = ReadyWatcher::start(&federation, "web");
    federation.start_controller().await;
    seconds(120).await;
    assert_eq!((watcher.lowest(), watcher.highest()), (12, 12));
    // A new outage begins.
    federation.member("c").faults().set_unreachable(true);
    seconds(55).await;
    assert_eq!(federation.sorted_layout("web"), [4, 4, 4]);
}

#[tokio::test(start_paused = true)]
async fn f36_a_member_that_is_added_again_and_again_holds_up_no_set_without_replicas_in_it() {
    let mut federation = SimFederation::start(SimFederationSpec::default()).await;
    let mut set = frs("web", 6, &even(true));
    set["spec"]["placement"]["clusters"] =
        serde_json::json!({ "a": { "weight": 1 }, "b": { "weight": 1 } });
    federation.create(&set).await;
    federation
        .wait_until("a and b run it", 30, async |federation| {
            federation.available("web") == 6
        })
        .await;
    seconds(20).await;
    federation.member("c").faults().set_hanging(true);
    let scale = |replicas: u32| serde_json::json!({ "spec": { "replicas": replicas } });
    for round in 0..5 {
        federation.remove_member("c").await;
        seconds(1).await;
        federation.add_member("c").await;
        federation.patch("web", &scale(8 + round * 2)).await;
        seconds(4).await;
        assert_eq!(federation.available("web"), u64::from(8 + round * 2));
    }
}

#[tokio::test(start_paused = true)]
async fn f33_a_member_that_refuses_us_for_longer_than_its_grace_period_is_lost() {
    let federation = SimFederation::running(12).await;
    let refuse = |name: &str| {
        let refusal = sim_cluster::Status::unauthorized();
        let requests = sim_cluster::RequestMatcher::all();
        let faults = federation.member(name).faults();
        faults.refuse(requests, u32::MAX, refusal);
        faults.cut_watches();
    };
    refuse("c");
    seconds(3500).await;
    assert_eq!(federation.sorted_layout("web"), [4, 4, 4]);
    replaced(&federation, "c", 12).await;
    // All members reject the credentials: the problem is the controller's own.
    let layout = federation.layout("web");
    for name in ["a", "b"] {
        refuse(name);
    }
    seconds(2 * 3600).await;
    assert_eq!(federation.layout("web"), layout);
}

#[tokio::test(start_paused = true)]
async fn f33_a_leader_that_starts_while_a_member_returns_believes_no_dead_replicas() {
    let mut federation = SimFederation::running(12).await;
    federation.member("c").lose_power();
    // Its replicas have not been replaced yet.
    seconds(50).await;
    assert_eq!(federation.sorted_layout("web"), [4, 4, 4]);
    federation.stop_controller().await;
    federation.member("c").restore_power();
    federation.start_controller().await;
    let drain = serde_json::json!({ "spec": { "drain": true } });
    federation.patch_member("b", &drain).await;
    let mut most = 0;
    for _ in 0..200 {
        seconds(1).await;
        let running = running_without(&federation, "c");
        assert!(running >= most, "{running} of {most} replicas are left");
        most = running.min(12);
    }
    assert_eq!(most, 12);
}

#[tokio::test(start_paused = true)]
async fn f33_a_leader_that_starts_knows_for_which_sets_a_returned_member_was_lost() {
    let mut federation = SimFederation::running(12).await;
    let rescheduling = serde_json::json!({ "lostGracePeriodSeconds": 30 });
    let patch = serde_json::json!({ "spec": { "rescheduling": rescheduling } });
    federation.patch("web", &patch).await;
    seconds(5).await;
    federation.member("c").lose_power();
    replaced(&federation, "c", 12).await;
    federation.stop_controller().await;
    // Its API server is back, and no node is; the status of its pods is still ready.
    federation.member("c").restore_power();
    federation.start_controller().await;
    for _ in 0..300 {
        seconds(1).await;
        assert_eq!(running_without(&federation, "c"), 12);
    }
    start_nodes(&federation, "c");
    federation
        .wait_until("balanced again", 300, async |federation| {
            federation.sorted_layout("web") == [4, 4, 4] && federation.available("web") == 12
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn f33_controllers_that_start_while_they_are_cut_off_move_nothing() {
    let mut federation = SimFederation::running(12).await;
    let watcher = ReadyWatcher::start(&federation, "web");
    let layout = federation.layout("web");
    let names = federation.member_names();
    for name in &names {
        federation.member(name).faults().set_unreachable(true);
    }
    for _ in 0..4 {
        seconds(90).await;
        federation.stop_controller().await;
        federation.start_controller().await;
    }
    // The members are back one after another, and a controller starts between any two.
    for name in &names {
        federation.member(name).faults().set_unreachable(false);
        seconds(20).await;
        federation.stop_controller().await;
        federation.start_controller().await;
        seconds(5).await;
        assert_eq!(federation.layout("web"), layout);
    }
    seconds(300).await;
    assert_eq!(federation.layout("web"), layout);
    assert_eq!((watcher.lowest(), watcher.highest()), (12, 12));
}
