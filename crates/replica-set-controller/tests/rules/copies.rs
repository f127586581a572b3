//! M2, M3, M4: pods that are copied before they are removed.

use fedrs_api::{
    AwaitedAction, EvictionRecord, LocalRecord, MigrationPhase, RecreateRecord,
    ValidMigrationPolicy,
};
use replica_set_controller::{
    Action, Confirmed, Eviction, Gate, Guard, Life, MigrationStates, MigrationWait, Node, Pod,
    RequestedMigration, Set, Start, Wait,
};
use rstest::rstest;
use serde_json::{Value, json};

use crate::fixtures::*;

/// One that copies, with these fields of `copy`.
fn copying(copy: &Value) -> ValidMigrationPolicy {
    let between = json!({ "hardware": 0, "compaction": 0 });
    policy(json!({ "method": "Copy", "copy": copy, "minSecondsBetween": between }))
}

fn asked(pod: Pod<'static>, confirmed: Confirmed) -> Pod<'static> {
    Pod {
        eviction: Some(Eviction::Voluntary),
        migration: Some(RequestedMigration {
            deadline: at(1000),
            is_compaction: false,
            confirmed,
        }),
        ..pod
    }
}

fn leaving(name: &'static str) -> Pod<'static> {
    asked(pod(name), Confirmed::default())
}

/// The record of the copy `c` of `a`.
fn copied(begun: bool) -> LocalRecord {
    let copy = RecreateRecord {
        name: "c".to_owned(),
        node: None,
        shard: None,
        gated: false,
    };
    let eviction = EvictionRecord {
        copy: Some(copy),
        begun,
        ..EvictionRecord::requested(at(-30))
    };
    LocalRecord {
        evictions: [("a".to_owned(), eviction)].into(),
        ..LocalRecord::default()
    }
}

/// The copy, which has been there for 25 s.
fn copy(life: Life<'static>) -> Pod<'static> {
    Pod {
        created: at(-25),
        ..live("c", life)
    }
}

fn phase_of(
    set: &Set<'_>,
    pods: &[Pod<'_>],
    record: &LocalRecord,
) -> (MigrationPhase, Option<AwaitedAction>) {
    let plan = plan_with(set, pods, record);
    let state = MigrationStates::new(set, pods, (&plan, &plan.record), now()).of("a", "a", true);
    (state.phase, state.awaits)
}

/// With a budget of nothing but the one pod, as of every set.
#[test]
fn m2_another_pod_is_available_before_the_old_one_is_removed() {
    let policy = copying(&json!({}));
    let set = with(budget(2, 1), &policy);
    let pods = [leaving("a"), pod("b")];
    let recorded = plan(&set, &pods);
    assert!(recorded.actions.is_empty(), "it is recorded first");
    assert_eq!(evictions(&recorded), [""; 0], "the old pod is a replica");
    let copied_to = recorded.record.evictions["a"].copy.clone();
    let name = copied_to.expect("it is copied").name;

    let created = plan_with(&set, &pods, &recorded.record);
    assert_eq!(actions(&created), [format!("Create {name}")]);
    assert_eq!(created.account.in_use, 0);

    let starting = [leaving("a"), pod("b"), copy(starting())];
    let waiting = plan_with(&set, &starting, &copied(false));
    assert_eq!(actions(&waiting), [""; 0], "neither is removed");
    assert_eq!(waiting.account.in_use, 0, "n + 1 for the time");
    assert_eq!((waiting.account.missing, waiting.account.surplus), (0, 0));

    let available = [leaving("a"), pod("b"), copy(ready(-15))];
    let begun = plan_with(&set, &available, &copied(false));
    assert_eq!(evictions(&begun), ["a"]);
    assert_eq!(actions(&begun), [""; 0], "that is recorded, too");
    let removed = plan_with(&set, &available, &begun.record);
    assert_eq!(actions(&removed), ["Remove a"]);

    let gone = [pod("b"), copy(ready(-15))];
    let over = plan_with(&set, &gone, &begun.record);
    assert_eq!(actions(&over), [""; 0]);
    assert_eq!(over.account.in_use, 0);
    assert!(over.record.evictions.is_empty());
}

/// M3: whatever holds up the copy, the old pod stays.
#[rstest]
#[case::no_node(Pod { node: None, ..copy(starting()) })]
#[case::starting(copy(starting()))]
#[case::failed(copy(failed()))]
#[case::ready_for_too_short_a_time(copy(ready(-5)))]
#[case::of_a_lost_node(Pod {
    node: Some(Node { name: "lost", is_ready: false, is_cordoned: false }),
    ..copy(ready(-15))
})]
#[case::is_being_removed(copy(terminating(-1)))]
fn m3_the_old_pod_stays_until_its_copy_is_available(#[case] copy: Pod<'static>) {
    let policy = copying(&json!({}));
    let set = with(set(2), &policy);
    let pods = [leaving("a"), pod("b"), copy];
    let plan = plan_with(&set, &pods, &copied(false));
    assert_eq!(evictions(&plan), [""; 0]);
    assert!(!actions(&plan).contains(&"Remove a".to_owned()));
}

#[rstest]
#[case(1, 1)]
#[case(2, 2)]
#[case(9, 3)]
fn m2_no_more_pods_are_copied_at_once_than_the_policy_allows(
    #[case] limit: usize,
    #[case] expected: usize,
) {
    let policy = copying(&json!({ "maxAtOnce": limit }));
    let set = with(set(3), &policy);
    let pods = ["a", "b", "d"].map(leaving);
    let plan = plan(&set, &pods);
    assert_eq!(plan.record.evictions.len(), expected);
    let is_limit = |wait: &&Wait<'_>| matches!(wait, Wait::Migration { reason, .. } if *reason == MigrationWait::Copies { limit });
    assert_eq!(plan.waits.iter().filter(is_limit).count(), 3 - expected);
}

/// "Repeated until no dead pod is left": the old pod that nobody can remove holds up no other copy.
#[test]
fn m2_an_old_pod_on_a_dead_node_holds_up_no_other_copy() {
    let policy = copying(&json!({}));
    let set = with(budget(2, 1), &policy);
    let pods = [
        Pod {
            node: Some(Node {
                name: "lost",
                is_ready: false,
                is_cordoned: false,
            }),
            ..asked(live("a", terminating(-20)), Confirmed::default())
        },
        leaving("b"),
        copy(ready(-15)),
    ];
    let plan = plan_with(&set, &pods, &copied(true));
    assert_eq!(plan.account.in_use, 0, "the copy is the replica");
    let copies: Vec<_> = plan.record.evictions.keys().collect();
    assert_eq!(copies, ["a", "b"]);
}

/// It is removed rather than a pod that is available, though that has another template, too (L21).
#[test]
fn m2_a_copy_that_nobody_asks_for_any_more_is_removed() {
    let policy = copying(&json!({}));
    let set = with(set(2), &policy);
    for life in [starting(), ready(-15)] {
        let pods = [old("a"), pod("b"), copy(life)];
        let plan = plan_with(&set, &pods, &copied(false));
        assert_eq!(actions(&plan), ["Remove c"]);
        let removed = [pod("a"), pod("b"), copy(terminating(-1))];
        let leaving = plan_with(&set, &removed, &plan.record);
        assert_eq!(actions(&leaving), [""; 0]);
        assert_eq!(leaving.account.in_use, 1, "until it is gone");
    }
}

/// Whoever removes it: nothing else takes its place, and it counts as one that is copied until it has stopped (M11).
#[test]
fn m2_m11_the_copy_of_a_pod_that_others_remove_takes_its_place() {
    let policy = copying(&json!({}));
    let set = with(set(2), &policy);
    let removed = asked(live("a", terminating(-20)), Confirmed::default());
    for (guard, is_copied) in [(Guard::Holding, false), (Guard::Absent, true)] {
        let pods = [Pod { guard, ..removed }, leaving("b"), copy(starting())];
        let plan = plan_with(&set, &pods, &copied(false));
        assert!(plan.record.evictions["a"].begun);
        assert_eq!((plan.account.missing, plan.account.surplus), (0, 0));
        assert_eq!(plan.record.evictions.contains_key("b"), is_copied);
    }
}

/// Under `HandsUp`, a copy does not take the place of a pod that may still run, and that has none.
#[test]
fn m11_a_copy_of_another_pod_leaves_a_place_that_is_kept() {
    let policy = policy(json!({ "method": "Copy", "shutdown": { "onTimeout": "HandsUp" } }));
    let set = with(set(3), &policy);
    let held = Pod {
        guard: Guard::Holding,
        ..live("h", terminating(-20))
    };
    let pods = [leaving("a"), pod("b"), held, copy(starting())];
    let first = plan_with(&set, &pods, &copied(false));
    let place = first.record.evictions["h"].recreate.as_ref();
    assert_eq!(place.map(|place| &*place.name), Some("h"));
    let second = plan_with(&set, &pods, &first.record);
    assert_eq!(second.record, first.record);
    assert_eq!(second.account.missing, 0);
}

/// A set that was scaled down runs as many pods as it should, and those that nobody knows to have stopped.
#[rstest]
#[case::may_run("HandsUp", Guard::Holding, false)]
#[case::has_stopped("HandsUp", Guard::Stopped, true)]
#[case::without_handsup("Evict", Guard::Holding, true)]
fn m11_a_surplus_pod_that_may_still_run_counts_as_one_that_is_copied(
    #[case] on_timeout: &str,
    #[case] guard: Guard,
    #[case] is_copied: bool,
) {
    let policy = policy(json!({
        "method": "Copy",
        "minSecondsBetween": { "hardware": 0, "compaction": 0 },
        "shutdown": { "onTimeout": on_timeout },
    }));
    let set = with(set(2), &policy);
    let surplus = Pod {
        guard,
        ..live("s", terminating(-20))
    };
    let pods = [leaving("a"), pod("b"), surplus];
    let decided = plan(&set, &pods);
    assert_eq!(decided.record.evictions.contains_key("a"), is_copied);
    let recorded = plan_with(&set, &pods, &copied(false));
    let is_created = actions(&recorded).contains(&"Create c".to_owned());
    assert_eq!(is_created, is_copied, "the copy was recorded before");
}

/// It is made again.
#[test]
fn m2_a_copy_that_has_to_leave_is_not_copied() {
    let policy = copying(&json!({ "maxAtOnce": 2 }));
    let set = with(set(2), &policy);
    let pods = [
        leaving("a"),
        pod("b"),
        asked(copy(starting()), Confirmed::default()),
    ];
    let begun = plan_with(&set, &pods, &copied(false));
    assert_eq!(evictions(&begun), ["c"]);
    let place = &begun.record.evictions["c"];
    assert_eq!((&place.copy, &place.recreate), (&None, &None));
    let gone = [leaving("a"), pod("b")];
    let created = plan_with(&set, &gone, &begun.record);
    assert_eq!(actions(&created), ["Create c"]);
}

#[rstest]
#[case::old_pod_is_gone(vec![pod("b"), copy(starting())])]
#[case::was_not_created(vec![pod("a"), pod("b")])]
fn m2_a_copy_that_is_not_needed_is_forgotten(#[case] pods: Vec<Pod<'static>>) {
    let policy = copying(&json!({}));
    let set = with(set(2), &policy);
    let plan = plan_with(&set, &pods, &copied(false));
    assert!(plan.record.evictions.is_empty());
    assert_eq!(plan.account.missing + plan.account.surplus, 0);
}

/// A set that is scaled down removes neither the copy nor more than it should.
#[test]
fn m2_l13_the_copy_is_no_surplus() {
    let policy = copying(&json!({}));
    let set = with(set(1), &policy);
    let pods = [leaving("a"), pod("b"), copy(starting())];
    let plan = plan_with(&set, &pods, &copied(false));
    assert_eq!(plan.account.surplus, 1);
    assert_eq!(actions(&plan), ["Remove a"]);
}

#[test]
fn m15_at_its_deadline_the_old_pod_leaves_whether_its_copy_is_available_or_not() {
    let policy = copying(&json!({ "confirmBeforeShutdown": true }));
    let set = with(set(2), &policy);
    let mut overdue = leaving("a");
    overdue.migration = overdue.migration.map(|asked| RequestedMigration {
        deadline: at(-1),
        ..asked
    });
    let pods = [overdue, pod("b"), copy(starting())];
    let plan = plan_with(&set, &pods, &copied(false));
    assert_eq!(evictions(&plan), ["a"]);
    assert!(plan.record.evictions["a"].forced);
}

#[rstest]
#[case::nobody_is_asked(json!({}), Confirmed::default(), Start::AtOnce)]
#[case::unconfirmed(json!({ "confirmBeforeActivation": true }), Confirmed::default(), Start::Held)]
#[case::confirmed(
    json!({ "confirmBeforeActivation": true }),
    Confirmed { may_activate: true, ..Confirmed::default() },
    Start::AtOnce
)]
fn m4_clients_reach_a_copy_once_a_person_has_confirmed_it(
    #[case] fields: Value,
    #[case] confirmed: Confirmed,
    #[case] expected: Start,
) {
    let policy = copying(&fields);
    let set = with(set(2), &policy);
    let old = asked(pod("a"), confirmed);
    let pods = [old, pod("b")];
    let created = plan_with(&set, &pods, &copied(false));
    let [Action::Create { start, .. }] = created.actions[..] else {
        panic!("{created:#?}")
    };
    assert_eq!(start, expected);

    let new = Pod {
        gate: Gate::Unset,
        ..copy(starting())
    };
    let pods = [old, pod("b"), new];
    let opened = plan_with(&set, &pods, &copied(false));
    let is_held = expected == Start::Held;
    assert_eq!(
        actions(&opened).is_empty(),
        is_held,
        "its gate stays closed"
    );
    let awaits = is_held.then_some(AwaitedAction::ConfirmActivation);
    assert_eq!(phase_of(&set, &pods, &copied(false)).1, awaits);
}

