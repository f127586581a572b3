//! What a user must be allowed to do for a join, and whether the user is.

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
        CLUSTER_ROLE, CLUSTER_ROLE_BINDING, Change, Kind, MEMBER_CLUSTER, NAMESPACE, ObjectRef,
        ROLE, ROLE_BINDING, SERVICE_ACCOUNT,
    },
};

/// Questions to one API server at a time.
const QUESTIONS: usize = 8;

/// One thing that has to be allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Right {
    act: Act,
    /// Why it is needed, where the verb doesn't say.
    why: &'static str,
    /// Whoever may do all of these doesn't need it; nobody if there are none.
    unless: Vec<Act>,
}

/// One thing that is allowed, or not.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Act {
    side: Side,
    verb: String,
    what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
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

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Act { side, verb, what } = &self.act;
        write!(f, "{side}: {verb} ")?;
        match what {
            What::Path(path) => f.write_str(path)?,
            What::Resource(resource) => resource.fmt(f)?,
        }
        f.write_str(self.why)
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

impl From<Act> for Right {
    fn from(act: Act) -> Self {
        Self {
            act,
            why: "",
            unless: Vec::new(),
        }
    }
}

impl Act {
    fn on(side: Side, verb: &str, address: &ObjectRef) -> Self {
        let Kind { group, plural, .. } = address.kind;
        let what = What::Resource(Resource {
            group: group.to_owned(),
            plural: plural.to_owned(),
            namespace: address.namespace.clone(),
            // Who may create, may not by name: the name isn't part of the request's address.
            name: (verb != "create" && verb != "list").then(|| address.name.clone()),
        });
        Self {
            side,
            verb: verb.to_owned(),
            what,
        }
    }

