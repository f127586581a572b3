//! The permissions that a user needs for a join, and which of them are missing.

use std::fmt;

use futures::{StreamExt, TryStreamExt, future::try_join_all, stream};
use k8s_openapi::api::{
    authorization::v1::{
        NonResourceAttributes, ResourceAttributes, SelfSubjectAccessReview,
        SelfSubjectAccessReviewSpec,
    },
    rbac::v1::PolicyRule,
};
use kube::{Api, api::PostParams};

use super::plan::Step;
use crate::{
    cluster_client::{ClusterClient, RequestError, Side},
    membership::Membership,
    object::{
        CLUSTER_ROLE, CLUSTER_ROLE_BINDING, Kind, MEMBER_CLUSTER, NAMESPACE, ObjectRef, ROLE,
        ROLE_BINDING, SERVICE_ACCOUNT, Write,
    },
};

/// The number of concurrent access reviews.
const CONCURRENT_REVIEWS: usize = 8;

/// A permission that the user needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permission {
    access: Access,
    purpose: Purpose,
    /// The user doesn't need the permission if all of these are granted; no alternative if empty.
    alternatives: Vec<Access>,
}

/// What a permission is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// Join sends such a request.
    Request,
    /// Join grants it to the controller.
    Grant,
}

/// A verb on an object or a path in one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Access {
    side: Side,
    verb: String,
    target: Target,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    Resource(Resource),
    Path(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Resource {
    group: String,
    /// With the subresource: `serviceaccounts/token`.
    plural: String,
    namespace: Option<String>,
    name: Option<String>,
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Access { side, verb, target } = &self.access;
        write!(f, "{side}: missing permission to {verb} ")?;
        match target {
            Target::Path(path) => f.write_str(path)?,
            Target::Resource(resource) => resource.fmt(f)?,
        }
        match self.purpose {
            Purpose::Request => Ok(()),
            Purpose::Grant => f.write_str(", which join grants to the controller"),
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.plural)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if let Some(name) = &self.name {
            write!(f, " {name}")?;
        }
        if let Some(namespace) = &self.namespace {
            write!(f, " in namespace {namespace}")?;
        }
        Ok(())
    }
}

impl From<Access> for Permission {
    fn from(access: Access) -> Self {
        Self {
            access,
            purpose: Purpose::Request,
            alternatives: Vec::new(),
        }
    }
}

impl Access {
    fn new(side: Side, verb: &str, object: &ObjectRef) -> Self {
        let Kind { group, plural, .. } = object.kind;
        let target = Target::Resource(Resource {
            group: group.to_owned(),
            plural: plural.to_owned(),
            namespace: object.namespace.clone(),
            // The API server authorizes create and list without a name.
            name: (verb != "create" && verb != "list").then(|| object.name.clone()),
        });
        Self {
            side,
            verb: verb.to_owned(),
            target,
        }
    }

    fn review(&self) -> SelfSubjectAccessReview {
        let verb = Some(self.verb.clone());
        let mut spec = SelfSubjectAccessReviewSpec::default();
        match self.target.clone() {
            Target::Path(path) => {
                spec.non_resource_attributes = Some(NonResourceAttributes {
                    path: Some(path),
                    verb,
                });
            }
            Target::Resource(resource) => {
                let mut parts = resource.plural.split('/').map(str::to_owned);
                spec.resource_attributes = Some(ResourceAttributes {
                    group: Some(resource.group),
                    resource: parts.next(),
                    subresource: parts.next(),
                    namespace: resource.namespace,
                    name: resource.name,
                    verb,
                    ..ResourceAttributes::default()
                });
            }
        }
        SelfSubjectAccessReview {
            spec,
            ..SelfSubjectAccessReview::default()
        }
    }
}

/// The permissions to read the existing objects.
pub(super) fn for_reads(membership: &Membership) -> Vec<Permission> {
    let system = ObjectRef::cluster_scoped(NAMESPACE, "kube-system");
    let all_members = ObjectRef::cluster_scoped(MEMBER_CLUSTER, "");
    let mut reads = vec![Access::new(Side::Host, "list", &all_members)];
    for side in [Side::Host, Side::Member] {
        let namespace = membership.namespace_ref();
        reads.extend([&system, &namespace].map(|object| Access::new(side, "get", object)));
    }
    for object in [membership.secret_ref(), membership.member_cluster_ref()] {
        reads.push(Access::new(Side::Host, "get", &object));
    }
    for manifest in membership.member_manifests("") {
        reads.push(Access::new(Side::Member, "get", &ObjectRef::of(&manifest)));
    }
    reads.into_iter().map(Permission::from).collect()
}

/// The permissions to apply `steps` and to request a token.
pub(super) fn for_writes(membership: &Membership, steps: &[Step]) -> Vec<Permission> {
    let mut permissions: Vec<Permission> = steps.iter().filter_map(for_step).collect();
    permissions.extend(for_grants(membership, steps));
    let token = Access {
        side: Side::Member,
        verb: "create".to_owned(),
        target: Target::Resource(Resource {
            group: String::new(),
            plural: format!("{}/token", SERVICE_ACCOUNT.plural),
            namespace: Some(membership.namespace.clone()),
            name: Some(membership.account()),
        }),
    };
    permissions.push(token.into());
    permissions
}

