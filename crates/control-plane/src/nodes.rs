//! Nodes without kubelets: kwok renews their leases, and reports the pods bound to them as [stages](crate::stages) say.

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
