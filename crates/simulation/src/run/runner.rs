//! Carries out the steps of a plan at their times.

use std::collections::{BTreeMap, BTreeSet};

use fedrs_api::SetKind;
use http::Method;
use serde_json::{Value, json};
use sim_cluster::{Faults, Object, Snapshot};
use tokio::time::{Duration, Instant};

use super::{
    discovery::DiscoveryProcess, processes::Processes, recorder::Recorder, timers::Timers,
};
use crate::{
    checks::{Invariant, Observed, RESTORED, Violation, endpoints::Answers},
    hostile::Switch,
    plan::{Fault, Plan, SetPlan},
    request::user_request,
    set_kind,
    sim_federation::{HOST, NAMESPACE, SimFederation, SimFederationSpec, SimMemberSpec},
    trace::{Topic, Trace},
};

/// How long the token of a joined member is valid, in seconds: a week, as `fedrs join` requests it.
const TOKEN_VALIDITY: i64 = 7 * 24 * 3600;

/// A run.
pub(super) struct Runner {
    pub(super) federation: SimFederation,
    pub(super) recorder: Recorder,
    /// The controllers.
    pub(super) processes: Processes,
    /// Discovery, if the plan has it.
    pub(super) discovery: Option<DiscoveryProcess>,
    /// The sets of the plan.
    pub(super) sets: Vec<SetPlan>,
    /// The hostile API servers between the controller and each member.
    pub(super) hostile: BTreeMap<String, Switch>,
    /// The faults that last, by cluster.
    pub(super) faults: BTreeSet<(String, Fault)>,
    /// Faults without an end that were started otherwise: failed nodes, quotas, slow clusters.
    pub(super) others: BTreeSet<String>,
    /// The last backup of each cluster that has one.
    pub(super) backups: BTreeMap<String, Snapshot>,
    /// What the run does by itself.
    pub(super) timers: Timers<Timer>,
    /// How long each controller does not run after its next crash.
    pub(super) down: Vec<Duration>,
    /// How often each fault that no cluster counts has happened.
    pub(super) counts: BTreeMap<String, u64>,
    /// When the run began.
    pub(super) start: Instant,
}

/// What the run does by itself at a certain time.
#[derive(Clone, Debug)]
pub(super) enum Timer {
    /// Starts a controller, by its number from 0.
    StartController(usize),
    /// Resumes the election of a controller.
    Resume(usize),
    /// The controller has noticed that this cluster was restored.
    RestoreSeen(String),
    /// Starts the nodes of a member.
    StartNodes(String),
    /// Starts discovery.
    StartDiscovery,
}

impl Runner {
    /// Starts the clusters and the controller, and creates the sets.
    pub(super) async fn start(plan: &Plan) -> Self {
        let member = |member: &crate::plan::MemberPlan| SimMemberSpec {
            name: member.name.clone(),
            nodes: member.nodes as usize,
            pods_per_node: member.pods_per_node,
        };
        let mut federation = SimFederation::start_clusters(SimFederationSpec {
            members: plan.members.iter().map(member).collect(),
            config: plan.config.clone(),
            seed: plan.seed,
        })
        .await;
        for member in plan.members.iter().filter(|member| member.joined) {
            federation.join(&member.name, TOKEN_VALIDITY).await;
        }
        let members: Vec<_> = plan
            .members
            .iter()
            .map(|member| member.name.as_str())
            .collect();
        let sets: Vec<_> = (plan.sets.iter().map(|set| (set.name.as_str(), set.kind))).collect();
        for (name, kind) in &sets {
            if *kind == SetKind::FederatedDeployment {
                federation.deploys(name);
            }
        }
        let observed = Observed::new(&plan.config, &sets, &members);
        let answers = plan.discovery.then(|| Answers::new(&sets, &members));
        let mut clusters = vec![(HOST.to_owned(), federation.host().api().clone())];
        let mut hostile = BTreeMap::new();
        for name in members {
            clusters.push((name.to_owned(), federation.member(name).api().clone()));
            let switch = Switch::default();
            let hostile_server = switch.clone();
            federation.intercept(name, move |honest| hostile_server.client(honest));
            hostile.insert(name.to_owned(), switch);
        }
        let recorder = Recorder::start(&clusters, observed, answers, plan.candidates > 0);
        let files = plan.members.iter().filter(|member| !member.joined);
        let files = files.map(|member| member.name.clone()).collect();
        let processes = Processes::new(plan.candidates, files, recorder.clone());
        let discovery = plan.discovery.then(|| {
            let sets = plan.sets.iter().map(|set| set.name.clone()).collect();
            let members = plan.members.iter().map(|member| member.name.clone());
            DiscoveryProcess::new(plan.seed, sets, members.collect(), recorder.clone())
        });
        Self {
            federation,
            recorder,
            discovery,
            down: vec![Duration::ZERO; processes.count()],
            processes,
            sets: plan.sets.clone(),
            hostile,
            faults: BTreeSet::new(),
            others: BTreeSet::new(),
            backups: BTreeMap::new(),
            timers: Timers::default(),
            counts: BTreeMap::new(),
            start: Instant::now(),
        }
    }

