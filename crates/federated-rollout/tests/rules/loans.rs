//! Loans and their account (L6, L10, L14).

use std::time::Duration;

use federated_rollout::{
    Account, Action, Amount, Budget, Deployment, Limits, Member, MemberState, Rollout, State, Step,
    Strategy, WaitReason, step,
};
use rstest::rstest;

use crate::fixtures::{
    actions, at, canary, lends, lent, member, new, old, rolling, rollout, state,
};

#[rstest]
#[case::l6_percentages_round_as_in_kubernetes(Amount::Percent(25), Amount::Percent(25), 10, 2, 3)]
#[case::l6_numbers(Amount::Number(3), Amount::Number(1), 10, 3, 1)]
#[case::l6_both_zero(Amount::Number(0), Amount::Number(0), 10, 1, 0)]
#[case::l6_both_zero_after_rounding(Amount::Percent(9), Amount::Percent(0), 10, 1, 0)]
#[case::l6_more_than_all(Amount::Number(30), Amount::Percent(200), 10, 10, 20)]
#[case::l6_no_replicas(Amount::Percent(25), Amount::Percent(25), 0, 1, 0)]
#[case::l6_large(Amount::Percent(100), Amount::Percent(1), u64::MAX, u64::MAX, u64::MAX / 100 + 1)]
fn l6_budgets_are_resolved(
    #[case] max_unavailable: Amount,
    #[case] max_surge: Amount,
    #[case] replicas: u64,
    #[case] unavailable: u64,
    #[case] surge: u64,
) {
    let budget = Budget::RollingUpdate {
        max_unavailable,
        max_surge,
    };
    let expected = Limits { unavailable, surge };
    assert_eq!(budget.resolve(replicas, 0), expected);
}

#[test]
fn l6_a_loan_is_recorded_before_it_is_written() {
    let members = [member("eu", old(5)), member("us", old(5))];
    let rollout = rollout(&members, 2, 1);
    let first = step(&rollout, &State::default(), at(0));
    assert_eq!(lent(&first), [("eu", 1, 1), ("us", 1, 0)]);
    assert_eq!(actions(&first), []);
    let second = step(&rollout, &first.state, at(0));
    assert_eq!(second.state, first.state);
    assert_eq!(
        actions(&second),
        [
            ("eu", Action::Roll(lends(1, 1))),
            ("us", Action::Roll(lends(1, 0)))
        ]
    );
}

#[rstest]
#[case::l14_evenly(&[("a", old(4)), ("b", old(4))], 3, 1, &[("a", 2, 1), ("b", 1, 0)])]
#[case::l14_what_the_small_ones_leave(&[("a", old(9)), ("b", old(1))], 6, 0, &[("a", 5, 0), ("b", 1, 0)])]
#[case::l14_not_to_all(&[("a", old(3)), ("b", old(3)), ("c", old(3))], 1, 1, &[("a", 1, 1)])]
#[case::l14_broken_pods_use_the_budget(&[("a", old(3)), ("b", Deployment { revision: "new", available: 1, ..old(3) })], 2, 0, &[])]
#[case::l14_broken_pods_are_lent_within_the_budget(&[("a", old(3)), ("b", Deployment { available: 0, updated_available: 0, ..old(3) })], 2, 0, &[("b", 2, 0)])]
#[case::l14_pods_without_a_node_are_lent_beyond_it(&[("a", old(3)), ("b", Deployment { available: 0, updated_available: 0, pending: 3, ..old(3) })], 2, 0, &[("b", 3, 0)])]
#[case::l14_pods_that_are_being_created_are_not(&[("a", Deployment { available: 1, updated_available: 1, ..old(9) }), ("b", Deployment { available: 2, updated_available: 2, ..old(9) })], 1, 0, &[("a", 1, 0)])]
#[case::l14_pods_that_may_run_are_not(&[("a", old(3)), ("b", Deployment { available: 0, updated_available: 0, uncertain: 2, ..old(3) })], 1, 0, &[("b", 1, 0)])]
fn l14_loans_share_the_budget(
    #[case] found: &[(&str, Deployment<'static>)],
    #[case] unavailable: u64,
    #[case] surge: u64,
    #[case] expected: &[(&str, u64, u64)],
) {
    let members: Vec<_> = found
        .iter()
        .map(|&(name, found)| member(name, found))
        .collect();
    let decision = step(&rollout(&members, unavailable, surge), &state(&[]), at(0));
    assert_eq!(lent(&decision), expected);
}

