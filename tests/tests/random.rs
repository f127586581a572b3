//! Random members, edits and faults, with invariants checked at every write. Then all faults end, and the federation
//! reaches the scheduler's layout and stays there.
//!
//! `FEDRS_SEEDS=500` runs more seeds than by default, `FEDRS_SEED=17` only that one.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of a test: what can't go on ends"
)]

use std::{collections::BTreeSet, time::Duration};

use fedrs_api::{FederatedReplicaSet, ValidFrs};
use fedrs_tests::{
    CrashPoint, HOST, InvariantChecker, SimFederation, SimFederationSpec, SimMemberSpec, frs, seeds,
};
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Value, json};
use sim_cluster::{Faults, NodeSpec, RequestMatcher, Status, Verb, kinds};

/// Seeds by default: they take some seconds.
const SEEDS: u64 = 12;
/// Steps of a run.
const STEPS: usize = 14;
/// The sets of a run.
const SETS: [&str; 2] = ["web", "shop"];
/// Longer than the longest backoff.
const HEALED_WITHIN: u64 = 3600;

#[test]
fn f16_f20_invariants_hold_through_random_edits_and_faults() {
    for seed in seeds(SEEDS) {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap()
            .block_on(async {
                let mut run = RandomRun::begin(seed).await;
                for _ in 0..STEPS {
                    run.step().await;
                }
                run.end().await;
            });
    }
}

struct RandomRun {
    federation: SimFederation,
    checker: InvariantChecker,
    random: StdRng,
    /// The steps so far, printed if the run fails.
    log: RunLog,
    removed: BTreeSet<String>,
    dead_nodes: BTreeSet<(String, String)>,
}

/// Prints the steps of a failing run.
struct RunLog {
    seed: u64,
    lines: Vec<String>,
}

impl Drop for RunLog {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("FEDRS_SEED={}:\n{}", self.seed, self.lines.join("\n"));
        }
    }
}

impl RandomRun {
    async fn begin(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let members = random.random_range(2..=4);
        let member = |number| SimMemberSpec {
            name: format!("m{number}"),
            nodes: random.random_range(1..=3),
            pods_per_node: random.random_range(3..=20),
        };
        let spec = SimFederationSpec {
            members: (0..members).map(member).collect(),
            seed,
            ..SimFederationSpec::default()
        };
        let mut log = RunLog {
            seed,
            lines: vec![format!("{:?}", spec.members)],
        };
        let mut federation = SimFederation::start_clusters(spec).await;
        let checker = InvariantChecker::start(&federation, &SETS);
        federation.start_controller().await;
        for name in SETS {
            let replicas = random.random_range(0..20);
            let rebalance = random.random_bool(0.5);
            log.lines
                .push(format!("{name}: {replicas}, rebalance {rebalance}"));
            let placement = json!({ "rebalance": rebalance, "clusters": { "*": { "weight": 1 } } });
            federation.create(&frs(name, replicas, &placement)).await;
        }
        let mut run = Self {
            federation,
            checker,
            random,
            log,
            removed: BTreeSet::new(),
            dead_nodes: BTreeSet::new(),
        };
        run.pause().await;
        run
    }

