//! The permissions that a user needs for a join, and which of them are missing.

use std::fmt;

use fedrs_api::{ClusterType, MemberCluster};
use futures::{StreamExt, TryStreamExt, future::try_join_all, stream};
use k8s_openapi::api::{
    authorization::v1::{
        NonResourceAttributes, ResourceAttributes, SelfSubjectAccessReview,
        SelfSubjectAccessReviewSpec,
    },
    core::v1::Namespace,
    rbac::v1::PolicyRule,
};
use kube::{Api, api::PostParams};

use super::plan::Step;
use crate::{
    cluster_client::{Clusters, RequestError},
    discovery_account,
    membership::Membership,
    object::{ObjectRef, Write},
    replica_set_controller,
};

/// The number of concurrent access reviews.
const CONCURRENT_REVIEWS: usize = 8;

/// A permission that the user needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Permission {
    review: AccessReview,
    /// For a permission that join grants: the user doesn't need it if all of these are granted. Empty for others.
    alternatives: Vec<AccessReview>,
    /// To whom join grants it.
    grantee: &'static str,
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.review.fmt(f)?;
        match *self.alternatives {
            [] => Ok(()),
            _ => write!(f, ", which join grants to {}", self.grantee),
        }
    }
}

/// A review of one permission: a verb on an object or a path, in one cluster.
#[derive(Clone, Debug, PartialEq)]
struct AccessReview {
    cluster: ClusterType,
    spec: SelfSubjectAccessReviewSpec,
}

impl fmt::Display for AccessReview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        write!(f, "{}: missing permission to ", self.cluster)?;
        if let Some(path) = &self.spec.non_resource_attributes {
            write!(f, "{} {}", text(&path.verb), text(&path.path))?;
        }
        let Some(resource) = &self.spec.resource_attributes else {
            return Ok(());
        };
        write!(f, "{} {}", text(&resource.verb), text(&resource.resource))?;
        for (prefix, part) in [
            ("/", &resource.subresource),
            (".", &resource.group),
            (" ", &resource.name),
            (" in namespace ", &resource.namespace),
        ] {
            if let Some(part) = part.as_ref().filter(|part| !part.is_empty()) {
                write!(f, "{prefix}{part}")?;
            }
        }
        Ok(())
    }
}

impl From<AccessReview> for Permission {
    fn from(review: AccessReview) -> Self {
        Self {
            review,
            alternatives: Vec::new(),
            grantee: "",
        }
    }
}

impl AccessReview {
    fn new(cluster: ClusterType, attributes: ResourceAttributes) -> Self {
        let spec = SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..SelfSubjectAccessReviewSpec::default()
        };
        Self { cluster, spec }
    }

    /// A verb on one object; on all objects of its kind if it has no name.
    fn of(cluster: ClusterType, verb: &str, object: &ObjectRef) -> Self {
        // The API server authorizes create and list without a name.
        let is_named = verb != "create" && !object.name.is_empty();
        let attributes = ResourceAttributes {
            group: Some(object.kind.group.clone()),
            resource: Some(object.kind.plural.clone()),
            namespace: object.namespace.clone(),
            name: is_named.then(|| object.name.clone()),
            verb: Some(verb.to_owned()),
            ..ResourceAttributes::default()
        };
        Self::new(cluster, attributes)
    }
}

/// The permissions to read the existing objects, and others in the member and on the host.
pub(super) fn for_reads(
    membership: &Membership,
    in_member: &[ObjectRef],
    on_host: &[ObjectRef],
) -> Vec<Permission> {
    let system = ObjectRef::cluster_scoped::<Namespace>("kube-system");
    let all_members = ObjectRef::cluster_scoped::<MemberCluster>("");
    let mut reads = vec![AccessReview::of(ClusterType::Host, "list", &all_members)];
    for cluster in [ClusterType::Host, ClusterType::Member] {
        let namespace = membership.namespace_ref();
        reads.extend([&system, &namespace].map(|object| AccessReview::of(cluster, "get", object)));
    }
    for object in [membership.secret_ref(), membership.member_cluster_ref()] {
        reads.push(AccessReview::of(ClusterType::Host, "get", &object));
    }
    for name in membership.listed_namespaces() {
        let namespace = ObjectRef::cluster_scoped::<Namespace>(name);
        reads.push(AccessReview::of(ClusterType::Member, "get", &namespace));
    }
    for manifest in membership.member_manifests("") {
        reads.push(AccessReview::of(
            ClusterType::Member,
            "get",
            &ObjectRef::of(&manifest),
        ));
    }
    for (cluster, objects) in [
        (ClusterType::Member, in_member),
        (ClusterType::Host, on_host),
    ] {
        let objects = objects.iter();
        reads.extend(objects.map(|object| AccessReview::of(cluster, "get", object)));
    }
    reads.into_iter().map(Permission::from).collect()
}