fn for_step(step: &Step) -> Option<Permission> {
    let verb = match step.write {
        Write::None => return None,
        Write::Create(_) => "create",
        Write::Patch(_) => "patch",
    };
    Some(Access::new(step.side, verb, &step.object).into())
}

/// RBAC lets users grant only permissions that they have, both in a role and by binding it, unless they may `escalate` the
/// role and `bind` it.
fn for_grants(membership: &Membership, steps: &[Step]) -> Vec<Permission> {
    let write = |kind: Kind| {
        let step = steps.iter().find(|step| step.object.kind == kind);
        step.map_or(&Write::None, |step| &step.write)
    };
    let manifests = membership.access().manifests();
    let mut permissions = Vec::new();
    for manifest in &manifests {
        let role = ObjectRef::of(&manifest.to_value());
        let binding = match role.kind {
            CLUSTER_ROLE => CLUSTER_ROLE_BINDING,
            ROLE => ROLE_BINDING,
            _ => continue,
        };
        let mut alternatives = Vec::new();
        if *write(role.kind) != Write::None {
            let mut escalate = Access::new(Side::Member, "escalate", &role);
            if let (Write::Create(_), Target::Resource(role)) =
                (write(role.kind), &mut escalate.target)
            {
                // The API server authorizes the creation without a name.
                role.name = None;
            }
            alternatives.push(escalate);
        }
        if *write(binding) != Write::None {
            alternatives.push(Access::new(Side::Member, "bind", &role));
        }
        if alternatives.is_empty() {
            continue;
        }
        for grant in manifest.grants() {
            let granted = accesses(&grant.rule, role.namespace.as_deref()).into_iter();
            permissions.extend(granted.map(|access| Permission {
                access,
                purpose: Purpose::Grant,
                alternatives: alternatives.clone(),
            }));
        }
    }
    permissions
}

/// Everything that a rule grants in a member.
fn accesses(rule: &PolicyRule, namespace: Option<&str>) -> Vec<Access> {
    let list = |values: &Option<Vec<String>>| values.clone().unwrap_or_default();
    let paths = list(&rule.non_resource_urls).into_iter();
    let mut targets: Vec<Target> = paths.map(Target::Path).collect();
    let names = match &rule.resource_names {
        Some(names) => names.iter().cloned().map(Some).collect(),
        None => vec![None],
    };
    for group in list(&rule.api_groups) {
        for resource in list(&rule.resources) {
            for name in &names {
                targets.push(Target::Resource(Resource {
                    group: group.clone(),
                    plural: resource.clone(),
                    namespace: namespace.map(str::to_owned),
                    name: name.clone(),
                }));
            }
        }
    }
    let access = |verb: &String, target: &Target| Access {
        side: Side::Member,
        verb: verb.clone(),
        target: target.clone(),
    };
    let verbs = rule.verbs.iter();
    verbs
        .flat_map(|verb| targets.iter().map(move |target| access(verb, target)))
        .collect()
}

/// The `permissions` that the user lacks, in order, without duplicates.
pub(super) async fn missing(
    host: &ClusterClient,
    member: &ClusterClient,
    permissions: Vec<Permission>,
) -> Result<Vec<Permission>, RequestError> {
    let mut distinct: Vec<Permission> = Vec::new();
    for permission in permissions {
        if !distinct.contains(&permission) {
            distinct.push(permission);
        }
    }
    let reviews = stream::iter(distinct).map(async |permission| {
        let mut allowed = is_allowed(host, member, &permission.access).await?;
        if !allowed && !permission.alternatives.is_empty() {
            let alternatives = permission.alternatives.iter();
            let alternatives = alternatives.map(|access| is_allowed(host, member, access));
            let mut alternatives = try_join_all(alternatives).await?.into_iter();
            allowed = alternatives.all(|allowed| allowed);
        }
        Ok((permission, allowed))
    });
    let reviews: Vec<(Permission, bool)> =
        reviews.buffered(CONCURRENT_REVIEWS).try_collect().await?;
    let denied = reviews.into_iter().filter(|(_, allowed)| !allowed);
    Ok(denied.map(|(permission, _)| permission).collect())
}

async fn is_allowed(
    host: &ClusterClient,
    member: &ClusterClient,
    access: &Access,
) -> Result<bool, RequestError> {
    let cluster = match access.side {
        Side::Host => host,
        Side::Member => member,
    };
    let reviews: Api<SelfSubjectAccessReview> = Api::all(cluster.client());
    let (parameters, review) = (PostParams::default(), access.review());
    let request = reviews.create(&parameters, &review);
    let response = cluster
        .call("review the user's permissions", request)
        .await?;
    Ok(response.status.is_some_and(|status| status.allowed))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::join::plan::{self, ExistingObjects};

    fn membership() -> Membership {
        Membership {
            federation: String::new(),
            name: "eu".to_owned(),
            namespace: "system".to_owned(),
            host_id: "1a2b3c4d".to_owned(),
            cluster_id: "eu-uid".to_owned(),
        }
    }

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
                let accesses = permission.alternatives.into_iter().map(Permission::from);
                accesses
                    .map(|access| access.to_string())
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
        steps.retain(|step| step.object.kind != CLUSTER_ROLE);
        assert_eq!(alternatives(&steps, sets).unwrap(), both[1..]);
        steps.retain(|step| step.object.kind != CLUSTER_ROLE_BINDING);
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