#[test]
fn l14_replicas_that_are_requested_nowhere_use_the_budget() {
    let members = [member("eu", old(5))];
    let rollout = Rollout {
        replicas: 7,
        ..rollout(&members, 2, 0)
    };
    let decision = step(&rollout, &state(&[]), at(0));
    assert_eq!(lent(&decision), []);
    assert_eq!(
        decision.waits,
        [Some(WaitReason::Budget {
            in_use: 2,
            of: 2,
            by: vec![]
        })]
    );
}

/// Found by the interleavings: a move had added two replicas that the member had not observed, and a rollout lent the surge again.
#[rstest]
#[case::none(5, 5, 5, &[("eu", 0, 2)])]
#[case::observed(7, 7, 7, &[])]
#[case::not_observed(7, 5, 7, &[])]
#[case::the_request_may_still_be_carried_out(5, 5, 7, &[])]
fn l14_replicas_beyond_n_use_the_surge_from_their_request_on(
    #[case] replicas: u64,
    #[case] lowest_replicas: u64,
    #[case] highest_replicas: u64,
    #[case] expected: &[(&str, u64, u64)],
) {
    let scaled = Deployment {
        replicas,
        lowest_replicas,
        highest_replicas,
        ..new(5, Strategy::WITHOUT_LOAN)
    };
    let members = [member("eu", old(2)), member("us", scaled)];
    let rollout = Rollout {
        replicas: 7,
        ..rollout(&members, 0, 2)
    };
    let decision = step(&rollout, &State::default(), at(0));
    assert_eq!(lent(&decision), expected);
}

/// Found by the simulation: a full member kept its rollout from going on with replicas that others had replaced.
#[rstest]
#[case::others_replace_them(4, 5)]
#[case::they_may_still_run(0, 4)]
fn l14_what_has_no_node_and_is_replaced_elsewhere_uses_no_budget(
    #[case] pending: u64,
    #[case] expected: u64,
) {
    let full = Deployment {
        pending,
        ..rolling(5, 4, lends(4, 0))
    };
    let members = [member("eu", full), member("us", new(9, lends(1, 0)))];
    let rollout = Rollout {
        replicas: 10,
        ..rollout(&members, 1, 0)
    };
    let mut recorded = state(&[("eu", lends(4, 0))]);
    recorded.loans.get_mut("eu").unwrap().beyond = 3;
    let decision = step(&rollout, &recorded, at(0));
    assert_eq!(lent(&decision), [("eu", expected, 0)]);
}

#[test]
fn l14_a_loan_ends_when_the_member_is_complete() {
    for (observed_generation, updated_available, ends) in
        [(2, 5, true), (1, 5, false), (2, 4, false)]
    {
        let found = Deployment {
            observed_generation,
            updated_available,
            ..new(5, lends(2, 1))
        };
        let members = [member("eu", found), member("us", old(5))];
        let decision = step(
            &rollout(&members, 2, 1),
            &state(&[("eu", lends(2, 1))]),
            at(0),
        );
        let expected = if ends { ("us", 2, 1) } else { ("eu", 2, 1) };
        assert_eq!(lent(&decision), [expected]);
        assert_eq!(actions(&decision), []);
    }
}

#[test]
fn l14_the_last_member_gets_what_the_others_had() {
    let members = [
        member("eu", new(2, lends(1, 0))),
        member("us", rolling(9, 1, lends(1, 0))),
    ];
    let recorded = state(&[("eu", lends(1, 0)), ("us", lends(1, 0))]);
    let decision = step(&rollout(&members, 2, 0), &recorded, at(0));
    assert_eq!(lent(&decision), [("us", 2, 0)]);
    assert_eq!(decision.state.loans["us"].generation, 2);
    let decision = step(&rollout(&members, 2, 0), &decision.state, at(0));
    assert_eq!(actions(&decision), [("us", Action::Roll(lends(2, 0)))]);
}

