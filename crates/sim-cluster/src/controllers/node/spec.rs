//! The specification of a node: `NodeSpec -> Node object`, and the status that a kubelet reports. Pure.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::clock::to_time;
use crate::object::{Condition, condition, condition_mut, list, map, name, set_condition, text};
use crate::version::VERSION;

/// The namespace of the nodes' leases.
pub(crate) const LEASE_NAMESPACE: &str = "kube-node-lease";

/// The specification of a node. Defaults: 32 CPUs, 128Gi of memory, 110 pods.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeSpec {
    name: String,
    capacity: Map<String, Value>,
    labels: Map<String, Value>,
    taints: Vec<Value>,
}

impl NodeSpec {
    /// A node of this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            capacity: usual_capacity(),
            labels: Map::new(),
            taints: Vec::new(),
        }
    }

    /// The capacity of a resource: `.capacity("cpu", "4")`, `.capacity("example.com/gpu", "1")`.
    #[must_use]
    pub fn capacity(mut self, resource: &str, quantity: &str) -> Self {
        self.capacity.insert(resource.to_owned(), json!(quantity));
        self
    }

    /// The number of pods that the node can run.
    #[must_use]
    pub fn pods(self, count: u32) -> Self {
        self.capacity("pods", &count.to_string())
    }

    /// Adds a label.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), json!(value));
        self
    }

    /// The zone, as the label `topology.kubernetes.io/zone`.
    #[must_use]
    pub fn zone(self, zone: &str) -> Self {
        self.label("topology.kubernetes.io/zone", zone)
    }

    /// Adds a taint; `effect` is `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    #[must_use]
    pub fn taint(mut self, key: &str, value: &str, effect: &str) -> Self {
        let mut taint = json!({"key": key, "effect": effect});
        if !value.is_empty() {
            taint["value"] = json!(value);
        }
        self.taints.push(taint);
        self
    }

    /// The Node object.
    pub fn to_object(&self) -> Value {
        let mut labels = self.labels.clone();
        for (key, value) in usual_labels(&self.name) {
            labels.entry(key).or_insert(value);
        }
        let mut node = json!({
            "metadata": {"name": self.name, "labels": labels}, "spec": {},
            "status": {"capacity": self.capacity, "allocatable": self.capacity},
        });
        if !self.taints.is_empty() {
            node["spec"]["taints"] = json!(self.taints);
        }
        node
    }
}

fn usual_capacity() -> Map<String, Value> {
    let usual = json!({"cpu": "32", "memory": "128Gi", "ephemeral-storage": "1Ti", "pods": "110"});
    usual.as_object().cloned().unwrap_or_default()
}

fn usual_labels(name: &str) -> Map<String, Value> {
    let usual = json!({
        "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "amd64",
    });
    usual.as_object().cloned().unwrap_or_default()
}

/// Fills in the status that a healthy kubelet reports; fields that are set already stay.
pub(crate) fn first_report(node: &mut Value, now: Timestamp) {
    let node_name = name(node).to_owned();
    let usual = json!(usual_capacity());
    let status = &mut node["status"];
    if map(status, "/capacity").is_none() {
        status["capacity"] = usual;
    }
    if map(status, "/allocatable").is_none() {
        status["allocatable"] = status["capacity"].clone();
    }
    if list(status, "/addresses").is_empty() {
        status["addresses"] = json!([
            {"type": "InternalIP", "address": address(&node_name)}, {"type": "Hostname", "address": node_name},
        ]);
    }
    if text(status, "/nodeInfo/kubeletVersion").is_empty() {
        status["nodeInfo"] = json!({
            "architecture": "amd64", "bootID": "", "containerRuntimeVersion": "sim", "kernelVersion": "sim",
            "kubeProxyVersion": "", "kubeletVersion": VERSION, "machineID": "", "operatingSystem": "linux",
            "osImage": "sim-cluster", "systemUUID": "",
        });
    }
    status["daemonEndpoints"] = json!({"kubeletEndpoint": {"Port": 10250}});
    report_conditions(node, now);
}

/// Says that all conditions of the node still hold.
pub(crate) fn date_conditions(node: &mut Value, now: Timestamp) {
    let conditions = node["status"]["conditions"].as_array_mut();
    for condition in conditions.into_iter().flatten() {
        condition["lastHeartbeatTime"] = to_time(now).into();
    }
}

fn report_conditions(node: &mut Value, now: Timestamp) {
    let well = [
        (
            "MemoryPressure",
            "False",
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available",
        ),
        (
            "DiskPressure",
            "False",
            "KubeletHasNoDiskPressure",
            "kubelet has no disk pressure",
        ),
        (
            "PIDPressure",
            "False",
            "KubeletHasSufficientPID",
            "kubelet has sufficient PID available",
        ),
        (
            "Ready",
            "True",
            "KubeletReady",
            "kubelet is posting ready status",
        ),
    ];
    for (kind, status, reason, message) in well {
        // Conditions that somebody else set stay; only those of an unreachable node are reset.
        let lost = condition(node, kind).is_none_or(|c| text(c, "/status") == "Unknown");
        let state = Condition {
            kind,
            status,
            reason,
            message,
        };
        if lost
            && set_condition(node, state, now)
            && let Some(condition) = condition_mut(node, kind)
        {
            condition["lastHeartbeatTime"] = json!(to_time(now));
        }
    }
}

/// An address that depends on the node's name only: `node-7` has 10.0.0.7, other names a hash.
fn address(node: &str) -> String {
    let digits: String = node
        .chars()
        .rev()
        .take_while(char::is_ascii_digit)
        .collect();
    let number = digits.chars().rev().collect::<String>().parse::<u32>().ok();
    let number = number.unwrap_or_else(|| {
        node.bytes().fold(0, |sum: u32, byte| {
            sum.wrapping_mul(31).wrapping_add(byte.into())
        })
    });
    let [_, _, high, low] = number.to_be_bytes();
    format!("10.0.{high}.{low}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_becomes_ready_and_keeps_its_other_fields() {
        let mut node = NodeSpec::new("node-7")
            .pods(3)
            .zone("a")
            .taint("k", "", "NoSchedule")
            .to_object();
        first_report(&mut node, Timestamp::UNIX_EPOCH);
        assert_eq!(node["status"]["allocatable"]["pods"], "3");
        assert_eq!(
            node["metadata"]["labels"]["topology.kubernetes.io/zone"],
            "a"
        );
        assert_eq!(
            node["metadata"]["labels"]["kubernetes.io/hostname"],
            "node-7"
        );
        assert_eq!(node["status"]["addresses"][0]["address"], "10.0.0.7");
        assert_eq!(text(condition(&node, "Ready").unwrap(), "/status"), "True");
        let before = node.clone();
        first_report(&mut node, Timestamp::from_second(10).unwrap());
        assert_eq!(node, before);
    }
}
