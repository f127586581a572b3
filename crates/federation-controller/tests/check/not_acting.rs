//! A member whose controllers do not act on its ReplicaSet: they create no pods, and report no reason (F32, F34).

use federation_controller::check::{Action, SetChange};
use fedrs_api::ClusterReason;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::world::{World, at, even, frs, hold};

/// Since `since`, nothing but `spec.replicas` changes in c, where `pods` run.
fn stop_controllers(world: &mut World, pods: u32, since: i64) {
    let replicas = world.placed()[2];
    hold(&mut world.members[2], replicas, pods.min(replicas));
    let view = &mut world.members[2].view;
    view.pods.active = pods;
    view.pods.ready = pods;
    let set = view.workload.as_mut().unwrap();
    (set.status_replicas, set.fully_labeled_replicas) = (pods, pods);
    (set.ready_replicas, set.available_replicas) = (pods, pods);
    set.observed_generation = set.generation - 1;
    set.behind_since = Some(at(since));
}

/// A set that was scaled from 6 to 12 replicas at 0 s, since when the controllers of c don't act.
fn scaled_without_controllers() -> World {
    let mut world = World::settled(6);
    world.now = 0;
    world.frs = frs(12, even(true));
    world.step();
    stop_controllers(&mut world, 2, 0);
    world
}

/// Since when c is behind, as the last check recorded it.
fn behind_since(world: &World) -> Option<Time> {
    world.previous.clusters[2].internal.behind_since.clone()
}

/// Steps each second until `until`, while the controllers of c don't act.
fn step_until(world: &mut World, until: i64, pods: u32, since: i64) {
    while world.now < until {
        world.now += 1;
        world.step();
        stop_controllers(world, pods, since);
    }
}

#[test]
fn f32_replicas_that_no_controller_creates_go_elsewhere_after_x_and_return_when_it_works() {
    let mut world = scaled_without_controllers();
    step_until(&mut world, 59, 2, 0);
    assert_eq!(world.placed(), [4, 4, 4]);
    assert_eq!(world.check().next_check, Some(at(60)));
    assert_eq!(world.check().status.clusters[2].unscheduled_replicas, 0);
    step_until(&mut world, 70, 2, 0);
    assert_eq!(world.placed()[..2], [5, 5]);
    assert_eq!(world.ready(), 12);
    let cluster = world.check().status.clusters[2].clone();
    assert_eq!(cluster.reason, Some(ClusterReason::ControllersNotActing));
    assert!(
        cluster.message.contains("have not acted since"),
        "{}",
        cluster.message
    );
    step_until(&mut world, 3600, 2, 0);
    assert_eq!(world.placed()[..2], [5, 5], "nothing swings");
    // It works again: `step` makes the pods of c, as those of any other member.
    let replicas = world.placed()[2];
    hold(&mut world.members[2], replicas, replicas);
    for _ in 0..100 {
        world.now += 10;
        world.step();
        assert!(world.ready() >= 12);
    }
    assert_eq!(world.placed(), [4, 4, 4]);
}

#[test]
fn f32_controllers_may_act_unseen_while_the_watch_of_their_sets_is_silent() {
    let mut world = scaled_without_controllers();
    world.members[2].view.current_at = Some(at(1));
    step_until(&mut world, 90, 2, 0);
    let decided = world.check();
    assert_eq!(world.placed(), [4, 4, 4]);
    assert_eq!(decided.status.clusters[2].capacity, None);
    assert_eq!(
        decided.next_check,
        Some(at(96)),
        "what shows that the watch works causes no check"
    );
    assert_eq!(decided.unconfirmed, ["c"]);
    world.members[2].view.current_at = Some(at(59));
    step_until(&mut world, 100, 2, 0);
    assert_eq!(world.placed(), [4, 4, 4], "a moment too early");
    world.members[2].view.current_at = Some(at(60));
    step_until(&mut world, 110, 2, 0);
    assert_eq!(world.placed()[..2], [5, 5]);
}

