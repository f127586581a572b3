//! The order of the members, pauses and failures (L6, L8).

use std::time::Duration;

use federated_rollout::{
    Action, Approval, Budget, Deployment, Member, MemberState, OnFailure, Rollout, State, Step,
    WaitReason, step,
};

use crate::fixtures::{
    actions, at, canary, lends, lent, member, new, old, rolling, rollout, state,
};

#[test]
fn l6_steps_begin_in_their_order() {
    let soak = Duration::from_secs(60);
    let second = Step {
        name: "second",
        members: &["us"],
        approval_before: true,
        ..canary(Duration::ZERO)
    };
    let steps = [canary(soak), second];
    let approvals = ["older", "new"].map(|revision| Approval {
        step: "second",
        revision,
    });
    let before = [member("eu", old(2)), member("us", old(2))];
    let after = [member("eu", new(2, lends(2, 0))), member("us", old(2))];
    let base = |members| Rollout {
        steps: &steps,
        approvals: &approvals[..1],
        ..rollout(members, 4, 0)
    };
    let first = step(&base(&before), &State::default(), at(0));
    assert_eq!(lent(&first), [("eu", 2, 0)]);
    assert_eq!(first.waits[1], Some(WaitReason::Step { step: 0 }));
    let soaking = step(&base(&after), &first.state, at(10));
    let until = at(70);
    assert_eq!(
        soaking.waits,
        [None, Some(WaitReason::Soak { step: 0, until })]
    );
    assert_eq!(soaking.next, Some(until));
    let waiting = step(&base(&after), &soaking.state, until);
    assert_eq!(waiting.waits[1], Some(WaitReason::Approval { step: 1 }));
    assert_eq!(lent(&waiting), []);
    let approved = Rollout {
        approvals: &approvals,
        ..base(&after)
    };
    assert_eq!(
        lent(&step(&approved, &waiting.state, until)),
        [("us", 2, 0)]
    );
}

/// Capacity probes, and replicas that no cluster can run, stay pending for ever.
#[test]
fn l6_replicas_that_cannot_run_hold_no_step_up() {
    let steps = [canary(Duration::ZERO)];
    for (pending, expected) in [(0, vec![]), (2, vec![("us", 2, 0)])] {
        let full = Deployment {
            available: 3,
            updated_available: 3,
            pending,
            ..new(5, lends(1, 0))
        };
        let members = [member("eu", full), member("us", old(2))];
        let rollout = Rollout {
            steps: &steps,
            ..rollout(&members, 4, 0)
        };
        let begun = State {
            revision: "new".to_owned(),
            begun: vec!["canary".to_owned()],
            ..State::default()
        };
        assert_eq!(lent(&step(&rollout, &begun, at(0))), expected, "{pending}");
    }
}

#[test]
fn l6_lost_and_cordoned_members_are_skipped_and_catch_up() {
    let steps = [canary(Duration::ZERO)];
    let members = [member("eu", old(2)), member("us", old(2))];
    for eu in [
        Member {
            state: MemberState::Lost,
            ..members[0]
        },
        Member {
            cordoned: true,
            ..members[0]
        },
    ] {
        let skipped = [eu, members[1]];
        let base = |members| Rollout {
            steps: &steps,
            replicas: 4,
            ..rollout(members, 4, 0)
        };
        let decision = step(&base(&skipped), &State::default(), at(0));
        assert_eq!(lent(&decision).last().map(|loan| loan.0), Some("us"));
        let decision = step(&base(&members), &decision.state, at(0));
        assert_eq!(lent(&decision)[0].0, "eu");
    }
}

/// Found by the simulation.
#[test]
fn l6_a_step_that_is_added_before_others_begins_before_them() {
    let second = |needs_approval| Step {
        name: "second",
        members: &["us"],
        approval_before: needs_approval,
        ..canary(Duration::ZERO)
    };
    let members = [member("eu", new(2, lends(1, 0))), member("us", old(2))];
    let recorded = State {
        progressed: None,
        ..state(&[])
    };
    for (steps, expected) in [
        (vec![], vec![("us", 2, 0)]),
        (vec![second(false)], vec![("us", 2, 0)]),
        (vec![second(true)], vec![]),
        (vec![canary(Duration::from_secs(60))], vec![]),
    ] {
        let rollout = Rollout {
            steps: &steps,
            ..rollout(&members, 2, 0)
        };
        let decision = step(&rollout, &recorded, at(0));
        assert_eq!(lent(&decision), expected, "{steps:?}");
    }
}

