//! Faults of clusters and controllers.

use jiff::SignedDuration;
use serde_json::{Value, json};
use sim_cluster::{RequestMatcher, Status, Verb, kinds};
use tokio::time::Duration;

use super::runner::{Runner, Timer};
use crate::{
    checks::{Observed, OutageKind, RESTORED, endpoints::Hindrance},
    hostile::Attack,
    join::{MEMBERS_PATH, secret_name},
    plan::{Action, Fault},
    set_kind,
    sim_federation::HOST,
    trace::Topic,
};

/// How long after the API server the nodes start.
const NODES_BOOT: Duration = Duration::from_secs(35);
/// The first requests to an API server that starts are rejected: it has not read yet who may do what.
pub(super) const STARTING: u32 = 6;
/// By this time the controller has noticed that the watches of the host, from versions that no longer exist, are silent.
const HOST_RESTORE_SEEN: Duration = Duration::from_secs(300);
/// By this time it has compared the version of a member with the one that it knows.
const MEMBER_RESTORE_SEEN: Duration = Duration::from_secs(60);

impl Runner {
    /// Begins or ends a fault that lasts.
    pub(super) async fn switch(&mut self, cluster: &str, fault: Fault, on: bool) {
        let key = (cluster.to_owned(), fault);
        let changes = if on {
            self.faults.insert(key)
        } else {
            self.faults.remove(&key)
        };
        if !changes {
            self.recorder.trace(Topic::Step, "(has no effect)");
            return;
        }
        let is_outage = fault != Fault::NoControllerManager;
        if is_outage {
            let reason = fault.to_string();
            let kind = match fault {
                Fault::WatchesSilent
                | Fault::PodsSilent
                | Fault::ReplicaSetsSilent
                | Fault::NodesSilent => OutageKind::Events,
                Fault::Mutations => OutageKind::Lies,
                Fault::ReadsRejected => OutageKind::Rejections,
                Fault::NoKubeconfig if self.federation.joined.contains(cluster) => {
                    OutageKind::Withdrawn
                }
                _ => OutageKind::Connection,
            };
            let observe = |observed: &mut crate::checks::Observed| {
                observed.set_unobservable(cluster, (&reason, kind), on);
            };
            self.recorder.observe(observe);
        }
        self.switch_for_discovery(cluster, fault, on);
        if on {
            self.count(&fault.to_string());
        }
        let faults = self.federation.cluster(cluster).faults().clone();
        match fault {
            Fault::Unreachable => faults.set_unreachable(on || self.has(cluster, Fault::NoPower)),
            Fault::Hanging => faults.set_hanging(on),
            Fault::WatchesSilent => faults.set_watches_stalled(on),
            Fault::PodsSilent => faults.set_resource_stalled("pods", on),
            Fault::ReplicaSetsSilent => {
                for kind in set_kind::ALL {
                    faults.set_resource_stalled(set_kind::local_resource(kind), on);
                }
            }
            Fault::NodesSilent => faults.set_resource_stalled("nodes", on),
            Fault::NoPower if on => self.cut_power(cluster),
            Fault::NoPower => {
                self.federation.member(cluster).restore_power();
                faults.set_unreachable(self.has(cluster, Fault::Unreachable));
                let status = Status::new(403, "Forbidden", "the roles are not read yet");
                faults.refuse(RequestMatcher::all(), STARTING, status);
                self.timers
                    .set(NODES_BOOT, Timer::StartNodes(cluster.to_owned()));
            }
            Fault::NoControllerManager if on => {
                self.federation.member(cluster).stop_controller_manager();
            }
            Fault::NoControllerManager => {
                self.federation.member(cluster).start_controller_manager();
            }
            Fault::NoKubeconfig => self.set_kubeconfig(cluster, !on).await,
            Fault::Mutations => {
                // The mutations of a member are always the same ones.
                let seed = cluster.bytes().map(u64::from).sum();
                let attack = on.then_some(Attack::Mutations(seed));
                self.hostile[cluster].set_attack(attack);
            }
            Fault::ReadsRejected => {
                for (verb, code, reason) in [
                    (Verb::List, 403, "Forbidden"),
                    (Verb::Watch, 500, "InternalError"),
                ] {
                    let requests = RequestMatcher::all().verb(verb);
                    if on {
                        let status = Status::new(code, reason, "a fault");
                        faults.refuse(requests, u32::MAX, status);
                    } else {
                        faults.refuse_no_more(&requests);
                    }
                }
            }
        }
    }

