//! `fedrs uninstall`: takes off the host and the members whatever would be in the way once there is no controller.
//!
//! ```text
//! no controller runs? --> say what will be done, ask --> finalizers and markers --> each member --> look again
//! ```
//!
//! Local sets stay as they are, with their pods; so do FederatedReplicaSets and CRDs, which can be deleted then.

mod finalizers;
mod survey;

use std::{
    io::{self, BufRead, IsTerminal, Write},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, bail};
use clap::Args;
use fedrs_api::{names, pluralize};
use tokio::time::sleep;

use self::survey::{Installed, Joined};
use crate::{
    controller::lease_name,
    host::HostOfMembers,
    leader::{self, Leader},
    membership::{
        cluster,
        leave::{self, By},
    },
    object::{Address, MEMBER_CLUSTER},
    remote::{Remote, Side},
    say::Say,
    values,
};

/// How soon a controller has put a finalizer on again.
const PUT_BACK_WITHIN: Duration = Duration::from_secs(1);

/// Take fedrs off: finalizers, members and what join made. What runs in the members goes on running
///
/// Stop the controller first. FederatedReplicaSets and CRDs stay, and can be deleted without a controller afterwards.
#[derive(Args, Debug)]
#[command(after_help = "In this order:
  kubectl -n fedrs-system scale deployment/fedrs-controller --replicas=0
  fedrs uninstall
  fedrs crds | kubectl delete -f -                    # deletes all FederatedReplicaSets
and then the deployment, the way it was installed.")]
pub(crate) struct UninstallArgs {
    /// Don't ask
    #[arg(long)]
    yes: bool,
    /// The federation to take off; without it, the one that has no name
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true, value_parser = values::federation)]
    federation: String,
    /// The controller's namespace
    #[arg(long, value_name = "NAME", default_value = names::SYSTEM_NAMESPACE, value_parser = values::dns_label)]
    namespace: String,
    #[command(flatten)]
    host: HostOfMembers,
}

/// Takes everything off. Fails if a controller runs, or if it puts things back.
pub(crate) async fn run(args: UninstallArgs) -> anyhow::Result<ExitCode> {
    let mut say = Say::to_terminal();
    let host = Remote::new(Side::Host, args.host.config().await?)?;
    let host_id = cluster::id(&host).await?;
    let installed = survey::survey(&host, &args.federation, &args.namespace, &host_id).await?;
    if installed.is_nothing() {
        say.line(format_args!(
            "There is nothing to be taken off the host {}.",
            host.url()
        ));
        say.line(installed.left());
        return Ok(ExitCode::SUCCESS);
    }
    if let Leader::Runs(holder) = leader::leader(&host, &args.namespace).await? {
        bail!(
            "a controller runs ({holder}): stop it first, or it puts back what is taken off. For example:\n  \
             kubectl -n {} scale deployment/{} --replicas=0",
            args.namespace,
            lease_name(&args.federation)
        );
    }
    say.line(format_args!(
        "This takes fedrs off the host {}:\n{installed}",
        host.url()
    ));
    if !args.yes && !is_wanted()? {
        say.line("Nothing was changed.");
        return Ok(ExitCode::FAILURE);
    }
    finalizers::take_off(&host, &installed, &mut say).await?;
    nobody_puts_them_back(&host, &installed, &args.federation).await?;
    for member in &installed.members {
        leave(&host, member, &mut say).await?;
    }
    leave::namespace(&host, &installed.membership(""), &mut say).await?;
    say.line(format_args!("Done. {}", installed.left()));
    Ok(ExitCode::SUCCESS)
}

/// A controller without leader election is told by what it does: it puts finalizers on again at once.
async fn nobody_puts_them_back(
    host: &Remote,
    installed: &Installed,
    federation: &str,
) -> anyhow::Result<()> {
    if installed.sets.is_empty() {
        return Ok(());
    }
    sleep(PUT_BACK_WITHIN).await;
    let back = survey::held(host, federation).await?;
    if back > 0 {
        bail!(
            "{} got finalizers again: a controller is still running. Stop it, and run this again",
            pluralize(back, "FederatedReplicaSet")
        );
    }
    Ok(())
}

/// Asks the user.
fn is_wanted() -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() {
        bail!(
            "nobody can be asked here: with --yes it is done without asking. Nothing was changed"
        );
    }
    let mut out = io::stdout();
    out.write_all(b"Go on? [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin()
        .lock()
        .read_line(&mut answer)
        .context("no answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Takes away what join made for one member. One that can't be reached is told, and left as it is.
async fn leave(host: &Remote, member: &Joined, say: &mut Say) -> anyhow::Result<()> {
    let membership = &member.membership;
    say.line(format_args!("{}:", membership.name));
    if let Some(stored) = &member.stored {
        let remote = Remote::new(Side::Member, stored.config().await?)?;
        match leave::account(&remote, membership, By::Account, say).await {
            Ok(_) => {}
            Err(failure) if failure.code() == Some(401) => {}
            Err(failure) => {
                say.warn(failure);
                say.line(leave::by_hand(membership));
            }
        }
    }
    let object = Address::cluster(MEMBER_CLUSTER, &membership.name);
    let secret = member.secret.then(|| membership.secret_address());
    for address in std::iter::once(object).chain(secret) {
        if host.delete(&address).await? {
            say.step(host.side, &address, "deleted");
        }
    }
    Ok(())
}
