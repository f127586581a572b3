//! Creating, reading, replacing and deleting.

use crate::reference::script::{
    KnownDifferenceRow, METADATA, METADATA_LIST, RequestScript, delete, get, post, put, script,
    steps, with_known_differences,
};
use serde_json::json;

use super::objects::{config_map, labelled, lease, pod, pod_nowhere, replica_set, seen};

/// Known differences: the script, the reason, the step, the path.
const DIFFERS: &[KnownDifferenceRow] = &[
    (
        "crud::config_maps",
        "go-words",
        "another kind",
        "body/message",
    ),
    (
        "crud::config_maps",
        "generation",
        "with system fields",
        "body/metadata/generation",
    ),
    (
        "crud::config_maps",
        "order",
        "two controllers",
        "body/message",
    ),
    (
        "crud::config_maps",
        "order",
        "two controllers",
        "body/details/causes/0/message",
    ),
    (
        "crud::metadata_alone",
        "media-types",
        "html",
        "body/message",
    ),
    (
        "crud::metadata_alone",
        "media-types",
        "html",
        "body/details",
    ),
    ("crud::metadata_alone", "media-types", "v9", "body/message"),
    (
        "crud::pods",
        "go-words",
        "an immutable field",
        "body/details/causes/0",
    ),
    (
        "crud::pods",
        "go-words",
        "an immutable field",
        "body/message",
    ),
    (
        "crud::nodes",
        "node-taint",
        "POST /api/v1/nodes",
        "body/~1spec/taints",
    ),
];

pub(crate) fn all() -> Vec<RequestScript> {
    with_known_differences(DIFFERS, scripts())
}

fn scripts() -> Vec<RequestScript> {
    vec![
        config_maps(),
        generated_names(),
        metadata_alone(),
        replica_sets(),
        pods(),
        leases(),
        secrets_and_accounts(),
        namespaces(),
        nodes(),
    ]
}

