//! The roles of users and the sample admission policies on a real API server.

use serde_json::{Value, json};

use crate::{
    apply::apply,
    host::{Host, repository, wait_until},
    render::kustomize,
};

/// The account of fedrs in a member, as `fedrs join` names it.
const ACCOUNT: &str = "system:serviceaccount:fedrs-system:fedrs-controller-1a2b3c4d";

fn create_namespace(host: &Host, name: &str) {
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    apply(host, &namespace.to_string());
}

/// Binds a role to `user` in `namespace`.
fn bind(host: &Host, (kind, role): (&str, &str), user: &str, namespace: &str) {
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": { "name": format!("{user}-{role}").replace(':', "-"), "namespace": namespace },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
    });
    apply(host, &binding.to_string());
}

fn template() -> Value {
    json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "web", "image": "registry.example/web:1" }] },
    })
}

fn set(kind: &str, namespace: &str) -> String {
    let set = json!({
        "apiVersion": "fedrs.dev/v1alpha1",
        "kind": kind,
        "metadata": { "name": "web", "namespace": namespace },
        "spec": { "selector": { "matchLabels": { "app": "web" } }, "template": template() },
    });
    set.to_string()
}

fn policy(host: &Host, name: &str) {
    let path = repository().join("deploy/policies").join(name);
    apply(host, &std::fs::read_to_string(path).unwrap());
}

pub(crate) fn s1_users_get_their_rights_with_the_roles_of_the_cluster(host: &Host) {
    apply(host, &kustomize(host, "one"));
    create_namespace(host, "roles");
    for role in ["view", "edit", "admin"] {
        bind(host, ("ClusterRole", role), role, "roles");
    }
    let can = |user: &str, verb: &str, resource: &str| {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let (user, part) = (
            format!("--as={user}"),
            format!("--subresource={subresource}"),
        );
        let question = [
            "auth",
            "can-i",
            verb,
            resource,
            &part,
            &user,
            "--namespace=roles",
        ];
        host.kubectl(&question, "").succeeded
    };
    for (user, may_edit) in [("view", false), ("edit", true), ("admin", true)] {
        for kind in ["federatedreplicasets", "federateddeployments"] {
            let sets = &format!("{kind}.fedrs.dev");
            wait_until("the roles are aggregated", 30, || can(user, "get", sets));
            assert_eq!(can(user, "create", sets), may_edit, "{user} {kind}");
            let scale = format!("{sets}/scale");
            assert_eq!(can(user, "patch", &scale), may_edit, "{user} {kind}");
            let status = format!("{sets}/status");
            assert!(!can(user, "patch", &status), "{user} {kind}");
        }
        assert!(can(user, "list", "controllerrevisions.apps"), "{user}");
        assert!(!can(user, "get", "memberclusters.fedrs.dev"), "{user}");
    }
}

pub(crate) fn s1_users_create_sets_where_they_may_create_replica_sets(host: &Host) {
    apply(host, &kustomize(host, "one"));
    policy(host, "host.yaml");
    create_namespace(host, "allowed");
    create_namespace(host, "forbidden");
    for namespace in ["allowed", "forbidden", "kube-public"] {
        bind(host, ("ClusterRole", "fedrs-edit"), "jane", namespace);
    }
    let workloads = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": { "name": "workloads", "namespace": "allowed" },
        "rules": [{ "apiGroups": ["apps"], "resources": ["replicasets", "deployments"], "verbs": ["create"] }],
    });
    apply(host, &workloads.to_string());
    bind(host, ("Role", "workloads"), "jane", "allowed");
    for local in ["ReplicaSet", "Deployment"] {
        rejects_who_may_not_create(host, local);
    }
    host.must(&["delete", "--filename=deploy/policies/host.yaml"], "");
}

/// Jane may create workloads of this kind in `allowed`, and in no other namespace.
fn rejects_who_may_not_create(host: &Host, local: &str) {
    let kind = format!("Federated{local}");
    let create = |user: &str, namespace: &str| {
        let user = format!("--as={user}");
        let create = ["create", "--dry-run=server", "--filename=-", &user];
        host.kubectl(&create, &set(&kind, namespace))
    };
    // An API server takes some seconds to apply a policy.
    wait_until("the policy is applied", 30, || {
        !create("jane", "forbidden").succeeded
    });
    let errors = create("jane", "forbidden").errors;
    let message =
        format!("user jane needs the permission to create {local}s in namespace forbidden");
    assert!(errors.contains(&message), "{errors}");
    let allowed = create("jane", "allowed");
    assert!(allowed.succeeded, "{}", allowed.errors);
    // An administrator, who may create anything there.
    let errors = host.kubectl(
        &["create", "--dry-run=server", "--filename=-"],
        &set(&kind, "kube-public"),
    );
    let message = format!("{kind}s are not allowed in system namespaces");
    assert!(errors.errors.contains(&message), "{}", errors.errors);
}

