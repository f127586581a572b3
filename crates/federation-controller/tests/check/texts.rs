//! Shows each text of a check, in the situation that causes it (F6, F19, F38).

use std::fmt::Write;

use cluster_informer::{Deletion, Health, ReplicaFailure, SyncState, WorkloadView};
use federation_controller::check::{Check, InvalidFrs, Snapshot, StatusRefresh, check, reject};
use fedrs_api::{
    ClusterStatus, FieldError, Rejection, RejectionKind, TemplateRecord, TemplateRejection,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use crate::world::{DESIRED, LIVE, World, at, even, frs, frs_with, hold, running};

/// Three settled members at 100 s.
fn settled() -> World {
    let mut world = World::new(frs(9, even(true)), &["asia", "eu", "us"]);
    world.settle(1);
    world.step();
    world.now = 100;
    world
}

/// What users see of a check, each fact on one line.
fn shown(decided: &Check) -> String {
    let actions = decided.actions.iter().map(|action| action.event.clone());
    let refresh = StatusRefresh {
        status: decided.status.clone(),
        events: actions.chain(decided.events.clone()).collect(),
        moving: decided.moving,
    };
    shown_refresh(&refresh)
}

fn shown_refresh(refresh: &StatusRefresh) -> String {
    let mut shown = String::new();
    for event in &refresh.events {
        let (type_, reason) = (event.type_, event.reason);
        writeln!(shown, "{type_:?} {reason}: {}", event.message).unwrap();
    }
    for condition in &refresh.status.conditions {
        let (type_, status, reason) = (&condition.type_, &condition.status, &condition.reason);
        writeln!(shown, "{type_}={status} {reason}: {}", condition.message).unwrap();
    }
    for cluster in &refresh.status.clusters {
        let reason = cluster.reason.map_or("-", |reason| reason.as_str());
        writeln!(shown, "{} {reason}: {}", cluster.name, cluster.message).unwrap();
        for wait in &cluster.waits {
            writeln!(shown, "{} {:?}: waiting {wait}", cluster.name, wait.reason).unwrap();
        }
    }
    shown
}

type Case = (&'static str, fn(&mut World));

fn eu(world: &mut World) -> &mut federation_controller::check::Member {
    &mut world.members[1]
}

fn previous(world: &mut World) -> &mut ClusterStatus {
    &mut world.previous.clusters[1]
}

fn failing() -> Health {
    Health::Failing {
        since: at(90),
        message: "timed out".to_owned(),
    }
}

fn rejecting(world: &mut World, kind: RejectionKind, message: &str) {
    eu(world).view = WorkloadView::default();
    let internal = &mut previous(world).internal;
    internal.rejection = Some(Box::new(Rejection {
        since: Time(at(70)),
        kind,
        message: message.to_owned(),
    }));
    (internal.failures, internal.next_attempt_time) = (1, Some(Time(at(130))));
}

fn template_rejected(world: &mut World, clusters: &[usize]) {
    for index in clusters {
        let internal = &mut world.previous.clusters[*index].internal;
        let message = "containers[0].image: Required value".to_owned();
        internal.template_rejection = Some(Box::new(TemplateRejection {
            failures: 1,
            next_attempt_time: Time(at(130)),
            ..TemplateRejection::new(DESIRED.spec, Time(at(70)), message)
        }));
        // They have the template of before.
        internal.template = Some(TemplateRecord::new(DESIRED.spec - 1, LIVE));
    }
}

const STATES: [Case; 16] = [
    ("settled", |_| {}),
    ("a member joins", |world| {
        world.frs.generation = 2;
        eu(world).health = Health::Unknown;
        eu(world).joined = at(95);
    }),
    ("unreachable", |world| {
        eu(world).health = Health::Unreachable {
            since: at(90),
            message: "connection refused".to_owned(),
        };
    }),
    ("lost", |world| {
        eu(world).health = Health::Unreachable {
            since: at(0),
            message: "connection refused".to_owned(),
        };
    }),
    ("returned", |world| {
        previous(world).internal.lost_since = Some(Time(at(0)));
    }),
    ("the kubeconfig is removed", |world| {
        eu(world).removed = Some(at(100));
    }),
    ("the kubeconfig is invalid", |world| {
        eu(world).invalid_kubeconfig = Some("no clusters".to_owned());
    }),
    ("unauthorized", |world| {
        eu(world).health = Health::Unauthorized {
            message: "401".to_owned(),
        };
    }),
    ("never probed", |world| eu(world).health = Health::Unknown),
    ("one failed probe", |world| eu(world).health = failing()),
    (
        "one failed probe of a member that was not eligible",
        |world| {
            eu(world).health = failing();
            previous(world).state = None;
        },
    ),
    ("not listed", |world| eu(world).sync = SyncState::NotSynced),
    ("the watch is down", |world| {
        eu(world).sync = SyncState::Stale { since: at(90) };
    }),
    ("a write is pending", |world| eu(world).write_pending = true),
    (
        "a write is pending in a member that was not eligible",
        |world| {
            eu(world).write_pending = true;
            previous(world).state = None;
        },
    ),
    ("registered twice", |world| {
        let set = world.members[0].view.workload.clone();
        eu(world).view.workload = set;
    }),
];

const PLACEMENTS: [Case; 12] = [
    ("a new set", |world| {
        *world = World::new(frs(9, even(true)), &["asia", "eu", "us"]);
    }),
    ("minimum and maximum", |world| {
        let clusters = json!({ "asia": { "minReplicas": 2 }, "eu": { "maxReplicas": 4 , "weight": 1 }, "us": { "weight": 1 } });
        world.frs = frs(9, json!({ "rebalance": true, "clusters": clusters }));
    }),
    ("scaled down", |world| world.frs = frs(6, even(true))),
    ("draining", |world| eu(world).draining = true),
    ("drained", |world| {
        eu(world).draining = true;
        eu(world).view = WorkloadView::default();
        previous(world).internal.template = None;
        previous(world).internal.writes.written_generation = None;
    }),
    ("all are drained or cordoned", |world| {
        world.frs = frs(12, even(true));
        world.members[0].draining = true;
        world.members[1].schedulable = false;
        world.members[2].schedulable = false;
    }),
    ("a misspelt name", |world| {
        let clusters = json!({ "eur": { "weight": 1 }, "mars": { "weight": 1 } });
        world.frs = frs(9, json!({ "clusters": clusters }));
    }),
    ("a misspelt name, and others take all", |world| {
        let clusters = json!({ "eur": { "weight": 1 }, "us": { "weight": 1 } });
        world.frs = frs(9, json!({ "rebalance": true, "clusters": clusters }));
        world.frs.generation = 2;
    }),
    ("paused", |world| {
        let spec = json!({ "replicas": 12, "paused": true, "placement": even(true) });
        world.frs = frs_with(spec);
    }),
    ("moving", |world| {
        hold(&mut world.members[0], 6, 6);
        world.previous.clusters[0].internal.requested_replicas = Some(6);
        hold(&mut world.members[1], 0, 0);
    }),
    ("more than was requested", |world| {
        hold(&mut world.members[0], u32::MAX, u32::MAX);
    }),
    ("replacements don't become ready", |world| {
        hold(&mut world.members[0], 6, 6);
        world.previous.clusters[0].internal.requested_replicas = Some(6);
        hold(&mut world.members[1], 3, 0);
        let previous = previous(world);
        previous.available_replicas = 0;
        previous.internal.unready_since = Some(Time(at(-600)));
    }),
];

const CAPACITIES: [Case; 8] = [
    ("pods are pending", |world| {
        world.set_capacity("eu", 1);
        world.now = 130;
    }),
    ("pods are unschedulable", |world| {
        world.set_capacity("eu", 1);
        let message = "0/3 nodes are available".to_owned();
        eu(world).view.pods.unscheduled_message = Some(message);
        world.now = 200;
    }),
    ("pods are not created", |world| {
        let set = eu(world).view.workload.as_mut().unwrap();
        (
            set.status_replicas,
            set.ready_replicas,
            set.available_replicas,
        ) = (2, 2, 2);
        set.fully_labeled_replicas = 2;
        set.replica_failure = Some(Box::new(ReplicaFailure {
            since: Some(at(90)),
            message: "exceeded quota".to_owned(),
        }));
        eu(world).view.pods.active = 2;
        eu(world).view.pods.ready = 2;
    }),
    ("nobody creates the pods", |world| {
        let set = eu(world).view.workload.as_mut().unwrap();
        (
            set.status_replicas,
            set.ready_replicas,
            set.available_replicas,
        ) = (2, 2, 2);
        (set.fully_labeled_replicas, set.behind_since) = (2, Some(at(30)));
        eu(world).view.pods.active = 2;
        eu(world).view.pods.ready = 2;
    }),
    ("all are full", |world| {
        for name in ["asia", "eu", "us"] {
            world.set_capacity(name, 2);
        }
        world.now = 200;
        world.previous = world.check().status;
    }),
    ("capacity probes", |world| {
        world.set_capacity("eu", 1);
        world.now = 200;
        world.settle(1);
    }),
    ("a capacity probe is scheduled", |world| {
        world.set_capacity("eu", 1);
        world.now = 200;
        world.settle(1);
        world.now = 400;
        world.set_capacity("eu", 2);
    }),
    ("capacity is no longer a limit", |world| {
        previous(world).capacity = Some(4);
    }),
];

const WRITES: [Case; 14] = [
    ("scaled externally", |world| {
        hold(&mut world.members[1], 2, 2);
        eu(world).view.workload.as_mut().unwrap().generation = 4;
    }),
    ("deleted externally", |world| {
        eu(world).view = WorkloadView::default();
    }),
    ("changed externally", |world| {
        let set = eu(world).view.workload.as_mut().unwrap();
        (set.spec_hash, set.generation) = (LIVE + 1, 4);
    }),
    ("a new template", |world| {
        for cluster in &mut world.previous.clusters {
            cluster.internal.template = Some(TemplateRecord::new(0, LIVE));
        }
    }),
    ("adopted pods", |world| {
        eu(world)
            .view
            .workload
            .as_mut()
            .unwrap()
            .fully_labeled_replicas = 2;
        eu(world).view.pods.active = 2;
    }),
    ("contended", |world| {
        hold(&mut world.members[1], 2, 2);
        eu(world).view.workload.as_mut().unwrap().generation = 4;
        let internal = &mut previous(world).internal;
        (internal.writes.drift_count, internal.writes.repaired_time) = (5, Some(Time(at(95))));
        internal.writes.drift_manager = Some("kubectl-scale".to_owned());
    }),
    ("writes fail", |world| {
        hold(&mut world.members[1], 2, 2);
        let internal = &mut previous(world).internal;
        (
            internal.writes.write_failures,
            internal.writes.write_failure_time,
        ) = (3, Some(Time(at(95))));
        internal.writes.write_error = Some("denied by a webhook".to_owned());
    }),
    ("the creation is rejected", |world| {
        rejecting(world, RejectionKind::Rejected, "denied by a webhook");
    }),
    ("the name is taken", |world| {
        rejecting(
            world,
            RejectionKind::NameConflict,
            "the ReplicaSet is controlled by Deployment web",
        );
    }),
    ("the template is rejected", |world| {
        template_rejected(world, &[1]);
    }),
    ("all reject the template", |world| {
        template_rejected(world, &[0, 1, 2]);
    }),
    ("the set is being deleted", |world| {
        terminating(world, at(90), &["foregroundDeletion", "example.com/hold"]);
    }),
    ("the set is being deleted for long", |world| {
        terminating(world, at(10), &["example.com/hold"]);
    }),
    ("more replicas are rejected", |world| {
        world.frs = frs(15, even(true));
        let internal = &mut previous(world).internal;
        internal.writes.write_failures = 4;
        internal.writes.write_rejected_since = Some(Time(at(20)));
        internal.writes.write_failure_time = Some(Time(at(80)));
        internal.writes.write_error = Some("denied by a webhook".to_owned());
    }),
];

/// Two of three replicas run in eu, whose set is being deleted.
fn terminating(world: &mut World, since: Timestamp, finalizers: &[&str]) {
    hold(eu(world), 3, 2);
    let view = &mut eu(world).view;
    (view.pods.active, view.pods.terminating) = (2, 1);
    let set = view.workload.as_mut().unwrap();
    set.status_replicas = 2;
    set.deletion = Some(Box::new(Deletion {
        since,
        finalizers: finalizers.iter().map(ToString::to_string).collect(),
    }));
}

/// The texts of all `cases`.
fn texts(cases: &[Case]) -> String {
    let mut texts = String::new();
    for (name, change) in cases {
        let mut world = settled();
        change(&mut world);
        let decided = world.check();
        writeln!(texts, "# {name}\n{}", shown(&decided)).unwrap();
    }
    texts
}

#[test]
fn f33_texts_of_members() {
    insta::assert_snapshot!(texts(&STATES));
}

#[test]
fn f19_texts_of_placements() {
    insta::assert_snapshot!(texts(&PLACEMENTS));
}

#[test]
fn f34_texts_of_capacities() {
    insta::assert_snapshot!(texts(&CAPACITIES));
}

#[test]
fn f29_texts_of_writes() {
    insta::assert_snapshot!(texts(&WRITES));
}

#[test]
fn f6_texts_of_sets() {
    let mut world = settled();
    let overlapping = ["shop".to_owned(), "api".to_owned()];
    world.members[1].view.pods.by_template = vec![(1, 3)];
    world.members.push(running("zone", 0));
    let snapshot = Snapshot {
        overlapping: &overlapping,
        ..world.snapshot()
    };
    let decided = shown(&check(&snapshot, at(world.now)));
    let errors = [FieldError {
        field: "spec.selector".to_owned(),
        message: "does not match spec.template.metadata.labels".to_owned(),
    }];
    let invalid = |previous| InvalidFrs {
        errors: &errors,
        generation: Some(2),
        preferences_hash: &None,
        previous,
        members: &world.members,
        settings: &world.settings,
    };
    let new = fedrs_api::FederatedReplicaSetStatus::default();
    let rejected = [&world.previous, &new].map(|previous| {
        let refresh = reject(&invalid(previous), at(world.now));
        shown_refresh(&refresh)
    });
    insta::assert_snapshot!(format!(
        "{decided}\n# invalid\n{}",
        rejected.join("\n# invalid and new\n")
    ));
}
