//! The objects that grant a controller its permissions: a ServiceAccount, and roles bound to it, whose rules have reasons.

use std::fmt::Write as _;

use k8s_openapi::api::rbac::v1::PolicyRule;
use serde::Serialize;
use serde_json::{Value, json};

const RBAC_V1: &str = "rbac.authorization.k8s.io/v1";
/// The API group of roles.
pub const RBAC: &str = "rbac.authorization.k8s.io";

/// A rule, and its reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    /// The requests that need it, in the imperative, without a full stop.
    pub why: &'static str,
    /// The rule.
    pub rule: PolicyRule,
}

/// A ServiceAccount. Its roles and bindings all have its name.
#[derive(Clone, Copy, Debug)]
pub struct Account<'a> {
    /// Its namespace, a DNS label.
    pub namespace: &'a str,
    /// Its name, a DNS label.
    pub name: &'a str,
}

/// One object.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// The object without its rules.
    object: Value,
    /// The rules of a role.
    grants: Vec<Grant>,
}

impl Account<'_> {
    /// Its namespace, itself, what it may do in the cluster, and in its own namespace: in the order in which they are to be created,
    /// as roles come before what binds them.
    #[must_use]
    pub fn manifests(&self, cluster: Vec<Grant>, own: Vec<Grant>) -> Vec<Manifest> {
        let inside = json!({ "name": self.name, "namespace": self.namespace });
        let mut manifests = self.in_cluster(cluster);
        manifests.push(Manifest::role("Role", &inside, own));
        manifests.push(self.binding("Role", &inside));
        manifests
    }

    /// Its namespace, itself, and what it may do in the cluster, in the order in which they are to be created.
    #[must_use]
    pub fn in_cluster(&self, cluster: Vec<Grant>) -> Vec<Manifest> {
        let anywhere = json!({ "name": self.name });
        let inside = json!({ "name": self.name, "namespace": self.namespace });
        let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": inside });
        vec![
            Manifest::namespace(self.namespace),
            Manifest::role("ClusterRole", &anywhere, cluster),
            Manifest::plain(account),
            self.binding("ClusterRole", &anywhere),
        ]
    }

    /// Its namespace, itself, and what it may do in that namespace, in the order in which they are to be created.
    #[must_use]
    pub fn in_own_namespace(&self, own: Vec<Grant>) -> Vec<Manifest> {
        let inside = json!({ "name": self.name, "namespace": self.namespace });
        let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": inside });
        vec![
            Manifest::namespace(self.namespace),
            Manifest::role("Role", &inside, own),
            Manifest::plain(account),
            self.binding("Role", &inside),
        ]
    }

    /// The namespace, what the account may do in it, and that it may.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str, grants: Vec<Grant>) -> [Manifest; 3] {
        let inside = json!({ "name": self.name, "namespace": namespace });
        [
            Manifest::namespace(namespace),
            Manifest::role("Role", &inside, grants),
            self.binding("Role", &inside),
        ]
    }

    /// A further role in the cluster, `NAME-SUFFIX`, and that the account has it: for what only some processes need.
    #[must_use]
    pub fn further_role(&self, suffix: &str, grants: Vec<Grant>) -> Vec<Manifest> {
        let name = format!("{}-{suffix}", self.name);
        let metadata = json!({ "name": name });
        vec![
            Manifest::role("ClusterRole", &metadata, grants),
            self.bound(("ClusterRole", &name), &metadata),
        ]
    }

    /// A further role in its own namespace, of this name, and that the account has it.
    #[must_use]
    pub fn further_role_inside(&self, name: &str, grants: Vec<Grant>) -> [Manifest; 2] {
        let metadata = json!({ "name": name, "namespace": self.namespace });
        [
            Manifest::role("Role", &metadata, grants),
            self.bound(("Role", name), &metadata),
        ]
    }

    fn binding(&self, role: &str, metadata: &Value) -> Manifest {
        self.bound((role, self.name), metadata)
    }

    fn bound(&self, (role, name): (&str, &str), metadata: &Value) -> Manifest {
        Manifest::plain(json!({
            "apiVersion": RBAC_V1,
            "kind": format!("{role}Binding"),
            "metadata": metadata,
            "roleRef": { "apiGroup": RBAC, "kind": role, "name": name },
            "subjects": [{ "kind": "ServiceAccount", "name": self.name, "namespace": self.namespace }],
        }))
    }
}

/// All objects as one YAML text, each rule below its reason, as `kubectl apply -f -` takes it.
#[must_use]
pub fn to_yaml(manifests: &[Manifest]) -> String {
    manifests
        .iter()
        .map(|manifest| ["---\n".to_owned(), manifest.to_yaml()].concat())
        .collect()
}

impl Manifest {
    fn plain(object: Value) -> Self {
        let grants = Vec::new();
        Self { object, grants }
    }

    fn namespace(name: &str) -> Self {
        let metadata = json!({ "name": name });
        Self::plain(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata }))
    }

    fn role(kind: &str, metadata: &Value, grants: Vec<Grant>) -> Self {
        let object = json!({ "apiVersion": RBAC_V1, "kind": kind, "metadata": metadata });
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

/// The rule for all objects of a kind, by its API group and its resource.
#[must_use]
pub fn grant(why: &'static str, resource: (&str, &str), verbs: &[&str]) -> Grant {
    named(why, resource, &[], verbs)
}

/// For the objects of these names only; for all objects if there are none.
#[must_use]
pub fn named(
    why: &'static str,
    (group, resource): (&str, &str),
    names: &[&str],
    verbs: &[&str],
) -> Grant {
    let rule = PolicyRule {
        api_groups: Some(list(&[group])),
        resources: Some(list(&[resource])),
        resource_names: (!names.is_empty()).then(|| list(names)),
        verbs: list(verbs),
        ..PolicyRule::default()
    };
    Grant { why, rule }
}

/// Words as the fields of a rule have them.
#[must_use]
pub fn list(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}
