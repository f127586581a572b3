//! One step over 1,000 pods: `cargo bench -p replica-set-controller --bench step` (aim: below 150 µs).
//!
//! `settled` finds everything in place; in `begin` all pods are outdated, and a quarter of them begins to be updated; in `rolling` this
//! quarter is recorded and is being updated; in `evicting` a quarter is to be evicted; `grow` creates 500 pods, and `shrink` removes as
//! many. In `migrating` and `copying` all pods have MigrationRequests, of which one begins, and how far each is, is told as well: ten of these
//! are a pass over 10,000 requests.

#![expect(
    clippy::large_types_passed_by_value,
    reason = "scenarios make one pod out of another"
)]

use std::{collections::BTreeMap, time::Duration};

use divan::{Bencher, black_box};
use federated_rollout::{Amount, Speed};
use fedrs_api::{
    AllowedChanges, LocalRecord, MigrationMethod, MigrationPhase, MigrationPolicySpec,
    ValidMigrationPolicy,
};
use jiff::Timestamp;
use replica_set_controller::{
    Change, Confirmed, Created, Disruptions, Eviction, EvictionBy, Gate, Guard, InPlace, Life,
    MigrationStates, Node, Owner, Patch, Pod, Policy, Readiness, RequestedMigration, Resize, Set,
    SlowStart, step,
};

const PODS: usize = 1000;
const TARGET: u32 = 2;

fn main() {
    divan::main();
}

/// A set, its pods and its record.
struct World {
    names: Vec<[String; 2]>,
    replicas: usize,
    changes: BTreeMap<u32, Change>,
    record: LocalRecord,
    slow_start: SlowStart,
    pod: fn(usize, Pod<'static>) -> Pod<'static>,
}

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).expect("it is a time")
}

fn earlier(seconds: i64) -> Timestamp {
    now() - jiff::SignedDuration::from_secs(seconds)
}

impl World {
    fn new(pod: fn(usize, Pod<'static>) -> Pod<'static>) -> Self {
        let images = [("web".to_owned(), "web:2".to_owned())];
        let patch = Patch {
            images: images.into(),
            ..Patch::default()
        };
        // As random as those of pods, and of their length.
        let uid = |index: usize| format!("{:032x}0123", (index as u128 + 1).wrapping_pow(40));
        Self {
            names: (0..PODS)
                .map(|index| [format!("web-{index:05}"), uid(index)])
                .collect(),
            replicas: PODS,
            changes: [(1, Change::InPlace(patch))].into(),
            record: LocalRecord::default(),
            slow_start: SlowStart::default(),
            pod,
        }
    }

    fn run(&self, bencher: Bencher<'_, '_>) {
        let set = self.set();
        let pods = self.pods();
        let decide = || {
            step(
                black_box(&set),
                black_box(&pods),
                &Disruptions::default(),
                (&self.record, &self.slow_start),
                now(),
            )
        };
        bencher.bench_local(decide);
    }

    /// What was begun is recorded.
    fn recorded(mut self) -> Self {
        let set = self.set();
        let record = step(
            &set,
            &self.pods(),
            &Disruptions::default(),
            (&self.record, &self.slow_start),
            now(),
        )
        .record;
        self.record = record;
        self
    }

    fn set(&self) -> Set<'_> {
        Set {
            name: "web",
            uid: "0b0d1f0e-4a54-4b6f-9d53-0123456789ab",
            replicas: self.replicas,
            min_ready: Duration::from_secs(10),
            progress_deadline: Some(Duration::from_secs(600)),
            max_unavailable: Amount::Percent(25),
            availability_limit: None,
            speed: Some(Speed {
                portion: 500,
                min_delay: Duration::from_secs(30),
            }),
            allowed: AllowedChanges::All,
            is_deleted: false,
            removal_timeout: Duration::from_secs(1800),
            drain: Duration::ZERO,
            migration: Policy::None,
            eviction_timeout: Duration::from_secs(600),
            target: TARGET,
            changes: &self.changes,
        }
    }

