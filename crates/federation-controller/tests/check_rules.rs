//! The rules of a check as tables, by number: pure, without a cluster.

#![expect(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "helpers of tests: short calls, and a test that can't go on ends"
)]

use std::time::Duration;

use cluster_informer::{Health, PodCounts, ReplicaFailure, SetFact, SetView, Sync};
use federation_controller::check::{
    Action, Check, CheckSettings, Member, Outcome, Outcomes, SetChange, Snapshot, TemplateRecord,
    check, remember,
};
use fedrs_api::{FederatedReplicaSetStatus, SetKey, ValidFrs};
use jiff::Timestamp;
use serde_json::{Value, json};

const WANTED: u64 = 0xabc;
const LIVE: u64 = 0xdef;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn frs(replicas: i32, placement: Value) -> ValidFrs {
    frs_with(json!({ "replicas": replicas, "placement": placement }))
}

fn frs_with(extra: Value) -> ValidFrs {
    let mut object = json!({
        "apiVersion": "fedrs.dev/v1alpha1",
        "kind": "FederatedReplicaSet",
        "metadata": { "name": "web", "namespace": "default", "uid": "u-1", "generation": 1 },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
            },
        },
    });
    for (field, value) in extra.as_object().unwrap() {
        object["spec"][field] = value.clone();
    }
    ValidFrs::check(&serde_json::from_value(object).unwrap()).unwrap()
}

fn even(rebalance: bool) -> Value {
    json!({ "rebalance": rebalance, "clusters": { "*": { "weight": 1 } } })
}

/// A member that runs all of its `replicas`, or has no set if there are none.
fn running(name: &str, replicas: u32) -> Member {
    let mut member = Member {
        name: name.to_owned(),
        schedulable: true,
        grace_period: Duration::from_secs(60),
        joined: at(-3600),
        removed: None,
        unusable: None,
        health: Health::Healthy,
        sync: Sync::Synced,
        busy: false,
        view: SetView::default(),
    };
    if replicas > 0 {
        hold(&mut member, replicas, replicas);
    }
    member
}

/// Gives `member` a set of `replicas`, of which `ready` are ready.
fn hold(member: &mut Member, replicas: u32, ready: u32) {
    member.view.set = Some(SetFact {
        key: SetKey::new("default", "web"),
        uid: format!("uid-{}", member.name),
        resource_version: "7".into(),
        generation: 3,
        observed_generation: 3,
        replicas,
        current: replicas,
        ready,
        available: ready,
        fully_labeled: replicas,
        replica_failure: None,
        spec_hash: LIVE,
        floor: replicas,
        federation: "f".into(),
        deleting: false,
        controlled: false,
    });
    member.view.pods = PodCounts {
        present: replicas,
        ready,
        ..PodCounts::default()
    };
}

/// One member after another, in a little world where every write succeeds and every replica with room runs.
#[derive(Clone)]
struct World {
    frs: ValidFrs,
    members: Vec<Member>,
    /// Nodes' room per member; unlimited if absent.
    room: std::collections::BTreeMap<String, u32>,
    memory: FederatedReplicaSetStatus,
    settings: CheckSettings,
    now: i64,
}

impl World {
    fn new(frs: ValidFrs, names: &[&str]) -> Self {
        Self {
            frs,
            members: names.iter().map(|name| running(name, 0)).collect(),
            room: std::collections::BTreeMap::new(),
            memory: FederatedReplicaSetStatus::default(),
            settings: CheckSettings::default(),
            now: 0,
        }
    }

