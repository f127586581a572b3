//! `fedrs unjoin`: takes a member out of the federation.
//!
//! ```text
//! drain, wait --> MemberCluster --> in the member: empty sets, account, namespace --> Secret
//! ```
//!
//! What is taken away last is what the steps before need: interrupted, it goes on where it was.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Context, bail};
use clap::Args;
use fedrs_api::{MemberCluster, labels};
use kube::ResourceExt;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::{
    drain::{self, Ended},
    host::HostOfMembers,
    kubeconfig::Source,
    membership::{
        cluster,
        leave::{self, By},
        names,
        objects::Membership,
        sets,
        stored::Stored,
    },
    object::{Address, SECRET},
    remote::{Remote, Side},
    say::Say,
    values,
};

/// How long a MemberCluster may take to go.
const GONE_WITHIN: Duration = Duration::from_secs(30);
/// How often it is looked at.
const PERIOD: Duration = Duration::from_millis(200);

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
    #[arg(long, value_name = "NAME", default_value = fedrs_api::names::SYSTEM_NAMESPACE, value_parser = values::dns_label)]
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

/// What is there before.
struct Found {
    object: Option<MemberCluster>,
    secret: Option<Value>,
}

impl Found {
    /// Whose member it is.
    fn federation(&self) -> String {
        let told = self.object.as_ref().map(|it| it.spec.federation.clone());
        let stored = || names::federation(self.secret.as_ref()?);
        told.or_else(stored).unwrap_or_default()
    }
}

/// Takes the member out. Fails if its replicas can't go elsewhere in time.
pub(crate) async fn run(args: UnjoinArgs) -> anyhow::Result<ExitCode> {
    let mut say = Say::to_terminal();
    let name = args.name.clone();
    let host = Remote::new(Side::Host, args.host.config().await.context("host")?)?;
    let mut membership = Membership {
        name: name.clone(),
        federation: String::new(),
        namespace: args.namespace.clone(),
        host_id: cluster::id(&host).await?,
        cluster_id: String::new(),
    };
    let found = Found {
        object: cluster::read(&host, &name).await?,
        secret: host.get(&membership.secret_address()).await?,
    };
    membership.federation = found.federation();
    let member = users_member(&args, &membership, &found).await?;
    if let Some(object) = found.object.clone() {
        if !args.force {
            is_to_be_drained(&object)?;
            match drain::drain(&host, object, args.timeout, &mut say).await? {
                Ended::Drained => say.line(format_args!("{name} is drained")),
                ended => return not_drained(&args, ended, &mut say),
            }
        }
        remove_object(&host, &membership, &mut say).await?;
    } else if found.secret.is_none() && member.is_none() {
        bail!("there is no member {name}: `kubectl get mc` lists all");
    }
    if args.force {
        say.line(format_args!(
            "nothing was done in {name}: sets that run there go on running"
        ));
        if found.secret.is_some() {
            say.line(leave::by_hand(&membership));
        }
    } else {
        leave_member(member, &membership, &found, &mut say).await?;
    }
    remove_secret(&host, &membership, &found, &mut say).await?;
    say.line(format_args!("{name} is no longer a member"));
    Ok(ExitCode::SUCCESS)
}

/// The member as the user reaches it, if the user says how; it must be the one of that name.
async fn users_member(
    args: &UnjoinArgs,
    membership: &Membership,
    found: &Found,
) -> anyhow::Result<Option<Remote>> {
    if args.member_kubeconfig.is_none() && args.member_context.is_none() {
        return Ok(None);
    }
    let source = Source {
        file: args.member_kubeconfig.clone(),
        context: args.member_context.clone(),
    };
    let config = source.config(source.read().context("member")?).await;
    let member = Remote::new(Side::Member, config.context("member")?)?;
    let id = cluster::id(&member).await?;
    let labels = found.object.as_ref().map(MemberCluster::labels);
    let known = labels.and_then(|it| it.get(labels::CLUSTER_ID));
    let role = member.get(&membership.owner()).await?;
    let joined_as = role
        .as_ref()
        .and_then(|it| it["metadata"]["labels"][labels::MEMBER_CLUSTER].as_str());
    let Membership { name, .. } = membership;
    if known.is_some_and(|it| *it != id) || joined_as.is_some_and(|it| it != name) {
        bail!(
            "the member's kubeconfig is of another cluster than {name}{}",
            joined_as.map(|it| format!(": of {it}")).unwrap_or_default()
        );
    }
    if role.is_none() && found.object.is_none() && found.secret.is_none() {
        // What an unjoin without a kubeconfig of the member has left.
        let namespace = member.get(&membership.namespace_address()).await?;
        if namespace.as_ref().is_some_and(names::is_ours) {
            return Ok(Some(member));
        }
        bail!(
            "there is no member {name}, and {} holds nothing of this host",
            member.url()
        );
    }
    Ok(Some(member))
}

