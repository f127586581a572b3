//! A set that could run in a thousand members: the status has an entry for those that it runs in.

use cluster_informer::Health;
use fedrs_api::FederatedReplicaSetStatus;

use crate::world::{World, at, even, frs};

fn world(replicas: i32) -> World {
    let names: Vec<_> = (0..1000).map(|i| format!("cluster-{i:04}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let mut world = World::new(frs(replicas, even(true)), &names);
    world.settle(1);
    world.step();
    world
}

fn bytes(status: &FederatedReplicaSetStatus) -> usize {
    serde_json::to_string(status).unwrap().len()
}

#[test]
fn a_status_grows_with_the_clusters_that_have_replicas_and_not_with_the_members() {
    let few = world(5).previous;
    assert_eq!(few.clusters.len(), 5);
    assert!(bytes(&few) < 4_000, "{} bytes", bytes(&few));
    // An object of etcd has at most 1.5 MiB.
    let all = world(1000).previous;
    assert_eq!(all.clusters.len(), 1000);
    assert!(bytes(&all) < 500_000, "{} bytes", bytes(&all));
}

#[test]
fn f33_members_without_replicas_rewrite_no_status() {
    let mut world = world(5);
    let before = world.previous.clone();
    let has_replicas = |name: &str| before.clusters.iter().any(|cluster| cluster.name == name);
    for (index, member) in world.members.iter_mut().enumerate() {
        member.health = Health::Failing {
            since: at(world.now),
            message: format!("timed out {index}"),
        };
    }
    let decided = world.check();
    assert_eq!((decided.status, decided.actions), (before.clone(), vec![]));
    // An outage may change the shares of the others, once.
    let mut statuses = vec![before.clone()];
    for now in [3, 4, 30, 61, 62, 63, 3600] {
        world.now = now;
        let others = world.members.iter_mut();
        for member in others.filter(|member| !has_replicas(&member.name)) {
            member.health = Health::Unreachable {
                since: at(2),
                message: format!("timed out at {now}"),
            };
        }
        let decided = world.check();
        assert_eq!(decided.actions, []);
        statuses.push(decided.status);
    }
    statuses.dedup();
    assert!(statuses.len() <= 3, "unreachable, then lost");
    assert!(statuses.iter().all(|status| status.clusters.len() == 5));
}
