//! Subresources: scale, status, eviction, token, binding.

use crate::reference::script::{
    KnownDifferenceRow, RequestScript, apply, get, json_patch, merge, post, put, script, steps,
    with_known_differences,
};
use serde_json::json;

use super::objects::{pod, pod_nowhere, replica_set};

const SCALE: &str = "apps/v1:replicasets/web/scale";

/// Known differences: the script, the reason, the step, the path.
const DIFFERS: &[KnownDifferenceRow] = &[
    (
        "subresources::token",
        "managers",
        "POST serviceaccounts/default/token",
        "body/metadata/managedFields",
    ),
    (
        "subresources::token",
        "managers",
        "defaults",
        "body/metadata/managedFields",
    ),
    (
        "subresources::token",
        "managers",
        "another audience",
        "body/metadata/managedFields",
    ),
    (
        "subresources::token",
        "managers",
        "POST serviceaccounts/default/token",
        "body/spec/boundObjectRef",
    ),
    (
        "subresources::token",
        "managers",
        "defaults",
        "body/spec/boundObjectRef",
    ),
    (
        "subresources::token",
        "managers",
        "another audience",
        "body/spec/boundObjectRef",
    ),
    (
        "subresources::token",
        "issuer",
        "POST serviceaccounts/default/token",
        "body/spec/audiences",
    ),
    (
        "subresources::token",
        "issuer",
        "defaults",
        "body/spec/audiences",
    ),
    (
        "subresources::token",
        "managers",
        "who am I",
        "body/metadata/creationTimestamp",
    ),
    (
        "subresources::eviction",
        "budget",
        "GET policy/v1:poddisruptionbudgets/b",
        "body/status/conditions/DisruptionAllowed",
    ),
    (
        "subresources::eviction",
        "budget",
        "GET policy/v1:poddisruptionbudgets/b",
        "body/metadata/managedFields/kube-controller-manager Update status",
    ),
    (
        "subresources::eviction",
        "budget",
        "PATCH policy/v1:poddisruptionbudgets/b",
        "body/status/conditions/DisruptionAllowed",
    ),
    (
        "subresources::eviction",
        "budget",
        "PATCH policy/v1:poddisruptionbudgets/b",
        "body/metadata/managedFields/kube-controller-manager Update status",
    ),
    (
        "subresources::eviction",
        "budget",
        "looser",
        "body/status/conditions/DisruptionAllowed",
    ),
    (
        "subresources::eviction",
        "budget",
        "looser",
        "body/metadata/managedFields/kube-controller-manager Update status",
    ),
];

pub(crate) fn all() -> Vec<RequestScript> {
    with_known_differences(DIFFERS, scripts())
}

fn scripts() -> Vec<RequestScript> {
    vec![scale(), status(), binding(), eviction(), token()]
}

fn scale() -> RequestScript {
    script("subresources::scale", steps![
            post("apps/v1:replicasets", {
                let mut set = replica_set("web", 0);
                set["spec"]["template"]["spec"]["nodeSelector"] = json!({ "nowhere": "true" });
                set
            }),
            get(SCALE).keep("rv", "/metadata/resourceVersion"),
            put(SCALE, json!({ "metadata": { "name": "web", "namespace": "${ns}" }, "spec": { "replicas": 0 } })),
            merge(SCALE, json!({ "spec": { "replicas": -1 } })).called("negative"),
            merge(SCALE, json!({ "metadata": { "resourceVersion": "1" }, "spec": { "replicas": 1 } })).called("stale"),
            merge(SCALE, json!({ "metadata": { "uid": "1" }, "spec": { "replicas": 1 } })).called("another uid"),
            put(SCALE, json!({ "metadata": { "name": "other" }, "spec": { "replicas": 0 } })).called("another name"),
            json_patch(SCALE, json!([{ "op": "test", "path": "/spec/replicas", "value": 9 }])).called("test"),
            apply(&format!("{SCALE}?fieldManager=x"), json!({ "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": { "name": "web" }, "spec": { "replicas": 0 } })).called("apply"),
            get("apps/v1:replicasets/none/scale"),
            post(SCALE, json!({})).called("post"),
        ])
}

