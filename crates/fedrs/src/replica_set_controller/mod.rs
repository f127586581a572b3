//! `fedrs replica-set-controller`: runs the controller of LocalReplicaSets.

mod remote;
mod term;

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use local_controller::LocalControllerConfig;
use prometheus_client::registry::Registry;

use crate::{
    config_file,
    elected::{ElectedArgs, METRICS_PREFIX, Serving, own_namespace},
    host::ClusterArgs,
    server::ServerState,
};

use self::{
    remote::Remote,
    term::{elected, lead},
};

/// Run the controller of the LocalReplicaSets of a cluster
///
/// It creates, updates, evicts and removes the pods of each LocalReplicaSet, within its budget and speed. It needs no other part of
/// fedrs. If several run, the one that holds the Lease fedrs-replica-set-controller is the leader, and the others are standbys.
///
/// With --remote it runs somewhere else, for clusters in which nothing may be installed but the CRD: one controller for each
/// kubeconfig in the directory, with the permissions of its user (`fedrs rbac replica-set-controller` prints those that it needs).
/// Each leads, or not, by the Lease in its cluster. Added and changed files take effect immediately; the controller of a removed
/// one stops, and the pods stay.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  # Run the controller in the cluster of a kubeconfig
  fedrs replica-set-controller --kubeconfig cluster.yaml

  # Run the controllers of several clusters, with a kubeconfig for each
  fedrs replica-set-controller --remote --members clusters/")]
pub(crate) struct ReplicaSetControllerArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Run the controllers of the clusters of --members, in this one process
    #[arg(long, requires = "members", conflicts_with_all = ["kubeconfig", "context"])]
    remote: bool,
    /// Directory with one kubeconfig for each cluster, named after it
    #[arg(long, value_name = "DIR", requires = "remote")]
    members: Option<PathBuf>,
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
    let namespace = args.namespace.unwrap_or_else(own_namespace);
    if args.remote
        && let Some(directory) = args.members
    {
        let state = ServerState::of_clusters(config.leader_election.lease_duration);
        let serving = Serving::start(&args.process.listen, state)?;
        let remote = Remote {
            directory,
            namespace,
            identity: args.process.identity(),
            config,
        };
        remote.run(&serving).await;
        serving.end();
        return Ok(ExitCode::SUCCESS);
    }
    let client = args.cluster.controller_client().await?;
    let registry = || Registry::with_prefix(METRICS_PREFIX);
    elected(client.clone(), namespace, config.leader_election)
        .run(args.process, |term, state| {
            lead(client.clone(), config.clone(), registry(), term, state)
        })
        .await?;
    Ok(ExitCode::SUCCESS)
}
