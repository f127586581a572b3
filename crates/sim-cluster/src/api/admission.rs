//! What kinds have of their own in the way of a write: defaults, validation, quota, field managers.
//!
//! The functions of each kind are elsewhere; here they are put into the path of a request.

use serde_json::Value;

use super::update::Target;
use super::{State, WriteOptions};
use crate::clock::Clock;
use crate::resources::{Kind, kinds};
use crate::status::Status;

/// Whether `metadata.generation` is kept for objects of a kind.
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

/// Whether a PUT without a version is accepted.
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

/// Whether a write of `status` leaves labels and annotations alone, too.
pub(crate) fn keeps_metadata_on_status(kind: &Kind) -> bool {
    *kind == *kinds::CUSTOM_RESOURCE_DEFINITIONS
}

/// Whether objects of a kind get a grace period when they are deleted.
pub(crate) fn ends_gracefully(kind: &Kind) -> bool {
    *kind == *kinds::PODS
}

/// Defaults, validates and stamps an object to be created; what its writer should be warned of.
pub(crate) fn prepare_create(
    _state: &State,
    _clock: &Clock,
    _kind: &Kind,
    _namespace: &str,
    _object: &mut Value,
    _options: &WriteOptions,
) -> Result<Vec<String>, Status> {
    Ok(Vec::new())
}

/// Defaults and validates an object that takes the place of `old`.
pub(crate) fn prepare_update(
    _state: &State,
    _clock: &Clock,
    _target: Target<'_>,
    _old: &Value,
    _object: &mut Value,
    _options: &WriteOptions,
) -> Result<Vec<String>, Status> {
    Ok(Vec::new())
}

/// Records who wrote which fields.
pub(crate) fn record_manager(
    _clock: &Clock,
    _target: Target<'_>,
    _old: &Value,
    _object: &mut Value,
    _options: &WriteOptions,
) {
}

/// Counts an object to be created against its namespace's quotas.
pub(crate) fn charge_quota(
    _state: &mut State,
    _clock: &Clock,
    _kind: &Kind,
    _namespace: &str,
    _object: &Value,
    _options: &WriteOptions,
) -> Result<(), Status> {
    Ok(())
}
