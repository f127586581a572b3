//! A host and members over HTTPS, and `fedrs` itself run against them as a user runs it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use jiff::Timestamp;
use serde_json::{Value, json};
use sim_cluster::{
    Api, DeleteOptions, Kind, Kubeconfig, NodeSpec, Server, SimCluster, User, WriteOptions,
};
use tempfile::TempDir;

/// Where the controller and its account are.
pub(crate) const NAMESPACE: &str = "fedrs-system";
/// Where the controller's log goes.
const LOG: &str = "controller.log";
/// The longest a test waits for anything.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it looks.
const PERIOD: Duration = Duration::from_millis(50);

/// Kinds that a cluster writes when nobody asks for anything.
const RESTLESS: [&str; 3] = ["Node", "Lease", "Event"];

/// One cluster, served.
pub(crate) struct Cluster {
    pub(crate) sim: SimCluster,
    pub(crate) server: Server,
}

/// A host, members that are not joined yet, and a folder with their kubeconfigs.
pub(crate) struct Fleet {
    folder: TempDir,
    pub(crate) host: Cluster,
    members: BTreeMap<String, Cluster>,
    controller: Option<Child>,
}

/// How a command ended, and what it told.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) errors: String,
}

impl Told {
    /// Checks that it went well.
    #[track_caller]
    pub(crate) fn well(self) -> Self {
        assert_eq!(self.code, Some(0), "{}\n{}", self.out, self.errors);
        self
    }

    /// Checks that it failed.
    #[track_caller]
    pub(crate) fn badly(self) -> Self {
        assert_eq!(self.code, Some(1), "{}\n{}", self.out, self.errors);
        self
    }

    /// Checks that it told all of `words`.
    #[track_caller]
    pub(crate) fn telling(self, words: &[&str]) -> Self {
        let all = format!("{}\n{}", self.out, self.errors);
        for word in words {
            assert!(all.contains(word), "{word:?} is not in:\n{all}");
        }
        self
    }

    /// The lines that say what was done with an object.
    pub(crate) fn steps(&self, done: &str) -> usize {
        let ends = |line: &&str| line.ends_with(done) || line.contains(&format!("{done}: "));
        self.out.lines().filter(ends).count()
    }
}

impl Cluster {
    async fn start(name: &str, nodes: u32) -> Self {
        let mut builder = SimCluster::builder(name).epoch(Timestamp::now());
        for number in 1..=nodes {
            builder = builder.node(NodeSpec::new(format!("{name}-{number}")).pods(20));
        }
        let sim = builder.start();
        let server = sim.serve(None).await.unwrap();
        let cluster = Self { sim, server };
        // What a cluster makes for its first namespaces is there before anybody asks for anything.
        wait_until("each namespace is complete", || {
            let count = |kind| cluster.api().list(&cluster.kind("v1", kind), None).len();
            count("ConfigMap") >= count("Namespace")
        })
        .await;
        cluster
    }

    pub(crate) fn api(&self) -> &Api {
        self.sim.api()
    }

    fn kind(&self, api_version: &str, kind: &str) -> Kind {
        self.api().kind_of(api_version, kind).unwrap()
    }

    pub(crate) fn get(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Option<Value> {
        let kind = self.kind(api_version, kind);
        let object = self.api().get(&kind, namespace, name).ok()?;
        Some(serde_json::to_value(&*object).unwrap())
    }

    fn contents(&self) -> Vec<String> {
        let mut kinds = self.api().kinds();
        kinds.retain(|it| !RESTLESS.contains(&it.kind.as_str()));
        let objects = kinds.iter().flat_map(|it| self.api().list(it, None));
        let versions = objects.map(|it| {
            let metadata = &serde_json::to_value(&*it).unwrap()["metadata"];
            format!(
                "{} {} {}",
                self.sim.name(),
                metadata["uid"],
                metadata["resourceVersion"]
            )
        });
        versions.collect()
    }

    pub(crate) fn create(&self, object: Value) {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let kind = self.kind(text("/apiVersion").unwrap(), text("/kind").unwrap());
        let namespace = text("/metadata/namespace").unwrap_or_default().to_owned();
        self.api()
            .create(&kind, &namespace, object, &WriteOptions::default())
            .unwrap();
    }

    pub(crate) fn delete(&self, api_version: &str, kind: &str, namespace: &str, name: &str) {
        let kind = self.kind(api_version, kind);
        self.api()
            .delete(&kind, namespace, name, &DeleteOptions::default())
            .unwrap();
    }

    /// Lets a user without any rights in.
    pub(crate) fn kubeconfig_of_a_stranger(&self) -> String {
        let token = "a-stranger";
        self.api()
            .admit_token(token, User::named("stranger", &["system:authenticated"]));
        let kubeconfig = Kubeconfig {
            token: token.to_owned(),
            ..self.server.kubeconfig().clone()
        };
        kubeconfig.to_yaml()
    }
}

impl Fleet {
    /// Starts the clusters, with the CRDs on the host.
    pub(crate) async fn start(members: &[&str]) -> Self {
        let fleet = Self::without_crds(members).await;
        for crd in fedrs_api::crd::all() {
            fleet.host.create(serde_json::to_value(&crd).unwrap());
        }
        fleet
    }

