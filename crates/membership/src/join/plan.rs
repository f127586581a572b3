//! The steps of a join, decided from the existing objects. Pure.

use std::collections::BTreeMap;

use fedrs_api::{ClusterType, MemberCluster};
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::{
    discovery_account,
    membership::Membership,
    object::{ObjectRef, Write, required_write},
    replica_set_controller,
};

/// The objects that exist before a join.
#[derive(Debug, Default)]
pub(super) struct ExistingObjects {
    /// The namespace in the member.
    pub(super) member_namespace: Option<Value>,
    /// The objects of [`Membership::member_manifests`], in the same order.
    pub(super) member_objects: Vec<Option<Value>>,
    /// The namespace on the host.
    pub(super) host_namespace: Option<Value>,
    /// The Secret.
    pub(super) secret: Option<Value>,
    /// All MemberClusters.
    pub(super) members: Vec<MemberCluster>,
    /// The namespaces in the member that are listed, in the order of [`Membership::listed_namespaces`].
    pub(super) namespaces: Vec<Option<Value>>,
    /// The objects of [`replica_set_controller::manifests`], in the same order, if they are to be installed.
    pub(super) replica_sets: Vec<Option<Value>>,
    /// The objects of [`discovery_account::member_manifests`], in the same order, if they are to be created.
    pub(super) discovery_in_member: Vec<Option<Value>>,
    /// The objects of [`discovery_account::host_manifests`], in the same order: the Secret first.
    pub(super) discovery_on_host: Vec<Option<Value>>,
}

impl ExistingObjects {
    /// Whether the ServiceAccount `name` exists in the member.
    pub(super) fn has_account(&self, name: &str) -> bool {
        let objects = self.member_objects.iter().chain(&self.discovery_in_member);
        let mut objects = objects.flatten();
        objects
            .any(|object| object["kind"] == "ServiceAccount" && object["metadata"]["name"] == name)
    }

    /// The Secret of discovery on the host.
    pub(super) fn discovery_secret(&self) -> Option<&Value> {
        self.discovery_on_host.first()?.as_ref()
    }

    /// Whether the namespace `name` exists in a cluster.
    pub(super) fn has_namespace(&self, cluster: ClusterType, name: &str) -> bool {
        let (own, listed) = match cluster {
            ClusterType::Host => (&self.host_namespace, &[][..]),
            ClusterType::Member => (&self.member_namespace, &self.namespaces[..]),
        };
        let mut all = listed.iter().chain([own]).flatten();
        all.any(|namespace| namespace["metadata"]["name"] == name)
    }

    /// The MemberCluster `name`.
    pub(super) fn member_cluster(&self, name: &str) -> Option<&MemberCluster> {
        self.members.iter().find(|member| member.name_any() == name)
    }
}

/// An object and the write that it needs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) cluster: ClusterType,
    pub(super) object: ObjectRef,
    pub(super) write: Write,
}

/// The index in [`member_steps`] of the ClusterRole, which owns the objects after it.
pub(super) const OWNER: usize = 1;

/// The steps in the member. `owner` is the uid of the ClusterRole if this join created it.
pub(super) fn member_steps(
    membership: &Membership,
    existing: &ExistingObjects,
    owner: Option<&str>,
) -> Vec<Step> {
    let manifests = membership.member_manifests(owner_uid(existing, owner));
    let steps = required_steps(ClusterType::Member, &manifests, &existing.member_objects);
    let live = existing.member_namespace.as_ref();
    let namespace = namespace_step(ClusterType::Member, &membership.namespace, live);
    let mut steps: Vec<Step> = std::iter::once(namespace).chain(steps).collect();
    let known = existing.namespaces.iter().map(Option::as_ref);
    let known = known.chain(std::iter::repeat(None));
    let listed = membership.listed_namespaces().iter().zip(known);
    let listed = listed.map(|(name, live)| namespace_step(ClusterType::Member, name, live));
    let after_owner = OWNER + 1;
    steps.splice(after_owner..after_owner, listed);
    steps
}

/// The steps that install the controller of LocalReplicaSets in the member. `owner` as in [`member_steps`].
pub(super) fn replica_set_steps(
    membership: &Membership,
    existing: &ExistingObjects,
    owner: Option<&str>,
    image: &str,
) -> Vec<Step> {
    let owner = owner_uid(existing, owner);
    let manifests = replica_set_controller::manifests(membership, owner, image);
    let live = existing.replica_sets.iter().chain(std::iter::repeat(&None));
    let steps = manifests.iter().zip(live).map(|(manifest, live)| Step {
        cluster: ClusterType::Member,
        object: ObjectRef::of(manifest),
        write: replica_set_controller::write(membership, manifest, live.as_ref()),
    });
    steps.collect()
}