#[test]
fn l14_an_unreachable_member_keeps_its_loan_and_a_lost_one_does_not() {
    let found = rolling(5, 2, lends(2, 0));
    let recorded = state(&[("eu", lends(2, 0))]);
    for (state, expected) in [
        (MemberState::Unknown, vec![("eu", 2, 0)]),
        (MemberState::Lost, vec![("eu", 2, 0), ("us", 2, 0)]),
    ] {
        let eu = Member {
            state,
            ..member("eu", found)
        };
        let members = [eu, member("us", old(10))];
        let rollout = Rollout {
            replicas: if state == MemberState::Lost { 10 } else { 15 },
            ..rollout(&members, 2, 0)
        };
        let decision = step(&rollout, &recorded, at(0));
        assert_eq!(lent(&decision), expected);
        assert_eq!(decision.state.loans["eu"].lost, state == MemberState::Lost);
    }
}

/// Found by the simulation: a Deployment that somebody else was rolling when it was adopted got a loan, and lost it, for ever.
#[test]
fn l14_what_is_in_effect_without_a_loan_is_not_lent_beyond_the_budget() {
    let found = Deployment {
        pods: 12,
        updated: 4,
        available: 2,
        updated_available: 0,
        ..old(11)
    };
    let members = [
        member("eu", rolling(14, 5, lends(0, 1))),
        member("us", found),
    ];
    let rollout = rollout(&members, 2, 1);
    let recorded = state(&[("eu", lends(0, 1))]);
    let decision = step(&rollout, &recorded, at(0));
    assert_eq!(lent(&decision), [("eu", 0, 1), ("us", 2, 0)]);
    let decision = step(&rollout, &decision.state, at(0));
    assert_eq!(actions(&decision), [("us", Action::Roll(lends(2, 0)))]);
    // The user took the surge away while a version that never becomes available was rolled out with it.
    let stuck = Deployment {
        pods: 4,
        updated: 1,
        updated_available: 0,
        ..old(3)
    };
    let members = [member("eu", stuck)];
    let mut recalled = state(&[("eu", lends(0, 1))]);
    let loan = recalled.loans.entry("eu".to_owned());
    loan.and_modify(|loan| (loan.revision, loan.generation) = ("older".to_owned(), 0));
    for recorded in [state(&[]), recalled] {
        let decision = step(&crate::fixtures::rollout(&members, 1, 0), &recorded, at(0));
        assert_eq!(lent(&decision), [("eu", 1, 0)]);
    }
}

/// Found by the simulation.
#[test]
fn l14_the_loan_of_a_member_that_was_not_seen_since_the_start_stays_in_use() {
    let us = Deployment {
        available: 5,
        ..old(10)
    };
    let unseen = |state| Member {
        state,
        deployment: None,
        ..member("eu", old(5))
    };
    for (state, lends_surge, expected) in [
        (MemberState::Unknown, lends(0, 2), vec![("eu", 0, 2)]),
        (
            MemberState::Unknown,
            lends(0, 1),
            vec![("eu", 0, 1), ("us", 0, 1)],
        ),
        (
            MemberState::Lost,
            lends(0, 2),
            vec![("eu", 0, 2), ("us", 0, 2)],
        ),
    ] {
        let members = [unseen(state), member("us", old(10))];
        let rollout = Rollout {
            replicas: 15,
            ..rollout(&members, 0, 2)
        };
        let recorded = crate::fixtures::state(&[("eu", lends_surge)]);
        let decision = step(&rollout, &recorded, at(0));
        assert_eq!(lent(&decision), expected, "{state:?}");
        assert!(decision.account.in_use.surge <= 2);
    }
    // Its clusters count as being updated.
    let steps = [Step {
        members: &["eu", "us"],
        max_concurrent: Some(1),
        ..canary(Duration::ZERO)
    }];
    let members = [unseen(MemberState::Unknown), member("us", us)];
    let rollout = Rollout {
        steps: &steps,
        ..rollout(&members, 9, 2)
    };
    let decision = step(&rollout, &state(&[("eu", lends(1, 0))]), at(0));
    assert_eq!(lent(&decision), [("eu", 1, 0)]);
}

