//! LocalReplicaSets in the place of Deployments (L5, L8, L14, L20).

use federated_rollout::{Action, Budget, Deployment, LocalSet, Rollout, State, Strategy, step};
use rstest::rstest;

use crate::fixtures::{actions, at, lends, lent, member, new, old, rolling, rollout, state};

const PAUSED: LocalSet = LocalSet {
    paused: true,
    waiting_evictions: 0,
    evictable: 0,
};

/// Complete with the new template, and without a loan; so many evictions wait.
fn idle(replicas: u64, waiting_evictions: u64) -> Deployment<'static> {
    Deployment {
        local: Some(LocalSet {
            waiting_evictions,
            ..PAUSED
        }),
        ..new(replicas, Strategy::default())
    }
}

/// The same with a loan.
fn with_loan(found: Deployment<'static>, unavailable: u64, paused: bool) -> Deployment<'static> {
    Deployment {
        strategy: lends(unavailable, 0),
        local: found.local.map(|local| LocalSet { paused, ..local }),
        ..found
    }
}

fn half(replicas: u64, started: u64, unavailable: u64) -> Deployment<'static> {
    Deployment {
        local: Some(LocalSet::default()),
        ..rolling(replicas, started, lends(unavailable, 0))
    }
}

/// The PodDisruptionBudget of a LocalReplicaSet may follow its strategy late: what it still lends uses the budget without a loan.
#[rstest]
#[case::l20_nothing(0, &[("us", 2, 0)])]
#[case::l20_a_part(1, &[("us", 1, 0)])]
#[case::l20_all(2, &[])]
fn l20_what_evictions_of_others_may_use_is_not_lent_elsewhere(
    #[case] evictable: u64,
    #[case] loans: &[(&str, u64, u64)],
) {
    let recalled = Deployment {
        local: Some(LocalSet {
            evictable,
            ..PAUSED
        }),
        ..idle(3, 0)
    };
    let outdated = Deployment {
        revision: "old",
        ..idle(3, 0)
    };
    let members = [member("eu", recalled), member("us", outdated)];
    let decision = step(&rollout(&members, 2, 0), &State::default(), at(0));
    assert_eq!(lent(&decision), loans);
}

#[rstest]
// It uses the strategy for evictions as well: the loan ends by a write, then without one.
#[case::l14_complete(with_loan(idle(3, 0), 2, false), &[("eu", 2, 0)], &[("eu", Action::Shrink(lends(0, 0)))])]
#[case::l14_recalled(idle(3, 0), &[], &[])]
#[case::l14_not_observed(Deployment { observed_generation: 1, ..idle(3, 0) }, &[("eu", 2, 0)], &[])]
#[case::l20_while_evictions_wait(with_loan(idle(3, 1), 2, false), &[("eu", 2, 0)], &[])]
// Somebody has paused it: the loan is recorded anew, then written.
#[case::l8_paused(with_loan(half(3, 1, 2), 2, true), &[("eu", 2, 0)], &[])]
fn l14_a_loan_is_recalled_entirely(
    #[case] found: Deployment<'static>,
    #[case] loans: &[(&str, u64, u64)],
    #[case] writes: &[(&str, Action)],
) {
    let members = [member("eu", found)];
    let rollout = rollout(&members, 2, 0);
    let decision = step(&rollout, &state(&[("eu", lends(2, 0))]), at(0));
    assert_eq!(lent(&decision), loans);
    assert_eq!(actions(&decision), writes);
}

#[test]
fn l8_one_that_somebody_paused_goes_on() {
    let members = [member("eu", with_loan(half(3, 1, 2), 2, true))];
    let rollout = rollout(&members, 2, 0);
    let first = step(&rollout, &state(&[("eu", lends(2, 0))]), at(0));
    let second = step(&rollout, &first.state, at(0));
    assert_eq!(actions(&second), [("eu", Action::Roll(lends(2, 0)))]);
}