    fn snapshot(&self) -> Snapshot<'_> {
        Snapshot {
            frs: &self.frs,
            wanted_spec_hash: WANTED,
            memory: &self.memory,
            members: &self.members,
            overlapping: &[],
            settings: &self.settings,
            observe_only: false,
        }
    }

    fn check(&self) -> Check {
        check(&self.snapshot(), at(self.now))
    }

    /// Checks and carries out; pods without room wait from then on, the others run at once.
    fn step(&mut self) -> Check {
        let decided = self.check();
        let mut outcomes = Outcomes::new();
        for Action {
            member: name,
            change,
            ..
        } in &decided.actions
        {
            let member = self.members.iter_mut().find(|it| it.name == *name).unwrap();
            let replicas = match change {
                SetChange::Create { replicas } | SetChange::Overwrite { replicas, .. } => *replicas,
                SetChange::Scale { to, .. } => *to,
            };
            let room = self.room.get(name).copied().unwrap_or(u32::MAX);
            let ready = replicas.min(room);
            let since = member
                .view
                .pods
                .waiting
                .first()
                .map_or(at(self.now), |it| it.0);
            hold(member, replicas, ready);
            if replicas > ready {
                member.view.pods.unscheduled = replicas - ready;
                member.view.pods.waiting = vec![(since, replicas - ready)];
            }
            outcomes.insert(
                name.clone(),
                Outcome::Written(member.view.set.clone().unwrap()),
            );
        }
        self.memory = decided.status.clone();
        remember(
            &mut self.memory,
            &outcomes,
            WANTED,
            at(self.now),
            &self.settings,
        );
        decided
    }

    /// Steps, `seconds` apart, until a step changes nothing; answers the largest surplus of asked replicas.
    fn settle(&mut self, seconds: i64) {
        for _ in 0..200 {
            if self.step().actions.is_empty() {
                return;
            }
            self.now += seconds;
        }
        panic!("no end: {:#?}", self.memory.clusters);
    }

    fn placed(&self) -> Vec<u32> {
        self.members
            .iter()
            .map(|it| it.view.set.as_ref().map_or(0, |set| set.replicas))
            .collect()
    }

    fn ready(&self) -> u32 {
        self.members
            .iter()
            .map(|it| it.view.set.as_ref().map_or(0, |set| set.ready))
            .sum()
    }

    fn set_room(&mut self, name: &str, room: u32) {
        self.room.insert(name.to_owned(), room);
        let member = self.members.iter_mut().find(|it| it.name == name).unwrap();
        let Some(replicas) = member.view.set.as_ref().map(|set| set.replicas) else {
            return;
        };
        let since = member
            .view
            .pods
            .waiting
            .first()
            .map_or(at(self.now), |it| it.0);
        let ready = replicas.min(room);
        hold(member, replicas, ready);
        if replicas > ready {
            member.view.pods.unscheduled = replicas - ready;
            member.view.pods.waiting = vec![(since, replicas - ready)];
        }
    }
}

fn desired(check: &Check) -> Vec<i32> {
    check.status.clusters.iter().map(|it| it.desired).collect()
}

fn condition<'a>(check: &'a Check, type_: &str) -> &'a str {
    check
        .status
        .conditions
        .iter()
        .find(|it| it.type_ == type_)
        .map_or("", |it| it.status.as_str())
}

#[test]
fn f21_a_new_set_is_created_everywhere_at_once() {
    let world = World::new(frs(50, even(true)), &["a", "b", "c"]);
    let decided = world.check();
    let mut created: Vec<u32> = decided
        .actions
        .iter()
        .map(|action| match action.change {
            SetChange::Create { replicas } => replicas,
            ref other => panic!("{other:?}"),
        })
        .collect();
    created.sort_unstable();
    assert_eq!(created, [16, 17, 17]);
    assert!(
        decided.next_check.is_some(),
        "looked at again until it runs"
    );
}

#[test]
fn f27_a_settled_set_is_left_alone() {
    let mut world = World::new(frs(50, even(true)), &["a", "b", "c"]);
    world.settle(1);
    let decided = world.check();
    assert_eq!(decided.actions, []);
    assert_eq!(decided.next_check, None);
    assert_eq!(condition(&decided, "Ready"), "True");
    assert_eq!(condition(&decided, "Placed"), "True");
    assert_eq!(condition(&decided, "Progressing"), "False");
    assert_eq!(decided.status.summary, "3/3");
}

#[test]
fn f34_a_full_cluster_keeps_a_couple_waiting_and_others_get_the_rest() {
    let mut world = World::new(frs(50, even(true)), &["a", "b", "c"]);
    world.set_room("c", 6);
    world.step();
    assert_eq!(world.check().actions, [], "waiting is normal for X");
    assert_eq!(
        world.check().next_check,
        Some(at(60)),
        "looked at when X is over"
    );
    world.now = 60;
    world.settle(1);
    assert_eq!(world.placed(), [22, 22, 8], "6 and two that wait");
    assert_eq!(world.ready(), 50);
    assert_eq!(desired(&world.check()), [22, 22, 6]);
}