#[test]
fn l14_the_strategy_of_a_member_that_returns_is_written_first() {
    let mut recorded = state(&[("eu", lends(2, 1))]);
    recorded
        .loans
        .entry("eu".to_owned())
        .and_modify(|loan| loan.lost = true);
    let returned = Deployment {
        revision: "older",
        ..rolling(5, 2, lends(2, 1))
    };
    let members = [member("eu", returned)];
    let decision = step(&rollout(&members, 2, 1), &recorded, at(0));
    assert_eq!(actions(&decision), [("eu", Action::Shrink(lends(0, 1)))]);
    assert_eq!(decision.state, recorded);
    // Until that is observed, its loan stays what it was; then it may get a new one.
    for (observed_generation, is_lost, generation) in [(2, true, 1), (3, false, 3)] {
        let written = Deployment {
            generation: 3,
            observed_generation,
            strategy: lends(0, 1),
            ..returned
        };
        let members = [member("eu", written)];
        let decision = step(&rollout(&members, 2, 1), &recorded, at(0));
        let loan = &decision.state.loans["eu"];
        assert_eq!((loan.lost, loan.generation), (is_lost, generation));
    }
}

#[test]
fn l10_a_newer_template_replaces_one_that_is_being_rolled_out() {
    let members = [member("eu", rolling(5, 2, lends(2, 0)))];
    let newer = Rollout {
        target: "newer",
        ..rollout(&members, 2, 0)
    };
    let decision = step(&newer, &state(&[("eu", lends(2, 0))]), at(0));
    assert_eq!(lent(&decision), [("eu", 2, 0)]);
    let loan = &decision.state.loans["eu"];
    assert_eq!((&*loan.revision, loan.generation), ("newer", 2));
    let decision = step(&newer, &decision.state, at(0));
    assert_eq!(actions(&decision), [("eu", Action::Roll(lends(2, 0)))]);
}

#[test]
fn l10_a_loan_is_recalled_if_the_step_of_the_member_has_not_begun_for_the_new_target() {
    let steps = [canary(Duration::ZERO)];
    for (found, expected) in [
        (rolling(5, 2, lends(2, 1)), Action::Shrink(lends(0, 1))),
        (rolling(5, 2, lends(2, 0)), Action::Shrink(lends(1, 0))),
        // Its write may still come.
        (old(5), Action::Fence),
    ] {
        let lent = if found.revision == "old" {
            lends(2, 1)
        } else {
            found.strategy
        };
        let members = [member("eu", old(1)), member("us", found)];
        let newer = Rollout {
            target: "newer",
            steps: &steps,
            ..rollout(&members, 2, 1)
        };
        let decision = step(&newer, &state(&[("us", lent)]), at(0));
        assert_eq!(actions(&decision), [("us", expected)]);
        assert_eq!(decision.state.loans["us"].strategy, lent);
    }
}

/// Found by a property test: a loan for a newer template ended before it was written, and the one before stayed in effect,
/// on no record.
#[test]
fn l10_what_a_loan_that_was_never_written_leaves_in_effect_comes_within_it() {
    let changed = |found| Deployment {
        generation: 3,
        observed_generation: 3,
        ..found
    };
    for (found, lent, expected) in [
        (lends(0, 1), lends(1, 0), lends(1, 0)),
        (lends(0, 2), lends(1, 0), lends(1, 0)),
        (lends(2, 0), lends(0, 1), lends(0, 1)),
    ] {
        let rolls = Deployment {
            paused: true,
            ..rolling(5, 2, found)
        };
        for found in [rolls, changed(rolls)] {
            let members = [member("eu", found)];
            let rollout = Rollout {
                target: "old",
                paused: true,
                ..rollout(&members, 2, 0)
            };
            let mut recorded = state(&[("eu", lent)]);
            let loan = recorded.loans.get_mut("eu").unwrap();
            (loan.generation, loan.paused) = (2, true);
            let decision = step(&rollout, &recorded, at(0));
            assert_eq!(
                actions(&decision),
                [("eu", Action::Shrink(expected))],
                "{found:?}"
            );
            assert_eq!(decision.state.loans["eu"].strategy, lent);
        }
    }
}

#[test]
fn l14_a_smaller_budget_recalls_the_last_loans() {
    let found = |pods| rolling(9, 0, lends(pods, 0));
    let members = [member("eu", found(3)), member("us", found(3))];
    let members = members.map(|member| Member {
        deployment: member
            .deployment
            .map(|found| Deployment { pods: 10, ..found }),
        ..member
    });
    let recorded = state(&[("eu", lends(3, 0)), ("us", lends(3, 0))]);
    let decision = step(&rollout(&members, 5, 0), &recorded, at(0));
    assert_eq!(actions(&decision), [("us", Action::Shrink(lends(2, 0)))]);
}

