//! Members that reject a change of their local ReplicaSet: its replicas change independently of the template (F28, F34).

use federation_controller::check::{Action, Check, Outcome, SetChange};
use fedrs_api::{ClusterReason, TemplateRecord};
use serde_json::json;

use crate::world::{
    LIVE, World, at, condition, condition_message, condition_reason, desired, even, frs, running,
};

const MESSAGE: &str = "spec.template.spec.containers[0].ports[0].containerPort: Invalid value";

/// Six replicas run in a, b and c; then the template of the FederatedReplicaSet changes.
fn with_another_template() -> World {
    let mut world = World::new(frs(6, even(true)), &["a", "b", "c"]);
    world.settle(1);
    for cluster in &mut world.previous.clusters {
        cluster.internal.template = Some(TemplateRecord::new(1, LIVE));
    }
    world
}

fn template_rejected(action: &Action) -> Option<Outcome> {
    let creates = matches!(action.change, SetChange::Create { .. });
    let is_scale = matches!(action.change, SetChange::Scale { .. });
    (!is_scale).then(|| Outcome::TemplateRejected {
        message: MESSAGE.to_owned(),
        creates,
    })
}

/// Steps each second until `until`, while members of `rejecting` reject the template; the last check.
fn steps(world: &mut World, until: i64, rejecting: &[&str]) -> Check {
    while world.now < until {
        world.now += 1;
        world.step_unless(|action| {
            template_rejected(action).filter(|_| rejecting.contains(&action.member.as_str()))
        });
        assert!(world.ready() >= 6, "{:?}", world.placed());
    }
    world.check()
}

#[test]
fn f28_a_template_that_all_reject_stops_neither_scaling_nor_losses() {
    let mut world = with_another_template();
    let names = ["a", "b", "c", "d"];
    let decided = steps(&mut world, 5, &names);
    assert_eq!(condition(&decided, "Accepted"), "False");
    assert_eq!(condition_reason(&decided, "Accepted"), "TemplateRejected");
    assert_eq!(condition(&decided, "Stalled"), "True");
    assert!(condition_message(&decided, "Accepted").contains(MESSAGE));
    world.frs = frs(12, even(true));
    let decided = steps(&mut world, 10, &names);
    assert_eq!(
        world.placed(),
        [4, 4, 4],
        "replicas travel without the template"
    );
    assert_eq!(condition(&decided, "Placed"), "True");
    assert_eq!(condition(&decided, "Ready"), "True");
    world.members[0].removed = Some(at(10));
    steps(&mut world, 80, &names);
    assert_eq!(
        world.placed()[1..],
        [6, 6],
        "the others replace a lost member"
    );
    world.members.push(running("d", 0));
    let decided = steps(&mut world, 300, &names);
    assert_eq!(
        world.placed()[1..],
        [6, 6, 0],
        "a member without a set rejects it, too"
    );
    assert_eq!(condition(&decided, "Accepted"), "False");
    let decided = steps(&mut world, 1200, &[]);
    assert_eq!(condition(&decided, "Accepted"), "True");
    assert_eq!(condition(&decided, "Stalled"), "");
    assert_eq!(world.placed()[1..], [4, 4, 4]);
}

#[test]
fn f28_where_some_reject_the_template_others_get_more_replicas() {
    let mut world = with_another_template();
    steps(&mut world, 70, &["a"]);
    world.frs = frs(12, even(true));
    let decided = steps(&mut world, 200, &["a"]);
    assert_eq!(world.placed(), [2, 5, 5], "a keeps what it runs");
    assert_eq!(condition(&decided, "Accepted"), "True");
    assert_eq!(
        condition_reason(&decided, "Reconciling"),
        "WorkloadRejected"
    );
    let cluster = &decided.status.clusters[0];
    assert_eq!(cluster.reason, Some(ClusterReason::WriteRejected));
    assert!(cluster.message.contains(MESSAGE), "{}", cluster.message);
    steps(&mut world, 1200, &[]);
    assert_eq!(world.placed(), [4, 4, 4]);
}

#[test]
fn f28_a_template_is_tried_again_with_backoff_and_at_once_if_it_changes() {
    let mut world = with_another_template();
    let mut tried = Vec::new();
    for now in 0..800 {
        world.now = now;
        let decided = world.step_unless(template_rejected);
        if !decided.actions.is_empty() {
            tried.push(now);
        }
        let next = decided.next_check.unwrap();
        assert!(next > at(now) && next <= at(now + 600), "{next}");
    }
    assert_eq!(tried, [0, 60, 180, 420]);
    for cluster in &mut world.previous.clusters {
        let rejection = cluster.internal.template_rejection.as_mut().unwrap();
        rejection.desired = 1;
    }
    assert_eq!(
        world.check().actions.len(),
        3,
        "this one has not been tried"
    );
}

