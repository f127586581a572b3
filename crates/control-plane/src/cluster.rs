//! One cluster: its processes, its nodes, and faults of both.

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
    commands::{AUDIT_POLICY, Settings},
    nodes::{MANAGED, NodeResources, node},
    pki::{Pki, private_file},
    process::Process,
    programs::{COMPONENTS, Program, Programs},
    request::request,
    stages::stages,
    tokens::{self, ServiceAccount, Validity},
    with_path,
};

/// How long a cluster may take to become ready. A busy machine with two cores takes half a minute for four of them.
const READY_TIMEOUT: Duration = Duration::from_secs(180);
/// How often its state is polled meanwhile.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The parts of a cluster.
#[derive(Clone, Debug)]
pub struct ControlPlaneSpec {
    /// Its name.
    pub name: String,
    /// How many nodes it has. Without nodes, only etcd, the API server and the controllers run.
    pub nodes: u32,
    /// The resources of each node.
    pub resources: NodeResources,
}

/// A running cluster. Dropping it ends it.
pub struct ControlPlane {
    spec: ControlPlaneSpec,
    is_audited: bool,
    directory: PathBuf,
    address: IpAddr,
    programs: Programs,
    pki: Pki,
    kubeconfig: String,
    processes: BTreeMap<Program, Process>,
}

impl ControlPlane {
    /// Starts etcd and the API server on `address`, in `directory`. The server's certificate is also valid for `others`.
    /// With `is_audited`, it logs each request. The cluster is not ready yet: see [`ready`](Self::ready).
    pub(crate) fn start(
        spec: ControlPlaneSpec,
        is_audited: bool,
        directory: &Path,
        address: IpAddr,
        others: &[IpAddr],
        programs: &Programs,
    ) -> Result<Self> {
        with_path(directory, fs::create_dir_all(directory))?;
        let pki = Pki::create(&directory.join("pki"), &[&[address], others].concat())?;
        let kubeconfig = pki.kubeconfig(&spec.name, address)?;
        private_file(&directory.join("admin.yaml"), &kubeconfig)?;
        private_file(&directory.join("stages.yaml"), &stages())?;
        private_file(&directory.join("audit-policy.yaml"), AUDIT_POLICY)?;
        let mut cluster = Self {
            spec,
            is_audited,
            directory: directory.to_owned(),
            address,
            programs: programs.clone(),
            pki,
            kubeconfig,
            processes: BTreeMap::new(),
        };
        cluster.spawn(Program::Etcd)?;
        cluster.spawn(Program::ApiServer)?;
        Ok(cluster)
    }