#[test]
fn l14_a_loan_waits_for_pods_without_a_node_and_a_move_for_the_loan() {
    let without_node = Member {
        waits_for_nodes: true,
        ..member("us", old(5))
    };
    let members = [member("eu", old(5)), without_node];
    let rollout = rollout(&members, 2, 0);
    let decision = step(&rollout, &state(&[]), at(0));
    assert_eq!(lent(&decision), [("eu", 2, 0)]);
    assert_eq!(decision.waits[1], Some(WaitReason::Nodes));
    let account = Account::of(&rollout, &decision.state);
    let members = account.members.iter();
    let seen: Vec<_> = members
        .map(|member| (member.guaranteed, member.moves_wait))
        .collect();
    assert_eq!(seen, [(3, true), (5, false)]);
}

/// Found by the simulation: a member whose controllers did not act kept 26 replicas without pods, and all of the surge.
#[test]
fn l14_a_deployment_that_is_not_observed_can_be_scaled_unless_it_has_a_loan_or_pods_of_two_templates()
 {
    let unobserved = |found| Deployment {
        generation: 3,
        ..found
    };
    let none = Deployment {
        pods: 0,
        updated: 0,
        available: 0,
        updated_available: 0,
        ..old(5)
    };
    for (found, recorded, expected) in [
        (unobserved(none), state(&[]), false),
        (unobserved(old(5)), state(&[]), false),
        (unobserved(old(5)), state(&[("eu", lends(1, 0))]), true),
        (unobserved(rolling(5, 1, lends(0, 1))), state(&[]), true),
    ] {
        let account = Account::of(&rollout(&[member("eu", found)], 2, 0), &recorded);
        assert_eq!(account.members[0].moves_wait, expected, "{found:?}");
    }
}

#[test]
fn l14_available_replicas_beyond_n_are_not_lent() {
    let members = [member("eu", old(5)), member("us", old(2))];
    let moved = Rollout {
        replicas: 5,
        ..rollout(&members, 1, 3)
    };
    let account = Account::of(&moved, &State::default());
    assert_eq!((account.in_use.unavailable, account.in_use.surge), (0, 2));
    let waiting = Deployment {
        available: 0,
        updated_available: 0,
        ..old(2)
    };
    let members = [member("eu", old(5)), member("us", waiting)];
    let moving = Rollout {
        replicas: 5,
        ..rollout(&members, 1, 3)
    };
    let account = Account::of(&moving, &State::default());
    assert_eq!(account.in_use.unavailable, 0);
    // What is lent may be taken away, whatever waits elsewhere.
    let account = Account::of(&moving, &state(&[("eu", lends(1, 0))]));
    assert_eq!(account.in_use.unavailable, 1);
    let available = [member("eu", old(5)), member("us", old(2))];
    let moved = Rollout {
        members: &available,
        ..moving
    };
    let account = Account::of(&moved, &state(&[("eu", lends(1, 0))]));
    assert_eq!(account.in_use.unavailable, 1);
}

#[test]
fn l14_a_strategy_without_a_loan_is_made_smaller() {
    for (strategy, expected) in [(lends(2, 1), lends(0, 1)), (lends(2, 0), lends(1, 0))] {
        let members = [member("eu", rolling(5, 2, strategy))];
        let paused = Rollout {
            paused: true,
            ..rollout(&members, 2, 1)
        };
        let decision = step(&paused, &state(&[]), at(0));
        assert_eq!(actions(&decision), [("eu", Action::Shrink(expected))]);
        assert_eq!(decision.account.in_use.unavailable, 2);
    }
}

#[test]
fn l6_pods_beyond_the_replicas_use_the_surge() {
    let shrunk = Deployment {
        pods: 7,
        available: 5,
        ..rolling(5, 2, lends(0, 1))
    };
    let members = [member("eu", shrunk), member("us", old(5))];
    let decision = step(
        &rollout(&members, 1, 2),
        &state(&[("eu", lends(0, 1))]),
        at(0),
    );
    assert_eq!(lent(&decision), [("eu", 0, 1), ("us", 1, 0)]);
    // They are not lent again where the budget has become smaller.
    let alone = Rollout {
        members: &members[..1],
        replicas: 5,
        ..rollout(&members, 2, 0)
    };
    let decision = step(&alone, &state(&[("eu", lends(0, 1))]), at(0));
    assert_eq!(lent(&decision), [("eu", 0, 1)]);
}

