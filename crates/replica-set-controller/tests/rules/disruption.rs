//! L19, L20: what the PodDisruptionBudget lends to evictions of others.

use fedrs_api::{DrainRecord, EvictionRecord, LentRecord, LocalRecord};
use replica_set_controller::{
    BudgetChange, DisruptionBudget, Disruptions, Eviction, Life, Node, Pod, Wait,
};
use rstest::rstest;

use crate::fixtures::*;

/// Of 4 replicas, one of which is lent.
fn ours() -> DisruptionBudget<'static> {
    DisruptionBudget {
        uid: "budget",
        generation: 5,
        min_available: 3,
        replicas: 4,
        is_intact: true,
        is_settled: true,
        healthy: 4,
    }
}

fn beside(ours: DisruptionBudget<'static>) -> Disruptions<'static> {
    Disruptions {
        ours: Some(ours),
        other: None,
        are_pods_read: true,
    }
}

fn lent(generation: i64, min_available: u64) -> LocalRecord {
    let uid = "budget".to_owned();
    LocalRecord {
        lent: Some(LentRecord {
            uid,
            generation,
            min_available,
        }),
        ..LocalRecord::default()
    }
}

fn four(first: Pod<'static>) -> Vec<Pod<'static>> {
    vec![first, pod("b"), pod("c"), pod("d")]
}

fn raise(min_available: usize) -> BudgetChange {
    BudgetChange::Raise { min_available }
}

/// What is written for a set of 4 replicas with a budget of 2, of which nothing waits.
#[rstest]
#[case::created(Disruptions::default(), LocalRecord::default(), Some(BudgetChange::Create { min_available: 4 }))]
#[case::another_matches(
    Disruptions { other: Some("mine"), ..Disruptions::default() },
    LocalRecord::default(),
    None
)]
#[case::another_matches_now(
    Disruptions { other: Some("mine"), ..beside(ours()) },
    LocalRecord::default(),
    Some(BudgetChange::Delete)
)]
#[case::lent_as_recorded(beside(ours()), lent(5, 2), Some(BudgetChange::Lower { min_available: 2 }))]
#[case::recorded_first(beside(ours()), LocalRecord::default(), None)]
#[case::all_is_lent(beside(DisruptionBudget { min_available: 2, ..ours() }), lent(4, 2), None)]
#[case::lent_too_much(beside(DisruptionBudget { min_available: 1, ..ours() }), lent(4, 1), Some(raise(2)))]
#[case::more_replicas(beside(DisruptionBudget { min_available: 2, replicas: 3, ..ours() }), lent(4, 2), Some(raise(2)))]
#[case::changed_by_another(
    beside(DisruptionBudget { min_available: 0, is_intact: false, ..ours() }),
    lent(4, 2),
    Some(raise(2))
)]
#[case::fewer_replicas(beside(DisruptionBudget { min_available: 4, replicas: 6, ..ours() }), lent(5, 2), Some(BudgetChange::Lower { min_available: 2 }))]
#[case::fewer_replicas_not_counted(
    beside(DisruptionBudget { min_available: 4, replicas: 6, healthy: 6, ..ours() }),
    lent(5, 2),
    None
)]
fn l20_what_is_written_at_rest(
    #[case] disruptions: Disruptions<'static>,
    #[case] record: LocalRecord,
    #[case] expected: Option<BudgetChange>,
) {
    let pods = four(pod("a"));
    let plan = plan_beside(&budget(4, 2), &pods, &record, &disruptions);
    assert_eq!(plan.disruption.change, expected);
}

#[test]
fn l20_what_is_lent_is_recorded_before() {
    let pods = four(pod("a"));
    let record = LocalRecord::default();
    let plan = plan_beside(&budget(4, 2), &pods, &record, &beside(ours()));
    assert_eq!(plan.record, lent(5, 2));
    assert_eq!(plan.disruption.lent, 2, "the status says so before");
}

