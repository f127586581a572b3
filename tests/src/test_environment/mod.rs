//! The environment that scenarios run in: a host, members and a controller, on any kind of clusters.
//!
//! ```text
//!                                 /-- sim: embedded clusters on paused time, the controller in this process
//! scenario --> TestEnvironment --+--- local: real control planes, the `fedrs` program, a proxy before each member
//!                                 \-- kubeconfigs: clusters that somebody else runs, the `fedrs` program
//! ```
//!
//! With `local` the program has exactly the permissions of the ServiceAccounts in the manifests; with `kubeconfigs` those of
//! the kubeconfigs.
//!
//! Time is tokio's: paused with `sim`, real otherwise. Every scenario has its own namespace.

mod audit_log;
mod cleanup;
mod client;
mod clusters;
mod commands;
mod discovery_process;
mod embedded;
mod kubectl;
mod local_controllers;
mod local_process;
mod observe;
mod processes;
mod program;
mod quota;
mod rbac_usage;
mod real;
mod service_account;
mod spec;
mod standby;

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use control_plane::{ProxyMode, request};
use fedrs_api::{LocalKind, SetKind};
use kube::Client;
use serde_json::{Value, json};
use tokio::time::{Instant, error::Elapsed, sleep, timeout};

pub(crate) use self::audit_log::read as audit_entries;
pub use self::{
    audit_log::AuditEntry,
    clusters::{ClusterKind, Shared},
    discovery_process::{Audience, DiscoveryProcess},
    kubectl::{CommandOutput, KubectlSession},
    spec::{Capability, TestEnvironmentSpec, short_waits},
};
use self::{embedded::Embedded, local_process::LocalProcess, real::Real, spec::NAMESPACE_PREFIX};
use crate::ReadyWatcher;

/// The timeout of a request to a member.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The interval at which a wait checks real clusters.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// A host, members and a controller.
pub struct TestEnvironment {
    namespace: String,
    local: LocalKind,
    /// Clients that bypass all injected faults.
    host: Client,
    members: BTreeMap<String, Client>,
    clusters: Clusters,
    /// By member.
    local_controllers: BTreeMap<String, LocalProcess>,
}

enum Clusters {
    Embedded(Box<Embedded>),
    Real(Box<Real>),
}

impl TestEnvironment {
    /// Sets up the environment and starts the controller, and in all members that of LocalReplicaSets if the scenario's sets have
    /// these. `shared` are clusters that several scenarios share, or none for
    /// embedded clusters of its own.
    pub async fn set_up(spec: &TestEnvironmentSpec, shared: Option<&'static Shared>) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("{}{number}", run_prefix());
        let clusters = match shared {
            None => Clusters::Embedded(Box::new(Embedded::start(spec).await)),
            Some(shared) => Clusters::Real(Box::new(Real::new(shared, spec).await)),
        };
        let (host, members) = match &clusters {
            Clusters::Embedded(embedded) => embedded.clients(),
            Clusters::Real(real) => real.clients().await,
        };
        let mut env = Self {
            namespace,
            local: spec.local,
            host,
            members,
            clusters,
            local_controllers: BTreeMap::new(),
        };
        let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": env.namespace } });
        for client in env.all_clients() {
            request(&client, "POST", "/api/v1/namespaces", &object)
                .await
                .expect("a namespace can be made");
        }
        if spec.local == LocalKind::LocalReplicaSet {
            for member in env.member_names() {
                env.start_local_controller(&member).await;
            }
        }
        env.start_controller().await;
        env
    }

    fn all_clients(&self) -> Vec<Client> {
        let members = self.members.values().cloned();
        std::iter::once(self.host.clone()).chain(members).collect()
    }

    /// The scenario's namespace, on the host and in all members.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The names of all members, in order.
    pub fn member_names(&self) -> Vec<String> {
        self.members.keys().cloned().collect()
    }

    /// Clients of the host and of the members, as their administrators, past all network faults.
    pub fn clients(&self) -> (&Client, &BTreeMap<String, Client>) {
        (&self.host, &self.members)
    }

    /// Sends a request to the host as its administrator.
    pub async fn on_host(&self, method: &str, path: &str, body: &Value) -> kube::Result<Value> {
        request(&self.host, method, path, body).await
    }

    /// Sends a request to a member as its administrator, past all network faults. A timeout is an error.
    pub async fn on_member(
        &self,
        member: &str,
        method: &str,
        path: &str,
        body: &Value,
    ) -> kube::Result<Value> {
        let answer = request(&self.members[member], method, path, body);
        let late = |elapsed: Elapsed| Err(kube::Error::Service(elapsed.into()));
        timeout(TIMEOUT, answer).await.unwrap_or_else(late)
    }

    /// The kind of the scenario's sets.
    pub fn kind(&self) -> SetKind {
        self.local.of_sets()
    }

    /// The kind of their local workloads.
    pub fn local_kind(&self) -> LocalKind {
        self.local
    }

    /// The path of the collection of the scenario's sets, or of the one with this name.
    pub fn frs_path(&self, name: &str) -> String {
        let slash = if name.is_empty() { "" } else { "/" };
        let resource = match self.kind() {
            SetKind::FederatedReplicaSet => "federatedreplicasets",
            SetKind::FederatedDeployment => "federateddeployments",
        };
        let namespace = &self.namespace;
        format!("/apis/fedrs.dev/v1alpha1/namespaces/{namespace}/{resource}{slash}{name}")
    }

    /// The path of the local workload with this name in a member.
    pub fn set_path(&self, name: &str) -> String {
        let (version, resource) = (self.local.api_version(), self.local.resource());
        let namespace = &self.namespace;
        format!("/apis/{version}/namespaces/{namespace}/{resource}/{name}")
    }

