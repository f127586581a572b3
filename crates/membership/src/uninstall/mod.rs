//! Uninstall: removes everything from the host and the members that would block deletions or grant access after the
//! controller is gone.
//!
//! ```text
//! no controller runs? --> plan, which the caller confirms --> finalizers --> each member --> namespace
//! ```
//!
//! Local workloads stay with their pods. The federated sets and the CRDs stay as well, and can be deleted afterwards.

mod finalized;
mod plan;

use std::{collections::BTreeMap, time::Duration};

use controller_base::finalizer;
use fedrs_api::{
    AvailabilitySet, Maintenance, MemberCluster, finalizers, labels, names::controller_name,
};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::Value;
use tokio::time::sleep;

pub use self::plan::{Remaining, SetCounts, UninstallPlan};
use crate::{
    Error,
    cleanup::{self, Actor},
    cluster_client::{ClusterClient, RequestError},
    controller_lease::{ControllerState, LeaseWatch},
    discovery_account,
    federated_set::{self, SetObject},
    member_cluster,
    membership::{Membership, created_by_join, secret_name},
    object::{FIELD_MANAGER, ObjectRef, none_if_not_found},
    progress::{Progress, Reporter},
    set_ref,
    stored_kubeconfig::StoredKubeconfig,
};

/// How long a running controller takes at most to restore a finalizer.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(1);
/// The number of concurrent writes.
const CONCURRENT_WRITES: usize = 8;

/// Which federation is removed.
#[derive(Clone, Debug)]
pub struct UninstallRequest {
    /// The federation; empty for the one without a name.
    pub federation: String,
    /// The namespace of the controller.
    pub namespace: String,
}

/// The removal of a federation: prepared, and not started yet.
pub struct Uninstall<'a> {
    host: &'a ClusterClient,
    request: UninstallRequest,
    host_id: String,
    remaining: Remaining,
    /// Whether join created the namespace.
    owns_namespace: bool,
    /// The sets with the finalizer of fedrs.
    sets: Vec<SetObject>,
    /// The Maintenances with the finalizer of fedrs.
    maintenances: Vec<Maintenance>,
    /// The AvailabilitySets with the finalizer of fedrs.
    availability_sets: Vec<AvailabilitySet>,
    /// The Secrets that join created, by the names of the members with a MemberCluster, a Secret, or both.
    members: BTreeMap<String, Option<Value>>,
}

impl<'a> Uninstall<'a> {
    /// Reads what is installed. Fails if a controller runs, which may take the duration of its Lease to find out.
    pub async fn prepare(
        host: &'a ClusterClient,
        request: UninstallRequest,
        reporter: &mut dyn Reporter,
    ) -> Result<Self, Error> {
        let host_id = member_cluster::cluster_id(host).await?;
        let sets = federated_set::list(host).await?;
        let has_crds = sets.is_some();
        let (mut sets, others): (Vec<_>, Vec<_>) = sets
            .into_iter()
            .flatten()
            .partition(|set| set.federation() == request.federation);
        let remaining = match (has_crds, count(&sets), count(&others)) {
            (false, ..) => Remaining::Nothing,
            (true, sets, others) if others.is_zero() => Remaining::Crds { sets },
            (true, sets, other_sets) => Remaining::SharedCrds { sets, other_sets },
        };
        sets.retain(has_finalizer);
        let namespace = ObjectRef::cluster_scoped::<Namespace>(&request.namespace);
        let uninstall = Self {
            host,
            host_id,
            remaining,
            owns_namespace: host
                .get(&namespace)
                .await?
                .is_some_and(|namespace| created_by_join(&namespace)),
            sets,
            maintenances: finalized::list(host, &request.federation).await?,
            availability_sets: finalized::list(host, &request.federation).await?,
            members: members(host, &request).await?,
            request,
        };
        if uninstall.plan().is_some() {
            uninstall.check_controller(reporter).await?;
        }
        Ok(uninstall)
    }

    /// Fails if a controller renews its Lease.
    async fn check_controller(&self, reporter: &mut dyn Reporter) -> Result<(), Error> {
        let namespace = &self.request.namespace;
        let watch = LeaseWatch::begin(self.host, namespace).await?;
        if let Some(holder) = watch.holder() {
            reporter.progress(Progress::WatchingLease(holder.to_owned()));
        }
        match watch.state().await? {
            ControllerState::Running(holder) => Err(Error::ControllerRunning {
                holder,
                namespace: namespace.clone(),
                deployment: controller_name(&self.request.federation),
            }),
            ControllerState::Stopped | ControllerState::Unknown => Ok(()),
        }
    }

    /// What [`Self::run`] will do; `None` if there is nothing to do.
    #[must_use]
    pub fn plan(&self) -> Option<UninstallPlan> {
        let plan = UninstallPlan {
            sets: count(&self.sets),
            maintenances: self
                .maintenances
                .iter()
                .map(ResourceExt::name_any)
                .collect(),
            availability_sets: self
                .availability_sets
                .iter()
                .map(ResourceExt::name_any)
                .collect(),
            members: self.members.keys().cloned().collect(),
            namespace: self.owns_namespace.then(|| self.request.namespace.clone()),
        };
        (!plan.is_empty()).then_some(plan)
    }

    /// What remains after [`Self::run`].
    #[must_use]
    pub fn remaining(&self) -> Remaining {
        self.remaining
    }

