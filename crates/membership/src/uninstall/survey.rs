//! What is installed: read before anything is taken off.

use std::{collections::BTreeMap, fmt};

use fedrs_api::{FederatedReplicaSet, MemberCluster, finalizers, labels, pluralize};
use kube::{Api, ResourceExt, api::ListParams};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    cluster_client::{ClusterClient, RequestError},
    member_kubeconfig::Stored,
    membership::Membership,
    names,
    object::{NAMESPACE, ObjectRef},
};

/// What there is of fedrs.
pub(super) struct Installed {
    federation: String,
    namespace: String,
    host_id: String,
    /// Whether the CRDs are there.
    crds: bool,
    /// Whether join made the namespace.
    own_namespace: bool,
    /// How many FederatedReplicaSets there are.
    all_sets: usize,
    /// How many other federations have.
    others: usize,
    /// Those with our finalizer.
    pub(super) sets: Vec<FederatedReplicaSet>,
    /// The members, by name.
    pub(super) members: Vec<Joined>,
}

/// A member.
pub(super) struct Joined {
    pub(super) membership: Membership,
    /// Whether there is a Secret of join's.
    pub(super) secret: bool,
    /// The kubeconfig in it.
    pub(super) stored: Option<Stored>,
}

impl Installed {
    /// Whether nothing would be in the way without a controller.
    pub(super) fn is_nothing(&self) -> bool {
        self.sets.is_empty() && self.members.is_empty() && !self.own_namespace
    }

    /// What is left afterwards, and how it goes.
    pub(super) fn left(&self) -> String {
        if !self.crds {
            return "The CRDs are not installed.".to_owned();
        }
        if self.others > 0 {
            return format!(
                "{} left. Other federations have {}, and need the CRDs.",
                pluralize(self.all_sets, "FederatedReplicaSet"),
                self.others
            );
        }
        format!(
            "{} and the CRDs are left: `fedrs crds | kubectl delete -f -` deletes both.",
            pluralize(self.all_sets, "FederatedReplicaSet")
        )
    }

    /// The membership of `name`.
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

impl fmt::Display for Installed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "  the finalizers of {}: nothing is waited for any more when they are deleted",
            pluralize(self.sets.len(), "FederatedReplicaSet")
        )?;
        if !self.members.is_empty() {
            let names: Vec<&str> = self.members.iter().map(|it| &*it.membership.name).collect();
            writeln!(
                f,
                "  {} ({}): what join made in them and here",
                pluralize(names.len(), "member"),
                names.join(", ")
            )?;
        }
        if self.own_namespace {
            writeln!(
                f,
                "  namespace {}, if nothing else is in it",
                self.namespace
            )?;
        }
        f.write_str("  ReplicaSets in the members stay, and go on running.")
    }
}

/// Reads what there is on the host.
pub(super) async fn survey(
    host: &ClusterClient,
    federation: &str,
    namespace: &str,
    host_id: &str,
) -> Result<Installed, RequestError> {
    let sets: Option<Vec<FederatedReplicaSet>> = all(host, "federatedreplicasets").await?;
    let crds = sets.is_some();
    let sets = sets.unwrap_or_default();
    let found = host.get(&ObjectRef::cluster(NAMESPACE, namespace)).await?;
    let (ours, others): (Vec<_>, Vec<_>) = sets
        .into_iter()
        .partition(|it| it.spec.federation == federation);
    let mut installed = Installed {
        federation: federation.to_owned(),
        namespace: namespace.to_owned(),
        host_id: host_id.to_owned(),
        crds,
        own_namespace: found.as_ref().is_some_and(names::is_ours),
        all_sets: ours.len(),
        others: others.len(),
        sets: ours.into_iter().filter(is_held).collect(),
        members: Vec::new(),
    };
    let mut objects: Vec<MemberCluster> = all(host, "memberclusters").await?.unwrap_or_default();
    objects.retain(|it| it.spec.federation == federation);
    let mut secrets = secrets(host, namespace).await?;
    secrets.retain(|_, secret| names::federation(secret).unwrap_or_default() == federation);
    let mut names: Vec<String> = objects.iter().map(ResourceExt::name_any).collect();
    names.extend(secrets.keys().cloned());
    names.sort();
    names.dedup();
    installed.members = names
        .into_iter()
        .map(|name| Joined {
            membership: installed.membership(&name),
            secret: secrets.contains_key(&name),
            stored: secrets.get(&name).and_then(Stored::of_secret),
        })
        .collect();
    Ok(installed)
}

/// How many FederatedReplicaSets can't be deleted without a controller.
pub(super) async fn held(host: &ClusterClient, federation: &str) -> Result<usize, RequestError> {
    let sets: Option<Vec<FederatedReplicaSet>> = all(host, "federatedreplicasets").await?;
    let ours = sets.iter().flatten();
    let ours = ours.filter(|it| it.spec.federation == federation);
    Ok(ours.filter(|it| is_held(it)).count())
}

fn is_held(set: &FederatedReplicaSet) -> bool {
    set.finalizers().iter().any(|it| it == finalizers::MEMBERS)
}

/// All objects of a kind of fedrs; `None` if the CRD isn't there.
async fn all<K>(host: &ClusterClient, plural: &str) -> Result<Option<Vec<K>>, RequestError>
where
    K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + fmt::Debug,
{
    let objects: Api<K> = Api::all(host.client());
    let everything = ListParams::default();
    let doing = format!("list {plural}");
    match host.call(doing, objects.list(&everything)).await {
        Err(failure) if failure.code() == Some(404) => Ok(None),
        answer => Ok(Some(answer?.items)),
    }
}

/// The Secrets that join made, by the member's name.
async fn secrets(
    host: &ClusterClient,
    namespace: &str,
) -> Result<BTreeMap<String, Value>, RequestError> {
    let uri = format!("/api/v1/namespaces/{namespace}/secrets");
    let doing = format!("list secrets in namespace {namespace}");
    let list = host.send(doing, "GET", &uri, None).await?;
    let items = list["items"].as_array().into_iter().flatten();
    let ours = items.filter_map(|secret| {
        let metadata = &secret["metadata"];
        let member = metadata["labels"][labels::MEMBER_CLUSTER].as_str()?;
        let ours = names::is_ours(secret) && metadata["name"] == names::secret(member).as_str();
        ours.then(|| (member.to_owned(), secret.clone()))
    });
    Ok(ours.collect())
}
