//! Rollouts of FederatedDeployments: what a check lends, writes and says (L6, L8, L14).

use cluster_informer::DeploymentState;
use federated_rollout::{Action as RolloutAction, Limit};
use federation_controller::check::{
    Action, Check, Member, Outage, RolloutRecord, SetChange, check, refresh_status,
};
use fedrs_api::{ClusterWait, TemplateRecord, WaitReason};
use serde_json::json;

use crate::{
    rollout_world::{NEW, OLD, World, lent, revision, rolled},
    world::{LIVE, at, condition_message, condition_reason, running},
};

#[test]
fn l14_a_template_is_written_once_what_is_lent_for_it_is_recorded() {
    let world = World::new(json!({}));
    let decided = world.check();
    assert_eq!(
        lent(&decided),
        [("a".to_owned(), 1, 0), ("b".to_owned(), 1, 0)]
    );
    assert!(decided.actions.is_empty(), "{:?}", decided.actions);
    let world = world.recording(&decided);
    let decided = world.check();
    assert_eq!(rolled(&decided), ["a", "b"]);
    // The record stays as it is: no other part is free.
    assert_eq!(RolloutRecord::of(&decided.status), world.recorded);
    assert_eq!(condition_reason(&decided, "Progressing"), "RollingOut");
    assert_eq!(condition_reason(&decided, "Ready"), "RollingOut");
}

/// Its own budget is 2 pods.
#[test]
fn a1_m16_a_rollout_keeps_to_what_an_availability_set_allows() {
    for (unavailable, one_member, expected) in [
        (0, false, vec![]),
        (1, false, vec![("a", 1)]),
        (5, false, vec![("a", 1), ("b", 1)]),
        (5, true, vec![("a", 2)]),
    ] {
        let mut world = World::new(json!({}));
        world.limit = Some(Limit {
            unavailable,
            one_member,
        });
        let decided = world.check();
        let lent = lent(&decided);
        let lent: Vec<_> = (lent.iter())
            .map(|(name, pods, _)| (&**name, *pods))
            .collect();
        assert_eq!(lent, expected, "{unavailable}");
        let message = condition_message(&decided, "Progressing");
        let is_named = message.contains("AvailabilitySet web allows");
        assert_eq!(is_named, unavailable < 2, "{message}");
        // What a rollout may use at the moment is no reason to be unavailable.
        let available = condition_reason(&decided, "Available");
        assert_eq!(available, "MinimumReplicasAvailable", "{unavailable}");
    }
}

#[test]
fn l14_a_status_refresh_lends_nothing() {
    let world = World::new(json!({}));
    let refreshed = world.on_snapshot(|snapshot| refresh_status(snapshot, at(0)));
    assert!(refreshed.status.rollout.unwrap().record.loans.is_empty());
}

/// Found by the simulation: with each status in between, a write that failed was tried three more times.
#[test]
fn f38_a_status_refresh_forgets_no_failed_write_of_a_rollout() {
    let world = World::new(json!({}));
    let decided = world.check();
    let mut world = world.recording(&decided);
    assert!(rolled(&world.check()).contains(&"a"));
    (world.previous.clusters[0].internal.writes).write_failures = 3;
    let refreshed = world.on_snapshot(|snapshot| refresh_status(snapshot, at(0)));
    let writes = &refreshed.status.clusters[0].internal.writes;
    assert_eq!(writes.write_failures, 3);
}

#[test]
fn l8_paused_stops_rollouts_and_stopped_stops_every_change() {
    for (field, replicas, changes) in [("paused", 12, 3), ("stopped", 12, 0)] {
        let world = World::new(json!({ field: true, "replicas": replicas }));
        let decided = world.check();
        assert_eq!(lent(&decided), [], "{field}");
        assert_eq!(
            decided.actions.len(),
            changes,
            "{field}: {:?}",
            decided.actions
        );
    }
}

