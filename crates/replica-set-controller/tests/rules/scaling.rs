//! L8, L13, L17, C1, C4, C6, C7, C8: how many pods there are, and whose they are.

use fedrs_api::{AllowedChanges, LocalRecord};
use replica_set_controller::{
    Action, CreateReason, Created, Disruptions, Gate, Life, Owner, Pod, PodWait, Readiness,
    RemoveReason, Set, SlowStart, Start, Wait, step,
};
use rstest::rstest;

use crate::fixtures::*;

/// How many pods are created in one go, if creations were answered like this before.
#[test]
fn l13_creations_start_slowly_and_wait_after_a_rejection() {
    let mut slow_start = SlowStart::default();
    let mut names = Vec::new();
    for expected in [1, 2, 4, 8, 16, 32, 37] {
        let pods: Vec<Pod<'_>> = names.iter().map(|name: &&'static str| pod(name)).collect();
        let plan = step(
            &set(100),
            &pods,
            &Disruptions::default(),
            (&LocalRecord::default(), &slow_start),
            now(),
        );
        let created: Vec<String> = plan.actions.iter().filter_map(created).collect();
        assert_eq!(created.len(), expected);
        let has_more = names.len() + expected < 100;
        assert_eq!(plan.waits.is_empty(), !has_more);
        names.extend(created.iter().map(|name| &*name.clone().leak()));
        let outcome = Created {
            created,
            has_more,
            ..Created::default()
        };
        slow_start.record(outcome, now());
    }
    assert_eq!(slow_start.allowed(now()), 1, "the next time begins anew");
    for (delay, rejections) in [(1, 1), (2, 2), (4, 3), (64, 9), (64, 40)] {
        let mut rejected = slow_start.clone();
        for _ in 0..rejections {
            let outcome = Created {
                rejected: vec!["web-x".to_owned()],
                ..Created::default()
            };
            rejected.record(outcome, now());
        }
        assert_eq!(rejected.allowed(at(delay - 1)), 0);
        assert_eq!(rejected.retry_at(now()), Some(at(delay)));
        assert_eq!(rejected.allowed(at(delay)), 1);
    }
}

/// A pod that no node has room for, and another one in its place may have, is replaced without a budget or a record: it does not run.
/// One after the other, and not while there are too many anyway.
#[rstest]
#[case::one(3, &["b"])]
#[case::surplus(2, &[])]
fn l1_l13_a_pod_of_a_crowded_slot_makes_room_for_another(
    #[case] replicas: usize,
    #[case] expected: &[&str],
) {
    let unschedulable = |name| Pod {
        node: None,
        is_crowded: true,
        ..live(
            name,
            Life::Live(Readiness::NotReady {
                since: at(-20),
                failure: Some("Unschedulable"),
            }),
        )
    };
    let pods = [pod("a"), unschedulable("b"), unschedulable("c")];
    assert!(pods[1].is_unschedulable() && !pods[0].is_unschedulable());
    for set in [set(replicas), budget(replicas, 0)] {
        let plan = plan(&set, &pods);
        let removed = plan.actions.iter().filter_map(|action| match action {
            Action::Remove {
                pod,
                reason: RemoveReason::Crowded,
            } => Some(pod.name),
            _ => None,
        });
        assert_eq!(removed.collect::<Vec<_>>(), expected);
        assert_eq!(plan.record, LocalRecord::default());
    }
    let stopped = Set {
        allowed: AllowedChanges::None,
        ..set(replicas)
    };
    assert_eq!(plan(&stopped, &pods).actions, []);
}

fn created(action: &Action<'_>) -> Option<String> {
    match action {
        Action::Create { name, .. } => Some(name.clone()),
        _ => None,
    }
}

/// A creation whose answer was lost is repeated by its name, whatever else has changed.
#[test]
fn l13_a_creation_without_an_answer_is_repeated_by_its_name() {
    let pods = [pod("a")];
    let first = plan(&set(2), &pods);
    let name = created(&first.actions[0]).expect("it is created");
    let mut slow_start = SlowStart::default();
    let outcome = Created {
        unanswered: vec![name.clone()],
        ..Created::default()
    };
    slow_start.record(outcome, now());
    let again = step(
        &set(2),
        &[],
        &Disruptions::default(),
        (&LocalRecord::default(), &slow_start),
        at(1),
    );
    assert_eq!(created(&again.actions[0]), Some(name.clone()));
    let outcome = Created {
        taken: vec![name.clone()],
        ..Created::default()
    };
    slow_start.record(outcome, at(1));
    let other = step(
        &set(2),
        &[],
        &Disruptions::default(),
        (&LocalRecord::default(), &slow_start),
        at(1),
    );
    assert_ne!(created(&other.actions[0]), Some(name));
}