#[test]
fn f32_leaders_of_50_s_find_out_that_no_controller_creates_replicas() {
    let mut world = scaled_without_controllers();
    step_until(&mut world, 9, 2, 0);
    assert_eq!(behind_since(&world), None, "controllers may take moments");
    assert_eq!(world.check().next_check, Some(at(10)));
    step_until(&mut world, 29, 2, 0);
    assert_eq!(
        behind_since(&world),
        None,
        "soon enough at half of the timeout"
    );
    assert_eq!(world.check().next_check, Some(at(30)));
    step_until(&mut world, 50, 2, 0);
    assert_eq!(behind_since(&world), Some(Time(at(0))));
    // The next leader sees the set for the first time.
    stop_controllers(&mut world, 2, 50);
    step_until(&mut world, 70, 2, 50);
    assert_eq!(world.placed()[..2], [5, 5]);
    assert_eq!(world.ready(), 12);
}

#[test]
fn f32_controllers_that_acted_since_an_earlier_leader_have_their_time_anew() {
    let mut world = scaled_without_controllers();
    step_until(&mut world, 50, 2, 0);
    stop_controllers(&mut world, 3, 50);
    step_until(&mut world, 100, 3, 50);
    assert_eq!(world.placed()[..2], [4, 4]);
    assert_eq!(behind_since(&world), Some(Time(at(50))));
}

#[test]
fn f32_a_set_without_missing_pods_says_that_nobody_acts_on_it() {
    let mut world = World::settled(6);
    world.now = 100;
    stop_controllers(&mut world, 2, 0);
    let decided = world.check();
    assert!(decided.actions.is_empty());
    assert_eq!(
        decided.status.clusters[2].reason,
        Some(ClusterReason::ControllersNotActing)
    );
}

#[test]
fn f20_pods_that_were_adopted_while_the_controllers_do_not_act_may_run() {
    let mut world = World::new(frs(6, even(false)), &["a", "b", "c"]);
    world.step();
    // c had a ReplicaSet of this name: its status is of before its pods were ready, and the pods lack our labels.
    for (member, replicas) in world.members.iter_mut().zip([2, 2, 6]) {
        hold(member, replicas, 0);
    }
    let view = &mut world.members[2].view;
    (view.pods.active, view.pods.ready) = (0, 0);
    let set = view.workload.as_mut().unwrap();
    set.observed_generation = set.generation - 1;
    world.now += 1;
    assert_eq!(world.check().actions, []);
}

#[test]
fn f33_adopted_pods_of_a_member_that_has_returned_replace_nothing() {
    let scales_down = |nodes_report: bool| {
        let mut world = World::new(frs(6, even(false)), &["a", "b"]);
        world.step();
        for (member, replicas) in world.members.iter_mut().zip([6, 3]) {
            hold(member, replicas, replicas);
        }
        // The set in b was adopted: its status counts pods without our labels, whose nodes are not known.
        let view = &mut world.members[1].view;
        (view.pods.active, view.pods.ready) = (0, 0);
        view.nodes_report = nodes_report;
        view.workload.as_mut().unwrap().fully_labeled_replicas = 0;
        world.now += 1;
        let actions = world.check().actions;
        let scales = |action: &Action| matches!(action.change, SetChange::Scale { .. });
        actions.iter().any(scales)
    };
    assert!(scales_down(false));
    assert!(!scales_down(true));
}

#[test]
fn f32_replicas_whose_pods_left_a_set_while_the_controllers_do_not_act_go_elsewhere() {
    let mut world = World::new(frs(6, even(false)), &["a", "b", "c"]);
    world.step();
    for (member, replicas) in world.members.iter_mut().zip([2, 2, 2]) {
        hold(member, replicas, replicas);
    }
    // The status of the set in c still counts its pods.
    let view = &mut world.members[2].view;
    (view.pods.active, view.pods.ready) = (0, 0);
    let set = view.workload.as_mut().unwrap();
    set.observed_generation = set.generation - 1;
    set.behind_since = Some(at(world.now));
    let requested = |world: &World| world.check().status.clusters[2].desired_replicas;
    let looks_for_pods = |world: &World| {
        let actions = world.check().actions;
        let labels = |action: &Action| matches!(action.change, SetChange::LabelPods { .. });
        actions.iter().any(labels)
    };
    world.now += 9;
    assert!(!looks_for_pods(&world));
    world.now += 1;
    assert!(looks_for_pods(&world), "they may lack our labels");
    world.now += 49;
    assert_eq!(requested(&world), 2);
    world.now += 1;
    assert_eq!(requested(&world), 0);
    assert!(!looks_for_pods(&world));
}
