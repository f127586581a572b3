//! Local ReplicaSets that are missing, changed or rejected (F28, F29, F31).

use cluster_informer::{Health, WorkloadView};
use federation_controller::check::{Action, Outcome, Outcomes, SetChange, check, with_outcomes};

use crate::world::{DESIRED, LIVE, TEMPLATE, World, at, condition_message, desired, even, frs};

#[test]
fn f31_a_deleted_set_is_created_again() {
    let mut world = World::new(frs(50, even(true)), &["a", "b", "c"]);
    world.settle(1);
    let before = world.placed()[1];
    world.members[1].view = WorkloadView::default();
    let decided = world.check();
    assert_eq!(decided.actions.len(), 1);
    assert_eq!(
        decided.actions[0].change,
        SetChange::Create {
            replicas: before,
            revision: None
        }
    );
}

#[test]
fn f29_drift_is_distinguished_from_a_new_template() {
    let mut world = World::new(frs(50, even(true)), &["a", "b", "c"]);
    world.settle(1);
    world.members[0].view.workload.as_mut().unwrap().spec_hash = 1;
    assert!(matches!(
        world.check().actions[0].change,
        SetChange::Overwrite { drifted: true, .. }
    ));
    world.members[0].view.workload.as_mut().unwrap().spec_hash = LIVE;
    let mut snapshot = world.snapshot();
    snapshot.desired.spec = 5;
    let decided = check(&snapshot, at(world.now));
    assert_eq!(decided.actions.len(), 3);
    assert!(
        decided
            .actions
            .iter()
            .all(|action| matches!(action.change, SetChange::Overwrite { drifted: false, .. }))
    );
}

#[test]
fn f20_a_number_that_a_member_only_claims_is_not_written_with_a_template() {
    for (claimed, existing, written) in [(30, 30, 30), (u32::MAX, 20, 50)] {
        let mut world = World::new(frs(50, even(true)), &["a", "b", "c"]);
        world.settle(1);
        let set = world.members[0].view.workload.as_mut().unwrap();
        (set.replicas, set.status_replicas) = (claimed, existing);
        set.spec_hash = 1;
        let change = &world.check().actions[0].change;
        let replicas = match change {
            SetChange::Overwrite { replicas, .. } => *replicas,
            change => panic!("{change:?}"),
        };
        assert_eq!(replicas, written, "{claimed}");
    }
}

#[test]
fn f40_a_set_without_the_label_of_its_member_is_overwritten_and_contention_is_counted() {
    let mut world = World::new(frs(50, even(true)), &["a", "b", "c"]);
    world.settle(1);
    world.members[0]
        .view
        .workload
        .as_mut()
        .unwrap()
        .member_cluster = "b".into();
    let decided = world.check();
    assert!(matches!(
        decided.actions[..],
        [Action {
            change: SetChange::Overwrite { drifted: true, .. },
            repairs: true,
            ..
        }]
    ));
    assert_eq!(decided.status.clusters[0].internal.writes.drift_count, 1);
}

#[test]
fn f30_adopted_pods_get_our_labels() {
    let mut world = World::new(frs(50, even(true)), &["a", "b", "c"]);
    world.settle(1);
    assert_eq!(world.check().actions, [], "settled");
    let adopt = |world: &mut World, matching: u32, shown: u32| {
        let view = &mut world.members[0].view;
        view.workload.as_mut().unwrap().fully_labeled_replicas -= matching;
        view.pods.active -= shown;
    };
    let mut relabelled = world.clone();
    adopt(&mut relabelled, 3, 0);
    assert_eq!(
        relabelled.check().actions,
        [],
        "the user changed the template's labels: the pods are seen all the same"
    );
    let mut lagging = world.clone();
    adopt(&mut lagging, 0, 3);
    assert_eq!(lagging.check().actions, [], "the watch of pods is ahead");
    adopt(&mut world, 3, 3);
    let decided = world.check();
    assert!(matches!(
        decided.actions[..],
        [Action {
            change: SetChange::LabelPods { .. },
            repairs: false,
            ..
        }]
    ));
}

#[test]
fn pods_of_another_template_are_counted_until_they_are_gone() {
    let mut world = World::new(frs(50, even(true)), &["a", "b", "c"]);
    world.settle(1);
    let outdated = |world: &World| {
        let conditions = world.check().status.conditions;
        let condition = conditions
            .into_iter()
            .find(|condition| condition.type_ == "TemplateOutdated");
        condition.map(|condition| condition.message)
    };
    assert_eq!(outdated(&world), None);
    world.members[0].view.pods.by_template = vec![(0, 1), (1, 2), (TEMPLATE, 13)];
    world.members[2].view.pods.by_template = vec![(1, 17)];
    let message = outdated(&world).unwrap();
    assert!(
        message.contains("another template, or adopted: 3 in a, 17 in c"),
        "{message}"
    );
    world.members[2].health = Health::Unreachable {
        since: at(-1000),
        message: "no route".into(),
    };
    let message = outdated(&world).unwrap();
    assert!(
        message.contains("3 in a; "),
        "a lost one's are gone: {message}"
    );
}

#[test]
fn f28_a_rejected_creation_backs_off_and_its_replicas_go_elsewhere_meanwhile() {
    let mut world = World::new(frs(50, even(true)), &["a", "b", "c"]);
    let rejected: Outcomes = [(
        "c".to_owned(),
        Outcome::Rejected {
            kind: fedrs_api::RejectionKind::Rejected,
            message: "no".into(),
        },
    )]
    .into();
    world.step();
    world.members[2].view = WorkloadView::default();
    world.previous = with_outcomes(world.previous, &rejected, DESIRED, at(0), &world.settings);
    let decided = world.check();
    assert_eq!(decided.actions, [], "backs off, and X is not over");
    assert_eq!(
        condition_message(&decided, "Reconciling"),
        "c: waiting until 2027-01-15T08:01:00Z for the next attempt to create the ReplicaSet"
    );
    world.now = 60;
    let decided = world.check();
    let create = SetChange::Create {
        replicas: 2,
        revision: None,
    };
    assert!(
        decided
            .actions
            .iter()
            .any(|action| action.member == "c" && action.change == create),
        "tried with a couple: {:?}",
        decided.actions
    );
    assert_eq!(desired(&decided)[2], 0);
    world.settle(1);
    let mut layout = world.placed();
    layout.sort_unstable();
    assert_eq!(layout, [16, 17, 17], "back once it can be created");
}
