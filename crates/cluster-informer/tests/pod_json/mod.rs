//! Pods as an API server writes them: 6 KB, a third of it `managedFields`.

use serde_json::{Value, json};

/// Pod number `pod`, ready, of ReplicaSet number `set`.
pub(crate) fn running(pod: u32, set: u32, version: u64) -> String {
    let mut object = object(pod, set, version);
    object["spec"]["nodeName"] = json!(format!("node-{}", pod % 100));
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastProbeTime": null, "lastTransitionTime": "2026-11-01T10:00:05Z"});
    let kinds = [
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
    ];
    object["status"] = json!({
        "phase": "Running", "qosClass": "Burstable", "startTime": "2026-11-01T10:00:00Z",
        "conditions": kinds.map(condition), "hostIP": "10.0.0.7", "podIP": "10.1.7.23", "podIPs": [{"ip": "10.1.7.23"}],
        "containerStatuses": [{
            "name": "web", "ready": true, "started": true, "restartCount": 0, "image": "registry.example/web:1.2.3",
            "imageID": format!("registry.example/web@sha256:{}", "0123456789abcdef".repeat(4)),
            "containerID": format!("containerd://{}", "fedcba9876543210".repeat(4)),
            "state": {"running": {"startedAt": "2026-11-01T10:00:04Z"}}, "lastState": {},
        }],
    });
    object.to_string()
}

/// The same pod, while it fits on no node.
pub(crate) fn unscheduled(pod: u32, set: u32, version: u64) -> String {
    let mut object = object(pod, set, version);
    object["status"] = json!({
        "phase": "Pending", "qosClass": "Burstable",
        "conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastProbeTime": null,
            "lastTransitionTime": "2026-11-01T10:00:00Z",
            "message": "0/100 nodes are available: 100 Insufficient cpu. preemption: 0/100 nodes are available.",
        }],
    });
    object.to_string()
}

fn object(pod: u32, set: u32, version: u64) -> Value {
    let uid = |kind: u32, number: u32| {
        // Spread over the whole range, as random uids are.
        let bits = u64::from(number)
            .wrapping_add(1)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!(
            "{:08x}-{kind:04x}-4b6f-9d53-{:012x}",
            bits >> 32,
            bits & 0xffff_ffff_ffff
        )
    };
    let probe = |path: &str| json!({"httpGet": {"path": path, "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10, "timeoutSeconds": 1, "successThreshold": 1, "failureThreshold": 3});
    let env: Vec<_> = (0..12).map(|number| json!({"name": format!("SETTING_{number}"), "value": format!("value of setting {number}")})).collect();
    let mut fields = json!({});
    for number in 0..12 {
        fields[format!("k:{{\"name\":\"SETTING_{number}\"}}")] =
            json!({".": {}, "f:name": {}, "f:value": {}});
    }
    let managed = |manager: &str| json!({"manager": manager, "operation": "Update", "apiVersion": "v1", "time": "2026-11-01T10:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:containers": fields}}});
    json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {
            "name": format!("web-{set}-{pod}"), "generateName": format!("web-{set}-"), "namespace": "default",
            "uid": uid(1, pod), "resourceVersion": version.to_string(), "generation": 1,
            "creationTimestamp": "2026-11-01T10:00:00Z",
            "labels": {"app": "web", "fedrs.dev/federation": "0b0d1f0e-4a54-4b6f-9d53-0123456789ab",
                "fedrs.dev/member-cluster": "member-1", "fedrs.dev/replica-set": format!("web-{set}")},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("web-{set}"),
                "uid": uid(2, set), "controller": true, "blockOwnerDeletion": true}],
            "managedFields": [managed("kube-controller-manager"), managed("kubelet")],
        },
        "spec": {
            "volumes": [{"name": "kube-api-access-x2x4z", "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}]}}],
            "containers": [{
                "name": "web", "image": "registry.example/web:1.2.3", "imagePullPolicy": "IfNotPresent", "env": env,
                "ports": [{"containerPort": 8080, "protocol": "TCP"}],
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
                "livenessProbe": probe("/healthz"), "readinessProbe": probe("/readyz"),
                "volumeMounts": [{"name": "kube-api-access-x2x4z", "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            }],
            "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default", "securityContext": {}, "schedulerName": "default-scheduler",
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
            "priority": 0, "enableServiceLinks": true, "preemptionPolicy": "PreemptLowerPriority",
        },
    })
}
