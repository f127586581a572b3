//! Carries out the steps of a plan at their times.

use std::collections::{BTreeMap, BTreeSet};

use federation_controller::clock::Clock;
use fedrs_api::names;
use http::Method;
use local_controller::{LEASE, rbac};
use serde_json::{Value, json};
use sim_cluster::{NodeSpec, Object, SimCluster, User, kinds};
use tokio::time::{Duration, Instant};

use super::{
    super::{
        NAMESPACE, SETS_PATH,
        plan::{LocalFault, LocalPlan, LocalSetPlan},
    },
    processes::{self, TOKEN},
    recorder::Recorder,
};
use crate::{
    checks::Invariant,
    join::create,
    pace::Pace,
    request::{request, user_request},
    run::{Recorded, Slots, Timers, fault_counts},
    sim_federation::{EPOCH, client, start_logging},
    trace::Topic,
};

/// The name of the cluster, and of its nodes.
const CLUSTER: &str = "one";

/// A run.
pub(super) struct Runner {
    pub(super) cluster: SimCluster,
    pub(super) recorder: Recorder,
    pub(super) node_count: u32,
    pods_per_node: u32,
    pub(super) processes: Slots<()>,
    /// The sets of the plan.
    pub(super) sets: Vec<LocalSetPlan>,
    /// The faults that last.
    pub(super) faults: BTreeSet<LocalFault>,
    /// Nodes that have failed, or were changed.
    pub(super) nodes: BTreeSet<String>,
    /// How long each controller does not run after its next crash.
    pub(super) down: Vec<Duration>,
    /// How often each fault that the cluster does not count has happened.
    pub(super) counts: BTreeMap<String, u64>,
    /// When the run began.
    pub(super) start: Instant,
    /// What the run does by itself.
    pub(super) timers: Timers<Timer>,
    clock: Clock,
    seed: u64,
}

/// What the run does by itself at a certain time.
#[derive(Clone, Copy, Debug)]
pub(super) enum Timer {
    /// Starts a controller, by its number from 0.
    StartController(usize),
    /// Resumes the election of a controller.
    Resume(usize),
}

impl Runner {
    /// Starts the cluster.
    pub(super) async fn start(plan: &LocalPlan) -> Self {
        start_logging();
        let epoch = jiff::Timestamp::from_second(EPOCH).unwrap();
        let cluster = SimCluster::builder(CLUSTER)
            .nodes(0)
            .seed(plan.seed)
            .epoch(epoch)
            .start();
        let recorder = Recorder::start(cluster.api());
        install(&cluster).await;
        let started = Instant::now();
        let pace = Pace::default();
        let now = cluster.clock().now();
        let clock = Clock::new(move || {
            pace.count(started.elapsed());
            now + started.elapsed()
        });
        let candidates = plan.candidates.max(1) as usize;
        let runner = Self {
            cluster,
            recorder,
            node_count: plan.nodes,
            pods_per_node: plan.pods_per_node,
            processes: Slots::new(candidates),
            sets: plan.sets.clone(),
            faults: BTreeSet::new(),
            nodes: BTreeSet::new(),
            down: vec![Duration::ZERO; candidates],
            counts: BTreeMap::new(),
            start: started,
            timers: Timers::default(),
            clock,
            seed: plan.seed,
        };
        for number in 0..plan.nodes {
            runner.add_node(number);
        }
        runner
    }

    /// Adds a node, by its number from 0, unless it exists.
    pub(super) fn add_node(&self, number: u32) {
        let name = node_name(number);
        if self.cluster.api().get(&kinds::NODES, "", &name).is_ok() {
            return;
        }
        let pods = self.pods_per_node.to_string();
        let node = [("cpu", "64"), ("memory", "256Gi"), ("pods", &pods)]
            .into_iter()
            .fold(NodeSpec::new(name), |node, (resource, quantity)| {
                node.capacity(resource, quantity)
            });
        self.cluster.add_node(&node).unwrap();
    }

    /// Ends the run.
    pub(super) fn end(self) -> Recorded {
        let (trace, violations, effects) = self.recorder.end();
        let mut counts = self.counts;
        counts.extend(effects);
        for (fault, count) in fault_counts(self.cluster.faults()) {
            *counts.entry(fault.to_owned()).or_default() += count;
        }
        counts.retain(|_, count| *count > 0);
        (trace, violations, counts)
    }

