//! M1, M5, M6, M10, M14, M15: when pods move by a MigrationPolicy, and how.

use std::time::Duration;

use fedrs_api::{
    EvictionRecord, LocalRecord, MigratedRecord, MigrationPhase, RecreateRecord,
    ValidMigrationPolicy,
};
use replica_set_controller::{
    Absence, Action, Confirmed, Eviction, EvictionBy, Life, MigrationStates, MigrationWait, Plan,
    Pod, Policy, RequestedMigration, Set, Wait,
};
use rstest::rstest;
use serde_json::{Value, json};

use crate::fixtures::*;

const HOUR: i64 = 3600;
const WEEK: i64 = 7 * 24 * HOUR;

/// One that allows as much as the budget of the set, as often as it is asked.
fn free() -> ValidMigrationPolicy {
    policy(json!({ "minSecondsBetween": { "hardware": 0, "compaction": 0 } }))
}

/// The pod has to leave its node within a week.
fn asked(pod: Pod<'static>) -> Pod<'static> {
    Pod {
        eviction: Some(Eviction::Voluntary),
        migration: Some(RequestedMigration {
            deadline: at(WEEK),
            is_compaction: false,
            confirmed: Confirmed::default(),
        }),
        ..pod
    }
}

fn compacted(pod: Pod<'static>) -> Pod<'static> {
    let migration = Some(RequestedMigration {
        deadline: at(WEEK),
        is_compaction: true,
        confirmed: Confirmed::default(),
    });
    Pod {
        migration,
        ..asked(pod)
    }
}

fn overdue(pod: Pod<'static>) -> Pod<'static> {
    let migration = Some(RequestedMigration {
        deadline: at(-1),
        is_compaction: false,
        confirmed: Confirmed::default(),
    });
    Pod {
        migration,
        ..asked(pod)
    }
}

fn shard(pod: Pod<'static>, shard: &'static str) -> Pod<'static> {
    let shard = Some(shard);
    Pod { shard, ..pod }
}

fn wait_of<'a>(plan: &Plan<'a>, name: &str) -> Option<MigrationWait<'a>> {
    plan.waits.iter().find_map(|wait| match wait {
        Wait::Migration { pod, reason, .. } if *pod == name => Some(*reason),
        _ => None,
    })
}

fn moved(since: i64) -> LocalRecord {
    let place = RecreateRecord {
        name: "a".to_owned(),
        node: None,
        shard: Some("1".to_owned()),
        gated: false,
    };
    let eviction = EvictionRecord {
        recreate: Some(place),
        ..EvictionRecord::begun(at(since))
    };
    LocalRecord {
        evictions: [("a".to_owned(), eviction)].into(),
        ..LocalRecord::default()
    }
}

#[test]
fn m5_a_pod_is_removed_and_made_again_under_its_name_on_any_other_node() {
    let free = free();
    let set = with(set(2), &free);
    let pods = [asked(shard(pod("a"), "1")), pod("b")];
    let begun = plan(&set, &pods);
    assert_eq!(evictions(&begun), ["a"]);
    assert!(begun.actions.is_empty(), "it is recorded first");
    let removed = plan_with(&set, &pods, &begun.record);
    assert_eq!(actions(&removed), ["Remove a"]);
    let leaving = [live("a", terminating(-5)), pod("b")];
    let waiting = plan_with(&set, &leaving, &begun.record);
    assert_eq!(actions(&waiting), [""; 0], "its name is in use");
    let gone = [pod("b")];
    let created = plan_with(&set, &gone, &begun.record);
    let [
        Action::Create {
            name,
            prefers,
            shard,
            ..
        },
    ] = &created.actions[..]
    else {
        panic!("{created:#?}")
    };
    assert_eq!((&**name, prefers), ("a", &None));
    assert_eq!(shard.as_deref(), Some("1"), "M6: it stays in its shard");
    assert_eq!(created.account.in_use, 1, "n-1 for the time");
}

/// Its name is in use until it is gone, and nobody knows when that is.
#[test]
fn m5_m14_a_pod_on_a_node_that_does_not_answer_is_replaced_at_once_under_another_name() {
    let policy = policy(json!({}));
    let set = with(set(2), &policy);
    let node = pod("a").node.map(|node| replica_set_controller::Node {
        is_ready: false,
        ..node
    });
    let lost = Pod {
        node,
        ..asked(pod("a"))
    };
    let pods = [lost, pod("b")];
    let begun = plan(&set, &pods);
    assert_eq!(evictions(&begun), ["a"]);
    assert_eq!(begun.record.migrated, MigratedRecord::default());
    let leaving = [live("a", terminating(-5)), pod("b")];
    let created = plan_with(&set, &leaving, &begun.record);
    let [Action::Create { name, .. }] = &created.actions[..] else {
        panic!("{created:#?}")
    };
    assert_ne!(name, "a");
}

