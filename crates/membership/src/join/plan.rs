//! The steps of a join, decided from the existing objects. Pure.

use std::collections::BTreeMap;

use fedrs_api::MemberCluster;
use kube::ResourceExt;
use serde_json::Value;

use crate::{
    cluster_client::Side,
    membership::Membership,
    object::{ObjectRef, Write, required_write},
};

/// The objects that exist before a join.
#[derive(Debug, Default)]
pub(super) struct ExistingObjects {
    /// The namespace in the member.
    pub(super) member_namespace: Option<Value>,
    /// The objects of [`Membership::member_manifests`], in the same order.
    pub(super) in_member: Vec<Option<Value>>,
    /// The namespace on the host.
    pub(super) host_namespace: Option<Value>,
    /// The Secret.
    pub(super) secret: Option<Value>,
    /// All MemberClusters.
    pub(super) members: Vec<MemberCluster>,
}

impl ExistingObjects {
    /// Whether the controller's ServiceAccount exists in the member.
    pub(super) fn has_account(&self) -> bool {
        let mut objects = self.in_member.iter().flatten();
        objects.any(|object| object["kind"] == "ServiceAccount")
    }

    /// The MemberCluster `name`.
    pub(super) fn member_cluster(&self, name: &str) -> Option<&MemberCluster> {
        self.members.iter().find(|member| member.name_any() == name)
    }
}

/// An object and the write that it needs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) side: Side,
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
    let role = existing.in_member.first().and_then(Option::as_ref);
    let known = role.and_then(|role| role["metadata"]["uid"].as_str());
    let owner = owner.or(known).unwrap_or_default();
    let manifests = membership.member_manifests(owner);
    let objects = existing.in_member.iter().chain(std::iter::repeat(&None));
    let steps = manifests.iter().zip(objects).map(|(manifest, live)| Step {
        side: Side::Member,
        object: ObjectRef::of(manifest),
        write: required_write(manifest, live.as_ref()),
    });
    let live = existing.member_namespace.as_ref();
    let namespace = namespace_step(Side::Member, membership, live);
    std::iter::once(namespace).chain(steps).collect()
}

/// The steps on the host. Without `kubeconfig` the one in the Secret stays.
pub(super) fn host_steps(
    membership: &Membership,
    labels: &BTreeMap<String, String>,
    existing: &ExistingObjects,
    kubeconfig: Option<&str>,
) -> Vec<Step> {
    let step = |object, manifest: &Value, live: Option<&Value>| Step {
        side: Side::Host,
        object,
        write: required_write(manifest, live),
    };
    let member = existing.member_cluster(&membership.name);
    let member = member.map(|member| serde_json::to_value(member).expect("objects are plain data"));
    let mut steps = Vec::new();
    // A host that is a member of itself has one namespace, which the steps in the member create.
    if !membership.is_host() {
        let live = existing.host_namespace.as_ref();
        steps.push(namespace_step(Side::Host, membership, live));
    }
    steps.push(step(
        membership.secret_ref(),
        &membership.secret_manifest(kubeconfig),
        existing.secret.as_ref(),
    ));
    steps.push(step(
        membership.member_cluster_ref(),
        &membership.member_cluster_manifest(labels),
        member.as_ref(),
    ));
    steps
}

/// Creates the namespace if it does not exist, and never changes it.
fn namespace_step(side: Side, membership: &Membership, live: Option<&Value>) -> Step {
    Step {
        side,
        object: membership.namespace_ref(),
        write: match live {
            Some(_) => Write::None,
            None => Write::Create(membership.namespace_manifest()),
        },
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
