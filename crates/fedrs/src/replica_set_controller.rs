//! `fedrs replica-set-controller`: runs the controller of LocalReplicaSets.

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use clap::Args;
use controller_base::{clock::Clock, election::Term};
use kube::Client;
use local_controller::{COMPONENT, LEASE, LocalController, LocalControllerConfig, LocalMetrics};
use prometheus_client::registry::Registry;

use crate::{
    config_file,
    elected::{ElectedArgs, ElectedProcess, METRICS_PREFIX, own_namespace},
    host::ClusterArgs,
    seed::random_seed,
    server::ServerState,
};

/// Run the controller of the LocalReplicaSets of a cluster
///
/// It creates, updates, evicts and removes the pods of each LocalReplicaSet, within its budget and speed. It needs no other part of
/// fedrs. If several run, the one that holds the Lease fedrs-replica-set-controller is the leader, and the others are standbys.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  # Run the controller in the cluster of a kubeconfig
  fedrs replica-set-controller --kubeconfig cluster.yaml")]
pub(crate) struct ReplicaSetControllerArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Configuration file; config/replica-set-controller/controller.yaml documents all fields and defaults
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Namespace of the Lease; created if it does not exist. By default the pod's namespace, or fedrs-system outside a pod
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    #[command(flatten)]
    process: ElectedArgs,
}

/// Runs the controller until a signal stops it.
pub(crate) async fn run(args: ReplicaSetControllerArgs) -> anyhow::Result<ExitCode> {
    let mut config = config_file::read_as(args.config.as_deref(), LocalControllerConfig::parse)?;
    if let Some(enabled) = args.process.leader_elect {
        config.leader_election.enabled = enabled;
    }
    let client = args.cluster.controller_client().await?;
    let elected = ElectedProcess {
        client: client.clone(),
        namespace: args.namespace.unwrap_or_else(own_namespace),
        lease: LEASE.to_owned(),
        component: COMPONENT,
        timing: config.leader_election,
    };
    elected
        .run(args.process, |term, state| {
            lead(client.clone(), config.clone(), term, state)
        })
        .await?;
    Ok(ExitCode::SUCCESS)
}

/// Runs the controller for one term. Nothing is reused from an earlier term: its data is outdated.
async fn lead(client: Client, config: LocalControllerConfig, term: Term, state: Arc<ServerState>) {
    let mut registry = Registry::with_prefix(METRICS_PREFIX);
    let controller = LocalController {
        client,
        config,
        clock: Clock::system(),
        seed: random_seed(),
        metrics: LocalMetrics::register(&mut registry),
        fence: term.fence,
    };
    let running = controller.start(&term.end);
    state.serve_controller(running, registry).await;
}
