//! Several controllers on one host: one leads, and another takes over when it ends, crashes, is cut off or stopped.

mod contender;

use std::time::Duration;

use federation_controller::{config::LeaderElectionConfig, election::LeaderState};
use fedrs_tests::{Fleet, FleetSpec, ReadyWatcher, even, frs};
use serde_json::{Value, json};
use sim_cluster::{RequestMatcher, Status, Verb, kinds};
use tokio::time::{Instant, sleep};

use contender::{Contender, LEASE, NAMESPACE, timing};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/fedrs-system/leases";

/// A fleet without a controller, and two that want to be it; the first leads.
async fn two_contenders() -> (Fleet, Contender, Contender) {
    let fleet = Fleet::start_clusters(FleetSpec::default()).await;
    let mut first = Contender::start(&fleet, "first");
    first.leads().await;
    let mut second = Contender::start(&fleet, "second");
    second.follows(&first).await;
    // The first has renewed its term.
    sleep(Duration::from_secs(5)).await;
    (fleet, first, second)
}

async fn lease(fleet: &Fleet) -> Value {
    let path = format!("{LEASES}/{LEASE}");
    fleet
        .on_host("GET", &path, &Value::Null)
        .await
        .expect("the Lease is there")
}

async fn settled(fleet: &Fleet, layout: [u64; 3]) -> bool {
    let wanted: Vec<u64> = fleet.layout("web").into_values().collect();
    wanted == layout
        && fleet.available("web") == layout.iter().sum::<u64>()
        && fleet.is_settled("web").await
}

#[tokio::test(start_paused = true)]
async fn the_first_leads_and_says_so_in_the_lease() {
    let (fleet, first, second) = two_contenders().await;
    let made = lease(&fleet).await;
    assert_eq!(made["spec"]["holderIdentity"], "first");
    assert_eq!(made["spec"]["leaseDurationSeconds"], 15);
    assert_eq!(made["spec"]["leaseTransitions"], 0);
    assert_eq!(
        (first.metrics.leader.get(), second.metrics.leader.get()),
        (1, 0)
    );
    sleep(Duration::from_secs(60)).await;
    let renewed = lease(&fleet).await;
    assert_eq!(renewed["spec"]["acquireTime"], made["spec"]["acquireTime"]);
    assert_ne!(renewed["spec"]["renewTime"], made["spec"]["renewTime"]);
    assert_eq!(second.host.writes(), 0, "a standby writes nothing");
    assert_eq!(first.standing(), LeaderState::Leading);

    let path = format!("/api/v1/namespaces/{NAMESPACE}/events");
    let events = fleet.on_host("GET", &path, &Value::Null).await.unwrap();
    assert_eq!(events["items"][0]["message"], "first became leader");
    assert_eq!(events["items"][0]["involvedObject"]["kind"], "Lease");
}

