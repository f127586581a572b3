//! `fedrs controller`: runs the federated controller.
//!
//! ```text
//! standby --Lease acquired--> term: watchers of members, controller --Lease lost or signal--> stopped --> standby or exit
//! ```
//!
//! A standby watches the Lease only: informers of its own would double the load on all clusters. A controller that starts
//! lists all objects in about a second, while acquiring the Lease takes up to 15 s anyway.

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use clap::Args;
use federation_controller::{
    Controller, Running,
    clock::Clock,
    config::Config,
    election::Term,
    members::{MemberEvent, MemberSecrets, directory},
    metrics::Metrics,
};
use fedrs_api::names;
use kube::Client;
use prometheus_client::registry::Registry;
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    config_file,
    elected::{ElectedArgs, ElectedProcess, METRICS_PREFIX, own_namespace},
    host,
    seed::random_seed,
    server::ServerState,
};

/// Member events that may be buffered; the watcher of the directory waits while the buffer is full.
const MEMBER_EVENTS: usize = 64;
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
    #[command(flatten)]
    process: ElectedArgs,
}

/// Runs the controller until a signal stops it.
pub(crate) async fn run(args: ControllerArgs) -> anyhow::Result<ExitCode> {
    let config = read_config(&args)?;
    let process = Process {
        host: args.host.controller_client().await?,
        members: args.members,
        namespace: args.namespace.unwrap_or_else(own_namespace),
        config,
    };
    let elected = ElectedProcess {
        client: process.host.clone(),
        namespace: process.namespace.clone(),
        lease: names::controller_name(&process.config.federation),
        component: federation_controller::COMPONENT,
        timing: process.config.leader_election,
    };
    elected
        .run(args.process, |term, state| process.lead(term, state))
        .await?;
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
    async fn lead(&self, term: Term, state: Arc<ServerState>) {
        let mut registry = Registry::with_prefix(METRICS_PREFIX);
        let sources = TaskTracker::new();
        if let Some(running) = self.start(term, &sources, &mut registry).await {
            state.serve_controller(running, registry).await;
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
    if let Some(enabled) = args.process.leader_elect {
        config.leader_election.enabled = enabled;
    }
    config.validate()?;
    Ok(config)
}