    /// Starts the clusters.
    pub(crate) async fn without_crds(members: &[&str]) -> Self {
        let mut fleet = Self {
            folder: tempfile::tempdir().unwrap(),
            host: Cluster::start("host", 0).await,
            members: BTreeMap::new(),
            controller: None,
        };
        fleet.write("host.yaml", &fleet.host.server.kubeconfig().to_yaml());
        for name in members {
            let member = Cluster::start(name, 3).await;
            fleet.write(
                &format!("{name}.yaml"),
                &member.server.kubeconfig().to_yaml(),
            );
            fleet.members.insert((*name).to_owned(), member);
        }
        fleet
    }

    /// Starts the controller as a process of its own.
    pub(crate) fn start_controller(&mut self) {
        assert!(self.controller.is_none(), "one controller at a time");
        self.write("controller.yaml", "probe: {period: 1s}\n");
        let log = std::fs::File::create(self.path(LOG)).unwrap();
        let mut command = command(self.folder.path());
        command
            .args([
                "controller",
                "--config",
                "controller.yaml",
                "--listen",
                "127.0.0.1:0",
            ])
            .stderr(log);
        self.controller = Some(command.spawn().unwrap());
    }

    /// Ends the controller, in order.
    pub(crate) fn stop_controller(&mut self) {
        let mut controller = self.controller.take().unwrap();
        signal("TERM", &controller);
        assert!(controller.wait().unwrap().success());
    }

    pub(crate) fn member(&self, name: &str) -> &Cluster {
        &self.members[name]
    }

