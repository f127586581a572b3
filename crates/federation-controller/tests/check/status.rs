//! What tools read from the status: generations, kstatus conditions, counts (F4, F6).

use cluster_informer::{Health, SyncState, WorkloadView};
use federation_controller::check::{
    Check, InvalidFrs, Outcome, Outcomes, SetChange, StatusRefresh, reject, with_outcomes,
};
use fedrs_api::{
    ClusterReason, ClusterState, ConditionType, FieldError, RejectionKind, conditions::find,
};
use serde_json::json;

use crate::world::{
    DESIRED, TEMPLATE, World, at, condition, condition_message, condition_reason, even, frs,
    frs_with, hold, running,
};

fn failing() -> Health {
    let message = "timeout".to_owned();
    Health::Failing {
        since: at(0),
        message,
    }
}

#[test]
fn f33_a_failed_probe_alone_rewrites_no_status() {
    let mut world = World::settled(9);
    world.members[1].health = failing();
    world.now = 5;
    let decided = world.check();
    assert_eq!(
        (&decided.status, decided.events.len()),
        (&world.previous, 0)
    );
    // Nor in the middle of a move.
    world.members[1].health = Health::Healthy;
    hold(&mut world.members[0], 6, 6);
    hold(&mut world.members[1], 0, 0);
    world.previous = world.check().status;
    world.members[1].health = failing();
    let decided = world.check();
    assert_eq!(decided.status, world.previous);
    let touched: Vec<_> = decided
        .actions
        .iter()
        .map(|action| &action.member)
        .collect();
    assert!(!touched.contains(&&"b".to_owned()), "{touched:?}");
}

#[test]
fn f33_a_member_that_was_not_eligible_is_unknown_while_its_probe_fails() {
    let mut world = World::new(frs(9, even(true)), &["a", "b", "c"]);
    world.members[1].health = failing();
    let decided = world.check();
    let names: Vec<_> = decided.status.clusters.iter().map(|c| &*c.name).collect();
    assert_eq!(names, ["a", "c"], "the others get its replicas");
}

#[test]
fn f26_a_pending_write_leaves_the_other_members_as_they_are() {
    let mut world = World::settled(9);
    world.frs = frs(18, even(true));
    let decided = world.check();
    let outcomes = Outcomes::from(["a", "b", "c"].map(|name| (name.to_owned(), Outcome::Pending)));
    world.previous = with_outcomes(decided.status, &outcomes, DESIRED, at(0), &world.settings);
    for index in [0, 2] {
        hold(&mut world.members[index], 6, 3);
    }
    world.members[1].write_pending = true;
    let decided = world.check();
    assert_eq!(decided.actions, [], "a and c have what they should");
    let entry = |check: &Check| {
        let cluster = check.status.clusters[1].clone();
        (
            cluster.state,
            cluster.reason,
            cluster.message,
            cluster.desired_replicas,
        )
    };
    assert_eq!(entry(&decided).0, Some(ClusterState::Eligible));
    world.members[1].write_pending = false;
    assert_eq!(entry(&decided), entry(&world.check()));
}

#[test]
fn f6_a_pass_that_decides_nothing_observes_nothing() {
    let mut world = World::settled(9);
    world.members.push(running("d", 0));
    world.members[3].health = Health::Unknown;
    world.members[3].joined = at(0);
    assert_eq!(world.check().status, world.previous, "observed before");
    let spec = json!({ "replicas": 12, "placement": even(true) });
    world.frs = frs_with(spec);
    world.frs.generation = 2;
    let decided = world.check();
    assert_eq!(decided.status.observed_generation, Some(1));
    for type_ in ["Placed", "Ready"] {
        assert_eq!(condition(&decided, type_), "False");
        assert_eq!(condition_reason(&decided, type_), "WaitingForMembers");
    }
    assert_eq!(
        condition_reason(&decided, "Reconciling"),
        "WaitingForMembers"
    );
    world.now = 10;
    let decided = world.check();
    assert_eq!(decided.status.observed_generation, Some(2));
    let generations = decided.status.conditions.iter();
    let mut generations = generations.map(|condition| condition.observed_generation);
    assert!(generations.all(|generation| generation == Some(2)));
}

#[test]
fn f6_a_new_set_is_not_observed_before_its_members_answer() {
    let mut world = World::new(frs(9, even(true)), &["a"]);
    world.previous.observed_generation = Some(-1);
    (world.members[0].joined, world.members[0].sync) = (at(0), SyncState::NotSynced);
    let decided = world.check();
    assert_eq!(decided.status.observed_generation, Some(-1));
    let mut conditions = decided.status.conditions.iter();
    assert!(conditions.all(|condition| condition.observed_generation.is_none()));
}

