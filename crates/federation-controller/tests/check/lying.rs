//! Members that report more replicas than were requested of them (F20, F29).

use cluster_informer::Health;
use federation_controller::check::Outcome;
use fedrs_api::ClusterReason;

use crate::world::{World, desired, even, frs, hold, running};

const CLAIM: u32 = 4_000_000_000;

fn settled(rebalance: bool) -> World {
    let mut world = World::new(frs(12, even(rebalance)), &["a", "b", "c"]);
    world.settle(1);
    assert_eq!(world.placed(), [4, 4, 4]);
    world
}

/// `c` rejects every write and reports `replicas`, of which `ready` are ready.
fn step(world: &mut World, replicas: u32, ready: u32) {
    hold(&mut world.members[2], replicas, ready);
    world.step_unless(|action| {
        (action.member == "c").then(|| Outcome::Conflict("changed meanwhile".into()))
    });
    hold(&mut world.members[2], replicas, ready);
    world.now += 1;
}

#[test]
fn f20_more_replicas_than_were_requested_take_nothing_from_others() {
    for rebalance in [true, false] {
        for ready in [0, 4, CLAIM] {
            let mut world = settled(rebalance);
            for _ in 0..20 {
                step(&mut world, CLAIM, ready);
                assert_eq!(world.placed()[..2], [4, 4], "{rebalance} {ready}");
            }
            let status = &world.previous;
            assert_eq!(status.replicas, 12);
            assert!(status.available_replicas <= 12);
            assert_eq!(status.clusters[2].desired_replicas, 4);
            assert_eq!(
                status.clusters[2].reason,
                Some(ClusterReason::ExcessReplicas)
            );
        }
    }
}

#[test]
fn f20_what_a_dead_leader_requested_unrecorded_is_no_excess_if_it_is_desired() {
    let mut world = settled(true);
    let recorded = &mut world.previous.clusters[2];
    recorded.desired_replicas = 3;
    recorded.internal.requested_replicas = Some(3);
    let cluster = &world.check().status.clusters[2];
    assert_eq!((cluster.replicas, cluster.available_replicas), (4, 4));
    assert_eq!(cluster.reason, Some(ClusterReason::ByWeight));
    let decided = world.step();
    assert!(decided.actions.is_empty());
}

#[test]
fn f20_more_replicas_than_were_requested_keep_no_cluster_from_growing() {
    for rebalance in [true, false] {
        let mut world = settled(rebalance);
        world.frs = frs(18, even(rebalance));
        for _ in 0..20 {
            step(&mut world, CLAIM, CLAIM);
        }
        assert_eq!(world.placed()[..2], [6, 6]);
        assert_eq!(desired(&world.check()), [6, 6, 6]);
    }
}

#[test]
fn f39_more_replicas_than_were_requested_do_not_count_in_a_member_that_rejects_us() {
    let mut world = settled(true);
    step(&mut world, CLAIM, CLAIM);
    world.members[2].health = Health::Unauthorized {
        message: "401".into(),
    };
    world.frs = frs(18, even(true));
    for _ in 0..20 {
        world.step();
        world.now += 1;
    }
    assert_eq!(
        world.placed()[..2],
        [7, 7],
        "c keeps what was requested of it"
    );
}

#[test]
fn f29_all_replicas_of_a_set_that_is_adopted_stay_until_they_are_replaced() {
    let mut world = World::new(frs(12, even(true)), &["a", "b", "c"]);
    hold(&mut world.members[0], 30, 30);
    for _ in 0..40 {
        world.step();
        world.now += 1;
        assert!(world.ready() >= 12, "{:?}", world.placed());
    }
    assert_eq!(world.placed(), [4, 4, 4]);
}

#[test]
fn f13_replicas_of_sets_that_a_new_set_adopts_stay_where_they_are() {
    let mut world = World::new(frs(12, even(false)), &["a", "b", "c"]);
    hold(&mut world.members[0], 9, 9);
    hold(&mut world.members[2], 3, 3);
    world.settle(1);
    assert_eq!(world.placed(), [9, 0, 3]);
}

#[test]
fn s3_a_member_that_nothing_was_requested_of_attracts_no_replicas() {
    for rebalance in [true, false] {
        let mut world = World::new(frs(12, even(rebalance)), &["a", "b"]);
        world.settle(1);
        // It joins, and claims to run all of them.
        world.members.push(running("c", 12));
        for _ in 0..20 {
            step(&mut world, 12, 12);
            let kept = if rebalance { 4 } else { 6 };
            assert!(world.placed()[..2].iter().all(|placed| *placed >= kept));
        }
        // An honest one ends with its share.
        for _ in 0..40 {
            world.now += 10;
            world.step();
        }
        let expected = if rebalance { [4, 4, 4] } else { [6, 6, 0] };
        assert_eq!(world.placed(), expected);
    }
}

#[test]
fn f20_replicas_that_an_unrecorded_write_requested_stay_until_they_are_replaced() {
    let mut world = settled(true);
    // The previous leader scaled a up before it died, and b has lost its replicas since.
    hold(&mut world.members[0], 8, 8);
    hold(&mut world.members[1], 0, 0);
    let decided = world
        .step_unless(|action| (action.member == "b").then(|| Outcome::Unknown("deadline".into())));
    assert!(world.ready() >= 12, "{:?}", decided.actions);
}

/// Found by the simulation: the backup of the host was of before a drain, and of after an external change of the other member.
#[test]
fn f20_after_an_outage_of_the_host_all_that_is_requested_counts_whoever_changed_the_set_before() {
    for (is_after_outage, requested) in [(false, 4), (true, 0)] {
        let mut world = settled(true);
        let writes = &mut world.previous.clusters[2].internal.writes;
        (writes.drift_count, writes.written_generation) = (1, Some(2));
        hold(&mut world.members[0], 0, 0);
        hold(&mut world.members[2], 12, 8);
        world.keeps_running_until = is_after_outage.then_some(world.now + 120);
        world.step_unless(|action| {
            (action.member == "c").then(|| Outcome::Conflict("changed meanwhile".into()))
        });
        assert_eq!(world.placed()[0], requested, "{is_after_outage}");
    }
}
