//! Uninstall: takes off the host and the members whatever would be in the way once there is no controller.
//!
//! ```text
//! no controller runs? --> say what will be done, ask --> finalizers --> each member --> look again
//! ```
//!
//! Local sets stay as they are, with their pods; so do FederatedReplicaSets and CRDs, which can be deleted then.

mod finalizers;
mod survey;

use std::time::Duration;

use anyhow::bail;
use fedrs_api::pluralize;
use tokio::time::sleep;

use self::survey::{Installed, Joined};
use crate::{
    cleanup::{self, By},
    cluster_client::{ClusterClient, Side},
    leader::{self, Leader},
    member_cluster,
    object::{MEMBER_CLUSTER, ObjectRef},
    say::Say,
};

/// How soon a controller has put a finalizer on again.
const PUT_BACK_WITHIN: Duration = Duration::from_secs(1);

/// What is to be taken off.
pub struct UninstallRequest {
    /// The federation; empty for the one without a name.
    pub federation: String,
    /// The controller's namespace.
    pub namespace: String,
    /// The name of the controller's Deployment, for people.
    pub deployment: String,
}

/// What is about to be taken off.
pub struct Uninstall<'a> {
    host: &'a ClusterClient,
    request: UninstallRequest,
    installed: Installed,
}

impl<'a> Uninstall<'a> {
    /// Reads what there is. Fails if a controller runs.
    pub async fn prepare(
        host: &'a ClusterClient,
        request: UninstallRequest,
    ) -> anyhow::Result<Self> {
        let UninstallRequest {
            federation,
            namespace,
            deployment,
        } = &request;
        let host_id = member_cluster::id(host).await?;
        let installed = survey::survey(host, federation, namespace, &host_id).await?;
        if !installed.is_nothing()
            && let Leader::Runs(holder) = leader::leader(host, namespace).await?
        {
            bail!(
                "a controller runs ({holder}): stop it first, or it puts back what is taken off. For example:\n  \
                 kubectl -n {namespace} scale deployment/{deployment} --replicas=0"
            );
        }
        Ok(Self {
            host,
            request,
            installed,
        })
    }

    /// Whether there is nothing to be taken off.
    pub fn is_nothing(&self) -> bool {
        self.installed.is_nothing()
    }

    /// What will be done, in lines.
    pub fn plan(&self) -> String {
        self.installed.to_string()
    }

    /// What is left afterwards, and how it goes.
    pub fn left(&self) -> String {
        self.installed.left()
    }

    /// Takes everything off. Fails if a controller puts things back.
    pub async fn run(&self, say: &mut Say) -> anyhow::Result<()> {
        let Self {
            host, installed, ..
        } = self;
        finalizers::take_off(host, installed, say).await?;
        nobody_puts_them_back(host, installed, &self.request.federation).await?;
        for member in &installed.members {
            leave(host, member, say).await?;
        }
        cleanup::namespace(host, &installed.membership(""), say).await?;
        Ok(())
    }
}

/// A controller without leader election is told by what it does: it puts finalizers on again at once.
async fn nobody_puts_them_back(
    host: &ClusterClient,
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

/// Takes away what join made for one member. One that can't be reached is told, and left as it is.
async fn leave(host: &ClusterClient, member: &Joined, say: &mut Say) -> anyhow::Result<()> {
    let membership = &member.membership;
    say.line(format_args!("{}:", membership.name));
    if let Some(stored) = &member.stored {
        let remote = ClusterClient::new(Side::Member, stored.config().await?)?;
        match cleanup::account(&remote, membership, By::Account, say).await {
            Ok(_) => {}
            Err(failure) if failure.code() == Some(401) => {}
            Err(failure) => {
                say.warn(failure);
                say.line(cleanup::by_hand(membership));
            }
        }
    }
    let object = ObjectRef::cluster(MEMBER_CLUSTER, &membership.name);
    let secret = member.secret.then(|| membership.secret_address());
    for address in std::iter::once(object).chain(secret) {
        if host.delete(&address).await? {
            say.step(host.side, &address, "deleted");
        }
    }
    Ok(())
}
