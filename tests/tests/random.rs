//! Random members, edits and faults, judged at every write; then all is well again, and the planner's layout is reached
//! and stays.
//!
//! `FEDRS_SEEDS=500` runs more stories than by default, `FEDRS_SEED=17` that one alone.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of a test: what can't go on ends"
)]

use std::{collections::BTreeSet, time::Duration};

use federated_scheduler::{Cluster, Preference, Request, plan};
use fedrs_api::{ClusterPreference, FederatedReplicaSet, ValidFrs};
use fedrs_tests::{CrashPoint, Fleet, FleetSpec, HOST, Judge, MemberSpec, frs};
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Value, json};
use sim_cluster::{Faults, NodeSpec, RequestMatcher, Status, Verb, kinds};

/// Stories of an ordinary run: some seconds.
const SEEDS: u64 = 12;
/// Steps of a story.
const STEPS: usize = 14;
/// The sets of a story.
const SETS: [&str; 2] = ["web", "shop"];
/// The longest backoff, and some.
const HEALED_WITHIN: u64 = 3600;

#[test]
fn nothing_is_lost_whatever_happens() {
    let number = |name| {
        std::env::var(name)
            .ok()
            .map(|it| it.parse::<u64>().unwrap())
    };
    let seeds = match number("FEDRS_SEED") {
        Some(seed) => seed..=seed,
        None => 1..=number("FEDRS_SEEDS").unwrap_or(SEEDS),
    };
    for seed in seeds {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap()
            .block_on(async {
                let mut story = Story::begin(seed).await;
                for _ in 0..STEPS {
                    story.step().await;
                }
                story.end().await;
            });
    }
}

struct Story {
    fleet: Fleet,
    judge: Judge,
    random: StdRng,
    /// What happened so far; told if the story ends badly.
    log: Log,
    removed: BTreeSet<String>,
    dead_nodes: BTreeSet<(String, String)>,
}

/// Tells the story of a test that fails.
struct Log {
    seed: u64,
    lines: Vec<String>,
}

impl Drop for Log {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("FEDRS_SEED={}:\n{}", self.seed, self.lines.join("\n"));
        }
    }
}

impl Story {
    async fn begin(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let members = random.random_range(2..=4);
        let member = |number| MemberSpec {
            name: format!("m{number}"),
            nodes: random.random_range(1..=3),
            pods_per_node: random.random_range(3..=20),
        };
        let spec = FleetSpec {
            members: (0..members).map(member).collect(),
            seed,
            ..FleetSpec::default()
        };
        let mut log = Log {
            seed,
            lines: vec![format!("{:?}", spec.members)],
        };
        let mut fleet = Fleet::start_clusters(spec).await;
        let judge = Judge::start(&fleet, &SETS);
        fleet.start_controller().await;
        for name in SETS {
            let replicas = random.random_range(0..20);
            let rebalance = random.random_bool(0.5);
            log.lines
                .push(format!("{name}: {replicas}, rebalance {rebalance}"));
            let placement = json!({ "rebalance": rebalance, "clusters": { "*": { "weight": 1 } } });
            fleet.create(&frs(name, replicas, &placement)).await;
        }
        let mut story = Self {
            fleet,
            judge,
            random,
            log,
            removed: BTreeSet::new(),
            dead_nodes: BTreeSet::new(),
        };
        story.pause().await;
        story
    }

    /// One thing happens, then some time goes by.
    async fn step(&mut self) {
        match self.random.random_range(0..20) {
            0..8 => self.edit().await,
            8..16 => self.fault().await,
            16 => self.kubeconfig().await,
            17 => self.restart().await,
            _ => self.heal(),
        }
        self.pause().await;
    }

    async fn pause(&mut self) {
        let milliseconds = match self.random.random_range(0..3) {
            0 => self.random.random_range(0..300),
            1 => self.random.random_range(300..5_000),
            _ => self.random.random_range(5_000..120_000),
        };
        self.tell(&format!("  {milliseconds} ms"));
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
        let complaints = self.judge.complaints();
        assert!(
            complaints.is_empty(),
            "{complaints:#?}\n{}",
            self.fleet.describe().await
        );
    }

