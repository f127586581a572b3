//! Bodies of requests: JSON, YAML, and the few kinds that kubectl sends as protobuf.

use http::HeaderMap;
use serde_json::{Value, json};

use super::negotiate::{Encoding, encoding_of};
use super::protobuf;
use crate::builtin::decode_message;
use crate::field::go_json_kind;
use crate::resources::Kind;
use crate::status::Status;

/// Decodes an object of a kind.
///
/// # Errors
/// 415 for other encodings, 400 for a body that is no object of the kind.
pub(crate) fn object(kind: &Kind, headers: &HeaderMap, body: &[u8]) -> Result<Value, Status> {
    let value = match encoding_of(headers)? {
        Encoding::Json => from_json(body).map_err(|error| {
            let shown = String::from_utf8_lossy(body);
            let shown = if shown.is_empty() {
                "<empty>".into()
            } else {
                shown
            };
            unrecognized(kind, &format!("{error} ({shown})"))
        })?,
        Encoding::Yaml => {
            from_yaml(body).map_err(|error| unrecognized(kind, &error.to_string()))?
        }
        Encoding::Protobuf => from_protobuf(body)?,
    };
    check_type(kind, &value)?;
    check_metadata(kind, &value)?;
    Ok(value)
}

/// The names in the metadata are decoded before the type of the kind: they must be strings.
fn check_metadata(kind: &Kind, value: &Value) -> Result<(), Status> {
    let refuse = |found: &Value, field: &str| {
        let found = go_json_kind(found);
        let detail = format!("json: cannot unmarshal {found} into Go struct field {field}");
        let message = decode_message(&kind.kind, &kind.version, &detail);
        Err(Status::bad_request(message))
    };
    let metadata = &value["metadata"];
    if !metadata.is_object() && !metadata.is_null() {
        let field = format!("{}.metadata of type v1.ObjectMeta", kind.kind);
        return refuse(metadata, &field);
    }
    for name in ["name", "generateName", "namespace"] {
        let given = &metadata[name];
        if !given.is_string() && !given.is_null() {
            return refuse(given, &format!("ObjectMeta.metadata.{name} of type string"));
        }
    }
    Ok(())
}

/// The object must not have another kind or API version.
pub(crate) fn check_type(kind: &Kind, value: &Value) -> Result<(), Status> {
    if !value.is_object() {
        return Err(unrecognized(
            kind,
            "couldn't get version/kind; it is not an object",
        ));
    }
    let text = |field: &str| value[field].as_str().unwrap_or_default();
    let (api_version, given_kind) = (text("apiVersion"), text("kind"));
    if kind.is_custom() {
        for (field, given) in [("Kind", given_kind), ("apiVersion", api_version)] {
            if given.is_empty() {
                let shown = value.to_string();
                return Err(Status::bad_request(format!(
                    "Object '{field}' is missing in '{shown}'"
                )));
            }
        }
    }
    let expected = kind.api_version();
    if !api_version.is_empty() && api_version != expected {
        return Err(Status::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({expected})"
        )));
    }
    if !given_kind.is_empty() && given_kind != kind.kind {
        let wanted = &kind.kind;
        return Err(Status::bad_request(format!(
            "{given_kind} in version \"{}\" cannot be handled as a {wanted}",
            kind.version
        )));
    }
    Ok(())
}

fn malformed(error: &BodyError) -> Status {
    Status::bad_request(error.to_string())
}

fn unrecognized(kind: &Kind, why: &str) -> Status {
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {}): {why}",
        kind.kind
    ))
}

fn from_protobuf(body: &[u8]) -> Result<Value, Status> {
    protobuf::object(body).ok_or_else(|| {
        let message = "this body is not understood in protobuf: send application/json";
        Status::new(415, "UnsupportedMediaType", message)
    })
}

/// The body of a subresource that is not a part of the object.
pub(crate) fn any(headers: &HeaderMap, body: &[u8]) -> Result<Value, Status> {
    match encoding_of(headers)? {
        Encoding::Json => from_json(body).map_err(|error| malformed(&error)),
        Encoding::Yaml => from_yaml(body).map_err(|error| malformed(&error)),
        Encoding::Protobuf => from_protobuf(body),
    }
}

/// Why a body cannot be decoded, in the API server's words.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("couldn't get version/kind; json parse error: {}", json_detail(.0))]
    Json(serde_json::Error),
    #[error(transparent)]
    Encoding(std::str::Utf8Error),
    #[error("error converting YAML to JSON: {0}")]
    Yaml(serde_saphyr::Error),
    #[error("the body is malformed")]
    Protobuf,
}

impl BodyError {
    /// The error in the document, without the context that bodies of objects have.
    pub(crate) fn detail(&self) -> String {
        match self {
            Self::Json(error) => json_detail(error),
            other => other.to_string(),
        }
    }
}

fn json_detail(error: &serde_json::Error) -> String {
    if error.is_eof() {
        "unexpected end of JSON input".to_owned()
    } else {
        error.to_string()
    }
}

/// A JSON document.
pub(crate) fn from_json(body: &[u8]) -> Result<Value, BodyError> {
    serde_json::from_slice(body).map_err(BodyError::Json)
}

/// A YAML document, which may be JSON.
pub(crate) fn from_yaml(body: &[u8]) -> Result<Value, BodyError> {
    // kubectl sends JSON with the media type of YAML. JSON is faster to parse, and exact in numbers.
    if let Ok(value) = serde_json::from_slice(body) {
        return Ok(value);
    }
    let text = std::str::from_utf8(body).map_err(BodyError::Encoding)?;
    serde_saphyr::from_str(text).map_err(BodyError::Yaml)
}

/// `DeleteOptions` as a body; an empty body gives `None`.
pub(crate) fn delete_options(headers: &HeaderMap, body: &[u8]) -> Result<Option<Value>, Status> {
    if body.is_empty() {
        return Ok(None);
    }
    let value = match encoding_of(headers)? {
        Encoding::Yaml => from_yaml(body),
        Encoding::Json => from_json(body),
        Encoding::Protobuf => protobuf::object(body).ok_or(BodyError::Protobuf),
    };
    let value = value.map_err(|error| malformed(&error))?;
    let given = value["kind"].as_str().unwrap_or("DeleteOptions");
    if !value.is_object() || given != "DeleteOptions" {
        let message = format!("decoded object cannot be converted to DeleteOptions, got {given}");
        return Err(Status::bad_request(message));
    }
    Ok(Some(if value.is_null() { json!({}) } else { value }))
}
