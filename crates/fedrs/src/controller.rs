//! `fedrs controller`: runs the federated controller.
//!
//! ```text
//! standby --Lease acquired--> term: watchers of members, controller --Lease lost or signal--> stopped --> standby or exit
//! ```
//!
//! A standby watches the Lease only: informers of its own would double the load on all clusters. A controller that starts
//! lists all objects in about a second, while acquiring the Lease takes up to 15 s anyway.

use std::{net::TcpListener, path::PathBuf, process::ExitCode, sync::Arc};

use anyhow::Context;
use clap::Args;
use federation_controller::{
    Controller, Running,
    clock::Clock,
    config::Config,
    election::{ElectionMetrics, Elector, Fence, LeaderElectorConfig, Term},
    members::{MemberEvent, MemberSecrets, directory},
    metrics::Metrics,
    watchdog::Watchdog,
};
use fedrs_api::names;
use kube::Client;
use prometheus_client::registry::Registry;
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    config_file, host,
    seed::random_seed,
    server::{RunningController, ServerState, heartbeat, serve},
    signals::cancel_on_signal,
    values,
};

/// Member events that may be buffered; the watcher of the directory waits while the buffer is full.
const MEMBER_EVENTS: usize = 64;
/// The prefix of all metrics.
const METRICS_PREFIX: &str = "fedrs";
/// The file with the namespace of a pod's ServiceAccount.
const POD_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
/// The environment variable with the uid of the pod.
const POD_UID: &str = "POD_UID";

/// Run the controller, which distributes the replicas of FederatedReplicaSets across the member clusters
///
/// Each MemberCluster with spec.secretRef is a member; the Secret in the controller's namespace holds its kubeconfig.
/// With --members, each kubeconfig file in the directory is a member as well, named after the file: members/eu-1.yaml is
/// the member eu-1. Added and changed files take effect immediately. When a file is removed, the controller reschedules
/// the member's replicas after the grace period.
///
/// If several controllers of a federation run, the one that holds the Lease fedrs-controller on the host is the leader,
/// and the others are standbys.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  # Run the controller with the members that have joined
  fedrs controller --kubeconfig host.yaml

  # Run the controller with a directory of kubeconfigs and a configuration file
  fedrs controller --kubeconfig host.yaml --members members/ --config controller.yaml")]
pub(crate) struct ControllerArgs {
    #[command(flatten)]
    host: host::HostArgs,
    /// Directory with one kubeconfig for each member cluster, in addition to the members that have joined
    #[arg(long, value_name = "DIR")]
    members: Option<PathBuf>,
    /// Configuration file; config/controller.yaml documents all fields and defaults
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Name of the federation: the controller handles FederatedReplicaSets with this spec.federation (overrides the configuration file)
    #[arg(long, value_name = "NAME")]
    federation: Option<String>,
    /// Namespace on the host for the Lease and the members' Secrets, the same for all controllers of a federation; created if it
    /// does not exist. By default the pod's namespace, or fedrs-system outside a pod
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Acquire the Lease before doing anything (overrides the configuration file; enabled by default). If disabled, make sure that
    /// no second controller runs at the same time
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    leader_elect: Option<bool>,
    /// Name of this process in the leader election, for a supervisor that runs one process with this name at a time: a process that
    /// is started again does not wait for its own Lease. By default the uid of the pod (environment variable `POD_UID`), or a random
    /// name outside a pod
    #[arg(long, value_name = "NAME", value_parser = values::identity)]
    identity: Option<String>,
    /// Address to serve /metrics, /healthz and /readyz on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9464")]
    listen: String,
}

/// Runs the controller until a signal stops it.
pub(crate) async fn run(args: ControllerArgs) -> anyhow::Result<ExitCode> {
    let config = read_config(&args)?;
    let host = args.host.controller_client().await?;
    let mut registry = Registry::with_prefix(METRICS_PREFIX);
    let metrics = ElectionMetrics::register(&mut registry);
    let cancel = CancellationToken::new();
    // A port in use fails the process before anything starts.
    let listener = TcpListener::bind(&args.listen);
    let listener = listener.with_context(|| format!("failed to listen on {}", args.listen))?;
    tracing::info!(address = %listener.local_addr()?, "serving /metrics, /healthz and /readyz");
    let process = Process {
        host,
        members: args.members,
        namespace: args.namespace.unwrap_or_else(own_namespace),
        config,
    };
    let longest_term = process.config.leader_election.lease_duration;
    let state = Arc::new(ServerState {
        registry,
        watchdog: Watchdog::new(Watchdog::BOUND.max(2 * longest_term)),
        ..ServerState::default()
    });
    let serving = serve(listener, Arc::clone(&state), cancel.clone())?;
    tokio::spawn(heartbeat(state.watchdog.watch("runtime")));
    tokio::spawn(cancel_on_signal(cancel.clone()));

    if process.config.leader_election.enabled {
        let identity = args.identity.unwrap_or_else(own_identity);
        let elector = process.elector_config(identity, metrics, state.watchdog.clone());
        let elector = Elector::new(elector);
        state.election.get_or_init(|| elector.state());
        elector.run(cancel, |term| process.lead(term, &state)).await;
    } else {
        metrics.leader.set(1);
        let fence = Fence::unelected();
        process.lead(Term { fence, end: cancel }, &state).await;
    }
    // It ends at once, and a panic was logged.
    let _ = serving.join();
    tracing::info!("controller stopped");
    Ok(ExitCode::SUCCESS)
}

