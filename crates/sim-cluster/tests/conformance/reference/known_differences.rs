//! The known differences between embedded clusters and real ones, with reasons: sim-cluster's README lists them.

/// Keys and reasons. The scripts say which responses differ.
pub(crate) const REASONS: &[(&str, &str)] = &[
    (
        "admission",
        "No admission looks up a pod's ServiceAccount or PriorityClass, mounts a token, or applies a LimitRange: no container runs.",
    ),
    (
        "budget",
        "The condition of a PodDisruptionBudget says no generation and no empty message.",
    ),
    (
        "columns",
        "Most columns of Tables have no description; `kubectl get` shows none.",
    ),
    (
        "custom-body",
        "A custom resource of another kind is refused in the words for built-in ones.",
    ),
    ("deprecation", "Nothing warns of deprecated kinds."),
    (
        "duplicates",
        "Of a field that a body has twice the last one counts, also where Go merges both; YAML with such a field is refused.",
    ),
    (
        "generation",
        "`metadata.generation` that a writer sets on a kind without one is dropped.",
    ),
    (
        "go-words",
        "Messages that show Go's values or the insides of its parsers are worded otherwise; codes and reasons are the same.",
    ),
    (
        "initial-events",
        "The bookmark that ends a Table's initial events has its mark on the Table, not in a row.",
    ),
    (
        "issuer",
        "Tokens are issued by `https://kubernetes.default.svc.cluster.local`, the default of kubeadm.",
    ),
    (
        "managers",
        "Reviews and token requests, which are never stored, have no `managedFields`; usage of a quota is always written by its controller.",
    ),
    (
        "media-types",
        "Protobuf is not written, and so not offered.",
    ),
    (
        "node-report",
        "Real nodes are kwok's: what they report, under which name and in which order, is not what kubelets do.",
    ),
    (
        "node-taint",
        "A new node has no taint `not-ready`: its kubelet reports at once.",
    ),
    ("not-served", "What is not served: see below."),
    (
        "openapi-v2",
        "`/openapi/v2` is not served: kubectl can't say what a version is that there isn't.",
    ),
    (
        "order",
        "Fields stand in alphabetical order, also in messages that quote an object.",
    ),
    (
        "patched-kind",
        "A patch that changes `kind` changes nothing instead of being refused.",
    ),
    (
        "schemas",
        "Schemas are those of Kubernetes 1.33, without defaults and enums.",
    ),
    (
        "service",
        "Services get no addresses, families or policies.",
    ),
    ("storage-hash", "Discovery has no `storageVersionHash`."),
    (
        "strategic-replace",
        "`$patch: replace` on a map that isn't there sets it, where the API server drops it.",
    ),
    (
        "typed-duplicates",
        "Items of a list with the same key are refused by validation (422), not by the merge of an apply (500).",
    ),
    (
        "unset-time",
        "A manager's time stays where the API server loses it.",
    ),
    (
        "warned",
        "A refused custom resource comes without warnings of its unknown fields.",
    ),
];

/// The list in the README.
pub(crate) fn markdown() -> String {
    let lines = REASONS
        .iter()
        .map(|(key, reason)| format!("- **{key}**: {reason}\n"));
    lines.collect()
}