/// Three replicas, of two that users want, with a broken pod beside them: the third one is removed once the rollout has ended.
#[test]
fn l22_replicas_beyond_n_that_wait_for_a_rollout_do_not_lock_it() {
    let broken = Deployment {
        revision: "broken",
        pods: 4,
        available: 3,
        ..rolling(3, 1, lends(0, 1))
    };
    let members = [member("eu", broken)];
    let rollout = Rollout {
        replicas: 2,
        ..rollout(&members, 0, 1)
    };
    assert!(Account::of(&rollout, &State::default()).members[0].moves_wait);
    let decision = step(&rollout, &State::default(), at(0));
    assert_eq!(lent(&decision), [("eu", 0, 1)]);
    // As well if the broken template was rolled out with a loan.
    let mut lent_before = state(&[("eu", lends(0, 1))]);
    lent_before
        .loans
        .get_mut("eu")
        .expect("it is lent")
        .revision = "broken".to_owned();
    let decision = step(&rollout, &lent_before, at(0));
    assert_eq!(lent(&decision), [("eu", 0, 1)]);
    assert_eq!(decision.state.loans["eu"].revision, "new");
}

/// The budget is one pod beyond N, and a replica beyond N, which waits for its successor, has it. The successor can't become available
/// before it is updated.
#[rstest]
#[case::what_is_promised_is_available_elsewhere(1, 0, 2, &[("eu", 1, 0)])]
#[case::or_here_beside_the_broken_pod(3, 2, 3, &[("eu", 1, 0)])]
#[case::something_is_missing_elsewhere(1, 0, 1, &[])]
#[case::something_is_missing_here(3, 1, 3, &[])]
fn l22_a_replica_beyond_n_does_not_lock_the_broken_one_that_it_waits_for(
    #[case] replicas: u64,
    #[case] available: u64,
    #[case] elsewhere: u64,
    #[case] expected: &[(&str, u64, u64)],
) {
    let broken = Deployment {
        available,
        updated_available: available,
        ..old(replicas)
    };
    let moved = Deployment {
        available: elsewhere,
        updated_available: elsewhere,
        ..new(elsewhere.max(2), Strategy::WITHOUT_LOAN)
    };
    let members = [member("eu", broken), member("us", moved)];
    let rollout = Rollout {
        replicas: replicas + moved.replicas - 1,
        ..rollout(&members, 0, 1)
    };
    let decision = step(&rollout, &State::default(), at(0));
    assert_eq!(lent(&decision), expected);
    let state = decision.state;
    let decision = step(&rollout, &state, at(0));
    let written: Vec<_> = (expected.iter())
        .map(|&(name, unavailable, surge)| (name, Action::Roll(lends(unavailable, surge))))
        .collect();
    assert_eq!(actions(&decision), written);
    assert_eq!(lent(&decision), expected);
}

#[test]
fn l14_a_loan_is_written_at_the_generation_that_it_names() {
    let scaled = Deployment {
        generation: 2,
        observed_generation: 2,
        ..old(5)
    };
    let members = [member("eu", scaled)];
    let rollout = rollout(&members, 2, 0);
    let decision = step(&rollout, &state(&[("eu", lends(2, 0))]), at(0));
    assert_eq!(actions(&decision), []);
    assert_eq!(decision.state.loans["eu"].generation, 2);
    let decision = step(&rollout, &decision.state, at(0));
    assert_eq!(decision.writes[0].generation, 2);
}

/// The smallest strategy of a Deployment that rolls is beyond a budget that allows no surge any more: it is not lent, or the loan
/// would be recalled and given for ever. It ends with the write of what is lent.
#[test]
fn l14_what_a_changed_budget_does_not_allow_is_not_lent_again() {
    let members = [member("eu", rolling(2, 1, Strategy::new(0, 1)))];
    let rollout = rollout(&members, 2, 0);
    let first = step(&rollout, &State::default(), at(0));
    assert_eq!(
        (lent(&first), actions(&first)),
        (vec![("eu", 2, 0)], vec![])
    );
    let second = step(&rollout, &first.state, at(0));
    assert_eq!(second.state, first.state);
    assert_eq!(actions(&second), [("eu", Action::Roll(lends(2, 0)))]);
}
