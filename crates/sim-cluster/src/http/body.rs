//! Bodies of requests: JSON, YAML, and the few kinds that kubectl sends as protobuf.

use http::HeaderMap;
use serde_json::{Value, json};

use super::negotiate::{Encoding, encoding_of};
use super::protobuf;
use crate::builtin::decode_message;
use crate::field::go_json_kind;
use crate::resources::Kind;
use crate::status::Status;

/// Reads an object of a kind.
///
/// # Errors
/// 415 for other encodings, 400 for what is no such object.
pub(crate) fn object(kind: &Kind, headers: &HeaderMap, body: &[u8]) -> Result<Value, Status> {
    let value = match encoding_of(headers)? {
        Encoding::Json => from_json(body).map_err(|why| {
            let shown = String::from_utf8_lossy(body);
            let shown = if shown.is_empty() {
                "<empty>".into()
            } else {
                shown
            };
            unrecognized(kind, &format!("{why} ({shown})"))
        })?,
        Encoding::Yaml => from_yaml(body).map_err(|why| unrecognized(kind, &why))?,
        Encoding::Protobuf => from_protobuf(body)?,
    };
    check_type(kind, &value)?;
    check_metadata(kind, &value)?;
    Ok(value)
}

/// What names an object must be read before its kind's type is: it must be text.
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

/// The object must not say that it is something else.
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

/// The body of a subresource that is no part of the object, in whatever form it comes.
pub(crate) fn any(headers: &HeaderMap, body: &[u8]) -> Result<Value, Status> {
    match encoding_of(headers)? {
        Encoding::Json => from_json(body).map_err(Status::bad_request),
        Encoding::Yaml => from_yaml(body).map_err(Status::bad_request),
        Encoding::Protobuf => from_protobuf(body),
    }
}

/// A JSON document.
pub(crate) fn from_json(body: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(body).map_err(|error| {
        let why = if error.is_eof() {
            "unexpected end of JSON input".to_owned()
        } else {
            error.to_string()
        };
        format!("couldn't get version/kind; json parse error: {why}")
    })
}

/// A YAML document; JSON is one, too.
pub(crate) fn from_yaml(body: &[u8]) -> Result<Value, String> {
    // kubectl sends JSON under the name of YAML; that way is quicker, and exact in numbers.
    if let Ok(value) = serde_json::from_slice(body) {
        return Ok(value);
    }
    let text = std::str::from_utf8(body).map_err(|error| error.to_string())?;
    serde_saphyr::from_str(text).map_err(|error| format!("error converting YAML to JSON: {error}"))
}

/// `DeleteOptions` as a body; an empty body gives `None`.
pub(crate) fn delete_options(headers: &HeaderMap, body: &[u8]) -> Result<Option<Value>, Status> {
    if body.is_empty() {
        return Ok(None);
    }
    let value = match encoding_of(headers)? {
        Encoding::Yaml => from_yaml(body),
        Encoding::Json => from_json(body),
        Encoding::Protobuf => protobuf::object(body).ok_or_else(|| "it is malformed".to_owned()),
    };
    let value = value.map_err(Status::bad_request)?;
    let given = value["kind"].as_str().unwrap_or("DeleteOptions");
    if !value.is_object() || given != "DeleteOptions" {
        let message = format!("decoded object cannot be converted to DeleteOptions, got {given}");
        return Err(Status::bad_request(message));
    }
    Ok(Some(if value.is_null() { json!({}) } else { value }))
}
