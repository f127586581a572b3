//! `fedrs mcs-controller`: runs the controller of the Multi-Cluster Services API.

use std::{path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use clap::Args;
use controller_base::{
    clock::Clock,
    election::{LeaderElectionConfig, Term},
};
use kube::Client;
use mcs_controller::{COMPONENT, LEASE, McsController, McsMetrics};
use prometheus_client::registry::Registry;

use crate::{
    elected::{ElectedArgs, ElectedProcess, METRICS_PREFIX, own_namespace},
    host::HostArgs,
    member_source::{self, MemberSource, Members},
    seed::random_seed,
    server::ServerState,
    values,
};

/// Run the controller of the Multi-Cluster Services API
///
/// For each Service that a ServiceExport in a member exports, it keeps a ServiceImport and EndpointSlices with the endpoints of all
/// exporting members in each member that has the namespace, and writes conditions to the ServiceExports. The members need the CRDs of
/// sigs.k8s.io/mcs-api. It has no data plane: ServiceImports get no addresses, and nothing answers DNS for them.
///
/// Endpoints of a member that can't be reached stay, and so do those of one whose kubeconfig is removed. If several run, the one that
/// holds the Lease fedrs-mcs-controller on the host is the leader, and the others are standbys.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  # Install the CRDs in a member, and grant the permissions
  crds=https://raw.githubusercontent.com/kubernetes-sigs/mcs-api/v0.5.2/config/crd/multicluster.x-k8s.io
  kubectl apply -f ${crds}_serviceexports.yaml -f ${crds}_serviceimports.yaml
  fedrs rbac mcs-member | kubectl apply -f -

  # Run it over the members of a directory
  fedrs mcs-controller --kubeconfig host.yaml --members members/")]
pub(crate) struct McsControllerArgs {
    #[command(flatten)]
    host: HostArgs,
    /// Directory with one kubeconfig for each member cluster, named after it
    #[arg(long, value_name = "DIR")]
    members: PathBuf,
    /// How long it waits, after the start, for members that can't be listed, before it writes to the others
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = values::duration)]
    member_timeout: Duration,
    /// Namespace of the Lease. By default the pod's namespace, or fedrs-system outside a pod
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    #[command(flatten)]
    process: ElectedArgs,
}

impl Members for mcs_controller::Members {
    fn add(&mut self, name: &str) {
        self.add(name);
    }

    fn set(&mut self, name: &str, client: &Client) {
        self.set(name, client);
    }

    fn end(&mut self, name: &str) {
        tracing::info!(
            cluster = name,
            "it stays as it is, and so do imports from it"
        );
        self.end(name);
    }

    fn complete(&mut self) {
        mcs_controller::Members::complete(self);
    }
}

/// Runs the controller until a signal stops it.
pub(crate) async fn run(args: McsControllerArgs) -> anyhow::Result<ExitCode> {
    let mut timing = LeaderElectionConfig::default();
    if let Some(enabled) = args.process.leader_elect {
        timing.enabled = enabled;
    }
    let elected = ElectedProcess {
        client: args.host.controller_client().await?,
        namespace: args.namespace.unwrap_or_else(own_namespace),
        lease: LEASE.to_owned(),
        component: COMPONENT,
        timing,
    };
    let (members, patience) = (args.members, args.member_timeout);
    elected
        .run(args.process, |term, state| {
            lead(members.clone(), patience, term, state)
        })
        .await?;
    Ok(ExitCode::SUCCESS)
}

/// Runs the controller for one term. Nothing is reused from an earlier term: its data is outdated.
async fn lead(directory: PathBuf, patience: Duration, term: Term, state: Arc<ServerState>) {
    let mut registry = Registry::with_prefix(METRICS_PREFIX);
    let controller = McsController {
        patience,
        clock: Clock::system(),
        seed: random_seed(),
        metrics: McsMetrics::register(&mut registry),
        fence: term.fence,
    };
    let (running, mut members) = controller.start(&term.end);
    tokio::join!(
        member_source::follow(
            MemberSource::Directory(directory),
            &mut members,
            term.end.clone()
        ),
        state.serve_controller(running, registry),
    );
}
