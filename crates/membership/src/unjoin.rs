//! Unjoin: removes a member from the federation.
//!
//! ```text
//! drain, wait --> MemberCluster --> in the member: empty ReplicaSets, ServiceAccount, namespace --> Secret
//! ```
//!
//! Each object is deleted after those that need it, so that an interrupted unjoin can be repeated.

use std::time::Duration;

use fedrs_api::{MemberCluster, labels};
use kube::ResourceExt;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::{
    cleanup::{self, Actor},
    cluster_client::{ClientError, ClusterClient, RequestError, Side},
    drain::{Drain, DrainError},
    kubeconfig::{KubeconfigError, KubeconfigSource},
    member_cluster,
    membership::Membership,
    names,
    object::{ObjectRef, SECRET},
    progress::{KeepReason, Progress, Reporter, Warning},
    replica_sets,
    stored_kubeconfig::{StoredKubeconfig, StoredKubeconfigError},
};

/// How long the deletion of a MemberCluster may take.
const DELETION_TIMEOUT: Duration = Duration::from_secs(30);
/// How often the deletion is polled.
const DELETION_POLL_PERIOD: Duration = Duration::from_millis(200);

/// Which member is removed, and how.
#[derive(Clone, Debug)]
pub struct UnjoinRequest {
    /// The member.
    pub name: String,
    /// How its replicas and objects are handled.
    pub mode: UnjoinMode,
    /// The namespace of the controller.
    pub namespace: String,
}

/// How the replicas and objects of a member are handled.
#[derive(Clone, Debug)]
pub enum UnjoinMode {
    /// The replicas move to other clusters first. The controller's ServiceAccount deletes what it may in the member.
    Drain,
    /// The replicas move to other clusters first. A user deletes all objects in the member.
    DrainAsUser(KubeconfigSource),
    /// The member no longer exists: nothing is changed there.
    Force,
}

/// An unjoin failed.
#[derive(Debug, thiserror::Error)]
pub enum UnjoinError {
    /// There is neither such a member nor a Secret for it.
    #[error("member {0} not found: run `kubectl get mc` to list the members")]
    NotFound(String),
    /// There is no such member, and its cluster has no objects of this host.
    #[error("member {name} not found, and {url} has no objects of this host")]
    NothingToDelete {
        /// The member.
        name: String,
        /// The address of the cluster.
        url: String,
    },
    /// The user's kubeconfig belongs to another cluster.
    #[error("the member kubeconfig belongs to another cluster than {0}")]
    OtherCluster(String),
    /// The user's kubeconfig belongs to another member.
    #[error("the member kubeconfig belongs to the member {actual}, not to {name}")]
    OtherMember {
        /// The member.
        name: String,
        /// The member of the kubeconfig.
        actual: String,
    },
    /// The controller would add the member again.
    #[error(
        "member {0} has a kubeconfig in the --members directory of the controller: run `fedrs drain {0}`, then remove that file"
    )]
    FileMember(String),
    /// The user's kubeconfig of the member can't be used.
    #[error("member: {0}")]
    MemberKubeconfig(KubeconfigError),
    /// The kubeconfig in the Secret can't be used.
    #[error(transparent)]
    StoredKubeconfig(#[from] StoredKubeconfigError),
    /// A client can't be created.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A request failed.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The drain failed.
    #[error(transparent)]
    Drain(#[from] DrainError),
    /// The MemberCluster has finalizers.
    #[error(
        "host: {object} still exists {DELETION_TIMEOUT:?} after its deletion: its finalizers block the deletion"
    )]
    DeletionBlocked {
        /// The MemberCluster.
        object: ObjectRef,
    },
}

/// The objects of the member on the host.
struct HostObjects {
    member: Option<MemberCluster>,
    secret: Option<Value>,
}

impl HostObjects {
    /// The member's federation.
    fn federation(&self) -> String {
        let member = self.member.as_ref();
        let federation = member.map(|member| member.spec.federation.clone());
        let secret = || names::federation(self.secret.as_ref()?);
        federation.or_else(secret).unwrap_or_default()
    }
}

