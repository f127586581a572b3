//! Rollouts of FederatedDeployments: what a check lends, writes and relies on (L6, L8, L14).

use cluster_informer::{DeploymentState, RolloutStrategy};
use federated_rollout::{Action as RolloutAction, Loan, Strategy};
use federation_controller::{
    check::{
        Action, Check, DesiredHashes, Member, Outage, RolloutRecord, RolloutSnapshot, SetChange,
        Snapshot, check, refresh_status,
    },
    config::Config,
};
use fedrs_api::{
    ClusterStatus, ClusterWait, FederatedReplicaSetStatus, SettingsHash, TemplateRecord,
    ValidFederatedDeployment, WaitReason,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use crate::world::{LIVE, at, condition_message, condition_reason, running};

const OLD: u32 = 0x01d;
const NEW: u32 = 0x2e3;
const SETTINGS: SettingsHash = SettingsHash(7);

/// A FederatedDeployment of 9 replicas, which runs in three members with the old template. The new one is to be rolled out.
#[derive(Clone)]
pub(crate) struct World {
    deployment: ValidFederatedDeployment,
    pub(crate) members: Vec<Member>,
    previous: FederatedReplicaSetStatus,
    recorded: RolloutRecord,
    settings: Config,
}

fn deployment(extra: Value) -> ValidFederatedDeployment {
    let mut object = json!({
        "apiVersion": "fedrs.dev/v1alpha1",
        "kind": "FederatedDeployment",
        "metadata": { "name": "web", "namespace": "default", "uid": "u-1", "generation": 2 },
        "spec": {
            "replicas": 9,
            "strategy": { "rollingUpdate": { "maxUnavailable": 2, "maxSurge": 0 } },
            "selector": { "matchLabels": { "app": "web" } },
            "placement": { "rebalance": true, "clusters": { "*": { "weight": 1 } } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": "web:2" }] },
            },
        },
    });
    for (field, value) in extra.as_object().unwrap() {
        object["spec"][field] = value.clone();
    }
    ValidFederatedDeployment::check(&serde_json::from_value(object).unwrap()).unwrap()
}

/// A member whose Deployment runs 3 pods of the old template.
fn member(name: &str) -> Member {
    member_with(name, 3)
}

fn member_with(name: &str, pods: u32) -> Member {
    let mut member = running(name, pods);
    let set = member.view.workload.as_mut().unwrap();
    set.deployment = Some(Box::new(DeploymentState {
        strategy: RolloutStrategy::default(),
        updated_replicas: pods,
        written_template: OLD,
        ..DeploymentState::default()
    }));
    member.view.pods.by_template = vec![(OLD, pods)];
    member
}

impl World {
    pub(crate) fn new(extra: Value) -> Self {
        let names = ["a", "b", "c"];
        let cluster = |name: &str| {
            let mut cluster = ClusterStatus {
                name: name.to_owned(),
                desired_replicas: 3,
                ..ClusterStatus::default()
            };
            cluster.internal.requested_replicas = Some(3);
            cluster.internal.template = Some(TemplateRecord::new(OLD.into(), LIVE));
            cluster.internal.settings = Some(SETTINGS);
            cluster
        };
        Self {
            deployment: deployment(extra),
            members: names.map(member).into(),
            previous: FederatedReplicaSetStatus {
                observed_generation: Some(2),
                current_revision: Some(revision(OLD)),
                update_revision: Some(revision(OLD)),
                clusters: names.map(cluster).into(),
                ..FederatedReplicaSetStatus::default()
            },
            recorded: RolloutRecord {
                current_revision: Some(revision(OLD)),
                ..RolloutRecord::default()
            },
            settings: Config::default(),
        }
    }

    fn on_snapshot<T>(&self, of: impl FnOnce(&Snapshot<'_>) -> T) -> T {
        let revision = revision(NEW);
        of(&Snapshot {
            frs: &self.deployment.set,
            desired: DesiredHashes {
                spec: NEW.into(),
                settings: Some(SETTINGS),
            },
            template_hash: NEW,
            rollout: Some(RolloutSnapshot {
                settings: &self.deployment.rollout,
                revision: &revision,
                spec_revision: &revision,
                failing_pod: None,
                recorded: &self.recorded,
            }),
            previous: &self.previous,
            members: &self.members,
            overlapping: &[],
            keeps_running_until: None,
            settings: &self.settings,
        })
    }

    pub(crate) fn check(&self) -> Check {
        self.on_snapshot(|snapshot| check(snapshot, at(0)))
    }

    /// The world in which the host has stored what the check lends.
    fn recording(mut self, decided: &Check) -> Self {
        self.recorded = RolloutRecord::of(&decided.status);
        self
    }

    fn set(&mut self, member: usize) -> &mut cluster_informer::WorkloadState {
        self.members[member].view.workload.as_mut().unwrap()
    }

    pub(crate) fn deployment(&mut self, member: usize) -> &mut DeploymentState {
        self.set(member).deployment.as_mut().unwrap()
    }
}

fn revision(template: u32) -> String {
    fedrs_api::revision_name("web", template)
}

/// What is lent: `a: 1 unavailable, 0 surge`.
fn lent(decided: &Check) -> Vec<(String, u64, u64)> {
    let record = &decided.status.rollout.as_ref().unwrap().record;
    let loans = record.loans.iter();
    let loans =
        loans.map(|(name, loan)| (name.clone(), loan.strategy.unavailable, loan.strategy.surge));
    loans.collect()
}

/// The members that get the template.
fn rolled(decided: &Check) -> Vec<&str> {
    let actions = decided.actions.iter();
    let rolls = actions.filter(|action| {
        let action = &action.change;
        matches!(
            action,
            SetChange::Rollout {
                action: RolloutAction::Roll(_),
                ..
            }
        )
    });
    rolls.map(|action| &*action.member).collect()
}

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

fn is_down(change: &SetChange) -> bool {
    matches!(change, SetChange::Scale { from, to, .. } if to < from)
}

/// Found by the simulation: a Deployment that is scaled down in the middle of a rollout may never go on.
#[test]
fn l14_no_replica_is_removed_from_a_member_before_the_rollout_there_has_ended() {
    for (fields, failed, removes) in [
        (json!({}), false, false),
        (json!({}), true, true),
        (json!({ "paused": true }), false, true),
    ] {
        let clusters = json!({ "a": { "weight": 0 }, "*": { "weight": 1 } });
        let mut fields = fields;
        fields["placement"] = json!({ "rebalance": true, "clusters": clusters });
        let mut world = World::new(fields);
        for other in [1, 2] {
            let member = &mut world.members[other];
            *member = member_with(&member.name, 5);
            world.previous.clusters[other].internal.requested_replicas = Some(5);
        }
        world.deployment(0).updated_replicas = 1;
        world.recorded.state.revision = revision(NEW);
        world.recorded.state.begun = vec![String::new()];
        world.recorded.state.failed = failed;
        let decided = world.check();
        let mut of_a = decided.actions.iter().filter(|action| action.member == "a");
        assert_eq!(
            of_a.any(|action| is_down(&action.change)),
            removes,
            "{failed} {:?}",
            decided.actions
        );
        let waits = &decided.status.clusters[0].waits;
        let is_removed = |wait: &ClusterWait| wait.reason == WaitReason::Removal;
        assert_eq!(waits.iter().any(is_removed), removes, "{waits:?}");
    }
}

/// Found by the simulation: 26 replicas stayed where none was created, and used all of the surge.
#[test]
fn f32_replicas_that_no_controller_creates_leave_a_deployment() {
    let mut world = World::new(json!({}));
    world.previous.clusters[2].internal.behind_since = Some(Time(at(-100)));
    let view = &mut world.members[2].view;
    view.current_at = Some(at(0));
    (view.pods.active, view.pods.ready) = (0, 0);
    let set = view.workload.as_mut().unwrap();
    (set.status_replicas, set.fully_labeled_replicas) = (0, 0);
    (set.ready_replicas, set.available_replicas) = (0, 0);
    set.observed_generation = set.generation - 1;
    set.behind_since = Some(at(-100));
    world.deployment(2).updated_replicas = 0;
    let decided = world.check();
    let mut of_c = decided.actions.iter().filter(|action| action.member == "c");
    assert!(of_c.any(|action| is_down(&action.change)), "{decided:?}");
}

/// Found by the simulation: they could not be removed before the end of a rollout that had no budget left because of them.
#[test]
fn f34_replicas_without_a_node_are_replaced_beside_a_rollout_that_holds_them() {
    for (waited, others) in [(30, vec![]), (90, vec![4, 4])] {
        let mut world = World::new(json!({ "rescheduling": { "maxMoveSurge": 1 } }));
        world.deployment(0).updated_replicas = 1;
        let set = world.set(0);
        (set.ready_replicas, set.available_replicas) = (1, 1);
        let pods = &mut world.members[0].view.pods;
        (pods.ready, pods.unscheduled) = (1, 2);
        pods.unscheduled_since = vec![(at(-waited), 2)];
        let decided = world.check();
        let scaled = decided.actions.iter();
        let scaled = scaled.filter_map(|action| match action.change {
            SetChange::Scale { to, .. } => Some(to),
            _ => None,
        });
        assert_eq!(scaled.collect::<Vec<_>>(), others, "{:?}", decided.actions);
    }
}

#[test]
fn l14_a_template_waits_for_pods_without_a_node_that_get_one_or_move() {
    for (updated, unscheduled, is_full, waits) in [
        (3, 0, false, false),
        (3, 1, false, true),
        // No cluster can run it.
        (3, 1, true, false),
        // It rolls already.
        (1, 1, false, false),
    ] {
        let mut world = World::new(json!({}));
        if is_full {
            for (cluster, capacity) in world.previous.clusters.iter_mut().zip([2, 3, 3]) {
                cluster.capacity = Some(capacity);
            }
        }
        world.deployment(0).updated_replicas = updated;
        let view = &mut world.members[0].view;
        view.pods.ready -= unscheduled;
        view.pods.unscheduled = unscheduled;
        view.pods.unscheduled_since = vec![(at(0), unscheduled)];
        let set = view.workload.as_mut().unwrap();
        (set.ready_replicas, set.available_replicas) = (3 - unscheduled, 3 - unscheduled);
        let lent = lent(&world.check());
        let is_lent = lent.iter().any(|(name, ..)| name == "a");
        assert_eq!(
            !is_lent, waits,
            "{updated} {unscheduled} {is_full} {lent:?}"
        );
    }
}

/// Of 9 replicas 8 are wanted. A member with a loan guarantees one replica less: nothing is removed before its rollout has ended.
#[test]
fn l14_no_replica_is_removed_on_which_a_loan_relies() {
    let mut world = World::new(json!({ "replicas": 8 }));
    world.deployment.rollout.paused = true;
    assert_eq!(world.check().actions.len(), 1);
    let loan = Loan {
        strategy: Strategy::new(1, 0),
        revision: revision(NEW),
        generation: 2,
        ..Loan::default()
    };
    world.recorded.state.loans.insert("a".to_owned(), loan);
    // It rolls: two pods of the old template are left.
    *world.deployment(0) = DeploymentState {
        strategy: RolloutStrategy {
            max_unavailable: 1,
            max_surge: 0,
            is_fixed: true,
        },
        updated_replicas: 1,
        written_template: NEW,
        ..DeploymentState::default()
    };
    world.previous.clusters[0].internal.template = Some(TemplateRecord::new(NEW.into(), LIVE));
    let scaled = |world: &World| {
        let actions = world.check().actions;
        let scaled = actions
            .iter()
            .filter(|action| matches!(action.change, SetChange::Scale { .. }));
        scaled.count()
    };
    assert_eq!(scaled(&world), 0);
    world.deployment(0).updated_replicas = 3;
    world.recorded.state.loans.clear();
    assert_eq!(scaled(&world), 1);
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
