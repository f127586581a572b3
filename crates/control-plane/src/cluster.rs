//! One cluster: its processes, its nodes, and what can be done to them.

use std::{
    collections::BTreeMap,
    fs,
    net::IpAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use http::Request;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::{
    Error, Result,
    address::ETCD_PORT,
    at,
    commands::{AUDIT_POLICY, Settings, Waits},
    nodes::{MANAGED, NodeResources, node, stages},
    pki::{Pki, private_file},
    process::Process,
    programs::Programs,
    request::request,
    tokens::{self, Account, Life},
};

/// How long a cluster may take to be ready. A busy machine with two cores takes half a minute for four of them.
const READY_WITHIN: Duration = Duration::from_secs(180);
/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(100);

/// A process of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The store.
    Etcd,
    /// The API server.
    ApiServer,
    /// Kubernetes' controllers.
    ControllerManager,
    /// Kubernetes' scheduler.
    Scheduler,
    /// All of the nodes.
    Nodes,
}

impl Part {
    const ALL: [Self; 5] = [
        Self::Etcd,
        Self::ApiServer,
        Self::ControllerManager,
        Self::Scheduler,
        Self::Nodes,
    ];

    /// The name of its program and of its log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Nodes => "kwok",
        }
    }
}

/// What a cluster is made of.
#[derive(Clone, Debug)]
pub struct ControlPlaneSpec {
    /// Its name.
    pub name: String,
    /// How many nodes it has. Without any, nothing schedules: only etcd, the API server and the controllers run.
    pub nodes: u32,
    /// What each node can give.
    pub resources: NodeResources,
    /// The API server writes down each request (without bodies) in `audit.log`.
    pub audit: bool,
}

/// A running cluster. It ends when it is dropped.
pub struct ControlPlane {
    spec: ControlPlaneSpec,
    folder: PathBuf,
    address: IpAddr,
    programs: Programs,
    pki: Pki,
    kubeconfig: String,
    processes: BTreeMap<Part, Process>,
}

impl ControlPlane {
    /// Starts the store and the API server on `address`, known as `others` too, in `folder`, which is made. It is
    /// not ready yet: see [`ready`](Self::ready).
    pub(crate) fn start(
        spec: ControlPlaneSpec,
        folder: &Path,
        address: IpAddr,
        others: &[IpAddr],
        programs: &Programs,
    ) -> Result<Self> {
        at(folder, fs::create_dir_all(folder))?;
        let pki = Pki::create(&folder.join("pki"), &[&[address], others].concat())?;
        let kubeconfig =
            pki.kubeconfig(&spec.name, address, "kubernetes-admin", "system:masters")?;
        private_file(&folder.join("admin.yaml"), &kubeconfig)?;
        private_file(&folder.join("stages.yaml"), &stages())?;
        private_file(&folder.join("audit-policy.yaml"), AUDIT_POLICY)?;
        let mut cluster = Self {
            spec,
            folder: folder.to_owned(),
            address,
            programs: programs.clone(),
            pki,
            kubeconfig,
            processes: BTreeMap::new(),
        };
        cluster.spawn(Part::Etcd)?;
        cluster.spawn(Part::ApiServer)?;
        Ok(cluster)
    }

    /// Waits until the API server answers, starts the rest, and waits until all nodes are ready.
    pub(crate) async fn ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + READY_WITHIN;
        self.answers(deadline).await?;
        self.spawn(Part::ControllerManager)?;
        // Pods need it: what creates them next would be refused.
        self.wait(
            deadline,
            "the namespace default has its ServiceAccount",
            async |client| {
                let path = "/api/v1/namespaces/default/serviceaccounts/default";
                request(&client, "GET", path, &Value::Null).await.is_ok()
            },
        )
        .await?;
        if self.spec.nodes > 0 {
            self.spawn(Part::Scheduler)?;
            self.spawn(Part::Nodes)?;
        }
        for number in 1..=self.spec.nodes {
            self.add_node(&self.node_name(number), &self.spec.resources)
                .await?;
        }
        let nodes = self.spec.nodes as usize;
        self.wait(deadline, "its nodes are ready", async |client| {
            ready_nodes(&client).await == Some(nodes)
        })
        .await
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// The name of node `number`, counted from 1.
    pub fn node_name(&self, number: u32) -> String {
        format!("{}-node-{number}", self.spec.name)
    }

    /// Where its API server listens.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// A kubeconfig for its administrator.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// A kubeconfig for its administrator that goes to `server`, such as a proxy in front of it.
    pub fn kubeconfig_by(&self, server: IpAddr) -> Result<String> {
        self.pki.kubeconfig(
            &self.spec.name,
            server,
            "kubernetes-admin",
            "system:masters",
        )
    }

    /// A token of a ServiceAccount with a past: what its API server gives begins now, and lives ten minutes at least.
    pub fn token(&self, account: &Account, life: Life) -> Result<String> {
        let key = self.pki.tokens_key();
        tokens::token(&at(&key, fs::read_to_string(&key))?, account, life)
    }

    /// Where its logs and data are: `PROGRAM.log`, `audit.log`.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A client for its administrator.
    pub async fn client(&self) -> Result<Client> {
        let kubeconfig = Kubeconfig::from_yaml(&self.kubeconfig)?;
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        config.default_retry = false;
        Ok(Client::try_from(config)?)
    }

    /// Adds a node.
    pub async fn add_node(&self, name: &str, resources: &NodeResources) -> Result<()> {
        let client = self.client().await?;
        request(&client, "POST", "/api/v1/nodes", &node(name, resources)).await?;
        Ok(())
    }

