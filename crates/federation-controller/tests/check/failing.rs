//! Writes that fail: retried, but not in a loop, and reported (F38).

use federation_controller::check::{Outcome, Outcomes, SetChange, with_outcomes};

use crate::world::{DESIRED, World, at, even, frs, hold};

/// Checks every second for five minutes while each write of a ends in `outcome`; when one was tried.
fn tries(outcome: &Outcome) -> (World, Vec<i64>) {
    let mut world = World::new(frs(9, even(true)), &["a", "b", "c"]);
    world.settle(1);
    world.frs = frs(12, even(true));
    let outcomes: Outcomes = [("a".to_owned(), outcome.clone())].into();
    let mut tried = Vec::new();
    for now in 0..300 {
        world.now = now;
        let decided = world.check();
        let mut actions = decided.actions.iter();
        let is_tried = actions.any(|action| action.member == "a");
        world.previous = decided.status;
        if is_tried {
            tried.push(now);
            world.previous =
                with_outcomes(world.previous, &outcomes, DESIRED, at(now), &world.settings);
        } else {
            assert!(decided.next_check.is_some_and(|time| time > at(now)));
        }
    }
    (world, tried)
}

#[test]
fn f38_a_rejected_write_is_retried_with_exponential_backoff() {
    for (outcome, is_shown) in [
        (Outcome::Failed("a webhook says no".into()), true),
        (Outcome::Unknown("no answer within 10s".into()), true),
        (Outcome::Conflict("changed meanwhile".into()), false),
    ] {
        let (world, tried) = tries(&outcome);
        assert_eq!(tried, [0, 1, 2, 12, 32, 72, 132, 192, 252], "{outcome:?}");
        let (Outcome::Failed(words) | Outcome::Unknown(words) | Outcome::Conflict(words)) =
            &outcome
        else {
            unreachable!("as listed above")
        };
        let cluster = &world.check().status.clusters[0];
        let reason = &cluster.message;
        assert_eq!(reason.contains(words), is_shown, "{reason}");
        assert_eq!(cluster.waits[0].message, "the next write");
    }
}

#[test]
fn f38_a_member_whose_writes_fail_is_not_written_more_often_because_others_use_up_the_surge() {
    let mut world = World::settled(12);
    world.frs = frs(18, even(true));
    let mut tried = 0;
    for now in 0..120 {
        world.now = now;
        // Each second one, b may yet get many replicas.
        let set = world.members[1].view.workload.as_mut().unwrap();
        set.open_scale_up = (now % 2 == 1).then_some(18);
        world.previous.clusters[1].internal.requested_replicas = Some(18);
        let decided = world.step_unless(|action| {
            (action.member == "c").then(|| Outcome::Conflict("changed meanwhile".into()))
        });
        tried += decided
            .actions
            .iter()
            .filter(|action| action.member == "c")
            .count();
    }
    assert!(tried <= 7, "{tried} times in two minutes");
}

#[test]
fn f27_failures_are_reset_by_a_write_and_when_none_is_needed() {
    let (world, _) = tries(&Outcome::Failed("no".into()));
    let mut written = world.clone();
    written.now = 400;
    let decided = written.step();
    assert!(matches!(decided.actions[0].change, SetChange::Scale { .. }));
    assert_eq!(
        written.previous.clusters[0].internal.writes.write_failures,
        0
    );
    let mut not_needed = world;
    not_needed.frs = frs(9, even(true));
    not_needed.step();
    assert_eq!(
        not_needed.previous.clusters[0]
            .internal
            .writes
            .write_failures,
        0
    );
    assert_eq!(
        not_needed.previous.clusters[0].internal.writes.write_error,
        None
    );
}

#[test]
fn f20_what_starts_stays_until_the_writes_that_replace_it_are_tried_again() {
    let mut world = World::new(frs(9, even(true)), &["a", "b", "c"]);
    world.settle(1);
    world.now = 0;
    world.frs = frs(12, even(true));
    for _ in 0..3 {
        world.step_unless(|action| {
            (action.member == "a").then(|| Outcome::Conflict("changed meanwhile".into()))
        });
    }
    // Before, b was to get one more.
    hold(&mut world.members[1], 5, 3);
    for (now, expected) in [(9, vec![]), (10, vec!["a", "b"])] {
        world.now = now;
        let actions = world.check().actions;
        let changed: Vec<_> = actions.iter().map(|action| &*action.member).collect();
        assert_eq!(changed, expected, "at {now}");
    }
}