#[test]
fn f6_reconciling_is_present_only_while_there_is_something_to_do() {
    let mut world = World::settled(9);
    let reason = |world: &World| {
        let decided = world.check();
        let condition = find(&decided.status.conditions, ConditionType::Reconciling).cloned();
        condition.map(|condition| (condition.status, condition.reason))
    };
    let because = |reason: &str| Some(("True".to_owned(), reason.to_owned()));
    assert_eq!(reason(&world), None);
    world.frs = frs(12, even(true));
    assert_eq!(reason(&world), because("Rescheduling"));
    world.settle(1);
    hold(&mut world.members[0], 4, 3);
    assert_eq!(reason(&world), because("ReplicasUnavailable"));
    hold(&mut world.members[0], 4, 4);
    world.members[1].sync = SyncState::Stale { since: at(0) };
    assert_eq!(reason(&world), because("MemberUnknown"));
    assert_eq!(condition(&world.check(), "Ready"), "True", "as last known");
    world.members[1].sync = SyncState::Synced;
    for name in ["a", "b", "c"] {
        world.set_capacity(name, 2);
    }
    world.now += 120;
    assert_eq!(reason(&world), because("InsufficientCapacity"));
}

/// As for a moment after the first FederatedDeployment: the Deployments of the members are listed from then on.
#[test]
fn f18_replicas_without_a_cluster_whose_state_is_known_do_not_lack_capacity() {
    let spec = json!({ "clusters": { "a": { "weight": 1, "maxReplicas": 4 } } });
    let mut world = World::new(frs(9, spec), &["a", "b"]);
    world.now = 600;
    world.members[0].sync = SyncState::NotSynced;
    let decided = world.check();
    assert_eq!(condition_reason(&decided, "Placed"), "MemberUnknown");
    let message = &find(&decided.status.conditions, ConditionType::Placed)
        .unwrap()
        .message;
    assert_eq!(
        message,
        "9 of 9 replicas have no cluster: the state of a is not known"
    );
    assert_eq!(decided.events, []);
    world.previous = decided.status;
    world.members[0].sync = SyncState::Synced;
    let decided = world.check();
    assert_eq!(condition_reason(&decided, "Placed"), "InsufficientCapacity");
    assert_eq!(decided.events[0].reason, "InsufficientCapacity");
}

#[test]
fn f33_after_a_restart_an_unreachable_member_counts_as_last_known() {
    let mut world = World::settled(9);
    world.members[1].view = WorkloadView::default();
    world.members[1].sync = SyncState::NotSynced;
    world.members[1].health = Health::Unreachable {
        since: at(-1),
        message: "no route".into(),
    };
    let decided = world.check();
    assert_eq!(decided.status.available_replicas, 9);
    assert_eq!(condition(&decided, "Ready"), "True");
    assert_eq!(condition_reason(&decided, "Reconciling"), "MemberUnknown");
}