#[rstest]
#[case::l20_as_many_as_wait(&[idle(3, 1), idle(3, 0)], 2, &[("a", 1, 0)])]
#[case::l20_one_budget(&[idle(3, 3), idle(3, 3)], 2, &[("a", 2, 0)])]
// Two are broken in b: these have failed, or are evicted from their node.
#[case::l19_failures_stop_new_loans(&[idle(3, 1), Deployment { available: 1, ..idle(3, 0) }], 2, &[])]
#[case::l20_beside_broken_ones(&[Deployment { available: 2, ..idle(3, 1) }, idle(3, 0)], 2, &[("a", 2, 0)])]
// What rolls is lent what is left.
#[case::l19_evictions_go_first(&[idle(3, 1), Deployment { local: Some(PAUSED), strategy: lends(0, 0), ..old(3) }], 2, &[("a", 1, 0), ("b", 1, 0)])]
// Its evictions begin within the loan for the update.
#[case::l19_with_the_update(&[Deployment { local: Some(LocalSet { waiting_evictions: 1, ..PAUSED }), strategy: lends(0, 0), ..old(3) }], 2, &[("a", 2, 0)])]
fn l20_evictions_share_the_budget_of_all_members(
    #[case] found: &[Deployment<'static>],
    #[case] unavailable: u64,
    #[case] expected: &[(&str, u64, u64)],
) {
    let members = ["a", "b"].into_iter().zip(found);
    let members: Vec<_> = members.map(|(name, found)| member(name, *found)).collect();
    let rollout = rollout(&members, unavailable, 0);
    let decision = step(&rollout, &state(&[]), at(0));
    assert_eq!(lent(&decision), expected);
}

#[test]
fn l20_a_loan_for_evictions_leaves_the_template_and_ends_with_them() {
    let found = |waiting, strategy, generation| Deployment {
        strategy: lends(strategy, 0),
        generation,
        observed_generation: generation,
        ..idle(3, waiting)
    };
    let of = |found, recorded: &_| {
        let members = [member("eu", found)];
        let rollout = Rollout {
            paused: true,
            ..rollout(&members, 2, 0)
        };
        let decision = step(&rollout, recorded, at(0));
        let actions: Vec<_> = decision.writes.iter().map(|write| write.action).collect();
        (actions, decision.state)
    };
    let (writes, recorded) = of(found(1, 0, 2), &state(&[]));
    assert_eq!(writes, [], "it is recorded first");
    assert_eq!(recorded.progressed, None, "an eviction is no update");
    let (writes, _) = of(found(1, 0, 2), &recorded);
    assert_eq!(writes, [Action::Lend(lends(1, 0))]);
    let (writes, _) = of(found(1, 1, 3), &recorded);
    assert_eq!(writes, []);
    let (writes, recorded) = of(found(0, 1, 3), &recorded);
    assert_eq!(writes, [Action::Shrink(lends(0, 0))]);
    assert!(!recorded.loans.is_empty());
    let (writes, recorded) = of(found(0, 0, 4), &recorded);
    assert_eq!(writes, []);
    assert!(recorded.loans.is_empty());
}

#[rstest]
#[case::l5_none_of_n(5, 5, &[])]
// It may be replaced itself: the others stay.
#[case::l5_one_more_that_starts(6, 5, &[("eu", 1, 0)])]
#[case::l5_one_more(6, 6, &[("eu", 1, 0)])]
#[case::l5_two_more(7, 7, &[("eu", 1, 0)])]
fn l5_one_of_those_beyond_n_may_be_unavailable(
    #[case] replicas: u64,
    #[case] available: u64,
    #[case] expected: &[(&str, u64, u64)],
) {
    let found = Deployment {
        available,
        updated_available: available,
        strategy: lends(0, 0),
        local: Some(PAUSED),
        ..old(replicas)
    };
    let members = [member("eu", found)];
    let rollout = Rollout {
        budget: Budget::CreateFirst,
        replicas: 5,
        ..rollout(&members, 0, 0)
    };
    let decision = step(&rollout, &state(&[]), at(0));
    assert_eq!(lent(&decision), expected);
}
