//! Tests of the steps of a move.

use proptest::prelude::*;

use super::*;

fn running(requested: u64, target: u64) -> ReplicaState {
    ReplicaState {
        requested,
        open_scale_up: 0,
        ready: requested,
        available: requested,
        failed: 0,
        target,
        pending: 0,
        unreliable: false,
        waits: false,
        limit: u64::MAX,
        unpublished: 0,
    }
}

fn bounds(replicas: u64) -> Bounds {
    Bounds {
        floor: replicas,
        ceiling: replicas + (replicas / 4).max(1),
        has_unwritable: false,
        on_hold: None,
    }
}

#[test]
fn f20_a_move_makes_before_it_breaks() {
    let before = [running(8, 4), running(0, 4)];
    assert_eq!(
        next_step(&before, bounds(8)),
        [8, 2],
        "surge of 2, nothing removed yet"
    );
    let starting = [
        running(8, 4),
        ReplicaState {
            ready: 0,
            available: 0,
            ..running(2, 4)
        },
    ];
    assert_eq!(
        next_step(&starting, bounds(8)),
        [8, 2],
        "waits for the replacements"
    );
    let ready = [running(8, 4), running(2, 4)];
    assert_eq!(
        next_step(&ready, bounds(8)),
        [6, 2],
        "two ready ones allow two to go"
    );
    let gone = [running(6, 4), running(2, 4)];
    assert_eq!(
        next_step(&gone, bounds(8)),
        [6, 4],
        "two that are gone allow two more to be made"
    );
}

#[test]
fn f20_what_does_not_run_is_given_up_at_once() {
    let full = [
        running(17, 22),
        ReplicaState {
            ready: 6,
            available: 6,
            ..running(17, 8)
        },
    ];
    assert_eq!(
        next_step(
            &full,
            Bounds {
                ceiling: 44,
                ..bounds(34)
            }
        ),
        [22, 8]
    );
}

/// Found by the simulation: two clusters kept 5 such replicas each, which used all of the surge.
#[test]
fn f20_replicas_that_nobody_is_known_to_have_requested_are_reason_enough_to_remove_such_replicas() {
    let with = |limit, unpublished| ReplicaState {
        limit,
        unpublished,
        ..running(8, 3)
    };
    let next = |others: [ReplicaState; 2]| {
        let [one, other] = others;
        next_step(&[running(3, 8), running(2, 2), one, other], bounds(16))
    };
    assert_eq!(next([with(3, 5), with(3, 5)]), [3, 2, 3, 8]);
    assert_eq!(
        next([with(3, 5), with(3, 0)]),
        [7, 2, 8, 3],
        "not for claimed ones"
    );
    assert_eq!(next([with(8, 0), with(3, 5)]), [3, 2, 8, 3]);
    assert_eq!(
        next_step(&[running(8, 3), with(3, 5)], bounds(11)),
        [8, 3],
        "what was requested is not removed for them"
    );
}

#[test]
fn f39_replacements_that_start_stay_until_the_returned_cluster_counts() {
    let returned = ReplicaState {
        unreliable: true,
        ..running(9, 9)
    };
    let starting = ReplicaState {
        ready: 2,
        available: 2,
        ..running(11, 2)
    };
    let next = |state| next_step(&[returned, state], bounds(11));
    assert_eq!(next(starting), [9, 11]);
    assert_eq!(next_step(&[running(9, 9), starting], bounds(11)), [9, 2]);
    let requested = ReplicaState {
        requested: 14,
        ..starting
    };
    assert_eq!(next(requested), [9, 11], "more than N are not needed");
    let full = ReplicaState {
        failed: 5,
        ..starting
    };
    assert_eq!(next(full), [9, 6], "they are not about to start");
    assert_eq!(
        next(running(11, 2)),
        [9, 11],
        "nor are running ones removed"
    );
    let away = ReplicaState {
        requested: 0,
        ready: 0,
        available: 0,
        ..returned
    };
    assert_eq!(next_step(&[away, starting], bounds(11)), [2, 2]);
}

#[test]
fn f20_what_starts_is_not_removed_for_a_member_on_hold_before_it_is_replaced() {
    let starting = ReplicaState {
        ready: 0,
        available: 0,
        ..running(13, 9)
    };
    let next = |on_hold| {
        let bounds = Bounds {
            on_hold,
            ..bounds(18)
        };
        next_step(&[starting], bounds)
    };
    assert_eq!(next(Some(5)), [13]);
    assert_eq!(next(Some(7)), [11], "more than N are not needed");
    assert_eq!(next(None), [9]);
}

#[test]
fn f20_what_starts_is_not_removed_for_a_member_whose_next_write_waits() {
    let starting = ReplicaState {
        ready: 0,
        available: 0,
        ..running(13, 9)
    };
    for (requested, waits, expected) in [(5, true, [9, 13]), (7, true, [9, 11]), (5, false, [9, 9])]
    {
        let growing = ReplicaState {
            waits,
            ..running(requested, 9)
        };
        let next = next_step(&[growing, starting], bounds(18));
        assert_eq!(next, expected, "{requested} {waits}");
    }
}

#[test]
fn f20_scaling_down_by_the_user_happens_at_once() {
    assert_eq!(
        next_step(&[running(30, 10), running(30, 10)], bounds(20)),
        [10, 10]
    );
}

#[test]
fn f20_ready_but_not_yet_available_counts_as_running_but_not_as_spare() {
    let fresh = [
        running(8, 4),
        ReplicaState {
            available: 0,
            ..running(2, 4)
        },
    ];
    assert_eq!(next_step(&fresh, bounds(8)), [8, 2]);
}