    /// Waits until the API server answers, starts the rest, and waits until all nodes are ready.
    pub(crate) async fn ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + READY_TIMEOUT;
        self.api_server_ready(deadline).await?;
        self.spawn(Program::ControllerManager)?;
        // The API server rejects pods until it exists.
        self.wait(
            deadline,
            "the namespace default has a ServiceAccount",
            async |client| {
                let path = "/api/v1/namespaces/default/serviceaccounts/default";
                request(&client, "GET", path, &Value::Null).await.is_ok()
            },
        )
        .await?;
        if self.spec.nodes > 0 {
            self.spawn(Program::Scheduler)?;
            self.spawn(Program::Kwok)?;
        }
        for number in 1..=self.spec.nodes {
            self.add_node(&self.node_name(number), &self.spec.resources)
                .await?;
        }
        let nodes = self.spec.nodes as usize;
        self.wait(deadline, "all nodes are ready", async |client| {
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

    /// The address of its API server.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// A kubeconfig for its administrator.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// A kubeconfig for its administrator with another address, such as that of a proxy.
    pub fn kubeconfig_by(&self, server: IpAddr) -> Result<String> {
        self.pki.kubeconfig(&self.spec.name, server)
    }

    /// A token of a ServiceAccount that may have expired. The API server itself issues tokens that are valid from now on, for at
    /// least ten minutes.
    pub fn token(&self, account: &ServiceAccount, validity: Validity) -> Result<String> {
        let key = self.pki.tokens_key();
        tokens::token(
            &with_path(&key, fs::read_to_string(&key))?,
            account,
            validity,
        )
    }

    /// The directory of its logs and data: `PROGRAM.log`, `audit.log`.
    pub fn directory(&self) -> &Path {
        &self.directory
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

    /// Stops the heartbeats of a node (`is_lost`), or resumes them.
    pub async fn set_node_lost(&self, name: &str, is_lost: bool) -> Result<()> {
        let value = if is_lost {
            Value::Null
        } else {
            MANAGED.1.into()
        };
        let patch = json!({ "metadata": { "labels": { MANAGED.0: value } } });
        self.patch_node(name, &patch).await
    }

    /// Resumes the heartbeats of its first nodes, and uncordons them.
    pub async fn restore_nodes(&self) -> Result<()> {
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

    /// Kills a component.
    pub fn kill(&mut self, component: Program) {
        if let Some(mut process) = self.processes.remove(&component) {
            process.kill();
        }
    }

    /// Suspends a component until it is [resumed](Self::resume): its connections stay open and silent.
    pub fn pause(&self, component: Program) {
        if let Some(process) = self.processes.get(&component) {
            process.identity.signal(Signal::STOP);
        }
    }

    /// Resumes a suspended component.
    pub fn resume(&self, component: Program) {
        if let Some(process) = self.processes.get(&component) {
            process.identity.signal(Signal::CONT);
        }
    }

    /// Starts a component again, after killing it if it runs. Waits until the API server is ready.
    pub async fn restart(&mut self, component: Program) -> Result<()> {
        self.kill(component);
        self.spawn(component)?;
        self.api_server_ready(Instant::now() + READY_TIMEOUT).await
    }

    /// Compacts etcd's history and restarts the API server, which then answers older watches and lists with `410 Expired`.
    pub async fn compact(&mut self) -> Result<()> {
        let revision = self.etcd("kv/range", &json!({ "key": "AA==" })).await?;
        let revision = revision["header"]["revision"].clone();
        let request = json!({ "revision": revision, "physical": true });
        self.etcd("kv/compaction", &request).await?;
        self.restart(Program::ApiServer).await
    }

    /// Starts the `components` that do not run, and waits until the API server is ready.
    pub async fn start_again(&mut self, components: &[Program]) -> Result<()> {
        for component in components {
            if !self.processes.contains_key(component) {
                self.spawn(*component)?;
            }
        }
        self.api_server_ready(Instant::now() + READY_TIMEOUT).await
    }

    /// Starts all components that do not run, and waits until the API server is ready.
    pub async fn repair(&mut self) -> Result<()> {
        let without_nodes = COMPONENTS.len() - usize::from(self.spec.nodes == 0) * 2;
        self.start_again(&COMPONENTS[..without_nodes]).await
    }

    /// Copies the data of etcd, as it is at this moment, for [`restore`](Self::restore).
    pub fn back_up(&self) -> Result<()> {
        let backup = self.backup();
        remove(&backup)?;
        self.pause(Program::Etcd);
        let copied = copy(&self.directory.join(Program::Etcd.name()), &backup);
        self.resume(Program::Etcd);
        copied
    }

    /// Stops everything, replaces the data of etcd by the [backup](Self::back_up), and starts everything again: controllers
    /// that were not restarted would not see what is restored.
    pub async fn restore(&mut self) -> Result<()> {
        self.end();
        let data = self.directory.join(Program::Etcd.name());
        remove(&data)?;
        copy(&self.backup(), &data)?;
        self.repair().await
    }

    fn backup(&self) -> PathBuf {
        self.directory.join("etcd-backup")
    }

    /// Kills all components, and removes no files: what a loss of power does.
    pub fn end(&mut self) {
        for component in COMPONENTS.into_iter().rev() {
            self.kill(component);
        }
    }

    /// Keeps the processes running when it is dropped.
    pub(crate) fn detach(&mut self) {
        self.processes.clear();
    }

    /// The number of its processes.
    pub(crate) fn processes(&self) -> usize {
        self.processes.len()
    }

    fn spawn(&mut self, component: Program) -> Result<()> {
        let settings = Settings {
            programs: &self.programs,
            directory: &self.directory,
            pki: &self.pki,
            address: self.address,
            audit: self.is_audited,
        };
        let log = self.directory.join(format!("{}.log", component.name()));
        self.processes.insert(
            component,
            Process::start(settings.command(component), &log)?,
        );
        Ok(())
    }

    /// Waits until the API server is ready.
    async fn api_server_ready(&mut self, deadline: Instant) -> Result<()> {
        self.wait(deadline, "the API server is ready", async |client| {
            is_ready(&client).await
        })
        .await
    }

    /// Waits until `holds`. Fails at the deadline, or if a process exits.
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
            for (component, process) in &mut self.processes {
                if let Some(end) = process.exit_status() {
                    return Err(Error::Program {
                        program: format!("{}/{}", self.spec.name, component.name()),
                        message: format!("exited: {end}"),
                    });
                }
            }
            if Instant::now() >= deadline {
                let logs = self.directory.display();
                return Err(Error::Cluster {
                    cluster: self.spec.name.clone(),
                    message: format!("timed out waiting until {what}; logs are in {logs}"),
                });
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    /// A request to etcd's JSON gateway.
    async fn etcd(&self, call: &str, body: &Value) -> Result<Value> {
        let mut config = Config::new(
            format!("http://{}:{ETCD_PORT}", self.address)
                .parse()
                .expect("an address is a valid URL"),
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

/// Removes a directory, if it exists.
fn remove(directory: &Path) -> Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => with_path(directory, removed),
    }
}

/// Copies a directory with all that it contains.
fn copy(from: &Path, to: &Path) -> Result<()> {
    with_path(to, fs::create_dir_all(to))?;
    for entry in with_path(from, fs::read_dir(from))? {
        let entry = with_path(from, entry)?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy(&source, &target)?;
        } else {
            with_path(&source, fs::copy(&source, &target))?;
        }
    }
    Ok(())
}

async fn ready_nodes(client: &Client) -> Option<usize> {
    let list = request(client, "GET", "/api/v1/nodes", &Value::Null)
        .await
        .ok()?;
    let ready = |node: &&Value| {
        let conditions = node["status"]["conditions"].as_array();
        conditions.is_some_and(|all| {
            all.iter()
                .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
        }) && node["spec"]["taints"].is_null()
    };
    Some(list["items"].as_array()?.iter().filter(ready).count())
}

async fn is_ready(client: &Client) -> bool {
    let request = Request::get("/readyz").body(Vec::new());
    let request = request.expect("a path is a valid URI");
    client.request_text(request).await.is_ok()
}