fn status() -> RequestScript {
    script(
        "subresources::status",
        steps![
            post("pods", pod_nowhere("p")),
            get("pods/p").until(20, |object| !object["status"]["conditions"].is_null()),
            merge(
                "pods/p/status",
                json!({ "status": { "message": "x" }, "metadata": { "labels": { "a": "b" } }, "spec": { "activeDeadlineSeconds": 7 } })
            ),
            get("pods/p/status"),
            merge("pods/p", json!({ "status": { "message": "y" } })).called("not by the object"),
            put("pods/p/status", pod("p")).called("put"),
            get("pods/none/status"),
            merge(
                "/api/v1/namespaces/${ns}/status",
                json!({ "status": { "conditions": [{ "type": "X", "status": "True" }] } })
            )
            .called("of the namespace"),
        ],
    )
}

fn binding() -> RequestScript {
    script("subresources::binding", steps![
            post("pods", {
                let mut pod = pod("p");
                pod["spec"]["schedulerName"] = "nobody".into();
                pod
            }),
            post("pods/p/binding", json!({ "metadata": { "name": "p" }, "target": { "kind": "Node" } })).called("no node"),
            post("pods/p/binding", json!({ "metadata": { "name": "q" }, "target": { "kind": "Node", "name": "x" } })).called("another name"),
            post("pods/p/binding", json!({ "metadata": { "name": "p" }, "target": { "kind": "Node", "name": "pair-node-1" } })),
            get("pods/p").until(20, |object| object["status"]["phase"] == "Running").only("/spec/nodeName").only("/status/phase"),
            post("pods/p/binding", json!({ "metadata": { "name": "p" }, "target": { "kind": "Node", "name": "pair-node-2" } })).called("again"),
            post("pods/none/binding", json!({ "metadata": { "name": "none" }, "target": { "kind": "Node", "name": "pair-node-2" } })).called("none"),
        ])
}

fn eviction() -> RequestScript {
    script("subresources::eviction", steps![
            post("pods", {
                let mut pod = pod("p");
                pod["metadata"]["labels"] = json!({ "app": "p" });
                pod
            }),
            get("pods/p").until(20, |object| object["status"]["phase"] == "Running").only("/status/phase"),
            post("policy/v1:poddisruptionbudgets", json!({ "metadata": { "name": "b" }, "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": "p" } } } })),
            get("policy/v1:poddisruptionbudgets/b").until(20, |object| object["status"]["observedGeneration"] == 1 && object["status"]["currentHealthy"] == 1),
            post("pods/p/eviction?dryRun=All", json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": "p" } })).called("dry"),
            post("pods/p/eviction", json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": "p" } })).called("refused"),
            merge("policy/v1:poddisruptionbudgets/b", json!({ "spec": { "minAvailable": 0 } })),
            get("policy/v1:poddisruptionbudgets/b").until(20, |object| object["status"]["observedGeneration"] == 2).called("looser"),
            post("pods/p/eviction", json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": "other" } })).called("another name"),
            post("pods/p/eviction", json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": "p" } })).called("evicted"),
            get("pods/p").until(20, |object| object["kind"] == "Status").called("the object is deleted"),
            post("pods/p/eviction", json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": "p" } })).called("none"),
        ])
}

fn token() -> RequestScript {
    script(
        "subresources::token",
        steps![
            post(
                "serviceaccounts/default/token",
                json!({ "spec": { "expirationSeconds": 600 } })
            )
            .keep("token", "/status/token"),
            post("serviceaccounts/default/token", json!({ "spec": {} })).called("defaults"),
            post(
                "serviceaccounts/default/token",
                json!({ "spec": { "expirationSeconds": 10 } })
            )
            .called("too short"),
            post("serviceaccounts/none/token", json!({ "spec": {} })).called("none"),
            post(
                "serviceaccounts/default/token",
                json!({ "spec": { "audiences": ["other"] } })
            )
            .keep("foreign", "/status/token")
            .called("another audience"),
            post(
                "/apis/authentication.k8s.io/v1/selfsubjectreviews",
                json!({})
            )
            .with_token(Some("${token}"))
            .called("who am I"),
            post(
                "/apis/authentication.k8s.io/v1/selfsubjectreviews",
                json!({})
            )
            .with_token(Some("${foreign}"))
            .called("who am I elsewhere"),
            post(
                "/apis/authentication.k8s.io/v1/selfsubjectreviews",
                json!({})
            )
            .called("the administrator")
            .only("/kind"),
            get("configmaps")
                .with_token(Some("${token}"))
                .called("may not"),
            get("configmaps")
                .with_token(Some("nonsense"))
                .called("nonsense"),
        ],
    )
}
