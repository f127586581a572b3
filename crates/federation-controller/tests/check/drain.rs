//! Draining a member: all replicas leave it, never fewer run, and those that no other cluster can take stay (F20).

use cluster_informer::{SyncState, WorkloadView};
use proptest::prelude::*;
use serde_json::json;

use crate::world::{World, condition, desired, even, frs};

fn drained(mut world: World, name: &str) -> World {
    let member = world
        .members
        .iter_mut()
        .find(|member| member.name == name)
        .unwrap();
    member.draining = true;
    world
}

/// Steps often enough to settle, each a bit longer than `unscheduledTimeout` after the last, so that learned capacities take
/// effect. Never fewer than `floor` replicas run.
fn settle_above(world: &mut World, floor: u32) {
    for _ in 0..60 {
        let capacities = world.capacity.clone();
        world.step();
        for (name, capacity) in capacities {
            world.set_capacity(&name, capacity);
        }
        assert!(
            world.ready() >= floor,
            "{:?} at {}",
            world.placed(),
            world.now
        );
        world.now += 61;
    }
}

#[test]
fn everything_leaves_a_drained_member_whatever_preferences_say() {
    let minimum = json!({ "*": { "weight": 1 }, "c": { "minReplicas": 10, "weight": 5 } });
    let cases = [
        even(true),
        even(false),
        json!({ "rebalance": true, "clusters": minimum.clone() }),
        json!({ "rebalance": false, "clusters": minimum }),
        json!({ "rebalance": false, "clusters": { "a": { "weight": 1 }, "b": { "weight": 1 }, "c": { "weight": 0, "minReplicas": 30 } } }),
    ];
    for placement in cases {
        let mut world = World::new(frs(30, placement.clone()), &["a", "b", "c"]);
        world.settle(1);
        assert!(world.placed()[2] >= 10, "{placement}");
        let mut world = drained(world, "c");
        let mut most = 0;
        while !world.step().actions.is_empty() {
            most = most.max(world.placed().iter().sum());
            assert!(world.ready() >= 30, "{:?}", world.placed());
        }
        assert_eq!(world.placed(), [15, 15, 0], "{placement}");
        assert!(most <= 37, "a surge of a quarter: {most}");
        let decided = world.check();
        assert_eq!((decided.actions, decided.next_check), (vec![], None));
        assert_eq!(decided.status.clusters[2].message, "draining: no replicas");
    }
}

#[test]
fn a_drained_member_says_why_its_replicas_leave() {
    let mut world = World::new(frs(30, even(false)), &["a", "b", "c"]);
    world.settle(1);
    let mut world = drained(world, "c");
    let first = world.step();
    let reason = &first.status.clusters[2].message;
    assert!(
        reason.starts_with(
            "draining: replicas are rescheduled to other clusters; keeps 10 extra replicas until"
        ),
        "{reason}"
    );
    let second = world.step();
    let down = second
        .actions
        .iter()
        .find(|action| action.member == "c")
        .unwrap();
    assert!(
        down.event.message.contains(": draining"),
        "{:?}",
        down.event
    );
}

#[test]
fn a_drained_member_gets_no_replicas_and_its_share_again_after_the_drain() {
    let mut world = drained(World::new(frs(30, even(true)), &["a", "b", "c"]), "c");
    world.settle(1);
    assert_eq!(world.placed(), [15, 15, 0]);
    world.frs = frs(40, even(true));
    world.settle(1);
    assert_eq!(world.placed(), [20, 20, 0]);
    world.members[2].draining = false;
    world.settle(1);
    let mut layout = world.placed();
    layout.sort_unstable();
    assert_eq!(layout, [13, 13, 14]);
}

#[test]
fn f20_replicas_that_no_cluster_can_take_stay_in_a_drained_member() {
    let bounded = |max: u32| {
        let bound = json!({ "weight": 1, "maxReplicas": max });
        json!({ "rebalance": true, "clusters": { "a": bound, "b": bound, "c": { "weight": 1 } } })
    };
    let mut world = World::new(frs(30, bounded(10)), &["a", "b", "c"]);
    world.settle(1);
    let mut world = drained(world, "c");
    world.settle(1);
    assert_eq!(world.placed(), [10, 10, 10]);
    let decided = world.check();
    assert_eq!(
        (desired(&decided), decided.status.unplaced_replicas),
        (vec![10, 10, 10], 10)
    );
    let reason = &decided.status.clusters[2].message;
    assert!(
        reason.contains("10 replicas kept: no other cluster can take them"),
        "{reason}"
    );
    assert_eq!(condition(&decided, "Placed"), "False");
    assert!(decided.next_check.is_some(), "looked at again");

    world.frs = frs(25, bounded(10));
    world.settle(1);
    assert_eq!(
        world.placed(),
        [10, 10, 5],
        "fewer wanted: fewer have to stay"
    );
    world.frs = frs(25, bounded(20));
    world.settle(1);
    assert_eq!((world.placed()[2], world.ready()), (0, 25));
}

#[test]
fn f34_a_drained_member_keeps_running_replicas_until_full_clusters_have_capacity() {
    for rebalance in [true, false] {
        let mut world = World::new(frs(30, even(rebalance)), &["a", "b", "c"]);
        world.settle(1);
        for name in ["a", "b"] {
            world.set_capacity(name, 12);
        }
        let mut world = drained(world, "c");
        settle_above(&mut world, 30);
        assert_eq!(world.placed()[2], 6, "{:?}", world.placed());
        let decided = world.check();
        assert_eq!(condition(&decided, "MoveBlocked"), "True");
        let reason = &decided.status.clusters[2].message;
        assert!(reason.contains("draining"), "{reason}");
        for name in ["a", "b"] {
            world.set_capacity(name, 40);
        }
        settle_above(&mut world, 30);
        let placed = world.placed();
        assert_eq!((placed[0] + placed[1], placed[2]), (30, 0), "{placed:?}");
    }
}

