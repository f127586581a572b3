//! The manifests on a real API server.

use std::fs;

use serde_json::json;

use crate::{
    host::{Host, repository, wait_until},
    objects::{pod_of, read},
    render::{DISCOVERY, IN_MEMBER, NAMESPACE, kustomize, template},
};

/// Applies server-side with strict validation, and takes over conflicting fields.
pub(crate) fn apply(host: &Host, objects: &str) {
    let arguments = [
        "apply",
        "--server-side",
        "--validate=strict",
        "--force-conflicts",
        "--filename=-",
    ];
    host.must(&arguments, objects);
}

pub(crate) fn both_overlays_and_the_chart_are_accepted_without_a_warning(host: &Host) {
    for rendered in [
        kustomize(host, "three"),
        template(host, &[]),
        template(host, &IN_MEMBER),
        template(host, &[DISCOVERY]),
        kustomize(host, "replica-set-controller-three"),
        kustomize(host, "replica-set-controller"),
        kustomize(host, "discovery"),
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
    let of_host = "Deployment/fedrs-controller";
    let of_member = "Deployment/fedrs-replica-set-controller";
    apply(host, &kustomize(host, "replica-set-controller"));
    apply(host, &kustomize(host, "discovery"));
    for (rendered, deployment) in [
        (kustomize(host, "one"), of_host),
        (template(host, &[]), of_host),
        (kustomize(host, "replica-set-controller"), of_member),
        (template(host, &IN_MEMBER), of_member),
        (kustomize(host, "discovery"), "Deployment/fedrs-discovery"),
        (template(host, &[DISCOVERY]), "Deployment/fedrs-discovery"),
    ] {
        let pod = pod_of(&read(&rendered)[deployment]);
        host.must(&create, &pod.to_string());
        let mut root = pod.clone();
        root["spec"]["securityContext"]["runAsNonRoot"] = json!(false);
        let output = host.kubectl(&create, &root.to_string());
        assert!(
            output.errors.contains("violates PodSecurity"),
            "{}",
            output.errors
        );
    }
}

pub(crate) fn the_job_that_approves_by_metrics_is_admitted(host: &Host) {
    let path = repository().join("config/samples/approve-by-metrics.yaml");
    let sample = fs::read_to_string(path).unwrap();
    apply(host, &sample);
    apply(host, &kustomize(host, "one"));
    let job = host.get(&["cronjob", "approve-web", "--namespace=default"]);
    let mut spec = job["spec"]["jobTemplate"]["spec"]["template"]["spec"].clone();
    // An account of the restricted namespace.
    spec["serviceAccountName"] = json!("default");
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "approve", "namespace": NAMESPACE }, "spec": spec,
    });
    let create = [
        "create",
        "--dry-run=server",
        "--validate=strict",
        "--filename=-",
    ];
    wait_until("the namespace has its account", 30, || {
        host.kubectl(&create, &pod.to_string()).succeeded
    });
}

pub(crate) fn the_deployment_gets_its_pods(host: &Host) {
    apply(host, &kustomize(host, "one"));
    wait_until("the Deployment has a pod", 60, || {
        let deployment = host.get(&["deployment", "fedrs-controller", "--namespace", NAMESPACE]);
        deployment["status"]["updatedReplicas"] == 1
    });
}