pub(crate) fn s7_the_account_in_a_member_changes_its_own_labels_of_pods_only(host: &Host) {
    let permissions = repository().join("config/rbac/member.yaml");
    let permissions = std::fs::read_to_string(permissions).unwrap();
    let permissions = permissions.replace("fedrs-controller", "fedrs-controller-1a2b3c4d");
    apply(host, &permissions);
    policy(host, "member.yaml");
    create_namespace(host, "pods");
    // kubectl reads a pod before it patches it.
    let reader = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": { "name": "reader", "namespace": "pods" },
        "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }],
    });
    apply(host, &reader.to_string());
    bind(host, ("Role", "reader"), ACCOUNT, "pods");
    let mut pod = template();
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod["metadata"]["name"] = json!("web");
    pod["metadata"]["namespace"] = json!("pods");
    wait_until("the ServiceAccount of the pod exists", 30, || {
        host.kubectl(&["create", "--filename=-"], &pod.to_string())
            .succeeded
    });
    let patch = |patch: &Value, dry_run: &str| {
        let user = format!("--as={ACCOUNT}");
        let (kind, patch) = ("--type=strategic", format!("--patch={patch}"));
        host.kubectl(
            &[
                "patch",
                "pod",
                "web",
                "--namespace=pods",
                kind,
                &patch,
                &user,
                dry_run,
            ],
            "",
        )
    };
    let image =
        json!({ "spec": { "containers": [{ "name": "web", "image": "evil.example/web:1" }] } });
    // Not persisted: a patch that changes nothing any more is allowed.
    wait_until("the policy is applied", 30, || {
        let output = patch(&image, "--dry-run=server");
        output.errors.contains("of pods only")
    });
    for (forbidden, message) in [
        (image, "labels and annotations of pods only"),
        (
            json!({ "metadata": { "labels": { "app": "other" } } }),
            "its own labels of pods only",
        ),
        (
            json!({ "metadata": { "labels": { "app": null } } }),
            "its own labels of pods only",
        ),
        (
            json!({ "metadata": { "annotations": { "a": "b" } } }),
            "its own annotations of pods only",
        ),
        (
            json!({ "metadata": { "finalizers": ["example.com/f"] } }),
            "labels and annotations of pods only",
        ),
    ] {
        let output = patch(&forbidden, "--dry-run=none");
        assert!(
            output.errors.contains(message),
            "{forbidden}: {}",
            output.errors
        );
    }
    let own = |value: Value| {
        json!({ "metadata": {
            "labels": { "fedrs.dev/replica-set": value, "fedrs.dev/federation": value },
            "annotations": { "fedrs.dev/template-hash": value },
        } })
    };
    for value in [json!("web"), Value::Null] {
        let output = patch(&own(value), "--dry-run=none");
        assert!(output.succeeded, "{}", output.errors);
    }
    host.must(&["delete", "--filename=deploy/policies/member.yaml"], "");
}

