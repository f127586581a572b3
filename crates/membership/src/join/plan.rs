//! What a join has to do: decided from what is there. Pure.

use std::collections::BTreeMap;

use fedrs_api::{MemberCluster, annotations, labels};
use kube::ResourceExt;
use serde_json::Value;

use crate::{
    cluster_client::Side,
    member_cluster,
    membership::Membership,
    names,
    object::{Change, NAMESPACE, ObjectRef, SERVICE_ACCOUNT, change},
};

/// What is there before a join.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The namespace in the member.
    pub(super) member_namespace: Option<Value>,
    /// The objects of [`Membership::in_member`], in the same order.
    pub(super) in_member: Vec<Option<Value>>,
    /// The namespace on the host.
    pub(super) host_namespace: Option<Value>,
    /// The Secret.
    pub(super) secret: Option<Value>,
    /// All MemberClusters.
    pub(super) members: Vec<MemberCluster>,
}

/// One object, and what is to be done with it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) side: Side,
    pub(super) address: ObjectRef,
    pub(super) change: Change,
}

/// The place in [`in_member`] of the role that owns what comes after it.
pub(super) const OWNER: usize = 1;

/// The steps in the member. `owner` is the uid of the role that owns the rest, once it is there.
pub(super) fn in_member(membership: &Membership, found: &Found, owner: Option<&str>) -> Vec<Step> {
    let role = found.in_member.first().and_then(Option::as_ref);
    let known = role.and_then(|it| it["metadata"]["uid"].as_str());
    let owner = owner.or(known).unwrap_or_default();
    let objects = membership.in_member(owner);
    let found_objects = found.in_member.iter().chain(std::iter::repeat(&None));
    let steps = objects
        .iter()
        .zip(found_objects)
        .map(|(wanted, found)| Step {
            side: Side::Member,
            address: ObjectRef::of(wanted),
            change: change(wanted, found.as_ref()),
        });
    let namespace = namespace(Side::Member, membership, found.member_namespace.as_ref());
    std::iter::once(namespace).chain(steps).collect()
}

/// The steps on the host. Without `kubeconfig` the one that the Secret holds stays.
pub(super) fn on_host(
    membership: &Membership,
    labels: &BTreeMap<String, String>,
    found: &Found,
    kubeconfig: Option<&str>,
) -> Vec<Step> {
    let secret = membership.secret_object(kubeconfig);
    let member = found.named(&membership.name);
    let member = member.map(|it| serde_json::to_value(it).expect("an object is plain data"));
    let step = |address, change| Step {
        side: Side::Host,
        address,
        change,
    };
    let mut steps = vec![
        namespace(Side::Host, membership, found.host_namespace.as_ref()),
        step(
            membership.secret_address(),
            change(&secret, found.secret.as_ref()),
        ),
        step(
            membership.object_address(),
            change(&membership.object(labels), member.as_ref()),
        ),
    ];
    // A host that is a member of itself has one namespace, which is there by now.
    steps.retain(|it| it.address.kind != NAMESPACE || !membership.is_of_itself());
    steps
}

/// A namespace is created where it is missing; one that is there is nobody's to change.
fn namespace(side: Side, membership: &Membership, found: Option<&Value>) -> Step {
    Step {
        side,
        address: membership.namespace_address(),
        change: match found {
            Some(_) => Change::None,
            None => Change::Create(membership.namespace_object()),
        },
    }
}

impl Found {
    /// Whether the controller's account was in the member.
    pub(super) fn has_account(&self) -> bool {
        let mut objects = self.in_member.iter().flatten();
        objects.any(|it| it["kind"] == SERVICE_ACCOUNT.name)
    }

    fn named(&self, name: &str) -> Option<&MemberCluster> {
        self.members.iter().find(|it| it.name_any() == name)
    }
}

/// Why the cluster can't become a member by this name, whoever asks: each as a sentence.
pub(super) fn conflicts(membership: &Membership, found: &Found) -> Vec<String> {
    let Membership { name, .. } = membership;
    let mut conflicts = Vec::new();
    let id = |member: &MemberCluster| member.labels().get(labels::CLUSTER_ID).cloned();
    for other in &found.members {
        let (other_name, other_id) = (other.name_any(), id(other));
        let same_cluster = other_id.as_ref() == Some(&membership.cluster_id);
        let same_federation = other.spec.federation == membership.federation;
        if other_name == *name && !same_federation {
            conflicts.push(format!(
                "the member {name} is {}'s: take another name, or say --federation",
                federation(&other.spec.federation)
            ));
        }
        if same_cluster && same_federation && other_name != *name {
            conflicts.push(format!(
                "this cluster is a member already, by the name {other_name}: `fedrs unjoin {other_name}` first"
            ));
        }
        if other_name == *name && other_id.is_some() && !same_cluster {
            conflicts.push(format!(
                "the member {name} is another cluster: take another name, or `fedrs unjoin {name}` first"
            ));
        }
    }
    for (side, namespace) in [
        (Side::Member, &found.member_namespace),
        (Side::Host, &found.host_namespace),
    ] {
        if namespace.as_ref().is_some_and(is_leaving) {
            conflicts.push(format!(
                "{side}: namespace/{} is being deleted: try again when it is gone",
                membership.namespace
            ));
        }
    }
    conflicts.extend(found.named(name).and_then(|it| other_source(name, it)));
    conflicts.extend(found.secret.as_ref().and_then(not_ours));
    conflicts
}

/// A federation, in words.
fn federation(name: &str) -> String {
    match name {
        "" => "the federation without a name".to_owned(),
        name => format!("the federation {name}"),
    }
}

fn is_leaving(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// A member that gets its kubeconfig from elsewhere.
fn other_source(name: &str, member: &MemberCluster) -> Option<String> {
    let secret = names::secret(name);
    match &member.spec.secret_ref {
        Some(other) if other.name == secret => None,
        Some(other) => Some(format!(
            "membercluster/{name} has its kubeconfig from secret/{}, which join did not make: take that secretRef out of it, or take another name",
            other.name
        )),
        None if member_cluster::is_file(member) => Some(format!(
            "{name} is a member by a kubeconfig in the controller's --members folder: take that file away first"
        )),
        None => None,
    }
}

/// A Secret of the name that join would take, but not join's.
fn not_ours(secret: &Value) -> Option<String> {
    let metadata = &secret["metadata"];
    let ours = names::is_ours(secret)
        && secret["type"] == fedrs_api::names::KUBECONFIG_TYPE
        && metadata["annotations"][annotations::RENEW_TOKEN] == "true";
    let (namespace, name) = (&metadata["namespace"], &metadata["name"]);
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    (!ours).then(|| {
        format!(
            "secret/{} in namespace {} was not made by join: it is in the way",
            text(name),
            text(namespace)
        )
    })
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
