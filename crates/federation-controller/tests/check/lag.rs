//! ReplicaSets and pods come by two watches, of which either may be behind: no replica is removed, and no capacity tried,
//! because of that.

use federation_controller::check::SetChange;

use crate::world::{World, even, frs, hold};

/// The scale actions of a check: `(member, from, to, whether the status decided it)`.
fn scales(world: &World) -> Vec<(String, u32, u32, bool)> {
    let actions = world.check().actions.into_iter();
    actions
        .filter_map(|action| match action.change {
            SetChange::Scale { seen, from, to } => {
                Some((action.member, from, to, seen.resource_version.is_some()))
            }
            _ => None,
        })
        .collect()
}

#[test]
fn f20_a_replica_that_one_watch_shows_as_ready_is_not_removed_as_idle() {
    for (status_ready, pods_ready, expected) in [
        (8, 5, vec![]),
        (5, 8, vec![]),
        // Not ready by both: given up at once, on condition that the set is still at the version that shows it.
        (5, 5, vec![("a".to_owned(), 8, 5, true)]),
    ] {
        let mut world = World::new(frs(8, even(true)), &["a", "b"]);
        world.settle(1);
        hold(&mut world.members[0], 8, status_ready);
        world.members[0].view.pods.ready = pods_ready;
        hold(&mut world.members[1], 4, 0);
        assert_eq!(scales(&world), expected, "{status_ready} {pods_ready}");
    }
}

#[test]
fn f20_running_replicas_are_removed_without_a_condition_on_the_status() {
    let mut world = World::new(frs(8, even(true)), &["a", "b"]);
    world.settle(1);
    hold(&mut world.members[0], 8, 8);
    assert_eq!(scales(&world), [("a".to_owned(), 8, 4, false)]);
}

#[test]
fn f34_a_status_that_lags_behind_a_scale_down_shows_no_capacity() {
    let mut world = World::new(frs(30, even(true)), &["a", "b", "c"]);
    world.capacity.insert("c".to_owned(), 6);
    world.step();
    world.now = 60;
    world.step();
    let full = world.previous.clusters[2].capacity;
    assert_eq!(full, Some(6));
    // Scaled down to 8, two of which wait; the status still counts the 10 that there were, and maybe the pods do as well.
    for (active, unscheduled) in [(8, 2), (10, 4)] {
        let view = &mut world.members[2].view;
        let set = view.workload.as_mut().unwrap();
        (set.status_replicas, set.fully_labeled_replicas) = (10, 10);
        (view.pods.active, view.pods.unscheduled) = (active, unscheduled);
        view.pods.unscheduled_since[0].1 = unscheduled;
        let check = world.check();
        assert_eq!(check.status.clusters[2].capacity, full, "{active} pods");
    }
}

#[test]
fn f34_pods_that_a_scale_down_removes_show_no_limit() {
    let mut world = World::new(frs(30, even(true)), &["a", "b", "c"]);
    world.capacity.insert("c".to_owned(), 5);
    world.step();
    world.now = 60;
    world.settle(1);
    let full = world.previous.clusters[2].capacity;
    assert_eq!((full, world.placed()[2]), (Some(5), 7));
    // Scaled down to 5 by the set, while the pods still show the two that waited.
    let pods = world.members[2].view.pods.clone();
    for status_replicas in [7, 5] {
        hold(&mut world.members[2], 5, 5);
        let set = world.members[2].view.workload.as_mut().unwrap();
        set.status_replicas = status_replicas;
        world.members[2].view.pods = pods.clone();
        assert_eq!(world.check().status.clusters[2].capacity, full);
    }
}