/// What of a budget of 2 an update may use, and what is written for it: of 4 replicas one is outdated.
#[rstest]
#[case::half_is_lent(ours(), true, lent(4, 3), vec!["a"], None, false)]
#[case::all_is_lent(DisruptionBudget { min_available: 2, ..ours() }, true, lent(4, 2), vec![], Some(raise(3)), false)]
#[case::not_observed(DisruptionBudget { is_settled: false, ..ours() }, true, lent(4, 2), vec![], None, false)]
#[case::pods_are_to_be_read(ours(), false, lent(4, 2), vec![], None, true)]
#[case::a_request_may_arrive(ours(), true, lent(5, 2), vec![], Some(raise(4)), false)]
#[case::of_another(ours(), true, LocalRecord { lent: Some(LentRecord { uid: "x".to_owned(), generation: 5, min_available: 2 }), ..LocalRecord::default() }, vec!["a"], None, false)]
#[case::another_number(DisruptionBudget { replicas: 3, min_available: 3, ..ours() }, true, lent(4, 3), vec![], Some(raise(4)), false)]
fn l20_an_update_uses_what_is_not_lent(
    #[case] ours: DisruptionBudget<'static>,
    #[case] are_pods_read: bool,
    #[case] record: LocalRecord,
    #[case] begun: Vec<&str>,
    #[case] change: Option<BudgetChange>,
    #[case] reads_pods: bool,
) {
    let pods = four(old("a"));
    let disruptions = Disruptions {
        are_pods_read,
        ..beside(ours)
    };
    let plan = plan_beside(&budget(4, 2), &pods, &record, &disruptions);
    assert_eq!(updates(&plan), begun);
    assert_eq!(plan.disruption.change, change);
    assert_eq!(plan.disruption.reads_pods, reads_pods);
    let is_waiting = set_waits(&plan).contains(&Wait::DisruptionBudget { pods: 1 });
    assert_eq!(is_waiting, begun.is_empty());
}

/// A pod that was evicted through the API server is an eviction that has begun: updates wait for it.
#[test]
fn l19_l20_an_eviction_of_others_goes_before_updates() {
    let evicted = Pod {
        is_disrupted: true,
        ..live("a", terminating(-1))
    };
    let pods = [evicted, old("b"), pod("c"), pod("d")];
    let disruptions = beside(DisruptionBudget {
        min_available: 4,
        ..ours()
    });
    let plan = plan_beside(&budget(4, 2), &pods, &LocalRecord::default(), &disruptions);
    let eviction = EvictionRecord::begun(now());
    assert_eq!(plan.record.evictions["a"], eviction);
    assert_eq!(updates(&plan), [""; 0]);
    let names = actions(&plan);
    assert!(names.len() == 1 && names[0].starts_with("Create"));
}

/// One that was to be recreated under its name gets a successor with another name, which does not prefer its node.
#[test]
fn l20_a_pod_that_is_recreated_may_be_evicted() {
    let pods = [
        Pod {
            is_disrupted: true,
            ..live("a", terminating(-1))
        },
        pod("b"),
    ];
    let plan = plan_beside(&set(2), &pods, &recreating("a"), &Disruptions::default());
    assert_eq!(updates(&plan), [""; 0]);
    assert_ne!(actions(&plan), ["Create a"]);
}

