//! The manifests on a real API server.

use serde_json::json;

use crate::{
    host::Host,
    objects::{pod_of, read},
    render::{NAMESPACE, kustomize, template},
};

/// Server-side, each field known to the server, whoever applied before.
fn apply(host: &Host, objects: &str) {
    let arguments = [
        "apply",
        "--server-side",
        "--validate=strict",
        "--force-conflicts",
        "--filename=-",
    ];
    host.must(&arguments, objects);
}

pub(crate) fn both_overlays_and_the_chart_without_a_warning(host: &Host) {
    for rendered in [
        kustomize(host, "three"),
        template(host, &[]),
        kustomize(host, "one"),
    ] {
        apply(host, &rendered);
    }
}

pub(crate) fn pods_are_admitted_where_pod_security_is_restricted(host: &Host) {
    apply(host, &kustomize(host, "one"));
    let namespace = host.get(&["namespace", NAMESPACE]);
    assert_eq!(
        namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"],
        "restricted"
    );
    let create = [
        "create",
        "--dry-run=server",
        "--validate=strict",
        "--output=json",
        "--filename=-",
    ];
    for rendered in [kustomize(host, "one"), template(host, &[])] {
        let pod = pod_of(&read(&rendered)["Deployment/fedrs-controller"]);
        host.must(&create, &pod.to_string());
        let mut root = pod.clone();
        root["spec"]["securityContext"]["runAsNonRoot"] = json!(false);
        let said = host.kubectl(&create, &root.to_string());
        assert!(
            said.errors.contains("violates PodSecurity"),
            "{}",
            said.errors
        );
    }
}

pub(crate) fn the_deployment_gets_its_pods(host: &Host) {
    apply(host, &kustomize(host, "one"));
    host.wait_until("the Deployment has a pod", 60, || {
        let deployment = host.get(&["deployment", "fedrs-controller", "--namespace", NAMESPACE]);
        deployment["status"]["updatedReplicas"] == 1
    });
}

/// The one rule that no request uses by itself: an admission plugin of some clusters asks for it.
pub(crate) fn markers_need_the_right_to_finalizers(host: &Host) {
    apply(host, &kustomize(host, "one"));
    let frs = json!({
        "apiVersion": "fedrs.dev/v1alpha1",
        "kind": "FederatedReplicaSet",
        "metadata": { "name": "web", "namespace": "default" },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "main" }] },
            },
        },
    });
    host.must(
        &["apply", "--server-side", "--filename=-"],
        &frs.to_string(),
    );
    let uid = host.get(&["frs", "web", "--namespace=default"])["metadata"]["uid"].clone();
    let marker = json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": "web",
            "namespace": "default",
            "ownerReferences": [{
                "apiVersion": "fedrs.dev/v1alpha1",
                "kind": "FederatedReplicaSet",
                "name": "web",
                "uid": uid,
                "blockOwnerDeletion": true,
            }],
        },
        "data": {},
        "revision": 1,
    });
    let account = format!("--as=system:serviceaccount:{NAMESPACE}:fedrs-controller");
    let create = ["create", "--dry-run=server", "--filename=-", &account];
    host.must(&create, &marker.to_string());

    // The same rights but for this one.
    let mut role = host.get(&["clusterrole", "fedrs-controller"]);
    let rules = role["rules"].as_array_mut().unwrap();
    rules.retain(|rule| rule["resources"] != json!(["federatedreplicasets/finalizers"]));
    let fewer = json!({
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRole",
                "metadata": { "name": "fewer" },
                "rules": role["rules"],
            },
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": { "name": "fewer" },
                "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "fewer" },
                "subjects": [{ "kind": "User", "name": "fewer", "apiGroup": "rbac.authorization.k8s.io" }],
            },
        ],
    });
    host.must(
        &["apply", "--server-side", "--filename=-"],
        &fewer.to_string(),
    );
    let create = ["create", "--dry-run=server", "--filename=-", "--as=fewer"];
    let said = host.kubectl(&create, &marker.to_string());
    assert!(
        said.errors.contains("blockOwnerDeletion"),
        "{}",
        said.errors
    );
}