    /// Creates a set: a FederatedReplicaSet, or a FederatedDeployment with its fields.
    pub async fn create(&self, frs: &Value) {
        let mut frs = frs.clone();
        frs["metadata"]["namespace"] = self.namespace.clone().into();
        if self.kind() == SetKind::FederatedDeployment {
            frs["kind"] = "FederatedDeployment".into();
        }
        if self.local == LocalKind::LocalReplicaSet {
            frs["spec"]["localKind"] = self.local.as_str().into();
        }
        self.on_host("POST", &self.frs_path(""), &frs)
            .await
            .expect("a set can be created");
    }

    /// Changes the set `name` by a merge patch.
    pub async fn patch(&self, name: &str, patch: &Value) {
        self.on_host("PATCH", &self.frs_path(name), patch)
            .await
            .expect("a set can be changed");
    }

    /// Creates a set and waits until all its replicas are available.
    pub async fn run(&self, frs: &Value) {
        self.create(frs).await;
        let name = frs["metadata"]["name"].as_str().unwrap_or_default();
        let all = frs["spec"]["replicas"].as_u64().unwrap_or(1);
        self.wait_until("all replicas are available", 60, async |env| {
            env.available(name).await == all
        })
        .await;
    }

    /// Waits until `holds`, at most `seconds`; panics with the state of the clusters if it never does.
    pub async fn wait_until(
        &self,
        what: &str,
        seconds: u64,
        mut holds: impl AsyncFnMut(&Self) -> bool,
    ) {
        let deadline = Instant::now() + Duration::from_secs(seconds);
        let mut changes = match &self.clusters {
            Clusters::Embedded(embedded) => Some(embedded.federation().change_waiter()),
            Clusters::Real(_) => None,
        };
        while !holds(self).await {
            if Instant::now() >= deadline {
                let state = self.describe().await;
                panic!("timed out after {seconds} s: {what}\n{state}");
            }
            match &mut changes {
                Some(changes) => changes.next(deadline).await,
                None => sleep(POLL_INTERVAL).await,
            }
        }
    }

    /// Watches from now on how many replicas of `name` are ready.
    pub async fn watch(&self, name: &str) -> ReadyWatcher {
        match &self.clusters {
            Clusters::Embedded(embedded) => {
                ReadyWatcher::of_sim(embedded.federation(), &self.namespace, name)
            }
            Clusters::Real(_) => {
                ReadyWatcher::of_clients(&self.members, &self.namespace, Some(name)).await
            }
        }
    }

    /// Starts the controller with the members that it knew before.
    pub async fn start_controller(&mut self) {
        match &mut self.clusters {
            Clusters::Embedded(embedded) => embedded.start_controller().await,
            Clusters::Real(real) => real.start_controller(),
        }
    }

    /// Kills all controllers.
    pub async fn kill_controller(&mut self) {
        match &mut self.clusters {
            Clusters::Embedded(embedded) => embedded.kill_controller().await,
            Clusters::Real(real) => real.kill_controller(),
        }
    }

    /// Gives the controller the kubeconfig of a member.
    pub async fn add_member(&mut self, member: &str) {
        match &mut self.clusters {
            Clusters::Embedded(embedded) => embedded.add_member(member).await,
            Clusters::Real(real) => real.add_member(member).await,
        }
    }

    /// Removes the kubeconfig of a member.
    pub async fn remove_member(&mut self, member: &str) {
        match &mut self.clusters {
            Clusters::Embedded(embedded) => embedded.remove_member(member).await,
            Clusters::Real(real) => real.remove_member(member),
        }
    }

    /// Changes the network between the controller and a member ([`Capability::NetworkFaults`]).
    pub fn set_network(&mut self, member: &str, mode: ProxyMode) {
        match &mut self.clusters {
            Clusters::Embedded(embedded) => embedded.set_network(member, mode),
            Clusters::Real(real) => real.set_network(member, mode),
        }
    }

    /// Suspends the API server of a member with all connections open, or resumes it ([`Capability::ApiServerFaults`]).
    pub async fn hang(&mut self, member: &str, is_hanging: bool) {
        match &mut self.clusters {
            Clusters::Embedded(embedded) => embedded.hang(member, is_hanging),
            Clusters::Real(real) => real.hang(member, is_hanging).await,
        }
    }

    /// Lets node `number` (from 1) of a member fail, or recovers it ([`Capability::NodeFaults`]).
    pub async fn lose_node(&mut self, member: &str, number: u32, is_lost: bool) {
        match &mut self.clusters {
            Clusters::Embedded(embedded) => embedded.lose_node(member, number, is_lost),
            Clusters::Real(real) => real.lose_node(member, number, is_lost).await,
        }
    }

    /// Compacts the history of a member and restarts its API server ([`Capability::ApiServerFaults`]).
    pub async fn compact_history(&mut self, member: &str) {
        match &mut self.clusters {
            Clusters::Embedded(embedded) => embedded.compact_history(member),
            Clusters::Real(real) => real.compact_history(member).await,
        }
    }

    /// The log of the controller, if it is a process.
    fn log(&self) -> String {
        match &self.clusters {
            Clusters::Embedded(_) => String::new(),
            Clusters::Real(real) => format!("{}\n{}", real.log(), self.local_logs()),
        }
    }
}

/// A kubeconfig like `direct`, an administrator's, with a new token of a controller's `account`.
pub(crate) async fn account_kubeconfig(account: &str, direct: &str) -> String {
    service_account::kubeconfig(account, direct, direct).await
}

/// The prefix of the namespaces of this run's scenarios.
fn run_prefix() -> String {
    format!("{NAMESPACE_PREFIX}{}-", std::process::id())
}
