//! One check over 3 and over 100 members: `cargo bench -p federation-controller` (aim: at most 5 µs and 120 µs).
//!
//! `settled` finds everything in place; in `moving` two of three clusters hold too many or too few; in `full` one cluster
//! has no room for all of its replicas, in `crowded` every tenth.

use std::time::Duration;

use cluster_informer::{Health, PodCounts, SetFact, SetView, Sync};
use divan::{Bencher, black_box};
use federation_controller::check::{
    CheckSettings, Member, Outcome, Outcomes, SetChange, Snapshot, check, remember,
};
use fedrs_api::{FederatedReplicaSetStatus, SetKey, ValidFrs};
use jiff::Timestamp;
use serde_json::json;

const MEMBERS: [u32; 2] = [3, 100];
/// Replicas for each member.
const EACH: u32 = 10;
/// Hashes of the local sets' spec: as it is wanted, and as members show it.
const WANTED: u64 = 0xabc;
const LIVE: u64 = 0xdef;

fn main() {
    divan::main();
}

/// A set and all that its check looks at.
struct World {
    frs: ValidFrs,
    members: Vec<Member>,
    memory: FederatedReplicaSetStatus,
    settings: CheckSettings,
    now: Timestamp,
}

impl World {
    /// A set that runs where it should, and whose last check said so.
    fn settled(count: u32) -> Self {
        let now = Timestamp::from_second(1_800_000_000).expect("a time of this age");
        let object = json!({
            "apiVersion": "fedrs.dev/v1alpha1",
            "kind": "FederatedReplicaSet",
            "metadata": { "name": "web", "namespace": "default", "uid": "u-1", "generation": 1 },
            "spec": {
                "replicas": count * EACH,
                "placement": { "rebalance": true, "clusters": { "*": { "weight": 1 } } },
                "selector": { "matchLabels": { "app": "web" } },
                "template": {
                    "metadata": { "labels": { "app": "web" } },
                    "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
                },
            },
        });
        let object = serde_json::from_value(object).expect("the fields of a set");
        let mut world = Self {
            frs: ValidFrs::check(&object).expect("a valid set"),
            members: (0..count).map(|i| member(i, now)).collect(),
            memory: FederatedReplicaSetStatus::default(),
            settings: CheckSettings::default(),
            now,
        };
        for member in &mut world.members {
            hold(member, EACH, EACH);
        }
        world.remember();
        world
    }

    /// The set in the middle of a move: every third member has too many, and the next one too few.
    fn moving(count: u32) -> Self {
        let mut world = Self::settled(count);
        for (i, member) in world.members.iter_mut().enumerate() {
            let replicas = [EACH + EACH / 2, EACH / 2, EACH][i % 3];
            hold(member, replicas, replicas);
        }
        world.remember();
        world
    }

    /// One in `of` members has pods that wait for a node, for longer than the limit.
    fn full(count: u32, of: usize) -> Self {
        let mut world = Self::settled(count);
        let since = world.now - Duration::from_secs(600);
        for member in world.members.iter_mut().step_by(of) {
            let waiting = EACH / 2;
            hold(member, EACH, EACH - waiting);
            member.view.pods.unscheduled = waiting;
            member.view.pods.waiting = vec![(since, waiting)];
        }
        world.remember();
        world
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

    /// Makes what a check answers the memory, as if its writes had been carried out and nothing had come of them yet.
    fn remember(&mut self) {
        let decided = check(&self.snapshot(), self.now);
        let written = |member: &Member| {
            let set = member.view.set.clone().expect("every member has a set");
            (member.name.clone(), Outcome::Written(set))
        };
        let outcomes: Outcomes = self.members.iter().map(written).collect();
        self.memory = decided.status;
        remember(
            &mut self.memory,
            &outcomes,
            WANTED,
            self.now,
            &self.settings,
        );
    }
}

fn member(number: u32, now: Timestamp) -> Member {
    Member {
        name: format!("cluster-{number:04}"),
        schedulable: true,
        draining: false,
        grace_period: Duration::from_secs(60),
        joined: now - Duration::from_secs(3600),
        removed: None,
        unusable: None,
        health: Health::Healthy,
        sync: Sync::Synced,
        busy: false,
        view: SetView::default(),
    }
}

/// Gives `member` a set of `replicas`, of which `ready` are ready.
fn hold(member: &mut Member, replicas: u32, ready: u32) {
    member.view.set = Some(SetFact {
        key: SetKey::new("default", "web"),
        uid: format!("2a9f1a4e-7d2c-4b1e-9d0a-{}", member.name),
        resource_version: "1234567".into(),
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

#[divan::bench(args = MEMBERS)]
fn settled(bencher: Bencher<'_, '_>, count: u32) {
    let world = World::settled(count);
    assert!(check(&world.snapshot(), world.now).actions.is_empty());
    run(bencher, &world);
}

#[divan::bench(args = MEMBERS)]
fn moving(bencher: Bencher<'_, '_>, count: u32) {
    let world = World::moving(count);
    let decided = check(&world.snapshot(), world.now);
    assert!(decided.moving && scales(&decided.actions) > 0);
    run(bencher, &world);
}

#[divan::bench(args = MEMBERS)]
fn full(bencher: Bencher<'_, '_>, count: u32) {
    run_full(bencher, &World::full(count, usize::MAX));
}

#[divan::bench(args = MEMBERS)]
fn crowded(bencher: Bencher<'_, '_>, count: u32) {
    run_full(bencher, &World::full(count, 10));
}

fn run_full(bencher: Bencher<'_, '_>, world: &World) {
    let decided = check(&world.snapshot(), world.now);
    assert!(decided.status.clusters[0].capacity.is_some());
    run(bencher, world);
}

fn scales(actions: &[federation_controller::check::Action]) -> usize {
    let is_scale = |change: &SetChange| matches!(change, SetChange::Scale { .. });
    actions
        .iter()
        .filter(|action| is_scale(&action.change))
        .count()
}

fn run(bencher: Bencher<'_, '_>, world: &World) {
    let snapshot = world.snapshot();
    bencher.bench_local(|| check(black_box(&snapshot), world.now));
}
