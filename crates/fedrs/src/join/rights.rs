//! What a user must be allowed to do for a join, and whether the user is.

use std::fmt;

use futures::{StreamExt, TryStreamExt, stream};
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
    membership::objects::Membership,
    object::{
        Address, CLUSTER_ROLE, Change, Kind, MEMBER_CLUSTER, NAMESPACE, ROLE, SERVICE_ACCOUNT,
    },
    remote::{Failure, Remote, Side},
};

/// Questions to one API server at a time.
const QUESTIONS: usize = 8;

/// One thing that has to be allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Right {
    side: Side,
    verb: String,
    what: What,
    /// Why it is needed, where the verb doesn't say.
    why: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Resource {
        group: String,
        /// With the subresource: `serviceaccounts/token`.
        resource: String,
        namespace: Option<String>,
        name: Option<String>,
    },
    Path(String),
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ", self.side, self.verb)?;
        match &self.what {
            What::Path(path) => f.write_str(path)?,
            What::Resource {
                group,
                resource,
                namespace,
                name,
            } => {
                f.write_str(resource)?;
                if !group.is_empty() {
                    write!(f, ".{group}")?;
                }
                if let Some(name) = name {
                    write!(f, " {name}")?;
                }
                if let Some(namespace) = namespace {
                    write!(f, " in namespace {namespace}")?;
                }
            }
        }
        f.write_str(self.why)
    }
}

impl Right {
    fn on(side: Side, verb: &str, address: &Address, why: &'static str) -> Self {
        let Kind { group, plural, .. } = address.kind;
        let what = What::Resource {
            group: group.to_owned(),
            resource: plural.to_owned(),
            namespace: address.namespace.clone(),
            // Who may create, may not by name: the name isn't part of the request's address.
            name: (verb != "create" && verb != "list").then(|| address.name.clone()),
        };
        Self {
            side,
            verb: verb.to_owned(),
            what,
            why,
        }
    }

    fn review(&self) -> SelfSubjectAccessReview {
        let verb = Some(self.verb.clone());
        let spec = match self.what.clone() {
            What::Path(path) => SelfSubjectAccessReviewSpec {
                non_resource_attributes: Some(NonResourceAttributes {
                    path: Some(path),
                    verb,
                }),
                ..SelfSubjectAccessReviewSpec::default()
            },
            What::Resource {
                group,
                resource,
                namespace,
                name,
            } => {
                let (resource, subresource) = match resource.split_once('/') {
                    Some((resource, part)) => (resource.to_owned(), Some(part.to_owned())),
                    None => (resource, None),
                };
                SelfSubjectAccessReviewSpec {
                    resource_attributes: Some(ResourceAttributes {
                        group: Some(group),
                        resource: Some(resource),
                        subresource,
                        namespace,
                        name,
                        verb,
                        ..ResourceAttributes::default()
                    }),
                    ..SelfSubjectAccessReviewSpec::default()
                }
            }
        };
        SelfSubjectAccessReview {
            spec,
            ..SelfSubjectAccessReview::default()
        }
    }
}

/// What has to be read before anything can be decided.
pub(super) fn to_read(membership: &Membership) -> Vec<Right> {
    let system = Address::cluster(NAMESPACE, "kube-system");
    let all_members = Address::cluster(MEMBER_CLUSTER, "");
    let mut rights = vec![Right::on(Side::Host, "list", &all_members, "")];
    for side in [Side::Host, Side::Member] {
        let namespace = membership.namespace_address();
        rights.extend([&system, &namespace].map(|it| Right::on(side, "get", it, "")));
    }
    for address in [membership.secret_address(), membership.object_address()] {
        rights.push(Right::on(Side::Host, "get", &address, ""));
    }
    for object in membership.in_member("") {
        rights.push(Right::on(Side::Member, "get", &Address::of(&object), ""));
    }
    rights
}

/// What has to be written to carry out `steps`.
pub(super) fn to_write(membership: &Membership, steps: &[Step]) -> Vec<Right> {
    let mut rights: Vec<Right> = steps.iter().filter_map(of_step).collect();
    let gives_rights =
        |it: &Step| it.change != Change::None && [CLUSTER_ROLE, ROLE].contains(&it.address.kind);
    if steps.iter().any(gives_rights) {
        rights.extend(to_give(membership));
    }
    rights.push(Right {
        side: Side::Member,
        verb: "create".to_owned(),
        what: What::Resource {
            group: String::new(),
            resource: format!("{}/token", SERVICE_ACCOUNT.plural),
            namespace: Some(membership.namespace.clone()),
            name: Some(membership.account()),
        },
        why: "",
    });
    rights
}

fn of_step(step: &Step) -> Option<Right> {
    let verb = match step.change {
        Change::None => return None,
        Change::Create(_) => "create",
        Change::Patch(_) => "patch",
    };
    Some(Right::on(step.side, verb, &step.address, ""))
}

/// RBAC lets nobody give what they don't have themselves.
fn to_give(membership: &Membership) -> Vec<Right> {
    const WHY: &str = " (to give it to the controller)";
    let manifests = membership.access().manifests();
    let mut rights = Vec::new();
    for manifest in &manifests {
        let address = Address::of(&manifest.to_value());
        for grant in manifest.grants() {
            rights.extend(of_rule(&grant.rule, address.namespace.as_deref(), WHY));
        }
    }
    rights
}

fn of_rule(rule: &PolicyRule, namespace: Option<&str>, why: &'static str) -> Vec<Right> {
    let list = |it: &Option<Vec<String>>| it.clone().unwrap_or_default();
    let mut whats: Vec<What> = list(&rule.non_resource_urls)
        .into_iter()
        .map(What::Path)
        .collect();
    let names = match &rule.resource_names {
        Some(names) => names.iter().cloned().map(Some).collect(),
        None => vec![None],
    };
    for group in list(&rule.api_groups) {
        for resource in list(&rule.resources) {
            for name in &names {
                whats.push(What::Resource {
                    group: group.clone(),
                    resource: resource.clone(),
                    namespace: namespace.map(str::to_owned),
                    name: name.clone(),
                });
            }
        }
    }
    let verbs = rule.verbs.iter();
    verbs
        .flat_map(|verb| {
            whats.iter().map(move |what| Right {
                side: Side::Member,
                verb: verb.clone(),
                what: what.clone(),
                why,
            })
        })
        .collect()
}

/// Those of `rights` that the user doesn't have, in order, each once.
pub(super) async fn missing(
    host: &Remote,
    member: &Remote,
    rights: Vec<Right>,
) -> Result<Vec<Right>, Failure> {
    let mut once: Vec<Right> = Vec::new();
    for right in rights {
        if !once.contains(&right) {
            once.push(right);
        }
    }
    let answers = stream::iter(once).map(async |right| {
        let remote = match right.side {
            Side::Host => host,
            Side::Member => member,
        };
        let allowed = is_allowed(remote, &right).await?;
        Ok((right, allowed))
    });
    let answers: Vec<(Right, bool)> = answers.buffered(QUESTIONS).try_collect().await?;
    let denied = answers.into_iter().filter(|(_, allowed)| !allowed);
    Ok(denied.map(|(right, _)| right).collect())
}

async fn is_allowed(remote: &Remote, right: &Right) -> Result<bool, Failure> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(remote.client());
    let (parameters, review) = (PostParams::default(), right.review());
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