    fn review(&self) -> SelfSubjectAccessReview {
        let verb = Some(self.verb.clone());
        let mut spec = SelfSubjectAccessReviewSpec::default();
        match self.what.clone() {
            What::Path(path) => {
                spec.non_resource_attributes = Some(NonResourceAttributes {
                    path: Some(path),
                    verb,
                });
            }
            What::Resource(it) => {
                let mut parts = it.plural.split('/').map(str::to_owned);
                spec.resource_attributes = Some(ResourceAttributes {
                    group: Some(it.group),
                    resource: parts.next(),
                    subresource: parts.next(),
                    namespace: it.namespace,
                    name: it.name,
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

/// What has to be read before anything can be decided.
pub(super) fn to_read(membership: &Membership) -> Vec<Right> {
    let system = ObjectRef::cluster(NAMESPACE, "kube-system");
    let all_members = ObjectRef::cluster(MEMBER_CLUSTER, "");
    let mut acts = vec![Act::on(Side::Host, "list", &all_members)];
    for side in [Side::Host, Side::Member] {
        let namespace = membership.namespace_address();
        acts.extend([&system, &namespace].map(|it| Act::on(side, "get", it)));
    }
    for address in [membership.secret_address(), membership.object_address()] {
        acts.push(Act::on(Side::Host, "get", &address));
    }
    for object in membership.in_member("") {
        acts.push(Act::on(Side::Member, "get", &ObjectRef::of(&object)));
    }
    acts.into_iter().map(Right::from).collect()
}

/// What has to be written to carry out `steps`.
pub(super) fn to_write(membership: &Membership, steps: &[Step]) -> Vec<Right> {
    let mut rights: Vec<Right> = steps.iter().filter_map(of_step).collect();
    rights.extend(to_give(membership, steps));
    let token = Act {
        side: Side::Member,
        verb: "create".to_owned(),
        what: What::Resource(Resource {
            group: String::new(),
            plural: format!("{}/token", SERVICE_ACCOUNT.plural),
            namespace: Some(membership.namespace.clone()),
            name: Some(membership.account()),
        }),
    };
    rights.push(token.into());
    rights
}

fn of_step(step: &Step) -> Option<Right> {
    let verb = match step.change {
        Change::None => return None,
        Change::Create(_) => "create",
        Change::Patch(_) => "patch",
    };
    Some(Act::on(step.side, verb, &step.address).into())
}

/// RBAC lets nobody give what they don't have themselves, neither by a role nor by binding one; unless they may `escalate`
/// the role, and `bind` it.
fn to_give(membership: &Membership, steps: &[Step]) -> Vec<Right> {
    let change = |kind: Kind| {
        let step = steps.iter().find(|it| it.address.kind == kind);
        step.map_or(&Change::None, |it| &it.change)
    };
    let manifests = membership.access().manifests();
    let mut rights = Vec::new();
    for manifest in &manifests {
        let role = ObjectRef::of(&manifest.to_value());
        let binding = match role.kind {
            CLUSTER_ROLE => CLUSTER_ROLE_BINDING,
            ROLE => ROLE_BINDING,
            _ => continue,
        };
        let mut unless = Vec::new();
        if *change(role.kind) != Change::None {
            let mut act = Act::on(Side::Member, "escalate", &role);
            if let (Change::Create(_), What::Resource(role)) = (change(role.kind), &mut act.what) {
                // As for creating it: the name isn't part of the request's address.
                role.name = None;
            }
            unless.push(act);
        }
        if *change(binding) != Change::None {
            unless.push(Act::on(Side::Member, "bind", &role));
        }
        if unless.is_empty() {
            continue;
        }
        for grant in manifest.grants() {
            let acts = of_rule(&grant.rule, role.namespace.as_deref());
            rights.extend(acts.into_iter().map(|act| Right {
                act,
                why: " (to give it to the controller)",
                unless: unless.clone(),
            }));
        }
    }
    rights
}

/// All that a rule allows in a member.
fn of_rule(rule: &PolicyRule, namespace: Option<&str>) -> Vec<Act> {
    let list = |it: &Option<Vec<String>>| it.clone().unwrap_or_default();
    let paths = list(&rule.non_resource_urls).into_iter();
    let mut whats: Vec<What> = paths.map(What::Path).collect();
    let names = match &rule.resource_names {
        Some(names) => names.iter().cloned().map(Some).collect(),
        None => vec![None],
    };
    for group in list(&rule.api_groups) {
        for resource in list(&rule.resources) {
            for name in &names {
                whats.push(What::Resource(Resource {
                    group: group.clone(),
                    plural: resource.clone(),
                    namespace: namespace.map(str::to_owned),
                    name: name.clone(),
                }));
            }
        }
    }
    let act = |verb: &String, what: &What| Act {
        side: Side::Member,
        verb: verb.clone(),
        what: what.clone(),
    };
    let verbs = rule.verbs.iter();
    verbs
        .flat_map(|verb| whats.iter().map(move |what| act(verb, what)))
        .collect()
}

/// Those of `rights` that the user doesn't have, in order, each once.
pub(super) async fn missing(
    host: &ClusterClient,
    member: &ClusterClient,
    rights: Vec<Right>,
) -> Result<Vec<Right>, RequestError> {
    let mut once: Vec<Right> = Vec::new();
    for right in rights {
        if !once.contains(&right) {
            once.push(right);
        }
    }
    let answers = stream::iter(once).map(async |right| {
        let mut allowed = is_allowed(host, member, &right.act).await?;
        if !allowed && !right.unless.is_empty() {
            let others = right.unless.iter().map(|it| is_allowed(host, member, it));
            allowed = try_join_all(others).await?.into_iter().all(|it| it);
        }
        Ok((right, allowed))
    });
    let answers: Vec<(Right, bool)> = answers.buffered(QUESTIONS).try_collect().await?;
    let denied = answers.into_iter().filter(|(_, allowed)| !allowed);
    Ok(denied.map(|(right, _)| right).collect())
}

async fn is_allowed(
    host: &ClusterClient,
    member: &ClusterClient,
    act: &Act,
) -> Result<bool, RequestError> {
    let remote = match act.side {
        Side::Host => host,
        Side::Member => member,
    };
    let reviews: Api<SelfSubjectAccessReview> = Api::all(remote.client());
    let (parameters, review) = (PostParams::default(), act.review());
    let call = reviews.create(&parameters, &review);
    let answer = remote.call("ask what is allowed", call).await?;
    Ok(answer.status.is_some_and(|it| it.allowed))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::join::plan::{self, Found};

    fn membership() -> Membership {
        Membership {
            federation: String::new(),
            name: "eu".to_owned(),
            namespace: "system".to_owned(),
            host_id: "1a2b3c4d".to_owned(),
            cluster_id: "eu-uid".to_owned(),
        }
    }

    #[test]
    fn whoever_gives_rights_needs_them() {
        let steps = plan::in_member(&membership(), &Found::default(), None);
        let needed: Vec<String> = to_write(&membership(), &steps)
            .iter()
            .map(ToString::to_string)
            .collect();
        for right in [
            "member: create namespaces",
            "member: create clusterroles.rbac.authorization.k8s.io",
            "member: get /readyz (to give it to the controller)",
            "member: patch replicasets.apps (to give it to the controller)",
            "member: create serviceaccounts/token fedrs-controller-1a2b3c4d in namespace system",
        ] {
            assert!(needed.iter().any(|it| it == right), "{right}: {needed:#?}");
        }
    }

    #[test]
    fn whoever_may_escalate_and_bind_needs_none_of_what_is_given() {
        let mut steps = plan::in_member(&membership(), &Found::default(), None);
        let unless = |steps: &[Step], given: &str| {
            let rights = to_write(&membership(), steps);
            let right = rights.iter().find(|it| it.to_string().contains(given));
            right.map(|it| {
                let acts = it.unless.iter().cloned().map(Right::from);
                acts.map(|it| it.to_string()).collect::<Vec<_>>()
            })
        };
        let (sets, token) = (
            "patch replicasets.apps (to give",
            "create serviceaccounts/token fedrs-controller-1a2b3c4d in namespace system (to give",
        );
        let roles = "clusterroles.rbac.authorization.k8s.io";
        let both = [
            format!("member: escalate {roles}"),
            format!("member: bind {roles} fedrs-controller-1a2b3c4d"),
        ];
        assert_eq!(unless(&steps, sets).unwrap(), both);
        let own = "roles.rbac.authorization.k8s.io";
        let of_own = [
            format!("member: escalate {own} in namespace system"),
            format!("member: bind {own} fedrs-controller-1a2b3c4d in namespace system"),
        ];
        assert_eq!(unless(&steps, token).unwrap(), of_own);
        // The role is there and not yet bound.
        steps.retain(|it| it.address.kind != CLUSTER_ROLE);
        assert_eq!(unless(&steps, sets).unwrap(), both[1..]);
        steps.retain(|it| it.address.kind != CLUSTER_ROLE_BINDING);
        assert_eq!(unless(&steps, sets), None);
    }

    #[test]
    fn what_is_not_written_needs_no_right() {
        let steps = plan::on_host(&membership(), &BTreeMap::new(), &Found::default(), None);
        let mut unchanged = steps.clone();
        for step in &mut unchanged {
            step.change = Change::None;
        }
        let count = |steps: &[Step]| to_write(&membership(), steps).len();
        assert_eq!(
            (count(&steps), count(&unchanged)),
            (4, 1),
            "the token remains"
        );
    }
}
