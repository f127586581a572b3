//! `fedrs unjoin`: takes a member out of the federation.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::bail;
use clap::Args;
use fedrs_api::names;
use membership::{
    drain::Ended,
    kubeconfig::Source,
    say::Say,
    unjoin::{Unjoin, UnjoinRequest},
};

use crate::{drain, host::HostOfMembers, values};

/// Take a member out of the federation: its replicas go elsewhere first
///
/// Then what `fedrs join` made is taken away on both sides: with the member's kubeconfig all of it, without one what the
/// controller's own account may delete, which is its rights and itself. Again, it completes what is left.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  fedrs unjoin eu-west --member-kubeconfig eu-west.yaml
  fedrs unjoin eu-west --force      # it is gone for good: nothing is done in it")]
pub(crate) struct UnjoinArgs {
    /// The member
    #[arg(value_parser = values::dns_label)]
    name: String,
    /// How long to wait until its replicas are elsewhere
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = values::duration)]
    timeout: Duration,
    /// For a member that is gone: don't move its replicas first, leave everything in it as it is
    #[arg(long)]
    force: bool,
    /// The controller's namespace
    #[arg(long, value_name = "NAME", default_value = names::SYSTEM_NAMESPACE, value_parser = values::dns_label)]
    namespace: String,
    #[command(flatten)]
    host: HostOfMembers,
    /// Kubeconfig of the member, of a user who may delete roles there
    #[arg(long, value_name = "FILE", conflicts_with = "force")]
    member_kubeconfig: Option<PathBuf>,
    /// Context of the member's kubeconfig
    #[arg(long, value_name = "NAME", conflicts_with = "force")]
    member_context: Option<String>,
}

/// Takes the member out. Fails if its replicas can't go elsewhere in time.
pub(crate) async fn run(args: UnjoinArgs) -> anyhow::Result<ExitCode> {
    let mut say = Say::to_terminal();
    let name = args.name.clone();
    let host = args.host.cluster().await?;
    let given = args.member_kubeconfig.is_some() || args.member_context.is_some();
    let member = given.then(|| Source {
        file: args.member_kubeconfig.clone(),
        context: args.member_context.clone(),
    });
    let request = UnjoinRequest {
        name: args.name,
        force: args.force,
        namespace: args.namespace,
        member,
    };
    let unjoin = Unjoin::prepare(&host, request).await?;
    if let Some(drain) = unjoin.drain(&mut say).await? {
        let next = format!(
            "It stays a member, and goes on being drained. The same command again goes on, `fedrs uncordon {name}` ends it."
        );
        match drain::wait(&drain, args.timeout, &mut say).await? {
            Some(Ended::Drained) => say.line(format_args!("{name} is drained")),
            Some(Ended::TimedOut(left)) => bail!(
                "{name} is not drained after {:?}: {left}\n{next}\n\
                 If it is gone for good: `fedrs unjoin {name} --force`.",
                args.timeout
            ),
            None => return Ok(drain::interrupted(next, &mut say)),
        }
    }
    unjoin.remove(&mut say).await?;
    Ok(ExitCode::SUCCESS)
}