/// Their own controllers would go on. That it is the set that pauses them is recorded first.
#[test]
fn l8_stopped_pauses_members_that_roll_and_writes_nothing_else() {
    let world = World::new(json!({}));
    let lent = world.check();
    let mut world = world.recording(&lent);
    let loan = world.recorded.state.loans.get_mut("a").unwrap();
    let strategy = loan.strategy;
    world.deployment(0).updated_replicas = 1;
    let [unavailable, surge] =
        [strategy.unavailable, strategy.surge].map(|pods| pods.try_into().unwrap());
    let live = &mut world.deployment(0).strategy;
    (live.max_unavailable, live.max_surge) = (unavailable, surge);
    world.set(0).generation += 1;
    world.set(0).observed_generation += 1;
    world.deployment.set.paused = true;
    // A scaling waits as well.
    world.deployment.set.replicas += 3;
    let recorded = world.check();
    assert!(recorded.actions.is_empty(), "{:?}", recorded.actions);
    let decided = world.recording(&recorded).check();
    let actions: Vec<_> = decided.actions.iter().collect();
    let [action] = actions[..] else {
        panic!("{actions:?}");
    };
    let is_pause = |change: &SetChange| {
        let action = RolloutAction::Pause;
        matches!(change, SetChange::Rollout { action: found, .. } if *found == action)
    };
    assert!(
        action.member == "a" && is_pause(&action.change),
        "{action:?}"
    );
}

/// A set may be stopped for longer than its progress deadline: nothing has failed by that.
#[test]
fn l14_the_progress_deadline_begins_anew_when_a_set_is_no_longer_stopped() {
    let world = World::new(json!({ "progressDeadlineSeconds": 60 }));
    let lent = world.check();
    let world = world.recording(&lent);
    let mut stopped = world.clone();
    stopped.deployment.set.paused = true;
    let decided = stopped.check();
    assert_eq!(condition_reason(&decided, "Progressing"), "RolloutPaused");
    for (world, reason) in [
        (world, "ProgressDeadlineExceeded"),
        (stopped.recording(&decided), "RollingOut"),
    ] {
        let mut world = world;
        world.deployment.set.paused = false;
        let later = world.on_snapshot(|snapshot| check(snapshot, at(600)));
        assert_eq!(condition_reason(&later, "Progressing"), reason);
    }
}

/// The revisions with which the member "c" gets its missing Deployment: an empty one for that of the spec.
fn created(world: &World) -> Vec<String> {
    let of_c = |action: &Action| action.member == "c";
    let changes = world.check().actions.into_iter().filter(of_c);
    let created = changes.filter_map(|action| match action.change {
        SetChange::Create { revision, .. } => Some(revision.unwrap_or_default()),
        _ => None,
    });
    created.collect()
}

#[test]
fn l6_a_deployment_that_was_deleted_is_created_in_the_revision_that_its_step_has_reached() {
    let steps = json!({ "steps": [{ "name": "canary", "clusters": ["a"] }] });
    let mut world = World::new(json!({ "rollout": steps }));
    world.members[2].view = running("c", 0).view;
    world.members[2].view.workload = None;
    assert_eq!(created(&world), [revision(OLD)]);
    let decided = world.check();
    let waits = &decided.status.clusters[2].waits;
    let is_told = |wait: &ClusterWait| wait.reason == WaitReason::Rollout;
    assert!(waits.iter().any(is_told), "{waits:?}");
    world.recorded.current_revision = None;
    assert_eq!(created(&world), [""], "the first creation");
}

#[test]
fn l14_a_template_whose_write_was_not_answered_is_recognized() {
    let mut world = World::new(json!({}));
    world.deployment(0).written_template = NEW;
    world.set(0).spec_hash = LIVE + 1;
    let decided = world.check();
    let clusters = &decided.status.clusters;
    assert_eq!(clusters[0].revision, Some(revision(NEW)));
    assert_eq!(clusters[1].revision, Some(revision(OLD)));
    let record = clusters[0].internal.template.as_ref().unwrap();
    assert!(record.has_desired(NEW.into()) && record.has_live(LIVE + 1));
}

#[test]
fn f29_a_template_of_another_writer_is_of_no_revision_and_rolled_over() {
    let mut world = World::new(json!({}));
    world.set(2).spec_hash = LIVE + 1;
    let decided = world.check();
    assert_eq!(decided.status.clusters[2].revision, None);
    assert!(condition_reason(&decided, "Progressing") == "RollingOut");
}

#[test]
fn f29_settings_of_another_writer_are_restored_without_a_rollout() {
    for change in [
        (|state| state.paused = true) as fn(&mut DeploymentState),
        |state| state.min_ready_seconds = 5,
    ] {
        let mut world = World::new(json!({ "paused": true }));
        change(world.deployment(1));
        let decided = world.check();
        let [action] = &*decided.actions else {
            panic!("{:?}", decided.actions);
        };
        let is_overwritten = matches!(
            action.change,
            SetChange::Overwrite {
                drifted: true,
                replicas: 3,
                ..
            }
        );
        assert!(action.member == "b" && is_overwritten, "{action:?}");
    }
}

