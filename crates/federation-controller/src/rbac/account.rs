//! The account of the controller in one cluster.

use controller_base::rbac::{Account, Grant, Manifest, to_yaml};
use fedrs_api::{ClusterType, names};

use super::rules;

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
            ClusterType::Host => (on_host(), rules::host_namespace()),
            ClusterType::Member => (self.in_cluster(), rules::member_namespace(&self.name)),
        };
        let account = Account {
            namespace: &self.namespace,
            name: &self.name,
        };
        let mut manifests = account.manifests(cluster, own);
        for name in self.namespaces.iter().flatten() {
            manifests.extend(account.in_namespace(name, in_namespaces()));
        }
        manifests
    }

    /// The permissions in all namespaces of a member. An account that is restricted to namespaces changes no nodes.
    fn in_cluster(&self) -> Vec<Grant> {
        let mut grants = rules::member_cluster(&self.name);
        if self.namespaces.is_none() {
            grants.extend(in_namespaces());
            grants.extend(rules::member_namespaces());
            grants.extend(maintenance::rbac::member());
        }
        grants
    }

    /// All objects as one YAML text, each rule below its reason, as `kubectl apply -f -` takes it.
    pub fn to_yaml(&self) -> String {
        to_yaml(&self.manifests())
    }
}

/// The permissions in all namespaces of the host.
fn on_host() -> Vec<Grant> {
    let mut grants = rules::host();
    grants.extend(maintenance::rbac::host());
    grants.extend(availability::rbac::host());
    grants
}

/// The permissions in the namespaces of a member in which local workloads may be.
fn in_namespaces() -> Vec<Grant> {
    let mut grants = rules::member_workloads();
    grants.extend(availability::rbac::member());
    grants
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

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