#[test]
fn m5_a_name_is_kept_for_as_long_as_no_pod_can_be_created() {
    let free = free();
    let set = with(set(2), &free);
    let record = moved(-WEEK);
    let pods = [pod("b")];
    let plan = plan_with(&set, &pods, &record);
    assert_eq!(actions(&plan), ["Create a"]);
    assert_eq!(plan.record, record);
    // A set that has become smaller needs it no more.
    let smaller = with(self::set(1), &free);
    let plan = plan_with(&smaller, &pods, &record);
    assert_eq!(actions(&plan), [""; 0]);
}

#[test]
fn m5_a_migration_is_over_once_the_pod_in_its_place_is_available() {
    let free = free();
    let set = with(set(1), &free);
    let successor = |life| Pod {
        uid: "a2",
        created: at(-20),
        ..live("a", life)
    };
    let starting = [successor(starting())];
    let record = moved(-30);
    let under_way = plan_with(&set, &starting, &record).record;
    assert_eq!(under_way.evictions["a"].since, at(-30));
    let available = [successor(ready(-15))];
    let plan = plan_with(&set, &available, &record);
    assert!(plan.record.evictions.is_empty());
}

#[rstest]
#[case::alone(vec![asked(pod("a")), pod("b")], None)]
#[case::during_a_rollout(vec![asked(pod("a")), old("b")], Some(MigrationWait::Rollout))]
#[case::not_available(vec![asked(live("a", failed())), old("b")], None)]
fn m1_no_running_pod_moves_during_a_rollout(
    #[case] pods: Vec<Pod<'static>>,
    #[case] wait: Option<MigrationWait<'_>>,
) {
    let free = free();
    let plan = plan(&with(budget(2, 2), &free), &pods);
    assert_eq!(wait_of(&plan, "a"), wait);
    assert_eq!(evictions(&plan).is_empty(), wait.is_some());
    // Or both would wait for each other.
    let waits_for_evictions = |wait: &Wait<'_>| matches!(wait, Wait::Evictions { .. });
    assert!(wait.is_none() || !plan.waits.iter().any(waits_for_evictions));
}

#[test]
fn m1_a_rollout_that_is_paused_holds_up_nothing() {
    let free = free();
    let pods = [asked(pod("a")), old("b")];
    let paused = Set {
        allowed: fedrs_api::AllowedChanges::NoUpdatesWhilePaused,
        ..with(set(2), &free)
    };
    assert_eq!(evictions(&plan(&paused, &pods)), ["a"]);
}

#[test]
fn m1_with_a_policy_that_is_not_known_running_pods_stay_until_their_deadlines() {
    let unknown = Set {
        migration: Policy::Unknown,
        ..set(4)
    };
    let pods = [
        asked(pod("a")),
        asked(live("b", failed())),
        overdue(pod("c")),
        pod("d"),
    ];
    let plan = plan(&unknown, &pods);
    assert_eq!(evictions(&plan), ["b", "c"]);
    assert_eq!(wait_of(&plan, "a"), Some(MigrationWait::UnknownPolicy));
}

#[rstest]
#[case::a_number(json!({ "maxUnavailable": 2 }), 40, 2)]
#[case::a_percentage_is_rounded_up(json!({ "maxUnavailable": "5%" }), 39, 2)]
#[case::at_least_5_percent(json!({ "maxUnavailable": 1, "atLeastPercent": 5 }), 61, 4)]
#[case::of_a_small_set(json!({ "maxUnavailable": 1, "atLeastPercent": 5 }), 20, 1)]
#[case::at_most_all(json!({ "maxUnavailable": 10 }), 3, 3)]
fn m10_the_pods_that_may_be_unavailable(
    #[case] fields: Value,
    #[case] replicas: usize,
    #[case] expected: usize,
) {
    let limit = policy(fields).max_unavailable.expect("it has one");
    assert_eq!(limit.of(replicas), expected);
}

