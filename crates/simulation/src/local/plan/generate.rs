//! The plan of a seed.
//!
//! Each seed draws which kinds of steps it has, how many and how large, before it draws the steps: runs with all faults at
//! once hide what a few of them cause (swarm testing).

use fedrs_api::annotations;
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Value, json};

use super::{
    LocalAction, LocalFault, LocalPlan, LocalSetPlan, LocalStep, edits, kind::Kind, migrations,
};

/// The seeds of plans are another stream than the seeds of the clusters.
const STREAM: u64 = 0x6c72_7300;
/// The taint of a node that is known to be down.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// The plan of `seed`.
#[must_use]
pub fn generate_local(seed: u64) -> LocalPlan {
    let mut random = StdRng::seed_from_u64(seed ^ (STREAM << 32));
    let nodes = random.random_range(2..=5);
    let sets: Vec<_> = ["web", "shop", "mail"]
        .into_iter()
        .take(*[1, 1, 1, 2, 3].choose(&mut random).unwrap_or(&1))
        .map(|name| LocalSetPlan {
            name: name.to_owned(),
            spec: edits::spec_of(name, nodes, &mut random),
        })
        .collect();
    let mut generator = Generator {
        nodes,
        names: sets.iter().map(|set| set.name.clone()).collect(),
        candidates: if random.random_bool(0.5) { 2 } else { 1 },
        longest_ms: *[1_000, 10_000, 60_000].choose(&mut random).unwrap_or(&1),
        heals: random.random_bool(0.8),
        kinds: Kind::some(&mut random),
        random,
        steps: Vec::new(),
        now_ms: 0,
    };
    let end_ms = generator.draw_steps();
    let Generator {
        candidates,
        mut steps,
        mut random,
        ..
    } = generator;
    let names: Vec<_> = sets.iter().map(|set| &*set.name).collect();
    let policy = migrations::draw(seed, (&names, nodes, end_ms), &mut steps);
    steps.sort_by_key(|step| step.at_ms);
    LocalPlan {
        seed,
        nodes,
        policy,
        pods_per_node: *[20, 110].choose(&mut random).unwrap_or(&20),
        candidates,
        sets,
        steps,
        end_ms,
        recovers: random.random_bool(0.8),
    }
}

struct Generator {
    random: StdRng,
    nodes: u32,
    names: Vec<String>,
    kinds: Vec<(Kind, u32)>,
    candidates: u32,
    /// The longest time between two steps.
    longest_ms: u64,
    /// Whether faults that last end by themselves.
    heals: bool,
    steps: Vec<LocalStep>,
    now_ms: u64,
}

impl Generator {
    /// Draws all steps. Returns when they have ended.
    fn draw_steps(&mut self) -> u64 {
        // Most runs begin with sets that are as they should be.
        self.now_ms = *[500, 60_000, 60_000, 60_000]
            .choose(&mut self.random)
            .unwrap_or(&500);
        for _ in 0..self.random.random_range(3..=24) {
            self.draw_step();
            self.now_ms += self.pause_ms();
        }
        let last = self.steps.iter().map(|step| step.at_ms).max();
        last.unwrap_or_default().max(self.now_ms) + 30_000
    }

    fn pause_ms(&mut self) -> u64 {
        let longest = match self.random.random_range(0..3) {
            0 => 300,
            1 => self.longest_ms.min(5_000),
            _ => self.longest_ms,
        };
        self.random.random_range(1..=longest)
    }

    fn add(&mut self, action: LocalAction) {
        self.add_after(0, action);
    }

    fn add_after(&mut self, ms: u64, action: LocalAction) {
        let at_ms = self.now_ms + ms;
        self.steps.push(LocalStep { at_ms, action });
    }

    /// Adds what ends a fault, if it ends by itself.
    fn end_later(&mut self, action: LocalAction) {
        if self.heals {
            let ms = *[2_000, 20_000, 120_000]
                .choose(&mut self.random)
                .unwrap_or(&1);
            let after = self.random.random_range(100..=ms);
            self.add_after(after, action);
        }
    }

    fn set(&mut self) -> String {
        let name = self.names.choose(&mut self.random);
        name.cloned().unwrap_or_default()
    }

