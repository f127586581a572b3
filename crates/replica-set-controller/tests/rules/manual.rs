//! M7, M12: pods that persons shut down, confirm and start.

use fedrs_api::{AwaitedAction, LocalRecord, MigrationPhase, ValidMigrationPolicy};
use replica_set_controller::{
    Action, Confirmed, Eviction, Guard, MigrationStates, MigrationWait, Node, Pod, PodWait,
    RequestedMigration, Set, Start, Wait,
};
use rstest::rstest;
use serde_json::json;

use crate::fixtures::*;

fn manual() -> ValidMigrationPolicy {
    let between = json!({ "hardware": 0, "compaction": 0 });
    policy(json!({ "method": "Manual", "minSecondsBetween": between }))
}

/// It has to leave by this time, has the finalizer, and this was confirmed.
fn asked(pod: Pod<'static>, deadline: i64, is_stopped: bool) -> Pod<'static> {
    Pod {
        eviction: Some(Eviction::Voluntary),
        migration: Some(RequestedMigration {
            deadline: at(deadline),
            is_compaction: false,
            confirmed: Confirmed {
                is_stopped,
                ..Confirmed::default()
            },
        }),
        guard: Guard::Holding,
        ..pod
    }
}

/// It was shut down 20 s ago.
fn shut_down(guard: Guard, deadline: i64, is_stopped: bool) -> Pod<'static> {
    let pod = asked(live("a", terminating(-20)), deadline, is_stopped);
    Pod { guard, ..pod }
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

fn wait_of<'a>(waits: &[Wait<'a>]) -> Option<MigrationWait<'a>> {
    waits.iter().find_map(|wait| match wait {
        Wait::Migration { reason, .. } => Some(*reason),
        _ => None,
    })
}

#[rstest]
#[case::running(asked(pod("a"), 1000, false), Some(MigrationWait::ShutdownByPerson))]
#[case::running_whatever_was_confirmed(
    asked(pod("a"), 1000, true),
    Some(MigrationWait::ShutdownByPerson)
)]
#[case::on_a_lost_node(Pod {
    node: Some(Node { name: "lost", is_ready: false, is_cordoned: false }),
    ..asked(pod("a"), 1000, false)
}, Some(MigrationWait::ShutdownByPerson))]
#[case::its_machine_is_destroyed(Pod { is_destroyed: true, ..asked(pod("a"), 1000, false) }, None)]
#[case::overdue(asked(pod("a"), -1, false), None)]
fn m7_a_person_shuts_the_pod_down(
    #[case] pod: Pod<'static>,
    #[case] wait: Option<MigrationWait<'_>>,
) {
    let manual = manual();
    let set = with(set(1), &manual);
    let pods = [pod];
    let plan = plan(&set, &pods);
    assert_eq!(wait_of(&plan.waits), wait);
    assert_eq!(evictions(&plan).is_empty(), wait.is_some());
    if wait.is_some() {
        let expected = (
            MigrationPhase::WaitingForConfirmation,
            Some(AwaitedAction::ShutDown),
        );
        assert_eq!(phase_of(&set, &pods, &LocalRecord::default()), expected);
    }
}

/// Nothing would prove that it is down.
#[test]
fn m7_m11_nobody_is_asked_to_shut_a_pod_down_before_it_has_the_finalizer() {
    let manual = manual();
    let set = with(set(1), &manual);
    let pods = [Pod {
        guard: Guard::Absent,
        ..asked(pod("a"), 1000, false)
    }];
    assert_eq!(actions(&plan(&set, &pods)), ["AddFinalizer a"]);
    let phase = phase_of(&set, &pods, &LocalRecord::default());
    assert_eq!(phase, (MigrationPhase::Requested, None));
}

/// The budget is asked first, so that the person knows when the set can bear it.
#[test]
fn m7_m10_what_holds_up_others_is_said_before_a_person_is_asked() {
    let manual = manual();
    let set = with(budget(2, 1), &manual);
    let pods = [asked(pod("a"), 1000, false), live("b", failed())];
    assert_eq!(
        wait_of(&plan(&set, &pods).waits),
        Some(MigrationWait::Budget)
    );
}

#[test]
fn m7_compaction_is_refused() {
    let manual = manual();
    let set = with(set(1), &manual);
    let mut pod = asked(pod("a"), -1, false);
    pod.migration = pod.migration.map(|asked| RequestedMigration {
        is_compaction: true,
        ..asked
    });
    let pods = [pod];
    let plan = plan(&set, &pods);
    assert_eq!(wait_of(&plan.waits), Some(MigrationWait::CompactionRefused));
    assert!(plan.record.evictions.is_empty(), "not even at its deadline");
    let phase = phase_of(&set, &pods, &LocalRecord::default());
    assert_eq!(phase, (MigrationPhase::Cancelled, None));
}

