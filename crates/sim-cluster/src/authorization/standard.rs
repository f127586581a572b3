//! The default roles and bindings of a cluster: those that users need.
//!
//! The API server has some seventy more for its own components, which have all permissions here.

use serde_json::{Value, json};

use crate::resources::{Kind, kinds};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Roles that each group has: name, rules, groups.
fn roles() -> [(&'static str, Value, &'static [&'static str]); 4] {
    let health = ["/healthz", "/livez", "/readyz", "/version", "/version/"];
    let discovery = [
        "/api",
        "/api/*",
        "/apis",
        "/apis/*",
        "/healthz",
        "/livez",
        "/openapi",
        "/openapi/*",
        "/readyz",
        "/version",
        "/version/",
    ];
    [
        (
            "cluster-admin",
            json!([
                {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
                {"nonResourceURLs": ["*"], "verbs": ["*"]},
            ]),
            &["system:masters"],
        ),
        (
            "system:basic-user",
            json!([
                {"apiGroups": ["authorization.k8s.io"], "verbs": ["create"],
                    "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]},
                {"apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"], "verbs": ["create"]},
            ]),
            &["system:authenticated"],
        ),
        (
            "system:discovery",
            json!([{"nonResourceURLs": discovery, "verbs": ["get"]}]),
            &["system:authenticated"],
        ),
        (
            "system:public-info-viewer",
            json!([{"nonResourceURLs": health, "verbs": ["get"]}]),
            &["system:authenticated", "system:unauthenticated"],
        ),
    ]
}

/// The objects, roles first.
pub(crate) fn standard_objects() -> Vec<(&'static Kind, &'static str, Value)> {
    let metadata = |name: &str| {
        json!({
            "name": name,
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
            "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        })
    };
    let mut objects: Vec<(&'static Kind, &'static str, Value)> = Vec::new();
    for (name, rules, groups) in roles() {
        let role = json!({"metadata": metadata(name), "rules": rules});
        objects.push((&kinds::CLUSTER_ROLES, "", role));
        let subjects: Vec<Value> = groups
            .iter()
            .map(|group| json!({"apiGroup": GROUP, "kind": "Group", "name": group}))
            .collect();
        let binding = json!({
            "metadata": metadata(name), "subjects": subjects,
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name},
        });
        objects.push((&kinds::CLUSTER_ROLE_BINDINGS, "", binding));
    }
    objects
}
