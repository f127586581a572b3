//! Decoding, defaults, field ownership and validation of an object on its way into the store.
//!
//! ```text
//! types and unknown fields -> defaults -> field ownership -> fields that only the server writes -> validation
//! ```
//!
//! The functions for each kind are in `builtin` and `schema`; this module puts them into the order of a request.

use serde_json::{Value, json};

use super::options::{FieldValidation, WriteOptions};
use super::request::{Origin, Patch, Target};
use crate::apply::{self, ApplyError, Writer};
use crate::builtin;
use crate::clock::Clock;
use crate::field::{FieldError, go_text};
use crate::names::NameRule;
use crate::object::{Object, text};
use crate::resources::{Kind, kinds};
use crate::schema::{TypeInfo, strict_error, validate_definition, validate_definition_update};
use crate::status::{Status, StatusCause};

/// Floats represent every integer below 2^53 exactly.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The type of a kind, for patches and field ownership; `None` if it has no schema.
pub(crate) fn type_of(kind: &Kind) -> Option<&TypeInfo> {
    match &kind.custom {
        Some(custom) => Some(custom.schema.type_info()),
        None => kind.builtin_type(),
    }
}

/// Decodes, defaults and validates a new object. Returns the warnings.
pub(crate) fn prepare_create(
    clock: &Clock,
    kind: &Kind,
    object: &mut Value,
    options: &WriteOptions,
    origin: Origin<'_>,
) -> Result<Vec<String>, Status> {
    let warnings = read(kind, object, options, origin)?;
    // The writer of the object does not own its status.
    let status = kind
        .has_subresource("status")
        .then(|| take_status(object))
        .flatten();
    if origin != Origin::Applied {
        record_owner(clock, kind, None, None, object, options);
    }
    if let Some(status) = status.filter(|_| !kind.is_custom()) {
        object["status"] = status;
    }
    let errors = if let Some(custom) = &kind.custom {
        // The API server sets defaults again when it reads the stored object: those of the status, which no manager owns.
        custom.schema.default(object);
        let mut errors =
            builtin::validate_metadata(object, kind.namespaced, NameRule::Subdomain, false);
        errors.extend(custom.schema.validate(object, None));
        errors
    } else {
        builtin::admit_create(&kind.kind, object);
        builtin::prepare_create(&kind.kind, object);
        let mut errors = builtin::validate_create(&kind.kind, object, kind.namespaced);
        if *kind == *kinds::CUSTOM_RESOURCE_DEFINITIONS {
            errors.extend(validate_definition(object));
        }
        errors
    };
    refuse_invalid(kind, text(object, "/metadata/name"), &errors)?;
    if let Some(custom) = &kind.custom {
        // A writer's status is dropped, but every object that is read has the defaults of its schema.
        custom.schema.default(object);
    }
    Ok(warnings)
}

/// Decodes, defaults and validates an object that replaces `old`. Returns the warnings.
pub(crate) fn prepare_update(
    clock: &Clock,
    target: Target<'_>,
    old: &Value,
    object: &mut Value,
    options: &WriteOptions,
    origin: Origin<'_>,
) -> Result<Vec<String>, Status> {
    let kind = target.kind;
    let subresource = target.subresource.unwrap_or_default();
    let warnings = read(kind, object, options, origin)?;
    // A binding records no ownership.
    if origin != Origin::Applied && subresource != "binding" {
        record_owner(clock, kind, target.subresource, Some(old), object, options);
    }
    let errors = if let Some(custom) = &kind.custom {
        let mut errors = builtin::validate_metadata_update(old, object, false);
        errors.extend(custom.schema.validate(object, Some(old)));
        errors
    } else {
        if subresource.is_empty() {
            builtin::admit_update(&kind.kind, object);
        }
        builtin::prepare_update(&kind.kind, subresource, old, object);
        // A binding changes fields that no update may change, and has checks of its own.
        let mut errors = if subresource == "binding" {
            Vec::new()
        } else {
            builtin::validate_update(&kind.kind, subresource, old, object)
        };
        if *kind == *kinds::CUSTOM_RESOURCE_DEFINITIONS && subresource.is_empty() {
            errors.extend(validate_definition_update(old, object));
        }
        errors
    };
    refuse_invalid(kind, target.name, &errors)?;
    Ok(warnings)
}

/// The object that server-side apply makes of the existing one (`old`), if there is one.
///
/// # Errors
/// 409 with a cause for each field that another manager owns; 400 or 500 for an invalid configuration.
pub(crate) fn apply(
    clock: &Clock,
    target: Target<'_>,
    old: Option<&Object>,
    applied: &Value,
    options: &WriteOptions,
) -> Result<Value, Status> {
    let kind = target.kind;
    let mut config = applied.clone();
    let subresource = target.subresource.unwrap_or_default();
    apply::drop_unwritable(&mut config, kind.has_subresource("status"), subresource);
    let Some(info) = type_of(kind) else {
        return Err(Status::internal(format!(
            "{} has no schema to apply by",
            kind.kind
        )));
    };
    apply::check(&config, info).map_err(refuse_apply)?;
    config["metadata"]["name"] = target.name.into();
    if kind.namespaced {
        config["metadata"]["namespace"] = target.namespace.into();
    }
    let (api_version, now) = (kind.api_version(), clock.now_time());
    let writer = Writer {
        manager: &options.field_manager,
        api_version: &api_version,
        subresource,
        now: &now,
    };
    apply::apply(old.map(|old| &**old), &config, &writer, options.force, info).map_err(refuse_apply)
}

