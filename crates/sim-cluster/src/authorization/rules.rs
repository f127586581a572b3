//! The rules of users: bindings -> roles -> rules.

use std::fmt;

use serde_json::Value;

use super::attributes::{Attributes, Target};
use crate::authentication::{User, account_name};
use crate::object::{self, text};
use crate::resources::kinds;
use crate::store::Store;

/// One entry of a role's `rules`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule<'a>(pub(super) &'a Value);

impl<'a> Rule<'a> {
    /// The entries of one of its lists.
    pub(super) fn words(self, field: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        let words = self.0[field].as_array().into_iter().flatten();
        words.filter_map(Value::as_str)
    }

    pub(super) fn has(self, field: &str, wanted: &str) -> bool {
        self.words(field).any(|word| word == wanted)
    }

    pub(super) fn has_any(self, field: &str) -> bool {
        self.words(field).next().is_some()
    }

    /// Whether a list has an entry, or the wildcard.
    pub(super) fn covers(self, field: &str, wanted: &str) -> bool {
        self.words(field).any(|word| word == "*" || word == wanted)
    }

    /// Whether the rule covers a resource: `pods`, `pods/log`; `*/log` is that subresource of all resources.
    pub(super) fn covers_resource(self, wanted: &str) -> bool {
        let of_all = wanted
            .split_once('/')
            .map(|(_, subresource)| format!("*/{subresource}"));
        self.covers("resources", wanted)
            || of_all.is_some_and(|of_all| self.has("resources", &of_all))
    }

    /// Whether the rule covers a path, by equality or by the prefix before its `*`.
    pub(super) fn covers_path(self, wanted: &str) -> bool {
        self.words("nonResourceURLs").any(|word| {
            let begins = word
                .strip_suffix('*')
                .is_some_and(|_| wanted.starts_with(word.trim_end_matches('*')));
            word == wanted || begins
        })
    }

    /// Whether the rule covers a name; a rule without names covers all.
    fn covers_name(self, wanted: &str) -> bool {
        !self.has_any("resourceNames") || self.has("resourceNames", wanted)
    }

    /// Whether the rule allows the request.
    pub(super) fn allows(self, attributes: &Attributes) -> bool {
        let target_covered = match &attributes.target {
            Target::Path(path) => self.covers_path(path),
            Target::Resource {
                group,
                resource,
                subresource,
                name,
                ..
            } => {
                let combined = match subresource.as_str() {
                    "" => resource.clone(),
                    subresource => format!("{resource}/{subresource}"),
                };
                self.covers("apiGroups", group)
                    && self.covers_resource(&combined)
                    && self.covers_name(name)
            }
        };
        target_covered && self.covers("verbs", &attributes.verb)
    }

    /// The rule with only these of its lists.
    pub(super) fn only(self, fields: &[&str]) -> Value {
        let mut rule = self.0.clone();
        if let Some(lists) = rule.as_object_mut() {
            lists.retain(|field, _| fields.contains(&field.as_str()));
        }
        rule
    }
}

/// The grants of a user in a namespace, and the roles that do not exist.
#[derive(Debug, Default)]
pub(super) struct UserGrants<'a> {
    pub(super) grants: Vec<Grant<'a>>,
    pub(super) errors: Vec<Missing<'a>>,
}

/// A role in a binding that does not exist. `Display` is the authorizer's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Missing<'a> {
    kind: &'a str,
    pub(super) name: &'a str,
}

impl Missing<'_> {
    /// The message of the storage, for writes of roles and bindings.
    pub(super) fn in_storage(self) -> String {
        let plural = self.kind.to_lowercase() + "s";
        format!(
            "{plural}.rbac.authorization.k8s.io {:?} not found",
            self.name
        )
    }
}

impl fmt::Display for Missing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.to_lowercase();
        write!(
            f,
            "{kind}.rbac.authorization.k8s.io {:?} not found",
            self.name
        )
    }
}