/// The steps that create the account of discovery in the member; none without it. `owner` as in [`member_steps`].
pub(super) fn discovery_steps(
    membership: &Membership,
    existing: &ExistingObjects,
    owner: Option<&str>,
) -> Vec<Step> {
    let manifests = discovery_account::member_manifests(membership, owner_uid(existing, owner));
    required_steps(
        ClusterType::Member,
        &manifests,
        &existing.discovery_in_member,
    )
}

/// The steps on the host for discovery; none without it. Without `kubeconfig` the one in the Secret stays.
pub(super) fn discovery_host_steps(
    membership: &Membership,
    existing: &ExistingObjects,
    kubeconfig: Option<&str>,
) -> Vec<Step> {
    let manifests = discovery_account::host_manifests(membership, kubeconfig);
    required_steps(ClusterType::Host, &manifests, &existing.discovery_on_host)
}

/// The steps for `manifests`, of which `live` are the objects in the same order, as far as they exist.
fn required_steps(cluster: ClusterType, manifests: &[Value], live: &[Option<Value>]) -> Vec<Step> {
    let live = live.iter().chain(std::iter::repeat(&None));
    let steps = manifests.iter().zip(live).map(|(manifest, live)| Step {
        cluster,
        object: ObjectRef::of(manifest),
        write: required_write(manifest, live.as_ref()),
    });
    steps.collect()
}

/// The uid of the ClusterRole: `owner` if this join created it; empty while it does not exist.
fn owner_uid<'a>(existing: &'a ExistingObjects, owner: Option<&'a str>) -> &'a str {
    let role = existing.member_objects.first().and_then(Option::as_ref);
    let known = role.and_then(|role| role["metadata"]["uid"].as_str());
    owner.or(known).unwrap_or_default()
}

/// Whether the join removes permissions in namespaces, in which replicas may be left.
pub(super) fn removes_permissions(membership: &Membership, existing: &ExistingObjects) -> bool {
    let role = existing.member_objects.first().and_then(Option::as_ref);
    let rules = role.and_then(|role| role["rules"].as_array());
    let is_of_workloads = |rule: &Value| rule["apiGroups"] == json!(["apps"]);
    let rules = rules.into_iter().flatten();
    membership.namespaces.is_some() && rules.filter(|rule| is_of_workloads(rule)).count() > 0
}

/// The steps on the host. Without `kubeconfig` the one in the Secret stays.
pub(super) fn host_steps(
    membership: &Membership,
    labels: &BTreeMap<String, String>,
    existing: &ExistingObjects,
    kubeconfig: Option<&str>,
) -> Vec<Step> {
    let step = |object, manifest: &Value, live: Option<&Value>| Step {
        cluster: ClusterType::Host,
        object,
        write: required_write(manifest, live),
    };
    let member = existing.member_cluster(&membership.name);
    let member = member.map(|member| serde_json::to_value(member).expect("objects are plain data"));
    let mut steps = Vec::new();
    // A host that is a member of itself has one namespace, which the steps in the member create.
    if !membership.is_host() {
        let live = existing.host_namespace.as_ref();
        steps.push(namespace_step(
            ClusterType::Host,
            &membership.namespace,
            live,
        ));
    }
    steps.push(step(
        membership.secret_ref(),
        &membership.secret_manifest(kubeconfig),
        existing.secret.as_ref(),
    ));
    let mut manifest = membership.member_cluster_manifest(labels);
    let scope = member.as_ref().map(|member| &member["spec"]["namespaces"]);
    match scope {
        // A scope that a user set stays, unless it is a list.
        Some(scope) if membership.namespaces.is_none() && !scope["names"].is_null() => {
            manifest["spec"]["namespaces"] = Value::Null;
        }
        Some(scope) if membership.namespaces.is_some() && !scope["selector"].is_null() => {
            manifest["spec"]["namespaces"]["selector"] = Value::Null;
        }
        _ => {}
    }
    steps.push(step(
        membership.member_cluster_ref(),
        &manifest,
        member.as_ref(),
    ));
    steps
}

/// Creates the namespace `name` if it does not exist, and never changes it.
fn namespace_step(cluster: ClusterType, name: &str, live: Option<&Value>) -> Step {
    Step {
        cluster,
        object: ObjectRef::cluster_scoped::<Namespace>(name),
        write: match live {
            Some(_) => Write::None,
            None => Write::Create(Membership::namespace_manifest(name)),
        },
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