#[test]
fn f34_room_is_regained_by_doubling_and_without_a_dip() {
    let mut world = World::new(frs(50, even(true)), &["a", "b", "c"]);
    world.set_room("c", 6);
    world.step();
    world.now = 60;
    world.settle(1);
    world.now += 600;
    world.set_room("c", 40);
    let mut grown = vec![];
    for _ in 0..20 {
        world.step();
        assert!(world.ready() >= 50, "{:?}", world.placed());
        world.set_room("c", 40);
        grown.push(world.placed()[2]);
        world.now += 1;
    }
    let mut layout = world.placed();
    layout.sort_unstable();
    assert_eq!(layout, [16, 17, 17], "{grown:?}");
    assert!(grown.len() <= 20, "{grown:?}");
    assert_eq!(world.check().actions, []);
}

#[test]
fn f34_a_failed_try_backs_off_and_does_not_swing() {
    let mut world = World::new(frs(50, even(true)), &["a", "b", "c"]);
    world.set_room("c", 6);
    world.step();
    world.now = 60;
    world.settle(1);
    world.now += 600;
    world.set_room("c", 8);
    let mut history = vec![world.placed()];
    for _ in 0..600 {
        world.step();
        world.set_room("c", 8);
        if history.last() != Some(&world.placed()) {
            history.push(world.placed());
        }
        world.now += 10;
        assert!(world.ready() >= 50);
    }
    assert!(history.len() < 12, "a bounded number of moves: {history:?}");
    assert_eq!(world.placed(), [21, 21, 10]);
}

#[test]
fn f34_where_all_are_full_nothing_swings_and_room_anywhere_is_noticed() {
    for rebalance in [true, false] {
        let names = ["a", "b", "c"];
        let mut world = World::new(frs(20, even(rebalance)), &names);
        for name in names {
            world.set_room(name, 6);
        }
        let mut history = vec![world.placed()];
        for _ in 0..600 {
            world.step();
            for name in names {
                world.set_room(name, 6);
            }
            if history.last() != Some(&world.placed()) {
                history.push(world.placed());
            }
            world.now += 10;
        }
        assert!(history.len() < 6, "a bounded number of moves: {history:?}");
        let status = world.check().status;
        assert_eq!(status.unplaced, 2);
        for name in names {
            let mut world = world.clone();
            for _ in 0..20 {
                world.set_room(name, 40);
                world.step();
                world.now += 10;
            }
            assert_eq!(world.ready(), 20, "{name}: {:?}", world.placed());
        }
    }
}

#[test]
fn f34_rebalance_false_takes_nothing_back_when_room_appears() {
    let mut world = World::new(frs(50, even(false)), &["a", "b", "c"]);
    world.set_room("c", 6);
    world.step();
    world.now = 60;
    world.settle(1);
    assert_eq!(world.placed(), [22, 22, 8]);
    world.set_room("c", 40);
    world.now += 60;
    world.settle(1);
    assert_eq!(
        world.placed(),
        [22, 22, 6],
        "what runs stays, and nothing waits any more"
    );
}

#[test]
fn f18_what_finds_no_room_anywhere_stays_and_is_reported() {
    let mut world = World::new(frs(50, even(true)), &["a", "b", "c"]);
    for name in ["a", "b", "c"] {
        world.set_room(name, 10);
    }
    world.step();
    let first = world.placed();
    world.now = 60;
    world.settle(1);
    assert_eq!(
        world.placed(),
        first,
        "nobody can take them: they stay where they wait"
    );
    let decided = world.check();
    assert_eq!(decided.status.unplaced, 20);
    assert_eq!(condition(&decided, "Placed"), "False");
}

#[test]
fn f32_pods_that_could_not_be_created_count_as_failed_once_the_status_is_current() {
    let mut world = World::new(frs(50, even(true)), &["a", "b", "c"]);
    world.settle(1);
    let set = world.members[2].view.set.as_mut().unwrap();
    (set.current, set.ready, set.available) = (6, 6, 6);
    set.replica_failure = Some(ReplicaFailure {
        since: at(0),
        message: "quota".into(),
    });
    world.now = 61;
    set.observed_generation = 2;
    assert_eq!(
        world.check().actions,
        [],
        "the status answers an older spec"
    );
    world.members[2]
        .view
        .set
        .as_mut()
        .unwrap()
        .observed_generation = 3;
    assert_eq!(desired(&world.check()), [22, 22, 6]);
}

