//! Behaviour over time: ReplicaSets and the scheduler.

use crate::reference::script::{
    KnownDifferenceRow, RequestScript, delete, get, merge, post, script, steps,
    with_known_differences,
};
use serde_json::{Value, json};

use super::objects::{pod, pod_nowhere, replica_set};

const SET: &str = "apps/v1:replicasets/web";

fn count(list: &Value) -> usize {
    let items = list["items"].as_array();
    let running = items
        .into_iter()
        .flatten()
        .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    running.count()
}

/// The number of items, terminating ones included.
fn length(list: &Value) -> usize {
    list["items"].as_array().map_or(0, Vec::len)
}

fn labelled_pod(name: &str) -> Value {
    let mut pod = pod(name);
    pod["metadata"]["labels"] = json!({ "app": "web" });
    pod
}

/// Known differences: the script, the reason, the step, the path.
const DIFFERS: &[KnownDifferenceRow] = &[
    (
        "controllers::a_set_comes_up",
        "node-report",
        "its pods",
        "body/~1items~10~1metadata/managedFields/*",
    ),
    (
        "controllers::order_of_removal",
        "node-report",
        "owned",
        "body/~1metadata~1managedFields/*",
    ),
    (
        "controllers::failures_to_create",
        "managers",
        "DELETE resourcequotas/q",
        "body/metadata/managedFields/*",
    ),
];

pub(crate) fn all() -> Vec<RequestScript> {
    with_known_differences(DIFFERS, scripts())
}

fn scripts() -> Vec<RequestScript> {
    vec![
        a_set_comes_up(),
        order_of_removal(),
        adoption_and_release(),
        failures_to_create(),
        unschedulable(),
        a_replaced_pod(),
    ]
}

fn a_set_comes_up() -> RequestScript {
    script(
        "controllers::a_set_comes_up",
        steps![
            post("apps/v1:replicasets", replica_set("web", 2)),
            get(SET).until(30, |object| object["status"]["availableReplicas"] == 2),
            get("pods")
                .called("its pods")
                .only("/items/0/metadata")
                .only("/items/0/spec/containers")
                .only("/items/0/spec/tolerations")
                .only("/items/0/spec/schedulerName"),
            get("events?fieldSelector=involvedObject.kind%3DReplicaSet")
                .until(20, |object| count(object) == 2)
                .called("its events"),
            get("events?fieldSelector=involvedObject.kind%3DPod,reason%3DScheduled")
                .until(20, |object| count(object) == 2)
                .called("events of the scheduler")
                .only("/items/0/type")
                .only("/items/0/reason")
                .only("/items/0/reportingComponent")
                .only("/items/0/source")
                .only("/items/0/action")
                .only("/items/0/involvedObject/kind"),
            merge(SET, json!({ "spec": { "replicas": 0 } })).called("to 0"),
            get(SET)
                .until(30, |object| object["status"]["replicas"] == 0
                    && object["status"]["terminatingReplicas"] == 0
                    && object["status"]["observedGeneration"] == 2)
                .called("down"),
        ],
    )
}

fn order_of_removal() -> RequestScript {
    script(
        "controllers::order_of_removal",
        steps![
            post("pods", {
                let mut pod = labelled_pod("unscheduled");
                pod["spec"]["nodeSelector"] = json!({ "nowhere": "1" });
                pod
            }),
            post("pods", labelled_pod("a")),
            post("pods", {
                let mut pod = labelled_pod("costly");
                pod["metadata"]["annotations"] =
                    json!({ "controller.kubernetes.io/pod-deletion-cost": "10" });
                pod
            }),
            post("pods", {
                let mut pod = labelled_pod("cheap");
                pod["metadata"]["annotations"] =
                    json!({ "controller.kubernetes.io/pod-deletion-cost": "-10" });
                pod
            }),
            get("pods/cheap")
                .until(20, |object| object["status"]["phase"] == "Running")
                .called("runs")
                .only("/status/phase"),
            get("pods/costly")
                .until(20, |object| object["status"]["phase"] == "Running")
                .called("runs too")
                .only("/status/phase"),
            get("pods/a")
                .until(20, |object| object["status"]["phase"] == "Running")
                .called("a runs")
                .only("/status/phase"),
            post("apps/v1:replicasets", replica_set("web", 4)),
            get(SET)
                .until(20, |object| object["status"]["replicas"] == 4
                    && object["status"]["readyReplicas"] == 3)
                .called("adopted"),
            get("pods/a")
                .called("owned")
                .only("/metadata/ownerReferences")
                .only("/metadata/managedFields"),
            merge(SET, json!({ "spec": { "replicas": 3 } }))
                .called("to 3")
                .spec(),
            get("pods")
                .until(20, |object| length(object) == 3)
                .called("three")
                .only("/items/0/metadata/name")
                .only("/items/1/metadata/name")
                .only("/items/2/metadata/name"),
            merge(SET, json!({ "spec": { "replicas": 2 } }))
                .called("to 2")
                .spec(),
            get("pods")
                .until(20, |object| length(object) == 2)
                .called("two")
                .only("/items/0/metadata/name")
                .only("/items/1/metadata/name"),
            merge(SET, json!({ "spec": { "replicas": 1 } }))
                .called("to 1")
                .spec(),
            get("pods")
                .until(20, |object| length(object) == 1)
                .called("one")
                .only("/items/0/metadata/name")
                .only("/items/1/metadata/name"),
        ],
    )
}

