//! `fedrs join`: makes a cluster a member.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::bail;
use clap::Args;
use fedrs_api::names;
use membership::{
    join::{JoinRequest, join},
    kubeconfig::Source,
    say::Say,
};

use crate::{host::HostOfMembers, values};

/// Make a cluster a member
///
/// Creates in the member an account that may do what the controller does there and nothing else (`fedrs rbac member`
/// prints it), stores a kubeconfig of that account in a Secret on the host, and waits until the controller uses it.
/// Checks first that all of this can be done, and changes nothing if not. Again, it completes what is missing.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  fedrs join eu-west --host-kubeconfig host.yaml --member-kubeconfig eu-west.yaml
  fedrs join eu-west --host-context host --member-context eu-west        # of one kubeconfig
  fedrs join kind-2 --member-context kind-2 --member-server https://kind-2-control-plane:6443")]
pub(crate) struct JoinArgs {
    /// The member's name: a DNS label. Preferences of FederatedReplicaSets use it
    #[arg(value_parser = values::dns_label)]
    name: String,
    /// Labels for the MemberCluster
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',', value_parser = values::label)]
    labels: Vec<(String, String)>,
    /// The federation that it is to be a member of; without it, the one that has no name
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true, value_parser = values::federation)]
    federation: String,
    /// The controller's namespace on the host, and of its account in the member
    #[arg(long, value_name = "NAME", default_value = names::SYSTEM_NAMESPACE, value_parser = values::dns_label)]
    namespace: String,
    /// How long a token is good for; the controller renews it in time
    #[arg(long, value_name = "DURATION", default_value = "720h", value_parser = values::token_duration)]
    token_duration: Duration,
    /// How long to wait until the controller uses the member
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = values::duration)]
    timeout: Duration,
    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    host: HostOfMembers,
    /// Kubeconfig of the member, of a user who may create roles there; without it $KUBECONFIG, or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    member_kubeconfig: Option<PathBuf>,
    /// Context of the member's kubeconfig
    #[arg(long, value_name = "NAME")]
    member_context: Option<String>,
    /// Where the controller reaches the member, if not by the address in the kubeconfig
    #[arg(long, value_name = "URL", value_parser = values::https_url)]
    member_server: Option<String>,
}

/// Joins, and waits until the member is ready. Fails if it isn't in time.
pub(crate) async fn run(args: JoinArgs) -> anyhow::Result<ExitCode> {
    let member = Source {
        file: args.member_kubeconfig,
        context: args.member_context,
    };
    if member.file.is_none() && member.context.is_none() {
        bail!("which cluster is to join? give --member-kubeconfig, --member-context, or both");
    }
    let host = args.host.cluster().await?;
    let request = JoinRequest {
        name: args.name,
        labels: args.labels.into_iter().collect(),
        federation: args.federation,
        namespace: args.namespace,
        token_duration: args.token_duration,
        timeout: args.timeout,
        dry_run: args.dry_run,
        member,
        member_server: args.member_server,
    };
    join(&host, request, &mut Say::to_terminal()).await?;
    Ok(ExitCode::SUCCESS)
}