pub(crate) fn m11_users_confirm_as_themselves_and_only_with_the_right_to(host: &Host) {
    for crd in fedrs_api::crd::local() {
        apply(host, &json!(crd).to_string());
    }
    policy(host, "confirmations.yaml");
    create_namespace(host, "machines");
    for (user, verbs) in [
        ("jane", json!(["get", "create", "patch", "confirm", "hold"])),
        ("john", json!(["get", "create", "patch"])),
    ] {
        let resources = ["migrationrequests", "migrationpolicies"];
        let rule = json!({ "apiGroups": ["fedrs.dev"], "resources": resources, "verbs": verbs });
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": { "name": user, "namespace": "machines" }, "rules": [rule],
        });
        apply(host, &role.to_string());
        bind(host, ("Role", user), user, "machines");
    }
    let request = json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "MigrationRequest",
        "metadata": { "name": "web", "namespace": "machines" }, "spec": { "podName": "web" },
    });
    wait_until("the request exists", 30, || {
        let created = host.kubectl(&["apply", "--filename=-"], &request.to_string());
        created.succeeded
    });
    let confirm = |user: &str, by: &str, dry_run: &str| {
        let confirmation = json!({ "confirmedBy": by, "machineIsDestroyed": true });
        let patch = format!(
            "--patch={}",
            json!({ "spec": { "confirmation": confirmation } })
        );
        let user = format!("--as={user}");
        let patch = [
            "patch",
            "mreq",
            "web",
            "--namespace=machines",
            "--type=merge",
            &patch,
            &user,
            dry_run,
        ];
        host.kubectl(&patch, "")
    };
    // An API server takes some seconds to apply a policy.
    wait_until("the policy is applied", 30, || {
        !confirm("john", "john", "--dry-run=server").succeeded
    });
    for (user, by, message) in [
        (
            "john",
            "john",
            "user john may not confirm migrationrequests in namespace machines",
        ),
        ("jane", "john", "spec.confirmation.confirmedBy must be jane"),
    ] {
        let output = confirm(user, by, "--dry-run=none");
        assert!(output.errors.contains(message), "{user}: {}", output.errors);
    }
    let output = confirm("jane", "jane", "--dry-run=none");
    assert!(output.succeeded, "{}", output.errors);
    let output = confirm("jane", "john", "--dry-run=none");
    assert!(
        output.errors.contains("stays confirmed"),
        "{}",
        output.errors
    );
    m4_users_confirm_activation_and_shutdown_as_themselves(host);
    m7_users_have_pods_wait_for_persons_only_with_the_right_to(host);
    // Whoever changes something else confirms nothing.
    let cancel = [
        "patch",
        "mreq",
        "web",
        "--namespace=machines",
        "--type=merge",
        "--patch={\"spec\":{\"cancel\":true}}",
        "--as=john",
    ];
    host.must(&cancel, "");
    host.must(
        &["delete", "--filename=deploy/policies/confirmations.yaml"],
        "",
    );
}

fn m4_users_confirm_activation_and_shutdown_as_themselves(host: &Host) {
    for field in ["activationConfirmedBy", "shutdownConfirmedBy"] {
        let confirm = |user: &str, by: &str| {
            let patch = format!("--patch={}", json!({ "spec": { field: by } }));
            let (namespace, user) = ("--namespace=machines", format!("--as={user}"));
            let patch = [
                "patch",
                "mreq",
                "web",
                namespace,
                "--type=merge",
                &patch,
                &user,
            ];
            host.kubectl(&patch, "")
        };
        let output = confirm("john", "john");
        let message = "user john may not confirm migrationrequests in namespace machines";
        assert!(output.errors.contains(message), "{}", output.errors);
        let output = confirm("jane", "john");
        let message = format!("spec.{field} must be jane");
        assert!(output.errors.contains(&message), "{}", output.errors);
        assert!(confirm("jane", "jane").succeeded);
        let output = confirm("jane", "john");
        assert!(
            output.errors.contains("stays confirmed"),
            "{}",
            output.errors
        );
    }
}

fn m7_users_have_pods_wait_for_persons_only_with_the_right_to(host: &Host) {
    for (name, spec) in [
        ("manual", json!({ "method": "Manual" })),
        (
            "hands-up",
            json!({ "shutdown": { "onTimeout": "HandsUp" } }),
        ),
    ] {
        let policy = json!({
            "apiVersion": "fedrs.dev/v1alpha1", "kind": "MigrationPolicy",
            "metadata": { "name": name, "namespace": "machines" }, "spec": spec,
        });
        let create = |user: &str| {
            let user = format!("--as={user}");
            host.kubectl(&["create", "--filename=-", &user], &policy.to_string())
        };
        let output = create("john");
        let message = "user john may not have pods wait for persons";
        assert!(output.errors.contains(message), "{}", output.errors);
        let output = create("jane");
        assert!(output.succeeded, "{}", output.errors);
        // Whoever changes something else does not need the right.
        let patch = "--patch={\"spec\":{\"deadlineSeconds\":3600}}";
        let change = [
            "patch",
            "mpol",
            name,
            "--namespace=machines",
            "--type=merge",
            patch,
            "--as=john",
        ];
        host.must(&change, "");
    }
}