fn adoption_and_release() -> RequestScript {
    script(
        "controllers::adoption_and_release",
        steps![
            post("apps/v1:replicasets", replica_set("web", 1)),
            get("pods")
                .until(20, |object| count(object) == 1)
                .called("one")
                .only("/items/0/metadata/labels")
                .keep("pod", "/items/0/metadata/name"),
            get(SET)
                .until(20, |object| object["status"]["readyReplicas"] == 1)
                .called("ready")
                .only("/status"),
            merge(
                "pods/${pod}",
                json!({ "metadata": { "labels": { "app": "other" } } })
            )
            .called("released")
            .only("/metadata/labels"),
            get("pods?labelSelector=app%3Dweb")
                .until(20, |object| count(object) == 1)
                .called("replaced")
                .only("/items/0/metadata/ownerReferences"),
            get("pods/${pod}")
                .until(20, |object| object["metadata"]["ownerReferences"].is_null())
                .called("free")
                .only("/metadata/ownerReferences")
                .only("/metadata/labels"),
            delete("pods/${pod}")
                .called("delete the free one")
                .only("/metadata/name"),
            post("pods", labelled_pod("surplus")),
            get("pods")
                .until(20, |object| count(object) == 1
                    && object["items"]
                        .as_array()
                        .is_some_and(|items| items.len() == 1))
                .called("the surplus goes")
                .only("/items/1"),
        ],
    )
}

fn failures_to_create() -> RequestScript {
    script(
        "controllers::failures_to_create",
        steps![
            post(
                "resourcequotas",
                json!({ "metadata": { "name": "q" }, "spec": { "hard": { "pods": "1" } } })
            ),
            get("resourcequotas/q")
                .until(20, |object| !object["status"]["used"].is_null())
                .only("/status"),
            post("apps/v1:replicasets", replica_set("web", 3)),
            get(SET)
                .until(20, |object| !object["status"]["conditions"].is_null()
                    && object["status"]["readyReplicas"] == 1)
                .called("failure")
                .only("/status"),
            get("events?fieldSelector=reason%3DFailedCreate")
                .until(20, |object| count(object) > 0)
                .called("events")
                .only("/items/0/message")
                .only("/items/0/type")
                .only("/items/0/source")
                .only("/items/0/involvedObject/kind"),
            delete("resourcequotas/q"),
            get(SET)
                .until(60, |object| object["status"]["readyReplicas"] == 3)
                .called("no failure")
                .only("/status"),
        ],
    )
}

fn unschedulable() -> RequestScript {
    script(
        "controllers::unschedulable",
        steps![
            post("pods", pod_nowhere("selector")),
            get("pods/selector").until(20, |object| !object["status"]["conditions"].is_null()),
            post("pods", {
                let mut pod = pod("big");
                pod["spec"]["containers"][0]["resources"] =
                    json!({ "requests": { "cpu": "1000", "memory": "10Ti" } });
                pod
            }),
            get("pods/big")
                .until(20, |object| !object["status"]["conditions"].is_null())
                .only("/status"),
            post("pods", {
                let mut pod = pod("extended");
                pod["spec"]["containers"][0]["resources"] = json!({ "requests": { "example.com/foo": "1" }, "limits": { "example.com/foo": "1" } });
                pod
            }),
            get("pods/extended")
                .until(20, |object| !object["status"]["conditions"].is_null())
                .only("/status"),
            post("pods", {
                let mut pod = pod("affine");
                pod["spec"]["affinity"] = json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [{ "matchExpressions": [{ "key": "a", "operator": "Exists" }] }] } } });
                pod
            }),
            get("pods/affine")
                .until(20, |object| !object["status"]["conditions"].is_null())
                .only("/status"),
            get("events?fieldSelector=reason%3DFailedScheduling,involvedObject.name%3Dselector")
                .until(20, |object| count(object) > 0)
                .called("events")
                .only("/items/0/message")
                .only("/items/0/type")
                .only("/items/0/reportingComponent")
                .only("/items/0/source"),
        ],
    )
}

fn a_replaced_pod() -> RequestScript {
    script(
        "controllers::a_replaced_pod",
        steps![
            post("apps/v1:replicasets", replica_set("web", 1)),
            get(SET)
                .until(20, |object| object["status"]["readyReplicas"] == 1)
                .called("ready")
                .only("/status"),
            get("pods")
                .called("pod")
                .keep("pod", "/items/0/metadata/name")
                .only("/kind"),
            merge(
                "pods/${pod}/status",
                json!({ "status": { "phase": "Failed" } })
            )
            .called("failed")
            .only("/status/phase"),
            get("pods?fieldSelector=status.phase%21%3DFailed")
                .until(30, |object| length(object) == 1)
                .called("another")
                .only("/items/0/metadata/ownerReferences")
                .only("/items/1"),
            get(SET)
                .until(30, |object| object["status"]["readyReplicas"] == 1
                    && object["status"]["replicas"] == 1)
                .called("again")
                .only("/status"),
            delete("pods/${pod}").called("delete").only("/kind"),
        ],
    )
}
