//! The rules as tables: one store of roles and bindings, and who may do what by it.

use serde_json::{Value, json};

use super::*;
use crate::authentication::User;
use crate::resources::{Kind, kinds};
use crate::store::Store;

const GROUP: &str = "rbac.authorization.k8s.io";

fn put(store: &mut Store, kind: &Kind, namespace: &str, mut object: Value) {
    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
    object["kind"] = json!(kind.kind);
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = json!(namespace);
    }
    store.put(kind, namespace, &name, object);
}

fn cluster_role(store: &mut Store, name: &str, rules: &Value) {
    let role = json!({"metadata": {"name": name}, "rules": rules});
    put(store, &kinds::CLUSTER_ROLES, "", role);
}

/// Binds a role to a subject, in a namespace or (empty) everywhere.
fn bind(store: &mut Store, namespace: &str, role: (&str, &str), subject: &Value) {
    let kind = if namespace.is_empty() {
        &kinds::CLUSTER_ROLE_BINDINGS
    } else {
        &kinds::ROLE_BINDINGS
    };
    let binding = json!({
        "metadata": {"name": format!("b-{}", role.1)}, "subjects": [subject],
        "roleRef": {"apiGroup": GROUP, "kind": role.0, "name": role.1},
    });
    put(store, kind, namespace, binding);
}

