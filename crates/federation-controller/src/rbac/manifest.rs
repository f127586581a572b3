//! The objects that grant a controller its permissions: a ServiceAccount, and roles bound to it.

use std::fmt::Write as _;

use fedrs_api::{ClusterType, names};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Grant, rules};

const RBAC_V1: &str = "rbac.authorization.k8s.io/v1";

/// An account for a controller, and its permissions in one cluster. Account, roles and bindings all have the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerAccount {
    /// The cluster: the controller runs as the account on the host, and sends its requests to a member as it.
    pub cluster: ClusterType,
    /// The account's namespace, a DNS label.
    pub namespace: String,
    /// The account's name, a DNS label.
    pub name: String,
    /// In a member: the namespaces in which local ReplicaSets may be; all if there is none.
    pub namespaces: Option<Vec<String>>,
}

/// One object.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// The object without its rules.
    object: Value,
    /// The rules of a role.
    grants: Vec<Grant>,
}

impl ControllerAccount {
    /// The account `fedrs-controller` in the usual namespace.
    pub fn usual(cluster: ClusterType) -> Self {
        Self {
            cluster,
            namespace: names::SYSTEM_NAMESPACE.to_owned(),
            name: names::CONTROLLER.to_owned(),
            namespaces: None,
        }
    }

    /// All objects, in the order in which they are to be created: roles come before what binds them.
    pub fn manifests(&self) -> Vec<Manifest> {
        let (cluster, own) = match self.cluster {
            ClusterType::Host => (rules::host(), rules::host_namespace()),
            ClusterType::Member => (self.in_cluster(), rules::member_namespace(&self.name)),
        };
        let anywhere = json!({ "name": self.name });
        let in_namespace = |namespace: &str| json!({ "name": self.name, "namespace": namespace });
        let inside = in_namespace(&self.namespace);
        let plain = |object| Manifest {
            object,
            grants: Vec::new(),
        };
        let role = |kind: &str, metadata: &Value, grants| Manifest {
            object: json!({ "apiVersion": RBAC_V1, "kind": kind, "metadata": metadata }),
            grants,
        };
        let binding = |role: &str, metadata: &Value| {
            plain(json!({
                "apiVersion": RBAC_V1,
                "kind": format!("{role}Binding"),
                "metadata": metadata,
                "roleRef": { "apiGroup": rules::RBAC, "kind": role, "name": self.name },
                "subjects": [{ "kind": "ServiceAccount", "name": self.name, "namespace": self.namespace }],
            }))
        };
        let namespace = |name: &str| {
            plain(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }))
        };
        let mut manifests = vec![
            namespace(&self.namespace),
            role("ClusterRole", &anywhere, cluster),
            plain(json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": inside })),
            binding("ClusterRole", &anywhere),
            role("Role", &inside, own),
            binding("Role", &inside),
        ];
        for name in self.namespaces.iter().flatten() {
            let inside = in_namespace(name);
            let role = role("Role", &inside, rules::member_workloads());
            manifests.extend([namespace(name), role, binding("Role", &inside)]);
        }
        manifests
    }

    /// The permissions in all namespaces of a member.
    fn in_cluster(&self) -> Vec<Grant> {
        let mut grants = rules::member_cluster(&self.name);
        if self.namespaces.is_none() {
            grants.extend(rules::member_workloads());
            grants.extend(rules::member_namespaces());
        }
        grants
    }

    /// All objects as one YAML text, each rule below its reason, as `kubectl apply -f -` takes it.
    pub fn to_yaml(&self) -> String {
        let documents = self.manifests();
        documents
            .iter()
            .map(|manifest| ["---\n".to_owned(), manifest.to_yaml()].concat())
            .collect()
    }
}

impl Manifest {
    /// The rules of a role, with their reasons; none for other objects.
    pub fn grants(&self) -> &[Grant] {
        &self.grants
    }

    /// The object as an API server takes it.
    pub fn to_value(&self) -> Value {
        let mut object = self.object.clone();
        if !self.grants.is_empty() {
            object["rules"] = self.grants.iter().map(|grant| json!(grant.rule)).collect();
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

fn yaml(data: &impl Serialize) -> String {
    serde_saphyr::to_string(data).expect("manifests are made of strings, lists and maps")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(cluster: ClusterType) -> ControllerAccount {
        ControllerAccount {
            cluster,
            namespace: "system".to_owned(),
            name: "controller".to_owned(),
            namespaces: None,
        }
    }

    #[test]
    fn the_yaml_is_what_is_sent() {
        for cluster in [ClusterType::Host, ClusterType::Member] {
            for manifest in account(cluster).manifests() {
                let read: Value = serde_saphyr::from_str(&manifest.to_yaml()).unwrap();
                assert_eq!(read, manifest.to_value(), "{cluster:?}");
            }
        }
    }

    #[test]
    fn no_rule_is_given_twice_and_none_is_a_wildcard() {
        for cluster in [ClusterType::Host, ClusterType::Member] {
            for manifest in account(cluster).manifests() {
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
        let objects: Vec<Value> = account(ClusterType::Member)
            .manifests()
            .iter()
            .map(Manifest::to_value)
            .collect();
        for (binding, role) in [
            ("ClusterRoleBinding", "ClusterRole"),
            ("RoleBinding", "Role"),
        ] {
            let binding = objects
                .iter()
                .find(|object| object["kind"] == binding)
                .unwrap();
            assert_eq!(binding["roleRef"]["kind"], role);
            assert_eq!(binding["roleRef"]["name"], "controller");
            assert_eq!(binding["subjects"][0]["namespace"], "system");
        }
    }
}
