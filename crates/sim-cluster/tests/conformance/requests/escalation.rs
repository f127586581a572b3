//! Nobody gives away rights that they don't have; acting as somebody else.

#![expect(
    clippy::needless_pass_by_value,
    reason = "objects are written where they are used: a reference to each says nothing"
)]

use crate::reference::script::{ApiRequest, RequestScript, get, merge, post, put, script, steps};
use serde_json::{Value, json};

const ROLES: &str = "rbac.authorization.k8s.io/v1:roles";
const BINDINGS: &str = "rbac.authorization.k8s.io/v1:rolebindings";
const JANE: &str = "${ns}-jane";

fn role(name: &str, rules: Value) -> Value {
    json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": { "name": name }, "rules": rules })
}

fn binding(name: &str, kind: &str, role: &str) -> Value {
    json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": { "name": name },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role },
        "subjects": [{ "kind": "User", "name": "${ns}-jane", "apiGroup": "rbac.authorization.k8s.io" }] })
}

fn rule(resources: &[&str], verbs: &[&str]) -> Value {
    json!([{ "apiGroups": [""], "resources": resources, "verbs": verbs }])
}

fn secrets(names: &[&str]) -> Value {
    json!([{ "apiGroups": [""], "resources": ["secrets"], "resourceNames": names, "verbs": ["get"] }])
}

/// A user who may write roles and bindings, read ConfigMaps, and read one Secret.
fn prepared() -> [ApiRequest; 4] {
    let own = json!([
        { "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"], "verbs": ["create", "update", "patch", "get", "delete"] },
        { "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"] },
        { "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["s"], "verbs": ["get"] },
    ]);
    [
        post(ROLES, role("maker", own)),
        post(ROLES, role("rich", rich())),
        post(BINDINGS, binding("maker", "Role", "maker")),
        get("configmaps/none")
            .by(JANE)
            .until(10, |object| object["code"] == 404),
    ]
}

fn rich() -> Value {
    rule(&["pods", "pods/log"], &["get", "list", "watch"])
}

pub(crate) fn all() -> Vec<RequestScript> {
    vec![of_roles(), of_bindings(), impersonation()]
}

fn of_roles() -> RequestScript {
    let [a, b, c, d] = prepared();
    let create = |label: &str, name: &str, rules: Value| {
        post(ROLES, role(name, rules)).by(JANE).called(label)
    };
    let rich_role = format!("{ROLES}/rich");
    script(
        "escalation::of_roles",
        steps![
            a,
            b,
            c,
            d,
            create("what she has", "own", rule(&["configmaps"], &["get"])),
            create(
                "more",
                "more",
                rule(&["pods", "configmaps"], &["get", "delete"])
            ),
            create("all names", "more", rule(&["secrets"], &["get"])),
            create("her name", "named", secrets(&["s"])),
            create("another name", "more", secrets(&["s", "t"])),
            create(
                "everything",
                "more",
                json!([{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }])
            ),
            put(&rich_role, role("rich", rich()))
                .by(JANE)
                .called("put unchanged"),
            merge(&rich_role, json!({}))
                .by(JANE)
                .called("patch unchanged"),
            merge(
                &rich_role,
                json!({ "metadata": { "labels": { "a": "b" } } })
            )
            .by(JANE)
            .called("a label"),
            merge(
                &rich_role,
                json!({ "metadata": { "finalizers": ["a.example/b"] } })
            )
            .by(JANE)
            .called("a finalizer"),
            merge(&rich_role, json!({ "metadata": { "finalizers": null } }))
                .by(JANE)
                .called("no finalizer"),
            merge(
                &rich_role,
                json!({ "rules": rule(&["configmaps"], &["get"]) })
            )
            .by(JANE)
            .called("poorer"),
            put(&format!("{ROLES}/new"), role("new", rich()))
                .by(JANE)
                .called("put creates"),
        ],
    )
}

fn of_bindings() -> RequestScript {
    let [a, b, c, d] = prepared();
    let bind = |label: &str, kind: &str, name: &str| {
        post(BINDINGS, binding("new", kind, name))
            .by(JANE)
            .called(label)
    };
    script(
        "escalation::of_bindings",
        steps![
            a,
            b,
            c,
            d,
            bind("more", "Role", "rich"),
            bind("all", "ClusterRole", "cluster-admin"),
            bind("none", "Role", "none"),
            bind("none of the cluster", "ClusterRole", "none"),
            post(ROLES, role("own", rule(&["configmaps"], &["get"]))),
            bind("hers", "Role", "own"),
            post(BINDINGS, binding("none", "Role", "none")).called("the administrator binds none"),
            // From now on error messages say that one of her roles is missing.
            get("pods").by(JANE).until(10, |object| object["message"]
                .as_str()
                .is_some_and(|message| message.contains("not found"))),
            post(ROLES, role("more", rich()))
                .by(JANE)
                .called("a role, with a missing one"),
        ],
    )
}

fn impersonation() -> RequestScript {
    let review = || {
        post(
            "/apis/authentication.k8s.io/v1/selfsubjectreviews",
            json!({}),
        )
        .only("/status")
    };
    script(
        "escalation::impersonation",
        steps![
            get("configmaps/a")
                .header("impersonate-group", "x")
                .called("a group alone"),
            get("configmaps/a")
                .header("impersonate-uid", "x")
                .called("a uid alone"),
            get("configmaps/a")
                .header("impersonate-extra-x", "x")
                .called("an extra alone"),
            get("configmaps/a").by("").called("nobody"),
            review()
                .by(JANE)
                .header("impersonate-group", "x")
                .called("with a group"),
            review()
                .by(JANE)
                .header("impersonate-uid", "u")
                .called("with a uid"),
            review()
                .by(JANE)
                .header("impersonate-extra-a%2fb", "x")
                .called("with an extra"),
            review().by("system:anonymous").called("anonymous"),
            review()
                .by("system:serviceaccount:${ns}:default")
                .called("an account"),
        ],
    )
}