    /// Removes everything in the plan. Fails if a controller restores it.
    pub async fn run(&self, reporter: &mut dyn Reporter) -> Result<(), Error> {
        let writes = stream::iter(&self.sets).map(|set| self.remove_finalizer(set));
        let writes = writes.buffered(CONCURRENT_WRITES);
        writes.try_collect::<()>().await?;
        reporter.progress(Progress::FinalizersRemoved(count(&self.sets)));
        self.check_finalizers().await?;
        for maintenance in &self.maintenances {
            finalized::release(self.host, maintenance).await?;
        }
        if !self.maintenances.is_empty() {
            reporter.progress(Progress::MaintenancesReleased(self.maintenances.len()));
        }
        for set in &self.availability_sets {
            finalized::release(self.host, set).await?;
        }
        if !self.availability_sets.is_empty() {
            reporter.progress(Progress::AvailabilitySetsReleased(
                self.availability_sets.len(),
            ));
        }
        for (name, secret) in &self.members {
            self.remove_member(name, secret.as_ref(), reporter).await?;
        }
        cleanup::delete_namespace(self.host, &self.request.namespace, reporter).await?;
        Ok(())
    }

    /// Removes the finalizer that would block the deletion of `set` while no controller runs (F5), and keeps others. The API
    /// server rejects it if the set was changed meanwhile.
    async fn remove_finalizer(&self, set: &SetObject) -> Result<(), RequestError> {
        let SetObject { kind, object } = set;
        let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
        let patch = Patch::Merge(finalizer::removal(&object.metadata, finalizers::MEMBERS));
        let sets = federated_set::api(self.host, *kind, Some(&namespace));
        let parameters = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let request = sets.patch_metadata(&name, &parameters, &patch);
        let operation = format!("patch {} {namespace}/{name}", set_ref::lower(*kind));
        none_if_not_found(self.host.call(operation, request).await).map(drop)
    }

    /// Detects a controller without leader election, which has no Lease: it restores finalizers immediately.
    async fn check_finalizers(&self) -> Result<(), Error> {
        if self.sets.is_empty() {
            return Ok(());
        }
        sleep(RESTORE_TIMEOUT).await;
        let sets = federated_set::list(self.host).await?;
        let mut sets = sets.unwrap_or_default();
        sets.retain(|set| set.federation() == self.request.federation && has_finalizer(set));
        match count(&sets) {
            restored if restored.is_zero() => Ok(()),
            restored => Err(Error::FinalizersRestored(restored)),
        }
    }

    /// Deletes what join created for a member. If the member does not answer, reports what is left there.
    async fn remove_member(
        &self,
        name: &str,
        secret: Option<&Value>,
        reporter: &mut dyn Reporter,
    ) -> Result<(), Error> {
        let membership = self.membership(name);
        reporter.progress(Progress::Member(name.to_owned()));
        if let Some(stored) = secret.and_then(StoredKubeconfig::of_secret) {
            let client = stored.client().await?;
            let actor = Actor::ServiceAccount;
            let cleaned = cleanup::delete_account(&client, &membership, actor, reporter).await;
            cleanup::report_if_incomplete(cleaned, &membership, reporter);
        }
        discovery_account::delete_on_host(self.host, &membership, reporter).await?;
        let secret = secret.map(|_| membership.secret_ref());
        for object in [membership.member_cluster_ref()].into_iter().chain(secret) {
            cleanup::delete(self.host, object, reporter).await?;
        }
        Ok(())
    }

    fn membership(&self, name: &str) -> Membership {
        Membership {
            name: name.to_owned(),
            federation: self.request.federation.clone(),
            namespace: self.request.namespace.clone(),
            host_id: self.host_id.clone(),
            cluster_id: String::new(),
            namespaces: None,
            discovery: false,
        }
    }
}

fn has_finalizer(set: &SetObject) -> bool {
    finalizer::is_present(&set.object.metadata, finalizers::MEMBERS)
}

fn count(sets: &[SetObject]) -> SetCounts {
    sets.iter().map(|set| set.kind).collect()
}

/// The members of a federation that have a MemberCluster, a Secret that join created, or both.
async fn members(
    host: &ClusterClient,
    request: &UninstallRequest,
) -> Result<BTreeMap<String, Option<Value>>, RequestError> {
    let UninstallRequest {
        federation,
        namespace,
    } = request;
    let members = none_if_not_found(host.list::<MemberCluster>("").await)?;
    let members = members.into_iter().flatten();
    let members = members.filter(|member| member.spec.federation == *federation);
    let uri = format!("/api/v1/namespaces/{namespace}/secrets");
    let operation = format!("list secrets in namespace {namespace}");
    // Not a typed request: the client would log a response that it can't decode.
    let list = host.send(operation, "GET", &uri, None).await?;
    let secrets = list["items"].as_array().into_iter().flatten();
    let secrets = secrets.filter_map(|secret| {
        let metadata = &secret["metadata"];
        let member = metadata["labels"][labels::MEMBER_CLUSTER].as_str()?;
        let label = &metadata["labels"][labels::FEDERATION];
        let is_ours = metadata["name"] == secret_name(member)
            && label.as_str().unwrap_or_default() == federation
            && created_by_join(secret);
        is_ours.then(|| (member.to_owned(), Some(secret.clone())))
    });
    let members = members.map(|member| (member.name_any(), None));
    Ok(members.chain(secrets).collect())
}
