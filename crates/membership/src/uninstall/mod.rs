//! Uninstall: removes everything from the host and the members that would block deletions or grant access after the
//! controller is gone.
//!
//! ```text
//! no controller runs? --> plan, which the caller confirms --> finalizers --> each member --> namespace
//! ```
//!
//! Local ReplicaSets stay with their pods. FederatedReplicaSets and CRDs stay as well, and can be deleted afterwards.

mod finalizers;
mod installation;
mod plan;

use std::time::Duration;

use fedrs_api::{names::controller_name, pluralize};
use tokio::time::sleep;

use self::installation::{Installation, InstalledMember, count_finalizers};
pub use self::plan::{Remaining, UninstallPlan};
use crate::{
    cleanup::{self, Actor},
    cluster_client::{ClusterClient, RequestError},
    controller_lease::{ControllerState, controller_state},
    member_cluster,
    object::{MEMBER_CLUSTER, ObjectRef},
    progress::{Progress, Reporter, Warning},
    stored_kubeconfig::StoredKubeconfigError,
};

/// How long a running controller takes at most to restore a finalizer.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(1);

/// Which federation is removed.
#[derive(Clone, Debug)]
pub struct UninstallRequest {
    /// The federation; empty for the one without a name.
    pub federation: String,
    /// The namespace of the controller.
    pub namespace: String,
}

/// An uninstall failed.
#[derive(Debug, thiserror::Error)]
pub enum UninstallError {
    /// A controller runs.
    #[error(
        "the controller {holder} is running and would restore what uninstall removes. Stop it first, for example:\n  \
         kubectl -n {namespace} scale deployment/{deployment} --replicas=0"
    )]
    ControllerRunning {
        /// The process that holds the Lease.
        holder: String,
        /// The namespace of the controller.
        namespace: String,
        /// Its Deployment.
        deployment: String,
    },
    /// A controller without leader election runs.
    #[error(
        "a controller is running: it restored the finalizers of {}. Stop it, and run the command again",
        pluralize(*.0, "FederatedReplicaSet")
    )]
    FinalizersRestored(usize),
    /// A request failed.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The kubeconfig in a member's Secret can't be used.
    #[error(transparent)]
    StoredKubeconfig(#[from] StoredKubeconfigError),
}

/// The removal of a federation: prepared, and not started yet.
pub struct Uninstall<'a> {
    host: &'a ClusterClient,
    federation: String,
    installation: Installation,
}

impl<'a> Uninstall<'a> {
    /// Reads what is installed. Fails if a controller runs.
    pub async fn prepare(
        host: &'a ClusterClient,
        request: UninstallRequest,
    ) -> Result<Self, UninstallError> {
        let UninstallRequest {
            federation,
            namespace,
        } = request;
        let host_id = member_cluster::cluster_id(host).await?;
        let installation = Installation::read(host, &federation, &namespace, &host_id).await?;
        if installation.plan().is_some()
            && let ControllerState::Running(holder) = controller_state(host, &namespace).await?
        {
            return Err(UninstallError::ControllerRunning {
                holder,
                namespace,
                deployment: controller_name(&federation),
            });
        }
        Ok(Self {
            host,
            federation,
            installation,
        })
    }

    /// What [`Self::run`] will do; `None` if there is nothing to do.
    #[must_use]
    pub fn plan(&self) -> Option<UninstallPlan> {
        self.installation.plan()
    }

    /// What remains after [`Self::run`].
    #[must_use]
    pub fn remaining(&self) -> Remaining {
        self.installation.remaining()
    }

    /// Removes everything in the plan. Fails if a controller restores it.
    pub async fn run(&self, reporter: &mut dyn Reporter) -> Result<(), UninstallError> {
        let sets = &self.installation.sets;
        finalizers::remove(self.host, sets, reporter).await?;
        self.check_finalizers().await?;
        for member in &self.installation.members {
            self.remove_member(member, reporter).await?;
        }
        let membership = self.installation.membership("");
        cleanup::delete_namespace(self.host, &membership, reporter).await?;
        Ok(())
    }

    /// Detects a controller without leader election, which has no Lease: it restores finalizers immediately.
    async fn check_finalizers(&self) -> Result<(), UninstallError> {
        if self.installation.sets.is_empty() {
            return Ok(());
        }
        sleep(RESTORE_TIMEOUT).await;
        match count_finalizers(self.host, &self.federation).await? {
            0 => Ok(()),
            restored => Err(UninstallError::FinalizersRestored(restored)),
        }
    }

    /// Deletes what join created for a member. If the member does not answer, reports what is left there.
    async fn remove_member(
        &self,
        member: &InstalledMember,
        reporter: &mut dyn Reporter,
    ) -> Result<(), UninstallError> {
        let membership = &member.membership;
        reporter.progress(Progress::Member(membership.name.clone()));
        if let Some(kubeconfig) = &member.kubeconfig {
            let client = kubeconfig.client().await?;
            let actor = Actor::ServiceAccount;
            match cleanup::delete_account(&client, membership, actor, reporter).await {
                Ok(()) => {}
                // The ServiceAccount was deleted before.
                Err(error) if error.code() == Some(401) => {}
                Err(error) => {
                    reporter.warn(Warning::Request(error));
                    reporter.progress(Progress::ManualCleanup(membership.leftovers()));
                }
            }
        }
        let object = ObjectRef::cluster_scoped(MEMBER_CLUSTER, &membership.name);
        let secret = member.has_secret.then(|| membership.secret_ref());
        for object in std::iter::once(object).chain(secret) {
            if self.host.delete(&object).await? {
                let side = self.host.side;
                reporter.progress(Progress::Deleted { side, object });
            }
        }
        Ok(())
    }
}
