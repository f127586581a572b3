//! L18, L19, L20: evictions, within the budget and before updates.

use replica_set_controller::{Action, Eviction, EvictionBy, Pod, Purpose, RemoveReason, Wait};
use rstest::rstest;

use crate::fixtures::*;

fn requested(pod: Pod<'static>, by: Eviction) -> Pod<'static> {
    Pod {
        eviction: Some(by),
        ..pod
    }
}

#[test]
fn l18_an_eviction_is_recorded_and_then_carried_out() {
    let pods = [requested(old("a"), Eviction::Voluntary)];
    let first = plan(&set(1), &pods);
    assert_eq!((actions(&first), evictions(&first)), (vec![], vec!["a"]));
    assert_eq!(updates(&first), [""; 0], "its successor is updated");
    let second = plan_with(&set(1), &pods, &first.record);
    let by = Some(Eviction::Voluntary);
    let reason = RemoveReason::Evicted { by };
    let pod = &pods[0];
    assert_eq!(second.actions, [Action::Remove { pod, reason }]);
}

/// Found by simulation: the pods of nodes that asked to evict them, and were not cordoned, were replaced there without a pause.
#[rstest]
#[case::old(-30, vec!["a"], None)]
#[case::young(-5, vec![], Some(25))]
#[case::by_another_clock(5, vec!["a"], None)]
fn l18_a_young_pod_of_a_node_that_evicts_it_stays_for_a_while(
    #[case] created: i64,
    #[case] expected: Vec<&str>,
    #[case] next: Option<i64>,
) {
    let young = Pod {
        created: at(created),
        eviction_by: EvictionBy::Node,
        ..requested(pod("a"), Eviction::Voluntary)
    };
    let pods = [young];
    let plan = plan(&set(1), &pods);
    assert_eq!(evictions(&plan), expected);
    assert!(
        next.is_none_or(|next| plan.next == Some(at(next))),
        "{plan:#?}"
    );
    let own = [Pod {
        eviction_by: EvictionBy::Pod,
        ..young
    }];
    assert_eq!(
        evictions(&self::plan(&set(1), &own)),
        ["a"],
        "somebody asks for this pod"
    );
}

/// Which of a budget of 1 are evicted: involuntary ones first, and those that are not available in any case.
#[rstest]
#[case::one(vec![requested(pod("a"), Eviction::Voluntary)], vec!["a"])]
#[case::two(vec![requested(pod("a"), Eviction::Voluntary), requested(pod("b"), Eviction::Voluntary)], vec!["a"])]
#[case::involuntary(vec![requested(pod("a"), Eviction::Voluntary), requested(pod("b"), Eviction::Involuntary)], vec!["b"])]
#[case::broken(vec![requested(pod("a"), Eviction::Voluntary), requested(live("b", failed()), Eviction::Voluntary)], vec!["b"])]
#[case::in_use(vec![requested(pod("a"), Eviction::Voluntary), live("b", failed())], vec![])]
#[case::removed(vec![requested(live("a", terminating(-5)), Eviction::Voluntary), pod("b")], vec![])]
fn l20_evictions_keep_to_the_budget(#[case] pods: Vec<Pod<'static>>, #[case] expected: Vec<&str>) {
    let live = pods
        .iter()
        .filter(|pod| matches!(pod.life, replica_set_controller::Life::Live(_)));
    let plan = plan(&budget(live.count(), 1), &pods);
    assert_eq!(evictions(&plan), expected);
}

#[test]
fn l20_a_wait_names_the_pods_that_use_the_budget() {
    let pods = [
        requested(pod("a"), Eviction::Voluntary),
        live("b", failed()),
    ];
    let plan = plan(&budget(2, 1), &pods);
    let waits = set_waits(&plan);
    let [Wait::Budget { purpose, pods, by }] = &waits[..] else {
        panic!("{waits:?}")
    };
    assert_eq!((*purpose, *pods), (Purpose::Eviction, 1));
    assert_eq!(by.iter().map(|user| user.pod).collect::<Vec<_>>(), ["b"]);
    assert_eq!(
        plan.record.evictions["a"].since,
        now(),
        "its time limit begins"
    );
}

/// No update begins until an eviction is finished, or for too long.
#[rstest]
#[case::requested(vec![requested(pod("a"), Eviction::Voluntary)], 0, false)]
#[case::begun(vec![pod("a")], -5, false)]
#[case::leaving(vec![live("a", terminating(-5)), pod("c")], -5, false)]
#[case::replacement_starts(vec![Pod { created: at(-4), ..live("c", starting()) }], -5, false)]
#[case::replacement_fails(vec![Pod { created: at(-4), ..live("c", failed()) }], -5, false)]
#[case::replaced(vec![Pod { created: at(-20), ..live("c", ready(-15)) }], -25, true)]
#[case::too_long(vec![Pod { created: at(-4), ..live("c", failed()) }], -600, true)]
#[case::stuck(vec![pod("a")], -600, true)]
fn l19_no_update_begins_while_an_eviction_is_unfinished(
    #[case] others: Vec<Pod<'static>>,
    #[case] since: i64,
    #[case] begins: bool,
) {
    let pods = [vec![old("z")], others].concat();
    let record = evicting("a", since);
    let plan = plan_with(&set(2), &pods, &record);
    assert_eq!(updates(&plan) == ["z"], begins, "{plan:#?}");
    let waits = plan
        .waits
        .iter()
        .any(|wait| matches!(wait, Wait::Evictions { .. }));
    assert_eq!(waits, !begins);
}

#[test]
fn l19_a_blocked_eviction_is_named() {
    let pods = [
        requested(pod("a"), Eviction::Voluntary),
        live("b", failed()),
    ];
    let mut record = evicting("a", -600);
    record
        .evictions
        .values_mut()
        .for_each(|eviction| eviction.begun = false);
    let plan = plan_with(&budget(2, 1), &pods, &record);
    let blocked = Wait::EvictionBlocked {
        pod: "a",
        since: at(-600),
    };
    assert!(plan.waits.contains(&blocked), "{:?}", plan.waits);
}

/// A request that is taken back is forgotten, unless its pod may be removed already.
#[test]
fn l18_a_request_that_is_taken_back_is_forgotten() {
    let pods = [pod("a")];
    let mut record = evicting("a", -5);
    assert_eq!(actions(&plan_with(&set(1), &pods, &record)), ["Remove a"]);
    record
        .evictions
        .values_mut()
        .for_each(|eviction| eviction.begun = false);
    let plan = plan_with(&set(1), &pods, &record);
    assert!(plan.record.evictions.is_empty() && plan.actions.is_empty());
}

/// A pod that was to be recreated is evicted instead: its successor has another name, and does not prefer the node.
#[test]
fn l18_the_successor_of_an_evicted_pod_goes_elsewhere() {
    let pods = [live("a", terminating(-5))];
    let mut record = recreating("a");
    record.evictions = evicting("a", -5).evictions;
    let plan = plan_with(&set(1), &pods, &record);
    let [Action::Create { name, prefers, .. }] = &plan.actions[..] else {
        panic!("{plan:#?}")
    };
    assert!(name != "a" && prefers.is_none());
    assert!(plan.record.updates.is_empty());
}