fn config_maps() -> RequestScript {
    script("crud::config_maps", steps![
        post("configmaps", config_map("a")).keep("rv", "/metadata/resourceVersion").keep("uid", "/metadata/uid"),
        post("configmaps", config_map("a")).called("twice"),
        get("configmaps/a"),
        get("configmaps/none"),
        put("configmaps/a", labelled("a", "x", "y")),
        put("configmaps/a", labelled("a", "x", "y")).called("no change"),
        put("configmaps/a", json!({ "metadata": { "name": "a", "resourceVersion": "${rv}" } })).called("stale"),
        put("configmaps/a", json!({ "metadata": { "name": "a", "uid": "${uid}" }, "data": { "a": "2" } })).called("by uid"),
        put("configmaps/a", json!({ "metadata": { "name": "a", "uid": "other" } })).called("by another uid"),
        put("configmaps/a", json!({ "metadata": {} })).called("without a name"),
        put("configmaps/a", config_map("b")).called("by another name"),
        put("configmaps/new", config_map("new")).called("PUT creates"),
        put("configmaps/other", json!({ "metadata": { "name": "other", "uid": "${uid}" } })).called("PUT of none by uid"),
        put("configmaps/new", json!({ "metadata": { "name": "new2" }, "kind": "Secret", "apiVersion": "v1" })).called("another kind"),
        post("configmaps", json!({ "metadata": { "name": "c", "resourceVersion": "1" } })).called("with a version"),
        post("configmaps", json!({ "metadata": { "name": "d", "uid": "1", "creationTimestamp": "2020-01-01T00:00:00Z", "generation": 7 } })).called("with system fields"),
        post("configmaps", json!({ "metadata": {} })).called("no name"),
        post("configmaps", json!({ "metadata": { "name": "Upper_Case" } })).called("a bad name"),
        post("configmaps", json!({ "metadata": { "name": "e", "labels": { "-a": "b" } } })).called("a bad label"),
        post("configmaps", json!({ "metadata": { "name": "e", "annotations": { "a b": "b" } } })).called("a bad annotation"),
        post("configmaps", json!({ "metadata": { "name": "f" }, "data": { "a/b": "1" } })).called("a bad key"),
        post("configmaps", json!({ "metadata": { "name": "g", "ownerReferences": [{ "apiVersion": "v1", "kind": "Pod", "name": "", "uid": "" }] } })).called("a bad owner"),
        post("configmaps", json!({ "metadata": { "name": "g", "ownerReferences": [
            { "apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "1", "controller": true },
            { "apiVersion": "v1", "kind": "Pod", "name": "b", "uid": "2", "controller": true },
        ] } })).called("two controllers"),
        post("configmaps", json!({ "metadata": { "name": "g", "finalizers": ["a"] } })).called("a bad finalizer"),
        post("configmaps", json!({ "metadata": { "name": "i" }, "immutable": true, "data": { "a": "1" } })),
        put("configmaps/i", json!({ "metadata": { "name": "i" }, "data": { "a": "2" } })).called("immutable"),
        delete("configmaps/a"),
        delete("configmaps/a").called("the object is deleted"),
        get("configmaps").only("/kind").only("/apiVersion").only("/metadata"),
    ])
}

fn generated_names() -> RequestScript {
    script(
        "crud::generated_names",
        steps![
            post(
                "configmaps",
                json!({ "metadata": { "generateName": "a-" } })
            )
            .keep("name", "/metadata/name"),
            get("configmaps/${name}"),
            post(
                "configmaps",
                json!({ "metadata": { "generateName": "A_" } })
            )
            .called("a bad prefix"),
            post("pods", {
                let mut pod = pod_nowhere("x");
                pod["metadata"] = json!({ "generateName": "p-" });
                pod
            }),
        ],
    )
}

fn metadata_alone() -> RequestScript {
    script(
        "crud::metadata_alone",
        steps![
            post("configmaps", labelled("a", "of", "me")),
            get("configmaps/a").accept(METADATA),
            get("configmaps?labelSelector=of%3Dme").accept(METADATA_LIST),
            get("configmaps/none").accept(METADATA).called("none"),
            get("configmaps/a")
                .accept("application/yaml")
                .called("yaml")
                .only("/x"),
            get("configmaps/a").accept("text/html").called("html"),
            get("configmaps/a")
                .accept("application/json;as=Table;v=v9;g=meta.k8s.io")
                .called("v9"),
        ],
    )
}

fn leases() -> RequestScript {
    let with_version = |uid: &str| {
        let mut lease = lease("a", "me");
        lease["metadata"]["resourceVersion"] = "${rv}".into();
        if !uid.is_empty() {
            lease["metadata"]["uid"] = uid.into();
        }
        lease
    };
    script("crud::leases", steps![
        post("coordination.k8s.io/v1:leases", lease("a", ""))
            .keep("rv", "/metadata/resourceVersion").keep("uid", "/metadata/uid"),
        put("coordination.k8s.io/v1:leases/a", with_version("${uid}")).keep("rv", "/metadata/resourceVersion"),
        put("coordination.k8s.io/v1:leases/a", with_version("other")).called("by another uid"),
        put("coordination.k8s.io/v1:leases/a", lease("a", "")).called("released"),
        put("coordination.k8s.io/v1:leases/a", with_version("${uid}")).called("stale"),
        put("coordination.k8s.io/v1:leases/a", json!({
            "metadata": { "name": "a" },
            "spec": { "leaseDurationSeconds": 0, "leaseTransitions": -1, "renewTime": "2026-01-01T00:00:00.000000Z" },
        })).called("invalid"),
        put("coordination.k8s.io/v1:leases/a", json!({
            "metadata": { "name": "a" },
            "spec": { "holderIdentity": "x", "leaseTransitions": 1, "renewTime": "2026-01-01T00:00:00.120000Z" },
        })).called("times"),
        delete("coordination.k8s.io/v1:leases/a"),
        put("coordination.k8s.io/v1:leases/a", with_version("${uid}")).called("deleted, by uid and version"),
        put("coordination.k8s.io/v1:leases/a", with_version("")).called("deleted, by version"),
        put("coordination.k8s.io/v1:leases/b", lease("b", "me")).called("new"),
    ])
}

fn replica_sets() -> RequestScript {
    script(
        "crud::replica_sets",
        steps![
            post("apps/v1:replicasets", replica_set("web", 0)),
            post("apps/v1:replicasets", replica_set("web", 0)).called("twice"),
            seen("apps/v1:replicasets/web").keep("rv", "/metadata/resourceVersion"),
            put("apps/v1:replicasets/web", {
                let mut set = replica_set("web", 0);
                set["metadata"]["labels"] = json!({ "a": "b" });
                set["spec"]["template"]["spec"]["containers"][0]["env"] =
                    json!([{ "name": "A", "value": "1" }]);
                set
            }),
            put("apps/v1:replicasets/web", {
                let mut set = replica_set("web", 0);
                set["spec"]["selector"]["matchLabels"] = json!({ "app": "other" });
                set
            })
            .called("another selector"),
            put("apps/v1:replicasets/web", {
                let mut set = replica_set("web", 0);
                set["metadata"]["resourceVersion"] = "${rv}".into();
                set
            })
            .called("stale"),
            put("apps/v1:replicasets/none", replica_set("none", 0)),
            put("apps/v1:replicasets/web", replica_set("other", 0)).called("another name"),
            delete("apps/v1:replicasets/web"),
            delete("apps/v1:replicasets/web").called("the object is deleted"),
            get("apps/v1:replicasets/web").called("get gone"),
        ],
    )
}

fn pods() -> RequestScript {
    script(
        "crud::pods",
        steps![
            post("pods", pod_nowhere("one")),
            get("pods/one").until(20, |object| !object["status"]["conditions"].is_null()),
            put("pods/one", pod("one")).called("an immutable field"),
            delete("pods/one"),
            get("pods/one").until(10, |object| object["kind"] == "Status"),
        ],
    )
}

fn secrets_and_accounts() -> RequestScript {
    script(
        "crud::secrets_and_accounts",
        steps![
            post(
                "secrets",
                json!({ "metadata": { "name": "a" }, "stringData": { "b": "c" } })
            ),
            post(
                "secrets",
                json!({ "metadata": { "name": "b" }, "data": { "b": "***" } })
            )
            .called("not base64"),
            post(
                "secrets",
                json!({ "metadata": { "name": "i" }, "immutable": true, "data": { "a": "YQ==" } })
            ),
            put(
                "secrets/i",
                json!({ "metadata": { "name": "i" }, "immutable": true, "data": { "a": "Yg==" } })
            ),
            put(
                "secrets/a",
                json!({ "metadata": { "name": "a" }, "type": "other" })
            )
            .called("another type"),
            post(
                "serviceaccounts",
                json!({ "metadata": { "name": "robot" } })
            ),
            get("serviceaccounts/robot"),
            get("serviceaccounts"),
        ],
    )
}

fn namespaces() -> RequestScript {
    script(
        "crud::namespaces",
        steps![
            get("/api/v1/namespaces/${ns}"),
            post(
                "/api/v1/namespaces",
                json!({ "metadata": { "name": "${ns}" } })
            )
            .called("twice"),
            post(
                "/api/v1/namespaces",
                json!({ "metadata": { "name": "Not A Name" } })
            )
            .called("no name"),
            post("/api/v1/namespaces/${ns}-none/configmaps", config_map("a"))
                .called("in no namespace"),
            get("/api/v1/namespaces/${ns}-none/configmaps"),
            get("/api/v1/namespaces/${ns}-none"),
            post("configmaps", {
                let mut map = config_map("a");
                map["metadata"]["namespace"] = "other".into();
                map
            })
            .called("in another namespace"),
        ],
    )
}

fn nodes() -> RequestScript {
    script(
        "crud::nodes",
        steps![
            post(
                "/api/v1/nodes",
                json!({ "metadata": { "name": "${ns}-a" }, "spec": { "unschedulable": true } })
            )
            .only("/metadata/labels")
            .only("/spec"),
            get("/api/v1/nodes/${ns}-none"),
            delete("/api/v1/nodes/${ns}-a"),
        ],
    )
    // The scheduler's messages contain the number of nodes.
    .alone()
}