/// What is created and removed for 2 replicas. The budget is 0: it does not matter.
#[rstest]
#[case::l13_none(vec![], 2, 0)]
#[case::l13_one(vec![pod("a")], 1, 0)]
#[case::l13_enough(vec![pod("a"), old("b")], 0, 0)]
#[case::l13_surplus(vec![pod("a"), pod("b"), pod("c"), pod("d")], 0, 2)]
#[case::c1_deleted(vec![pod("a"), live("b", terminating(-5))], 1, 0)]
#[case::c1_failing(vec![pod("a"), live("b", failed())], 0, 0)]
#[case::c8_terminated(vec![pod("a"), live("b", Life::Terminated)], 1, 0)]
#[case::c6_released(vec![pod("a"), Pod { owner: Owner::SetWithoutMatch, ..pod("b") }], 1, 0)]
#[case::c1_adopted(vec![pod("a"), Pod { owner: Owner::Nobody, ..pod("b") }], 0, 0)]
fn pods_are_created_and_removed_without_a_budget(
    #[case] pods: Vec<Pod<'static>>,
    #[case] created: usize,
    #[case] removed: usize,
) {
    let plan = plan(&budget(2, 0), &pods);
    let actions = actions(&plan);
    let count = |verb| {
        actions
            .iter()
            .filter(|action| action.starts_with(verb))
            .count()
    };
    let is_creation = |wait: &Wait<'_>| matches!(wait, Wait::Creation { .. });
    let waiting = plan.waits.iter().filter(|wait| is_creation(wait)).count();
    assert_eq!(
        (count("Create") + waiting, count("Remove")),
        (created, removed)
    );
}

#[rstest]
#[case::c1(Owner::Nobody, ready(-1000), vec!["Adopt b"])]
#[case::c1_starting(Owner::Nobody, starting(), vec!["Adopt b"])]
#[case::c1_leaving(Owner::Nobody, terminating(-5), vec![])]
#[case::c8(Owner::Nobody, Life::Terminated, vec![])]
#[case::c6(Owner::SetWithoutMatch, ready(-1000), vec!["Release b"])]
#[case::c6_leaving(Owner::SetWithoutMatch, terminating(-5), vec![])]
#[case::c1_own(Owner::Set, ready(-1000), vec![])]
fn pods_are_adopted_and_released(
    #[case] owner: Owner,
    #[case] life: Life<'static>,
    #[case] expected: Vec<&str>,
) {
    let b = Pod {
        owner,
        life,
        ..pod("b")
    };
    let pods = [pod("a"), pod("c"), b];
    let plan = plan(&set(3), &pods);
    let actions = actions(&plan);
    let claims = actions
        .iter()
        .filter(|action| !action.starts_with("Create"));
    assert_eq!(claims.collect::<Vec<_>>(), expected);
}

/// A pod is changed once it belongs to the set, even if it is to be removed.
#[test]
fn c1_a_pod_is_adopted_before_it_is_changed() {
    let pods = [
        pod("a"),
        Pod {
            owner: Owner::Nobody,
            gate: Gate::Absent,
            ..old("b")
        },
    ];
    let surplus = plan(&set(1), &pods);
    assert_eq!(actions(&surplus), ["Adopt b"]);
    let wait = Wait::Pod {
        pod: "b",
        reason: PodWait::Adoption,
    };
    assert_eq!(surplus.waits[0], wait);
    assert_eq!(updates(&plan(&set(2), &pods)), [""; 0]);
}

/// What happens to a pod too few or too many, to an outdated pod, one that is to be evicted and one that does not shut down.
#[rstest]
#[case::l7(AllowedChanges::All, false, (true, true, true, true))]
#[case::l8_paused(AllowedChanges::NoUpdatesWhilePaused, false, (true, false, true, true))]
#[case::c4_never(AllowedChanges::NoUpdatesByMode, false, (true, false, true, true))]
#[case::l8_stopped(AllowedChanges::None, false, (false, false, false, false))]
#[case::c7_deleted(AllowedChanges::All, true, (false, false, false, false))]
fn switches_decide_what_is_done(
    #[case] allowed: AllowedChanges,
    #[case] is_deleted: bool,
    #[case] expected: (bool, bool, bool, bool),
) {
    let set = |replicas| replica_set_controller::Set {
        allowed,
        is_deleted,
        ..set(replicas)
    };
    let outdated = [old("a")];
    let requested = [Pod {
        eviction: Some(replica_set_controller::Eviction::Voluntary),
        ..pod("a")
    }];
    let stuck = [live("a", terminating(-3600))];
    let found = (
        !plan(&set(2), &outdated).actions.is_empty(),
        !updates(&plan(&set(1), &outdated)).is_empty(),
        !evictions(&plan(&set(1), &requested)).is_empty(),
        actions(&plan(&set(0), &stuck)) == ["ForceRemove a"],
    );
    assert_eq!(found, expected);
}

