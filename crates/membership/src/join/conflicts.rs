//! Existing objects that prevent a join, whatever permissions the user has. Pure.

use fedrs_api::{ClusterType, MemberCluster, annotations, labels, names::KUBECONFIG_TYPE};
use kube::ResourceExt;
use serde_json::Value;

use super::{plan::ExistingObjects, problem::Problem};
use crate::{
    member_cluster,
    membership::{Membership, created_by_join, secret_name},
};

/// All conflicts of the join with `existing` objects.
pub(super) fn conflicts(membership: &Membership, existing: &ExistingObjects) -> Vec<Problem> {
    let members = existing.members.iter();
    let mut conflicts: Vec<Problem> = members
        .flat_map(|member| member_conflicts(membership, member))
        .collect();
    let in_member = existing
        .namespaces
        .iter()
        .chain([&existing.member_namespace]);
    let in_member = in_member.map(|namespace| (ClusterType::Member, namespace));
    for (cluster, namespace) in in_member.chain([(ClusterType::Host, &existing.host_namespace)]) {
        let terminating = namespace
            .as_ref()
            .filter(|namespace| is_terminating(namespace));
        let name = terminating.and_then(|namespace| namespace["metadata"]["name"].as_str());
        conflicts.extend(name.map(|name| Problem::NamespaceTerminating {
            cluster,
            namespace: name.to_owned(),
        }));
    }
    let member = existing.member_cluster(&membership.name);
    conflicts.extend(member.and_then(|member| source_conflict(&membership.name, member)));
    let secrets = [existing.secret.as_ref(), existing.discovery_secret()];
    conflicts.extend(secrets.into_iter().flatten().filter_map(secret_conflict));
    conflicts
}

/// Another use of the name or of the cluster.
fn member_conflicts(membership: &Membership, other: &MemberCluster) -> Vec<Problem> {
    let other_id = other.labels().get(labels::CLUSTER_ID);
    let same_name = other.name_any() == membership.name;
    let same_cluster = other_id == Some(&membership.cluster_id);
    let same_federation = other.spec.federation == membership.federation;
    let mut conflicts = Vec::new();
    if same_name && !same_federation {
        conflicts.push(Problem::OtherFederation {
            name: membership.name.clone(),
            federation: other.spec.federation.clone(),
        });
    }
    if !same_name && same_cluster && same_federation {
        conflicts.push(Problem::AlreadyMember(other.name_any()));
    }
    if same_name && other_id.is_some() && !same_cluster {
        conflicts.push(Problem::OtherCluster(membership.name.clone()));
    }
    conflicts
}

fn is_terminating(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// The member has its kubeconfig in a file or another Secret.
fn source_conflict(name: &str, member: &MemberCluster) -> Option<Problem> {
    match &member.spec.secret_ref {
        Some(secret) if secret.name == secret_name(name) => None,
        Some(secret) => Some(Problem::OtherSecret {
            name: name.to_owned(),
            secret: secret.name.clone(),
        }),
        None => member_cluster::is_file(member).then(|| Problem::FileMember(name.to_owned())),
    }
}

/// The Secret has the name that join uses, but join did not create it.
fn secret_conflict(secret: &Value) -> Option<Problem> {
    let metadata = &secret["metadata"];
    let is_ours = created_by_join(secret)
        && secret["type"] == KUBECONFIG_TYPE
        && metadata["annotations"][annotations::RENEW_TOKEN] == "true";
    let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
    (!is_ours).then(|| Problem::ForeignSecret {
        namespace: text("namespace"),
        name: text("name"),
    })
}

#[cfg(test)]
#[path = "conflicts_tests.rs"]
mod tests;