#[test]
fn f20_growth_waits_for_what_a_member_has_yet_to_remove() {
    let slow = |requested| ReplicaState {
        ready: 10,
        ..running(requested, 4)
    };
    let bounds = bounds(12);
    assert_eq!(next_step(&[slow(10), running(5, 8)], bounds), [7, 5]);
    assert_eq!(
        next_step(&[slow(7), running(5, 8)], bounds),
        [7, 5],
        "10 run where 7 are asked for"
    );
    assert_eq!(next_step(&[running(7, 4), running(5, 8)], bounds), [7, 8]);
    let wanted_again = ReplicaState {
        target: 9,
        ..slow(7)
    };
    assert_eq!(
        next_step(&[wanted_again, running(5, 6)], bounds),
        [9, 5],
        "those that still run are kept"
    );
}

#[test]
fn f20_a_scale_up_that_may_still_be_carried_out_uses_the_surge() {
    let lost = ReplicaState {
        open_scale_up: 9,
        ..running(1, 1)
    };
    assert_eq!(next_step(&[lost, running(1, 7)], bounds(8)), [1, 1]);
    let believed = ReplicaState { limit: 5, ..lost };
    assert_eq!(next_step(&[believed, running(1, 7)], bounds(8)), [1, 5]);
}

#[test]
fn f20_what_only_waits_yields_the_surge_to_what_may_run() {
    let waiting = |requested| ReplicaState {
        ready: 11,
        available: 11,
        pending: 6,
        ..running(requested, 17)
    };
    let bounds = Bounds {
        ceiling: 32,
        ..bounds(26)
    };
    let blocked = [waiting(17), running(4, 9), running(11, 0)];
    assert_eq!(next_step(&blocked, bounds), [12, 4, 11]);
    let yielded = [waiting(12), running(4, 9), running(11, 0)];
    assert_eq!(next_step(&yielded, bounds), [12, 9, 11]);
    let settled = [waiting(17), running(9, 9), running(6, 0)];
    assert_eq!(next_step(&settled, bounds), [17, 9, 6]);
}

fn state() -> impl Strategy<Value = ReplicaState> {
    let numbers = (0..40u64, 0..40u64, 0..40u64, 0..40u64, 0..40u64, 0..40u64);
    numbers.prop_map(
        |(requested, ready, available, failed, target, pending)| ReplicaState {
            ready,
            available: available.min(ready).min(requested),
            failed: failed.min(requested.saturating_sub(ready)),
            pending: pending.min(target),
            ..running(requested, target)
        },
    )
}

proptest! {
    /// F20: whichever pods the members' controllers take first among the ready ones, what stays available is
    /// never below the floor, or below what it was.
    #[test]
    fn f20_no_step_dips(states in prop::collection::vec(state(), 0..8), floor in 0..80u64, surge in 0..20u64) {
        let bounds = Bounds { floor, ceiling: floor + surge, has_unwritable: false, on_hold: None };
        let next = next_step(&states, bounds);
        let before: u64 = states.iter().map(|state| state.available).sum();
        let after: u64 = states.iter().zip(&next).map(|(state, &next)| {
            let removed_ready = state.ready.min(state.requested).saturating_sub(next);
            state.available.saturating_sub(removed_ready)
        }).sum();
        prop_assert!(after >= before.min(floor), "{before} -> {after}");
    }

    /// F20: growth stays below the ceiling, unless state was exceeded before, whichever of the writes are carried out.
    #[test]
    fn f20_growth_keeps_to_the_ceiling(states in prop::collection::vec(state(), 0..8), floor in 0..80u64, surge in 0..20u64) {
        let bounds = Bounds { floor, ceiling: floor + surge, has_unwritable: false, on_hold: None };
        let before: u64 = states.iter().map(ReplicaState::present).sum();
        let next = next_step(&states, bounds);
        let after: u64 = states.iter().zip(next).map(|(state, next)| next.max(state.present())).sum();
        prop_assert!(after <= bounds.ceiling.max(before));
    }

    /// Where what is pending never runs, steps lead to the target all the same, and stop there.
    #[test]
    fn f18_steps_arrive_although_some_only_wait(mut states in prop::collection::vec(state(), 1..8)) {
        let total: u64 = states.iter().map(|state| state.target).sum();
        let capacity: Vec<_> = states.iter().map(|state| state.schedulable_target().max(state.ready.min(state.requested))).collect();
        for _ in 0..200 {
            for (state, capacity) in states.iter_mut().zip(&capacity) {
                state.ready = state.requested.min(*capacity);
                state.available = state.ready;
            }
            // A cluster keeps what runs there beyond its target, until that is removed.
            let running: u64 = states.iter().map(|state| state.target.min(state.schedulable_target().max(state.ready))).sum();
            let step = Bounds { floor: running, ..bounds(total) };
            let next = next_step(&states, step);
            for (state, next) in states.iter_mut().zip(next) {
                state.requested = next;
            }
        }
        for state in &states {
            prop_assert_eq!(state.requested, state.target, "{:?}", states);
        }
    }

    /// When everything runs, steps lead to the target and stop there.
    #[test]
    fn f20_steps_arrive(mut states in prop::collection::vec(state(), 1..8)) {
        let total: u64 = states.iter().map(|state| state.target).sum();
        for _ in 0..200 {
            for state in &mut states {
                (state.ready, state.available) = (state.requested, state.requested);
            }
            let next = next_step(&states, bounds(total));
            for (state, next) in states.iter_mut().zip(next) {
                state.requested = next;
            }
        }
        for state in &states {
            prop_assert_eq!(state.requested, state.target);
        }
    }
}