/// What was recorded has begun, and is completed.
#[rstest]
#[case(AllowedChanges::NoUpdatesWhilePaused, vec!["CloseGate a"])]
#[case(AllowedChanges::NoUpdatesByMode, vec!["CloseGate a"])]
#[case(AllowedChanges::None, vec![])]
fn l8_an_update_that_has_begun_is_completed(
    #[case] allowed: AllowedChanges,
    #[case] expected: Vec<&str>,
) {
    let set = replica_set_controller::Set { allowed, ..set(1) };
    let pods = [old("a")];
    let plan = plan_with(&set, &pods, &updating("a"));
    assert_eq!(actions(&plan), expected);
    assert_eq!(updates(&plan), ["a"]);
}

#[rstest]
#[case(-1799, None)]
#[case(-1800, Some("ForceRemove a"))]
#[case(-9999, Some("ForceRemove a"))]
fn l17_what_does_not_shut_down_is_deleted_by_force(
    #[case] since: i64,
    #[case] expected: Option<&str>,
) {
    let pods = [live("a", terminating(since))];
    let plan = plan(&set(0), &pods);
    assert_eq!(actions(&plan), Vec::from_iter(expected));
    let force_at = expected.is_none().then(|| at(since + 1800));
    assert_eq!(plan.next, force_at);
}

#[test]
fn l17_a_removal_that_was_just_sent_is_not_forced() {
    let pods = [live("a", Life::Terminating { since: None })];
    assert_eq!(actions(&plan(&set(0), &pods)), [""; 0]);
}

/// The place of a pod that is recreated is kept, unless there are enough pods.
#[test]
fn l12_l13_a_pod_is_recreated_with_its_name_where_it_was() {
    let pods = [pod("b")];
    let record = recreating("a");
    let kept = plan_with(&set(2), &pods, &record);
    let create = Action::Create {
        name: "a".to_owned(),
        prefers: Some("node".to_owned()),
        shard: None,
        start: Start::AtOnce,
        reason: CreateReason::Recreated,
    };
    assert_eq!(kept.actions, [create]);
    let shrunk = plan_with(&set(1), &pods, &record);
    assert_eq!((actions(&shrunk), updates(&shrunk)), (vec![], vec![]));
    let leaving = [pod("b"), live("a", terminating(-5))];
    let waiting = plan_with(&set(2), &leaving, &record);
    assert_eq!(actions(&waiting), [""; 0]);
}

/// A pod that was released while it was to be recreated keeps its name, and the set can't see it: the pod in its place needs another one.
#[test]
fn c6_l12_a_pod_whose_name_is_taken_is_recreated_under_another() {
    let mut record = recreating("a");
    let update = record.updates.values_mut().next().expect("it is recorded");
    let place = update.recreate.as_mut().expect("it has a place");
    place.shard = Some("7".to_owned());
    let mut slow_start = SlowStart::default();
    let outcome = Created {
        taken: vec!["a".to_owned()],
        ..Created::default()
    };
    slow_start.record(outcome, now());
    let memory = (&record, &slow_start);
    let pods = [pod("b")];
    let first = step(&set(2), &pods, &Disruptions::default(), memory, at(1));
    let name = created(&first.actions[0]).expect("it is created");
    assert_ne!(name, "a");
    let create = Action::Create {
        name: name.clone(),
        prefers: Some("node".to_owned()),
        shard: Some("7".to_owned()),
        start: Start::AtOnce,
        reason: CreateReason::Recreated,
    };
    assert_eq!(first.actions, [create]);
    // With it there are enough: the place is given up.
    let successor = Pod {
        name: &name,
        uid: &name,
        ..pod("c")
    };
    let pods = [pod("b"), successor];
    let second = step(&set(2), &pods, &Disruptions::default(), memory, at(1));
    assert_eq!(second.actions, []);
}