#[rstest]
#[case::one_of_two(2, 1, vec![asked(pod("a")), asked(pod("b"))], vec!["a"])]
#[case::one_is_broken(2, 1, vec![asked(pod("a")), live("b", failed())], vec![])]
#[case::the_budget_of_the_set_holds_too(1, 2, vec![asked(pod("a")), asked(pod("b"))], vec!["a"])]
#[case::the_broken_one_itself(2, 1, vec![pod("a"), asked(live("b", failed()))], vec!["b"])]
fn m10_a_running_pod_moves_within_both_budgets(
    #[case] of_set: u64,
    #[case] of_policy: u64,
    #[case] pods: Vec<Pod<'static>>,
    #[case] expected: Vec<&str>,
) {
    let between = json!({ "hardware": 0 });
    let policy = policy(json!({ "maxUnavailable": of_policy, "minSecondsBetween": between }));
    let plan = plan(&with(budget(2, of_set), &policy), &pods);
    assert_eq!(evictions(&plan), expected, "{plan:#?}");
}

#[rstest]
#[case::each_shard_one(vec![("a", "1", true), ("b", "1", true), ("c", "2", true), ("d", "2", true)], vec!["a", "c"])]
#[case::one_is_broken(vec![("a", "1", true), ("b", "1", false), ("c", "2", true), ("d", "2", true)], vec!["c"])]
fn m6_each_shard_has_a_budget(
    #[case] pods: Vec<(&'static str, &'static str, bool)>,
    #[case] expected: Vec<&str>,
) {
    let between = json!({ "hardware": 0 });
    let shards = json!({ "label": "shard", "maxUnavailable": 1 });
    let policy = policy(json!({ "perShard": shards, "minSecondsBetween": between }));
    let pods: Vec<_> = (pods.into_iter())
        .map(|(name, of, runs)| {
            let pod = if runs {
                asked(pod(name))
            } else {
                live(name, failed())
            };
            shard(pod, of)
        })
        .collect();
    let plan = plan(&with(set(4), &policy), &pods);
    assert_eq!(evictions(&plan), expected, "{plan:#?}");
}

/// The place of a pod that moves uses the budget of its shard until there is a pod.
#[test]
fn m6_a_vacant_place_counts_for_its_shard() {
    let between = json!({ "hardware": 0 });
    let shards = json!({ "label": "shard", "maxUnavailable": 1 });
    let policy = policy(json!({ "perShard": shards, "minSecondsBetween": between }));
    let pods = [asked(shard(pod("b"), "1")), asked(shard(pod("c"), "2"))];
    let plan = plan_with(&with(set(3), &policy), &pods, &moved(-30));
    let held = MigrationWait::Shard {
        shard: "1",
        limit: 1,
    };
    assert_eq!(wait_of(&plan, "b"), Some(held));
    assert_eq!(evictions(&plan), ["a", "c"]);
}

#[rstest]
#[case::the_first(None, None, asked, None)]
#[case::an_hour_ago(Some(-HOUR), None, asked, None)]
#[case::too_soon(Some(-HOUR + 1), None, asked, Some(1))]
#[case::by_a_clock_that_was_ahead(Some(HOUR), None, asked, Some(HOUR))]
#[case::after_a_compaction(Some(-HOUR), Some(-HOUR), asked, None)]
#[case::two_compactions(Some(-HOUR), Some(-HOUR), compacted, Some(WEEK - HOUR))]
#[case::a_compaction_after_hardware(Some(-10), None, compacted, Some(HOUR - 10))]
fn m14_running_pods_of_a_set_move_at_most_once_an_hour_or_a_week(
    #[case] any: Option<i64>,
    #[case] compaction: Option<i64>,
    #[case] ask: fn(Pod<'static>) -> Pod<'static>,
    #[case] until: Option<i64>,
) {
    let policy = policy(json!({}));
    let record = LocalRecord {
        migrated: MigratedRecord {
            any: any.map(at),
            compaction: compaction.map(at),
        },
        ..LocalRecord::default()
    };
    let pods = [ask(pod("a")), pod("b")];
    let plan = plan_with(&with(set(2), &policy), &pods, &record);
    let until = until.map(|until| MigrationWait::TooSoon { until: at(until) });
    assert_eq!(wait_of(&plan, "a"), until);
    assert_eq!(evictions(&plan).is_empty(), until.is_some());
    if let Some(MigrationWait::TooSoon { until }) = until {
        assert_eq!(plan.next, Some(until));
    }
}

#[test]
fn m14_the_next_one_waits_from_the_beginning_of_the_last_and_dead_pods_do_not_count() {
    let policy = policy(json!({}));
    let set = with(set(3), &policy);
    let pods = [asked(pod("a")), asked(pod("b")), asked(live("c", failed()))];
    let first = plan(&set, &pods);
    assert_eq!(evictions(&first), ["a", "c"]);
    let until = at(HOUR);
    assert_eq!(wait_of(&first, "b"), Some(MigrationWait::TooSoon { until }));
    let pods = [pods[2], pod("a"), pod("b")];
    let dead = plan(&set, &pods);
    assert_eq!(dead.record.migrated, MigratedRecord::default());
}

