//! L10, L13, L14, L15, L22: which updates begin.

use fedrs_api::{BegunRecord, LocalRecord};
use replica_set_controller::{Account, BudgetUser, Group, Pod, Purpose, Set, Wait};
use rstest::rstest;

use crate::fixtures::*;

fn old_as(pod: Pod<'static>) -> Pod<'static> {
    Pod {
        revision: Some(OLD),
        ..pod
    }
}

/// What of a budget of 2 is in use, and how many of three outdated available pods begin to be updated beside the pod.
#[rstest]
#[case::l14_none(pod("x"), 0, 2)]
#[case::l14_failed(live("x", failed()), 1, 1)]
#[case::l14_in_progress(live("x", starting()), 1, 1)]
#[case::l14_removed(live("x", terminating(-5)), 1, 1)]
fn l16_all_groups_but_ready_use_the_budget(
    #[case] other: Pod<'static>,
    #[case] in_use: usize,
    #[case] begin: usize,
) {
    let pods = [old("a"), old("b"), old("c"), other];
    let replicas = 3 + usize::from(!matches!(
        other.life,
        replica_set_controller::Life::Terminating { .. }
    ));
    let plan = plan(&budget(replicas, 2), &pods);
    assert_eq!(updates(&plan).len(), begin);
    let expected = Account {
        withheld: 0,
        limit: 2,
        in_use: in_use + begin,
        missing: 0,
        surplus: 0,
        leaving: 0,
        extra: 0,
    };
    assert_eq!(plan.account, expected);
}

/// A removed pod, and the one that starts in its place, are one place.
#[test]
fn l16_a_removed_pod_and_its_replacement_count_once() {
    let pods = [
        old("a"),
        old("b"),
        live("x", terminating(-5)),
        live("y", starting()),
    ];
    assert_eq!(plan(&budget(3, 0), &pods).account.in_use, 1);
    let failed = [
        old("a"),
        old("b"),
        live("x", terminating(-5)),
        live("y", failed()),
    ];
    assert_eq!(plan(&budget(3, 0), &failed).account.in_use, 2);
}

/// Who eats the budget is named.
#[test]
fn l14_a_wait_names_the_pods_that_use_the_budget() {
    let pods = [
        old("a"),
        old("b"),
        live("x", failed()),
        live("y", starting()),
    ];
    let plan = plan(&budget(4, 3), &pods);
    assert_eq!(updates(&plan), ["a"]);
    let user = |pod, group, failure| BudgetUser {
        pod,
        group,
        failure,
    };
    let wait = Wait::Budget {
        purpose: Purpose::Update,
        pods: 1,
        by: vec![
            user("x", Group::Failed, Some("CrashLoopBackOff")),
            user("y", Group::InProgress, None),
            user("a", Group::InProgress, None),
        ],
    };
    assert_eq!(set_waits(&plan), [wait]);
}

/// Pods that are not available use the budget anyway: a bad revision is replaced, whatever the budget.
#[rstest]
#[case(0)]
#[case(1)]
#[case(9)]
fn l22_what_is_broken_is_updated_without_a_budget(#[case] max_unavailable: u64) {
    let pods = ["a", "b", "c"].map(|name| old_as(live(name, failed())));
    let plan = plan(&budget(3, max_unavailable), &pods);
    assert_eq!(updates(&plan), ["a", "b", "c"]);
}

#[test]
fn l14_a_budget_of_nothing_updates_no_available_pod() {
    let pods = [old("a")];
    assert_eq!(updates(&plan(&budget(1, 0), &pods)), [""; 0]);
}

#[rstest]
#[case::too_few(3)]
#[case::too_many(1)]
fn l13_the_number_of_pods_comes_first(#[case] replicas: usize) {
    let pods = [old("a"), old("b")];
    let plan = plan(&set(replicas), &pods);
    assert_eq!(updates(&plan), [""; 0]);
    assert!(plan.waits.contains(&Wait::Scaling { pods: 2 }));
}

/// What begins is recorded; nothing is done before it is.
#[test]
fn l15_an_update_is_recorded_before_it_begins() {
    let pods = [old("a")];
    let first = plan(&set(1), &pods);
    assert_eq!((actions(&first), updates(&first)), (vec![], vec!["a"]));
    let second = plan_with(&set(1), &pods, &first.record);
    assert_eq!(actions(&second), ["CloseGate a"]);
    assert_eq!(second.record, first.record, "it is recorded once");
}

/// How many of three begin with a portion of 2, if so many began then.
#[rstest]
#[case::none(&[], 2, Some(30))]
#[case::now(&[(0, 2)], 0, Some(30))]
#[case::one(&[(-10, 1)], 1, Some(20))]
#[case::both(&[(-20, 1), (-10, 1)], 0, Some(10))]
#[case::just_before(&[(-29, 2)], 0, Some(1))]
#[case::just_over(&[(-30, 2)], 2, None)]
#[case::in_the_future(&[(5, 2)], 0, Some(35))]
#[case::smaller_portion(&[(-5, 7)], 0, Some(25))]
fn l15_no_more_than_the_portion_begins_within_the_delay(
    #[case] begun: &[(i64, u64)],
    #[case] begin: usize,
    #[case] until: Option<i64>,
) {
    let begun = begun.iter().map(|(second, pods)| BegunRecord {
        at: at(*second),
        pods: *pods,
    });
    let record = LocalRecord {
        begun: begun.collect(),
        ..LocalRecord::default()
    };
    let pods = [old("a"), old("b"), old("c")];
    let set = Set {
        speed: Some(speed(2)),
        ..set(3)
    };
    let plan = plan_with(&set, &pods, &record);
    assert_eq!(updates(&plan).len(), begin);
    let until = until.filter(|_| !record.begun.is_empty()).map(at);
    let wait = Wait::Speed {
        pods: 3 - begin,
        until,
    };
    assert_eq!(set_waits(&plan), [wait]);
    assert_eq!(plan.next, until);
}

/// An update that was recorded, and of which nothing is seen, counts; so does one for as long after it was seen.
#[test]
fn l15_an_update_counts_until_its_delay_after_it_was_seen() {
    let set = Set {
        speed: Some(speed(1)),
        ..set(2)
    };
    let unseen = [old("a"), old("b")];
    let plan = plan_with(&set, &unseen, &updating("a"));
    assert_eq!(updates(&plan), ["a"]);
    let wait = Wait::Speed {
        pods: 1,
        until: None,
    };
    assert_eq!(set_waits(&plan), [wait]);
    let seen = [live("a", starting()), old("b")];
    let plan = plan_with(&set, &seen, &updating("a"));
    assert_eq!(updates(&plan), [""; 0]);
    assert_eq!(plan.record.begun, [BegunRecord { at: now(), pods: 1 }]);
}

/// A pod whose update is under way goes straight to the latest template; one that got another one begins anew.
#[test]
fn l10_revisions_in_between_are_skipped() {
    let pods = [old("a")];
    let latest = plan_with(&set(1), &pods, &updating("a"));
    assert_eq!(updates(&latest), ["a"]);
    let between = [Pod {
        revision: Some(OTHER),
        ..live("a", starting())
    }];
    let anew = plan_with(
        &Set {
            speed: Some(speed(2)),
            ..set(1)
        },
        &between,
        &updating("a"),
    );
    assert_eq!(anew.record.updates["a"].from, Some(OTHER));
    assert_eq!(anew.record.begun, [BegunRecord { at: now(), pods: 1 }]);
}

/// How many of four outdated pods begin to be updated, with a budget of the set and one of an AvailabilitySet.
#[rstest]
#[case::no_set(3, None, 3)]
#[case::less(3, Some(1), 1)]
#[case::nothing(3, Some(0), 0)]
#[case::more(1, Some(3), 1)]
fn a1_the_least_of_all_budgets_holds(
    #[case] own: u64,
    #[case] availability_limit: Option<usize>,
    #[case] begin: usize,
) {
    let pods = [old("a"), old("b"), old("c"), old("d")];
    let set = Set {
        availability_limit,
        ..budget(4, own)
    };
    assert_eq!(updates(&plan(&set, &pods)).len(), begin);
}