#[test]
fn with_all_members_drained_nothing_moves_and_nothing_is_placed() {
    let mut world = World::new(frs(30, even(true)), &["a", "b", "c"]);
    world.settle(1);
    for name in ["a", "b", "c"] {
        world = drained(world, name);
    }
    world.settle(1);
    assert_eq!(world.placed(), [10, 10, 10]);
    let new = World {
        members: World::new(world.frs.clone(), &["a", "b", "c"]).members,
        previous: fedrs_api::FederatedReplicaSetStatus::default(),
        ..world
    };
    let decided = drained(drained(drained(new, "a"), "b"), "c").check();
    assert_eq!(
        (decided.actions, decided.status.unplaced_replicas),
        (vec![], 30)
    );
}

#[derive(Clone, Debug)]
struct Cluster {
    weight: u32,
    max: Option<u32>,
    capacity: u32,
}

fn cluster() -> impl Strategy<Value = Cluster> {
    let max = prop::option::of(0..40u32);
    (0..4u32, max, 0..40u32).prop_map(|(weight, max, capacity)| Cluster {
        weight,
        max,
        capacity,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// F20: whatever is drained, and whatever capacity there is, never fewer run than N or than before; and all that others
    /// can take has left in the end.
    #[test]
    fn f20_draining_never_dips_and_arrives(
        clusters in prop::collection::vec(cluster(), 2..5),
        replicas in 1..60u32,
        which in 0..8usize,
        rebalance: bool,
    ) {
        let names = ["a", "b", "c", "d"];
        let preference = |cluster: &Cluster| {
            let mut preference = json!({ "weight": cluster.weight });
            if let Some(max) = cluster.max {
                preference["maxReplicas"] = json!(max);
            }
            preference
        };
        let preferences: serde_json::Map<_, _> = names.iter().zip(&clusters)
            .map(|(name, cluster)| ((*name).to_owned(), preference(cluster)))
            .collect();
        let placement = json!({ "rebalance": rebalance, "clusters": preferences });
        let mut world = World::new(frs(replicas.try_into().unwrap(), placement), &names[..clusters.len()]);
        for (name, cluster) in names.iter().zip(&clusters) {
            world.set_capacity(name, cluster.capacity);
        }
        settle_above(&mut world, 0);
        let which = which % clusters.len();
        let floor = replicas.min(world.ready());
        let mut world = drained(world, names[which]);
        settle_above(&mut world, floor);
        let others: u32 = clusters.iter().enumerate()
            .filter(|(i, cluster)| *i != which && cluster.weight > 0)
            .map(|(_, cluster)| cluster.capacity.min(cluster.max.unwrap_or(u32::MAX)))
            .sum();
        let left = world.members[which].view.workload.as_ref().map_or(0, |set| set.ready_replicas);
        if others >= replicas {
            prop_assert_eq!(left, 0, "{:?} of {:?}", world.placed(), clusters);
        } else {
            prop_assert!(left <= replicas - others, "{:?} of {:?}", world.placed(), clusters);
        }
    }
}

#[test]
fn f18_unplaced_replicas_name_the_cordoned_and_drained_members() {
    let mut world = World::new(frs(30, even(true)), &["a", "b", "c"]);
    world.settle(1);
    for cordoned in [0, 1] {
        world.members[cordoned].schedulable = false;
    }
    let mut world = drained(world, "c");
    world.step();
    let decided = world.check();
    let conditions = &decided.status.conditions;
    let placed = conditions
        .iter()
        .find(|condition| condition.type_ == "Placed")
        .unwrap();
    assert_eq!(placed.reason, "InsufficientCapacity");
    assert!(
        placed
            .message
            .ends_with("; excluded (draining): c; excluded (cordoned): a, b"),
        "{}",
        placed.message
    );
    assert_eq!(world.ready(), 30, "what nobody takes stays");
}

/// Its watches begin anew while it is drained, as after a change of its namespaces.
#[test]
fn f39_a_drained_member_that_shows_nothing_may_have_what_was_last_requested_of_it() {
    let mut world = World::new(frs(24, even(true)), &["a", "b"]);
    world.settle(1);
    world.members[0].draining = true;
    world.step();
    assert_eq!(world.placed(), [12, 18], "N and the surge");
    let a = &mut world.members[0];
    (a.view, a.sync) = (WorkloadView::default(), SyncState::NotSynced);
    for draining in [true, false] {
        world.members[0].draining = draining;
        let actions = world.check().actions;
        assert!(actions.is_empty(), "{draining}: {actions:?}");
    }
}

#[test]
fn f34_capacity_probes_do_not_come_and_go_while_a_drained_member_waits_for_capacity() {
    let preference = json!({ "weight": 1, "minReplicas": 2, "maxReplicas": 4 });
    let placement =
        json!({ "clusters": { "*": { "weight": 1 }, "a": preference }, "rebalance": true });
    for capacities in [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0)] {
        let mut world = World::new(frs(3, placement.clone()), &["a", "b", "c"]);
        world.capacity.insert("b".to_owned(), capacities.0);
        world.capacity.insert("c".to_owned(), capacities.1);
        world.settle(1);
        let mut world = drained(world, "a");
        for _ in 0..60 {
            // Ends at each moment.
            world.settle(0);
            world.now += 10;
        }
    }
}
