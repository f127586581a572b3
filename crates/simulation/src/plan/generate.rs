//! The plan of a seed.
//!
//! Each seed draws which kinds of steps it has, how many and how large, before it draws the steps: runs with all faults at
//! once hide what a few of them cause (swarm testing).

use federation_controller::config::Config;
use fedrs_api::labels;
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Value, json};

use super::{
    Action, Fault, MemberPlan, Plan, Selected, SetPlan, Step, availability, initial, kind::Kind,
    maintenance, rollouts, trial::Trial,
};
use crate::{checks::OTHER_FEDERATION, sim_federation::HOST};

/// The seeds of plans are another stream than the seeds of the clusters.
const STREAM: u64 = 0x706c_616e;

/// The plan of `seed`, for controllers with this configuration; with `rollouts`, some of its sets are
/// FederatedDeployments, and there are Maintenances and AvailabilitySets.
#[must_use]
pub fn generate(seed: u64, config: &Config, rollouts: bool) -> Plan {
    let mut random = StdRng::seed_from_u64(seed ^ (STREAM << 32));
    let members = initial::members(&mut random);
    let sets = initial::sets(&members, &mut random);
    // An election costs requests: most runs have none.
    let candidates = if random.random_bool(0.25) { 2 } else { 0 };
    let mut generator = Generator {
        candidates,
        longest_ms: *[2_000, 20_000, 120_000].choose(&mut random).unwrap_or(&1),
        heals: random.random_bool(0.8),
        kinds: Kind::some(&mut random),
        random,
        members,
        sets,
        steps: Vec::new(),
        now_ms: 0,
    };
    let end_ms = generator.draw_steps();
    let core = generator.draw_core();
    let Generator {
        members,
        mut sets,
        mut steps,
        ..
    } = generator;
    let names: Vec<_> = members.iter().map(|member| member.name.clone()).collect();
    let set_names: Vec<_> = sets.iter().map(|set| set.name.clone()).collect();
    let trial = Trial::of(seed, &names, &set_names);
    if rollouts {
        rollouts::add(seed, &members, &mut sets, &mut steps, end_ms);
        maintenance::add(seed, &members, &mut steps, end_ms);
        availability::add(seed, &members, &sets, &mut steps, end_ms);
    }
    steps.sort_by_key(|step| step.at_ms);
    Plan {
        seed,
        config: initial::config(seed, config),
        candidates,
        discovery: false,
        trial: Some(trial),
        members,
        sets,
        steps,
        end_ms,
        core,
    }
}

struct Generator {
    random: StdRng,
    members: Vec<MemberPlan>,
    sets: Vec<SetPlan>,
    kinds: Vec<(Kind, u32)>,
    /// How many controllers there are, if there is an election.
    candidates: u32,
    /// The longest time between two steps.
    longest_ms: u64,
    /// Whether faults that last end by themselves.
    heals: bool,
    steps: Vec<Step>,
    now_ms: u64,
}

impl Generator {
    /// Draws all steps. Returns when they have ended.
    fn draw_steps(&mut self) -> u64 {
        // Most runs begin with sets that are as they should be.
        self.now_ms = *[100, 15_000, 15_000, 15_000]
            .choose(&mut self.random)
            .unwrap_or(&100);
        for _ in 0..self.random.random_range(3..=24) {
            self.draw_step();
            self.now_ms += self.pause_ms();
        }
        let last = self.steps.iter().map(|step| step.at_ms).max();
        last.unwrap_or_default().max(self.now_ms) + 30_000
    }

    /// The members that recover at the end: all, or all but one; in some runs none.
    fn draw_core(&mut self) -> Option<Vec<String>> {
        let mut names: Vec<_> = self
            .members
            .iter()
            .map(|member| member.name.clone())
            .collect();
        match self.random.random_range(0..10) {
            0..3 => return None,
            3..6 if names.len() > 2 => {
                let broken = self.random.random_range(0..names.len());
                names.remove(broken);
            }
            _ => {}
        }
        Some(names)
    }

    fn pause_ms(&mut self) -> u64 {
        let longest = match self.random.random_range(0..3) {
            0 => 300,
            1 => self.longest_ms.min(5_000),
            _ => self.longest_ms,
        };
        self.random.random_range(0..=longest)
    }

