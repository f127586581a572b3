//! Leader election: another controller takes over when the leader shuts down, crashes, is suspended or cut off.

mod candidate;

use std::time::Duration;

use federation_controller::election::{LeaderElectionConfig, LeaderState};
use fedrs_tests::{ReadyWatcher, SimFederation, SimFederationSpec, even, frs};
use serde_json::{Value, json};
use sim_cluster::{RequestMatcher, Status, Verb, kinds};
use tokio::time::{Instant, sleep};

use candidate::{Candidate, LEASE, NAMESPACE, timing};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/fedrs-system/leases";

/// A federation with two candidates; the first one is the leader.
async fn two_candidates() -> (SimFederation, Candidate, Candidate) {
    let federation = SimFederation::start_clusters(SimFederationSpec::default()).await;
    let mut first = Candidate::start(&federation, "first");
    first.leads().await;
    let mut second = Candidate::start(&federation, "second");
    second.follows(&first).await;
    // The first candidate has renewed its term.
    sleep(Duration::from_secs(5)).await;
    (federation, first, second)
}

async fn lease(federation: &SimFederation) -> Value {
    let path = format!("{LEASES}/{LEASE}");
    federation
        .on_host("GET", &path, &Value::Null)
        .await
        .expect("the Lease is there")
}

async fn settled(federation: &SimFederation, layout: [u64; 3]) -> bool {
    let wanted: Vec<u64> = federation.layout("web").into_values().collect();
    wanted == layout
        && federation.available("web") == layout.iter().sum::<u64>()
        && federation.is_settled("web").await
}