#[test]
fn f33_a_lost_cluster_is_replaced_after_its_grace_period_and_taken_back() {
    for rebalance in [true, false] {
        let mut world = World::new(frs(50, even(rebalance)), &["a", "b", "c"]);
        world.settle(1);
        world.now = 100;
        let message = "connection refused".to_owned();
        world.members[1].health = Health::Unreachable {
            since: at(100),
            message,
        };
        assert_eq!(
            world.check().actions,
            [],
            "within the grace period nothing moves"
        );
        assert_eq!(world.check().next_check, Some(at(160)));
        world.now = 160;
        world.settle(1);
        assert_eq!((world.placed()[0], world.placed()[2]), (25, 25));
        assert_eq!(world.ready() - world.placed()[1], 50);

        world.members[1].health = Health::Healthy;
        world.settle(1);
        assert_eq!(
            world.ready(),
            50,
            "the surplus is taken back: {:?}",
            world.placed()
        );
        let mut layout = world.placed();
        layout.sort_unstable();
        assert_eq!(layout, [16, 17, 17], "rebalance {rebalance}");
    }
}

#[test]
fn f39_nothing_is_scaled_down_while_a_view_is_stale() {
    let stale = [
        (Health::Healthy, Sync::Stale { since: at(-100) }),
        (Health::Healthy, Sync::NotSynced),
        (
            Health::Unauthorized {
                message: "401".into(),
            },
            Sync::Synced,
        ),
        (
            Health::Failing {
                since: at(0),
                message: "timeout".into(),
            },
            Sync::Synced,
        ),
    ];
    for (health, sync) in stale {
        let mut world = World::new(frs(50, even(true)), &["a", "b", "c"]);
        world.settle(1);
        hold(&mut world.members[0], 27, 27);
        (world.members[1].health, world.members[1].sync) = (health.clone(), sync);
        let downs: Vec<_> = world
            .check()
            .actions
            .into_iter()
            .filter(|it| matches!(it.change, SetChange::Scale { from, to, .. } if to < from))
            .collect();
        assert_eq!(downs, [], "{health:?} {sync:?}");
    }
}

#[test]
fn f23_a_member_that_was_just_added_is_waited_for_a_little() {
    let mut world = World::new(frs(50, even(true)), &["a", "b", "c"]);
    world.members[2].health = Health::Unknown;
    world.members[2].joined = at(0);
    let decided = world.check();
    assert_eq!(
        (decided.actions, decided.next_check),
        (vec![], Some(at(10)))
    );
    world.now = 10;
    assert_eq!(
        world.check().actions.len(),
        2,
        "then the others get all of it"
    );
}

#[test]
fn f23_after_a_restart_what_was_told_stays_until_the_members_have_answered() {
    let mut world = World::new(frs(50, even(true)), &["a", "b", "c"]);
    world.settle(1);
    let views: Vec<_> = world.members.iter().map(|it| it.view.clone()).collect();
    for (member, health) in
        world
            .members
            .iter_mut()
            .zip([Health::Healthy, Health::Unknown, Health::Healthy])
    {
        member.joined = at(world.now);
        member.health = health;
        member.sync = Sync::NotSynced;
        member.view = SetView::default();
    }
    for (i, view) in views.into_iter().enumerate() {
        let decided = world.check();
        let told = (&decided.status, decided.actions.len(), decided.events.len());
        assert_eq!(told, (&world.memory, 0, 0), "{i} have answered");
        let member = &mut world.members[i];
        (member.health, member.sync) = (Health::Healthy, Sync::Synced);
        member.view = view;
    }
    let decided = world.check();
    assert_eq!((decided.status, decided.actions), (world.memory, vec![]));
}

#[test]
fn f31_a_deleted_set_is_created_again() {
    let mut world = World::new(frs(50, even(true)), &["a", "b", "c"]);
    world.settle(1);
    let before = world.placed()[1];
    world.members[1].view = SetView::default();
    let decided = world.check();
    assert_eq!(decided.actions.len(), 1);
    assert_eq!(
        decided.actions[0].change,
        SetChange::Create { replicas: before }
    );
}

#[test]
fn f29_drift_is_told_from_a_new_template() {
    let mut world = World::new(frs(50, even(true)), &["a", "b", "c"]);
    world.settle(1);
    world.members[0].view.set.as_mut().unwrap().spec_hash = 1;
    assert!(matches!(
        world.check().actions[0].change,
        SetChange::Overwrite { drifted: true, .. }
    ));
    world.members[0].view.set.as_mut().unwrap().spec_hash = LIVE;
    let mut snapshot = world.snapshot();
    snapshot.wanted_spec_hash = 5;
    let decided = check(&snapshot, at(world.now));
    assert_eq!(decided.actions.len(), 3);
    assert!(
        decided
            .actions
            .iter()
            .all(|it| matches!(it.change, SetChange::Overwrite { drifted: false, .. }))
    );
}