    /// Writes a file into the folder in which commands are run.
    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Writes a file that can be run.
    pub(crate) fn write_program(&self, name: &str, text: &str) {
        self.write(name, text);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(self.path(name), mode).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `fedrs` with `arguments`, apart by spaces, for the host.
    pub(crate) async fn fedrs(&self, arguments: &str) -> Told {
        self.fedrs_with(&[], arguments).await
    }

    /// The same with more environment.
    pub(crate) async fn fedrs_with(&self, environment: &[(&str, &str)], arguments: &str) -> Told {
        let mut command = command(self.folder.path());
        command
            .args(arguments.split_whitespace())
            .envs(environment.iter().copied());
        let output = tokio::task::spawn_blocking(move || command.output());
        let output = output.await.unwrap().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let told = Told {
            code: output.status.code(),
            out: text(output.stdout),
            errors: text(output.stderr),
        };
        self.assert_no_secret_in(&told);
        told
    }

    /// Starts `fedrs` with `arguments`, and doesn't wait for it.
    pub(crate) fn start_fedrs(&self, arguments: &str) -> Child {
        let mut command = command(self.folder.path());
        command.args(arguments.split_whitespace());
        command.stdout(Stdio::piped()).spawn().unwrap()
    }

    /// `fedrs join` of a member by its own name.
    pub(crate) async fn join(&self, name: &str, more: &str) -> Told {
        self.fedrs(&format!(
            "join {name} --member-kubeconfig {name}.yaml {more}"
        ))
        .await
    }

    /// No token is ever told, neither a user's nor the controller's.
    fn assert_no_secret_in(&self, told: &Told) {
        let clusters = self.members.values().chain([&self.host]);
        let mut tokens: Vec<String> = clusters
            .map(|it| it.server.kubeconfig().token.clone())
            .collect();
        tokens.extend(self.members.keys().filter_map(|it| self.stored_token(it)));
        for token in tokens {
            let all = format!("{}\n{}", told.out, told.errors);
            assert!(!all.contains(&token), "a token is told:\n{all}");
        }
    }

    /// The kubeconfig in the Secret of a member.
    pub(crate) fn stored(&self, name: &str) -> Option<Value> {
        let secret = self
            .host
            .get("v1", "Secret", NAMESPACE, &format!("member-{name}"))?;
        let encoded: k8s_openapi::ByteString =
            serde_json::from_value(secret["data"]["kubeconfig"].clone()).unwrap();
        let yaml = String::from_utf8(encoded.0).unwrap();
        Some(serde_saphyr::from_str(&yaml).unwrap())
    }

    pub(crate) fn stored_token(&self, name: &str) -> Option<String> {
        let token = self.stored(name)?["users"][0]["user"]["token"].clone();
        Some(token.as_str()?.to_owned())
    }

    /// The name of the controller's account in members.
    pub(crate) fn account(&self) -> String {
        let system = self.host.get("v1", "Namespace", "", "kube-system").unwrap();
        let uid = system["metadata"]["uid"].as_str().unwrap();
        format!("{}-{}", fedrs_api::names::CONTROLLER, &uid[..8])
    }

    /// Creates the set `web`, which is to run anywhere and may be moved.
    pub(crate) fn create_web(&self, replicas: u32) {
        self.host.create(json!({
            "apiVersion": "fedrs.dev/v1alpha1", "kind": "FederatedReplicaSet",
            "metadata": { "namespace": "default", "name": "web" },
            "spec": {
                "replicas": replicas, "selector": { "matchLabels": { "app": "web" } },
                "placement": { "rebalance": true, "clusters": { "*": { "weight": 1 } } },
                "template": {
                    "metadata": { "labels": { "app": "web" } },
                    "spec": { "containers": [{ "name": "main", "image": "main" }] },
                },
            },
        }));
    }

    /// Ready replicas of `web` in a member; none if there is no set.
    pub(crate) fn ready(&self, member: &str) -> Option<u64> {
        let set = self
            .member(member)
            .get("apps/v1", "ReplicaSet", "default", "web")?;
        Some(set["status"]["readyReplicas"].as_u64().unwrap_or_default())
    }

    /// Waits until the members have so many ready replicas of `web`.
    pub(crate) async fn wait_for(&self, ready: &[(&str, u64)]) {
        let what = format!("ready replicas of web: {ready:?}");
        let as_wanted = |&(name, count): &(&str, u64)| self.ready(name) == Some(count);
        wait_until(&what, || ready.iter().all(as_wanted)).await;
    }

    pub(crate) fn member_cluster(&self, name: &str) -> Option<Value> {
        self.host
            .get("fedrs.dev/v1alpha1", "MemberCluster", "", name)
    }

    /// Every object of every cluster with its version, but for what a cluster changes by itself.
    pub(crate) fn contents(&self) -> Vec<String> {
        let clusters = self.members.values().chain([&self.host]);
        clusters.flat_map(Cluster::contents).collect()
    }
}

/// Whoever looks into a test that failed wants to know what the controller did.
impl Drop for Fleet {
    fn drop(&mut self) {
        let Some(mut controller) = self.controller.take() else {
            return;
        };
        let _ = controller.kill();
        let _ = controller.wait();
        if std::thread::panicking() {
            eprintln!("{}", std::fs::read_to_string(self.path(LOG)).unwrap());
        }
    }
}

/// Sends a signal to a process that a test started.
pub(crate) fn signal(name: &str, process: &Child) {
    let sent = Command::new("kill")
        .args([&format!("-{name}"), &process.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
}

fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fedrs"));
    command
        .current_dir(folder)
        .env("KUBECONFIG", "host.yaml")
        .stdin(Stdio::null());
    command
}

/// Waits until `holds`.
pub(crate) async fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(PERIOD).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    assert!(waited.is_ok(), "not within {PATIENCE:?}: {what}");
}