    /// Performs a random action and lets some time pass.
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
        self.record(&format!("  {milliseconds} ms"));
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
        let violations = self.checker.violations();
        assert!(
            violations.is_empty(),
            "{violations:#?}\n{}",
            self.federation.describe().await
        );
    }

    fn record(&mut self, what: &str) {
        self.log
            .lines
            .push(format!("{} {what}", self.federation.now()));
    }

    fn a_set(&mut self) -> &'static str {
        SETS.choose(&mut self.random).unwrap()
    }

    fn a_member(&mut self) -> String {
        let names = self.federation.member_names();
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
                self.record(&format!("{member}: {switch} {on}"));
                set_member(&self.federation, &member, &json!({ switch: on })).await;
                return;
            }
        };
        self.record(&format!("{set}: {spec}"));
        // The host may be unreachable.
        let path =
            format!("/apis/fedrs.dev/v1alpha1/namespaces/default/federatedreplicasets/{set}");
        let patch = json!({ "spec": spec });
        let call = self.federation.on_host("PATCH", &path, &patch);
        let _ = tokio::time::timeout(Duration::from_secs(5), call).await;
    }

    /// Injects a fault into a member or the host.
    async fn fault(&mut self) {
        let member = self.a_member();
        match self.random.random_range(0..9) {
            0 => self.make_unobservable(&member, "unreachable", |faults| {
                faults.set_unreachable(true);
            }),
            1 => self.make_unobservable(&member, "hangs", |faults| faults.set_hanging(true)),
            2 => self.make_unobservable(&member, "watches stall", |faults| {
                faults.set_watches_stalled(true);
            }),
            3 => self.make_unobservable(HOST, "unreachable", |faults| faults.set_unreachable(true)),
            4 => {
                let milliseconds = self.random.random_range(1..4_000);
                self.record(&format!("{member}: slow, {milliseconds} ms"));
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
                self.record(&format!("{cluster}: watches cut, history compacted"));
                self.faults(&cluster).compact();
                self.faults(&cluster).cut_watches();
            }
            7 => {
                let node = format!("{member}-node-{}", self.random.random_range(1..=3));
                self.record(&format!("{node} fails"));
                self.federation.member(&member).fail_node(&node);
                self.dead_nodes.insert((member, node));
            }
            _ => self.edit_local_set(&member).await,
        }
    }

    fn faults(&self, cluster: &str) -> Faults {
        self.federation.cluster(cluster).faults().clone()
    }

    fn make_unobservable(&mut self, cluster: &str, what: &str, fault: impl FnOnce(&Faults)) {
        self.record(&format!("{cluster}: {what}"));
        self.checker.set_unobservable(cluster, true);
        fault(&self.faults(cluster));
    }

    /// Rejects the next few writes, or loses their responses.
    fn refusals(&mut self, member: &str) {
        let verb = [Verb::Create, Verb::Patch, Verb::Update]
            .choose(&mut self.random)
            .unwrap();
        let requests = RequestMatcher::all().verb(*verb).resource("replicasets");
        let times = self.random.random_range(1..6);
        let code = [500, 429, 403, 409].choose(&mut self.random).unwrap();
        let lost = self.random.random_bool(0.5);
        self.record(&format!(
            "{member}: {times} times {verb:?} {}",
            if lost {
                "lost".to_owned()
            } else {
                code.to_string()
            }
        ));
        if lost {
            self.faults(member).lose_responses(requests, times);
        } else {
            let status = Status::new(*code, "Injected", "injected");
            self.faults(member).refuse(requests, times, status);
        }
    }

    /// Changes a local ReplicaSet or its pods as another user.
    async fn edit_local_set(&mut self, member: &str) {
        let set = self.a_set();
        let path = format!("/apis/apps/v1/namespaces/default/replicasets/{set}");
        let (method, path, body) = match self.random.random_range(0..6) {
            0 | 1 => ("DELETE", path, json!({ "propagationPolicy": "Orphan" })),
            2 => ("PATCH", path, without_label("fedrs.dev/member-cluster")),
            3 => match self.a_pod_of(member, set) {
                Some(pod) => ("PATCH", pod, without_label("fedrs.dev/replica-set")),
                None => return,
            },
            _ => {
                let replicas = self.random.random_range(0..20);
                ("PATCH", path, json!({ "spec": { "replicas": replicas } }))
            }
        };
        self.record(&format!(
            "{member}: edited externally: {method} {path} {body}"
        ));
        // The local ReplicaSet may not exist, or the member may be unreachable.
        let call = self.federation.on_member(member, method, &path, &body);
        let _ = tokio::time::timeout(Duration::from_secs(5), call).await;
    }

    /// The path of a random pod of a local ReplicaSet.
    fn a_pod_of(&mut self, member: &str, set: &str) -> Option<String> {
        let pods = self
            .federation
            .member(member)
            .api()
            .list(&kinds::PODS, None);
        let names = pods.iter().filter_map(|pod| {
            let metadata = &pod["metadata"];
            let is_of_set = metadata["labels"]["fedrs.dev/replica-set"] == set;
            metadata["name"].as_str().filter(|_| is_of_set)
        });
        let names: Vec<_> = names.collect();
        let name = names.choose(&mut self.random)?;
        Some(format!("/api/v1/namespaces/default/pods/{name}"))
    }

    /// Removes a member's kubeconfig, or adds it again.
    async fn kubeconfig(&mut self) {
        let member = self.a_member();
        if self.removed.remove(&member) {
            self.record(&format!("{member}: kubeconfig added"));
            self.federation.add_member(&member).await;
            self.checker.set_unobservable(&member, false);
        } else {
            self.record(&format!("{member}: kubeconfig removed"));
            self.checker.set_unobservable(&member, true);
            self.federation.remove_member(&member).await;
            self.removed.insert(member);
        }
    }

    /// Crashes the controller now, and perhaps again at one of its next writes.
    async fn restart(&mut self) {
        let writes = self.random.random_range(1..12);
        let crash = match self.random.random_range(0..3) {
            0 => CrashPoint::Before(writes),
            1 => CrashPoint::After(writes),
            _ => CrashPoint::After(1_000_000),
        };
        self.record(&format!(
            "the controller crashes and restarts until {crash:?}"
        ));
        self.federation.wait_for_crash(0).await;
        self.start_controller(Some(crash)).await;
        self.federation.wait_for_crash(30).await;
        self.start_controller(None).await;
    }

    /// Starts a controller; the host must be reachable for that.
    async fn start_controller(&mut self, crash: Option<CrashPoint>) {
        self.checker.set_unobservable(HOST, false);
        self.faults(HOST).heal();
        self.federation.start_controller_until(crash).await;
    }

    /// Ends all faults, but not the edits of users.
    fn heal(&mut self) {
        self.record("all faults end");
        for cluster in self
            .federation
            .member_names()
            .iter()
            .map(String::as_str)
            .chain([HOST])
        {
            self.faults(cluster).heal();
            if !self.removed.contains(cluster) {
                self.checker.set_unobservable(cluster, false);
            }
        }
        for (member, node) in std::mem::take(&mut self.dead_nodes) {
            self.federation.member(&member).recover_node(&node);
        }
    }

    /// Ends all faults, adds capacity and turns rebalancing on: the federation reaches the scheduler's layout and stays there.
    async fn end(mut self) {
        self.heal();
        for member in std::mem::take(&mut self.removed) {
            self.federation.add_member(&member).await;
            self.checker.set_unobservable(&member, false);
        }
        for member in self.federation.member_names() {
            let open = json!({ "unschedulable": false, "drain": false });
            set_member(&self.federation, &member, &open).await;
            let node = NodeSpec::new(format!("{member}-large")).pods(200);
            self.federation.member(&member).add_node(&node).unwrap();
        }
        for set in SETS {
            let on = json!({ "spec": { "placement": { "rebalance": true } } });
            self.federation.patch(set, &on).await;
        }
        self.federation
            .wait_until("the planner's layout", HEALED_WITHIN, async |federation| {
                let mut reached = true;
                for set in SETS {
                    reached = reached && has_planned_layout(federation, set).await;
                }
                tokio::time::sleep(Duration::from_secs(10)).await;
                reached
            })
            .await;
        self.pause().await;
        // Drift counts expire after ten minutes.
        tokio::time::sleep(Duration::from_secs(700)).await;
        let writes = self.federation.writes();
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!(
            self.federation.writes(),
            writes,
            "settled: {}",
            self.federation.describe().await
        );
    }
}

/// A patch that removes a label.
fn without_label(label: &str) -> Value {
    json!({ "metadata": { "labels": { label: null } } })
}

async fn set_member(federation: &SimFederation, member: &str, spec: &Value) {
    let path = format!("/apis/fedrs.dev/v1alpha1/memberclusters/{member}");
    let patch = json!({ "spec": spec });
    // Members that were removed before they were observed have no MemberCluster.
    let call = federation.on_host("PATCH", &path, &patch);
    let _ = tokio::time::timeout(Duration::from_secs(5), call).await;
}

/// Whether the local ReplicaSets have the scheduler's layout, and all replicas are available.
async fn has_planned_layout(federation: &SimFederation, name: &str) -> bool {
    let object: FederatedReplicaSet = serde_json::from_value(federation.frs(name).await).unwrap();
    let frs = ValidFrs::check(&object).unwrap();
    let (planned, wanted) = federation.planned_layout(&frs, &federation.member_names());
    let reported = object.status.map_or(0, |status| status.available_replicas);
    planned.iter().eq(federation.layout(name).values())
        && federation.available(name) == wanted
        && u64::try_from(reported) == Ok(wanted)
}