/// The removal of a member: prepared, and not started yet.
pub struct Unjoin<'a> {
    host: &'a ClusterClient,
    membership: Membership,
    objects: HostObjects,
    cleanup: MemberCleanup,
}

/// How the objects in the member are deleted.
enum MemberCleanup {
    /// By a user.
    User(Box<ClusterClient>),
    /// By the controller's ServiceAccount.
    ServiceAccount,
    /// Not at all.
    Skip,
}

impl<'a> Unjoin<'a> {
    /// Reads the member's objects. Fails if there is no such member, or if the controller would add it again.
    pub async fn prepare(
        host: &'a ClusterClient,
        request: UnjoinRequest,
    ) -> Result<Self, UnjoinError> {
        let name = &request.name;
        let mut membership = Membership {
            name: name.clone(),
            federation: String::new(),
            namespace: request.namespace,
            host_id: member_cluster::cluster_id(host).await?,
            cluster_id: String::new(),
        };
        let objects = HostObjects {
            member: member_cluster::find(host, name).await?,
            secret: host.get(&membership.secret_ref()).await?,
        };
        membership.federation = objects.federation();
        let is_unknown = objects.member.is_none() && objects.secret.is_none();
        let cleanup = match request.mode {
            UnjoinMode::DrainAsUser(source) => {
                let client = member_client(&source, &membership, &objects).await?;
                MemberCleanup::User(Box::new(client))
            }
            _ if is_unknown => return Err(UnjoinError::NotFound(name.clone())),
            UnjoinMode::Drain => MemberCleanup::ServiceAccount,
            UnjoinMode::Force => MemberCleanup::Skip,
        };
        let unjoin = Self {
            host,
            membership,
            objects,
            cleanup,
        };
        match &unjoin.objects.member {
            Some(member) if unjoin.drains() && member_cluster::is_file(member) => {
                Err(UnjoinError::FileMember(member.name_any()))
            }
            _ => Ok(unjoin),
        }
    }

    fn drains(&self) -> bool {
        !matches!(self.cleanup, MemberCleanup::Skip)
    }

    /// Starts the drain of the member, for the caller to wait. `None` if there is nothing to drain.
    pub async fn drain(
        &self,
        reporter: &mut dyn Reporter,
    ) -> Result<Option<Drain<'a>>, UnjoinError> {
        if !self.drains() || self.objects.member.is_none() {
            return Ok(None);
        }
        let drain = Drain::start(self.host, &self.membership.name, reporter).await?;
        Ok(Some(drain))
    }

    /// Deletes the member's objects, after the drain.
    pub async fn remove(self, reporter: &mut dyn Reporter) -> Result<(), UnjoinError> {
        if self.objects.member.is_some() {
            delete_member_cluster(self.host, &self.membership, reporter).await?;
        }
        let name = self.membership.name.clone();
        match &self.cleanup {
            MemberCleanup::User(member) => {
                self.clean_up_as_user(member, reporter).await?;
            }
            MemberCleanup::ServiceAccount => {
                self.clean_up_as_service_account(reporter).await?;
            }
            MemberCleanup::Skip => {
                reporter.progress(Progress::MemberUnchanged(name.clone()));
                if self.objects.secret.is_some() {
                    reporter.progress(Progress::ManualCleanup(self.membership.leftovers()));
                }
            }
        }
        self.delete_secret(reporter).await?;
        reporter.progress(Progress::Unjoined(name));
        Ok(())
    }

    async fn clean_up_as_user(
        &self,
        member: &ClusterClient,
        reporter: &mut dyn Reporter,
    ) -> Result<(), RequestError> {
        replica_sets::delete_empty(member, &self.membership, reporter).await?;
        cleanup::delete_account(member, &self.membership, Actor::User, reporter).await?;
        cleanup::delete_namespace(member, &self.membership, reporter).await
    }

    async fn clean_up_as_service_account(
        &self,
        reporter: &mut dyn Reporter,
    ) -> Result<(), UnjoinError> {
        let secret = self.objects.secret.as_ref();
        let Some(stored) = secret.and_then(StoredKubeconfig::of_secret) else {
            return Ok(());
        };
        let member = stored.client().await?;
        let deleted = async {
            replica_sets::delete_empty(&member, &self.membership, reporter).await?;
            let actor = Actor::ServiceAccount;
            cleanup::delete_account(&member, &self.membership, actor, reporter).await
        };
        match deleted.await {
            Ok(()) => reporter.progress(Progress::Kept {
                side: Side::Member,
                object: self.membership.namespace_ref(),
                reason: KeepReason::RequiresMemberKubeconfig,
            }),
            // An earlier unjoin deleted the ServiceAccount.
            Err(error) if error.code() == Some(401) => {}
            Err(error) => {
                reporter.warn(Warning::Request(error));
                reporter.progress(Progress::ManualCleanup(self.membership.leftovers()));
            }
        }
        Ok(())
    }

    async fn delete_secret(&self, reporter: &mut dyn Reporter) -> Result<(), RequestError> {
        let side = self.host.side;
        let member = self.objects.member.as_ref();
        let reference = member.and_then(|member| member.spec.secret_ref.as_ref());
        let own_name = names::secret(&self.membership.name);
        if let Some(other) = reference.filter(|secret| secret.name != own_name) {
            reporter.progress(Progress::Kept {
                side,
                object: ObjectRef::namespaced(&self.membership.namespace, SECRET, &other.name),
                reason: KeepReason::NotCreatedByJoin,
            });
        }
        let secret = self.objects.secret.as_ref();
        if secret.is_some_and(names::created_by_join) {
            let object = self.membership.secret_ref();
            if self.host.delete(&object).await? {
                reporter.progress(Progress::Deleted { side, object });
            }
        }
        Ok(())
    }
}