    /// Ends the run.
    pub(super) fn end(self) -> (Trace, Vec<Violation>, BTreeMap<String, u64>) {
        let (trace, violations, effects) = self.recorder.end();
        let mut counts = self.counts;
        counts.extend(effects);
        for cluster in self
            .federation
            .member_names()
            .iter()
            .map(String::as_str)
            .chain([HOST])
        {
            let faults = self.federation.cluster(cluster).faults();
            for (fault, count) in fault_counts(faults) {
                *counts.entry(fault.to_owned()).or_default() += count;
            }
        }
        counts.retain(|_, count| *count > 0);
        (trace, violations, counts)
    }

    /// Lets time pass. Meanwhile the controller may crash, and timers fire.
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
        let name = Processes::name(number);
        self.recorder
            .trace(Topic::Process, format!("{name} has crashed"));
        self.processes.kill(number).await;
        self.timers
            .set(self.down[number], Timer::StartController(number));
    }

    fn timer_fired(&mut self, timer: Timer) {
        match timer {
            Timer::StartController(number) => self.start_controller(number),
            Timer::RestoreSeen(cluster) => self
                .recorder
                .observe(|observed| observed.set_unobservable(&cluster, RESTORED, false)),
            Timer::Resume(number) => self.processes.suspend(number, false),
            Timer::StartNodes(member) => self.start_nodes(&member),
            Timer::StartDiscovery => self.start_discovery(),
        }
    }

    /// Starts a controller that does not run.
    pub(super) fn start_controller(&mut self, number: usize) {
        let name = Processes::name(number);
        self.recorder
            .trace(Topic::Process, format!("{name} starts"));
        let resumes = self.recorder.holder() == name;
        self.recorder
            .observe(|observed| observed.controller_starts(resumes));
        self.recorder.is_disturbed();
        self.processes.start(number, &self.federation);
    }

    /// Starts all controllers that do not run.
    pub(super) fn start_controllers(&mut self) {
        self.timers
            .retain(|timer| !matches!(timer, Timer::StartController(_)));
        for number in 0..self.processes.count() {
            if !self.processes.runs(number) {
                self.start_controller(number);
            }
        }
    }

    pub(super) fn start_nodes(&self, member: &str) {
        self.recorder
            .trace(Topic::Step, format!("{member}: nodes are back"));
        let cluster = self.federation.member(member);
        for node in cluster.api().list(&sim_cluster::kinds::NODES, None) {
            let name = node["metadata"]["name"].as_str().unwrap_or_default();
            self.recorder
                .observe(|observed| observed.set_without_power(member, name, false));
            cluster.recover_node(name);
        }
    }

    pub(super) fn count(&mut self, what: &str) {
        *self.counts.entry(what.to_owned()).or_default() += 1;
    }

    /// Sends a request to a cluster as a user to whom no fault applies. Whether it succeeded.
    pub(super) async fn request(
        &self,
        cluster: &str,
        method: Method,
        path: &str,
        body: &Value,
    ) -> bool {
        let answer = user_request(
            self.federation.cluster(cluster),
            method.as_str(),
            path,
            body,
        )
        .await;
        if let Err(text) = &answer {
            self.recorder.trace(Topic::Step, text.clone());
        }
        answer.is_ok()
    }

    /// A set as the host has it.
    pub(super) fn frs(&self, name: &str) -> Option<Object> {
        let host = self.federation.cluster(HOST).api();
        let kind = set_kind::name(self.federation.kind_of(name));
        let kind = host.kind_of("fedrs.dev/v1alpha1", kind)?;
        host.get(&kind, NAMESPACE, name).ok()
    }

    pub(super) async fn create_set(&self, name: &str) {
        let Some(set) = self.sets.iter().find(|set| set.name == name) else {
            return;
        };
        let object = json!({
            "apiVersion": "fedrs.dev/v1alpha1",
            "kind": set_kind::name(set.kind),
            "metadata": { "name": name, "namespace": "default" },
            "spec": set.spec,
        });
        self.recorder.trace(
            Topic::Step,
            format!("user creates {name}: {}", placement(&set.spec)),
        );
        let path = set_kind::collection(set.kind);
        self.request(HOST, Method::POST, &path, &object).await;
    }

    /// Records that a goal is not reached.
    pub(super) fn fail(&self, invariant: Invariant, text: String) {
        self.recorder.violated(invariant, text);
    }
}

/// How often each fault of a cluster has fired.
pub(crate) fn fault_counts(faults: &Faults) -> [(&'static str, u64); 8] {
    let fired = faults.counts();
    [
        ("requests without a connection", fired.unreachable),
        ("requests that hung", fired.hung),
        ("slow responses", fired.slowed),
        ("rejected requests", fired.refused),
        ("lost responses", fired.responses_lost),
        ("watches cut", fired.watches_cut),
        ("watches silent", fired.watches_stalled),
        ("histories compacted", fired.compactions),
    ]
}

/// What of a spec decides where replicas go.
fn placement(spec: &Value) -> String {
    format!(
        "{} replicas, placement {}",
        spec["replicas"], spec["placement"]
    )
}