/// One whose Deployment is to be created.
fn missing(name: &'static str) -> Member<'static> {
    Member {
        deployment: None,
        creates: true,
        ..member(name, old(0))
    }
}

#[test]
fn l6_a_missing_deployment_is_created_in_the_revision_that_its_step_has_reached() {
    let steps = [canary(Duration::ZERO)];
    let all = |eu, us, previous, state: &State| {
        let members = [member("eu", eu), us];
        let rollout = Rollout {
            steps: &steps,
            previous,
            ..rollout(&members, 4, 0)
        };
        step(&rollout, state, at(0))
    };
    let begun = |begun: &[&str], failed: bool| State {
        revision: "new".to_owned(),
        begun: begun.iter().map(ToString::to_string).collect(),
        failed,
        ..State::default()
    };
    let updated = || new(2, lends(2, 0));
    for (eu, previous, state, expected) in [
        // The first creation is no rollout.
        (updated(), None, begun(&["canary"], false), false),
        (old(2), Some("old"), begun(&["canary"], false), true),
        // The canary is complete: the last step begins.
        (updated(), Some("old"), begun(&["canary"], false), false),
        (updated(), Some("old"), begun(&["canary", ""], true), true),
    ] {
        let decision = all(eu, missing("us"), previous, &state);
        let created = expected.then(|| "old".to_owned());
        assert_eq!(decision.created, [None, created]);
        assert_eq!(
            decision.waits[1],
            previous.map(|_| WaitReason::Missing),
            "the rollout is not complete without it"
        );
    }
}

/// Found by the simulation.
#[test]
fn l6_a_deployment_that_is_found_with_another_template_keeps_to_the_steps() {
    let steps = [canary(Duration::from_secs(60))];
    let after = |us: Member<'static>, state: &State| {
        let members = [member("eu", new(2, lends(2, 0))), us];
        let rollout = Rollout {
            steps: &steps,
            ..rollout(&members, 4, 0)
        };
        step(&rollout, state, at(0))
    };
    let creating = after(missing("us"), &State::default());
    let found = after(member("us", old(2)), &creating.state);
    assert_eq!(lent(&found), []);
    let until = at(60);
    assert_eq!(found.waits[1], Some(WaitReason::Soak { step: 0, until }));
    let created = after(member("us", new(2, lends(0, 1))), &creating.state);
    assert_eq!((created.state.begun.len(), &created.waits[1]), (2, &None));
}

/// Found by the simulation: every half hour a list makes the view stale for a moment.
#[test]
fn l6_a_member_that_had_the_target_when_it_was_last_seen_is_not_waited_for() {
    let complete = new(2, lends(0, 1));
    for (found, expected) in [
        (complete, None),
        (rolling(2, 1, lends(0, 1)), Some(WaitReason::Unknown)),
        (old(2), Some(WaitReason::Unknown)),
    ] {
        let members = [Member {
            state: MemberState::Unknown,
            ..member("eu", found)
        }];
        let decision = step(&rollout(&members, 1, 0), &state(&[]), at(0));
        assert_eq!(decision.waits, [expected]);
    }
}

#[test]
fn l6_at_most_so_many_members_of_a_step_at_a_time() {
    let steps = [Step {
        members: &["eu", "us", "za"],
        max_concurrent: Some(2),
        ..canary(Duration::ZERO)
    }];
    let members = [
        member("eu", old(2)),
        member("us", old(2)),
        member("za", old(2)),
    ];
    let rollout = Rollout {
        steps: &steps,
        ..rollout(&members, 6, 0)
    };
    let decision = step(&rollout, &State::default(), at(0));
    assert_eq!(lent(&decision), [("eu", 2, 0), ("us", 2, 0)]);
    assert_eq!(
        decision.waits[2],
        Some(WaitReason::Concurrency { limit: 2 })
    );
}

#[test]
fn l8_a_pause_gives_and_writes_nothing_and_recalls_go_on() {
    let members = [member("eu", old(5)), member("us", old(5))];
    let paused = Rollout {
        paused: true,
        ..rollout(&members, 2, 0)
    };
    let decision = step(&paused, &state(&[("eu", lends(1, 0))]), at(0));
    assert_eq!(lent(&decision), [("eu", 1, 0)]);
    assert_eq!(actions(&decision), []);
    assert_eq!(
        decision.waits,
        [Some(WaitReason::Paused), Some(WaitReason::Paused)]
    );
    let decision = step(&paused, &State::default(), at(0));
    assert!(decision.state.begun.is_empty(), "no step begins");
    let decision = step(&paused, &state(&[("eu", lends(3, 0))]), at(0));
    assert_eq!(actions(&decision), [("eu", Action::Fence)]);
}

