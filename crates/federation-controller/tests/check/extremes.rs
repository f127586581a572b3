//! Numbers that a member or a status may claim: none makes a check fail, and what the status sums up stays in its range.

use federation_controller::check::Outcomes;
use fedrs_api::ClusterStatus;
use proptest::prelude::*;

use crate::world::{World, at, even, frs, hold};

/// Members of which each claims other numbers.
const NAMES: [&str; 3] = ["a", "b", "c"];

/// What the API server of a member may send.
fn claimed() -> impl Strategy<Value = u32> {
    prop_oneof![
        0..5u32,
        Just(i32::MAX.unsigned_abs()),
        Just(u32::MAX),
        any::<u32>()
    ]
}

/// What any writer may have put into a status.
fn stored() -> impl Strategy<Value = i32> {
    prop_oneof![0..5i32, Just(i32::MAX), Just(i32::MIN), any::<i32>()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn s10_sums_of_claimed_numbers_saturate(
        claims in prop::collection::vec(prop::collection::vec(claimed(), 7), 3),
        pods in prop::collection::vec(prop::collection::vec(0..200_000u32, 4), 3),
        previous in prop::collection::vec(prop::collection::vec(stored(), 8), 3),
        replicas in prop_oneof![0..100i32, Just(i32::MAX)],
        rebalance: bool,
    ) {
        let mut world = World::new(frs(replicas, even(rebalance)), &NAMES);
        for ((member, claims), pods) in world.members.iter_mut().zip(&claims).zip(&pods) {
            hold(member, claims[0], claims[1]);
            let set = member.view.workload.as_mut().unwrap();
            set.status_replicas = claims[2];
            set.available_replicas = claims[3];
            set.fully_labeled_replicas = claims[4];
            set.lowest_replicas = claims[5];
            let counts = &mut member.view.pods;
            counts.by_template[0].1 = claims[6];
            (counts.active, counts.ready, counts.doubtful) = (pods[0], pods[1], pods[2]);
            counts.unscheduled = pods[3];
            counts.unscheduled_since = vec![(at(-100), pods[3])];
        }
        world.previous.clusters = NAMES.iter().zip(&previous).map(|(name, numbers)| {
            let mut cluster = ClusterStatus {
                name: (*name).to_owned(),
                desired_replicas: numbers[0],
                replicas: numbers[1],
                available_replicas: numbers[2],
                capacity: Some(numbers[3]),
                ..ClusterStatus::default()
            };
            cluster.internal.capacity_probes = numbers[4];
            cluster.internal.growth_step = numbers[5];
            cluster.internal.failures = numbers[6];
            cluster.internal.writes.drift_count = numbers[7];
            cluster.internal.writes.write_failures = numbers[7];
            cluster
        }).collect();
        for _ in 0..3 {
            let decided = world.check();
            world.remember(&decided, &Outcomes::new());
            let status = &decided.status;
            let sums = [status.replicas, status.ready_replicas, status.available_replicas, status.updated_replicas];
            let of_clusters = |count: fn(&ClusterStatus) -> i32| {
                status.clusters.iter().fold(0, |sum: i32, cluster| sum.saturating_add(count(cluster)))
            };
            prop_assert_eq!(sums[0], of_clusters(|cluster| cluster.replicas));
            prop_assert_eq!(sums[2], of_clusters(|cluster| cluster.available_replicas));
            prop_assert!(sums.iter().all(|sum| *sum >= 0), "{:?}", sums);
        }
    }
}
