//! Preferences that leave replicas no cluster: they don't stop a service (F3, F20).

use federation_controller::check::Check;
use fedrs_api::FederatedReplicaSetStatus;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{World, condition, condition_message, condition_reason, desired, even, frs};

/// 12 replicas that run evenly in a, b and c.
fn running() -> World {
    let mut world = World::new(frs(12, even(false)), &["a", "b", "c"]);
    world.settle(1);
    world.step();
    assert_eq!(world.placed(), [4, 4, 4]);
    world
}

/// Changes the set, and steps until nothing is left to do; never runs fewer than `floor`.
fn edit(world: &mut World, replicas: i32, placement: &Value, floor: u32) -> Check {
    world.frs = frs(replicas, placement.clone());
    for _ in 0..100 {
        let decided = world.step();
        assert!(world.ready() >= floor, "{placement}: {:?}", world.placed());
        if decided.actions.is_empty() {
            return decided;
        }
        world.now += 1;
    }
    panic!("no end: {:#?}", world.previous.clusters);
}

#[test]
fn f3_a_misspelt_name_stops_nothing() {
    for rebalance in [true, false] {
        let mut world = running();
        let misspelt = json!({ "rebalance": rebalance, "clusters": { "aa": { "weight": 1 } } });
        let decided = edit(&mut world, 12, &misspelt, 12);
        assert_eq!(world.placed(), [4, 4, 4]);
        assert_eq!(decided.status.unplaced_replicas, 12);
        for type_ in ["Placed", "Ready"] {
            assert_eq!(condition(&decided, type_), "False");
            assert_eq!(condition_reason(&decided, type_), "NoMatchingCluster");
            assert_eq!(
                condition_message(&decided, type_),
                "12 of 12 replicas have no cluster: the placement selects no member cluster; \
                 no member cluster is named \"aa\"; did you mean \"a\"?"
            );
        }
        assert_eq!(condition(&decided, "Reconciling"), "True");
        let cluster = &decided.status.clusters[0];
        assert_eq!(cluster.reason, Some(fedrs_api::ClusterReason::KeptInPlace));
        assert_eq!(
            cluster.message,
            "not selected: no entry for this cluster or `*`; 4 replicas kept: no other cluster can take them"
        );

        let decided = edit(
            &mut world,
            12,
            &json!({ "clusters": { "a": { "weight": 1 } } }),
            12,
        );
        assert_eq!(world.placed(), [12, 0, 0], "moves once a is named");
        assert_eq!(condition(&decided, "Ready"), "True");
    }
}

#[test]
fn f3_a_new_set_with_unknown_names_is_placed_nowhere() {
    let placement = json!({ "clusters": { "eu-wst": { "weight": 1 } } });
    let decided = World::new(frs(6, placement), &["eu-west", "us"]).check();
    assert_eq!(decided.actions, []);
    assert_eq!(condition_reason(&decided, "Placed"), "NoMatchingCluster");
    assert_eq!(
        condition_message(&decided, "Placed"),
        "6 of 6 replicas have no cluster: the placement selects no member cluster; \
         no member cluster is named \"eu-wst\"; did you mean \"eu-west\"?"
    );
    let reasons: Vec<_> = decided.events.iter().map(|event| event.reason).collect();
    assert_eq!(reasons, ["NoMatchingCluster"]);
}

#[test]
fn f20_preferences_without_a_cluster_keep_replicas_and_maximums_remove_them() {
    let cases = [
        (
            json!({ "rebalance": true, "clusters": { "a": { "weight": 0 } } }),
            [4, 4, 4],
            12,
        ),
        (
            json!({ "rebalance": true, "clusters": { "*": { "weight": 0 } } }),
            [4, 4, 4],
            12,
        ),
        (
            json!({ "clusters": { "a": { "weight": 1, "maxReplicas": 6 }, "other": { "weight": 9 } } }),
            [6, 4, 2],
            6,
        ),
        (
            json!({ "clusters": { "b": { "maxReplicas": 1 } } }),
            [4, 1, 4],
            11,
        ),
        (
            json!({ "clusters": { "*": { "maxReplicas": 2 } } }),
            [2, 2, 2],
            12,
        ),
    ];
    for (placement, expected, unplaced) in cases {
        let mut world = running();
        let floor = expected.iter().sum();
        let decided = edit(&mut world, 12, &placement, floor);
        assert_eq!(world.placed(), expected, "{placement}");
        assert_eq!(
            desired(&decided).iter().sum::<i32>(),
            i32::try_from(floor).unwrap()
        );
        assert!(
            decided.status.unplaced_replicas > 0,
            "{placement} {unplaced}"
        );
    }
}