/// Requires an object of this namespace, and sets its kind and namespace.
pub(crate) fn check_body(kind: &Kind, namespace: &str, object: &mut Value) -> Result<(), Status> {
    let Some(fields) = object.as_object_mut() else {
        return Err(Status::bad_request("the body is not a JSON object"));
    };
    fields.insert("apiVersion".to_owned(), json!(kind.api_version()));
    fields.insert("kind".to_owned(), json!(kind.kind));
    let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
    if !metadata.is_object() {
        *metadata = json!({});
    }
    let given = metadata["namespace"].as_str().unwrap_or_default();
    if !given.is_empty() && given != namespace {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    if kind.namespaced {
        metadata["namespace"] = json!(namespace);
    } else if let Some(metadata) = metadata.as_object_mut() {
        metadata.remove("namespace");
    }
    Ok(())
}

fn refuse_apply(error: ApplyError) -> Status {
    let message = error.to_string();
    match error {
        ApplyError::Conflicts(conflicts) => {
            let causes = conflicts.iter().map(|conflict| {
                StatusCause::new(
                    "FieldManagerConflict",
                    &conflict.field,
                    conflict.cause_message(),
                )
            });
            causes.fold(Status::new(409, "Conflict", message), Status::with_cause)
        }
        ApplyError::ManagedFieldsSet => Status::bad_request(message),
        ApplyError::Undeclared { .. } => Status::new(500, "", message),
    }
}

/// Decodes an object by its type. Unknown fields are dropped, reported or rejected.
fn read(
    kind: &Kind,
    object: &mut Value,
    options: &WriteOptions,
    origin: Origin<'_>,
) -> Result<Vec<String>, Status> {
    // The message of an error quotes the patch, or the object before it is decoded.
    let patched = match origin {
        Origin::Patched(Patch::Strategic(patch)) => Some(go_text(patch)),
        Origin::Patched(_) => Some(object.to_string()),
        Origin::Written | Origin::Applied => None,
    };
    let refuse = |detail: &str| match &patched {
        Some(patched) => unpatchable(patched, detail),
        None => undecodable(kind, detail),
    };
    let unknown = if let Some(custom) = &kind.custom {
        let mut unknown =
            builtin::decode_metadata(object).map_err(|error| refuse(&error.to_string()))?;
        unknown.extend(custom.schema.prune(object));
        whole_numbers(object);
        custom.schema.default(object);
        unknown
    } else if let Some(info) = kind.builtin_type() {
        let unknown = builtin::decode(object, info).map_err(|error| refuse(&error.to_string()))?;
        builtin::defaults(&kind.kind, object);
        unknown
    } else {
        Vec::new()
    };
    let duplicate = &options.duplicate_fields;
    match options.field_validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(warnings_of(&unknown, duplicate)),
        FieldValidation::Strict => match strict_error(&unknown, duplicate) {
            Some(detail) => Err(refuse(&detail)),
            None => Ok(Vec::new()),
        },
    }
}

/// Untyped numbers without a fraction are written as integers: 2.0 becomes 2.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let whole = number
                .as_f64()
                .filter(|number| number.fract() == 0.0 && number.abs() < EXACT);
            #[expect(
                clippy::cast_possible_truncation,
                reason = "it is whole, and small enough to be exact"
            )]
            if let Some(whole) = whole {
                *value = (whole as i64).into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(fields) => fields.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

/// 422 for a patch whose result cannot be decoded. The message names no kind, as in the API server.
fn unpatchable(patched: &str, detail: &str) -> Status {
    let error = FieldError::invalid("patch", patched, detail);
    Status::invalid_object(("", ""), "", &[error])
}

fn warnings_of(unknown: &[String], duplicate: &[String]) -> Vec<String> {
    let duplicates = duplicate
        .iter()
        .map(|path| format!("duplicate field \"{path}\""));
    let unknowns = unknown
        .iter()
        .map(|path| format!("unknown field \"{path}\""));
    duplicates.chain(unknowns).collect()
}

fn undecodable(kind: &Kind, detail: &str) -> Status {
    Status::bad_request(builtin::decode_message(&kind.kind, &kind.version, detail))
}

/// 422 with one cause for each error.
fn refuse_invalid(kind: &Kind, name: &str, errors: &[FieldError]) -> Result<(), Status> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(kind, name, errors))
}

/// Records that the writer owns the fields it changed.
fn record_owner(
    clock: &Clock,
    kind: &Kind,
    subresource: Option<&str>,
    old: Option<&Value>,
    object: &mut Value,
    options: &WriteOptions,
) {
    let Some(info) = type_of(kind) else {
        return;
    };
    let (api_version, now) = (kind.api_version(), clock.now_time());
    let writer = Writer {
        manager: &options.field_manager,
        api_version: &api_version,
        subresource: subresource.unwrap_or_default(),
        now: &now,
    };
    apply::track_update(old, object, &writer, info);
}

fn take_status(object: &mut Value) -> Option<Value> {
    object.as_object_mut()?.remove("status")
}