    /// Adds or removes the kubeconfig of a member: its file, or the reference to its Secret.
    pub(super) async fn set_kubeconfig(&mut self, member: &str, exists: bool) {
        if self.federation.joined.contains(member) {
            let reference = exists.then(|| secret_reference(member));
            let path = format!("{MEMBERS_PATH}/{member}");
            self.patch(HOST, &path, &json!({ "spec": { "secretRef": reference } }))
                .await;
        } else {
            self.processes
                .set_kubeconfig(member, exists.then_some(member));
        }
    }

    pub(super) fn has(&self, cluster: &str, fault: Fault) -> bool {
        self.faults.contains(&(cluster.to_owned(), fault))
    }

    pub(super) fn cut_power(&mut self, member: &str) {
        // Nodes that were about to start do not.
        self.timers
            .retain(|timer| !matches!(timer, Timer::StartNodes(nodes) if nodes == member));
        let cluster = self.federation.member(member);
        for node in cluster.api().list(&kinds::NODES, None) {
            let name = node["metadata"]["name"].as_str().unwrap_or_default();
            self.recorder
                .observe(|observed| observed.set_without_power(member, name, true));
        }
        cluster.lose_power();
    }

    pub(super) fn node(&mut self, member: &str, node: &str, fails: bool) {
        let cluster = self.federation.member(member);
        if self.has(member, Fault::NoPower) {
            self.recorder
                .trace(Topic::Step, "(has no effect: the member has no power)");
        } else if fails {
            cluster.fail_node(node);
            self.recorder
                .observe(|observed| observed.node_fails(member, node));
            self.others.insert(format!("{member}: {node}"));
            self.count("failed nodes");
        } else {
            cluster.recover_node(node);
            self.others.remove(&format!("{member}: {node}"));
            // It starts before the others, which have just got their power back.
            self.recorder
                .observe(|observed| observed.set_without_power(member, node, false));
        }
    }

    pub(super) fn step_clock(&mut self, clock: &str, seconds: i64) {
        let by = SignedDuration::from_secs(seconds);
        if clock == "controller" {
            self.federation.step_clock(by);
            self.recorder
                .observe(|observed| observed.controller_clock_steps(seconds));
        } else {
            self.federation.cluster(clock).clock().step(by);
        }
        if clock == HOST {
            self.recorder.observe(Observed::host_clock_jumps);
        }
        self.count("clock steps");
    }

    /// The number of a process, from 0.
    pub(super) fn process(&self, number: u32) -> usize {
        (number.max(1) as usize - 1) % self.processes.count()
    }

    pub(super) async fn crash(&mut self, process: u32, write: u64, after: bool, down_ms: u64) {
        let number = self.process(process);
        self.down[number] = Duration::from_millis(down_ms);
        if !self.processes.runs(number) {
            self.recorder
                .trace(Topic::Step, "(has no effect: it does not run)");
        } else if write == 0 {
            self.crashed(number).await;
        } else {
            self.processes.crash_at(number, write, after);
        }
    }

    pub(super) async fn restore(&mut self, cluster: &str) {
        // Nobody can know from the Lease who leads if its host is restored again before a term can have ended.
        let was_restored = |timer: &Timer| matches!(timer, Timer::RestoreSeen(of) if of == cluster);
        let backup = self.backups.get(cluster);
        let Some(backup) = backup.filter(|_| !self.timers.any(was_restored)) else {
            self.recorder.trace(
                Topic::Step,
                "(has no effect: there is no backup, or the cluster was just restored)",
            );
            return;
        };
        self.recorder
            .observe(|observed| observed.set_unobservable(cluster, RESTORED, true));
        self.restore_for_discovery(cluster);
        self.federation.cluster(cluster).restore(backup);
        let (seen_after, what) = if cluster == HOST {
            (HOST_RESTORE_SEEN, "restored hosts")
        } else {
            (MEMBER_RESTORE_SEEN, "restored members")
        };
        self.timers
            .set(seen_after, Timer::RestoreSeen(cluster.to_owned()));
        self.count(what);
        if cluster == HOST {
            self.observe_references().await;
        }
    }

