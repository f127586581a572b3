//! Nodes that are lost and come back; cordoned ones.

use crate::reference::script::{
    KnownDifferenceRow, RequestScript, Step::Node, get, merge, post, script, steps,
    with_known_differences,
};
use serde_json::{Value, json};

use super::objects::pod;

const NODE: &str = "/api/v1/nodes/pair-node-1";

fn is_ready(node: &Value, status: &str) -> bool {
    let all = node["status"]["conditions"].as_array();
    all.is_some_and(|all| {
        all.iter()
            .any(|condition| condition["type"] == "Ready" && condition["status"] == status)
    })
}

fn on_node(name: &str, seconds: u32) -> Value {
    let mut pod = pod(name);
    pod["spec"]["nodeSelector"] = json!({ "kubernetes.io/hostname": "pair-node-1" });
    pod["spec"]["tolerations"] = json!([
        { "key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds },
    ]);
    pod
}

/// Known differences: the script, the reason, the step, the path.
const DIFFERS: &[KnownDifferenceRow] = &[
    (
        "nodes::lost",
        "node-report",
        "lost",
        "body/~1status~1conditions/NetworkUnavailable",
    ),
    (
        "nodes::lost",
        "node-report",
        "lost",
        "body/~1status~1conditions/(order)",
    ),
    (
        "nodes::lost",
        "node-report",
        "evicted",
        "body/~1status~1conditions/PodScheduled/observedGeneration",
    ),
    (
        "nodes::lost",
        "node-report",
        "evicted",
        "body/~1status~1conditions/(order)",
    ),
];

pub(crate) fn all() -> Vec<RequestScript> {
    with_known_differences(DIFFERS, scripts())
}

fn scripts() -> Vec<RequestScript> {
    vec![cordoned(), lost()]
}

fn cordoned() -> RequestScript {
    script(
        "nodes::cordoned",
        steps![
            merge(NODE, json!({ "spec": { "unschedulable": true } }))
                .called("cordon")
                .only("/spec/unschedulable"),
            get(NODE)
                .until(20, |object| !object["spec"]["taints"].is_null())
                .called("tainted")
                .only("/spec"),
            post("pods", on_node("p", 3)),
            get("pods/p")
                .until(20, |object| !object["status"]["conditions"].is_null())
                .called("waits")
                .only("/status"),
            merge(NODE, json!({ "spec": { "unschedulable": null } }))
                .called("uncordon")
                .only("/spec/unschedulable"),
            get(NODE)
                .until(20, |object| object["spec"]["taints"].is_null())
                .called("free")
                .only("/spec"),
            get("pods/p")
                .until(20, |object| object["status"]["phase"] == "Running")
                .called("runs")
                .only("/status/phase")
                .only("/spec/nodeName"),
        ],
    )
    .alone()
}

fn lost() -> RequestScript {
    script(
        "nodes::lost",
        steps![
            post("pods", on_node("p", 3)),
            get("pods/p")
                .until(20, |object| object["status"]["phase"] == "Running")
                .called("runs")
                .only("/status/phase"),
            Node(1, true),
            get(NODE)
                .until(60, |object| is_ready(object, "Unknown")
                    && object["spec"]["taints"]
                        .as_array()
                        .is_some_and(|taints| taints.len() > 1))
                .called("lost")
                .only("/spec")
                .only("/status/conditions"),
            get("pods/p")
                .until(20, |object| !object["metadata"]["deletionTimestamp"]
                    .is_null())
                .called("evicted")
                .only("/status/conditions")
                .only("/status/phase")
                .only("/metadata/deletionGracePeriodSeconds"),
            Node(1, false),
            get(NODE)
                .until(60, |object| is_ready(object, "True")
                    && object["spec"]["taints"].is_null())
                .called("back")
                .only("/spec"),
            get("pods/p")
                .until(60, |object| object["kind"] == "Status")
                .called("the object is deleted"),
        ],
    )
    .alone()
}