    fn push(&mut self, at_ms: u64, action: Action) {
        self.steps.push(Step { at_ms, action });
    }

    fn now(&mut self, action: Action) {
        self.push(self.now_ms, action);
    }

    fn member(&mut self) -> String {
        let member = self.members.choose(&mut self.random);
        member.expect("there are members").name.clone()
    }

    fn set(&mut self) -> String {
        let set = self.sets.choose(&mut self.random);
        set.expect("there are sets").name.clone()
    }

    /// A member, sometimes the host.
    fn cluster(&mut self) -> String {
        if self.random.random_bool(0.3) {
            HOST.to_owned()
        } else {
            self.member()
        }
    }

    /// How long a fault lasts, if it ends.
    fn duration_ms(&mut self) -> Option<u64> {
        let longest = *[1_000, 10_000, 60_000, 300_000]
            .choose(&mut self.random)
            .unwrap_or(&1_000);
        let duration = self.random.random_range(longest / 10..=longest);
        (self.heals || self.random.random_bool(0.3)).then_some(duration)
    }

    fn draw_step(&mut self) {
        let drawn = self
            .kinds
            .choose_weighted(&mut self.random, |(_, weight)| *weight);
        let kind = drawn.expect("no weight is zero").0;
        match kind {
            Kind::Scale
            | Kind::Placement
            | Kind::Template
            | Kind::Pause
            | Kind::Lifecycle
            | Kind::Cordon
            | Kind::Namespaces => self.edit(kind),
            Kind::ExternalScale
            | Kind::ExternalDelete
            | Kind::ExternalCreate
            | Kind::TakeOver
            | Kind::Labels
            | Kind::PodDeletion
            | Kind::Quota => self.external_edit(kind),
            Kind::Switch(fault) => {
                let member = self.member();
                self.switch(&member, fault);
            }
            Kind::HostSwitch(fault) => self.switch(HOST, fault),
            Kind::Flapping => self.flapping(),
            Kind::Slow => self.slow(),
            Kind::Rejections | Kind::LostResponses => self.writes(kind),
            Kind::LateChanges => self.late_changes(),
            Kind::Watches => {
                let cluster = self.cluster();
                if self.random.random_bool(0.6) {
                    let cluster = cluster.clone();
                    self.now(Action::Compact { cluster });
                }
                self.now(Action::CutWatches { cluster });
            }
            Kind::Node => self.node(),
            Kind::Clock => {
                let clock = match self.random.random_range(0..3) {
                    0 => "controller".to_owned(),
                    1 => HOST.to_owned(),
                    _ => self.member(),
                };
                let seconds = *[-3600, -90, -5, 5, 90, 3600]
                    .choose(&mut self.random)
                    .unwrap_or(&5);
                self.now(Action::StepClock { clock, seconds });
            }
            Kind::Crash => self.crash(),
            Kind::HostRestore => self.restore(HOST.to_owned()),
            Kind::MemberRestore => {
                let member = self.member();
                self.restore(member);
            }
            Kind::Suspend => {
                let process = self.process();
                let ms = self.random.random_range(1_000..60_000);
                self.now(Action::Suspend { process, ms });
            }
            Kind::CrashLoop => {
                for _ in 0..self.random.random_range(2..6) {
                    self.crash();
                    self.now_ms += self.random.random_range(100..10_000);
                }
            }
        }
    }