#[test]
fn f6_a_paused_set_is_neither_reconciling_nor_stalled() {
    let mut world = World::settled(9);
    let spec = json!({ "replicas": 12, "paused": true, "placement": even(true) });
    world.frs = frs_with(spec);
    let decided = world.check();
    let types = |check: &Check| {
        let conditions = check.status.conditions.iter();
        conditions
            .map(|condition| condition.type_.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(types(&decided), ["Accepted", "Placed", "Ready", "Paused"]);
    assert_eq!(
        condition(&decided, "Ready"),
        "False",
        "9 of 12 are available"
    );
    assert_eq!(
        decided.status.clusters[0].reason,
        Some(ClusterReason::Paused)
    );
}

#[test]
fn f6_clusters_have_separate_counts_and_their_most_significant_reason() {
    let mut world = World::settled(9);
    hold(&mut world.members[0], 3, 3);
    let set = world.members[0].view.workload.as_mut().unwrap();
    set.available_replicas = 1;
    world.members[0].view.pods.by_template = vec![(1, 2), (crate::world::TEMPLATE, 1)];
    world.members[1].draining = true;
    world.members[2].schedulable = false;
    let clusters = world.check().status.clusters;
    let a = &clusters[0];
    assert_eq!(
        (
            a.replicas,
            a.ready_replicas,
            a.available_replicas,
            a.updated_replicas
        ),
        (3, 3, 1, 1)
    );
    let reasons: Vec<_> = clusters
        .iter()
        .map(|cluster| cluster.reason.unwrap())
        .collect();
    assert_eq!(
        reasons,
        [
            ClusterReason::ByWeight,
            ClusterReason::WaitingForReplacements,
            ClusterReason::Cordoned
        ]
    );
}

fn rejected(world: &World, message: &str) -> StatusRefresh {
    let errors = [FieldError {
        field: "spec.selector".to_owned(),
        message: message.to_owned(),
    }];
    let invalid = InvalidFrs {
        errors: &errors,
        generation: Some(2),
        preferences_hash: &None,
        previous: &world.previous,
        members: &world.members,
        settings: &world.settings,
    };
    reject(&invalid, at(world.now))
}

#[test]
fn s6_a_spec_with_many_errors_shows_twenty() {
    let world = World::settled(9);
    let errors: Vec<_> = (0..1000)
        .map(|number| FieldError {
            field: format!("spec.template.metadata.labels[{number}]"),
            message: format!("\u{1b}[2J{}", "long".repeat(1000)),
        })
        .collect();
    let invalid = InvalidFrs {
        errors: &errors,
        generation: Some(2),
        preferences_hash: &None,
        previous: &world.previous,
        members: &world.members,
        settings: &world.settings,
    };
    let refresh = reject(&invalid, at(world.now));
    let accepted = find(&refresh.status.conditions, ConditionType::Accepted).unwrap();
    for text in [&accepted.message, &refresh.events[0].message] {
        assert!(text.chars().count() < 21 * 514, "{text}");
        assert!(
            text.contains("labels[19]") && !text.contains("labels[20]"),
            "{text}"
        );
        assert!(
            text.ends_with("; and more errors") && !text.contains('\u{1b}'),
            "{text}"
        );
    }
}

#[test]
fn f4_an_invalid_spec_is_stalled_and_its_counts_stay_current() {
    let mut world = World::settled(9);
    hold(&mut world.members[0], 3, 1);
    let refresh = rejected(&world, "does not match");
    let status = &refresh.status;
    assert_eq!(status.observed_generation, Some(2), "rejecting observes");
    let conditions: Vec<_> = status
        .conditions
        .iter()
        .map(|condition| {
            let (type_, status, reason) = (&condition.type_, &condition.status, &condition.reason);
            format!("{type_}={status} {reason}")
        })
        .collect();
    assert_eq!(
        conditions,
        [
            "Accepted=False InvalidSpec",
            "Placed=True AllReplicasPlaced",
            "Ready=False InvalidSpec",
            "Stalled=True InvalidSpec"
        ]
    );
    assert_eq!(
        (
            status.replicas,
            status.ready_replicas,
            status.available_replicas
        ),
        (9, 7, 7)
    );
    assert_eq!(status.clusters[0].desired_replicas, 3, "the layout stays");
    assert_eq!(refresh.events[0].reason, "InvalidSpec");
    world.previous = refresh.status;
    let again = rejected(&world, "does not match");
    assert_eq!((again.events.len(), &again.status), (0, &world.previous));
    assert_eq!(
        rejected(&world, "is empty").events.len(),
        1,
        "another error"
    );
    hold(&mut world.members[0], 3, 3);
    world.frs.generation = 3;
    let decided = world.check();
    assert_eq!(condition(&decided, "Stalled"), "", "a valid spec again");
    assert_eq!(condition(&decided, "Ready"), "True");
}

#[test]
fn f4_a_new_set_with_an_invalid_spec_is_stalled() {
    let world = World::new(frs(9, even(true)), &["a", "b"]);
    let status = rejected(&world, "does not match").status;
    let conditions: Vec<_> = status
        .conditions
        .iter()
        .map(|condition| (condition.type_.as_str(), condition.status.as_str()))
        .collect();
    assert_eq!(
        conditions,
        [
            ("Accepted", "False"),
            ("Placed", "False"),
            ("Ready", "False"),
            ("Stalled", "True")
        ]
    );
    assert_eq!(status.clusters, []);
}

#[test]
fn f26_growth_counts_a_write_that_has_not_been_answered() {
    let mut world = World::settled(9);
    world.previous.clusters[1].desired_replicas = 6;
    world.members[1].write_pending = true;
    hold(&mut world.members[0], 6, 6);
    world.previous.clusters[0].internal.requested_replicas = Some(6);
    hold(&mut world.members[2], 0, 0);
    let grown = world
        .check()
        .actions
        .into_iter()
        .any(|action| matches!(action.change, SetChange::Scale { from, to, .. } if to > from));
    assert!(
        !grown,
        "b may have 6, a has 6: nothing is left of the surge"
    );
}

#[test]
fn s6_conditions_name_a_few_of_many_members() {
    let names: Vec<_> = (0..200)
        .map(|number| format!("member-{number:03}"))
        .collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let new = || World::new(frs(200, even(true)), &names);
    // Pods of another template that never get ready, in members that are cordoned.
    let mut unready = new();
    for member in &mut unready.members {
        hold(member, 1, 0);
        member.view.pods.by_template = vec![(TEMPLATE + 1, 1)];
        member.schedulable = false;
    }
    unready.previous = unready.check().status;
    unready.frs = frs(400, even(true));
    unready.now = 3600;
    // Members in which the ReplicaSet has another owner.
    let mut foreign = new();
    let (kind, message) = (RejectionKind::NameConflict, "x".repeat(512));
    let rejected = Outcome::Rejected { kind, message };
    foreign.step_unless(|_| Some(rejected.clone()));
    for (world, types) in [
        (
            unready,
            &[
                "NotBecomingReady",
                "TemplateOutdated",
                "Placed",
                "Reconciling",
            ][..],
        ),
        (foreign, &["NameConflict", "Reconciling"]),
    ] {
        let decided = world.check();
        for type_ in types {
            let message = condition_message(&decided, type_);
            assert!(message.contains("and 192 more"), "{type_}: {message}");
        }
        for condition in &decided.status.conditions {
            assert!(condition.message.len() < 5000, "{condition:?}");
        }
    }
}
