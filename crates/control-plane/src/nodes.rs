//! Nodes without kubelets: kwok renews their leases and reports the pods bound to them as running, but for those with a readiness
//! gate, which nothing opens.

use std::slice;

use serde_json::{Value, json};

/// kwok manages the nodes that have this label. Without it the lease of a node expires, and the node is lost.
pub(crate) const MANAGED: (&str, &str) = ("control-plane.dev/managed", "true");

/// The allocatable resources of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeResources {
    /// As a quantity.
    pub cpu: String,
    /// As a quantity.
    pub memory: String,
    /// How many pods it can run.
    pub pods: u32,
}

impl Default for NodeResources {
    fn default() -> Self {
        Self {
            cpu: "64".to_owned(),
            memory: "256Gi".to_owned(),
            pods: 110,
        }
    }
}

/// A node as a kubelet would register it.
pub(crate) fn node(name: &str, resources: &NodeResources) -> Value {
    let NodeResources { cpu, memory, pods } = resources;
    let resources = json!({ "cpu": cpu, "memory": memory, "pods": pods.to_string() });
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                MANAGED.0: MANAGED.1,
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
            },
        },
        "status": { "capacity": resources, "allocatable": resources },
    })
}

/// kwok's stages: nodes are ready, bound pods become ready at once, and again when their node is back; deleted pods
/// disappear.
pub(crate) fn stages() -> String {
    let ready_node = r"{{ $now := Now }}
conditions:
{{ range NodeConditions }}
- type: {{ .type | Quote }}
  status: {{ .status | Quote }}
  reason: {{ .reason | Quote }}
  message: {{ .message | Quote }}
  lastHeartbeatTime: {{ $now | Quote }}
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
phase: Running
";
    let running_pod = r#"{{ $now := Now }}
phase: Running
startTime: {{ $now | Quote }}
hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
podIP: {{ PodIPWith .spec.nodeName ( or .spec.hostNetwork false ) ( or .metadata.uid "" ) ( or .metadata.name "" ) ( or .metadata.namespace "" ) | Quote }}
conditions:
{{ range $type := list "PodReadyToStartContainers" "Initialized" "ContainersReady" "Ready" }}
- type: {{ $type | Quote }}
  status: "True"
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: true
  started: true
  restartCount: 0
  state:
    running:
      startedAt: {{ $now | Quote }}
{{ end }}
"#;
    let not_ready = json!({ "key": ".status.conditions.[] | select( .type == \"Ready\" ) | .status", "operator": "NotIn", "values": ["True"] });
    let deleted =
        |operator: &str| json!({ "key": ".metadata.deletionTimestamp", "operator": operator });
    let phase =
        |phase: &str| json!({ "key": ".status.phase", "operator": "In", "values": [phase] });
    let without_gates = json!({ "key": ".spec.readinessGates", "operator": "DoesNotExist" });
    let stages = [
        stage(
            "node-ready",
            "Node",
            slice::from_ref(&not_ready),
            &json!({ "statusTemplate": ready_node }),
        ),
        stage(
            "pod-running",
            "Pod",
            &[
                deleted("DoesNotExist"),
                phase("Pending"),
                without_gates.clone(),
            ],
            &json!({ "statusTemplate": running_pod }),
        ),
        // The node controller says of the pods of a lost node that they are not ready; the kubelet says that they are.
        stage(
            "pod-ready-again",
            "Pod",
            &[
                deleted("DoesNotExist"),
                phase("Running"),
                not_ready,
                without_gates,
            ],
            &json!({ "statusTemplate": running_pod }),
        ),
        stage(
            "pod-gone",
            "Pod",
            &[deleted("Exists")],
            &json!({ "finalizers": { "empty": true }, "delete": true }),
        ),
    ];
    stages.map(|stage| format!("{stage:#}\n")).join("---\n")
}

fn stage(name: &str, kind: &str, selected: &[Value], next: &Value) -> Value {
    json!({
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": { "name": name },
        "spec": {
            "resourceRef": { "apiGroup": "v1", "kind": kind },
            "selector": { "matchExpressions": selected },
            "next": next,
        },
    })
}