    fn edit(&mut self, kind: Kind) {
        let (set, member) = (self.set(), self.member());
        let spec = match kind {
            Kind::Scale => {
                let most = *[3, 12, 40].choose(&mut self.random).unwrap_or(&12);
                json!({ "replicas": self.random.random_range(0..=most) })
            }
            Kind::Placement => self.placement_edit(&member),
            Kind::Template => {
                let image = format!("registry.example/main:{}", self.random.random_range(0..9));
                // Every member rejects some of them.
                let port = *[80, 80, 80, 99_999_999]
                    .choose(&mut self.random)
                    .unwrap_or(&80);
                let ports = json!([{ "containerPort": port }]);
                json!({ "template": { "spec": { "containers": [{ "name": "main", "image": image, "ports": ports }] } } })
            }
            Kind::Pause => json!({ "paused": self.random.random_bool(0.4) }),
            Kind::Cordon => {
                let field = if self.random.random_bool(0.5) {
                    "drain"
                } else {
                    "unschedulable"
                };
                self.edit_member(member, json!({ field: true }), json!({ field: false }));
                return;
            }
            Kind::Namespaces => {
                // Each name is watched by itself; the sets are in the first one.
                let name = *["default", "other"]
                    .choose(&mut self.random)
                    .unwrap_or(&"default");
                let namespaces = json!({ "namespaces": { "names": [name] } });
                self.edit_member(member, namespaces, json!({ "namespaces": null }));
                return;
            }
            _ => {
                let delete = self.random.random_bool(0.5);
                let policy = if delete { "Delete" } else { "Orphan" };
                let spec = json!({ "deletionPolicy": policy });
                let name = set.clone();
                self.now(Action::EditSet { set: name, spec });
                self.now_ms += self.random.random_range(0..2_000);
                self.now(Action::DeleteSet { set: set.clone() });
                let absent = self.random.random_range(100..60_000);
                self.push(self.now_ms + absent, Action::CreateSet { set });
                return;
            }
        };
        self.now(Action::EditSet { set, spec });
    }

    /// Changes a MemberCluster, and perhaps back.
    fn edit_member(&mut self, member: String, spec: Value, back: Value) {
        self.now(Action::EditMember {
            member: member.clone(),
            spec,
        });
        if let Some(duration) = self.duration_ms() {
            let spec = back;
            self.push(self.now_ms + duration, Action::EditMember { member, spec });
        }
    }

    /// Backs a cluster up, and restores that later.
    fn restore(&mut self, cluster: String) {
        self.now(Action::BackUp {
            cluster: cluster.clone(),
        });
        let age = self.random.random_range(1_000..120_000);
        self.push(self.now_ms + age, Action::Restore { cluster });
    }

    fn placement_edit(&mut self, member: &str) -> Value {
        let preference = match self.random.random_range(0..4) {
            0 => return json!({ "placement": { "rebalance": self.random.random_bool(0.7) } }),
            1 => Value::Null,
            2 => json!({ "weight": self.random.random_range(0..5) }),
            _ => initial::preference(&mut self.random),
        };
        json!({ "placement": { "clusters": { member: preference } } })
    }

    fn external_edit(&mut self, kind: Kind) {
        let (member, set) = (self.member(), self.set());
        let pod = Selected {
            member: member.clone(),
            set: set.clone(),
            index: self.random.random_range(0..20),
        };
        let action = match kind {
            Kind::ExternalScale => {
                let patch = json!({ "spec": { "replicas": self.random.random_range(0..20) } });
                Action::EditLocalSet { member, set, patch }
            }
            Kind::ExternalDelete => {
                let orphan = self.random.random_bool(0.7);
                Action::DeleteLocalSet {
                    member,
                    set,
                    orphan,
                }
            }
            Kind::ExternalCreate => Action::CreateLocalSet {
                member,
                set,
                replicas: self.random.random_range(0..12),
                same_selector: self.random.random_bool(0.6),
            },
            Kind::TakeOver => Action::TakeOver { member, set },
            Kind::Labels if self.random.random_bool(0.5) => {
                let patch = without_label("fedrs.dev/member-cluster");
                Action::EditLocalSet { member, set, patch }
            }
            Kind::Labels => {
                let patch = without_label("fedrs.dev/replica-set");
                Action::EditPod { pod, patch }
            }
            Kind::PodDeletion => Action::DeletePod { pod },
            _ => {
                let pods = Some(self.random.random_range(0..12));
                if let Some(duration) = self.duration_ms() {
                    let at = self.now_ms + duration;
                    let member = member.clone();
                    self.push(at, Action::Quota { member, pods: None });
                }
                Action::Quota { member, pods }
            }
        };
        self.now(action);
    }

    fn switch(&mut self, cluster: &str, fault: Fault) {
        let change = |on| Action::Switch {
            cluster: cluster.to_owned(),
            fault,
            on,
        };
        self.now(change(true));
        if let Some(duration) = self.duration_ms() {
            self.push(self.now_ms + duration, change(false));
        }
    }

