//! Unjoin: removes a member from the federation.
//!
//! ```text
//! drain, wait --> MemberCluster --> in the member: empty workloads, ServiceAccount, namespace --> Secret
//! ```
//!
//! Each object is deleted after those that need it, so that an interrupted unjoin can be repeated.

use std::time::Duration;

use fedrs_api::{ClusterType, MemberCluster, labels};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use serde_json::Value;

use crate::{
    Error,
    cleanup::{self, Actor},
    cluster_client::{ClusterClient, RequestError},
    discovery_account,
    drain::Drain,
    kubeconfig::KubeconfigSource,
    local_workloads, member_cluster,
    membership::{Membership, created_by_join, secret_name},
    object::ObjectRef,
    polling::poll,
    progress::{KeepReason, Progress, Reporter},
    replica_set_controller,
    stored_kubeconfig::StoredKubeconfig,
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

/// The removal of a member: prepared, and not started yet.
pub struct Unjoin<'a> {
    host: &'a ClusterClient,
    /// The member's client, if a user deletes the objects there.
    user: Option<ClusterClient>,
    /// Whether the member no longer exists.
    force: bool,
    membership: Membership,
    /// The MemberCluster.
    member: Option<MemberCluster>,
    /// The Secret on the host.
    secret: Option<Value>,
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
            namespaces: None,
            discovery: false,
        };
        let member = member_cluster::find(host, &membership.name).await?;
        membership.namespaces = member.as_ref().and_then(member_cluster::listed_namespaces);
        let secret = host.get(&membership.secret_ref()).await?;
        let federation = member.as_ref().map(|member| member.spec.federation.clone());
        let federation = federation.or_else(|| federation_of(secret.as_ref()?));
        membership.federation = federation.unwrap_or_default();
        let is_unknown = member.is_none() && secret.is_none();
        let force = matches!(request.mode, UnjoinMode::Force);
        let user = match request.mode {
            UnjoinMode::DrainAsUser(source) => {
                let labels = member.as_ref().map(MemberCluster::labels);
                let id = labels.and_then(|labels| labels.get(labels::CLUSTER_ID));
                Some(member_client(&source, &membership, id, is_unknown).await?)
            }
            _ if is_unknown => return Err(Error::MemberNotFound(membership.name)),
            UnjoinMode::Drain | UnjoinMode::Force => None,
        };
        if !force && member.as_ref().is_some_and(member_cluster::is_file) {
            return Err(Error::FileMember(membership.name));
        }
        Ok(Self {
            host,
            user,
            force,
            membership,
            member,
            secret,
        })
    }

    /// Starts the drain of the member, for the caller to wait. `None` if there is nothing to drain.
    pub async fn drain(&self, reporter: &mut dyn Reporter) -> Result<Option<Drain<'a>>, Error> {
        if self.force || self.member.is_none() {
            return Ok(None);
        }
        let drain = Drain::start(self.host, &self.membership.name, reporter).await?;
        Ok(Some(drain))
    }

    /// Deletes the member's objects, after the drain.
    pub async fn remove(self, reporter: &mut dyn Reporter) -> Result<(), Error> {
        if self.member.is_some() {
            delete_member_cluster(self.host, &self.membership, reporter).await?;
        }
        let name = self.membership.name.clone();
        if let Some(member) = &self.user {
            let actor = Actor::User;
            local_workloads::delete_empty(member, &self.membership, None, actor, reporter).await?;
            replica_set_controller::delete(member, &self.membership, reporter).await?;
            discovery_account::delete_in_member(member, &self.membership, reporter).await?;
            cleanup::delete_account(member, &self.membership, actor, reporter).await?;
            let listed = self.membership.listed_namespaces().iter();
            for namespace in listed.chain([&self.membership.namespace]) {
                cleanup::delete_namespace(member, namespace, reporter).await?;
            }
        } else if self.force {
            reporter.progress(Progress::MemberUnchanged(name.clone()));
            if self.secret.is_some() {
                reporter.progress(self.membership.manual_cleanup());
            }
        } else {
            self.clean_up_as_service_account(reporter).await?;
        }
        discovery_account::delete_on_host(self.host, &self.membership, reporter).await?;
        self.delete_secret(reporter).await?;
        reporter.progress(Progress::Unjoined(name));
        Ok(())
    }

    async fn clean_up_as_service_account(&self, reporter: &mut dyn Reporter) -> Result<(), Error> {
        let secret = self.secret.as_ref();
        let Some(stored) = secret.and_then(StoredKubeconfig::of_secret) else {
            return Ok(());
        };
        let member = stored.client().await?;
        let cleanup = async {
            // The account may read those in which it has permissions.
            let namespaces = self.membership.namespaces.as_deref();
            let actor = Actor::ServiceAccount;
            local_workloads::delete_empty(&member, &self.membership, namespaces, actor, reporter)
                .await?;
            cleanup::delete_account(&member, &self.membership, actor, reporter).await
        };
        let cleaned = cleanup.await;
        if cleanup::report_if_incomplete(cleaned, &self.membership, reporter) {
            reporter.progress(Progress::Kept {
                cluster: ClusterType::Member,
                object: self.membership.namespace_ref(),
                reason: KeepReason::RequiresMemberKubeconfig,
            });
        }
        Ok(())
    }

    async fn delete_secret(&self, reporter: &mut dyn Reporter) -> Result<(), RequestError> {
        let member = self.member.as_ref();
        let reference = member.and_then(|member| member.spec.secret_ref.as_ref());
        let own_name = secret_name(&self.membership.name);
        if let Some(other) = reference.filter(|secret| secret.name != own_name) {
            reporter.progress(Progress::Kept {
                cluster: self.host.cluster_type,
                object: ObjectRef::namespaced::<Secret>(&self.membership.namespace, &other.name),
                reason: KeepReason::NotCreatedByJoin,
            });
        }
        let secret = self.secret.as_ref();
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

/// A client of the member for the user. Fails if the kubeconfig belongs to another cluster than that with `expected_id`, or if
/// there is nothing to delete because the host does not know the member either.
async fn member_client(
    source: &KubeconfigSource,
    membership: &Membership,
    expected_id: Option<&String>,
    is_unknown: bool,
) -> Result<ClusterClient, Error> {
    let (member, _) = member_cluster::user_client(source).await?;
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
    if expected_id.is_some_and(|expected| *expected != id) {
        return Err(Error::OtherCluster(name.clone()));
    }
    if is_unknown && role.is_none() {
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
        return Err(Error::DeletionBlocked {
            name: membership.name.clone(),
            timeout: DELETION_TIMEOUT,
        });
    }
    let cluster = host.cluster_type;
    reporter.progress(Progress::Deleted { cluster, object });
    Ok(())
}
