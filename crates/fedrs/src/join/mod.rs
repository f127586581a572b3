//! `fedrs join`: makes a cluster a member.
//!
//! ```text
//! meet both --> read what is there, ask what is allowed --> steps (pure) --> carried out, member first --> wait
//! ```
//!
//! Each step is decided from what is there: again is a no-op, and a join that was interrupted is completed.

mod carry_out;
mod plan;
mod ready;
mod rights;
mod survey;
mod token;

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Context, bail};
use clap::Args;
use fedrs_api::names;
use kube::config::Cluster;

use self::carry_out::Join;
use crate::{
    host::HostOfMembers,
    kubeconfig::Source,
    membership::{objects::Membership, stored},
    object::Write,
    remote::{Remote, Side},
    say::Say,
    values,
};

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
    let mut say = Say::to_terminal();
    let (host, member, route) = clusters(&args).await?;
    let (met_host, met_member) = survey::meet(&host, &member).await?;
    for (remote, met) in [(&host, &met_host), (&member, &met_member)] {
        say.step(
            remote.side,
            remote.url(),
            format_args!("is Kubernetes {}", met.version),
        );
    }
    let join = Join {
        host: &host,
        member: &member,
        membership: Membership {
            name: args.name,
            federation: args.federation,
            namespace: args.namespace,
            host_id: met_host.id,
            cluster_id: met_member.id,
        },
        labels: args.labels.into_iter().collect(),
        route,
        token_duration: args.token_duration,
        write: if args.dry_run {
            Write::DryRun
        } else {
            Write::Real
        },
    };
    if join.membership.is_of_itself() {
        say.line("Both are the same cluster: the host becomes a member of itself.");
    }
    let found = survey::survey(&host, &member, &join.membership, |found| join.steps(found)).await?;
    join.carry_out(&found, &mut say).await?;
    if args.dry_run {
        say.line("Nothing was changed: this was a dry run.");
        return Ok(ExitCode::SUCCESS);
    }
    ready::wait(&host, &join.membership, args.timeout, &mut say).await?;
    Ok(ExitCode::SUCCESS)
}

/// The clusters of the arguments, and how the controller is to reach the member.
async fn clusters(args: &JoinArgs) -> anyhow::Result<(Remote, Remote, Cluster)> {
    let source = Source {
        file: args.member_kubeconfig.clone(),
        context: args.member_context.clone(),
    };
    if source.file.is_none() && source.context.is_none() {
        bail!("which cluster is to join? give --member-kubeconfig, --member-context, or both");
    }
    let host = Remote::new(Side::Host, args.host.config().await.context("host")?)?;
    let kubeconfig = source.read().context("member")?;
    let cluster = kubeconfig.cluster();
    let authority = match cluster.certificate_authority.as_deref() {
        Some(path) if !path.is_empty() => {
            Some(std::fs::read(path).with_context(|| format!("member: can't read {path}"))?)
        }
        _ => None,
    };
    let route = stored::route(cluster, authority.as_deref(), args.member_server.as_deref())?;
    let config = source.config(kubeconfig).await.context("member")?;
    Ok((host, Remote::new(Side::Member, config)?, route))
}
