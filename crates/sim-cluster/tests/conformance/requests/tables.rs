//! What kubectl get shows.

use crate::reference::script::{
    KnownDifferenceRow, RequestScript, TABLE, delete, get, merge, post, script, steps,
    with_known_differences,
};
use serde_json::json;

use super::objects::{config_map, pod_nowhere, replica_set};

/// Known differences: the script, the reason, the step, the path.
const DIFFERS: &[KnownDifferenceRow] = &[
    (
        "tables::core",
        "columns",
        "*",
        "body/columnDefinitions/*/description",
    ),
    (
        "tables::core",
        "node-report",
        "GET /api/v1/nodes/pair-node-1",
        "body/rows/0/cells",
    ),
    (
        "tables::core",
        "node-report",
        "GET /api/v1/nodes/pair-node-1",
        "body/rows/0/object/metadata/managedFields",
    ),
    ("tables::core", "service", "POST services", "body/spec"),
    (
        "tables::core",
        "service",
        "POST services",
        "body/metadata/managedFields",
    ),
    (
        "tables::core",
        "service",
        "GET services",
        "body/rows/0/object/metadata/managedFields",
    ),
    ("tables::core", "deprecation", "GET endpoints", "warnings"),
    (
        "tables::events",
        "columns",
        "*",
        "body/columnDefinitions/*/description",
    ),
    (
        "tables::pods_in_trouble",
        "columns",
        "*",
        "body/columnDefinitions/*/description",
    ),
    (
        "tables::sets_and_pods",
        "columns",
        "*",
        "body/*/*/description",
    ),
];

pub(crate) fn all() -> Vec<RequestScript> {
    with_known_differences(DIFFERS, scripts())
}

fn scripts() -> Vec<RequestScript> {
    vec![sets_and_pods(), pods_in_trouble(), core(), events()]
}

fn sets_and_pods() -> RequestScript {
    script(
        "tables::sets_and_pods",
        steps![
            post("apps/v1:replicasets", replica_set("web", 2)),
            get("apps/v1:replicasets/web")
                .until(30, |object| object["status"]["readyReplicas"] == 2)
                .only("/status"),
            get("apps/v1:replicasets").accept(TABLE),
            get("apps/v1:replicasets/web")
                .accept(TABLE)
                .called("one set"),
            get("pods").accept(TABLE).only("/columnDefinitions"),
            get("pods")
                .accept(TABLE)
                .called("cells")
                .only("/rows/0/cells/1")
                .only("/rows/0/cells/2")
                .only("/rows/0/cells/3"),
            get("pods?includeObject=Object&limit=1")
                .accept(TABLE)
                .called("with objects")
                .only("/rows/0/object/kind")
                .only("/metadata"),
            get("pods?includeObject=None&limit=1")
                .accept(TABLE)
                .called("without")
                .only("/rows/0/object"),
            get("pods?includeObject=Some")
                .accept(TABLE)
                .called("a bad wish"),
        ],
    )
}

fn pods_in_trouble() -> RequestScript {
    script(
        "tables::pods_in_trouble",
        steps![
            post("pods", pod_nowhere("waits")),
            get("pods/waits")
                .until(20, |object| !object["status"]["conditions"].is_null())
                .only("/status/phase"),
            post("pods", {
                let mut pod = pod_nowhere("goes");
                pod["metadata"]["finalizers"] = json!(["a.example/b"]);
                pod
            }),
            get("pods/goes")
                .until(20, |object| !object["status"]["conditions"].is_null())
                .called("goes waits too")
                .only("/status/phase"),
            delete("pods/goes").only("/metadata/finalizers"),
            merge(
                "pods/waits/status",
                json!({ "status": { "phase": "Failed", "reason": "Evicted" } })
            )
            .only("/status/phase"),
            get("pods").accept(TABLE),
        ],
    )
}

fn core() -> RequestScript {
    script(
        "tables::core",
        steps![
            post("configmaps", config_map("a")),
            get("configmaps/a").accept(TABLE),
            post(
                "secrets",
                json!({ "metadata": { "name": "s" }, "data": { "a": "YQ==" } })
            ),
            get("secrets").accept(TABLE),
            get("serviceaccounts").accept(TABLE),
            get("/api/v1/namespaces/${ns}").accept(TABLE),
            get("/api/v1/nodes/pair-node-1").accept(TABLE),
            get("/api/v1/nodes?labelSelector=none%3Dx").accept(TABLE),
            get("events").accept(TABLE),
            post(
                "resourcequotas",
                json!({ "metadata": { "name": "q" }, "spec": { "hard": { "pods": "2" } } })
            ),
            get("resourcequotas/q").until(20, |object| !object["status"]["used"].is_null()),
            get("resourcequotas").accept(TABLE),
            post(
                "services",
                json!({ "metadata": { "name": "s" }, "spec": { "clusterIP": "None", "ports": [{ "port": 80 }] } })
            ),
            get("services").accept(TABLE),
            get("coordination.k8s.io/v1:leases").accept(TABLE),
            get("policy/v1:poddisruptionbudgets").accept(TABLE),
            get("apps/v1:deployments").accept(TABLE),
            get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions?labelSelector=none%3Dx")
                .accept(TABLE),
            get("rbac.authorization.k8s.io/v1:roles").accept(TABLE),
            get("rbac.authorization.k8s.io/v1:rolebindings").accept(TABLE),
            get("limitranges").accept(TABLE),
            get("persistentvolumeclaims").accept(TABLE),
            get("endpoints").accept(TABLE),
            get("configmaps/none").accept(TABLE),
        ],
    )
}

fn events() -> RequestScript {
    script("tables::events", steps![
            post("events", json!({
                "metadata": { "name": "a" }, "involvedObject": { "kind": "Pod", "name": "p", "namespace": "${ns}" },
                "reason": "R", "message": "m", "type": "Normal", "count": 3,
                "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
                "source": { "component": "c" },
            })),
            post("events", json!({ "metadata": { "name": "b" }, "involvedObject": { "kind": "Pod", "namespace": "other" } })).called("another namespace"),
            get("events").accept(TABLE),
            get("events.k8s.io/v1:events/a"),
            get("events.k8s.io/v1:events").accept(TABLE),
        ])
}
