//! The known differences between embedded clusters and real ones, with reasons: sim-cluster's README lists them.

/// Keys and reasons. The scripts say which responses differ.
pub(crate) const REASONS: &[(&str, &str)] = &[
    (
        "admission",
        "Admission does not look up the ServiceAccount or PriorityClass of a pod, mount a token, or apply a LimitRange: no container runs.",
    ),
    (
        "budget",
        "The condition of a PodDisruptionBudget has no `observedGeneration` and no empty message.",
    ),
    (
        "columns",
        "Most columns of Tables have no description; `kubectl get` shows none.",
    ),
    (
        "custom-body",
        "A custom resource of another kind is rejected with the message for built-in kinds.",
    ),
    (
        "deprecation",
        "Requests for deprecated kinds have no warnings.",
    ),
    (
        "duplicates",
        "If a body has a field twice, the last one is used, also where Go merges both. YAML with such a field is rejected.",
    ),
    (
        "generation",
        "If a writer sets `metadata.generation` on a kind without generations, the field is dropped.",
    ),
    (
        "go-words",
        "Messages that show Go values or internals of Go's parsers have other words. Codes and reasons are the same.",
    ),
    (
        "initial-events",
        "The bookmark that ends the initial events of a Table has its annotation on the Table, not on a row.",
    ),
    (
        "issuer",
        "The issuer of tokens is `https://kubernetes.default.svc.cluster.local`, the default of kubeadm.",
    ),
    (
        "managers",
        "Reviews and token requests, which are never stored, have no `managedFields`. The controller of quotas always owns their usage.",
    ),
    (
        "media-types",
        "Responses are never encoded in protobuf, and discovery does not offer it.",
    ),
    (
        "node-report",
        "The nodes of the real cluster are simulated by kwok, which reports other conditions than kubelets do, under another name and in another order.",
    ),
    (
        "node-taint",
        "A new node has no taint `not-ready`: its kubelet reports immediately.",
    ),
    (
        "not-served",
        "Some APIs are not served: see What it cannot do.",
    ),
    (
        "openapi-v2",
        "`/openapi/v2` is not served. For a version that does not exist, kubectl prints another error.",
    ),
    (
        "order",
        "Fields are in alphabetical order, also in messages that quote an object.",
    ),
    (
        "patched-kind",
        "A patch that changes `kind` has no effect; the API server rejects it.",
    ),
    (
        "schemas",
        "Schemas are those of Kubernetes 1.33, without defaults and enums.",
    ),
    (
        "service",
        "Services are not assigned addresses, families or policies.",
    ),
    ("storage-hash", "Discovery has no `storageVersionHash`."),
    (
        "strategic-replace",
        "`$patch: replace` on a map that does not exist sets it; the API server drops it.",
    ),
    (
        "typed-duplicates",
        "Items of a list with the same key are rejected by validation (422), not by the merge of an apply (500).",
    ),
    (
        "unset-time",
        "Some entries of `managedFields` keep a time that the API server drops.",
    ),
    (
        "warned",
        "The response for a rejected custom resource has no warnings about its unknown fields.",
    ),
];

/// The list in the README.
pub(crate) fn markdown() -> String {
    let lines = REASONS
        .iter()
        .map(|(key, reason)| format!("- **{key}**: {reason}\n"));
    lines.collect()
}
