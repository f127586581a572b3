//! The Deployment that runs the controller in its cluster.

use fedrs_api::names;
use serde_json::{Value, json};

use crate::controller::LEASE;

/// The labels by which the Deployment selects its pods.
fn labels() -> Value {
    json!({ "app.kubernetes.io/name": "fedrs", "app.kubernetes.io/instance": LEASE })
}

/// A Deployment of the controller in `namespace`, by default the usual one, with the ServiceAccount of
/// [`rbac::manifests`](crate::rbac::manifests). `image` has the program `fedrs`. One replica leads, others are standbys.
#[must_use]
pub fn deployment(namespace: Option<&str>, image: &str) -> Value {
    let metadata = json!({
        "name": LEASE,
        "namespace": namespace.unwrap_or(names::SYSTEM_NAMESPACE),
        "labels": labels(),
    });
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": labels() },
            // A new pod becomes a standby before an old one terminates.
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 },
            },
            "template": { "metadata": { "labels": labels() }, "spec": pod(image) },
        },
    })
}

/// The same in the usual namespace, as YAML.
#[must_use]
pub fn deployment_as_yaml(image: &str) -> String {
    serde_saphyr::to_string(&deployment(None, image)).expect("it is plain data")
}

/// A pod that the Pod Security Standard "restricted" admits.
fn pod(image: &str) -> Value {
    json!({
        "serviceAccountName": LEASE,
        "enableServiceLinks": false,
        "terminationGracePeriodSeconds": 30,
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "seccompProfile": { "type": "RuntimeDefault" },
        },
        "containers": [{
            "name": "controller",
            "image": image,
            "imagePullPolicy": "IfNotPresent",
            "args": ["replica-set-controller", "--listen=0.0.0.0:9464"],
            // The identity in the leader election: a restarted container continues at once.
            "env": [{ "name": "POD_UID", "valueFrom": { "fieldRef": { "fieldPath": "metadata.uid" } } }],
            "ports": [{ "name": "metrics", "containerPort": 9464, "protocol": "TCP" }],
            "livenessProbe": probe("/healthz", 10),
            "readinessProbe": probe("/readyz", 5),
            "resources": {
                "requests": { "cpu": "50m", "memory": "48Mi" },
                "limits": { "memory": "256Mi" },
            },
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": { "drop": ["ALL"] },
            },
        }],
        "topologySpreadConstraints": [spread("kubernetes.io/hostname"), spread("topology.kubernetes.io/zone")],
    })
}

fn probe(path: &str, seconds: u32) -> Value {
    json!({
        "httpGet": { "path": path, "port": "metrics" },
        "periodSeconds": seconds,
        "timeoutSeconds": 5,
        "failureThreshold": 3,
    })
}

fn spread(topology: &str) -> Value {
    json!({
        "maxSkew": 1,
        "topologyKey": topology,
        "whenUnsatisfiable": "ScheduleAnyway",
        "matchLabelKeys": ["pod-template-hash"],
        "labelSelector": { "matchLabels": labels() },
    })
}