    fn tell(&mut self, what: &str) {
        self.log.lines.push(format!("{} {what}", self.fleet.now()));
    }

    fn a_set(&mut self) -> &'static str {
        SETS.choose(&mut self.random).unwrap()
    }

    fn a_member(&mut self) -> String {
        let names = self.fleet.member_names();
        names.choose(&mut self.random).unwrap().clone()
    }

    /// A user changes a set or a member.
    async fn edit(&mut self) {
        let (set, member) = (self.a_set(), self.a_member());
        let spec = match self.random.random_range(0..8) {
            0 | 1 => json!({ "replicas": self.random.random_range(0..40) }),
            2 => json!({ "placement": { "rebalance": self.random.random_bool(0.5) } }),
            3 => {
                let weight = self.random.random_range(0..5);
                json!({ "placement": { "clusters": { member: { "weight": weight } } } })
            }
            4 => {
                let min = self.random.random_range(0..5);
                let max = min + self.random.random_range(0..15);
                let bounds = json!({ "minReplicas": min, "maxReplicas": max, "weight": 1 });
                json!({ "placement": { "clusters": { member: bounds } } })
            }
            5 => {
                let image = format!("registry.example/main:{}", self.random.random_range(0..9));
                let containers = json!([{ "name": "main", "image": image }]);
                json!({ "template": { "spec": { "containers": containers } } })
            }
            switch => {
                let switch = if switch == 6 {
                    "unschedulable"
                } else {
                    "drain"
                };
                let on = self.random.random_bool(0.5);
                self.tell(&format!("{member}: {switch} {on}"));
                set_member(&self.fleet, &member, &json!({ switch: on })).await;
                return;
            }
        };
        self.tell(&format!("{set}: {spec}"));
        // The host may not be there.
        let path =
            format!("/apis/fedrs.dev/v1alpha1/namespaces/default/federatedreplicasets/{set}");
        let patch = json!({ "spec": spec });
        let call = self.fleet.on_host("PATCH", &path, &patch);
        let _ = tokio::time::timeout(Duration::from_secs(5), call).await;
    }

    /// Something goes wrong in a member or at the host.
    async fn fault(&mut self) {
        let member = self.a_member();
        match self.random.random_range(0..9) {
            0 => self.blind(&member, "unreachable", |faults| {
                faults.set_unreachable(true);
            }),
            1 => self.blind(&member, "hangs", |faults| faults.set_hanging(true)),
            2 => self.blind(&member, "watches stall", |faults| {
                faults.set_watches_stalled(true);
            }),
            3 => self.blind(HOST, "unreachable", |faults| faults.set_unreachable(true)),
            4 => {
                let milliseconds = self.random.random_range(1..4_000);
                self.tell(&format!("{member}: slow, {milliseconds} ms"));
                let latency = Duration::from_millis(milliseconds);
                self.faults(&member).set_latency(latency);
            }
            5 => self.refusals(&member),
            6 => {
                let cluster = if self.random.random_bool(0.3) {
                    HOST.to_owned()
                } else {
                    member
                };
                self.tell(&format!("{cluster}: watches cut, history compacted"));
                self.faults(&cluster).compact();
                self.faults(&cluster).cut_watches();
            }
            7 => {
                let node = format!("{member}-node-{}", self.random.random_range(1..=3));
                self.tell(&format!("{node} dies"));
                self.fleet.member(&member).fail_node(&node);
                self.dead_nodes.insert((member, node));
            }
            _ => self.meddle(&member).await,
        }
    }

    fn faults(&self, cluster: &str) -> Faults {
        let cluster = if cluster == HOST {
            self.fleet.host()
        } else {
            self.fleet.member(cluster)
        };
        cluster.faults().clone()
    }

    fn blind(&mut self, cluster: &str, what: &str, fault: impl FnOnce(&Faults)) {
        self.tell(&format!("{cluster}: {what}"));
        self.judge.put_blind(cluster, true);
        fault(&self.faults(cluster));
    }

    /// The next few writes fail, or their answers are lost.
    fn refusals(&mut self, member: &str) {
        let verb = [Verb::Create, Verb::Patch, Verb::Update]
            .choose(&mut self.random)
            .unwrap();
        let requests = RequestMatcher::all().verb(*verb).resource("replicasets");
        let times = self.random.random_range(1..6);
        let code = [500, 429, 403, 409].choose(&mut self.random).unwrap();
        let lost = self.random.random_bool(0.5);
        self.tell(&format!(
            "{member}: {times} times {verb:?} {}",
            if lost {
                "lost".to_owned()
            } else {
                code.to_string()
            }
        ));
        if lost {
            self.faults(member).lose_answers(requests, times);
        } else {
            let status = Status::new(*code, "Injected", "injected");
            self.faults(member).refuse(requests, times, status);
        }
    }

    /// Somebody changes a local set, or its pods, by hand.
    async fn meddle(&mut self, member: &str) {
        let set = self.a_set();
        let path = format!("/apis/apps/v1/namespaces/default/replicasets/{set}");
        let (method, path, body) = match self.random.random_range(0..6) {
            0 | 1 => ("DELETE", path, json!({ "propagationPolicy": "Orphan" })),
            2 => ("PATCH", path, taken_off("fedrs.dev/member-cluster")),
            3 => match self.a_pod_of(member, set) {
                Some(pod) => ("PATCH", pod, taken_off("fedrs.dev/replica-set")),
                None => return,
            },
            _ => {
                let replicas = self.random.random_range(0..20);
                ("PATCH", path, json!({ "spec": { "replicas": replicas } }))
            }
        };
        self.tell(&format!("{member}: by hand, {method} {path} {body}"));
        // There may be no such set, or no way to the member.
        let call = self.fleet.on_member(member, method, &path, &body);
        let _ = tokio::time::timeout(Duration::from_secs(5), call).await;
    }

    /// The path of one of a local set's pods.
    fn a_pod_of(&mut self, member: &str, set: &str) -> Option<String> {
        let pods = self.fleet.member(member).api().list(&kinds::PODS, None);
        let names = pods.iter().filter_map(|pod| {
            let metadata = &pod["metadata"];
            let is_of_set = metadata["labels"]["fedrs.dev/replica-set"] == set;
            metadata["name"].as_str().filter(|_| is_of_set)
        });
        let names: Vec<_> = names.collect();
        let name = names.choose(&mut self.random)?;
        Some(format!("/api/v1/namespaces/default/pods/{name}"))
    }

    /// A member's kubeconfig is taken away, or put back.
    async fn kubeconfig(&mut self) {
        let member = self.a_member();
        if self.removed.remove(&member) {
            self.tell(&format!("{member}: its kubeconfig is back"));
            self.fleet.add_member(&member).await;
            self.judge.put_blind(&member, false);
        } else {
            self.tell(&format!("{member}: its kubeconfig is removed"));
            self.judge.put_blind(&member, true);
            self.fleet.remove_member(&member).await;
            self.removed.insert(member);
        }
    }

    /// The controller dies in the middle of its work, perhaps again before or after one of its next writes.
    async fn restart(&mut self) {
        let writes = self.random.random_range(1..12);
        let crash = match self.random.random_range(0..3) {
            0 => CrashPoint::Before(writes),
            1 => CrashPoint::After(writes),
            _ => CrashPoint::After(1_000_000),
        };
        self.tell(&format!(
            "the controller dies and comes again, until {crash:?}"
        ));
        self.fleet.bury_controller(0).await;
        self.come_to_life(Some(crash)).await;
        self.fleet.bury_controller(30).await;
        self.come_to_life(None).await;
    }

    /// A controller can't start without the host.
    async fn come_to_life(&mut self, crash: Option<CrashPoint>) {
        self.judge.put_blind(HOST, false);
        self.faults(HOST).heal();
        self.fleet.start_controller_until(crash).await;
    }

    /// All faults end, but for what users did.
    fn heal(&mut self) {
        self.tell("all faults end");
        for cluster in self
            .fleet
            .member_names()
            .iter()
            .map(String::as_str)
            .chain([HOST])
        {
            self.faults(cluster).heal();
            if !self.removed.contains(cluster) {
                self.judge.put_blind(cluster, false);
            }
        }
        for (member, node) in std::mem::take(&mut self.dead_nodes) {
            self.fleet.member(&member).recover_node(&node);
        }
    }

    /// Everything is well again, there is room, and rebalancing is on: the planner's layout is reached, and stays.
    async fn end(mut self) {
        self.heal();
        for member in std::mem::take(&mut self.removed) {
            self.fleet.add_member(&member).await;
            self.judge.put_blind(&member, false);
        }
        for member in self.fleet.member_names() {
            let open = json!({ "unschedulable": false, "drain": false });
            set_member(&self.fleet, &member, &open).await;
            let node = NodeSpec::new(format!("{member}-large")).pods(200);
            self.fleet.member(&member).add_node(&node).unwrap();
        }
        for set in SETS {
            let on = json!({ "spec": { "placement": { "rebalance": true } } });
            self.fleet.patch(set, &on).await;
        }
        self.fleet
            .wait_until("the planner's layout", HEALED_WITHIN, async |fleet| {
                let mut reached = true;
                for set in SETS {
                    reached = reached && is_laid_out(fleet, set).await;
                }
                tokio::time::sleep(Duration::from_secs(10)).await;
                reached
            })
            .await;
        self.pause().await;
        // What is remembered of others' changes is forgotten after ten minutes.
        tokio::time::sleep(Duration::from_secs(700)).await;
        let writes = self.fleet.writes();
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!(
            self.fleet.writes(),
            writes,
            "settled: {}",
            self.fleet.describe().await
        );
    }
}