fn store() -> Store {
    let mut store = Store::new(64);
    for (kind, namespace, object) in standard_objects() {
        put(&mut store, kind, namespace, object);
    }
    cluster_role(
        &mut store,
        "reader",
        &json!([
            {"apiGroups": [""], "resources": ["pods", "pods/log", "*/status"], "verbs": ["get", "list"]},
            {"apiGroups": ["apps"], "resources": ["*"], "verbs": ["*"]},
            {"apiGroups": ["*"], "resources": ["things"], "resourceNames": ["a", "b"], "verbs": ["get", "delete"]},
            {"nonResourceURLs": ["/metrics", "/debug/*"], "verbs": ["get"]},
        ]),
    );
    let account = json!({"kind": "ServiceAccount", "name": "robot", "namespace": "x"});
    bind(&mut store, "", ("ClusterRole", "reader"), &account);
    let writer = json!({"metadata": {"name": "writer"}, "rules": [
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create", "update"]}]});
    put(&mut store, &kinds::ROLES, "z", writer);
    // Without a namespace the account is one of the binding's.
    let local = json!({"kind": "ServiceAccount", "name": "robot"});
    bind(&mut store, "z", ("Role", "writer"), &local);
    let everyone_of_x = json!({"kind": "Group", "name": "system:serviceaccounts:x"});
    bind(&mut store, "z", ("ClusterRole", "reader"), &everyone_of_x);
    let alice = json!({"kind": "User", "name": "alice"});
    bind(&mut store, "", ("ClusterRole", "gone"), &alice);
    store
}

/// `verb resource[.group][/subresource] [namespace[/name]]`, or `verb /path`.
fn attributes(text: &str) -> Attributes {
    let words: Vec<&str> = text.split(' ').collect();
    if words[1].starts_with('/') {
        return Attributes {
            verb: words[0].to_owned(),
            target: Target::Path(words[1].to_owned()),
        };
    }
    let (resource, subresource) = words[1].split_once('/').unwrap_or((words[1], ""));
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    let place = words.get(2).copied().unwrap_or_default();
    let (namespace, name) = place.split_once('/').unwrap_or((place, ""));
    Attributes {
        verb: words[0].to_owned(),
        target: Target::Resource {
            group: group.to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        },
    }
}

#[test]
fn rules_allow_only_the_listed_targets() {
    let store = store();
    let robot = User::service_account("x", "robot");
    for (asked, allowed) in [
        ("get pods z/p", true),
        ("list pods", true),
        ("watch pods", false),
        ("get pods/log z/p", true),
        ("get pods/exec z/p", false),
        // The subresource of all resources, and not the resources themselves.
        ("get nodes/status /n", true),
        ("get nodes /n", false),
        ("get replicasets z/r", false),
        ("patch replicasets.apps/scale z/r", true),
        ("impersonate anything.apps", true),
        ("delete things.example.org z/a", true),
        ("delete things z/b", true),
        ("delete things z/c", false),
        ("list things z", false),
        ("get /metrics", true),
        ("get /metrics/more", false),
        ("get /debug/pprof", true),
        ("post /metrics", false),
        // From the groups that every account is in.
        ("get /apis/apps/v1", true),
        ("create selfsubjectaccessreviews.authorization.k8s.io", true),
        ("create subjectaccessreviews.authorization.k8s.io", false),
        // The role binding of z is for z's own robot.
        ("create secrets z", false),
    ] {
        let decision = decide(&store, &robot, &attributes(asked));
        assert_eq!(decision.allowed, allowed, "{asked}: {}", decision.reason);
    }
}

#[test]
fn bindings_mean_users_groups_and_accounts() {
    let store = store();
    for (user, asked, allowed) in [
        (User::administrator(), "delete nodes /n", true),
        (User::administrator(), "post /anything", true),
        (User::anonymous(), "get /healthz", true),
        (User::anonymous(), "get /version", true),
        (User::anonymous(), "get /api", false),
        (User::anonymous(), "list pods", false),
        (User::named("alice", &[]), "get /api", true),
        (User::named("alice", &[]), "list pods", false),
        (
            User::service_account("z", "robot"),
            "create secrets z",
            true,
        ),
        (
            User::service_account("z", "robot"),
            "create secrets y",
            false,
        ),
        (User::service_account("z", "robot"), "create secrets", false),
        (
            User::service_account("z", "other"),
            "create secrets z",
            false,
        ),
        // By their group, in one namespace.
        (User::service_account("x", "other"), "list pods z", true),
        (User::service_account("x", "other"), "list pods y", false),
        // A rule for paths is worth nothing in a namespace's binding.
        (User::service_account("x", "other"), "get /metrics", false),
    ] {
        let decision = decide(&store, &user, &attributes(asked));
        assert_eq!(decision.allowed, allowed, "{} {asked}", user.name);
    }
}

#[test]
fn decisions_and_rejections_have_the_messages_of_the_api_server() {
    let store = store();
    let reason = |user: &User, asked: &str| decide(&store, user, &attributes(asked)).reason;
    let robot = User::service_account("x", "robot");
    assert_eq!(
        reason(&robot, "list pods"),
        "RBAC: allowed by ClusterRoleBinding \"b-reader\" of ClusterRole \"reader\" to ServiceAccount \"robot/x\""
    );
    assert_eq!(
        reason(&User::service_account("z", "robot"), "create secrets z"),
        "RBAC: allowed by RoleBinding \"b-writer/z\" of Role \"writer\" to ServiceAccount \"robot/z\""
    );
    let refusal = |user: &User, asked: &str| {
        let status = authorize(&store, user, &attributes(asked)).unwrap_err();
        (
            status.message,
            status.details.unwrap_or_default().to_value(),
        )
    };
    let x = User::service_account("x", "y");
    for (user, asked, message, details) in [
        (
            &x,
            "list secrets z",
            "secrets is forbidden: User \"system:serviceaccount:x:y\" cannot list resource \"secrets\" in API group \
             \"\" in the namespace \"z\"",
            json!({"kind": "secrets"}),
        ),
        (
            &x,
            "patch deployments.apps/scale y/d",
            "deployments.apps \"d\" is forbidden: User \"system:serviceaccount:x:y\" cannot patch resource \
             \"deployments/scale\" in API group \"apps\" in the namespace \"y\"",
            json!({"name": "d", "group": "apps", "kind": "deployments"}),
        ),
        (
            &User::named("alice", &[]),
            "list nodes",
            "nodes is forbidden: User \"alice\" cannot list resource \"nodes\" in API group \"\" at the cluster scope: \
             RBAC: clusterrole.rbac.authorization.k8s.io \"gone\" not found",
            json!({"kind": "nodes"}),
        ),
        (
            &User::anonymous(),
            "get /",
            "forbidden: User \"system:anonymous\" cannot get path \"/\"",
            json!({}),
        ),
    ] {
        assert_eq!(
            refusal(user, asked),
            (message.to_owned(), details),
            "{asked}"
        );
    }
}

#[test]
fn all_rules_of_a_user_can_be_listed() {
    let rules = rules_of(&store(), &User::service_account("z", "robot"), "z");
    assert_eq!(
        rules["resourceRules"][2],
        json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["create", "update"]})
    );
    let paths = rules["nonResourceRules"].as_array().unwrap();
    assert_eq!(paths.len(), 2, "discovery and public information");
    assert_eq!(rules["incomplete"], json!(false));
}

/// The permissions that a user lacks to write or bind this role; empty if it is allowed.
fn refused(user: &User, kind: &Kind, object: &Value) -> String {
    let mut store = store();
    cluster_role(
        &mut store,
        "binder",
        &json!([{"apiGroups": [GROUP], "resources": ["clusterroles"], "resourceNames": ["admin"],
            "verbs": ["bind", "escalate"]}]),
    );
    cluster_role(
        &mut store,
        "admin",
        &json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]),
    );
    let boss = json!({"kind": "User", "name": "boss"});
    bind(&mut store, "", ("ClusterRole", "binder"), &boss);
    let checked = check_escalation(&store, user, kind, None, object);
    checked.err().map_or(String::new(), |status| status.message)
}