    /// The restored host has the references to kubeconfigs of the backup.
    pub(super) async fn observe_references(&mut self) {
        let host = self.federation.cluster(HOST).api();
        let kind = host.kind_of("fedrs.dev/v1alpha1", "MemberCluster");
        let members = kind.map(|kind| host.list(&kind, None)).unwrap_or_default();
        for member in members {
            let name = member["metadata"]["name"].as_str().unwrap_or_default();
            let is_missing = member["spec"].get("secretRef").is_none_or(Value::is_null);
            if self.federation.joined.contains(name)
                && is_missing != self.has(name, Fault::NoKubeconfig)
            {
                let name = name.to_owned();
                self.switch(&name, Fault::NoKubeconfig, is_missing).await;
            }
        }
    }

    pub(super) fn suspend(&mut self, process: u32, ms: u64) {
        let number = self.process(process);
        self.processes.suspend(number, true);
        self.timers
            .set(Duration::from_millis(ms), Timer::Resume(number));
        self.count("suspended elections");
    }

    /// Records how much longer responses of a cluster take. Probes of one that is too slow fail.
    pub(super) fn put_slow(&mut self, cluster: &str, latency: Duration) {
        let key = format!("{cluster}: slow");
        if latency.is_zero() {
            self.others.remove(&key);
        } else {
            self.others.insert(key);
        }
        self.recorder.observe(|observed| {
            let fails = latency >= observed.config().probe.timeout;
            observed.set_unobservable(cluster, ("slow", OutageKind::Connection), fails);
        });
        self.recorder.observe_answers(|answers| {
            if latency.is_zero() {
                answers.end(cluster, "slow", Duration::ZERO);
            } else {
                answers.begin(cluster, Hindrance::Watches, "slow");
            }
        });
    }

    /// A fault of requests.
    pub(super) fn fault(&mut self, action: &Action) {
        match action {
            Action::Slow { cluster, ms } => {
                let latency = Duration::from_millis(*ms);
                self.federation
                    .cluster(cluster)
                    .faults()
                    .set_latency(latency);
                self.put_slow(cluster, latency);
            }
            Action::Reject {
                cluster,
                resource,
                verb,
                times,
                code,
            } => {
                let status = Status::new(*code, "Injected", "injected");
                let faults = self.federation.cluster(cluster).faults();
                faults.refuse(requests(resource, verb), *times, status);
            }
            Action::LoseResponses {
                cluster,
                resource,
                verb,
                times,
            } => {
                let faults = self.federation.cluster(cluster).faults();
                faults.lose_responses(requests(resource, verb), *times);
            }
            Action::CutWatches { cluster } => {
                self.federation.cluster(cluster).faults().cut_watches();
                self.recorder
                    .observe_answers(|answers| answers.watches_break(cluster));
            }
            Action::Compact { cluster } => {
                self.federation.cluster(cluster).faults().compact();
                self.recorder
                    .observe_answers(|answers| answers.watches_break(cluster));
            }
            _ => {}
        }
    }
}

/// The reference of a joined member to its Secret.
pub(super) fn secret_reference(member: &str) -> Value {
    json!({ "name": secret_name(member) })
}

/// The requests of a kind.
pub(crate) fn requests(resource: &str, verb: &str) -> RequestMatcher {
    let verb = match verb {
        "create" => Verb::Create,
        "update" => Verb::Update,
        "delete" => Verb::Delete,
        _ => Verb::Patch,
    };
    let requests = RequestMatcher::all().verb(verb);
    if resource.is_empty() {
        requests
    } else {
        requests.resource(resource)
    }
}

/// A ResourceQuota of so many pods.
pub(crate) fn quota_of(pods: u32) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": { "name": "limit" },
        "spec": { "hard": { "pods": pods.to_string() } },
    })
}
