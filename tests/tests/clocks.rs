//! Clocks that are wrong or corrected: a member's, the host's and the controller's own. No period ends early because of that.

use std::time::Duration;

use fedrs_tests::{SimFederation, SimFederationSpec, even, frs};
use jiff::SignedDuration;
use serde_json::json;

async fn seconds(count: u64) {
    tokio::time::sleep(Duration::from_secs(count)).await;
}

/// Three members. c has capacity for one replica instead of four, and its clock differs from the others by `wrong` seconds.
/// Returns once twelve replicas are requested.
async fn with_a_full_member(wrong: i64) -> SimFederation {
    let mut spec = SimFederationSpec::default();
    (spec.members[2].nodes, spec.members[2].pods_per_node) = (1, 1);
    let federation = SimFederation::start(spec).await;
    let clock = federation.member("c").clock();
    clock.step(SignedDuration::from_secs(wrong));
    federation.create(&frs("web", 12, &even(true))).await;
    federation
        .wait_until("all are requested", 10, async |federation| {
            federation.sorted_layout("web") == [4, 4, 4]
        })
        .await;
    federation
}

/// Asserts that the three pending replicas of c are rescheduled `after` seconds from now, and not before.
async fn rescheduled_after(federation: &SimFederation, after: u64) {
    seconds(after - 5).await;
    assert_eq!(federation.sorted_layout("web"), [4, 4, 4]);
    seconds(10).await;
    assert_eq!(federation.available("web"), 12);
}

#[tokio::test(start_paused = true)]
async fn f34_a_members_wrong_clock_fails_no_pod_early_or_late() {
    for wrong in [-90, 90] {
        let federation = with_a_full_member(wrong).await;
        rescheduled_after(&federation, 60).await;
    }
}

#[tokio::test(start_paused = true)]
async fn f34_another_leader_measures_by_the_members_own_clock() {
    for wrong in [-90, 90] {
        let mut federation = with_a_full_member(wrong).await;
        seconds(30).await;
        federation.stop_controller().await;
        federation.start_controller().await;
        rescheduled_after(&federation, 30).await;
    }
}

#[tokio::test(start_paused = true)]
async fn f34_a_correction_of_a_members_clock_ends_no_period() {
    for correction in [-90, 90] {
        let federation = with_a_full_member(0).await;
        seconds(30).await;
        let clock = federation.member("c").clock();
        clock.step(SignedDuration::from_secs(correction));
        rescheduled_after(&federation, 30).await;
    }
}

#[tokio::test(start_paused = true)]
async fn f33_a_correction_of_our_own_clock_ends_no_period() {
    for correction in [-3600, 3600] {
        let federation = with_a_full_member(0).await;
        seconds(30).await;
        federation.step_clock(SignedDuration::from_secs(correction));
        // While the controller's clock catches up with an hour, a minute takes up to a tenth more or less.
        rescheduled_after(&federation, 30).await;
        federation.member("a").faults().set_unreachable(true);
        seconds(10).await;
        federation.step_clock(SignedDuration::from_secs(correction));
        seconds(40).await;
        let requested = federation.layout("web")["b"];
        seconds(60).await;
        assert!(
            federation.layout("web")["b"] > requested,
            "a is lost by now"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn f5_a_deletion_waits_as_long_whatever_the_clock_of_the_host_says() {
    for wrong in [-3600, 3600] {
        let federation = SimFederation::running(6).await;
        let clock = federation.host().clock();
        clock.step(SignedDuration::from_secs(wrong));
        federation.member("c").faults().set_unreachable(true);
        seconds(10).await;
        federation.delete("web").await;
        seconds(9 * 60).await;
        assert!(!federation.frs("web").await.is_null(), "{wrong}");
        seconds(2 * 60).await;
        assert_eq!(federation.frs("web").await, json!(null), "{wrong}");
    }
}