#[test]
fn users_cannot_grant_permissions_they_do_not_have() {
    let robot = User::service_account("x", "robot");
    let role = |rules: Value| json!({"metadata": {"name": "new"}, "rules": rules});
    let own = json!([
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
        {"apiGroups": ["apps"], "resources": ["daemonsets", "x/y"], "verbs": ["drive"]},
        {"apiGroups": ["a"], "resources": ["things"], "resourceNames": ["a"], "verbs": ["get"]},
        {"nonResourceURLs": ["/debug/x", "/metrics"], "verbs": ["get"]},
    ]);
    assert_eq!(refused(&robot, &kinds::CLUSTER_ROLES, &role(own)), "");
    let more = json!([
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "delete", "create"]},
        {"apiGroups": ["a"], "resources": ["things"], "verbs": ["get"]},
        {"nonResourceURLs": ["/debugging"], "verbs": ["get"]},
    ]);
    assert_eq!(
        refused(&robot, &kinds::CLUSTER_ROLES, &role(more.clone())),
        "clusterroles.rbac.authorization.k8s.io \"new\" is forbidden: user \"system:serviceaccount:x:robot\" \
         (groups=[\"system:serviceaccounts\" \"system:serviceaccounts:x\" \"system:authenticated\"]) is attempting \
         to grant RBAC permissions not currently held:\n\
         {APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\" \"create\"]}\n\
         {APIGroups:[\"a\"], Resources:[\"things\"], Verbs:[\"get\"]}\n\
         {NonResourceURLs:[\"/debugging\"], Verbs:[\"get\"]}"
    );
    let administrator = User::administrator();
    assert_eq!(
        refused(&administrator, &kinds::CLUSTER_ROLES, &role(more)),
        ""
    );

    let binding = |role: &str| json!({"metadata": {"name": "new"}, "roleRef": {"kind": "ClusterRole", "name": role}});
    let kind = &kinds::CLUSTER_ROLE_BINDINGS;
    assert_eq!(refused(&robot, kind, &binding("reader")), "");
    let refusal = refused(&robot, kind, &binding("admin"));
    assert!(
        refusal.ends_with("{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}"),
        "{refusal}"
    );
    let boss = User::named("boss", &[]);
    assert_eq!(
        refused(&boss, kind, &binding("admin")),
        "",
        "it may bind that one"
    );
    assert_ne!(refused(&boss, kind, &binding("reader")), "");
    assert_eq!(
        refused(&robot, kind, &binding("none")),
        "clusterrolebindings.rbac.authorization.k8s.io \"none\" not found"
    );
    assert_eq!(
        refused(&robot, &kinds::CONFIG_MAPS, &json!({})),
        "",
        "no role"
    );
}