#[test]
fn f28_a_rejection_is_forgotten_where_no_replicas_are_wanted_any_more() {
    let mut world = World::new(frs(6, even(true)), &["a", "b", "c"]);
    let decided =
        world.step_unless(|action| template_rejected(action).filter(|_| action.member == "c"));
    assert_eq!(desired(&decided), [2, 2, 2]);
    let clusters = json!({ "a": { "weight": 1 }, "b": { "weight": 1 } });
    world.frs = frs(6, json!({ "rebalance": true, "clusters": clusters }));
    world.settle(1);
    let decided = world.check();
    assert_eq!(world.placed(), [3, 3, 0]);
    let types: Vec<_> = decided
        .status
        .conditions
        .iter()
        .map(|condition| &*condition.type_)
        .collect();
    assert_eq!(types, ["Accepted", "Placed", "Ready"]);
    let names: Vec<_> = decided
        .status
        .clusters
        .iter()
        .map(|cluster| &*cluster.name)
        .collect();
    assert_eq!(names, ["a", "b"], "c has nothing to say");
}

#[test]
fn f28_a_rejection_is_forgotten_once_nothing_has_to_be_written_any_more() {
    let mut world = World::settled(6);
    let edit = |world: &mut World, hash| {
        world.members[2].view.workload.as_mut().unwrap().spec_hash = hash;
    };
    edit(&mut world, LIVE + 1);
    world.step_unless(template_rejected);
    let waiting = world.check();
    assert_eq!(
        condition_reason(&waiting, "Reconciling"),
        "WorkloadRejected"
    );
    edit(&mut world, LIVE);
    world.settle(1);
    let decided = world.check();
    let internal = &decided.status.clusters[2].internal;
    assert_eq!(internal.template_rejection, None);
    let mut types = decided
        .status
        .conditions
        .iter()
        .map(|condition| &*condition.type_);
    assert!(types.all(|type_| type_ != "Reconciling"));
}

#[test]
fn f28_replicas_that_a_member_rejects_go_elsewhere_after_x() {
    let mut world = World::new(frs(6, even(true)), &["a", "b", "c"]);
    world.settle(1);
    world.frs = frs(12, even(true));
    let rejected = |action: &Action| {
        let is_rejected = action.member == "a";
        is_rejected.then(|| Outcome::Failed("denied by a webhook".to_owned()))
    };
    for now in 0..600 {
        world.now = now;
        let decided = world.step_unless(rejected);
        let expected = if now <= 60 { [2, 4, 4] } else { [2, 5, 5] };
        assert!(
            now < 62 || world.placed() == expected,
            "{now}: {:?}",
            world.placed()
        );
        assert!(now < 62 || desired(&decided) == [2, 5, 5], "{now}");
        assert!(
            now == 0 || decided.status.clusters[0].reason == Some(ClusterReason::WriteRejected),
            "{now}"
        );
    }
    world.now = 700;
    world.settle(1);
    assert_eq!(world.placed(), [4, 4, 4]);
}

#[test]
fn f28_replicas_whose_writes_are_never_carried_out_go_elsewhere() {
    // An API server responds so while a webhook of the member is down.
    let failed = Outcome::Unknown("failed calling webhook".to_owned());
    // Something changes the set all the time: one conflict more or less shows nothing.
    let conflict = Outcome::Conflict("changed meanwhile".to_owned());
    for (outcome, elsewhere_at) in [(failed, 80), (conflict, 260)] {
        let mut world = World::new(frs(6, even(true)), &["a", "b", "c"]);
        world.settle(1);
        world.frs = frs(12, even(true));
        let fails = |action: &Action| (action.member == "a").then(|| outcome.clone());
        for now in 0..600 {
            world.now = now;
            let decided = world.step_unless(fails);
            let is_elsewhere = world.placed() == [2, 5, 5] && desired(&decided) == [2, 5, 5];
            assert!(
                is_elsewhere || now < elsewhere_at,
                "{outcome:?} {now}: {:?}",
                world.placed()
            );
        }
        world.now = 700;
        world.settle(1);
        assert_eq!(world.placed(), [4, 4, 4]);
    }
}

#[test]
fn f28_a_template_that_is_never_confirmed_stops_no_scaling() {
    let mut world = with_another_template();
    let mut tried = Vec::new();
    for now in 0..800 {
        world.now = now;
        if now == 5 {
            world.frs = frs(12, even(true));
        }
        let decided = world.step_unless(|action| {
            let overwrites = matches!(action.change, SetChange::Overwrite { .. });
            overwrites.then(|| Outcome::TemplateUnknown("failed calling webhook".to_owned()))
        });
        if decided
            .actions
            .iter()
            .any(|action| matches!(action.change, SetChange::Overwrite { .. }))
        {
            tried.push(now);
        }
        assert!(
            now < 20 || world.placed() == [4, 4, 4],
            "{now}: {:?}",
            world.placed()
        );
    }
    assert_eq!(
        tried,
        [0, 1, 2, 62, 182, 422],
        "the template is tried again"
    );
    world.now = 1000;
    world.settle(1);
    assert!(
        world
            .previous
            .clusters
            .iter()
            .all(|cluster| cluster.internal.template_rejection.is_none())
    );
}
