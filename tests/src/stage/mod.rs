//! What scenarios are written against: a host, members and a controller, of whatever kind.
//!
//! ```text
//!                       /-- sim: embedded clusters on paused time, the controller in this process
//! scenario --> Stage --+--- local: real control planes started here, the `fedrs` program, a proxy before each member
//!                       \-- kubeconfigs: clusters of somebody else, the `fedrs` program
//! ```
//!
//! With `local` the program has the rights of the ServiceAccounts that the manifests make, and no others; with
//! `kubeconfigs` those of the kubeconfigs.
//!
//! Time is tokio's: paused with `sim`, real otherwise. Every scenario has a namespace of its own.

mod account;
mod audit;
mod cleanup;
mod client;
mod clusters;
mod commands;
mod embedded;
mod observe;
mod program;
mod quota;
mod real;
mod rights;
mod rivals;
mod spec;

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use control_plane::{ProxyMode, request};
use kube::Client;
use serde_json::{Value, json};
use tokio::time::{Instant, error::Elapsed, sleep, timeout};

pub use self::{
    audit::Asked,
    clusters::{Kind, Shared},
    spec::{Need, StageSpec, short_waits},
};
use self::{embedded::Embedded, real::Real, spec::NAMESPACE_PREFIX};
use crate::ReadyWatcher;

/// How long a scenario waits for an answer of a member.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often a wait looks at real clusters.
const LOOK: Duration = Duration::from_millis(200);

/// A host, members, a controller.
pub struct Stage {
    namespace: String,
    /// Reach the clusters past all faults.
    host: Client,
    members: BTreeMap<String, Client>,
    clusters: Clusters,
}

enum Clusters {
    Embedded(Box<Embedded>),
    Real(Box<Real>),
}

impl Stage {
    /// Sets everything up; the controller runs. `shared` are clusters that outlive the scenario, or none for embedded
    /// ones of its own.
    pub async fn set_up(spec: &StageSpec, shared: Option<&'static Shared>) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("{}{number}", run_prefix());
        let clusters = match shared {
            None => Clusters::Embedded(Box::new(Embedded::start(spec).await)),
            Some(shared) => Clusters::Real(Box::new(Real::new(shared, spec).await)),
        };
        let (host, members) = match &clusters {
            Clusters::Embedded(it) => it.clients(),
            Clusters::Real(it) => it.clients().await,
        };
        let mut stage = Self {
            namespace,
            host,
            members,
            clusters,
        };
        let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": stage.namespace } });
        for client in stage.all_clients() {
            request(&client, "POST", "/api/v1/namespaces", &object)
                .await
                .expect("a namespace can be made");
        }
        stage.start_controller().await;
        stage
    }

    fn all_clients(&self) -> Vec<Client> {
        let members = self.members.values().cloned();
        std::iter::once(self.host.clone()).chain(members).collect()
    }

    /// The scenario's namespace, on the host and in all members.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// All members' names, in order.
    pub fn member_names(&self) -> Vec<String> {
        self.members.keys().cloned().collect()
    }

    /// A request to the host as its administrator makes it.
    pub async fn on_host(&self, method: &str, path: &str, body: &Value) -> kube::Result<Value> {
        request(&self.host, method, path, body).await
    }

    /// A request to a member as its administrator makes it, past all faults of links. One that hangs is an error.
    pub async fn on_member(
        &self,
        member: &str,
        method: &str,
        path: &str,
        body: &Value,
    ) -> kube::Result<Value> {
        let answer = request(&self.members[member], method, path, body);
        let late = |it: Elapsed| Err(kube::Error::Service(it.into()));
        timeout(PATIENCE, answer).await.unwrap_or_else(late)
    }

    /// The path of the FederatedReplicaSets, or of the one with this name.
    pub fn frs_path(&self, name: &str) -> String {
        let slash = if name.is_empty() { "" } else { "/" };
        format!(
            "/apis/fedrs.dev/v1alpha1/namespaces/{}/federatedreplicasets{slash}{name}",
            self.namespace
        )
    }

    /// The path of the ReplicaSet with this name in a member.
    pub fn set_path(&self, name: &str) -> String {
        format!(
            "/apis/apps/v1/namespaces/{}/replicasets/{name}",
            self.namespace
        )
    }

    /// Creates a FederatedReplicaSet.
    pub async fn create(&self, frs: &Value) {
        let mut frs = frs.clone();
        frs["metadata"]["namespace"] = self.namespace.clone().into();
        self.on_host("POST", &self.frs_path(""), &frs)
            .await
            .expect("a FederatedReplicaSet can be created");
    }

