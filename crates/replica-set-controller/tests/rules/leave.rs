//! L12, L13, L17, L18, L21: clients leave a ready pod before it is removed or its containers restart (`drainSeconds`).

use std::time::Duration;

use fedrs_api::LocalRecord;
use replica_set_controller::{
    Action, BudgetUser, Eviction, Gate, Group, Node, Owner, Pod, PodWait, Purpose, RemoveReason,
    Set, Wait,
};
use rstest::rstest;

use crate::fixtures::*;

const LOST: Option<Node<'static>> = Some(Node {
    name: "node",
    is_ready: false,
    is_cordoned: false,
});

/// A pod, still ready though its gate is closed since the time.
fn still_ready(since: i64) -> Pod<'static> {
    Pod {
        life: ready(-1000),
        ..draining(pod("a"), since)
    }
}

/// What happens to one pod too many, with and without `drainSeconds`; and when it is looked at again.
#[rstest]
#[case::ready(pod("a"), "Drain a", "Remove a", None)]
#[case::not_ready(live("a", starting()), "Remove a", "Remove a", None)]
#[case::failed(live("a", failed()), "Remove a", "Remove a", None)]
#[case::never_in_endpoints(Pod { gate: Gate::Unset, ..live("a", starting()) }, "Remove a", "Remove a", None)]
#[case::being_updated(Pod { gate: Gate::Closed, ..live("a", starting()) }, "Remove a", "Remove a", None)]
#[case::without_the_gate(Pod { gate: Gate::Absent, ..pod("a") }, "Remove a", "Remove a", None)]
#[case::on_a_lost_node(Pod { node: LOST, ..pod("a") }, "Remove a", "Remove a", None)]
#[case::leaving(draining(pod("a"), 0), "", "", Some(31))]
#[case::leaving_for_a_while(draining(pod("a"), -30), "", "Remove a", Some(1))]
#[case::left(draining(pod("a"), -31), "Remove a", "Remove a", None)]
#[case::leaving_on_a_lost_node(Pod { node: LOST, ..draining(pod("a"), 0) }, "Remove a", "Remove a", None)]
#[case::by_another_clock(draining(pod("a"), 1), "Drain a", "Drain a", None)]
#[case::still_ready(still_ready(-31), "", "", Some(60))]
#[case::still_ready_for_long(still_ready(-90), "", "Remove a", Some(1))]
#[case::never_seen_out_of_endpoints(still_ready(-91), "Remove a", "Remove a", None)]
fn l13_l17_clients_leave_a_surplus_pod(
    #[case] surplus: Pod<'static>,
    #[case] with: &str,
    #[case] without: &str,
    #[case] next: Option<i64>,
) {
    let pods = [surplus];
    let without_drain = Set {
        progress_deadline: None,
        ..set(0)
    };
    let drained = plan(&with_drain(without_drain), &pods);
    assert_eq!(actions(&drained).join(","), with);
    assert_eq!(drained.next, next.map(at));
    assert_eq!(drained.record, LocalRecord::default());
    let removed = plan(&without_drain, &pods);
    assert_eq!(actions(&removed).join(","), without);
}

#[rstest]
#[case(draining(pod("a"), -10), PodWait::Drain { until: at(21) })]
#[case(still_ready(-10), PodWait::Drain { until: at(21) })]
#[case(still_ready(-50), PodWait::OutOfEndpoints)]
fn l17_a_pod_says_until_when_clients_leave_it(
    #[case] leaving: Pod<'static>,
    #[case] reason: PodWait,
) {
    let pods = [leaving];
    let plan = plan(&with_drain(set(0)), &pods);
    assert_eq!(plan.waits, [Wait::Pod { pod: "a", reason }]);
}

/// Pods that clients leave are removed, whatever becomes of the others meanwhile; and the fewer that are still surplus.
#[rstest]
#[case::l21_another_fails(2, vec![live("a", failed()), pod("b"), draining(pod("c"), -5)], &[])]
#[case::l21_others_are_outdated(2, vec![old("a"), old("b"), draining(pod("c"), -5)], &[])]
#[case::l21_an_eviction_is_asked_for(
    2,
    vec![Pod { eviction: Some(Eviction::Involuntary), ..pod("a") }, pod("b"), draining(pod("c"), -5)],
    &[]
)]
#[case::l21_one_more(1, vec![pod("a"), pod("b"), draining(pod("c"), -5)], &["Drain a"])]
#[case::l13_scaled_up(3, vec![pod("a"), pod("b"), draining(pod("c"), -5)], &["OpenGate c"])]
#[case::l13_scaled_up_later(3, vec![pod("a"), pod("b"), draining(pod("c"), -500)], &["OpenGate c"])]
#[case::l13_another_one_is_gone(3, vec![pod("a"), live("b", terminating(-5)), pod("d"), draining(pod("c"), -5)], &["OpenGate c"])]
#[case::l13_half_of_it(2, vec![pod("a"), draining(pod("b"), -5), draining(pod("c"), -5)], &["OpenGate c"])]
fn the_pods_that_clients_leave_are_the_ones_that_are_removed(
    #[case] replicas: usize,
    #[case] pods: Vec<Pod<'static>>,
    #[case] expected: &[&str],
) {
    let plan = plan(&with_drain(set(replicas)), &pods);
    assert_eq!(actions(&plan), expected);
}

