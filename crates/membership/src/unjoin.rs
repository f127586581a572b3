//! Unjoin: takes a member out of the federation.
//!
//! ```text
//! drain, wait --> MemberCluster --> in the member: empty sets, account, namespace --> Secret
//! ```
//!
//! What is taken away last is what the steps before need: interrupted, it goes on where it was.

use std::time::Duration;

use anyhow::{Context, bail};
use fedrs_api::{MemberCluster, labels};
use kube::ResourceExt;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::{
    cleanup::{self, By},
    cluster_client::{ClusterClient, Side},
    drain::Drain,
    kubeconfig::Source,
    local_sets, member_cluster,
    member_kubeconfig::Stored,
    membership::Membership,
    names,
    object::{ObjectRef, SECRET},
    say::Say,
};

/// How long a MemberCluster may take to go.
const GONE_WITHIN: Duration = Duration::from_secs(30);
/// How often it is looked at.
const PERIOD: Duration = Duration::from_millis(200);

/// Which member is to be taken out, and how.
pub struct UnjoinRequest {
    /// The member.
    pub name: String,
    /// For a member that is gone: its replicas aren't moved first, and everything in it is left as it is.
    pub force: bool,
    /// The controller's namespace.
    pub namespace: String,
    /// The member as a user reaches it, if the user says how.
    pub member: Option<Source>,
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

/// A member that is about to be taken out.
pub struct Unjoin<'a> {
    host: &'a ClusterClient,
    force: bool,
    membership: Membership,
    found: Found,
    member: Option<ClusterClient>,
}

impl<'a> Unjoin<'a> {
    /// Reads what is there. Fails if there is no such member, or if it would come back by itself.
    pub async fn prepare(host: &'a ClusterClient, request: UnjoinRequest) -> anyhow::Result<Self> {
        let name = &request.name;
        let mut membership = Membership {
            name: name.clone(),
            federation: String::new(),
            namespace: request.namespace.clone(),
            host_id: member_cluster::id(host).await?,
            cluster_id: String::new(),
        };
        let found = Found {
            object: member_cluster::read(host, name).await?,
            secret: host.get(&membership.secret_address()).await?,
        };
        membership.federation = found.federation();
        let member = users_member(request.member.as_ref(), &membership, &found).await?;
        match &found.object {
            Some(object) if !request.force => is_to_be_drained(object)?,
            None if found.secret.is_none() && member.is_none() => {
                bail!("there is no member {name}: `kubectl get mc` lists all")
            }
            _ => {}
        }
        Ok(Self {
            host,
            force: request.force,
            membership,
            found,
            member,
        })
    }

    /// Asks for the member to be drained; `None` if that is not to be waited for.
    pub async fn drain(&self, say: &mut Say) -> anyhow::Result<Option<Drain<'a>>> {
        if self.force || self.found.object.is_none() {
            return Ok(None);
        }
        let drain = Drain::start(self.host, &self.membership.name, say).await?;
        Ok(Some(drain))
    }

    /// Takes the member out, which has been drained.
    pub async fn remove(self, say: &mut Say) -> anyhow::Result<()> {
        let Self {
            host,
            membership,
            found,
            ..
        } = &self;
        let name = &membership.name;
        if found.object.is_some() {
            remove_object(host, membership, say).await?;
        }
        if self.force {
            say.line(format_args!(
                "nothing was done in {name}: sets that run there go on running"
            ));
            if found.secret.is_some() {
                say.line(cleanup::by_hand(membership));
            }
        } else {
            leave_member(self.member.clone(), membership, found, say).await?;
        }
        remove_secret(host, membership, found, say).await?;
        say.line(format_args!("{name} is no longer a member"));
        Ok(())
    }
}

/// The member as the user reaches it, if the user says how; it must be the one of that name.
async fn users_member(
    source: Option<&Source>,
    membership: &Membership,
    found: &Found,
) -> anyhow::Result<Option<ClusterClient>> {
    let Some(source) = source else {
        return Ok(None);
    };
    let config = source.config(source.read().context("member")?).await;
    let member = ClusterClient::new(Side::Member, config.context("member")?)?;
    let id = member_cluster::id(&member).await?;
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
    if member_cluster::is_file(object) {
        bail!(
            "{} is a member by a kubeconfig in the controller's --members folder: `fedrs drain` it, then take that file away",
            object.name_any()
        );
    }
    Ok(())
}

/// Deletes the MemberCluster, and waits until it is gone.
async fn remove_object(
    host: &ClusterClient,
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
    users: Option<ClusterClient>,
    membership: &Membership,
    found: &Found,
    say: &mut Say,
) -> anyhow::Result<()> {
    if let Some(member) = users {
        local_sets::remove_empty(&member, membership, say).await?;
        cleanup::account(&member, membership, By::User, say).await?;
        cleanup::namespace(&member, membership, say).await?;
        return Ok(());
    }
    let Some(stored) = found.secret.as_ref().and_then(Stored::of_secret) else {
        return Ok(());
    };
    let member = ClusterClient::new(Side::Member, stored.config().await?)?;
    let left = async {
        local_sets::remove_empty(&member, membership, say).await?;
        cleanup::account(&member, membership, By::Account, say).await
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
            say.line(cleanup::by_hand(membership));
        }
    }
    Ok(())
}

async fn remove_secret(
    host: &ClusterClient,
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
        let address = ObjectRef::inside(&membership.namespace, SECRET, &other.name);
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