#[test]
fn f20_fewer_replicas_leave_clusters_that_are_not_named_first() {
    let mut world = running();
    let placement = json!({ "clusters": { "b": { "weight": 1, "maxReplicas": 4 } } });
    edit(&mut world, 12, &placement, 12);
    assert_eq!(world.placed(), [4, 4, 4]);
    edit(&mut world, 9, &placement, 9);
    assert_eq!(world.placed(), [4, 4, 1]);
    edit(&mut world, 4, &placement, 4);
    assert_eq!(world.placed(), [0, 4, 0]);
    let decided = edit(&mut world, 0, &placement, 0);
    assert_eq!(world.placed(), [0, 0, 0]);
    assert_eq!(condition(&decided, "Placed"), "True");
}

#[test]
fn f20_replicas_leave_drained_clusters_before_those_that_are_not_named() {
    let mut world = running();
    world.members[0].draining = true;
    let placement = json!({ "clusters": { "b": { "weight": 1, "maxReplicas": 4 } } });
    edit(&mut world, 8, &placement, 8);
    assert_eq!(world.placed(), [0, 4, 4]);
}

#[test]
fn f34_a_selected_cluster_that_is_full_gets_what_it_can_run() {
    let mut world = running();
    world.set_capacity("b", 5);
    let placement = json!({ "clusters": { "b": { "weight": 1 } } });
    world.frs = frs(12, placement);
    for _ in 0..60 {
        world.step();
        world.set_capacity("b", 5);
        assert!(world.ready() >= 12, "{:?}", world.placed());
        world.now += 61;
    }
    let ready = world.ready();
    assert_eq!(ready, 12, "{:?}", world.placed());
    let decided = world.check();
    assert_eq!(condition_reason(&decided, "Placed"), "InsufficientCapacity");
}

#[derive(Clone, Debug)]
struct Entry {
    named: bool,
    weight: u32,
    capacity: u32,
}

fn entry() -> impl Strategy<Value = Entry> {
    (any::<bool>(), 0..3u32, 0..40u32).prop_map(|(named, weight, capacity)| Entry {
        named,
        weight,
        capacity,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// F20: whichever clusters an edit names, and whatever capacity there is, never fewer run than N or than before, unless
    /// a maximum says so; and all replicas are in named clusters in the end, if these can run them.
    #[test]
    fn f20_no_selection_of_clusters_dips(
        entries in prop::collection::vec(entry(), 2..5),
        replicas in 1..60u32,
        rebalance: bool,
        others: bool,
    ) {
        let names = &["a", "b", "c", "d"][..entries.len()];
        let mut world = World::new(frs(replicas.try_into().unwrap(), even(true)), names);
        for (name, entry) in names.iter().zip(&entries) {
            world.set_capacity(name, entry.capacity);
        }
        let settle = |world: &mut World, floor: u32| {
            for _ in 0..60 {
                let capacities = world.capacity.clone();
                world.step();
                for (name, capacity) in capacities {
                    world.set_capacity(&name, capacity);
                }
                assert!(world.ready() >= floor, "{:?} at {}", world.placed(), world.now);
                world.now += 61;
            }
        };
        settle(&mut world, 0);
        let floor = replicas.min(world.ready());
        let mut clusters: serde_json::Map<_, _> = names.iter().zip(&entries)
            .filter(|(_, entry)| entry.named)
            .map(|(name, entry)| ((*name).to_owned(), json!({ "weight": entry.weight })))
            .collect();
        clusters.insert("no-member".to_owned(), json!({ "weight": 1 }));
        if others {
            clusters.insert("*".to_owned(), json!({ "weight": 0 }));
        }
        let placement = json!({ "rebalance": rebalance, "clusters": clusters });
        world.frs = frs(replicas.try_into().unwrap(), placement);
        settle(&mut world, floor);
        let selected = |entry: &&Entry| entry.named && entry.weight > 0;
        let capacity: u32 = entries.iter().filter(selected).map(|entry| entry.capacity).sum();
        if capacity >= replicas && rebalance {
            for (member, entry) in world.members.iter().zip(&entries) {
                let left = member.view.workload.as_ref().map_or(0, |set| set.ready_replicas);
                prop_assert!(selected(&entry) || left == 0, "{:?} of {:?}", world.placed(), entries);
            }
        }
    }
}

#[test]
fn f3_a_set_without_a_status_decides_the_same() {
    let mut world = running();
    world.previous = FederatedReplicaSetStatus::default();
    world.frs = frs(12, json!({ "clusters": { "aa": { "weight": 1 } } }));
    let changes = world.check().actions;
    let keeps = changes.iter().all(|action| {
        matches!(
            action.change,
            federation_controller::check::SetChange::Overwrite { replicas: 4, .. }
        )
    });
    assert!(keeps, "{changes:?}");
}