/// One that clients leave as surplus stays before one that they leave for its eviction, though that is the same rank.
#[test]
fn l21_an_eviction_changes_nothing_about_the_surplus() {
    let evicted = Pod {
        eviction: Some(Eviction::Voluntary),
        ..draining(pod("a"), -31)
    };
    let pods = [evicted, pod("b"), draining(pod("c"), -5)];
    let plan = plan_with(&with_drain(set(2)), &pods, &evicting("a", -40));
    let pod = &pods[0];
    let by = pod.eviction;
    let reason = RemoveReason::Evicted { by };
    assert_eq!(plan.actions, [Action::Remove { pod, reason }]);
    let reason = PodWait::Drain { until: at(26) };
    assert!(plan.waits.contains(&Wait::Pod { pod: "c", reason }));
}

#[test]
fn c1_a_pod_is_adopted_before_clients_leave_it() {
    let pods = [Pod {
        owner: Owner::Nobody,
        ..pod("a")
    }];
    let plan = plan(&with_drain(set(0)), &pods);
    assert_eq!(actions(&plan), ["Adopt a"]);
}

/// A surplus pod is not one of the replicas that stay: it uses nothing of the budget, and delays no eviction. Updates wait until the
/// number of pods is right.
#[rstest]
#[case::leaving(draining(pod("c"), -5), 0, &["a"])]
#[case::not_yet(pod("c"), 0, &[])]
fn l13_l14_a_surplus_pod_that_clients_leave_uses_no_budget(
    #[case] surplus: Pod<'static>,
    #[case] in_use: usize,
    #[case] evicted: &[&str],
) {
    let asked = Pod {
        eviction: Some(Eviction::Involuntary),
        ..pod("a")
    };
    let pods = [asked, old("b"), surplus];
    let set = with_drain(budget(2, 1));
    let plan = plan(&set, &pods);
    let used = plan.account.in_use;
    assert_eq!(
        (used, evictions(&plan)),
        (in_use + evicted.len(), evicted.to_vec())
    );
    assert_eq!(updates(&plan), [""; 0]);
    assert!(set_waits(&plan).contains(&Wait::Scaling { pods: 1 }));
    assert_eq!(plan.counts.revisions[&Some(OLD)].ready, 1);
}

/// Once it is to stay, it uses the budget until it is available again.
#[test]
fn l14_a_pod_that_was_surplus_uses_the_budget_while_it_returns() {
    let asked = Pod {
        eviction: Some(Eviction::Voluntary),
        ..pod("a")
    };
    let pods = [asked, pod("b"), draining(pod("c"), -5)];
    let plan = plan(&with_drain(budget(3, 1)), &pods);
    assert_eq!((plan.account.in_use, plan.account.missing), (1, 0));
    assert_eq!(actions(&plan), ["OpenGate c"]);
    let waits = set_waits(&plan);
    let purpose = Purpose::Eviction;
    let by = vec![BudgetUser {
        pod: "c",
        group: Group::MarkedRemove,
        failure: None,
    }];
    let pods = 1;
    assert_eq!(waits, [Wait::Budget { purpose, pods, by }]);
}

/// What an eviction that was recorded does next: of a pod that is asked to leave, and of one that is not any more.
#[rstest]
#[case::l18_ready(pod("a"), true, "Drain a")]
#[case::l18_leaving(draining(pod("a"), -5), true, "")]
#[case::l18_left(draining(pod("a"), -31), true, "Remove a")]
#[case::l18_not_ready(live("a", starting()), true, "Remove a")]
#[case::l18_on_a_lost_node(Pod { node: LOST, ..draining(pod("a"), -5) }, true, "Remove a")]
// Its request may be on its way: it is seen to have left before it returns.
#[case::l18_cancelled_before(pod("a"), false, "Drain a")]
#[case::l18_cancelled(draining(pod("a"), -5), false, "OpenGate a")]
#[case::l18_cancelled_late(draining(pod("a"), -500), false, "OpenGate a")]
fn clients_leave_a_pod_before_its_eviction(
    #[case] evicted: Pod<'static>,
    #[case] is_asked: bool,
    #[case] expected: &str,
) {
    let eviction = is_asked.then_some(Eviction::Voluntary);
    let pods = [
        Pod {
            eviction,
            ..evicted
        },
        pod("b"),
    ];
    let plan = plan_with(&with_drain(budget(2, 1)), &pods, &evicting("a", -40));
    assert_eq!(actions(&plan).join(","), expected);
    let is_over = expected == "OpenGate a";
    assert_eq!(evictions(&plan).is_empty(), is_over);
    assert_eq!(plan.account.in_use, 1, "it is unavailable all the time");
}