fn cordoned(pod: Pod<'static>) -> Pod<'static> {
    let node = Node {
        name: "node",
        is_ready: true,
        is_cordoned: true,
    };
    Pod {
        node: Some(node),
        ..pod
    }
}

fn drained(since: i64, allowed: Option<i64>) -> LocalRecord {
    let drain = DrainRecord {
        since: at(since),
        allowed: allowed.map(at),
    };
    LocalRecord {
        drains: [("node".to_owned(), drain)].into(),
        ..LocalRecord::default()
    }
}

/// Until when updates of available pods wait for the drain of a cordoned node.
#[rstest]
#[case::just_seen(LocalRecord::default(), Some(600))]
#[case::evictions_are_not_allowed_yet(drained(-100, None), Some(500))]
#[case::evictions_are_allowed(drained(-100, Some(-10)), Some(20))]
#[case::nobody_evicts(drained(-100, Some(-30)), None)]
#[case::the_budget_is_in_use_for_too_long(drained(-600, None), None)]
fn l19_updates_wait_for_a_drain(#[case] record: LocalRecord, #[case] until: Option<i64>) {
    let pods = [cordoned(old("a")), pod("b"), pod("c"), pod("d")];
    let disruptions = beside(DisruptionBudget {
        min_available: 4,
        ..ours()
    });
    let plan = plan_beside(&budget(4, 2), &pods, &record, &disruptions);
    assert_eq!(updates(&plan).is_empty(), until.is_some());
    let expected = until.map(|until| Wait::Drains {
        pods: 1,
        until: at(until),
    });
    assert_eq!(set_waits(&plan), Vec::from_iter(expected));
}

/// A set that may make nothing unavailable asks for a part of a budget: for a while after a cordon, and again later. It keeps what it
/// got until no eviction follows any more.
#[rstest]
#[case::just_seen(0, LocalRecord::default(), 1, Some(0))]
#[case::evictions_are_not_allowed(0, drained(-100, None), 1, Some(-100))]
#[case::nobody_could_help(0, drained(-700, None), 0, Some(-700))]
#[case::nobody_evicted(0, drained(-100, Some(-30)), 0, Some(-100))]
#[case::again_later(0, drained(-700, Some(-630)), 1, Some(0))]
#[case::it_has_a_budget(2, LocalRecord::default(), 0, None)]
#[case::evictions_are_allowed(2, drained(-100, Some(-10)), 1, Some(-100))]
#[case::nobody_evicted_with_it(2, drained(-100, Some(-30)), 0, Some(-100))]
fn l19_a_set_without_a_budget_asks_for_one_for_a_drain(
    #[case] limit: u64,
    #[case] record: LocalRecord,
    #[case] expected: usize,
    #[case] since: Option<i64>,
) {
    let pods = [cordoned(pod("a")), pod("b"), pod("c"), pod("d")];
    let least = 4 - usize::try_from(limit).unwrap();
    let disruptions = beside(DisruptionBudget {
        min_available: least,
        ..ours()
    });
    let plan = plan_beside(&budget(4, limit), &pods, &record, &disruptions);
    assert_eq!(plan.drained, expected);
    let drain = plan.record.drains.get("node");
    assert_eq!(drain.map(|drain| drain.since), since.map(at));
    let uncordoned = [pod("a"), pod("b"), pod("c"), pod("d")];
    let plan = plan_beside(&budget(4, limit), &uncordoned, &record, &disruptions);
    assert_eq!((plan.drained, plan.record.drains.len()), (0, 0));
}

/// A broken pod is updated meanwhile, and an involuntary eviction waits for nothing else than the budget.
#[test]
fn l19_l22_what_is_broken_does_not_wait_for_a_drain() {
    let broken = Pod {
        life: failed(),
        ..cordoned(old("a"))
    };
    let moved = Pod {
        eviction: Some(Eviction::Involuntary),
        ..cordoned(pod("b"))
    };
    let disruptions = beside(DisruptionBudget {
        min_available: 4,
        ..ours()
    });
    let pods = [broken, pod("b"), pod("c"), cordoned(old("d"))];
    let plan = plan_beside(&budget(4, 2), &pods, &LocalRecord::default(), &disruptions);
    assert_eq!(updates(&plan), ["a"]);
    let pods = [pod("a"), moved, pod("c"), cordoned(old("d"))];
    let plan = plan_beside(&budget(4, 2), &pods, &LocalRecord::default(), &disruptions);
    assert_eq!(evictions(&plan), ["b"]);
}

/// A set at rest writes nothing when pods fail and recover.
#[test]
fn l20_failures_do_not_change_what_is_lent() {
    let all = beside(DisruptionBudget {
        min_available: 2,
        ..ours()
    });
    for life in [ready(-1000), failed(), starting(), terminating(-5)] {
        let is_gone = matches!(life, Life::Terminating { .. });
        let pods = four(live("a", life));
        let record = lent(4, 2);
        let plan = plan_beside(&budget(4, 2), &pods, &record, &all);
        assert_eq!((plan.disruption.change, plan.record), (None, record));
        assert_eq!(plan.actions.is_empty(), !is_gone);
    }
}

/// Until a later generation is observed, evictions that the API server has granted by the one before may be on their way: the status
/// says so.
#[rstest]
#[case::not_sent_yet(5, true, 2)]
#[case::sent_and_not_observed(4, false, 2)]
#[case::observed(4, true, 1)]
fn l20_a_request_counts_until_a_later_generation_is_observed(
    #[case] generation: i64,
    #[case] is_settled: bool,
    #[case] expected: usize,
) {
    let pods = four(old("a"));
    let disruptions = beside(DisruptionBudget {
        is_settled,
        ..ours()
    });
    let plan = plan_beside(&budget(4, 2), &pods, &lent(generation, 2), &disruptions);
    assert_eq!(plan.disruption.lent, expected);
}

/// A failed pod uses the budget already: at rest, what is left of it is lent, and no more.
#[rstest]
#[case::nothing_has_failed(ready(-1000), 2)]
#[case::one_has_failed(failed(), 3)]
fn l14_l20_what_has_failed_is_not_lent(#[case] life: Life<'static>, #[case] min_available: u64) {
    let pods = four(live("a", life));
    let disruptions = beside(DisruptionBudget {
        min_available: 4,
        ..ours()
    });
    let plan = plan_beside(&budget(4, 2), &pods, &LocalRecord::default(), &disruptions);
    assert_eq!(plan.record, lent(5, min_available));
}