/// Of those that may move, the one that has to do so first; one that its node does not run goes before all others.
#[test]
fn m15_the_pod_whose_deadline_is_nearest_moves_first() {
    let policy = policy(json!({}));
    let set = with(set(3), &policy);
    let soon = Pod {
        migration: Some(RequestedMigration {
            deadline: at(HOUR),
            is_compaction: false,
            confirmed: Confirmed::default(),
        }),
        ..asked(pod("b"))
    };
    let pods = [asked(pod("a")), soon, asked(pod("c"))];
    assert_eq!(evictions(&plan(&set, &pods)), ["b"]);
    let involuntary = Pod {
        eviction: Some(Eviction::Involuntary),
        ..asked(pod("c"))
    };
    let pods = [asked(pod("a")), soon, involuntary];
    assert_eq!(evictions(&plan(&set, &pods)), ["c"]);
}

#[test]
fn m15_a_pod_whose_deadline_has_passed_moves_whatever_holds_it_up() {
    let policy = policy(json!({ "maxUnavailable": 1 }));
    let record = LocalRecord {
        migrated: MigratedRecord {
            any: Some(at(-10)),
            compaction: None,
        },
        ..LocalRecord::default()
    };
    let pods = [overdue(pod("a")), live("b", failed()), old("c")];
    let plan = plan_with(&with(budget(3, 0), &policy), &pods, &record);
    assert_eq!(evictions(&plan), ["a"]);
    assert!(plan.record.evictions["a"].forced);
    let without_policy = self::plan(&budget(3, 0), &pods);
    assert_eq!(evictions(&without_policy), ["a"], "also without a policy");
    let waiting = [asked(pod("a")), live("b", failed()), old("c")];
    let waiting = self::plan(&with(budget(3, 0), &policy), &waiting);
    assert_eq!(waiting.next, Some(at(WEEK)), "it is looked at again then");
}

/// The phases of a move, as a MigrationRequest shows them.
#[rstest]
#[case::waits(vec![asked(pod("a")), live("b", failed())], LocalRecord::default(), MigrationPhase::WaitingForBudget)]
#[case::begun(vec![asked(pod("a")), pod("b")], moved(0), MigrationPhase::Evicting)]
#[case::drains(vec![draining(asked(pod("a")), -5), pod("b")], moved(-5), MigrationPhase::ShuttingDown)]
#[case::leaves(vec![live("a", terminating(-5)), pod("b")], moved(-5), MigrationPhase::Evicting)]
#[case::has_ended(vec![live("a", Life::Terminated), pod("b")], moved(-5), MigrationPhase::Placing)]
#[case::gone(vec![pod("b")], moved(-5), MigrationPhase::Placing)]
#[case::has_no_node(vec![Pod { uid: "a2", node: None, ..live("a", starting()) }, pod("b")], moved(-30), MigrationPhase::Placing)]
#[case::starts(vec![Pod { uid: "a2", ..live("a", starting()) }, pod("b")], moved(-30), MigrationPhase::Starting)]
#[case::runs(vec![Pod { uid: "a2", ..pod("a") }, pod("b")], moved(-30), MigrationPhase::Done)]
#[case::nobody_asks(vec![pod("a"), pod("b")], LocalRecord::default(), MigrationPhase::Cancelled)]
fn m5_the_phases_of_a_move(
    #[case] pods: Vec<Pod<'static>>,
    #[case] record: LocalRecord,
    #[case] expected: MigrationPhase,
) {
    let free = free();
    let set = with(with_drain(budget(2, 1)), &free);
    let plan = plan_with(&set, &pods, &record);
    let states = MigrationStates::new(&set, &pods, (&plan, &plan.record), now());
    let has_begun = !record.evictions.is_empty();
    assert_eq!(states.of("a", "a", has_begun).phase, expected, "{plan:#?}");
}

#[test]
fn m5_a_pod_that_is_removed_before_its_migration_begins_was_not_migrated() {
    let free = free();
    let set = with(set(1), &free);
    let pods = [pod("b")];
    let plan = plan(&set, &pods);
    let states = MigrationStates::new(&set, &pods, (&plan, &plan.record), now());
    let phase = |has_begun| states.of("a", "a", has_begun).phase;
    assert_eq!(phase(false), MigrationPhase::Cancelled);
    assert_eq!(phase(true), MigrationPhase::Done);
}