    /// Lets time pass. Meanwhile a controller may crash, and timers fire.
    pub(super) async fn wait_until(&mut self, deadline: Instant) {
        loop {
            tokio::select! {
                biased;
                number = self.processes.crashed() => self.crashed(number).await,
                timer = self.timers.next(deadline) => match timer {
                    Some(timer) => self.timer_fired(timer),
                    None => return,
                },
            }
        }
    }

    /// Removes a controller, and starts it again later.
    pub(super) async fn crashed(&mut self, number: usize) {
        self.count("crashes");
        let name = Slots::<()>::name(number);
        let text = format!("{name} has crashed");
        self.recorder.trace(Topic::Process, text);
        self.processes.kill(number).await;
        self.timers
            .set(self.down[number], Timer::StartController(number));
    }

    fn timer_fired(&mut self, timer: Timer) {
        match timer {
            Timer::StartController(number) => self.start_controller(number),
            Timer::Resume(number) => self.processes.suspend(number, false),
        }
    }

    /// Starts a controller that does not run.
    fn start_controller(&mut self, number: usize) {
        if self.processes.runs(number) {
            return;
        }
        let text = format!("{} starts", Slots::<()>::name(number));
        self.recorder.trace(Topic::Process, text);
        let clock = (self.clock.clone(), self.seed);
        processes::start(
            &mut self.processes,
            number,
            &self.cluster,
            clock,
            &self.recorder,
        );
    }

    /// Starts all controllers that do not run.
    pub(super) fn start_controllers(&mut self) {
        self.timers
            .retain(|timer| !matches!(timer, Timer::StartController(_)));
        for number in 0..self.processes.count() {
            self.start_controller(number);
        }
    }

    pub(super) fn count(&mut self, what: &str) {
        *self.counts.entry(what.to_owned()).or_default() += 1;
    }

    /// Sends a request as a user to whom no fault applies. Whether it succeeded.
    pub(super) async fn request(&self, method: Method, path: &str, body: &Value) -> bool {
        let answer = user_request(&self.cluster, method.as_str(), path, body).await;
        if let Err(text) = &answer {
            self.recorder.trace(Topic::Step, text.clone());
        }
        answer.is_ok()
    }

    pub(super) async fn create_set(&self, name: &str) {
        let Some(set) = self.sets.iter().find(|set| set.name == name) else {
            return;
        };
        let object = json!({
            "apiVersion": "fedrs.dev/v1alpha1",
            "kind": "LocalReplicaSet",
            "metadata": { "name": name },
            "spec": set.spec,
        });
        let text = format!("user creates {name}: {}", set.spec);
        self.recorder.trace(Topic::Step, text);
        self.request(Method::POST, SETS_PATH, &object).await;
    }

    /// The sets that exist.
    pub(super) fn existing_sets(&self) -> Vec<Object> {
        let api = self.cluster.api();
        let kind = api.kind_of("fedrs.dev/v1alpha1", "LocalReplicaSet");
        kind.map(|kind| api.list(&kind, Some(NAMESPACE)))
            .unwrap_or_default()
    }

    /// The pods with the label of a set, in the order of their names.
    pub(super) fn pods(&self, set: &str) -> Vec<Object> {
        let mut pods = self.cluster.api().list(&kinds::PODS, Some(NAMESPACE));
        pods.retain(|pod| pod["metadata"]["labels"]["app"] == set);
        pods.sort_by_key(|pod| pod["metadata"]["name"].to_string());
        pods
    }

    /// Records that a goal is not reached.
    pub(super) fn fail(&self, invariant: Invariant, text: String) {
        self.recorder.violated(invariant, text);
    }
}

/// The name of a node, by its number from 0.
pub(super) fn node_name(number: u32) -> String {
    format!("{CLUSTER}-node-{}", number + 1)
}

/// Installs the CRDs, and the controller's account with its permissions and no others.
async fn install(cluster: &SimCluster) {
    let client = client(cluster);
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for crd in fedrs_api::crd::local() {
        request(&client, "POST", path, &json!(crd)).await.unwrap();
    }
    for manifest in rbac::manifests(None, None) {
        create(&client, manifest.to_value()).await;
    }
    let account = User::service_account(names::SYSTEM_NAMESPACE, LEASE);
    cluster.api().admit_token(TOKEN, account);
}
