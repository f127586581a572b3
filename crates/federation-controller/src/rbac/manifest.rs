//! The objects that grant a controller its permissions: a ServiceAccount, and roles bound to it.

use std::fmt::Write as _;

use fedrs_api::names;
use k8s_openapi::{
    api::{
        core::v1::{Namespace, ServiceAccount},
        rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding, RoleRef, Subject},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use serde::Serialize;
use serde_json::Value;

use super::{Grant, rules};

/// What the account is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The controller itself runs as it.
    Host,
    /// The controller works on a member as it.
    Member,
}

/// An account for a controller, and its rights in one cluster. Account, roles and bindings all have the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Which rights it needs.
    pub place: Place,
    /// The account's namespace, a DNS label.
    pub namespace: String,
    /// The account's name, a DNS label.
    pub name: String,
}

/// One object.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// The object without its rules.
    object: Value,
    /// The rules of a role.
    grants: Vec<Grant>,
}

impl Access {
    /// The account `fedrs-controller` in the usual namespace.
    pub fn usual(place: Place) -> Self {
        Self {
            place,
            namespace: names::SYSTEM_NAMESPACE.to_owned(),
            name: names::CONTROLLER.to_owned(),
        }
    }

    /// All objects, in the order in which they are to be created: roles come before what binds them.
    pub fn manifests(&self) -> Vec<Manifest> {
        let (cluster, own) = match self.place {
            Place::Host => (rules::host(), rules::host_namespace()),
            Place::Member => (
                rules::member(&self.name),
                rules::member_namespace(&self.name),
            ),
        };
        let namespace = Namespace {
            metadata: ObjectMeta {
                name: Some(self.namespace.clone()),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        };
        let cluster_role = ClusterRole {
            metadata: self.anywhere(),
            ..ClusterRole::default()
        };
        let account = ServiceAccount {
            metadata: self.inside(),
            ..ServiceAccount::default()
        };
        let cluster_role_binding = ClusterRoleBinding {
            metadata: self.anywhere(),
            role_ref: self.role("ClusterRole"),
            subjects: Some(vec![self.subject()]),
        };
        let role = Role {
            metadata: self.inside(),
            ..Role::default()
        };
        let role_binding = RoleBinding {
            metadata: self.inside(),
            role_ref: self.role("Role"),
            subjects: Some(vec![self.subject()]),
        };
        vec![
            Manifest::plain(&namespace),
            Manifest::with_rules(&cluster_role, cluster),
            Manifest::plain(&account),
            Manifest::plain(&cluster_role_binding),
            Manifest::with_rules(&role, own),
            Manifest::plain(&role_binding),
        ]
    }

    /// All objects as one YAML text, each rule below its reason, as `kubectl apply -f -` takes it.
    pub fn to_yaml(&self) -> String {
        let documents = self.manifests();
        documents
            .iter()
            .map(|manifest| ["---\n".to_owned(), manifest.to_yaml()].concat())
            .collect()
    }

    fn anywhere(&self) -> ObjectMeta {
        ObjectMeta {
            name: Some(self.name.clone()),
            ..ObjectMeta::default()
        }
    }

    fn inside(&self) -> ObjectMeta {
        ObjectMeta {
            namespace: Some(self.namespace.clone()),
            ..self.anywhere()
        }
    }

    fn role(&self, kind: &str) -> RoleRef {
        RoleRef {
            api_group: "rbac.authorization.k8s.io".to_owned(),
            kind: kind.to_owned(),
            name: self.name.clone(),
        }
    }

    fn subject(&self) -> Subject {
        Subject {
            kind: "ServiceAccount".to_owned(),
            name: self.name.clone(),
            namespace: Some(self.namespace.clone()),
            ..Subject::default()
        }
    }
}

impl Manifest {
    fn plain(object: &impl Serialize) -> Self {
        Self::with_rules(object, Vec::new())
    }

    fn with_rules(object: &impl Serialize, grants: Vec<Grant>) -> Self {
        let mut object = serde_json::to_value(object).expect("an object is plain data");
        if let Some(fields) = object.as_object_mut() {
            fields.remove("rules");
        }
        Self { object, grants }
    }

    /// The rules of a role, with their reasons; none for other objects.
    pub fn grants(&self) -> &[Grant] {
        &self.grants
    }

    /// The object as an API server takes it.
    pub fn to_value(&self) -> Value {
        let mut object = self.object.clone();
        if !self.grants.is_empty() {
            let rules = self.grants.iter().map(|grant| to_value(&grant.rule));
            object["rules"] = rules.collect();
        }
        object
    }

    /// The object as YAML, each rule below its reason.
    pub fn to_yaml(&self) -> String {
        let mut text = yaml(&self.object);
        if !self.grants.is_empty() {
            text.push_str("rules:\n");
        }
        for Grant { why, rule } in &self.grants {
            let _ = write!(text, "# {why}.\n{}", yaml(&[rule]));
        }
        text
    }
}

fn to_value(data: &impl Serialize) -> Value {
    serde_json::to_value(data).expect("a rule is plain data")
}

fn yaml(data: &impl Serialize) -> String {
    serde_saphyr::to_string(data).expect("manifests are made of strings, lists and maps")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(place: Place) -> Access {
        Access {
            place,
            namespace: "system".to_owned(),
            name: "controller".to_owned(),
        }
    }

    #[test]
    fn the_yaml_is_what_is_sent() {
        for place in [Place::Host, Place::Member] {
            for manifest in access(place).manifests() {
                let read: Value = serde_saphyr::from_str(&manifest.to_yaml()).unwrap();
                assert_eq!(read, manifest.to_value(), "{place:?}");
            }
        }
    }

    #[test]
    fn no_rule_is_given_twice_and_none_is_a_wildcard() {
        for place in [Place::Host, Place::Member] {
            for manifest in access(place).manifests() {
                let mut given = std::collections::BTreeSet::new();
                for Grant { why, rule } in manifest.grants() {
                    let resources = rule.resources.iter().chain(&rule.non_resource_urls);
                    for resource in resources.flatten() {
                        for verb in &rule.verbs {
                            assert!(![verb, resource].contains(&&"*".to_owned()), "{why}");
                            assert!(given.insert((resource, verb)), "{verb} {resource}: {why}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn bindings_bind_the_role_of_their_name_to_the_account() {
        let objects: Vec<Value> = access(Place::Member)
            .manifests()
            .iter()
            .map(Manifest::to_value)
            .collect();
        for (binding, role) in [
            ("ClusterRoleBinding", "ClusterRole"),
            ("RoleBinding", "Role"),
        ] {
            let binding = objects.iter().find(|it| it["kind"] == binding).unwrap();
            assert_eq!(binding["roleRef"]["kind"], role);
            assert_eq!(binding["roleRef"]["name"], "controller");
            assert_eq!(binding["subjects"][0]["namespace"], "system");
        }
    }
}