/// L8: what has stopped is not waited for.
#[test]
fn l8_a_member_that_is_paused_waits_for_the_end_of_the_pause() {
    let found = Deployment {
        paused: true,
        ..rolling(5, 2, lends(2, 0))
    };
    let members = [member("eu", found)];
    let paused = Rollout {
        paused: true,
        ..rollout(&members, 2, 0)
    };
    let decision = step(&paused, &state(&[("eu", lends(2, 0))]), at(0));
    assert_eq!(decision.waits, [Some(WaitReason::Paused)]);
}

/// L8: a Deployment that rolls is paused, which is recorded first, and keeps its loan; a LocalReplicaSet gives it back.
#[test]
fn l8_a_pause_stops_members_that_roll() {
    let found = rolling(5, 2, lends(2, 0));
    let members = [member("eu", found)];
    let paused = Rollout {
        paused: true,
        ..rollout(&members, 2, 0)
    };
    let first = step(&paused, &state(&[("eu", lends(2, 0))]), at(0));
    assert_eq!(
        (actions(&first), first.state.loans["eu"].paused),
        (vec![], true)
    );
    let second = step(&paused, &first.state, at(0));
    assert_eq!(actions(&second), [("eu", Action::Pause)]);
    assert_eq!(lent(&second), [("eu", 2, 0)]);

    let held = Deployment {
        paused: true,
        ..found
    };
    let members = [member("eu", held)];
    let of = |target, paused| Rollout {
        target,
        paused,
        ..rollout(&members, 2, 0)
    };
    assert_eq!(actions(&step(&of("new", true), &second.state, at(0))), []);
    let resumed = step(&of("new", false), &second.state, at(0));
    assert_eq!(actions(&resumed), [("eu", Action::Resume)]);
    // The write of another template ends the pause: no pod of the one in between is created.
    let other = step(&of("newer", false), &second.state, at(0));
    assert_eq!(actions(&other), []);
    let other = step(&of("newer", false), &other.state, at(0));
    assert_eq!(actions(&other), [("eu", Action::Roll(lends(2, 0)))]);
}

#[test]
fn without_progress_a_rollout_fails_and_is_undone_if_asked_for() {
    let members = [
        member("eu", rolling(5, 2, lends(2, 0))),
        member("us", old(5)),
    ];
    let undo = Rollout {
        on_failure: OnFailure::Undo,
        ..rollout(&members, 4, 0)
    };
    let recorded = state(&[("eu", lends(2, 0))]);
    let decision = step(&undo, &recorded, at(599));
    assert!(!decision.state.failed && decision.next == Some(at(600)));
    let decision = step(&undo, &recorded, at(600));
    assert!(decision.state.failed && decision.undo);
    assert_eq!(lent(&decision), [("eu", 2, 0)]);
    assert_eq!(decision.waits[1], Some(WaitReason::Failed));
    let undone = Rollout {
        target: "old",
        ..undo
    };
    let decision = step(&undone, &decision.state, at(601));
    assert!(!decision.state.failed && !decision.undo);
    assert_eq!(decision.state.loans["eu"].revision, "old");
}

#[test]
fn a_failed_rollout_goes_on_once_a_pod_becomes_available() {
    let eu = |available| Deployment {
        updated_available: available,
        ..rolling(5, 2, lends(2, 0))
    };
    let failed = State {
        failed: true,
        ..state(&[("eu", lends(2, 0))])
    };
    for (available, on_failure, expected) in [
        (0, OnFailure::Stop, true),
        (1, OnFailure::Stop, false),
        // Its pods are being replaced.
        (1, OnFailure::Undo, true),
    ] {
        let members = [member("eu", eu(available)), member("us", old(5))];
        let rollout = Rollout {
            on_failure,
            ..rollout(&members, 4, 0)
        };
        let decision = step(&rollout, &failed, at(700));
        assert_eq!(
            decision.state.failed, expected,
            "{available} {on_failure:?}"
        );
        let next = (!expected).then(|| at(1300));
        assert_eq!(decision.next, next);
    }
}

#[test]
fn l6_recreate_takes_one_cluster_at_a_time() {
    let members = [
        member("eu", old(2)),
        member("us", old(2)),
        member("za", old(5)),
    ];
    let recreate = Rollout {
        budget: Budget::Recreate,
        ..rollout(&members, 0, 0)
    };
    let decision = step(&recreate, &state(&[]), at(0));
    assert_eq!(lent(&decision), [("eu", 2, 0)]);
    assert_eq!(
        lent(&step(&recreate, &decision.state, at(0))),
        [("eu", 2, 0)]
    );
}

#[test]
fn l6_members_without_replicas_need_no_loan() {
    let members = [member("eu", old(0))];
    let decision = step(&rollout(&members, 1, 0), &state(&[]), at(0));
    assert_eq!(lent(&decision), []);
    assert_eq!(actions(&decision), [("eu", Action::Roll(lends(0, 1)))]);
}