#[test]
fn f28_a_refused_creation_backs_off_and_its_replicas_go_elsewhere_meanwhile() {
    let mut world = World::new(frs(50, even(true)), &["a", "b", "c"]);
    let refused: Outcomes = [("c".to_owned(), Outcome::Refused("no".into()))].into();
    world.step();
    world.members[2].view = SetView::default();
    remember(&mut world.memory, &refused, WANTED, at(0), &world.settings);
    assert_eq!(world.check().actions, [], "backs off, and X is not over");
    world.now = 60;
    let decided = world.check();
    let create = SetChange::Create { replicas: 2 };
    assert!(
        decided
            .actions
            .iter()
            .any(|it| it.member == "c" && it.change == create),
        "tried with a couple: {:?}",
        decided.actions
    );
    assert_eq!(desired(&decided)[2], 0);
    world.settle(1);
    let mut layout = world.placed();
    layout.sort_unstable();
    assert_eq!(layout, [16, 17, 17], "back once it can be created");
}

#[test]
fn f20_a_scale_down_under_way_is_not_counted_on() {
    let mut world = World::new(frs(50, even(true)), &["a", "b"]);
    world.settle(1);
    hold(&mut world.members[0], 30, 30);
    world.step();
    assert_eq!(world.placed(), [25, 25]);
    // The member's controller has not caught up: its status still says 30.
    let set = world.members[0].view.set.as_mut().unwrap();
    (
        set.available,
        set.ready,
        set.current,
        set.observed_generation,
        set.generation,
    ) = (30, 30, 30, 3, 4);
    world.members[0].view.pods.ready = 30;
    hold(&mut world.members[1], 27, 22);
    assert!(
        !world
            .check()
            .actions
            .iter()
            .any(|it| it.member == "b"
                && matches!(it.change, SetChange::Scale { to, .. } if to < 25)),
        "only 25 of a's 30 will be left"
    );
}

#[test]
fn paused_changes_nothing() {
    let world = World::new(frs_with(json!({ "replicas": 5, "paused": true })), &["a"]);
    let decided = world.check();
    assert_eq!(decided.actions, []);
    assert_eq!(condition(&decided, "Paused"), "True");
}

#[test]
fn a_cordoned_member_keeps_what_it_has_and_gets_no_more() {
    let mut world = World::new(frs(30, even(true)), &["a", "b", "c"]);
    world.settle(1);
    world.members[0].schedulable = false;
    world.frs = frs(60, even(true));
    world.settle(1);
    assert_eq!(world.placed(), [10, 25, 25]);
}

#[test]
fn the_template_record_reads_what_it_wrote() {
    let record = TemplateRecord {
        wanted: 0x12,
        live: u64::MAX,
    };
    assert_eq!(TemplateRecord::parse(&record.to_string()), Some(record));
    for nonsense in ["", "x", "12", "12-", "zz-1"] {
        assert_eq!(TemplateRecord::parse(nonsense), None, "{nonsense}");
    }
}

#[test]
fn a_member_that_was_never_usable_unsettles_nothing() {
    let mut world = World::new(frs(30, even(true)), &["a", "b", "c"]);
    world.members[2].unusable = Some("no YAML".into());
    world.settle(1);
    assert_eq!(world.placed(), [15, 15, 0]);
    let decided = world.check();
    assert_eq!(decided.next_check, None);
    assert_eq!(condition(&decided, "Progressing"), "False");
    let reason = &decided.status.clusters[2].reason;
    assert!(
        reason.contains("its kubeconfig can't be used (no YAML)"),
        "{reason}"
    );
}

#[test]
fn preferences_for_clusters_that_are_no_members_are_named() {
    let clusters = json!({ "a": { "weight": 1, "maxReplicas": 2 }, "misspelt": { "weight": 1 } });
    let world = World::new(frs(5, json!({ "clusters": clusters })), &["a", "b"]);
    let decided = world.check();
    let placed = decided
        .status
        .conditions
        .iter()
        .find(|it| it.type_ == "Placed")
        .unwrap();
    assert!(
        placed.message.contains("3 of the replicas"),
        "{}",
        placed.message
    );
    assert!(
        placed.message.contains("misspelt in the preferences"),
        "{}",
        placed.message
    );
}