    fn draw_step(&mut self) {
        let total = self.kinds.iter().map(|(_, weight)| weight).sum();
        let mut drawn = self.random.random_range(0..total);
        let chosen = self.kinds.iter().find(|(_, weight)| {
            let is_it = drawn < *weight;
            drawn = drawn.saturating_sub(*weight);
            is_it
        });
        let Some((kind, _)) = chosen.copied() else {
            return;
        };
        match kind {
            Kind::Scale => self.edit(edits::scale),
            Kind::Image => self.edit(edits::image),
            Kind::Template => self.edit(edits::template),
            Kind::BadImage => self.edit(edits::bad_image),
            Kind::Strategy => self.edit(edits::strategy),
            Kind::Constraints => {
                let nodes = self.nodes;
                self.edit(|random| edits::constraints(nodes, random));
            }
            Kind::Pause => self.edit(edits::pause),
            Kind::Lifecycle => self.draw_lifecycle(),
            Kind::PodEviction | Kind::PodDeletion | Kind::PodLabels => self.draw_pod_change(kind),
            Kind::StrangePod => self.draw_strange_pod(),
            Kind::Drain => self.draw_drain(),
            Kind::NodeEviction | Kind::Cordon | Kind::OutOfService | Kind::Node => {
                self.draw_node_change(kind);
            }
            Kind::NodeDeletion => self.draw_node_deletion(),
            Kind::Quota => self.draw_quota(),
            Kind::UsersBudget => self.draw_users_budget(),
            kind => self.draw_fault(kind),
        }
    }

    fn edit(&mut self, draw: impl FnOnce(&mut StdRng) -> Value) {
        let (set, spec) = (self.set(), draw(&mut self.random));
        self.add(LocalAction::EditSet { set, spec });
    }

    fn draw_lifecycle(&mut self) {
        let set = self.set();
        let orphan = self.random.random_bool(0.5);
        self.add(LocalAction::DeleteSet {
            set: set.clone(),
            orphan,
        });
        if self.random.random_bool(0.7) {
            let after = self.random.random_range(100..10_000);
            self.add_after(after, LocalAction::CreateSet { set });
        }
    }

    fn draw_pod_change(&mut self, kind: Kind) {
        let (set, index) = (self.set(), self.random.random_range(0..12));
        let patch = match kind {
            Kind::PodDeletion => return self.add(LocalAction::DeletePod { set, index }),
            Kind::PodEviction => {
                let place = if self.random.random_bool(0.5) {
                    "annotations"
                } else {
                    "labels"
                };
                let asked = ["true", "Involuntary"].choose(&mut self.random);
                json!({ "metadata": { place: { annotations::EVICT: asked } } })
            }
            _ if self.releases() >= edits::RELEASED => return,
            _ => edits::released(),
        };
        self.add(LocalAction::EditPod { set, index, patch });
    }

    /// How many pods leave their set.
    fn releases(&self) -> usize {
        let released = edits::released();
        let is_release = |step: &&LocalStep| match &step.action {
            LocalAction::EditPod { patch, .. } => *patch == released,
            _ => false,
        };
        self.steps.iter().filter(is_release).count()
    }

    fn draw_strange_pod(&mut self) {
        let action = LocalAction::CreatePod {
            set: self.set(),
            suffix: format!("strange{}", self.random.random_range(0..3)),
            is_controlled: self.random.random_bool(0.5),
        };
        self.add(action);
    }

    /// A drain tries again and again.
    fn draw_drain(&mut self) {
        let (set, pods) = (self.set(), self.random.random_range(1..=4));
        let every_ms = *[50, 500, 5_000].choose(&mut self.random).unwrap_or(&500);
        for attempt in 0..self.random.random_range(1..=8) {
            let set = set.clone();
            self.add_after(attempt * every_ms, LocalAction::EvictPods { set, pods });
        }
    }