#[rstest]
#[case::unconfirmed(Confirmed::default(), false)]
#[case::confirmed(Confirmed { may_shut_down: true, ..Confirmed::default() }, true)]
fn m4_the_old_pod_is_shut_down_once_a_person_has_confirmed_it(
    #[case] confirmed: Confirmed,
    #[case] is_begun: bool,
) {
    let policy = copying(&json!({ "confirmBeforeShutdown": true }));
    let set = with(set(2), &policy);
    let pods = [asked(pod("a"), confirmed), pod("b"), copy(ready(-15))];
    let plan = plan_with(&set, &pods, &copied(false));
    assert_eq!(!evictions(&plan).is_empty(), is_begun);
    if !is_begun {
        let expected = (
            MigrationPhase::WaitingForConfirmation,
            Some(AwaitedAction::ConfirmShutdown),
        );
        assert_eq!(phase_of(&set, &pods, &copied(false)), expected);
    }
}

#[rstest]
#[case::not_created(vec![leaving("a"), pod("b")], false, MigrationPhase::Placing)]
#[case::no_node(vec![leaving("a"), Pod { node: None, ..copy(starting()) }], false, MigrationPhase::Placing)]
#[case::starting(vec![leaving("a"), copy(starting())], false, MigrationPhase::Starting)]
#[case::leaving(vec![leaving("a"), copy(ready(-15))], true, MigrationPhase::Evicting)]
#[case::gone(vec![pod("b"), copy(ready(-15))], true, MigrationPhase::Done)]
fn m2_the_phase_says_how_far_it_is(
    #[case] pods: Vec<Pod<'static>>,
    #[case] begun: bool,
    #[case] expected: MigrationPhase,
) {
    let policy = copying(&json!({}));
    let set = with(set(2), &policy);
    assert_eq!(phase_of(&set, &pods, &copied(begun)).0, expected);
}