/// Creates the set `web`, and waits until it runs.
async fn run_web(federation: &SimFederation, layout: [u64; 3]) {
    let replicas = u32::try_from(layout.iter().sum::<u64>()).expect("a few");
    federation.create(&frs("web", replicas, &even(true))).await;
    federation
        .wait_until("all replicas run", 60, async |federation| {
            settled(federation, layout).await
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn the_first_candidate_becomes_leader_and_holds_the_lease() {
    let (federation, first, second) = two_candidates().await;
    let made = lease(&federation).await;
    assert_eq!(made["spec"]["holderIdentity"], "first");
    assert_eq!(made["spec"]["leaseDurationSeconds"], 15);
    assert_eq!(made["spec"]["leaseTransitions"], 0);
    assert_eq!(
        (first.metrics.leader.get(), second.metrics.leader.get()),
        (1, 0)
    );
    sleep(Duration::from_secs(60)).await;
    let renewed = lease(&federation).await;
    assert_eq!(renewed["spec"]["acquireTime"], made["spec"]["acquireTime"]);
    assert_ne!(renewed["spec"]["renewTime"], made["spec"]["renewTime"]);
    assert_eq!(second.host.writes(), 0, "a standby writes nothing");
    assert_eq!(first.state(), LeaderState::Leading);

    let path = format!("/api/v1/namespaces/{NAMESPACE}/events");
    let events = federation
        .on_host("GET", &path, &Value::Null)
        .await
        .unwrap();
    assert_eq!(events["items"][0]["message"], "first became leader");
    assert_eq!(events["items"][0]["involvedObject"]["kind"], "Lease");
}

#[tokio::test(start_paused = true)]
async fn a_crashed_leader_is_replaced_within_lease_duration_and_retry_period() {
    let (federation, mut leader, mut standby) = two_candidates().await;
    for round in 0..8_u64 {
        // Each round crashes the leader at another time between two renewals.
        sleep(Duration::from_millis(10_000 + 250 * round)).await;
        leader.crash().await;
        let took = standby.leads().await;
        let bound = timing().lease_duration + timing().retry_period;
        assert!(took <= bound, "round {round}: {took:?}");
        let earliest = timing()
            .lease_duration
            .saturating_sub(timing().retry_period);
        assert!(took >= earliest, "round {round}: {took:?}");
        assert_eq!(
            lease(&federation).await["spec"]["leaseTransitions"],
            round + 1
        );
        leader = standby;
        standby = Candidate::start(&federation, &format!("standby-{round}"));
        standby.follows(&leader).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_shuts_down_is_replaced_within_the_retry_period() {
    let (federation, first, mut second) = two_candidates().await;
    first.stop().await;
    let released = lease(&federation).await;
    let holder = released["spec"]["holderIdentity"].as_str();
    assert!(holder.is_none_or(str::is_empty), "{holder:?}");
    let took = second.leads().await;
    assert!(took <= timing().retry_period, "{took:?}");
    assert_eq!(lease(&federation).await["spec"]["leaseTransitions"], 1);
}

#[tokio::test(start_paused = true)]
async fn f20_a_leader_that_crashes_in_the_middle_of_a_move_leaves_no_dip_and_no_surplus() {
    let (federation, first, mut second) = two_candidates().await;
    run_web(&federation, [20, 20, 20]).await;
    let watcher = ReadyWatcher::start(&federation, "web");
    let weights = json!({ "a": { "weight": 4 }, "b": { "weight": 1 }, "c": { "weight": 1 } });
    federation
        .patch(
            "web",
            &json!({ "spec": { "placement": { "clusters": weights } } }),
        )
        .await;
    federation
        .wait_until("half of the move is done", 60, async |federation| {
            let layout = federation.layout("web");
            layout["a"] > 20 && layout["b"] + layout["c"] > 20 && layout["b"] < 20
        })
        .await;
    first.crash().await;
    second.leads().await;
    federation
        .wait_until("the move is done", 120, async |federation| {
            settled(federation, [40, 10, 10]).await
        })
        .await;
    assert_eq!(watcher.lowest(), 60);
    assert!(watcher.highest() <= 75, "{} at once", watcher.highest());
}

#[tokio::test(start_paused = true)]
async fn a_process_that_is_started_again_continues_its_own_term_at_once() {
    let (federation, mut first, mut second) = two_candidates().await;
    for round in 1..4 {
        first.crash().await;
        let set = format!("web-{round}");
        federation.create(&frs(&set, 6, &even(true))).await;
        let started = Instant::now();
        first = Candidate::start(&federation, "first");
        federation
            .wait_until("the new set lands", 10, async |federation| {
                federation.layout(&set).into_values().sum::<u64>() == 6
            })
            .await;
        assert!(started.elapsed() < Duration::from_secs(1), "{round}");
        assert_eq!(lease(&federation).await["spec"]["leaseTransitions"], round);
    }
    // Another process still waits until the Lease expires.
    second.follows(&first).await;
    first.crash().await;
    assert!(second.leads().await > timing().renew_deadline);
}

#[tokio::test(start_paused = true)]
async fn f20_a_resumed_term_removes_nothing_that_runs_while_earlier_writes_may_arrive() {
    let (federation, first, _second) = two_candidates().await;
    run_web(&federation, [4, 4, 4]).await;
    let watcher = ReadyWatcher::start(&federation, "web");
    first.crash().await;
    let fewer = json!({ "spec": { "replicas": 9 } });
    federation.patch("web", &fewer).await;
    let resumed = Instant::now();
    let first = Candidate::start(&federation, "first");
    sleep(timing().renew_deadline).await;
    assert_eq!(watcher.lowest(), 12, "a removal may be under way");
    // It arrives now: what the new process removes is decided with it.
    let set = "/apis/apps/v1/namespaces/default/replicasets/web";
    let late = json!({ "spec": { "replicas": 3 } });
    federation
        .on_member("a", "PATCH", set, &late)
        .await
        .unwrap();
    federation
        .wait_until("9 run", 60, async |federation| {
            settled(federation, [3, 3, 3]).await
        })
        .await;
    assert!(resumed.elapsed() >= timing().lease_duration);
    assert_eq!(watcher.lowest(), 9);
    assert_eq!(first.state(), LeaderState::Leading);
}

#[tokio::test(start_paused = true)]
async fn two_processes_of_one_identity_do_not_both_lead() {
    let (federation, mut first, second) = two_candidates().await;
    let mut namesake = Candidate::start(&federation, "first");
    namesake.leads().await;
    let took = first.wait_for(|state| *state != LeaderState::Leading).await;
    assert!(took <= timing().retry_period, "{took:?}");
    for _ in 0..60 {
        sleep(Duration::from_secs(1)).await;
        assert_eq!(namesake.state(), LeaderState::Leading);
        first.follows(&namesake).await;
    }
    assert_eq!(lease(&federation).await["spec"]["leaseTransitions"], 1);
    second.stop().await;
    namesake.crash().await;
    // The one that knows that it is not alone waits until the Lease expires, as any other.
    assert!(first.leads().await > timing().renew_deadline);
}

/// The number of sets; another writer changes one of them each half second.
const SETS: usize = 60;

/// The name of a set; the first one is `web`.
fn set_name(number: usize) -> String {
    match number % SETS {
        0 => "web".to_owned(),
        number => format!("web-{number}"),
    }
}

/// Creates enough sets to change each of them only once: drift of the same set is repaired at most once in
/// 10 s.
async fn create_sets(federation: &SimFederation) {
    for number in 0..SETS {
        federation
            .create(&frs(&set_name(number), 6, &even(true)))
            .await;
    }
    for number in 0..SETS {
        let name = set_name(number);
        federation
            .wait_until("each set is available", 60, async |federation| {
                federation.available(&name) == 6
            })
            .await;
    }
    federation
        .wait_until("6 run", 60, async |federation| {
            settled(federation, [2, 2, 2]).await
        })
        .await;
}

/// Scales down another set in `a` every half second, so that the leader always has something to write there, until
/// `second` is the leader. `first`, which can't renew its term from now on, writes for most of the term, and then nothing
/// for as long as requests in flight may still arrive.
async fn ends_writing_before_it_is_replaced(
    federation: &SimFederation,
    first: &Candidate,
    second: &Candidate,
) {
    let began = Instant::now();
    let mut last_write = None;
    let mut writes = first.members.writes();
    let mut rounds = 0;
    while second.state() != LeaderState::Leading {
        if rounds % 50 == 0 {
            let set = format!(
                "/apis/apps/v1/namespaces/default/replicasets/{}",
                set_name(rounds / 50)
            );
            federation
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
        assert!(rounds < 6000, "no candidate took over within a minute");
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
async fn a_leader_cut_off_from_the_host_stops_writing_before_another_takes_over() {
    let (federation, mut first, second) = two_candidates().await;
    create_sets(&federation).await;
    first.host.end();
    ends_writing_before_it_is_replaced(&federation, &first, &second).await;
    first
        .wait_for(|state| matches!(state, LeaderState::Failed(_)))
        .await;
    federation
        .wait_until(
            "the second controller repairs the drift",
            60,
            async |federation| settled(federation, [2, 2, 2]).await,
        )
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_does_not_notice_the_end_of_its_term_is_fenced() {
    let (federation, mut first, second) = two_candidates().await;
    create_sets(&federation).await;
    first.suspend();
    ends_writing_before_it_is_replaced(&federation, &first, &second).await;
    assert_eq!(
        first.state(),
        LeaderState::Leading,
        "the first candidate has not noticed yet"
    );
    assert!(
        first.metrics.fenced_writes.get() > 0,
        "the fence rejected writes"
    );

    let writes = first.members.writes();
    first.resume();
    first.follows(&second).await;
    federation
        .wait_until(
            "the second controller repairs the drift",
            60,
            async |federation| settled(federation, [2, 2, 2]).await,
        )
        .await;
    assert_eq!(first.members.writes(), writes);

    // A candidate may become leader more than once.
    second.stop().await;
    first.leads().await;
    federation
        .patch("web", &json!({ "spec": { "replicas": 9 } }))
        .await;
    federation
        .wait_until("9 run", 60, async |federation| {
            settled(federation, [3, 3, 3]).await
        })
        .await;
    assert!(first.members.writes() > writes);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_recreated_by_the_leader() {
    let (federation, first, second) = two_candidates().await;
    let before = lease(&federation).await;
    let path = format!("{LEASES}/{LEASE}");
    federation
        .on_host("DELETE", &path, &Value::Null)
        .await
        .unwrap();
    sleep(2 * timing().retry_period).await;
    let after = lease(&federation).await;
    assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(after["spec"]["holderIdentity"], "first");
    assert_eq!(first.state(), LeaderState::Leading);
    assert_ne!(second.state(), LeaderState::Leading);
}

/// Otherwise it would go on with watches that show nothing of what was restored.
#[tokio::test(start_paused = true)]
async fn a_leader_whose_host_is_restored_from_a_backup_begins_a_new_term() {
    let (federation, mut first, second) = two_candidates().await;
    let backup = federation.host().snapshot();
    // The Lease is renewed several times.
    sleep(Duration::from_secs(7)).await;
    let before = lease(&federation).await;
    federation.host().restore(&backup);
    first.wait_for(|state| *state != LeaderState::Leading).await;
    let again = first.leads().await;
    assert!(again <= timing().retry_period, "{again:?}");
    let after = lease(&federation).await;
    assert_ne!(after["spec"]["acquireTime"], before["spec"]["acquireTime"]);
    assert_ne!(second.state(), LeaderState::Leading);
}

/// Neither a backup nor a time without a leader says which members have lost their power: what they report may be of before.
#[tokio::test(start_paused = true)]
async fn f33_nothing_that_runs_is_removed_for_a_while_where_no_outage_is_recorded() {
    for (restored, away, waits) in [(true, 0, true), (false, 90, true), (false, 30, false)] {
        let (federation, mut first, second) = two_candidates().await;
        second.stop().await;
        run_web(&federation, [4, 4, 4]).await;
        let watcher = ReadyWatcher::start(&federation, "web");
        if restored {
            let backup = federation.host().snapshot();
            // The Lease is renewed several times.
            sleep(Duration::from_secs(7)).await;
            federation.host().restore(&backup);
            first.wait_for(|state| *state != LeaderState::Leading).await;
        } else {
            first.stop().await;
            sleep(Duration::from_secs(away)).await;
            first = Candidate::start(&federation, "first");
        }
        first.leads().await;
        let began = Instant::now();
        let fewer = json!({ "spec": { "replicas": 9 } });
        federation.patch("web", &fewer).await;
        federation
            .wait_until("9 run", 180, async |federation| {
                settled(federation, [3, 3, 3]).await
            })
            .await;
        let waited = began.elapsed() >= Duration::from_secs(115);
        assert_eq!(waited, waits, "{restored} {away} {:?}", began.elapsed());
        assert_eq!(watcher.lowest(), 9);
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_survives_conflicts_lost_responses_and_a_short_outage() {
    let (federation, first, second) = two_candidates().await;
    let path = format!("{LEASES}/{LEASE}");
    let label = json!({ "metadata": { "labels": { "seen": "yes" } } });
    let renewals = || RequestMatcher::all().verb(Verb::Update).resource("leases");
    for round in 0..4 {
        federation.on_host("PATCH", &path, &label).await.unwrap();
        federation.host().faults().lose_responses(renewals(), 1);
        sleep(Duration::from_secs(3)).await;
        federation.host().faults().refuse(
            renewals(),
            3,
            Status::conflict(&kinds::LEASES, LEASE, "by a fault"),
        );
        sleep(Duration::from_secs(9)).await;
        federation.host().faults().set_unreachable(true);
        sleep(Duration::from_secs(6)).await;
        federation.host().faults().heal();
        assert_eq!(first.state(), LeaderState::Leading, "round {round}");
    }
    let counts = federation.host().faults().counts();
    assert!(
        counts.responses_lost > 0 && counts.refused > 0 && counts.unreachable > 0,
        "{counts:?}"
    );
    assert_eq!(lease(&federation).await["spec"]["leaseTransitions"], 0);
    assert_ne!(second.state(), LeaderState::Leading);
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_host_ends_the_term_until_it_returns() {
    let (federation, mut first, mut second) = two_candidates().await;
    federation.host().faults().set_unreachable(true);
    first
        .wait_for(|state| matches!(state, LeaderState::Failed(_)))
        .await;
    second
        .wait_for(|state| matches!(state, LeaderState::Failed(_)))
        .await;
    assert_eq!(first.metrics.leader.get(), 0);
    federation.host().faults().heal();
    first.leads().await;
    assert_eq!(lease(&federation).await["spec"]["holderIdentity"], "first");
    second.follows(&first).await;
}

#[tokio::test(start_paused = true)]
async fn a_candidate_reports_why_it_can_not_take_part() {
    for (requests, part) in [
        (
            RequestMatcher::all().resource("leases"),
            "Lease fedrs-system/fedrs-controller: leases.coordination.k8s.io is forbidden",
        ),
        (
            RequestMatcher::all().resource("namespaces"),
            "failed to create namespace fedrs-system for the Lease (leases.coordination.k8s.io is forbidden",
        ),
    ] {
        let federation = SimFederation::start_clusters(SimFederationSpec::default()).await;
        federation.host().faults().refuse(
            requests,
            5,
            Status::forbidden(&kinds::LEASES, "", "by a fault"),
        );
        let mut first = Candidate::start(&federation, "first");
        first
            .wait_for(|state| matches!(state, LeaderState::Failed(why) if why.contains(part)))
            .await;
        first.leads().await;
    }
}