/// A client of the member for the user. Fails if the kubeconfig belongs to another cluster.
async fn member_client(
    source: &KubeconfigSource,
    membership: &Membership,
    objects: &HostObjects,
) -> Result<ClusterClient, UnjoinError> {
    let kubeconfig = source.read().map_err(UnjoinError::MemberKubeconfig)?;
    let config = source.config(kubeconfig).await;
    let config = config.map_err(UnjoinError::MemberKubeconfig)?;
    let member = ClusterClient::new(Side::Member, config)?;
    let id = member_cluster::cluster_id(&member).await?;
    let role = member.get(&membership.owner()).await?;
    let label = role
        .as_ref()
        .and_then(|role| role["metadata"]["labels"][labels::MEMBER_CLUSTER].as_str());
    let name = &membership.name;
    if let Some(actual) = label.filter(|label| label != name) {
        return Err(UnjoinError::OtherMember {
            name: name.clone(),
            actual: actual.to_owned(),
        });
    }
    let object_labels = objects.member.as_ref().map(MemberCluster::labels);
    let expected = object_labels.and_then(|labels| labels.get(labels::CLUSTER_ID));
    if expected.is_some_and(|expected| *expected != id) {
        return Err(UnjoinError::OtherCluster(name.clone()));
    }
    if role.is_none() && objects.member.is_none() && objects.secret.is_none() {
        // An unjoin without a kubeconfig of the member leaves the namespace.
        let namespace = member.get(&membership.namespace_ref()).await?;
        if !namespace.as_ref().is_some_and(names::created_by_join) {
            return Err(UnjoinError::NothingToDelete {
                name: name.clone(),
                url: member.url(),
            });
        }
    }
    Ok(member)
}

/// Deletes the MemberCluster and waits until it no longer exists.
async fn delete_member_cluster(
    host: &ClusterClient,
    membership: &Membership,
    reporter: &mut dyn Reporter,
) -> Result<(), UnjoinError> {
    let object = membership.member_cluster_ref();
    let deadline = Instant::now() + DELETION_TIMEOUT;
    while host.delete(&object).await? {
        if Instant::now() >= deadline {
            return Err(UnjoinError::DeletionBlocked { object });
        }
        sleep(DELETION_POLL_PERIOD).await;
    }
    reporter.progress(Progress::Deleted {
        side: host.side,
        object,
    });
    Ok(())
}
