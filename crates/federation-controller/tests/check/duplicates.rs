//! One cluster under two names: its replicas count once (F20).

use cluster_informer::{Health, SyncState};
use serde_json::json;

use crate::world::{World, at, condition, even, frs, running};

/// 12 replicas over a, b and c, and another kubeconfig for b.
fn world_with_duplicate(name: &str) -> World {
    let mut world = World::new(frs(12, even(true)), &["a", "b", "c"]);
    world.settle(1);
    let mut duplicate = running(name, 0);
    duplicate.view = world.members[1].view.clone();
    world.members.push(duplicate);
    world.members.sort_by(|a, b| a.name.cmp(&b.name));
    world
}

#[test]
fn f20_a_duplicate_member_has_no_effect() {
    // It may come before or after the name that counts.
    for (name, place) in [("another", 1), ("z", 3)] {
        let mut world = world_with_duplicate(name);
        let decided = world.check();
        assert_eq!(decided.actions, []);
        let duplicate = &decided.status.clusters[place];
        assert_eq!(duplicate.name, name);
        assert_eq!(
            (
                duplicate.desired_replicas,
                duplicate.replicas,
                duplicate.available_replicas,
                duplicate.internal.template.as_ref()
            ),
            (0, 0, 0, None)
        );
        assert_eq!(
            duplicate.message,
            "same cluster as b, which counts its replicas"
        );
        assert_eq!(decided.status.available_replicas, 12);
        assert_eq!(condition(&decided, "Reconciling"), "");
        assert_eq!(decided.next_check, None);
        let reasons: Vec<_> = decided.events.iter().map(|event| event.reason).collect();
        assert_eq!(reasons, ["DuplicateMember"]);
        world.previous = decided.status;
        assert_eq!(world.check().events, [], "recorded once");
    }
}

#[test]
fn f20_the_duplicate_takes_over_when_the_first_member_is_removed() {
    let mut world = world_with_duplicate("z");
    world.step();
    world.members[1].removed = Some(at(0));
    world.now = 1;
    let decided = world.step();
    let (b, z) = (&decided.status.clusters[1], &decided.status.clusters[3]);
    assert_eq!(
        (b.desired_replicas, z.desired_replicas),
        (0, 4),
        "{} {}",
        b.message,
        z.message
    );
    assert_eq!(b.message, "same cluster as z, which counts its replicas");
    let touched: Vec<_> = decided
        .actions
        .iter()
        .map(|action| &action.member)
        .collect();
    assert_eq!(
        touched,
        ["z"],
        "it is marked with its name, and nothing moves"
    );
    // Marked anew it stays z, also when the first name is back.
    world.members[1].removed = None;
    world.members[1].view = world.members[3].view.clone();
    world.now = 2;
    let decided = world.check();
    assert_eq!(decided.actions, []);
    assert_eq!(decided.status.clusters[3].desired_replicas, 4);
}

#[test]
fn f20_an_unreachable_duplicate_gives_way_to_a_reachable_one() {
    let mut world = world_with_duplicate("z");
    world.members[1].health = Health::Failing {
        since: at(0),
        message: "timeout".into(),
    };
    let decided = world.check();
    assert_eq!(decided.status.clusters[3].desired_replicas, 4);
    assert_eq!(decided.status.available_replicas, 12);
}

#[test]
fn f20_after_a_restart_the_member_that_the_label_names_is_awaited() {
    let mut world = world_with_duplicate("another");
    world.step();
    world.members[2].joined = at(0);
    world.members[2].sync = SyncState::NotSynced;
    let decided = world.check();
    assert_eq!((decided.actions, decided.events), (vec![], vec![]));
    assert_eq!(decided.status, world.previous, "nothing is news");
    assert_eq!(decided.next_check, Some(at(10)));
}

#[test]
fn f20_a_duplicate_raises_no_bound() {
    // With b's maximum counted twice, 8 would have to run before any of a's can go.
    let of = |max| json!({ "weight": 1, "maxReplicas": max });
    let mut world = world_with_duplicate("z");
    let clusters = json!({ "a": of(2), "b": of(4), "c": of(0), "z": of(4) });
    world.frs = frs(12, json!({ "rebalance": true, "clusters": clusters }));
    world.settle(1);
    assert_eq!(world.placed()[..3], [2, 4, 0]);
}
