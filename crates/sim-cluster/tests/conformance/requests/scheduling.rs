//! Where pods go, and why they can't: affinity, spreading, ports, gates.

use crate::reference::script::{
    ApiRequest, RequestScript, delete, get, merge, post, script, steps,
};
use serde_json::{Value, json};

use super::objects::pod;

fn with(name: &str, labels: Value, more: &[(&str, Value)]) -> Value {
    let mut pod = pod(name);
    pod["metadata"]["labels"] = labels;
    for (field, value) in more {
        pod["spec"][*field] = value.clone();
    }
    pod
}

fn on(number: u32) -> Value {
    json!({ "kubernetes.io/hostname": format!("pair-node-{number}") })
}

fn near(kind: &str, app: &str) -> Value {
    json!({ kind: { "requiredDuringSchedulingIgnoredDuringExecution": [{ "topologyKey": "kubernetes.io/hostname", "labelSelector": { "matchLabels": { "app": app } } }] } })
}

fn waits(name: &str) -> ApiRequest {
    get(&format!("pods/{name}"))
        .until(20, |object| {
            object["status"]["conditions"][0]["reason"] == "Unschedulable"
        })
        .called(&format!("{name} waits"))
        .only("/status")
}

fn runs(name: &str) -> ApiRequest {
    get(&format!("pods/{name}"))
        .until(20, |object| object["status"]["phase"] == "Running")
        .called(&format!("{name} runs"))
        .only("/status/phase")
        .only("/spec/nodeName")
}

fn spread(app: &str) -> Value {
    json!([{ "topologyKey": "kubernetes.io/hostname", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": { "matchLabels": { "app": app } } }])
}

pub(crate) fn all() -> Vec<RequestScript> {
    let port = json!([{ "name": "main", "image": "registry.example/app:1", "ports": [{ "containerPort": 80, "hostPort": 4711 }] }]);
    vec![
        script("scheduling::affinity", steps![
            post("pods", with("follower", json!({}), &[("affinity", near("podAffinity", "leader"))])),
            waits("follower"),
            post("pods", with("leader", json!({ "app": "leader" }), &[("nodeSelector", on(2))])),
            runs("leader"),
            runs("follower"),
            post("pods", with("apart", json!({}), &[("affinity", near("podAntiAffinity", "leader"))])),
            runs("apart"),
            post("pods", with("far", json!({}), &[("affinity", near("podAntiAffinity", "leader")), ("nodeSelector", on(2))])),
            waits("far"),
            delete("pods/leader").only("/metadata/name"),
            runs("far"),
            post("pods", with("lonely", json!({ "app": "x" }), &[("affinity", near("podAntiAffinity", "y")), ("nodeSelector", on(1))])),
            runs("lonely"),
            post("pods", with("guest", json!({ "app": "y" }), &[("nodeSelector", on(1))])),
            waits("guest"),
            merge("pods/lonely", json!({ "metadata": { "labels": { "app": "z" } } })).only("/metadata/labels"),
            post("pods", with("two", json!({}), &[("affinity", json!({ "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [
                { "topologyKey": "kubernetes.io/hostname", "labelSelector": { "matchLabels": { "app": "p" } } },
                { "topologyKey": "kubernetes.io/hostname", "labelSelector": { "matchLabels": { "tier": "q" } } },
            ] } }))])),
            waits("two"),
            post("pods", with("p", json!({ "app": "p" }), &[("nodeSelector", on(1))])),
            post("pods", with("q", json!({ "tier": "q" }), &[("nodeSelector", on(1))])),
            runs("p"), runs("q"),
            post("pods", with("after", json!({}), &[("nodeSelector", on(2))])),
            runs("after"),
            get("pods/two").called("still").only("/status/phase"),
            post("pods", with("pq", json!({ "app": "p", "tier": "q" }), &[("nodeSelector", on(1))])),
            runs("two"),
        ]),
        script("scheduling::spread", steps![
            post("pods", with("one", json!({ "app": "s" }), &[("nodeSelector", on(1))])),
            runs("one"),
            post("pods", with("other", json!({ "app": "s" }), &[("topologySpreadConstraints", spread("s"))])),
            runs("other"),
            post("pods", with("three", json!({ "app": "s" }), &[("nodeSelector", on(1))])),
            runs("three"),
            post("pods", with("four", json!({ "app": "s" }), &[("topologySpreadConstraints", spread("s"))])),
            runs("four"),
            post("pods", with("no-label", json!({ "app": "s" }), &[("topologySpreadConstraints", json!([{ "topologyKey": "nothing", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": { "matchLabels": { "app": "s" } } }]))])),
            waits("no-label"),
        ]),
        script("scheduling::ports", steps![
            post("pods", with("one", json!({}), &[("containers", port.clone()), ("nodeSelector", on(1))])).only("/spec/containers"),
            runs("one"),
            post("pods", with("other", json!({}), &[("containers", port.clone()), ("nodeSelector", on(1))])).only("/spec/containers"),
            waits("other"),
            delete("pods/one").only("/metadata/name"),
            runs("other"),
        ]),
        script("scheduling::gates_and_names", steps![
            post("pods", with("gated", json!({}), &[("schedulingGates", json!([{ "name": "a.example/b" }]))])),
            get("pods/gated").until(20, |object| !object["status"]["conditions"].is_null()).only("/status"),
            merge("pods/gated", json!({ "spec": { "schedulingGates": null } })).only("/spec/schedulingGates").called("no gates"),
            get("pods/gated").until(20, |object| object["status"]["phase"] == "Running").only("/status/phase").called("gated runs"),
            merge("pods/gated", json!({ "spec": { "schedulingGates": [{ "name": "a.example/b" }] } })).called("gates again"),
            post("pods", with("named", json!({}), &[("nodeName", "pair-node-1".into())])).only("/spec"),
            runs("named"),
            post("pods", with("bad", json!({}), &[("affinity", json!({ "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [{ "labelSelector": {} }] } }))])).called("no topology key"),
            post("pods", with("bad", json!({}), &[("topologySpreadConstraints", json!([{ "topologyKey": "a", "maxSkew": 0, "whenUnsatisfiable": "Maybe" }]))])).called("bad spread"),
            post("pods", with("bad", json!({}), &[("tolerations", json!([{ "operator": "Exists", "value": "x" }, { "key": "a", "operator": "Near" }, { "effect": "NoSchedule" }]))])).called("bad tolerations"),
        ]),
    ]
}
