//! The speed of a rollout (L15).

use std::time::Duration;

use federated_rollout::{Deployment, Rollout, Speed, WaitReason, step};

use crate::fixtures::{at, lends, lent, member, new, old, rolling, rollout, state};

/// Found by the simulation: what another writer was rolling was lent, and fenced off, for ever.
#[test]
fn l15_nothing_is_lent_that_the_next_step_would_recall() {
    let found = Deployment {
        revision: "",
        pods: 6,
        updated: 1,
        updated_available: 0,
        ..old(5)
    };
    let members = [
        member("eu", rolling(3, 1, lends(1, 0))),
        member("us", found),
    ];
    let rollout = Rollout {
        speed: Some(Speed {
            portion: 1,
            min_delay: Duration::from_secs(18),
        }),
        ..rollout(&members, 5, 5)
    };
    let decision = step(&rollout, &state(&[("eu", lends(1, 0))]), at(0));
    assert_eq!(lent(&decision), [("eu", 1, 0)]);
}

#[test]
fn l15_what_is_given_back_counts_until_the_delay_is_over() {
    let speed = Some(Speed {
        portion: 2,
        min_delay: Duration::from_secs(30),
    });
    let members = [member("eu", new(2, lends(2, 0))), member("us", old(2))];
    let rollout = Rollout {
        speed,
        ..rollout(&members, 4, 4)
    };
    let decision = step(&rollout, &state(&[("eu", lends(2, 0))]), at(0));
    assert_eq!(lent(&decision), []);
    assert_eq!(
        decision.waits[1],
        Some(WaitReason::Speed {
            until: Some(at(30))
        })
    );
    assert_eq!(decision.next, Some(at(30)));
    // The next leader knows no more than what is recorded.
    let json = serde_json::to_string(&decision.state).expect("it is JSON");
    let recorded = serde_json::from_str(&json).expect("it is a state");
    assert_eq!(lent(&step(&rollout, &recorded, at(29))), []);
    assert_eq!(lent(&step(&rollout, &recorded, at(30))), [("us", 2, 0)]);
}

#[test]
fn l15_a_portion_of_one_replaces_a_template_whose_pods_do_not_start() {
    for (started_lately, expected) in [(true, "new"), (false, "newer")] {
        let found = Deployment {
            started_lately,
            ..rolling(3, 1, lends(1, 0))
        };
        let members = [member("eu", found)];
        let newer = Rollout {
            target: "newer",
            speed: Some(Speed {
                portion: 1,
                min_delay: Duration::from_secs(30),
            }),
            ..rollout(&members, 1, 0)
        };
        let decision = step(&newer, &state(&[("eu", lends(1, 0))]), at(0));
        assert_eq!(decision.state.loans["eu"].revision, expected);
    }
}

#[test]
fn l15_pods_of_a_template_that_is_replaced_count_until_the_new_one_is_seen() {
    let mut recorded = state(&[("eu", lends(1, 0))]);
    recorded.loans.entry("eu".to_owned()).and_modify(|loan| {
        (loan.replaced, loan.generation) = (1, 2);
    });
    let older = Deployment {
        revision: "older",
        ..rolling(5, 1, lends(1, 0))
    };
    let seen = Deployment {
        generation: 3,
        ..rolling(5, 1, lends(1, 0))
    };
    for (found, replaced, returned) in [(older, 1, 0), (seen, 0, 1)] {
        let members = [member("eu", found), member("us", old(5))];
        let rollout = Rollout {
            speed: Some(Speed {
                portion: 2,
                min_delay: Duration::from_secs(30),
            }),
            ..rollout(&members, 4, 0)
        };
        let decision = step(&rollout, &recorded, at(0));
        assert_eq!(lent(&decision), [("eu", 1, 0)]);
        assert_eq!(decision.state.loans["eu"].replaced, replaced);
        assert_eq!(decision.state.returned.len(), returned);
    }
}
