//! L16, L21, L22: the groups, and the orders of removal and update.

use replica_set_controller::{
    Action, Eviction, Gate, Group, GroupCounts, InPlace, Life, Node, Pod, Readiness, RemovalRank,
    RemoveReason, Set,
};
use rstest::rstest;

use crate::fixtures::*;

#[rstest]
#[case::ready(pod("a"), Group::Ready)]
#[case::ready_old(old("a"), Group::Ready)]
#[case::not_long_ready(live("a", ready(-9)), Group::InProgress)]
#[case::long_ready(live("a", ready(-10)), Group::Ready)]
#[case::starting(live("a", starting()), Group::InProgress)]
#[case::no_node(Pod { node: None, ..live("a", starting()) }, Group::InProgress)]
#[case::out_of_endpoints(Pod { gate: Gate::Closed, ..live("a", starting()) }, Group::InProgress)]
#[case::restarting(Pod { in_place: InPlace::Restarting { since: at(-5) }, ..pod("a") }, Group::InProgress)]
#[case::never_restarts(Pod { in_place: InPlace::Restarting { since: at(-600) }, ..pod("a") }, Group::Failed)]
#[case::crashing(live("a", failed()), Group::Failed)]
#[case::too_long(live("a", not_ready(-600)), Group::Failed)]
#[case::not_too_long(live("a", not_ready(-599)), Group::InProgress)]
#[case::lost_node(Pod { node: Some(Node { name: "n", is_ready: false, is_cordoned: false }), ..pod("a") }, Group::Failed)]
#[case::leaving(live("a", terminating(-5)), Group::MarkedRemove)]
#[case::sent(live("a", Life::Terminating { since: None }), Group::MarkedRemove)]
fn l16_each_pod_has_a_group(#[case] pod: Pod<'static>, #[case] group: Group) {
    let pods = [pod];
    let plan = plan(&budget(1, 0), &pods);
    let counts = plan.counts.revisions[&pod.revision];
    let count = |of: Group| usize::from(of == group);
    let expected = GroupCounts {
        ready: count(Group::Ready),
        in_progress: count(Group::InProgress),
        failed: count(Group::Failed),
        marked_remove: count(Group::MarkedRemove),
    };
    assert_eq!(counts, expected);
}

fn not_ready(since: i64) -> Life<'static> {
    let (since, failure) = (at(since), None);
    Life::Live(Readiness::NotReady { since, failure })
}

#[test]
fn l16_what_was_begun_has_a_group() {
    let pods = [old("a")];
    let updated = plan_with(&budget(1, 1), &pods, &updating("a"));
    assert_eq!(updated.counts.revisions[&Some(OLD)].in_progress, 1);
    let evicted = plan_with(&budget(1, 1), &pods, &evicting("a", -5));
    assert_eq!(evicted.counts.revisions[&Some(OLD)].marked_remove, 1);
}

/// One pod of each rank of L21, apart from the first, and which of them is removed first, second and so on. Their names are in the
/// opposite order.
#[test]
fn l21_the_order_of_removal() {
    let requested = Pod {
        eviction: Some(Eviction::Voluntary),
        ..pod("g")
    };
    let pods = [
        pod("a"),
        live("b", starting()),
        live("c", failed()),
        old("d"),
        Pod {
            revision: Some(OLD),
            ..live("e", starting())
        },
        Pod {
            revision: Some(OLD),
            ..live("f", failed())
        },
        requested,
    ];
    let expected = [
        ("g", RemovalRank::EvictionRequested),
        ("f", RemovalRank::OutdatedFailed),
        ("e", RemovalRank::OutdatedInProgress),
        ("d", RemovalRank::OutdatedReady),
        ("c", RemovalRank::Failed),
        ("b", RemovalRank::InProgress),
        ("a", RemovalRank::Ready),
    ];
    for replicas in 0..=pods.len() {
        let plan = plan(&set(replicas), &pods);
        assert_eq!(removed(&plan.actions), expected[..pods.len() - replicas]);
    }
}

fn removed<'a>(actions: &[Action<'a>]) -> Vec<(&'a str, RemovalRank)> {
    let removed = actions.iter().filter_map(|action| match action {
        Action::Remove {
            pod,
            reason: RemoveReason::Surplus { rank },
        } => Some((pod.name, *rank)),
        _ => None,
    });
    removed.collect()
}

/// A pod that is being removed already counts first: nothing else is removed in its place. So does one whose eviction has begun.
#[test]
fn l21_what_is_marked_for_removal_goes_first() {
    let pods = [pod("a"), live("b", failed()), live("c", terminating(-5))];
    assert_eq!(removed(&plan(&set(2), &pods).actions), []);
    let marked = plan_with(&set(1), &pods, &evicting("a", -5));
    assert_eq!(removed(&marked.actions), [("a", RemovalRank::MarkedRemove)]);
}

/// Within a rank the first pod goes whose loss hurts less.
#[rstest]
#[case::unscheduled(Pod { node: None, ..live("b", starting()) }, live("a", starting()))]
#[case::not_ready(live("b", starting()), live("a", ready(-5)))]
#[case::cost(Pod { deletion_cost: -1, ..pod("b") }, pod("a"))]
#[case::cost_before_age(Pod { deletion_cost: 1, ..pod("b") }, Pod { deletion_cost: 2, life: ready(-20), ..pod("a") })]
#[case::ready_later(live("b", ready(-20)), live("a", ready(-30)))]
#[case::restarts(Pod { restarts: 2, ..pod("b") }, Pod { restarts: 1, ..pod("a") })]
#[case::younger(Pod { created: at(-1999), ..pod("b") }, pod("a"))]
#[case::name(pod("a"), pod("b"))]
fn l21_l22_within_a_rank_the_least_loss_goes_first(
    #[case] first: Pod<'static>,
    #[case] second: Pod<'static>,
) {
    for pods in [[first, second], [second, first]] {
        let plan = plan(&set(1), &pods);
        assert_eq!(removed(&plan.actions)[0].0, first.name);
        assert_eq!(actions(&plan).len(), 1);
    }
    let is_old = |pod: Pod<'static>| Pod {
        revision: Some(OLD),
        ..pod
    };
    for pods in [[first, second], [second, first]].map(|pods| pods.map(is_old)) {
        let set = Set {
            speed: Some(speed(1)),
            ..set(2)
        };
        assert_eq!(updates(&plan(&set, &pods)), [first.name]);
    }
}

/// The speed lets one, two and so on begin: failed, in progress, ready. Those that are leaving need no update, and those to be evicted
/// get their update by that.
#[test]
fn l22_the_order_of_update() {
    let is_old = |pod: Pod<'static>| Pod {
        revision: Some(OLD),
        ..pod
    };
    let pods = [
        old("a"),
        is_old(live("b", starting())),
        is_old(live("c", failed())),
        live("d", failed()),
        pod("e"),
    ];
    for (portion, expected) in [(1, &["c"][..]), (2, &["b", "c"]), (3, &["a", "b", "c"])] {
        let set = Set {
            speed: Some(speed(portion)),
            ..set(5)
        };
        assert_eq!(updates(&plan(&set, &pods)), expected);
    }
}
