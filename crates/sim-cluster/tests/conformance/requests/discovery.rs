//! Discovery and OpenAPI.

use crate::reference::script::{
    KnownDifferenceRow, RequestScript, get, script, steps, with_known_differences,
};

/// Known differences: the script, the reason, the step, the path.
const DIFFERS: &[KnownDifferenceRow] = &[
    (
        "discovery::lists",
        "storage-hash",
        "*",
        "body/resources/*/storageVersionHash",
    ),
    ("discovery::lists", "not-served", "*", "body/resources/*?"),
    (
        "discovery::lists",
        "not-served",
        "GET /apis/apiregistration.k8s.io",
        "body",
    ),
    (
        "discovery::lists",
        "not-served",
        "GET /apis/apiregistration.k8s.io",
        "code",
    ),
    (
        "discovery::lists",
        "not-served",
        "GET /apis/apiregistration.k8s.io",
        "type",
    ),
    (
        "discovery::lists",
        "not-served",
        "GET /apis/apiregistration.k8s.io/v1",
        "body",
    ),
    (
        "discovery::lists",
        "not-served",
        "GET /apis/apiregistration.k8s.io/v1",
        "code",
    ),
    (
        "discovery::schemas",
        "schemas",
        "*",
        "body/*/properties/*/description",
    ),
    (
        "discovery::schemas",
        "schemas",
        "*",
        "body/*/properties/*/enum?",
    ),
    (
        "discovery::schemas",
        "schemas",
        "*",
        "body/*/properties/*/default?",
    ),
    ("discovery::schemas", "schemas", "*", "body/*/properties/*?"),
    (
        "discovery::schemas",
        "schemas",
        "*",
        "body/*/properties/*/items/default?",
    ),
    (
        "discovery::schemas",
        "schemas",
        "*",
        "body/*/properties/*/additionalProperties/default?",
    ),
    (
        "discovery::schemas",
        "schemas",
        "*",
        "body/*/x-kubernetes-group-version-kind?",
    ),
];

pub(crate) fn all() -> Vec<RequestScript> {
    with_known_differences(DIFFERS, scripts())
}

fn scripts() -> Vec<RequestScript> {
    let mut lists = steps![
        get("/version").only("/major").only("/minor"),
        get("/api").only("/versions").only("/kind"),
        get("/api/v1"),
    ];
    for group in [
        "apps",
        "coordination.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "apiextensions.k8s.io",
        "events.k8s.io",
        "discovery.k8s.io",
        "autoscaling",
        "scheduling.k8s.io",
        "admissionregistration.k8s.io",
        "storage.k8s.io",
        "apiregistration.k8s.io",
    ] {
        lists.push(get(&format!("/apis/{group}")).into());
        lists.push(get(&format!("/apis/{group}/v1")).into());
    }
    lists.push(get("/apis/autoscaling/v2").into());
    let mut schemas = Vec::new();
    for (path, kinds) in [
        (
            "/openapi/v3/api/v1",
            [
                "io.k8s.api.core.v1.Pod",
                "io.k8s.api.core.v1.ConfigMap",
                "io.k8s.api.core.v1.PodSpec",
                "io.k8s.api.core.v1.Container",
            ],
        ),
        (
            "/openapi/v3/apis/apps/v1",
            [
                "io.k8s.api.apps.v1.ReplicaSet",
                "io.k8s.api.apps.v1.ReplicaSetSpec",
                "io.k8s.api.apps.v1.ReplicaSetStatus",
                "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector",
            ],
        ),
        (
            "/openapi/v3/apis/coordination.k8s.io/v1",
            [
                "io.k8s.api.coordination.v1.Lease",
                "io.k8s.api.coordination.v1.LeaseSpec",
                "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
                "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
            ],
        ),
    ] {
        let mut request = get(path);
        for kind in kinds {
            request = request.only(Box::leak(
                format!("/components/schemas/{kind}").into_boxed_str(),
            ));
        }
        schemas.push(request.into());
    }
    vec![
        script("discovery::lists", lists),
        script("discovery::schemas", schemas),
    ]
}