#[test]
fn l14_a_step_that_names_no_member_is_reported() {
    let steps = json!([{ "name": "canary", "clusters": ["zone"] }]);
    let mut world = World::new(json!({ "rollout": { "steps": steps } }));
    world.previous.observed_generation = Some(1);
    let decided = world.check();
    let message = condition_message(&decided, "Progressing");
    let expected = "spec.rollout.steps: no member cluster is named \"zone\"";
    assert!(message.ends_with(expected), "{message}");
    let is_told = |decided: &Check| {
        let mut events = decided.events.iter();
        events.any(|event| event.reason == "UnknownCluster" && event.message == expected)
    };
    assert!(is_told(&decided), "{:?}", decided.events);
    // Once for each spec.
    world.previous.observed_generation = Some(2);
    assert!(!is_told(&world.check()));
}

#[test]
fn l8_a_paused_rollout_names_the_pause_once() {
    let decided = World::new(json!({ "paused": true })).check();
    let message = condition_message(&decided, "Progressing");
    let expected = format!(
        "spec.paused is true: revision {} is not rolled out further",
        revision(NEW)
    );
    assert_eq!(message, expected);
}

/// The templates that members had before they were adopted are in no revision.
#[test]
fn l14_an_undo_without_an_earlier_revision_says_so() {
    for (current, says_so) in [(revision(OLD), false), (revision(NEW), true)] {
        let mut world = World::new(json!({
            "progressDeadlineSeconds": 60, "rollout": { "onFailure": "Undo" },
        }));
        world.previous.current_revision = Some(current.clone());
        world.recorded.current_revision = Some(current);
        let lent = world.check();
        let world = world.recording(&lent);
        let failed = world.on_snapshot(|snapshot| check(snapshot, at(600)));
        let message = condition_message(&failed, "Progressing");
        assert_eq!(
            message.contains("no earlier revision"),
            says_so,
            "{message}"
        );
    }
}

/// A lost member is updated when it returns, and holds nothing up.
#[test]
fn l14_a_rollout_that_a_lost_member_lacks_does_not_claim_all_clusters() {
    let mut world = World::new(json!({}));
    for member in 0..2 {
        world.deployment(member).written_template = NEW;
        world.previous.clusters[member].internal.template =
            Some(TemplateRecord::new(NEW.into(), LIVE));
    }
    world.members[2].outage = Outage::Lost { since: at(-600) };
    let decided = world.check();
    let message = condition_message(&decided, "Progressing");
    assert!(message.ends_with(", apart from lost ones: c"), "{message}");
}

/// Its nodes have not reported since it returned, or are not ready: its pods may run.
#[test]
fn l14_what_may_run_is_not_lent_as_if_it_were_gone() {
    for hide in [
        (|member| {
            member.view.nodes_report = true;
            member.view.pods.ready = 0;
        }) as fn(&mut Member),
        |member| (member.view.pods.ready, member.view.pods.doubtful) = (0, 3),
    ] {
        let mut world = World::new(json!({}));
        hide(&mut world.members[0]);
        assert_eq!(lent(&world.check()), []);
    }
}

/// A released Deployment keeps our labels in its template; its pods have none until it is adopted again.
#[test]
fn f30_pods_are_labeled_before_another_template_replaces_them() {
    let world = World::new(json!({}));
    let decided = world.check();
    let mut world = world.recording(&decided);
    world.deployment(0).template_is_labeled = true;
    world.set(0).fully_labeled_replicas = 0;
    world.members[0].view.pods.active = 0;
    let decided = world.check();
    let of_a = decided.actions.iter().find(|action| action.member == "a");
    let change = &of_a.unwrap().change;
    assert!(matches!(change, SetChange::LabelPods { .. }), "{change:?}");
    assert_eq!(rolled(&decided), ["b"]);
}

/// A Deployment counts the pods of the template that it has observed last.
#[test]
fn l14_pods_of_the_template_before_are_not_updated() {
    for (observes, labeled, updated) in [(false, true, 0), (true, true, 3), (false, false, 3)] {
        let mut world = World::new(json!({}));
        world.previous.clusters[0].internal.template = Some(TemplateRecord::new(NEW.into(), LIVE));
        let set = world.set(0);
        set.generation += i64::from(!observes);
        world.deployment(0).template_is_labeled = labeled;
        let clusters = world.check().status.clusters;
        assert_eq!(clusters[0].revision, Some(revision(NEW)));
        assert_eq!(
            clusters[0].updated_replicas, updated,
            "{observes} {labeled}"
        );
    }
}