/// The permissions to apply `steps` and to request tokens.
pub(super) fn for_writes(membership: &Membership, steps: &[Step]) -> Vec<Permission> {
    let mut permissions: Vec<Permission> = steps.iter().filter_map(for_step).collect();
    permissions.extend(for_grants(membership, steps));
    let of_discovery = membership.discovery.then(|| membership.discovery_account());
    for account in [membership.account()].into_iter().chain(of_discovery) {
        let token = ResourceAttributes {
            resource: Some("serviceaccounts".to_owned()),
            subresource: Some("token".to_owned()),
            namespace: Some(membership.namespace.clone()),
            name: Some(account),
            verb: Some("create".to_owned()),
            ..ResourceAttributes::default()
        };
        permissions.push(AccessReview::new(ClusterType::Member, token).into());
    }
    permissions
}

fn for_step(step: &Step) -> Option<Permission> {
    let verb = match step.write {
        Write::None => return None,
        Write::Create(_) => "create",
        Write::Patch(_) => "patch",
    };
    Some(AccessReview::of(step.cluster, verb, &step.object).into())
}

/// RBAC lets users grant only permissions that they have, both in a role and by binding it, unless they may `escalate` the
/// role and `bind` it.
fn for_grants(membership: &Membership, steps: &[Step]) -> Vec<Permission> {
    let write = |cluster: ClusterType, kind: &str, role: &ObjectRef| {
        let mut steps = steps.iter().filter(|step| step.cluster == cluster);
        let is_of = |object: &ObjectRef| {
            object.kind.kind == kind
                && (&object.namespace, &object.name) == (&role.namespace, &role.name)
        };
        let step = steps.find(|step| is_of(&step.object));
        step.map_or(&Write::None, |step| &step.write)
    };
    let mut permissions = Vec::new();
    let [in_member, on_host] = discovery_account::grants(membership);
    let of_controllers = [
        membership.controller_account().manifests(),
        replica_set_controller::grants(membership),
    ];
    for (cluster, grantee, manifest) in [
        (
            ClusterType::Member,
            "the controller",
            of_controllers.concat(),
        ),
        (ClusterType::Member, "discovery", in_member),
        (ClusterType::Host, "discovery", on_host),
    ]
    .into_iter()
    .flat_map(|(cluster, grantee, manifests)| {
        let manifests = manifests.into_iter();
        manifests.map(move |manifest| (cluster, grantee, manifest))
    }) {
        if manifest.grants().is_empty() {
            continue;
        }
        let role = ObjectRef::of(&manifest.to_value());
        let mut alternatives = Vec::new();
        let mut escalated = role.clone();
        if matches!(write(cluster, &role.kind.kind, &role), Write::Create(_)) {
            // The API server authorizes the creation without a name.
            escalated.name.clear();
        }
        if *write(cluster, &role.kind.kind, &role) != Write::None {
            alternatives.push(AccessReview::of(cluster, "escalate", &escalated));
        }
        let binding = format!("{}Binding", role.kind.kind);
        if *write(cluster, &binding, &role) != Write::None {
            alternatives.push(AccessReview::of(cluster, "bind", &role));
        }
        if alternatives.is_empty() {
            continue;
        }
        for grant in manifest.grants() {
            let granted = reviews(cluster, &grant.rule, role.namespace.as_deref()).into_iter();
            permissions.extend(granted.map(|review| Permission {
                review,
                alternatives: alternatives.clone(),
                grantee,
            }));
        }
    }
    permissions
}

/// A review of each permission that a rule grants in a cluster.
fn reviews(cluster: ClusterType, rule: &PolicyRule, namespace: Option<&str>) -> Vec<AccessReview> {
    let list = |values: &Option<Vec<String>>| values.clone().unwrap_or_default();
    let names = match &rule.resource_names {
        Some(names) => names.iter().cloned().map(Some).collect(),
        None => vec![None],
    };
    let mut reviews = Vec::new();
    for verb in &rule.verbs {
        for path in list(&rule.non_resource_urls) {
            let spec = SelfSubjectAccessReviewSpec {
                non_resource_attributes: Some(NonResourceAttributes {
                    path: Some(path),
                    verb: Some(verb.clone()),
                }),
                ..SelfSubjectAccessReviewSpec::default()
            };
            reviews.push(AccessReview { cluster, spec });
        }
        for group in list(&rule.api_groups) {
            for resource in list(&rule.resources) {
                let (resource, subresource) = match resource.split_once('/') {
                    Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
                    None => (&*resource, None),
                };
                reviews.extend(names.iter().map(|name| {
                    let attributes = ResourceAttributes {
                        group: Some(group.clone()),
                        resource: Some(resource.to_owned()),
                        subresource: subresource.clone(),
                        namespace: namespace.map(str::to_owned),
                        name: name.clone(),
                        verb: Some(verb.clone()),
                        ..ResourceAttributes::default()
                    };
                    AccessReview::new(cluster, attributes)
                }));
            }
        }
    }
    reviews
}