    fn pods(&self) -> Vec<Pod<'_>> {
        let pods = self.names.iter().enumerate().map(|(index, [name, uid])| {
            let age = i64::try_from(index).expect("it is small");
            let pod = Pod {
                name: "",
                uid: "",
                revision: Some(TARGET),
                owner: Owner::Set,
                node: Some(Node {
                    name: "node",
                    is_ready: true,
                    is_cordoned: false,
                }),
                life: Life::Live(Readiness::Ready {
                    since: earlier(900 + age),
                }),
                eviction: None,
                eviction_by: EvictionBy::Pod,
                absence: None,
                migration: None,
                shard: None,
                guard: Guard::Absent,
                is_gated: false,
                is_destroyed: false,
                is_disrupted: false,
                deletion_cost: 0,
                created: earlier(1000 + age),
                restarts: 0,
                is_refused: false,
                gate: Gate::Open,
                in_place: InPlace::Settled,
                resize: Resize::Settled,
                is_crowded: false,
                is_resizable: true,
            };
            Pod {
                name,
                uid,
                ..(self.pod)(index, pod)
            }
        });
        pods.collect()
    }
}

fn outdated(_: usize, pod: Pod<'static>) -> Pod<'static> {
    Pod {
        revision: Some(1),
        ..pod
    }
}

#[divan::bench]
fn settled(bencher: Bencher<'_, '_>) {
    World::new(|_, pod| pod).run(bencher);
}

#[divan::bench]
fn begin(bencher: Bencher<'_, '_>) {
    World::new(outdated).run(bencher);
}

#[divan::bench]
fn rolling(bencher: Bencher<'_, '_>) {
    World::new(outdated).recorded().run(bencher);
}

#[divan::bench]
fn evicting(bencher: Bencher<'_, '_>) {
    let world = World::new(|index, pod| Pod {
        eviction: (index % 4 == 0).then_some(Eviction::Voluntary),
        ..pod
    });
    world.recorded().run(bencher);
}

/// All pods have to leave, by a policy with this method.
fn migrate(bencher: Bencher<'_, '_>, method: MigrationMethod) {
    let spec = MigrationPolicySpec {
        method,
        ..MigrationPolicySpec::default()
    };
    let policy = ValidMigrationPolicy::check(&spec).expect("it is valid");
    let world = World::new(|_, pod| Pod {
        eviction: Some(Eviction::Voluntary),
        migration: Some(RequestedMigration {
            deadline: earlier(-7 * 24 * 3600),
            is_compaction: false,
            confirmed: Confirmed::default(),
        }),
        ..pod
    });
    let set = Set {
        migration: Policy::Is(&policy),
        ..world.set()
    };
    let pods = world.pods();
    let disruptions = Disruptions::default();
    bencher.bench_local(|| {
        let known = (&world.record, &world.slow_start);
        let plan = step(
            black_box(&set),
            black_box(&pods),
            &disruptions,
            known,
            now(),
        );
        let states = MigrationStates::new(&set, &pods, (&plan, &plan.record), now());
        let phases = pods
            .iter()
            .map(|pod| states.of(pod.uid, pod.name, false).phase);
        phases
            .filter(|phase| *phase == MigrationPhase::WaitingForBudget)
            .count()
    });
}

#[divan::bench]
fn migrating(bencher: Bencher<'_, '_>) {
    migrate(bencher, MigrationMethod::Move);
}

#[divan::bench]
fn copying(bencher: Bencher<'_, '_>) {
    migrate(bencher, MigrationMethod::Copy);
}

#[divan::bench]
fn grow(bencher: Bencher<'_, '_>) {
    let mut world = World::new(|_, pod| pod);
    world.replicas = PODS + 500;
    for _ in 0..9 {
        let outcome = Created {
            created: vec!["web".to_owned()],
            has_more: true,
            ..Created::default()
        };
        world.slow_start.record(outcome, now());
    }
    world.run(bencher);
}

#[divan::bench]
fn shrink(bencher: Bencher<'_, '_>) {
    let mut world = World::new(|_, pod| pod);
    world.replicas = PODS - 500;
    world.run(bencher);
}
