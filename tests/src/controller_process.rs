//! The process of a controller or service, from outside: whether it is ready, and its metrics.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Duration, Instant, sleep},
};

use crate::{measured_process::MeasuredProcess, ports::free_ports};

/// How long a controller may take to start.
const START: Duration = Duration::from_secs(60);

/// The option of controllers with which they are not elected.
const WITHOUT_ELECTION: &str = "--leader-elect=false";

/// How to start a controller.
pub struct Program {
    path: PathBuf,
    arguments: Vec<OsString>,
    log: PathBuf,
}

/// A running controller; killed when dropped.
pub struct Controller {
    process: MeasuredProcess,
    address: String,
}

impl Program {
    /// The controller of FederatedReplicaSets, with `host.yaml` and `members/` of the directory.
    pub fn of_federation(path: PathBuf, directory: &Path) -> Self {
        let members = directory.join("members").into_os_string();
        let host = directory.join("host.yaml").into_os_string();
        let arguments = [
            "controller".into(),
            "--members".into(),
            members,
            "--kubeconfig".into(),
            host,
            WITHOUT_ELECTION.into(),
        ];
        Self {
            path,
            arguments: arguments.into(),
            log: directory.join("controller.log"),
        }
    }

    /// The controller of LocalReplicaSets, with a kubeconfig of the directory.
    pub fn of_replica_sets(path: PathBuf, directory: &Path, kubeconfig: &str) -> Self {
        let kubeconfig = directory.join(kubeconfig).into_os_string();
        let arguments = [
            "replica-set-controller".into(),
            "--kubeconfig".into(),
            kubeconfig,
            WITHOUT_ELECTION.into(),
        ];
        Self {
            path,
            arguments: arguments.into(),
            log: directory.join("replica-set-controller.log"),
        }
    }

    /// The service of EndpointSets, with `host.yaml`, `members/` and `snapshots/` of the directory, and these options.
    pub fn of_discovery(path: PathBuf, directory: &Path, options: &[&str]) -> Self {
        let at = |name: &str| directory.join(name).into_os_string();
        let mut arguments = vec![
            "discovery".into(),
            "--kubeconfig".into(),
            at("host.yaml"),
            "--members".into(),
            at("members"),
            "--snapshot-dir".into(),
            at("snapshots"),
        ];
        arguments.extend(options.iter().map(OsString::from));
        Self {
            path,
            arguments,
            log: directory.join("discovery.log"),
        }
    }

    /// Starts it; controllers without an election.
    pub fn start(&self) -> anyhow::Result<Controller> {
        let [address] = free_ports()?;
        let address = address.to_string();
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).args(["--listen", &address]);
        let process = MeasuredProcess::start(&mut command, &self.log)?;
        Ok(Controller { process, address })
    }
}

impl Program {
    /// Starts it without an election, and waits until it has a current view of everything.
    pub async fn start_until_ready(&self) -> anyhow::Result<Controller> {
        let controller = self.start()?;
        let deadline = Instant::now() + START;
        while !controller.is_ready().await {
            anyhow::ensure!(Instant::now() < deadline, "the controller does not start");
            sleep(Duration::from_millis(100)).await;
        }
        Ok(controller)
    }
}

impl Controller {
    /// Its memory and its CPU time.
    pub fn process(&self) -> &MeasuredProcess {
        &self.process
    }

    /// The resident bytes, now and at most.
    pub fn memory(&self) -> anyhow::Result<(u64, u64)> {
        self.process.memory()
    }

    /// Ends it as a signal does, and waits until it has ended.
    pub async fn terminate(self) -> anyhow::Result<()> {
        self.process.terminate().await
    }

    /// Whether it has a current view of everything.
    pub async fn is_ready(&self) -> bool {
        let answer = self.get("/readyz").await;
        answer.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
    }

    /// The checks so far, and the seconds that they took: snapshot and decision.
    pub async fn checks(&self) -> anyhow::Result<(u64, f64)> {
        let metrics = self.get("/metrics").await?;
        let value = |name: &str| {
            let line = metrics.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|value| value.trim().parse::<f64>().ok())
        };
        let of = |part: &str, what: &str| {
            let name = format!("fedrs_check_part_seconds_{what}{{part=\"{part}\"}}");
            value(&name).unwrap_or(0.0)
        };
        let seconds = of("check", "sum") + of("snapshot", "sum");
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count"
        )]
        Ok((of("check", "count") as u64, seconds))
    }

    async fn get(&self, path: &str) -> anyhow::Result<String> {
        let mut stream = TcpStream::connect(&self.address).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: fedrs\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }
}