    /// A node stops to answer (`is_lost`), or does again.
    pub async fn lose_node(&self, name: &str, is_lost: bool) -> Result<()> {
        let value = if is_lost {
            Value::Null
        } else {
            MANAGED.1.into()
        };
        let patch = json!({ "metadata": { "labels": { MANAGED.0: value } } });
        self.patch_node(name, &patch).await
    }

    /// The nodes it began with answer and take pods, whatever was done to them.
    pub async fn mend_nodes(&self) -> Result<()> {
        let patch = json!({
            "metadata": { "labels": { MANAGED.0: MANAGED.1 } },
            "spec": { "unschedulable": null },
        });
        for number in 1..=self.spec.nodes {
            self.patch_node(&self.node_name(number), &patch).await?;
        }
        Ok(())
    }

    async fn patch_node(&self, name: &str, patch: &Value) -> Result<()> {
        let (client, path) = (self.client().await?, format!("/api/v1/nodes/{name}"));
        request(&client, "PATCH", &path, patch).await?;
        Ok(())
    }

    /// A process ends without a word.
    pub fn kill(&mut self, part: Part) {
        if let Some(mut process) = self.processes.remove(&part) {
            process.kill();
        }
    }

    /// A process hangs until it is [resumed](Self::resume): it is there, and doesn't answer.
    pub fn stop(&self, part: Part) {
        if let Some(process) = self.processes.get(&part) {
            process.identity.signal(Signal::STOP);
        }
    }

    /// A process that hung goes on.
    pub fn resume(&self, part: Part) {
        if let Some(process) = self.processes.get(&part) {
            process.identity.signal(Signal::CONT);
        }
    }

    /// Starts a process again, killing it first if it runs; waits until the API server answers.
    pub async fn restart(&mut self, part: Part) -> Result<()> {
        self.kill(part);
        self.spawn(part)?;
        self.answers(Instant::now() + READY_WITHIN).await
    }

    /// etcd forgets all versions but the present one, and the API server, restarted, can't continue watches and lists:
    /// `410 Expired`.
    pub async fn compact(&mut self) -> Result<()> {
        let revision = self.etcd("kv/range", &json!({ "key": "AA==" })).await?;
        let revision = revision["header"]["revision"].clone();
        let request = json!({ "revision": revision, "physical": true });
        self.etcd("kv/compaction", &request).await?;
        self.restart(Part::ApiServer).await
    }

    /// Ends it and removes nothing.
    pub fn end(&mut self) {
        for part in Part::ALL.iter().rev() {
            self.kill(*part);
        }
    }

    /// Leaves its processes running when it is dropped.
    pub(crate) fn leave(&mut self) {
        self.processes.clear();
    }

    /// How many processes it has.
    pub(crate) fn processes(&self) -> usize {
        self.processes.len()
    }

    fn spawn(&mut self, part: Part) -> Result<()> {
        let settings = Settings {
            programs: &self.programs,
            folder: &self.folder,
            pki: &self.pki,
            address: self.address,
            waits: Waits::default(),
            audit: self.spec.audit,
        };
        let command = match part {
            Part::Etcd => settings.etcd(),
            Part::ApiServer => settings.api_server(),
            Part::ControllerManager => settings.controller_manager(),
            Part::Scheduler => settings.scheduler(),
            Part::Nodes => settings.kwok(),
        };
        let log = self.folder.join(format!("{}.log", part.name()));
        self.processes.insert(part, Process::start(command, &log)?);
        Ok(())
    }

    /// Waits until the API server answers.
    async fn answers(&mut self, deadline: Instant) -> Result<()> {
        self.wait(deadline, "its API server answers", async |client| {
            is_ready(&client).await
        })
        .await
    }

    /// Waits until `holds`; an error if a process ended, or at the deadline.
    async fn wait(
        &mut self,
        deadline: Instant,
        what: &str,
        holds: impl AsyncFn(Client) -> bool,
    ) -> Result<()> {
        let client = self.client().await?;
        loop {
            let answer = tokio::time::timeout(Duration::from_secs(5), holds(client.clone())).await;
            if answer.is_ok_and(|holds| holds) {
                return Ok(());
            }
            for (part, process) in &mut self.processes {
                if let Some(end) = process.ended() {
                    return Err(Error::Program {
                        program: format!("{}/{}", self.spec.name, part.name()),
                        message: format!("ended with {end}"),
                    });
                }
            }
            if Instant::now() >= deadline {
                let logs = self.folder.display();
                return Err(Error::Cluster {
                    cluster: self.spec.name.clone(),
                    message: format!("not in time: {what}; its logs are in {logs}"),
                });
            }
            sleep(LOOK).await;
        }
    }

    /// A request to etcd's gateway for JSON.
    async fn etcd(&self, call: &str, body: &Value) -> Result<Value> {
        let mut config = Config::new(
            format!("http://{}:{ETCD_PORT}", self.address)
                .parse()
                .expect("an address makes a URL"),
        );
        config.default_retry = false;
        let client = Client::try_from(config)?;
        Ok(request(&client, "POST", &format!("/v3/{call}"), body).await?)
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        self.end();
    }
}

async fn ready_nodes(client: &Client) -> Option<usize> {
    let list = request(client, "GET", "/api/v1/nodes", &Value::Null)
        .await
        .ok()?;
    let ready = |node: &&Value| {
        let conditions = node["status"]["conditions"].as_array();
        conditions.is_some_and(|all| {
            all.iter()
                .any(|it| it["type"] == "Ready" && it["status"] == "True")
        }) && node["spec"]["taints"].is_null()
    };
    Some(list["items"].as_array()?.iter().filter(ready).count())
}

async fn is_ready(client: &Client) -> bool {
    let request = Request::get("/readyz").body(Vec::new());
    let request = request.expect("a path makes a request");
    client.request_text(request).await.is_ok()
}