/// A pod that was surplus, and is to leave its node: it does not return in between.
#[test]
fn l18_a_pod_that_was_surplus_stays_out_of_endpoints_for_its_eviction() {
    let pods = [Pod {
        eviction: Some(Eviction::Voluntary),
        ..draining(pod("a"), -5)
    }];
    let set = with_drain(budget(1, 1));
    let first = plan(&set, &pods);
    assert_eq!((actions(&first), evictions(&first)), (vec![], vec!["a"]));
    let second = plan_with(&set, &pods, &first.record);
    assert_eq!(actions(&second), [""; 0]);
    let reason = PodWait::Drain { until: at(26) };
    assert!(second.waits.contains(&Wait::Pod { pod: "a", reason }));
}

/// What an update that was recorded does next, in place and by recreation.
#[rstest]
#[case::ready(pod("a"), "Drain a", "Drain a")]
#[case::leaving(draining(pod("a"), -5), "", "")]
#[case::left(draining(pod("a"), -31), "Patch a", "Remove a")]
#[case::still_ready(still_ready(-31), "", "")]
#[case::never_seen_out_of_endpoints(still_ready(-91), "Patch a", "Remove a")]
#[case::not_ready(live("a", failed()), "CloseGate a", "Remove a")]
#[case::not_ready_before(Pod { gate: Gate::Closed, ..live("a", starting()) }, "Patch a", "Remove a")]
#[case::without_the_gate(Pod { gate: Gate::Absent, ..pod("a") }, "Patch a", "Remove a")]
fn l12_clients_leave_a_pod_before_its_update(
    #[case] updated: Pod<'static>,
    #[case] in_place: &str,
    #[case] recreated: &str,
) {
    for (revision, record, expected) in [
        (OLD, updating("a"), in_place),
        (OTHER, recreating("a"), recreated),
    ] {
        let revision = Some(revision);
        let pods = [Pod {
            revision,
            ..updated
        }];
        let plan = plan_with(&with_drain(budget(1, 1)), &pods, &record);
        assert_eq!(actions(&plan).join(","), expected);
        assert_eq!(plan.account.in_use, 1);
        let is_begun = matches!(updated.gate, Gate::Draining { .. });
        assert_eq!(plan.record.updates["a"].seen, is_begun);
    }
}

/// The template is set back while clients leave the pod.
#[test]
fn l12_an_update_that_is_undone_ends_with_the_gate_open() {
    for record in [updating("a"), recreating("a")] {
        let pods = [draining(pod("a"), -5)];
        let plan = plan_with(&with_drain(set(1)), &pods, &record);
        assert_eq!(actions(&plan), ["OpenGate a"]);
        assert_eq!(updates(&plan), [""; 0]);
    }
}

/// Clients may take longer than `progressDeadlineSeconds`: the pod has not failed.
#[test]
fn l16_a_pod_does_not_fail_while_clients_leave_it() {
    let pods = [
        Pod {
            revision: Some(OLD),
            ..draining(pod("a"), -700)
        },
        draining(pod("b"), -700),
    ];
    let hour = Duration::from_secs(3600);
    let set = Set {
        drain: hour,
        ..set(1)
    };
    let counts = plan_with(&set, &pods, &updating("a")).counts;
    let [updated, surplus] = [OLD, TARGET].map(|revision| counts.revisions[&Some(revision)]);
    assert_eq!((updated.in_progress, surplus.marked_remove), (1, 1));
}

/// An eviction is not late before clients have left its pod.
#[test]
fn l19_an_eviction_may_take_longer_while_clients_leave_its_pod() {
    let asked = Pod {
        eviction: Some(Eviction::Voluntary),
        ..draining(pod("a"), -5)
    };
    let pods = [asked, old("b")];
    for (set, is_late) in [(set(2), true), (with_drain(set(2)), false)] {
        let plan = plan_with(&set, &pods, &evicting("a", -610));
        let is_blocked = |wait: &Wait<'_>| matches!(wait, Wait::EvictionBlocked { .. });
        assert_eq!(plan.waits.iter().any(is_blocked), is_late);
        assert_eq!(updates(&plan).is_empty(), !is_late);
    }
}