#[tokio::test(start_paused = true)]
async fn a_crashed_leader_is_replaced_within_lease_duration_and_retry_period() {
    let (fleet, mut leader, mut standby) = two_contenders().await;
    for round in 0..8_u64 {
        // At another moment between two renewals each time.
        sleep(Duration::from_millis(10_000 + 250 * round)).await;
        leader.crash().await;
        let took = standby.leads().await;
        let bound = timing().lease_duration + timing().retry_period;
        assert!(took <= bound, "round {round}: {took:?}");
        let earliest = timing()
            .lease_duration
            .saturating_sub(timing().retry_period);
        assert!(took >= earliest, "round {round}: {took:?}");
        assert_eq!(lease(&fleet).await["spec"]["leaseTransitions"], round + 1);
        leader = standby;
        standby = Contender::start(&fleet, &format!("standby-{round}"));
        standby.follows(&leader).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_ends_in_order_is_replaced_within_the_retry_period() {
    let (fleet, first, mut second) = two_contenders().await;
    first.stop().await;
    let released = lease(&fleet).await;
    let holder = released["spec"]["holderIdentity"].as_str();
    assert!(holder.is_none_or(str::is_empty), "{holder:?}");
    let took = second.leads().await;
    assert!(took <= timing().retry_period, "{took:?}");
    assert_eq!(lease(&fleet).await["spec"]["leaseTransitions"], 1);
}

#[tokio::test(start_paused = true)]
async fn f20_a_leader_that_crashes_in_the_middle_of_a_move_leaves_no_dip_and_no_surplus() {
    let (fleet, first, mut second) = two_contenders().await;
    fleet.create(&frs("web", 60, &even(true))).await;
    fleet
        .wait_until("60 run", 60, async |fleet| {
            settled(fleet, [20, 20, 20]).await
        })
        .await;
    let watcher = ReadyWatcher::start(&fleet, "web");
    let weights = json!({ "a": { "weight": 4 }, "b": { "weight": 1 }, "c": { "weight": 1 } });
    fleet
        .patch(
            "web",
            &json!({ "spec": { "placement": { "clusters": weights } } }),
        )
        .await;
    fleet
        .wait_until("half of it has moved", 60, async |fleet| {
            let layout = fleet.layout("web");
            layout["a"] > 20 && layout["b"] + layout["c"] > 20 && layout["b"] < 20
        })
        .await;
    first.crash().await;
    second.leads().await;
    fleet
        .wait_until("all has moved", 120, async |fleet| {
            settled(fleet, [40, 10, 10]).await
        })
        .await;
    assert_eq!(watcher.lowest(), 60);
    assert!(watcher.highest() <= 75, "{} at once", watcher.highest());
}

/// How many sets there are to be changed, one each half second.
const SETS: usize = 60;

/// The name of one of them; the first is `web`.
fn set_name(number: usize) -> String {
    match number % SETS {
        0 => "web".to_owned(),
        number => format!("web-{number}"),
    }
}

/// Creates many sets, so that none of them has to be changed twice: one that is changed again and again is repaired no
/// more than once in 10 s.
async fn create_sets(fleet: &Fleet) {
    for number in 0..SETS {
        fleet.create(&frs(&set_name(number), 6, &even(true))).await;
    }
    for number in 0..SETS {
        let name = set_name(number);
        fleet
            .wait_until("each runs", 60, async |it| it.available(&name) == 6)
            .await;
    }
    fleet
        .wait_until("6 run", 60, async |fleet| settled(fleet, [2, 2, 2]).await)
        .await;
}

/// Somebody scales a set down in `a` every half second, so that whoever leads has always something to write there, until
/// `second` leads. `first`, which can't renew its term from now on, writes for most of it, and nothing while requests on
/// their way may still arrive.
async fn ends_writing_before_it_is_replaced(fleet: &Fleet, first: &Contender, second: &Contender) {
    let began = Instant::now();
    let mut last_write = None;
    let mut writes = first.members.writes();
    let mut rounds = 0;
    while second.standing() != LeaderState::Leading {
        if rounds % 50 == 0 {
            let set = format!(
                "/apis/apps/v1/namespaces/default/replicasets/{}",
                set_name(rounds / 50)
            );
            fleet
                .on_member("a", "PATCH", &set, &json!({ "spec": { "replicas": 1 } }))
                .await
                .expect("it can be scaled");
        }
        rounds += 1;
        sleep(Duration::from_millis(10)).await;
        if first.members.writes() > writes {
            writes = first.members.writes();
            last_write = Some(Instant::now());
        }
        assert!(rounds < 6000, "nobody took over within a minute");
    }
    let last_write = last_write.expect("the first had something to write");
    let worked = last_write - began;
    assert!(worked > Duration::from_secs(7), "{worked:?} of its term");
    let between = last_write.elapsed();
    let LeaderElectionConfig {
        lease_duration,
        renew_deadline,
        ..
    } = timing();
    let wanted = lease_duration.saturating_sub(renew_deadline);
    assert!(between >= wanted, "{between:?} before it was replaced");
}

#[tokio::test(start_paused = true)]
async fn a_leader_cut_off_from_the_host_writes_to_no_member_when_another_begins() {
    let (fleet, mut first, second) = two_contenders().await;
    create_sets(&fleet).await;
    first.host.end();
    ends_writing_before_it_is_replaced(&fleet, &first, &second).await;
    first
        .stands(|it| matches!(it, LeaderState::Failed(_)))
        .await;
    fleet
        .wait_until("the second repairs it", 60, async |fleet| {
            settled(fleet, [2, 2, 2]).await
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_does_not_notice_its_end_is_stopped_by_the_fence() {
    let (fleet, mut first, second) = two_contenders().await;
    create_sets(&fleet).await;
    first.freeze();
    ends_writing_before_it_is_replaced(&fleet, &first, &second).await;
    assert_eq!(
        first.standing(),
        LeaderState::Leading,
        "it doesn't know yet"
    );
    assert!(first.metrics.fenced_writes.get() > 0, "it tried");

    let writes = first.members.writes();
    first.thaw();
    first.follows(&second).await;
    fleet
        .wait_until("the second repairs it", 60, async |fleet| {
            settled(fleet, [2, 2, 2]).await
        })
        .await;
    assert_eq!(first.members.writes(), writes);

    // A process may lead more than once.
    second.stop().await;
    first.leads().await;
    fleet
        .patch("web", &json!({ "spec": { "replicas": 9 } }))
        .await;
    fleet
        .wait_until("9 run", 60, async |fleet| settled(fleet, [3, 3, 3]).await)
        .await;
    assert!(first.members.writes() > writes);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_deleted_is_made_anew_by_its_leader() {
    let (fleet, first, second) = two_contenders().await;
    let before = lease(&fleet).await;
    let path = format!("{LEASES}/{LEASE}");
    fleet.on_host("DELETE", &path, &Value::Null).await.unwrap();
    sleep(2 * timing().retry_period).await;
    let after = lease(&fleet).await;
    assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(after["spec"]["holderIdentity"], "first");
    assert_eq!(first.standing(), LeaderState::Leading);
    assert_ne!(second.standing(), LeaderState::Leading);
}

#[tokio::test(start_paused = true)]
async fn a_leader_survives_conflicts_lost_answers_and_a_short_outage() {
    let (fleet, first, second) = two_contenders().await;
    let path = format!("{LEASES}/{LEASE}");
    let label = json!({ "metadata": { "labels": { "seen": "yes" } } });
    let renewals = || RequestMatcher::all().verb(Verb::Update).resource("leases");
    for round in 0..4 {
        fleet.on_host("PATCH", &path, &label).await.unwrap();
        fleet.host().faults().lose_answers(renewals(), 1);
        sleep(Duration::from_secs(3)).await;
        fleet.host().faults().refuse(
            renewals(),
            3,
            Status::conflict(&kinds::LEASES, LEASE, "by a fault"),
        );
        sleep(Duration::from_secs(9)).await;
        fleet.host().faults().set_unreachable(true);
        sleep(Duration::from_secs(6)).await;
        fleet.host().faults().heal();
        assert_eq!(first.standing(), LeaderState::Leading, "round {round}");
    }
    let counts = fleet.host().faults().counts();
    assert!(
        counts.answers_lost > 0 && counts.refused > 0 && counts.unreachable > 0,
        "{counts:?}"
    );
    assert_eq!(lease(&fleet).await["spec"]["leaseTransitions"], 0);
    assert_ne!(second.standing(), LeaderState::Leading);
}

#[tokio::test(start_paused = true)]
async fn the_host_out_of_reach_ends_the_term_and_brings_it_back() {
    let (fleet, mut first, mut second) = two_contenders().await;
    fleet.host().faults().set_unreachable(true);
    first
        .stands(|it| matches!(it, LeaderState::Failed(_)))
        .await;
    second
        .stands(|it| matches!(it, LeaderState::Failed(_)))
        .await;
    assert_eq!(first.metrics.leader.get(), 0);
    fleet.host().faults().heal();
    first.leads().await;
    assert_eq!(lease(&fleet).await["spec"]["holderIdentity"], "first");
    second.follows(&first).await;
}

#[tokio::test(start_paused = true)]
async fn what_keeps_a_process_from_taking_part_is_said() {
    for (requests, part) in [
        (
            RequestMatcher::all().resource("leases"),
            "Lease fedrs-system/fedrs-controller: leases.coordination.k8s.io is forbidden",
        ),
        (
            RequestMatcher::all().resource("namespaces"),
            "failed to create namespace fedrs-system on the host (leases.coordination.k8s.io is forbidden",
        ),
    ] {
        let fleet = Fleet::start_clusters(FleetSpec::default()).await;
        fleet.host().faults().refuse(
            requests,
            5,
            Status::forbidden(&kinds::LEASES, "", "by a fault"),
        );
        let mut first = Contender::start(&fleet, "first");
        first
            .stands(|it| matches!(it, LeaderState::Failed(why) if why.contains(part)))
            .await;
        first.leads().await;
    }
}
