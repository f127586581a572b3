//! What is installed of a federation: read before anything is removed.

use std::{collections::BTreeMap, fmt};

use fedrs_api::{FederatedReplicaSet, MemberCluster, finalizers, labels};
use kube::{Api, ResourceExt, api::ListParams};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::plan::{Remaining, UninstallPlan};
use crate::{
    cluster_client::{ClusterClient, RequestError},
    membership::Membership,
    names,
    object::{NAMESPACE, ObjectRef, none_if_not_found},
    stored_kubeconfig::StoredKubeconfig,
};

/// The objects of a federation on its host.
pub(super) struct Installation {
    federation: String,
    namespace: String,
    host_id: String,
    /// Whether the CRDs exist.
    has_crds: bool,
    /// Whether join created the namespace.
    owns_namespace: bool,
    /// The number of FederatedReplicaSets.
    all_sets: usize,
    /// The number of FederatedReplicaSets of other federations.
    other_sets: usize,
    /// The FederatedReplicaSets with the finalizer of fedrs.
    pub(super) sets: Vec<FederatedReplicaSet>,
    /// The members, by name.
    pub(super) members: Vec<InstalledMember>,
}

/// A member of the federation.
pub(super) struct InstalledMember {
    pub(super) membership: Membership,
    /// Whether join created a Secret for it.
    pub(super) has_secret: bool,
    /// The kubeconfig in that Secret.
    pub(super) kubeconfig: Option<StoredKubeconfig>,
}

impl Installation {
    /// Reads all objects of `federation`, whose controller has this `namespace`.
    pub(super) async fn read(
        host: &ClusterClient,
        federation: &str,
        namespace: &str,
        host_id: &str,
    ) -> Result<Self, RequestError> {
        let sets: Option<Vec<FederatedReplicaSet>> = list(host, "federatedreplicasets").await?;
        let has_crds = sets.is_some();
        let (ours, others): (Vec<_>, Vec<_>) = sets
            .into_iter()
            .flatten()
            .partition(|set| set.spec.federation == federation);
        let object = ObjectRef::cluster_scoped(NAMESPACE, namespace);
        let live_namespace = host.get(&object).await?;
        let mut installation = Self {
            federation: federation.to_owned(),
            namespace: namespace.to_owned(),
            host_id: host_id.to_owned(),
            has_crds,
            owns_namespace: live_namespace.as_ref().is_some_and(names::created_by_join),
            all_sets: ours.len(),
            other_sets: others.len(),
            sets: ours.into_iter().filter(has_finalizer).collect(),
            members: Vec::new(),
        };
        installation.members = installation.read_members(host).await?;
        Ok(installation)
    }

    /// The members with a MemberCluster, a Secret, or both.
    async fn read_members(
        &self,
        host: &ClusterClient,
    ) -> Result<Vec<InstalledMember>, RequestError> {
        let objects: Option<Vec<MemberCluster>> = list(host, "memberclusters").await?;
        let objects = objects.into_iter().flatten();
        let objects = objects.filter(|member| member.spec.federation == self.federation);
        let mut secrets = secrets(host, &self.namespace).await?;
        secrets
            .retain(|_, secret| names::federation(secret).unwrap_or_default() == self.federation);
        let mut names: Vec<String> = objects.map(|member| member.name_any()).collect();
        names.extend(secrets.keys().cloned());
        names.sort();
        names.dedup();
        let members = names.into_iter().map(|name| InstalledMember {
            membership: self.membership(&name),
            has_secret: secrets.contains_key(&name),
            kubeconfig: secrets.get(&name).and_then(StoredKubeconfig::of_secret),
        });
        Ok(members.collect())
    }

    /// What the uninstall will do; `None` if there is nothing to do.
    pub(super) fn plan(&self) -> Option<UninstallPlan> {
        let members = self.members.iter();
        let plan = UninstallPlan {
            sets: self.sets.len(),
            members: members
                .map(|member| member.membership.name.clone())
                .collect(),
            namespace: self.owns_namespace.then(|| self.namespace.clone()),
        };
        (!plan.is_empty()).then_some(plan)
    }

    /// What remains after the uninstall.
    pub(super) fn remaining(&self) -> Remaining {
        match (self.has_crds, self.other_sets) {
            (false, _) => Remaining::Nothing,
            (true, 0) => Remaining::Crds {
                sets: self.all_sets,
            },
            (true, other_sets) => Remaining::SharedCrds {
                sets: self.all_sets,
                other_sets,
            },
        }
    }

    /// The membership of the member `name`.
    pub(super) fn membership(&self, name: &str) -> Membership {
        Membership {
            name: name.to_owned(),
            federation: self.federation.clone(),
            namespace: self.namespace.clone(),
            host_id: self.host_id.clone(),
            cluster_id: String::new(),
        }
    }
}

/// The number of FederatedReplicaSets of `federation` with the finalizer of fedrs.
pub(super) async fn count_finalizers(
    host: &ClusterClient,
    federation: &str,
) -> Result<usize, RequestError> {
    let sets: Option<Vec<FederatedReplicaSet>> = list(host, "federatedreplicasets").await?;
    let sets = sets.iter().flatten();
    let sets = sets.filter(|set| set.spec.federation == federation);
    Ok(sets.filter(|set| has_finalizer(set)).count())
}

fn has_finalizer(set: &FederatedReplicaSet) -> bool {
    let mut finalizers = set.finalizers().iter();
    finalizers.any(|finalizer| finalizer == finalizers::MEMBERS)
}

/// All objects of a kind of fedrs; `None` if its CRD does not exist.
async fn list<K>(host: &ClusterClient, plural: &str) -> Result<Option<Vec<K>>, RequestError>
where
    K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + fmt::Debug,
{
    let objects: Api<K> = Api::all(host.client());
    let all = ListParams::default();
    let operation = format!("list {plural}");
    let list = none_if_not_found(host.call(operation, objects.list(&all)).await)?;
    Ok(list.map(|list| list.items))
}

/// The Secrets that join created, by the name of their member.
async fn secrets(
    host: &ClusterClient,
    namespace: &str,
) -> Result<BTreeMap<String, Value>, RequestError> {
    let uri = format!("/api/v1/namespaces/{namespace}/secrets");
    let operation = format!("list secrets in namespace {namespace}");
    let list = host.send(operation, "GET", &uri, None).await?;
    let items = list["items"].as_array().into_iter().flatten();
    let ours = items.filter_map(|secret| {
        let metadata = &secret["metadata"];
        let member = metadata["labels"][labels::MEMBER_CLUSTER].as_str()?;
        let has_name = metadata["name"] == names::secret(member).as_str();
        let is_ours = has_name && names::created_by_join(secret);
        is_ours.then(|| (member.to_owned(), secret.clone()))
    });
    Ok(ours.collect())
}