/// The `permissions` that the user lacks, in order, without duplicates.
pub(super) async fn missing(
    clusters: &Clusters<'_>,
    permissions: Vec<Permission>,
) -> Result<Vec<Permission>, RequestError> {
    let mut distinct: Vec<Permission> = Vec::new();
    for permission in permissions {
        if !distinct.contains(&permission) {
            distinct.push(permission);
        }
    }
    let reviews = stream::iter(distinct).map(async |permission| {
        let mut allowed = is_allowed(clusters, &permission.review).await?;
        if !allowed && !permission.alternatives.is_empty() {
            let alternatives = permission.alternatives.iter();
            let alternatives = alternatives.map(|review| is_allowed(clusters, review));
            let alternatives = try_join_all(alternatives).await?;
            allowed = alternatives.into_iter().all(|allowed| allowed);
        }
        Ok((!allowed).then_some(permission))
    });
    let reviews = reviews.buffered(CONCURRENT_REVIEWS);
    reviews
        .try_filter_map(async |denied| Ok(denied))
        .try_collect()
        .await
}

async fn is_allowed(clusters: &Clusters<'_>, review: &AccessReview) -> Result<bool, RequestError> {
    let cluster = clusters.client(review.cluster);
    let reviews: Api<SelfSubjectAccessReview> = Api::all(cluster.client());
    let parameters = PostParams::default();
    let body = SelfSubjectAccessReview {
        spec: review.spec.clone(),
        ..SelfSubjectAccessReview::default()
    };
    let request = reviews.create(&parameters, &body);
    let response = cluster
        .call("review the user's permissions", request)
        .await?;
    Ok(response.status.is_some_and(|status| status.allowed))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};

    use super::*;
    use crate::join::{
        plan::{self, ExistingObjects},
        test_objects::membership,
    };

    fn member_steps() -> Vec<Step> {
        plan::member_steps(&membership(), &ExistingObjects::default(), None)
    }

    #[test]
    fn granting_permissions_requires_them() {
        let needed: Vec<String> = for_writes(&membership(), &member_steps())
            .iter()
            .map(ToString::to_string)
            .collect();
        for permission in [
            "create namespaces",
            "create clusterroles.rbac.authorization.k8s.io",
            "get /readyz, which join grants to the controller",
            "patch replicasets.apps, which join grants to the controller",
            "create serviceaccounts/token fedrs-controller-1a2b3c4d in namespace system",
        ] {
            let permission = format!("member: missing permission to {permission}");
            assert!(needed.contains(&permission), "{permission}: {needed:#?}");
        }
    }

    #[test]
    fn escalate_and_bind_replace_the_granted_permissions() {
        let mut steps = member_steps();
        let alternatives = |steps: &[Step], granted: &str| {
            let permissions = for_writes(&membership(), steps);
            let granted = format!("member: missing permission to {granted}, which join grants");
            let permission = permissions
                .into_iter()
                .find(|permission| permission.to_string().starts_with(&granted));
            permission.map(|permission| {
                let alternatives = permission.alternatives.into_iter();
                alternatives
                    .map(|review| review.to_string())
                    .collect::<Vec<_>>()
            })
        };
        let sets = "patch replicasets.apps";
        let token = "create serviceaccounts/token fedrs-controller-1a2b3c4d in namespace system";
        let roles = "clusterroles.rbac.authorization.k8s.io";
        let both = [
            format!("member: missing permission to escalate {roles}"),
            format!("member: missing permission to bind {roles} fedrs-controller-1a2b3c4d"),
        ];
        assert_eq!(alternatives(&steps, sets).unwrap(), both);
        let roles = "roles.rbac.authorization.k8s.io";
        let in_namespace = [
            format!("member: missing permission to escalate {roles} in namespace system"),
            format!(
                "member: missing permission to bind {roles} fedrs-controller-1a2b3c4d in namespace system"
            ),
        ];
        assert_eq!(alternatives(&steps, token).unwrap(), in_namespace);
        // The role exists and is not bound yet.
        steps.retain(|step| !step.object.is::<ClusterRole>());
        assert_eq!(alternatives(&steps, sets).unwrap(), both[1..]);
        steps.retain(|step| !step.object.is::<ClusterRoleBinding>());
        assert_eq!(alternatives(&steps, sets), None);
    }

    #[test]
    fn unchanged_objects_require_no_permission() {
        let existing = ExistingObjects::default();
        let steps = plan::host_steps(&membership(), &BTreeMap::new(), &existing, None);
        let mut unchanged = steps.clone();
        for step in &mut unchanged {
            step.write = Write::None;
        }
        let count = |steps: &[Step]| for_writes(&membership(), steps).len();
        assert_eq!(
            (count(&steps), count(&unchanged)),
            (4, 1),
            "the token is always requested"
        );
    }
}