/// A patch that takes a label off.
fn taken_off(label: &str) -> Value {
    json!({ "metadata": { "labels": { label: null } } })
}

async fn set_member(fleet: &Fleet, member: &str, spec: &Value) {
    let path = format!("/apis/fedrs.dev/v1alpha1/memberclusters/{member}");
    let patch = json!({ "spec": spec });
    // Removed members that were never seen have none.
    let call = fleet.on_host("PATCH", &path, &patch);
    let _ = tokio::time::timeout(Duration::from_secs(5), call).await;
}

/// Whether the local sets hold what the planner gives them, and all of it runs.
async fn is_laid_out(fleet: &Fleet, name: &str) -> bool {
    let object: FederatedReplicaSet = serde_json::from_value(fleet.frs(name).await).unwrap();
    let frs = ValidFrs::check(&object).unwrap();
    let asked = fleet.layout(name);
    let preference = |it: &ClusterPreference| Preference {
        min: it.min_replicas.unsigned_abs(),
        max: it.max_replicas.map(i64::unsigned_abs),
        weight: it.weight.unsigned_abs(),
    };
    let clusters: Vec<_> = asked
        .iter()
        .map(|(member, current)| Cluster {
            name: member,
            preference: frs.placement.for_cluster(member).map(preference),
            current: *current,
            capacity: None,
        })
        .collect();
    let layout = plan(&Request {
        key: &frs.key.to_string(),
        replicas: frs.replicas.into(),
        rebalance: true,
        clusters: &clusters,
    });
    let planned = layout.shares.iter().map(|it| it.replicas);
    let wanted = u64::from(frs.replicas) - layout.unplaced;
    let told = object.status.map_or(0, |it| it.available_replicas);
    planned.eq(asked.values().copied())
        && fleet.available(name) == wanted
        && u64::try_from(told) == Ok(wanted)
}
