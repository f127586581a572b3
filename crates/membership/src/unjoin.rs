//! Unjoin: removes a member from the federation.
//!
//! ```text
//! drain, wait --> MemberCluster --> in the member: empty ReplicaSets, ServiceAccount, namespace --> Secret
//! ```
//!
//! Each object is deleted after those that need it, so that an interrupted unjoin can be repeated.

use std::time::Duration;

use fedrs_api::{MemberCluster, labels};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use serde_json::Value;

use crate::{
    Error,
    cleanup::{self, Actor},
    cluster_client::{ClusterClient, RequestError, Side},
    drain::Drain,
    kubeconfig::KubeconfigSource,
    member_cluster,
    membership::{Membership, created_by_join, secret_name},
    object::ObjectRef,
    polling::poll,
    progress::{KeepReason, Progress, Reporter},
    replica_sets,
    stored_kubeconfig::StoredKubeconfig,
};

/// How long the deletion of a MemberCluster may take.
pub(crate) const DELETION_TIMEOUT: Duration = Duration::from_secs(30);
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
        let secret = || federation_of(self.secret.as_ref()?);
        federation.or_else(secret).unwrap_or_default()
    }

    /// Whether the host knows no such member.
    fn is_empty(&self) -> bool {
        self.member.is_none() && self.secret.is_none()
    }
}

/// The removal of a member: prepared, and not started yet.
pub struct Unjoin<'a> {
    host: &'a ClusterClient,
    /// The member's client, if a user deletes the objects there.
    user: Option<ClusterClient>,
    /// Whether the member no longer exists.
    force: bool,
    membership: Membership,
    objects: HostObjects,
}

impl<'a> Unjoin<'a> {
    /// Reads the member's objects. Fails if there is no such member, or if the controller would add it again.
    pub async fn prepare(host: &'a ClusterClient, request: UnjoinRequest) -> Result<Self, Error> {
        let mut membership = Membership {
            name: request.name,
            federation: String::new(),
            namespace: request.namespace,
            host_id: member_cluster::cluster_id(host).await?,
            cluster_id: String::new(),
        };
        let objects = HostObjects {
            member: member_cluster::find(host, &membership.name).await?,
            secret: host.get(&membership.secret_ref()).await?,
        };
        membership.federation = objects.federation();
        let force = matches!(request.mode, UnjoinMode::Force);
        let user = match request.mode {
            UnjoinMode::DrainAsUser(source) => {
                Some(member_client(&source, &membership, &objects).await?)
            }
            _ if objects.is_empty() => return Err(Error::MemberNotFound(membership.name)),
            UnjoinMode::Drain | UnjoinMode::Force => None,
        };
        if !force && objects.member.as_ref().is_some_and(member_cluster::is_file) {
            return Err(Error::FileMember(membership.name));
        }
        Ok(Self {
            host,
            user,
            force,
            membership,
            objects,
        })
    }