/// What is the same in all terms of leadership.
pub(crate) struct Process {
    /// The host.
    pub(crate) host: Client,
    /// The directory of members' kubeconfigs.
    pub(crate) members: Option<PathBuf>,
    /// The namespace of the Lease and of the members' Secrets.
    pub(crate) namespace: String,
    /// The configuration of the controller.
    pub(crate) config: Config,
}

impl Process {
    /// Runs the controller for one term. Nothing is reused from an earlier term: its data is outdated.
    async fn lead(&self, term: Term, state: &ServerState) {
        let mut registry = Registry::with_prefix(METRICS_PREFIX);
        let sources = TaskTracker::new();
        if let Some(running) = self.start(term, &sources, &mut registry).await {
            tracing::info!("controller started");
            *state.controller.write() = Some(RunningController {
                readiness: running.readiness(),
                watchdog: running.watchdog(),
                registry,
            });
            running.joined().await;
            *state.controller.write() = None;
        }
        sources.close();
        sources.wait().await;
    }

    /// Starts the controller for one term, and the watcher of the members' directory in `sources`. `None` if the term ended
    /// before the controller started.
    pub(crate) async fn start(
        &self,
        term: Term,
        sources: &TaskTracker,
        registry: &mut Registry,
    ) -> Option<Running> {
        let (events, members) = mpsc::channel(MEMBER_EVENTS);
        sources.spawn(watch_members(
            self.members.clone(),
            events,
            term.end.clone(),
        ));
        let controller = Controller {
            host: self.host.clone(),
            members,
            secrets: MemberSecrets::of(&self.namespace),
            config: self.config.clone(),
            clock: Clock::system(),
            seed: random_seed(),
            metrics: Metrics::register(registry),
            fence: term.fence,
        };
        controller.start(term.end).await
    }

    fn elector_config(
        &self,
        identity: String,
        metrics: ElectionMetrics,
        watchdog: Watchdog,
    ) -> LeaderElectorConfig {
        LeaderElectorConfig {
            host: self.host.clone(),
            namespace: self.namespace.clone(),
            lease: names::controller_name(&self.config.federation),
            component: federation_controller::COMPONENT,
            identity,
            timing: self.config.leader_election,
            clock: Clock::system(),
            seed: random_seed(),
            metrics,
            watchdog,
        }
    }
}

/// The pod's namespace, or the default outside a pod.
fn own_namespace() -> String {
    match std::fs::read_to_string(POD_NAMESPACE) {
        Ok(namespace) => namespace.trim().to_owned(),
        Err(_) => names::SYSTEM_NAMESPACE.to_owned(),
    }
}

/// The name of this process in the leader election. A container that restarts has the name of the one before.
fn own_identity() -> String {
    let pod_uid = std::env::var(POD_UID).ok();
    unique_identity(pod_uid.filter(|uid| values::identity(uid).is_ok()))
}

/// The host name, which is the pod's name in a pod, and the uid of the pod, or else a random part.
fn unique_identity(pod_uid: Option<String>) -> String {
    let system = rustix::system::uname();
    let host = system.nodename().to_string_lossy();
    let unique = pod_uid.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    format!("{host}_{unique}")
}

/// Sends the members in the directory `path`; none without one.
async fn watch_members(
    path: Option<PathBuf>,
    events: mpsc::Sender<MemberEvent>,
    cancel: CancellationToken,
) {
    let Some(path) = path else {
        // If the receiver is gone, the controller has stopped.
        let _ = events.send(MemberEvent::Complete).await;
        return cancel.cancelled().await;
    };
    directory::watch(path, events, cancel).await;
}

fn read_config(args: &ControllerArgs) -> anyhow::Result<Config> {
    let mut config = config_file::read(args.config.as_deref())?;
    if let Some(federation) = &args.federation {
        config.federation.clone_from(federation);
    }
    if let Some(enabled) = args.leader_elect {
        config.leader_election.enabled = enabled;
    }
    config.validate()?;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restarted_container_has_the_same_identity_and_other_processes_have_their_own() {
        assert_ne!(unique_identity(None), unique_identity(None));
        let uid = || Some("6f2c".to_owned());
        assert_eq!(unique_identity(uid()), unique_identity(uid()));
    }
}
