//! How kinds differ in common behavior: generation, unconditional updates, creation by update, grace periods.

use crate::resources::{Kind, kinds};

/// Whether objects of a kind have a `metadata.generation`.
pub(crate) fn has_generation(kind: &Kind) -> bool {
    const COUNTED: [&str; 11] = [
        "pods",
        "replicationcontrollers",
        "daemonsets.apps",
        "deployments.apps",
        "replicasets.apps",
        "statefulsets.apps",
        "poddisruptionbudgets.policy",
        "customresourcedefinitions.apiextensions.k8s.io",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "endpointslices.discovery.k8s.io",
    ];
    kind.is_custom() || COUNTED.contains(&&*kind.storage)
}

/// Whether a PUT without a resource version is accepted.
pub(crate) fn updates_unconditionally(kind: &Kind) -> bool {
    const REFUSED: [&str; 6] = [
        "customresourcedefinitions.apiextensions.k8s.io",
        "leases.coordination.k8s.io",
        "poddisruptionbudgets.policy",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "endpointslices.discovery.k8s.io",
    ];
    !kind.is_custom() && !REFUSED.contains(&&*kind.storage)
}

/// Whether a PUT of an object that does not exist creates it.
pub(crate) fn creates_on_update(kind: &Kind) -> bool {
    const CREATED: [&str; 9] = [
        "endpoints",
        "events",
        "limitranges",
        "services",
        "leases.coordination.k8s.io",
        "roles.rbac.authorization.k8s.io",
        "rolebindings.rbac.authorization.k8s.io",
        "clusterroles.rbac.authorization.k8s.io",
        "clusterrolebindings.rbac.authorization.k8s.io",
    ];
    CREATED.contains(&&*kind.storage)
}

/// Whether a write of `status` does not change labels and annotations either.
pub(crate) fn keeps_metadata_on_status(kind: &Kind) -> bool {
    *kind == *kinds::CUSTOM_RESOURCE_DEFINITIONS
}

/// Whether objects of a kind have a grace period when they are deleted.
pub(crate) fn ends_gracefully(kind: &Kind) -> bool {
    *kind == *kinds::PODS
}