    fn flapping(&mut self) {
        let cluster = self.member();
        let (away, back) = (
            self.random.random_range(1_000..100_000),
            self.random.random_range(1_000..100_000),
        );
        for round in 0..self.random.random_range(2..6) {
            let at = self.now_ms + round * (away + back);
            for (at, on) in [(at, true), (at + away, false)] {
                let cluster = cluster.clone();
                let fault = Fault::Unreachable;
                self.push(at, Action::Switch { cluster, fault, on });
            }
        }
    }

    fn slow(&mut self) {
        let cluster = self.cluster();
        let ms = *[50, 900, 3_000, 8_000]
            .choose(&mut self.random)
            .unwrap_or(&50);
        if let Some(duration) = self.duration_ms() {
            let (at_ms, cluster) = (self.now_ms + duration, cluster.clone());
            self.push(at_ms, Action::Slow { cluster, ms: 0 });
        }
        self.now(Action::Slow { cluster, ms });
    }

    fn writes(&mut self, kind: Kind) {
        let cluster = self.cluster();
        let verb = *["create", "patch", "update", "delete"]
            .choose(&mut self.random)
            .unwrap_or(&"patch");
        let kinds: &[&str] = match (cluster.as_str(), verb) {
            (HOST, "create") => &["events", ""],
            (HOST, _) => &["federatedreplicasets", "memberclusters", ""],
            (_, "create") => &["replicasets"],
            _ => &["replicasets", "pods", ""],
        };
        let resource = (*kinds.choose(&mut self.random).unwrap_or(&"")).to_owned();
        // Some for so long that it matters how often they are tried again.
        let times = match self.random.random_range(0..8) {
            0 => 200,
            _ => self.random.random_range(1..8),
        };
        let verb = verb.to_owned();
        let codes = [403, 409, 422, 429, 500, 503];
        let code = *codes.choose(&mut self.random).unwrap_or(&500);
        self.now(match kind {
            Kind::Rejections => Action::Reject {
                cluster,
                resource,
                verb,
                times,
                code,
            },
            _ => Action::LoseResponses {
                cluster,
                resource,
                verb,
                times,
            },
        });
    }

    fn late_changes(&mut self) {
        let members = if self.random.random_bool(0.5) {
            vec![self.member()]
        } else {
            self.members
                .iter()
                .map(|member| member.name.clone())
                .collect()
        };
        // Longer than the controller waits for a response.
        let ms = self.random.random_range(11_000..60_000);
        for member in members {
            let times = self.random.random_range(1..4);
            self.now(Action::DelayChanges { member, times, ms });
        }
        // What is on its way matters to what is decided meanwhile.
        for _ in 0..self.random.random_range(0..6) {
            match self.random.random_range(0..6) {
                0..2 => self.edit(Kind::Scale),
                2..4 => self.edit(Kind::Placement),
                4 => self.edit(Kind::Template),
                _ => self.foreign(),
            }
            self.now_ms += self.random.random_range(0..15_000);
        }
    }

    /// Somebody gives a local set to another federation.
    fn foreign(&mut self) {
        let (member, set) = (self.member(), self.set());
        let patch = json!({ "metadata": { "labels": { labels::FEDERATION: OTHER_FEDERATION } } });
        self.now(Action::EditLocalSet { member, set, patch });
    }

    fn node(&mut self) {
        let place = self.random.random_range(0..self.members.len());
        let member = self.members[place].name.clone();
        let node = self.random.random_range(1..=self.members[place].nodes);
        let change = |fails| Action::Node {
            member: member.clone(),
            node,
            fails,
        };
        self.now(change(true));
        if let Some(duration) = self.duration_ms() {
            self.push(self.now_ms + duration, change(false));
        }
    }

    fn process(&mut self) -> u32 {
        self.random.random_range(1..=self.candidates.max(1))
    }

    fn crash(&mut self) {
        let write = match self.random.random_range(0..3) {
            0 => 0,
            _ => self.random.random_range(1..20),
        };
        let down_ms = *[1, 1_000, 20_000, 100_000]
            .choose(&mut self.random)
            .unwrap_or(&1);
        let after = self.random.random_bool(0.5);
        let process = self.process();
        self.now(Action::Crash {
            process,
            write,
            after,
            down_ms,
        });
    }
}

/// A patch that removes a label.
fn without_label(label: &str) -> Value {
    json!({ "metadata": { "labels": { label: null } } })
}
