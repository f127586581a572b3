//! What kinds have of their own in the way of a write: defaults, validation, quota, field managers.
//!
//! The functions of each kind are elsewhere; here they are put into the path of a request.

use serde_json::{Value, json};

use super::update::Target;
use super::{FieldValidation, State, WriteOptions, text_at};
use crate::builtin::{self, admission};
use crate::clock::Clock;
use crate::field::FieldError;
use crate::resources::{Kind, kinds};
use crate::schema::TypeInfo;
use crate::status::{Cause, Status};
use crate::store::Object;

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

/// The type of a kind, for patches and field ownership; `None` if it has no schema.
pub(crate) fn type_of(kind: &Kind) -> Option<TypeInfo> {
    match &kind.custom {
        Some(custom) => Some(TypeInfo::custom(&custom.schema)),
        None => TypeInfo::builtin(&kind.group, &kind.version, &kind.kind),
    }
}

/// Reads, defaults, validates and stamps an object to be created; what its writer should be warned of.
pub(crate) fn prepare_create(
    kind: &Kind,
    object: &mut Value,
    options: &WriteOptions,
) -> Result<Vec<String>, Status> {
    let warnings = read(kind, object, options)?;
    builtin::defaults(&kind.kind, object);
    builtin::admit_create(&kind.kind, object);
    builtin::prepare_create(&kind.kind, object);
    let errors = builtin::validate_create(&kind.kind, object, kind.namespaced);
    refuse_invalid(kind, text_at(object, "/metadata/name"), &errors)?;
    Ok(warnings)
}

/// Reads, defaults and validates an object that takes the place of `old`.
pub(crate) fn prepare_update(
    target: Target<'_>,
    old: &Value,
    object: &mut Value,
    options: &WriteOptions,
) -> Result<Vec<String>, Status> {
    let kind = target.kind;
    let subresource = target.subresource.unwrap_or_default();
    let warnings = read(kind, object, options)?;
    builtin::defaults(&kind.kind, object);
    builtin::prepare_update(&kind.kind, subresource, old, object);
    if !matches!(subresource, "binding" | "finalize") {
        let errors = builtin::validate_update(&kind.kind, subresource, old, object);
        refuse_invalid(kind, target.name, &errors)?;
    }
    Ok(warnings)
}

/// Brings an object into the form of its type; unknown fields are dropped, reported or refused.
fn read(kind: &Kind, object: &mut Value, options: &WriteOptions) -> Result<Vec<String>, Status> {
    let Some(info) = type_of(kind) else {
        return Ok(Vec::new());
    };
    let refuse = |detail: &str| {
        Status::bad_request(builtin::decode_message(&kind.kind, &kind.version, detail))
    };
    let unknown = builtin::decode(object, &info).map_err(|error| refuse(&error.to_string()))?;
    report(&unknown, options).map_err(|detail| refuse(&detail))
}

/// The warnings about unknown fields, or the text of the refusal.
fn report(unknown: &[String], options: &WriteOptions) -> Result<Vec<String>, String> {
    let warnings: Vec<String> = unknown
        .iter()
        .map(|path| format!("unknown field \"{path}\""))
        .collect();
    match options.field_validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(warnings),
        FieldValidation::Strict if warnings.is_empty() => Ok(warnings),
        FieldValidation::Strict => Err(format!("strict decoding error: {}", warnings.join(", "))),
    }
}

/// 422 with one cause for each error.
fn refuse_invalid(kind: &Kind, name: &str, errors: &[FieldError]) -> Result<(), Status> {
    if errors.is_empty() {
        return Ok(());
    }
    let causes = errors
        .iter()
        .map(|error| Cause::new(error.kind.reason(), &error.path, error.body()));
    Err(Status::invalid(kind, name, causes.collect()))
}

/// What server-side apply makes of an object that is there, or is not.
pub(crate) fn apply(
    _clock: &Clock,
    target: Target<'_>,
    old: Option<&Object>,
    applied: &Value,
    _options: &WriteOptions,
) -> Result<(Value, Vec<String>), Status> {
    let mut object = old.map_or_else(|| json!({}), |old| Value::clone(old));
    super::patch::change(
        target.kind,
        &mut object,
        &super::Patch::Merge(applied.clone()),
    )?;
    Ok((object, Vec::new()))
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

/// Counts an object to be created against the quotas of its namespace.
///
/// # Errors
/// 403 if a quota has no room; nothing is counted then.
pub(crate) fn charge_quota(
    state: &mut State,
    kind: &Kind,
    namespace: &str,
    object: &Value,
    options: &WriteOptions,
) -> Result<(), Status> {
    if !kind.namespaced || *kind == *kinds::RESOURCE_QUOTAS || *kind == *kinds::EVENTS {
        return Ok(());
    }
    let mut charged = Vec::new();
    for quota in state.store.list(&kinds::RESOURCE_QUOTAS, Some(namespace)) {
        // Until the controller has counted, the API server refuses; what is counted here would be overwritten.
        let used = admission::usage_from(&quota["status"]["used"]);
        let after = admission::check_quota(quota, &used, &kind.group, &kind.plural, object)
            .map_err(|why| {
                Status::forbidden(kind, text_at(object, "/metadata/name"), &why.to_string())
            })?;
        if after != used {
            charged.push((Object::clone(quota), after));
        }
    }
    if options.dry_run {
        return Ok(());
    }
    for (quota, used) in charged {
        let mut counted = Value::clone(&quota);
        counted["status"]["hard"] = quota["spec"]["hard"].clone();
        counted["status"]["used"] = admission::usage_to_value(&used);
        let name = text_at(&quota, "/metadata/name");
        state
            .store
            .put(&kinds::RESOURCE_QUOTAS, namespace, name, counted);
    }
    Ok(())
}