    /// Starts the drain of the member, for the caller to wait. `None` if there is nothing to drain.
    pub async fn drain(&self, reporter: &mut dyn Reporter) -> Result<Option<Drain<'a>>, Error> {
        if self.force || self.objects.member.is_none() {
            return Ok(None);
        }
        let drain = Drain::start(self.host, &self.membership.name, reporter).await?;
        Ok(Some(drain))
    }

    /// Deletes the member's objects, after the drain.
    pub async fn remove(self, reporter: &mut dyn Reporter) -> Result<(), Error> {
        if self.objects.member.is_some() {
            delete_member_cluster(self.host, &self.membership, reporter).await?;
        }
        let name = self.membership.name.clone();
        if let Some(member) = &self.user {
            replica_sets::delete_empty(member, &self.membership, reporter).await?;
            cleanup::delete_account(member, &self.membership, Actor::User, reporter).await?;
            cleanup::delete_namespace(member, &self.membership, reporter).await?;
        } else if self.force {
            reporter.progress(Progress::MemberUnchanged(name.clone()));
            if self.objects.secret.is_some() {
                reporter.progress(self.membership.manual_cleanup());
            }
        } else {
            self.clean_up_as_service_account(reporter).await?;
        }
        self.delete_secret(reporter).await?;
        reporter.progress(Progress::Unjoined(name));
        Ok(())
    }

    async fn clean_up_as_service_account(&self, reporter: &mut dyn Reporter) -> Result<(), Error> {
        let secret = self.objects.secret.as_ref();
        let Some(stored) = secret.and_then(StoredKubeconfig::of_secret) else {
            return Ok(());
        };
        let member = stored.client().await?;
        let cleanup = async {
            replica_sets::delete_empty(&member, &self.membership, reporter).await?;
            let actor = Actor::ServiceAccount;
            cleanup::delete_account(&member, &self.membership, actor, reporter).await
        };
        let cleaned = cleanup.await;
        if cleanup::is_complete(cleaned, &self.membership, reporter) {
            reporter.progress(Progress::Kept {
                side: Side::Member,
                object: self.membership.namespace_ref(),
                reason: KeepReason::RequiresMemberKubeconfig,
            });
        }
        Ok(())
    }

    async fn delete_secret(&self, reporter: &mut dyn Reporter) -> Result<(), RequestError> {
        let member = self.objects.member.as_ref();
        let reference = member.and_then(|member| member.spec.secret_ref.as_ref());
        let own_name = secret_name(&self.membership.name);
        if let Some(other) = reference.filter(|secret| secret.name != own_name) {
            reporter.progress(Progress::Kept {
                side: self.host.side,
                object: ObjectRef::namespaced::<Secret>(&self.membership.namespace, &other.name),
                reason: KeepReason::NotCreatedByJoin,
            });
        }
        let secret = self.objects.secret.as_ref();
        if secret.is_some_and(created_by_join) {
            cleanup::delete(self.host, self.membership.secret_ref(), reporter).await?;
        }
        Ok(())
    }
}

/// The federation of a Secret that join created; `None` if it has no label for it.
fn federation_of(secret: &Value) -> Option<String> {
    let label = secret["metadata"]["labels"][labels::FEDERATION].as_str()?;
    Some(label.to_owned())
}

/// A client of the member for the user. Fails if the kubeconfig belongs to another cluster.
async fn member_client(
    source: &KubeconfigSource,
    membership: &Membership,
    objects: &HostObjects,
) -> Result<ClusterClient, Error> {
    let (member, _) = source.member().await?;
    let id = member_cluster::cluster_id(&member).await?;
    let role = member.get(&membership.owner()).await?;
    let label = role
        .as_ref()
        .and_then(|role| role["metadata"]["labels"][labels::MEMBER_CLUSTER].as_str());
    let name = &membership.name;
    if let Some(actual) = label.filter(|label| label != name) {
        return Err(Error::OtherMember {
            name: name.clone(),
            actual: actual.to_owned(),
        });
    }
    let object_labels = objects.member.as_ref().map(MemberCluster::labels);
    let expected = object_labels.and_then(|labels| labels.get(labels::CLUSTER_ID));
    if expected.is_some_and(|expected| *expected != id) {
        return Err(Error::OtherCluster(name.clone()));
    }
    if role.is_none() && objects.is_empty() {
        // An unjoin without a kubeconfig of the member leaves the namespace.
        let namespace = member.get(&membership.namespace_ref()).await?;
        if !namespace.as_ref().is_some_and(created_by_join) {
            return Err(Error::NothingToDelete {
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
) -> Result<(), Error> {
    let object = membership.member_cluster_ref();
    let delete = async || {
        let existed = host.delete(&object).await?;
        Ok::<_, RequestError>(if existed { Err(()) } else { Ok(()) })
    };
    let deleted = poll(DELETION_TIMEOUT, DELETION_POLL_PERIOD, delete, |()| {}).await?;
    if deleted.is_err() {
        return Err(Error::DeletionBlocked(membership.name.clone()));
    }
    let side = host.side;
    reporter.progress(Progress::Deleted { side, object });
    Ok(())
}