/// A role that a binding grants to a user.
#[derive(Debug)]
pub(super) struct Grant<'a> {
    binding: &'a Value,
    subject: &'a Value,
    role: &'a Value,
}

impl<'a> Grant<'a> {
    pub(super) fn rules(&self) -> impl Iterator<Item = Rule<'a>> + use<'a> {
        rules_of(self.role)
    }

    /// `ClusterRoleBinding "a" of ClusterRole "b" to ServiceAccount "name/namespace"`.
    pub(super) fn source(&self) -> String {
        let (kind, name) = (text(self.binding, "/kind"), object::name(self.binding));
        let namespace = object::namespace(self.binding);
        let binding = in_namespace(name, namespace);
        let (role_kind, role) = (
            text(self.binding, "/roleRef/kind"),
            text(self.binding, "/roleRef/name"),
        );
        let subject_kind = text(self.subject, "/kind");
        let subject_name = text(self.subject, "/name");
        let subject = if subject_kind == "ServiceAccount" {
            let own = text(self.subject, "/namespace");
            let of = if own.is_empty() { namespace } else { own };
            format!("{subject_name}/{of}")
        } else {
            subject_name.to_owned()
        };
        format!("{kind} {binding:?} of {role_kind} {role:?} to {subject_kind} {subject:?}")
    }
}

fn in_namespace(name: &str, namespace: &str) -> String {
    if namespace.is_empty() {
        name.to_owned()
    } else {
        format!("{name}/{namespace}")
    }
}

/// The rules of a role.
pub(super) fn rules_of(role: &Value) -> impl Iterator<Item = Rule<'_>> {
    role["rules"].as_array().into_iter().flatten().map(Rule)
}

/// The role that a binding refers to.
///
/// # Errors
/// If it does not exist.
pub(super) fn role_of<'a>(
    store: &'a Store,
    reference: &'a Value,
    namespace: &str,
) -> Result<&'a Value, Missing<'a>> {
    let (kind, name) = (text(reference, "/kind"), text(reference, "/name"));
    let found = match kind {
        "Role" => store.get(&kinds::ROLES, namespace, name),
        _ => store.get(&kinds::CLUSTER_ROLES, "", name),
    };
    found.map(|role| &**role).ok_or(Missing { kind, name })
}

/// The grants of a user's bindings: those of the cluster, and those of the namespace unless it is empty.
pub(super) fn grants_of<'a>(store: &'a Store, user: &User, namespace: &'a str) -> UserGrants<'a> {
    let of_cluster = store.list(&kinds::CLUSTER_ROLE_BINDINGS, None);
    let of_namespace = (!namespace.is_empty())
        .then(|| store.list(&kinds::ROLE_BINDINGS, Some(namespace)))
        .into_iter()
        .flatten();
    let mut held = UserGrants::default();
    for binding in of_cluster.chain(of_namespace) {
        let namespace = text(binding, "/metadata/namespace");
        let mut subjects = binding["subjects"].as_array().into_iter().flatten();
        let Some(subject) = subjects.find(|subject| means(subject, user, namespace)) else {
            continue;
        };
        match role_of(store, &binding["roleRef"], namespace) {
            Ok(role) => held.grants.push(Grant {
                binding,
                subject,
                role,
            }),
            Err(why) => held.errors.push(why),
        }
    }
    held
}

/// Whether a subject of a binding is the user or one of the user's groups.
fn means(subject: &Value, user: &User, binding_namespace: &str) -> bool {
    let name = text(subject, "/name");
    match text(subject, "/kind") {
        "User" => user.name == name,
        "Group" => user.is_in(name),
        "ServiceAccount" => {
            let own = text(subject, "/namespace");
            let namespace = if own.is_empty() {
                binding_namespace
            } else {
                own
            };
            !namespace.is_empty() && user.name == account_name(namespace, name)
        }
        _ => false,
    }
}