/// The proof, and the person: one is not enough before the deadline.
#[rstest]
#[case::runs(Guard::Holding, 1000, false, None, MigrationPhase::ShuttingDown)]
#[case::runs_whatever_was_confirmed(Guard::Holding, 1000, true, None, MigrationPhase::ShuttingDown)]
#[case::unproved(Guard::Unproved, 1000, true, None, MigrationPhase::ShuttingDown)]
#[case::unconfirmed(
    Guard::Stopped,
    1000,
    false,
    None,
    MigrationPhase::WaitingForConfirmation
)]
#[case::confirmed(
    Guard::Stopped,
    1000,
    true,
    Some("RemoveFinalizer a"),
    MigrationPhase::Evicting
)]
#[case::overdue(Guard::Stopped, -1, false, Some("RemoveFinalizer a"), MigrationPhase::Evicting)]
#[case::overdue_and_unproved(Guard::Holding, -1, false, None, MigrationPhase::ShuttingDown)]
fn m7_m15_it_moves_once_it_is_known_and_confirmed_to_be_down(
    #[case] guard: Guard,
    #[case] deadline: i64,
    #[case] is_stopped: bool,
    #[case] action: Option<&str>,
    #[case] phase: MigrationPhase,
) {
    let manual = manual();
    let set = with(set(1), &manual);
    let pods = [shut_down(guard, deadline, is_stopped)];
    let held = plan(&set, &pods).record;
    let place = held.evictions["a"].recreate.as_ref();
    let is_gated = place.map(|place| (&*place.name, place.gated));
    let over = action.is_some();
    assert_eq!(is_gated, (!over).then_some(("a", true)).or(is_gated));
    let plan = plan_with(&set, &pods, &held);
    let expected: Vec<_> = action.into_iter().collect();
    assert_eq!(actions(&plan), expected);
    let found = phase_of(&set, &pods, &held);
    let awaits =
        (phase == MigrationPhase::WaitingForConfirmation).then_some(AwaitedAction::ConfirmStopped);
    let phase = if over { found.0 } else { phase };
    assert_eq!(found, (phase, awaits));
}

#[test]
fn m7_m12_the_pod_in_its_place_waits_for_a_person_to_start_it() {
    let manual = manual();
    let set = with(set(1), &manual);
    let held = plan(&set, &[shut_down(Guard::Stopped, 1000, false)]).record;
    let created = plan_with(&set, &[], &held);
    let [Action::Create { name, start, .. }] = &created.actions[..] else {
        panic!("{created:#?}")
    };
    assert_eq!((&**name, *start), ("a", Start::Gated));
    let successor = Pod {
        uid: "a2",
        node: None,
        is_gated: true,
        ..live("a", starting())
    };
    let expected = (MigrationPhase::Placing, Some(AwaitedAction::Start));
    assert_eq!(phase_of(&set, &[successor], &held), expected);
}

/// Whoever deletes it, and whyever it is made again: an update, here.
#[test]
fn m12_a_pod_that_was_not_started_is_not_started_afterwards() {
    let manual = manual();
    let set = with(set(1), &manual);
    let gated = |life| Pod {
        node: None,
        is_gated: true,
        guard: Guard::Stopped,
        ..live("a", life)
    };
    let deleted = [gated(terminating(-1))];
    let held = plan(&set, &deleted).record;
    let place = held.evictions["a"].recreate.as_ref();
    assert!(place.is_some_and(|place| place.gated));
    let outdated = [Pod {
        revision: Some(OTHER),
        guard: Guard::Holding,
        ..gated(starting())
    }];
    let update = plan(&set, &outdated).record;
    let place = update.updates["a"].recreate.as_ref();
    assert!(place.is_some_and(|place| place.gated));
}

/// Without anybody who asks it to leave, a pod that is deleted is made again, and started, once it has stopped.
#[test]
fn m7_a_pod_that_need_not_leave_is_restarted_by_its_deletion() {
    let manual = manual();
    let set = with(set(1), &manual);
    let pod = Pod {
        guard: Guard::Holding,
        ..live("a", terminating(-20))
    };
    let held = plan(&set, &[pod]).record;
    let created = plan_with(&set, &[], &held);
    let [Action::Create { start, .. }] = created.actions[..] else {
        panic!("{created:#?}")
    };
    assert_eq!(start, Start::AtOnce);
}

/// Its pods belong to nobody then, who could be asked.
#[test]
fn m7_a_set_that_is_deleted_waits_for_nobody() {
    let manual = manual();
    let set = Set {
        is_deleted: true,
        ..with(set(1), &manual)
    };
    let pods = [shut_down(Guard::Stopped, 1000, false)];
    assert_eq!(actions(&plan(&set, &pods)), ["RemoveFinalizer a"]);
}

#[test]
fn m7_what_a_pod_waits_for_is_said() {
    let manual = manual();
    let set = with(set(1), &manual);
    let pods = [shut_down(Guard::Stopped, 1000, false)];
    let plan = plan(&set, &pods);
    let expected = Wait::Pod {
        pod: "a",
        reason: PodWait::Confirmation,
    };
    assert!(plan.waits.contains(&expected), "{plan:#?}");
}
