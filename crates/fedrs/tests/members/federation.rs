//! A host and clusters that can join it, and `fedrs` run against them as a user runs it.

use std::{
    collections::BTreeMap,
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::clusters::{Cluster, wait_until};

/// The file of the controller's log.
const LOG: &str = "controller.log";

/// A host, clusters that can join it, their kubeconfigs in a directory, and a controller.
pub(crate) struct Federation {
    directory: TempDir,
    pub(crate) host: Cluster,
    members: BTreeMap<String, Cluster>,
    controller: Option<Child>,
}

/// How a command ended, and what it printed.
#[derive(Debug)]
pub(crate) struct Outcome {
    code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    /// Checks that the command succeeded.
    #[track_caller]
    pub(crate) fn succeeded(self) -> Self {
        self.ended(0)
    }

    /// Checks that the command failed.
    #[track_caller]
    pub(crate) fn failed(self) -> Self {
        self.ended(1)
    }

    /// Checks that the command ended with this code.
    #[track_caller]
    pub(crate) fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// Checks that the output contains all `parts`.
    #[track_caller]
    pub(crate) fn contains(self, parts: &[&str]) -> Self {
        let all = format!("{}\n{}", self.stdout, self.stderr);
        for part in parts {
            assert!(all.contains(part), "{part:?} is not in:\n{all}");
        }
        self
    }
}

impl Federation {
    /// Starts the clusters, with the CRDs on the host.
    pub(crate) async fn start(members: &[&str]) -> Self {
        let mut federation = Self {
            directory: tempfile::tempdir().unwrap(),
            host: Cluster::start("host", 0).await,
            members: BTreeMap::new(),
            controller: None,
        };
        federation.host.install_crds();
        let kubeconfig = federation.host.server.kubeconfig().to_yaml();
        federation.write("host.yaml", &kubeconfig);
        for name in members {
            let member = Cluster::start(name, 3).await;
            let kubeconfig = member.server.kubeconfig().to_yaml();
            federation.write(&format!("{name}.yaml"), &kubeconfig);
            federation.members.insert((*name).to_owned(), member);
        }
        federation
    }

    /// Starts the controller as a process.
    pub(crate) fn start_controller(&mut self) {
        assert!(self.controller.is_none(), "one controller at a time");
        self.write("controller.yaml", "probe: {period: 1s}\n");
        let mut options = File::options();
        let log = options.append(true).create(true).open(self.path(LOG));
        let mut command = command(self.directory.path());
        command
            .args(["controller", "--config", "controller.yaml"])
            .args(["--listen", "127.0.0.1:0", "--identity", "controller"])
            .stderr(log.unwrap());
        self.controller = Some(command.spawn().unwrap());
    }

    /// Stops the controller gracefully.
    pub(crate) fn stop_controller(&mut self) {
        let mut controller = self.controller.take().unwrap();
        signal("TERM", &controller);
        assert!(controller.wait().unwrap().success());
    }

    /// Kills the controller.
    pub(crate) fn kill_controller(&mut self) {
        let mut controller = self.controller.take().unwrap();
        signal("KILL", &controller);
        controller.wait().unwrap();
    }

    pub(crate) fn member(&self, name: &str) -> &Cluster {
        &self.members[name]
    }

    /// Writes a file to the working directory of the commands.
    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Writes an executable file.
    pub(crate) fn write_program(&self, name: &str, text: &str) {
        self.write(name, text);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(self.path(name), mode).unwrap();
    }

    /// The path of a file in the working directory of the commands.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs `fedrs` with `arguments`, separated by spaces.
    pub(crate) async fn fedrs(&self, arguments: &str) -> Outcome {
        self.fedrs_with(&[], arguments).await
    }

    /// Runs `fedrs` with environment variables.
    pub(crate) async fn fedrs_with(
        &self,
        environment: &[(&str, &str)],
        arguments: &str,
    ) -> Outcome {
        let program = Path::new(env!("CARGO_BIN_EXE_fedrs"));
        self.run(program, environment, arguments).await
    }

    /// Runs a program with environment variables and with `arguments`, separated by spaces.
    pub(crate) async fn run(
        &self,
        program: &Path,
        environment: &[(&str, &str)],
        arguments: &str,
    ) -> Outcome {
        let mut command = command_of(program, self.directory.path());
        command
            .args(arguments.split_whitespace())
            .envs(environment.iter().copied());
        let output = tokio::task::spawn_blocking(move || command.output());
        let output = output.await.unwrap().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Outcome {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// A command that runs `fedrs`.
    pub(crate) fn command(&self) -> Command {
        command(self.directory.path())
    }

    /// Starts `fedrs` with `arguments`, without waiting for its end.
    pub(crate) fn start_fedrs(&self, arguments: &str) -> Child {
        let mut command = command(self.directory.path());
        command.args(arguments.split_whitespace());
        command.stdout(Stdio::piped()).spawn().unwrap()
    }

    /// Runs `fedrs join` for the member `name`.
    pub(crate) async fn join(&self, name: &str, options: &str) -> Outcome {
        self.fedrs(&format!(
            "join {name} --member-kubeconfig {name}.yaml {options}"
        ))
        .await
    }

    /// Creates the FederatedReplicaSet `web`, which may run in all members.
    pub(crate) fn create_web(&self, replicas: u32) {
        self.create("web", replicas);
    }

    /// Creates the FederatedReplicaSet `name`, which may run in all members.
    pub(crate) fn create(&self, name: &str, replicas: u32) {
        self.create_kind("FederatedReplicaSet", name, replicas);
    }

    /// Creates the set `name` of this kind, which may run in all members.
    pub(crate) fn create_kind(&self, kind: &str, name: &str, replicas: u32) {
        self.host.create(json!({
            "apiVersion": "fedrs.dev/v1alpha1", "kind": kind,
            "metadata": { "namespace": "default", "name": name },
            "spec": {
                "replicas": replicas, "selector": { "matchLabels": { "app": name } },
                "placement": { "rebalance": true, "clusters": { "*": { "weight": 1 } } },
                "template": {
                    "metadata": { "labels": { "app": name } },
                    "spec": { "containers": [{ "name": "main", "image": "main" }] },
                },
            },
        }));
    }

    /// Ready replicas of `web` in a member; `None` without a local ReplicaSet.
    pub(crate) fn ready(&self, member: &str) -> Option<u64> {
        let set = self
            .member(member)
            .get("apps/v1", "ReplicaSet", "default", "web")?;
        Some(set["status"]["readyReplicas"].as_u64().unwrap_or_default())
    }

    /// Waits until the members have these ready replicas of `web`.
    pub(crate) async fn wait_for(&self, ready: &[(&str, u64)]) {
        let condition = format!("ready replicas of web: {ready:?}");
        let is_reached = |&(name, count): &(&str, u64)| self.ready(name) == Some(count);
        wait_until(&condition, || ready.iter().all(is_reached)).await;
    }

    /// Waits until the status of `web` says that all its replicas are available.
    pub(crate) async fn wait_for_status(&self) {
        self.wait_for_kind("FederatedReplicaSet", "web").await;
    }

    /// Waits until the status of a set says that all its replicas are available.
    pub(crate) async fn wait_for_kind(&self, kind: &str, name: &str) {
        let is_ready = || {
            let set = self.host.get("fedrs.dev/v1alpha1", kind, "default", name);
            let conditions = set.and_then(|set| set["status"]["conditions"].as_array().cloned());
            let mut conditions = conditions.into_iter().flatten();
            conditions
                .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
        };
        wait_until("the status of the set is Ready", is_ready).await;
    }

    /// The MemberCluster of a member.
    pub(crate) fn member_cluster(&self, name: &str) -> Option<Value> {
        self.host.member_cluster(name)
    }

    /// The contents of all clusters.
    pub(crate) fn contents(&self) -> Vec<String> {
        let clusters = self.members.values().chain([&self.host]);
        clusters.flat_map(Cluster::contents).collect()
    }
}

/// Prints the controller's log when a test fails.
impl Drop for Federation {
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

/// Sends a signal to a process.
pub(crate) fn signal(name: &str, process: &Child) {
    let sent = Command::new("kill")
        .args([&format!("-{name}"), &process.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
}

fn command(directory: &Path) -> Command {
    command_of(Path::new(env!("CARGO_BIN_EXE_fedrs")), directory)
}

fn command_of(program: &Path, directory: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(directory)
        .env("KUBECONFIG", "host.yaml")
        .stdin(Stdio::null());
    command
}