/// What an unavailable pod makes free is its own.
#[test]
fn m1_l14_an_available_pod_that_waits_for_its_migration_does_not_take_the_turn_of_another_one() {
    let free = free();
    let set = with(budget(2, 1), &free);
    let outdated = |pod: Pod<'static>| Pod {
        revision: Some(OTHER),
        ..pod
    };
    let pods = [outdated(asked(pod("a"))), outdated(live("b", starting()))];
    assert_eq!(updates(&plan(&set, &pods)), ["b"]);
}

/// The name is used again once.
#[test]
fn m5_the_place_of_a_pod_whose_successor_is_gone_is_not_used_again() {
    let free = free();
    let set = with(set(2), &free);
    let other = Pod {
        uid: "a-2",
        created: at(-3),
        ..live("a", starting())
    };
    let taken = [other, pod("b")];
    let known = plan_with(&set, &taken, &moved(-5));
    assert_eq!(known.record.evictions["a"].recreate, None);
    let gone = [pod("b")];
    let again = plan_with(&set, &gone, &known.record);
    assert_eq!(again.account.missing, 1);
}

/// A pod of a node that is away for `minutes`, and is expected back after so many.
fn maintained(pod: Pod<'static>, minutes: u64, until_minutes: i64) -> Pod<'static> {
    Pod {
        eviction_by: EvictionBy::Node,
        absence: Some(Absence {
            until: at(until_minutes * 60),
            duration: Duration::from_secs(minutes * 60),
        }),
        ..asked(pod)
    }
}

/// Pods of a set that may be down for half an hour.
#[rstest]
#[case::short_work(vec![maintained(pod("a"), 30, 20), pod("b")], &[], &["a"])]
#[case::long_work(vec![maintained(pod("a"), 31, 20), pod("b")], &["a"], &[])]
#[case::it_overruns(vec![maintained(pod("a"), 30, 0), pod("b")], &["a"], &[])]
#[case::nobody_knows_how_long_it_takes(vec![Pod { absence: None, ..maintained(pod("a"), 30, 20) }, pod("b")], &["a"], &[])]
#[case::a_person_asks(vec![Pod { eviction_by: EvictionBy::Pod, ..maintained(pod("a"), 30, 20) }, pod("b")], &["a"], &[])]
#[case::its_deadline_has_passed(vec![Pod { migration: overdue(pod("a")).migration, ..maintained(pod("a"), 30, 20) }, pod("b")], &["a"], &[])]
#[case::it_is_down(vec![maintained(live("a", failed()), 30, 20), pod("b")], &[], &["a"])]
#[case::as_many_as_the_budget_allows(vec![maintained(pod("a"), 30, 20), maintained(pod("b"), 30, 20)], &[], &["a"])]
#[case::the_budget_is_in_use(vec![maintained(pod("a"), 30, 20), live("b", failed())], &[], &[])]
fn m9_short_work_leaves_pods_where_they_are(
    #[case] pods: Vec<Pod<'static>>,
    #[case] moved: &[&str],
    #[case] tolerated: &[&str],
) {
    let tolerance = json!({ "tolerate": "All", "maxDowntimeSeconds": 1800 });
    let between = json!({ "hardware": 0, "compaction": 0 });
    let policy = policy(json!({ "maintenance": tolerance, "minSecondsBetween": between }));
    let set = with(budget(2, 1), &policy);
    let plan = plan(&set, &pods);
    assert_eq!(evictions(&plan), moved);
    let waits = plan.waits.iter().filter_map(|wait| match wait {
        Wait::Migration {
            pod,
            reason: MigrationWait::Tolerated { .. },
            ..
        } => Some(*pod),
        _ => None,
    });
    assert_eq!(waits.collect::<Vec<_>>(), tolerated);
    let states = MigrationStates::new(&set, &pods, (&plan, &plan.record), now());
    for name in tolerated {
        assert_eq!(states.of(name, name, false).until, Some(at(1200)));
    }
}

/// What stays may go down at any moment: nothing else is made unavailable meanwhile.
#[test]
fn m9_what_stays_uses_the_budget() {
    let tolerance = json!({ "tolerate": "All", "maxDowntimeSeconds": 1800, "maxUnavailable": 1 });
    let policy = policy(json!({ "maintenance": tolerance }));
    let set = with(budget(4, 2), &policy);
    let pods = [
        maintained(pod("a"), 30, 20),
        maintained(pod("b"), 30, 20),
        old("c"),
        old("d"),
    ];
    let plan = plan(&set, &pods);
    assert_eq!(
        wait_of(&plan, "a"),
        Some(MigrationWait::Tolerated { until: at(1200) })
    );
    assert_eq!(
        wait_of(&plan, "b"),
        Some(MigrationWait::Rollout),
        "it would move"
    );
    assert_eq!(updates(&plan).len(), 1, "of a budget of 2");
}