    /// Changes the FederatedReplicaSet `name` by a merge patch.
    pub async fn patch(&self, name: &str, patch: &Value) {
        self.on_host("PATCH", &self.frs_path(name), patch)
            .await
            .expect("a FederatedReplicaSet can be changed");
    }

    /// Creates a FederatedReplicaSet and waits until all of it runs.
    pub async fn run(&self, frs: &Value) {
        self.create(frs).await;
        let name = frs["metadata"]["name"].as_str().unwrap_or_default();
        let all = frs["spec"]["replicas"].as_u64().unwrap_or(1);
        self.wait_until("all run", 60, async |it| it.available(name).await == all)
            .await;
    }

    /// Waits until `holds`, at most `seconds`; panics with what the clusters held if it never does.
    pub async fn wait_until(
        &self,
        what: &str,
        seconds: u64,
        mut holds: impl AsyncFnMut(&Self) -> bool,
    ) {
        let deadline = Instant::now() + Duration::from_secs(seconds);
        let mut looks = match &self.clusters {
            Clusters::Embedded(it) => Some(it.fleet().looks()),
            Clusters::Real(_) => None,
        };
        while !holds(self).await {
            if Instant::now() >= deadline {
                let state = self.describe().await;
                panic!("not within {seconds} s: {what}\n{state}");
            }
            match &mut looks {
                Some(looks) => looks.next(deadline).await,
                None => sleep(LOOK).await,
            }
        }
    }

    /// Watches from now on how many replicas of `name` are ready.
    pub async fn watch(&self, name: &str) -> ReadyWatcher {
        match &self.clusters {
            Clusters::Embedded(it) => ReadyWatcher::of_fleet(it.fleet(), &self.namespace, name),
            Clusters::Real(_) => {
                ReadyWatcher::of_clients(&self.members, &self.namespace, name).await
            }
        }
    }

    /// Starts the controller, with what it knew of members before.
    pub async fn start_controller(&mut self) {
        match &mut self.clusters {
            Clusters::Embedded(it) => it.start_controller().await,
            Clusters::Real(it) => it.start_controller(),
        }
    }

    /// The controller ends without a word.
    pub async fn kill_controller(&mut self) {
        match &mut self.clusters {
            Clusters::Embedded(it) => it.kill_controller().await,
            Clusters::Real(it) => it.kill_controller(),
        }
    }

    /// The controller learns of a member.
    pub async fn add_member(&mut self, member: &str) {
        match &mut self.clusters {
            Clusters::Embedded(it) => it.add_member(member).await,
            Clusters::Real(it) => it.add_member(member).await,
        }
    }

    /// The kubeconfig of a member is taken away.
    pub async fn remove_member(&mut self, member: &str) {
        match &mut self.clusters {
            Clusters::Embedded(it) => it.remove_member(member).await,
            Clusters::Real(it) => it.remove_member(member),
        }
    }

    /// The controller reaches a member so from now on, or not at all ([`Need::CutOff`]).
    pub fn set_link(&mut self, member: &str, mode: ProxyMode) {
        match &mut self.clusters {
            Clusters::Embedded(it) => it.set_link(member, mode),
            Clusters::Real(it) => it.set_link(member, mode),
        }
    }

    /// The API server of a member hangs, with all connections open, or goes on ([`Need::Restarts`]).
    pub async fn hang(&mut self, member: &str, is_hanging: bool) {
        match &mut self.clusters {
            Clusters::Embedded(it) => it.hang(member, is_hanging),
            Clusters::Real(it) => it.hang(member, is_hanging).await,
        }
    }

    /// Node `number` (from 1) of a member stops to answer, or does again ([`Need::Nodes`]).
    pub async fn lose_node(&mut self, member: &str, number: u32, is_lost: bool) {
        match &mut self.clusters {
            Clusters::Embedded(it) => it.lose_node(member, number, is_lost),
            Clusters::Real(it) => it.lose_node(member, number, is_lost).await,
        }
    }

    /// The API server of a member starts anew, and has forgotten all versions but the present ([`Need::Restarts`]).
    pub async fn forget_history(&mut self, member: &str) {
        match &mut self.clusters {
            Clusters::Embedded(it) => it.forget_history(member),
            Clusters::Real(it) => it.forget_history(member).await,
        }
    }

    /// What the controller said, as far as it is a program of its own.
    fn log(&self) -> String {
        match &self.clusters {
            Clusters::Embedded(_) => String::new(),
            Clusters::Real(it) => it.log(),
        }
    }
}

/// How the namespaces of this run's scenarios begin.
fn run_prefix() -> String {
    format!("{NAMESPACE_PREFIX}{}-", std::process::id())
}