    fn draw_node_change(&mut self, kind: Kind) {
        let node = self.random.random_range(0..self.nodes);
        if kind == Kind::Node {
            self.add(LocalAction::Node { node, fails: true });
            let back = LocalAction::Node { node, fails: false };
            return self.end_later(back);
        }
        let (begins, ends) = match kind {
            Kind::NodeEviction => {
                let asked = ["true", "Involuntary"].choose(&mut self.random);
                let label = |asked: Option<&&str>| json!({ "metadata": { "labels": { annotations::EVICT: asked } } });
                (label(asked), label(None))
            }
            Kind::Cordon => (
                json!({ "spec": { "unschedulable": true } }),
                json!({ "spec": { "unschedulable": null } }),
            ),
            _ => {
                let taint = json!({ "key": OUT_OF_SERVICE, "effect": "NoExecute" });
                (
                    json!({ "spec": { "taints": [taint] } }),
                    json!({ "spec": { "taints": null } }),
                )
            }
        };
        let patch = begins;
        self.add(LocalAction::EditNode { node, patch });
        self.end_later(LocalAction::EditNode { node, patch: ends });
    }

    fn draw_node_deletion(&mut self) {
        let node = self.random.random_range(0..self.nodes);
        let object = |exists| LocalAction::NodeObject { node, exists };
        self.add(object(false));
        self.end_later(object(true));
    }

    fn draw_quota(&mut self) {
        let pods = Some(self.random.random_range(0..20));
        self.add(LocalAction::Quota { pods });
        self.end_later(LocalAction::Quota { pods: None });
    }

    fn draw_users_budget(&mut self) {
        let set = self.set();
        let budget = |exists| LocalAction::Budget {
            set: set.clone(),
            exists,
        };
        self.add(budget(true));
        self.end_later(budget(false));
    }

    fn draw_fault(&mut self, kind: Kind) {
        match kind {
            Kind::Switch(fault) => self.draw_switch(fault),
            Kind::Slow => {
                let ms = *[10, 100, 1_000, 3_000]
                    .choose(&mut self.random)
                    .unwrap_or(&10);
                self.add(LocalAction::Slow { ms });
                self.end_later(LocalAction::Slow { ms: 0 });
            }
            Kind::Rejections => {
                let (resource, verb, times) = self.requests();
                let codes = [403, 409, 429, 500, 503];
                let code = *codes.choose(&mut self.random).unwrap_or(&500);
                self.add(LocalAction::Reject {
                    resource,
                    verb,
                    times,
                    code,
                });
            }
            Kind::LostResponses => {
                let (resource, verb, times) = self.requests();
                self.add(LocalAction::LoseResponses {
                    resource,
                    verb,
                    times,
                });
            }
            Kind::Watches if self.random.random_bool(0.5) => self.add(LocalAction::CutWatches),
            Kind::Watches => {
                self.add(LocalAction::Compact);
                self.add(LocalAction::CutWatches);
            }
            Kind::Crash => self.draw_crash(0),
            Kind::CrashLoop => {
                for crash in 0..self.random.random_range(3..10) {
                    self.draw_crash(crash * 700);
                }
            }
            _ => {
                let action = LocalAction::Suspend {
                    process: self.process(),
                    ms: self.random.random_range(5_000..60_000),
                };
                self.add(action);
            }
        }
    }

    fn draw_switch(&mut self, fault: LocalFault) {
        self.add(LocalAction::Switch { fault, on: true });
        self.end_later(LocalAction::Switch { fault, on: false });
    }

    fn draw_crash(&mut self, after_ms: u64) {
        let action = LocalAction::Crash {
            process: self.process(),
            write: self.random.random_range(0..8),
            after: self.random.random_bool(0.6),
            down_ms: self.random.random_range(1..5_000),
        };
        self.add_after(after_ms, action);
    }

    fn process(&mut self) -> u32 {
        self.random.random_range(1..=self.candidates)
    }

    /// A kind of requests, and how many.
    fn requests(&mut self) -> (String, String, u32) {
        let requests = [
            ("pods", "create"),
            ("pods", "delete"),
            ("pods", "patch"),
            ("localreplicasets", "patch"),
            ("localreplicasets", "update"),
            ("poddisruptionbudgets", "create"),
            ("poddisruptionbudgets", "patch"),
            ("controllerrevisions", "create"),
        ];
        let (resource, verb) = *requests.choose(&mut self.random).unwrap_or(&requests[0]);
        let times = self.random.random_range(1..=6);
        (resource.to_owned(), verb.to_owned(), times)
    }
}