/// Refuses a member that would come back by itself.
fn is_to_be_drained(object: &MemberCluster) -> anyhow::Result<()> {
    if cluster::is_file(object) {
        bail!(
            "{} is a member by a kubeconfig in the controller's --members folder: `fedrs drain` it, then take that file away",
            object.name_any()
        );
    }
    Ok(())
}

fn not_drained(args: &UnjoinArgs, ended: Ended, say: &mut Say) -> anyhow::Result<ExitCode> {
    let name = &args.name;
    let next = format!(
        "It stays a member, and goes on being drained. The same command again goes on, `fedrs uncordon {name}` ends it."
    );
    if let Ended::TimedOut(left) = ended {
        bail!(
            "{name} is not drained after {:?}: {left}\n{next}\n\
             If it is gone for good: `fedrs unjoin {name} --force`.",
            args.timeout
        );
    }
    say.line(next);
    Ok(ExitCode::from(drain::INTERRUPTED))
}

/// Deletes the MemberCluster, and waits until it is gone.
async fn remove_object(
    host: &Remote,
    membership: &Membership,
    say: &mut Say,
) -> anyhow::Result<()> {
    let address = membership.object_address();
    let until = Instant::now() + GONE_WITHIN;
    while host.delete(&address).await? {
        if Instant::now() >= until {
            bail!("host: {address} is not gone after {GONE_WITHIN:?}: its finalizers hold it");
        }
        sleep(PERIOD).await;
    }
    say.step(host.side, &address, "deleted");
    Ok(())
}

/// Takes away what join made in the member, as the user or as the controller's account.
async fn leave_member(
    users: Option<Remote>,
    membership: &Membership,
    found: &Found,
    say: &mut Say,
) -> anyhow::Result<()> {
    if let Some(member) = users {
        sets::remove_empty(&member, membership, say).await?;
        leave::account(&member, membership, By::User, say).await?;
        leave::namespace(&member, membership, say).await?;
        return Ok(());
    }
    let Some(stored) = found.secret.as_ref().and_then(Stored::of_secret) else {
        return Ok(());
    };
    let member = Remote::new(Side::Member, stored.config().await?)?;
    let left = async {
        sets::remove_empty(&member, membership, say).await?;
        leave::account(&member, membership, By::Account, say).await
    };
    match left.await {
        Ok(_) => say.step(
            Side::Member,
            membership.namespace_address(),
            "left: with --member-kubeconfig it would be deleted, if nothing else is in it",
        ),
        // It was taken away before.
        Err(failure) if failure.code() == Some(401) => {}
        Err(failure) => {
            say.warn(failure);
            say.line(leave::by_hand(membership));
        }
    }
    Ok(())
}

async fn remove_secret(
    host: &Remote,
    membership: &Membership,
    found: &Found,
    say: &mut Say,
) -> anyhow::Result<()> {
    let reference = found
        .object
        .as_ref()
        .and_then(|it| it.spec.secret_ref.as_ref());
    let others = reference.filter(|it| it.name != names::secret(&membership.name));
    if let Some(other) = others {
        let address = Address::inside(&membership.namespace, SECRET, &other.name);
        say.step(host.side, address, "left: join did not make it");
    }
    if found.secret.as_ref().is_some_and(names::is_ours) {
        let address = membership.secret_address();
        if host.delete(&address).await? {
            say.step(host.side, address, "deleted");
        }
    }
    Ok(())
}
