//! M11, M13, M15: pods stay until their containers are known to have stopped.

use fedrs_api::{
    EvictionRecord, LocalRecord, MigrationPhase, RecreateRecord, ValidMigrationPolicy,
};
use replica_set_controller::{
    Action, Confirmed, Eviction, Guard, MigrationStates, Node, Owner, Pod, PodWait, Policy,
    RequestedMigration, Set, Wait,
};
use rstest::rstest;
use serde_json::json;

use crate::fixtures::*;

/// One that waits 60 s for pods to stop.
fn stopping(on_timeout: &str) -> ValidMigrationPolicy {
    policy(json!({
        "minSecondsBetween": { "hardware": 0, "compaction": 0 },
        "shutdown": { "timeoutSeconds": 60, "onTimeout": on_timeout },
    }))
}

fn guarded(pod: Pod<'static>, guard: Guard) -> Pod<'static> {
    Pod { guard, ..pod }
}

fn on_lost_node(pod: Pod<'static>) -> Pod<'static> {
    let node = Some(Node {
        name: "lost",
        is_ready: false,
        is_cordoned: false,
    });
    let eviction = Some(Eviction::Involuntary);
    Pod {
        node,
        eviction,
        ..pod
    }
}

/// The pod, removed so many seconds ago.
fn removed(name: &'static str, seconds: i64, guard: Guard) -> Pod<'static> {
    guarded(live(name, terminating(-seconds)), guard)
}

/// The record of a move of `a` that has begun.
fn moving() -> LocalRecord {
    let place = RecreateRecord {
        name: "a".to_owned(),
        node: None,
        shard: None,
        gated: false,
    };
    let eviction = EvictionRecord {
        recreate: Some(place),
        ..EvictionRecord::begun(at(-70))
    };
    LocalRecord {
        evictions: [("a".to_owned(), eviction)].into(),
        ..LocalRecord::default()
    }
}

fn wait_of(waits: &[Wait<'_>], name: &str) -> Option<PodWait> {
    waits.iter().find_map(|wait| match wait {
        Wait::Pod { pod, reason } if *pod == name => Some(*reason),
        _ => None,
    })
}

#[rstest]
#[case::policy_asks_for_it(Some("Evict"), Guard::Absent, &["AddFinalizer a"])]
#[case::has_it(Some("Evict"), Guard::Holding, &[])]
#[case::nobody_asks_for_it(None, Guard::Holding, &["RemoveFinalizer a"])]
#[case::never_had_it(None, Guard::Absent, &[])]
fn m11_pods_have_the_finalizer_that_their_policy_asks_for(
    #[case] on_timeout: Option<&str>,
    #[case] guard: Guard,
    #[case] expected: &[&str],
) {
    let policy = on_timeout.map(stopping);
    let migration = policy.as_ref().map_or(Policy::None, Policy::Is);
    let set = Set {
        migration,
        ..set(1)
    };
    let pods = [guarded(pod("a"), guard)];
    assert_eq!(actions(&plan(&set, &pods)), expected);
    // A policy that is not known asks for nothing, and takes nothing away.
    let unknown = Set {
        migration: Policy::Unknown,
        ..set
    };
    assert_eq!(actions(&plan(&unknown, &pods)), [""; 0]);
}

#[test]
fn m11_a_pod_gets_the_finalizer_before_it_is_removed() {
    let policy = stopping("HandsUp");
    let set = with(set(1), &policy);
    for (guard, expected) in [
        (Guard::Absent, "AddFinalizer a"),
        (Guard::Holding, "Remove a"),
    ] {
        for pod in [pod("a"), on_lost_node(pod("a"))] {
            let pods = [guarded(pod, guard)];
            assert_eq!(actions(&plan_with(&set, &pods, &moving())), [expected]);
            let outdated = [Pod {
                revision: Some(OTHER),
                ..guarded(crate::fixtures::pod("a"), guard)
            }];
            let update = recreating("a");
            assert_eq!(actions(&plan_with(&set, &outdated, &update)), [expected]);
        }
    }
    // The name of a surplus pod is not used again.
    let pods = [pod("a"), guarded(pod("b"), Guard::Holding)];
    let surplus = plan(&with(crate::fixtures::set(1), &policy), &pods);
    assert_eq!(actions(&surplus), ["Remove a"]);
}

/// What becomes of `a`, which moves, and was removed so many seconds ago.
#[rstest]
#[case::its_containers_may_run("Evict", 59, Guard::Holding, &[], MigrationPhase::ShuttingDown)]
#[case::others_have_deleted_it_by_force("Evict", 59, Guard::Unproved, &[], MigrationPhase::ShuttingDown)]
#[case::they_have_stopped("HandsUp", 5, Guard::Stopped, &["RemoveFinalizer a"], MigrationPhase::Evicting)]
#[case::they_have_stopped_late("HandsUp", 5000, Guard::Stopped, &["RemoveFinalizer a"], MigrationPhase::Evicting)]
#[case::evict("Evict", 60, Guard::Holding, &["ForceRemove a"], MigrationPhase::Evicting)]
#[case::evicted_by_force("Evict", 60, Guard::Unproved, &["RemoveFinalizer a"], MigrationPhase::Evicting)]
#[case::hands_up("HandsUp", 60, Guard::Holding, &[], MigrationPhase::HandsUp)]
#[case::hands_up_for_ever("HandsUp", 100_000, Guard::Unproved, &[], MigrationPhase::HandsUp)]
#[case::evicted_and_not_gone("Evict", 1800, Guard::Absent, &["ForceRemove a"], MigrationPhase::Evicting)]
fn m11_a_pod_stays_until_its_containers_have_stopped(
    #[case] on_timeout: &str,
    #[case] seconds: i64,
    #[case] guard: Guard,
    #[case] expected: &[&str],
    #[case] phase: MigrationPhase,
) {
    let policy = stopping(on_timeout);
    let set = with(set(2), &policy);
    let pods = [removed("a", seconds, guard), pod("b")];
    let pods = pods.map(|pod| match pod.name {
        "b" => guarded(pod, Guard::Holding),
        _ => pod,
    });
    let plan = plan_with(&set, &pods, &moving());
    assert_eq!(actions(&plan), expected);
    // M13: it uses the budget, and its place is kept.
    assert_eq!((plan.account.in_use, plan.account.missing), (1, 0));
    let states = MigrationStates::new(&set, &pods, (&plan, &plan.record), now());
    assert_eq!(states.of("a", "a", true).phase, phase);
    let is_handed_over = pods[0].waits_for_a_person(&set, now());
    assert_eq!(is_handed_over, phase == MigrationPhase::HandsUp);
}

/// The other pod of the shard waits.
#[test]
fn m13_a_pod_that_shuts_down_uses_the_budget_of_its_shard() {
    let spec = json!({
        "minSecondsBetween": { "hardware": 0 },
        "perShard": { "label": "shard", "maxUnavailable": 1 },
        "shutdown": { "onTimeout": "HandsUp" },
    });
    let policy = policy(spec);
    let set = with(set(3), &policy);
    let of_shard = |pod: Pod<'static>, shard| Pod {
        shard: Some(shard),
        eviction: Some(Eviction::Voluntary),
        ..pod
    };
    let pods = [
        of_shard(removed("a", 5, Guard::Holding), "1"),
        of_shard(guarded(pod("b"), Guard::Holding), "1"),
        of_shard(guarded(pod("c"), Guard::Holding), "2"),
    ];
    let plan = plan_with(&set, &pods, &moving());
    assert_eq!(evictions(&plan), ["a", "c"]);
}

#[test]
fn m11_another_pod_takes_the_place_of_one_that_does_not_stop() {
    let policy = stopping("Replace");
    let set = with(set(2), &policy);
    let pods = [
        removed("a", 60, Guard::Holding),
        guarded(pod("b"), Guard::Holding),
    ];
    let first = plan_with(&set, &pods, &moving());
    assert_eq!(actions(&first), [""; 0], "it is recorded first");
    let second = plan_with(&set, &pods, &first.record);
    let [Action::Create { name, .. }] = &second.actions[..] else {
        panic!("{:?}", second.actions);
    };
    assert_ne!(name, "a");
    assert_eq!(wait_of(&second.waits, "a"), Some(PodWait::HandsUp));
    let replaced = guarded(pod("c"), Guard::Holding);
    let pods = [pods[0], pods[1], replaced];
    let third = plan_with(&set, &pods, &second.record);
    assert_eq!(
        third.account.in_use, 0,
        "what may still run does not use the budget for ever"
    );
    assert_eq!(actions(&third), [""; 0]);
}

/// Dead pods are replaced at once otherwise.
#[rstest]
#[case::evict("Evict", true)]
#[case::replace("Replace", true)]
#[case::hands_up("HandsUp", false)]
fn m11_nothing_takes_the_place_of_a_pod_of_a_lost_node_under_hands_up(
    #[case] on_timeout: &str,
    #[case] is_replaced: bool,
) {
    let policy = stopping(on_timeout);
    let set = with(set(1), &policy);
    let lost = [on_lost_node(guarded(pod("a"), Guard::Holding))];
    let begun = plan(&set, &lost);
    assert_eq!(evictions(&begun), ["a"]);
    let removed = [on_lost_node(removed("a", 5, Guard::Holding))];
    let plan = plan_with(&set, &removed, &begun.record);
    assert_eq!(!plan.actions.is_empty(), is_replaced, "{:?}", plan.actions);
}

/// A drain removes first, and so may anybody.
#[test]
fn m11_nothing_takes_the_place_of_a_pod_that_others_have_removed() {
    let policy = stopping("HandsUp");
    let set = with(set(2), &policy);
    let kept = guarded(pod("b"), Guard::Holding);
    let pods = [removed("a", 5, Guard::Holding), kept];
    let held = plan(&set, &pods);
    assert_eq!(actions(&held), [""; 0]);
    assert_eq!(held.account.missing, 0);
    // Its containers have stopped, and then it is gone.
    let stopped = [removed("a", 5, Guard::Stopped), kept];
    let released = plan_with(&set, &stopped, &held.record);
    assert_eq!(actions(&released), ["RemoveFinalizer a"]);
    let gone = [kept];
    let again = plan_with(&set, &gone, &released.record);
    assert_eq!(actions(&again), ["Create a"]);
    // One that is surplus has no place.
    let surplus = plan(&with(crate::fixtures::set(1), &policy), &pods);
    assert!(surplus.record.evictions.is_empty());
}

#[test]
fn m15_the_deadline_ends_the_wait_for_the_containers_but_not_for_a_person() {
    let deadline = |pod: Pod<'static>| Pod {
        migration: Some(RequestedMigration {
            deadline: at(-1),
            is_compaction: false,
            confirmed: Confirmed::default(),
        }),
        ..pod
    };
    for (on_timeout, expected) in [("Evict", "ForceRemove a"), ("HandsUp", "")] {
        let policy = stopping(on_timeout);
        let set = with(set(1), &policy);
        let pods = [deadline(removed("a", 5, Guard::Holding))];
        let plan = plan_with(&set, &pods, &moving());
        assert_eq!(actions(&plan).concat(), expected);
    }
}

/// Its kubelet will never end it.
#[test]
fn m11_a_pod_whose_machine_is_destroyed_is_removed_by_force() {
    for on_timeout in ["Evict", "HandsUp", "Replace"] {
        let policy = stopping(on_timeout);
        let set = with(set(1), &policy);
        for (guard, expected) in [
            (Guard::Holding, "ForceRemove a"),
            (Guard::Unproved, "RemoveFinalizer a"),
        ] {
            let pods = [Pod {
                is_destroyed: true,
                ..removed("a", 5, guard)
            }];
            let plan = plan_with(&set, &pods, &moving());
            assert_eq!(actions(&plan), [expected]);
        }
    }
}

/// As the API server would have removed them, without the finalizer.
#[rstest]
#[case::its_kubelet_works_on_it(Guard::Holding, Owner::Set, &[])]
#[case::nothing_else_keeps_it(Guard::Unproved, Owner::Set, &["RemoveFinalizer a"])]
#[case::it_has_stopped(Guard::Stopped, Owner::Set, &["RemoveFinalizer a"])]
#[case::it_does_not_match_any_more(Guard::Stopped, Owner::SetWithoutMatch, &["RemoveFinalizer a"])]
#[case::it_is_of_somebody_else(Guard::Stopped, Owner::Nobody, &[])]
fn m11_without_a_policy_the_finalizer_holds_nothing_up(
    #[case] guard: Guard,
    #[case] owner: Owner,
    #[case] expected: &[&str],
) {
    let pods = [Pod {
        owner,
        ..removed("a", 5, guard)
    }];
    let none = crate::fixtures::set(0);
    assert_eq!(actions(&plan(&none, &pods)), expected);
    // Nor does a set that changes nothing.
    let stopped = Set {
        allowed: fedrs_api::AllowedChanges::None,
        ..none
    };
    assert_eq!(actions(&plan(&stopped, &pods)), expected);
    let unknown = Set {
        migration: Policy::Unknown,
        ..none
    };
    let is_known = guard == Guard::Stopped;
    let expected = if is_known { expected } else { &[] };
    assert_eq!(actions(&plan(&unknown, &pods)), expected);
}
