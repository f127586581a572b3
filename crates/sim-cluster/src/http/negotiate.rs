//! Content negotiation: the media type of the answer, and the encoding of the body.

use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};

use crate::status::Status;

/// The media type of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    pub(crate) shape: Shape,
    pub(crate) yaml: bool,
}

/// The representation of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The object itself.
    Plain,
    /// A `Table`.
    Table,
    /// `PartialObjectMetadata` or a list of them.
    Metadata,
    /// `APIGroupDiscoveryList`.
    Discovery,
}

/// The encoding of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Yaml,
    Protobuf,
}

/// The first supported media type of the client's `Accept`.
///
/// # Errors
/// 406 if it has neither JSON nor YAML.
pub(crate) fn format_of(headers: &HeaderMap) -> Result<Format, Status> {
    let accept = headers
        .get(ACCEPT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let plain = Format {
        shape: Shape::Plain,
        yaml: false,
    };
    if accept.trim().is_empty() {
        return Ok(plain);
    }
    accept.split(',').find_map(clause).ok_or_else(|| {
        Status::new(
            406,
            "NotAcceptable",
            "only the following media types are accepted: application/json, application/yaml",
        )
    })
}

fn clause(clause: &str) -> Option<Format> {
    let mut parts = clause.split(';').map(str::trim);
    let yaml = match parts.next()? {
        "application/json" | "*/*" | "application/*" => false,
        "application/yaml" => true,
        _ => return None,
    };
    let (mut shape, mut version, mut group) = ("", "", "");
    for part in parts {
        match part.split_once('=')? {
            ("as", value) => shape = value,
            ("v", value) => version = value,
            ("g", value) => group = value,
            _ => {}
        }
    }
    let shape = match (shape, group, version) {
        ("", ..) => Shape::Plain,
        ("Table", "meta.k8s.io", "v1" | "v1beta1") => Shape::Table,
        (
            "PartialObjectMetadata" | "PartialObjectMetadataList",
            "meta.k8s.io",
            "v1" | "v1beta1",
        ) => Shape::Metadata,
        ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2") => Shape::Discovery,
        _ => return None,
    };
    Some(Format { shape, yaml })
}

/// The media type of the body, without its parameters.
pub(crate) fn content_type(headers: &HeaderMap) -> &str {
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let value = value.unwrap_or("application/json");
    value.split(';').next().unwrap_or_default().trim()
}

/// The encoding of a body.
///
/// # Errors
/// 415 for other types.
pub(crate) fn encoding_of(headers: &HeaderMap) -> Result<Encoding, Status> {
    match content_type(headers) {
        "" | "application/json" | "*/*" => Ok(Encoding::Json),
        "application/yaml" => Ok(Encoding::Yaml),
        "application/vnd.kubernetes.protobuf" => Ok(Encoding::Protobuf),
        other => Err(unsupported_media_type(
            "the body of the request was in an unknown format",
            other,
            &[
                "application/json",
                "application/yaml",
                "application/vnd.kubernetes.protobuf",
            ],
        )),
    }
}

/// 415.
pub(crate) fn unsupported_media_type(what: &str, _given: &str, accepted: &[&str]) -> Status {
    let message = format!(
        "{what} - accepted media types include: {}",
        accepted.join(", ")
    );
    Status::new(415, "UnsupportedMediaType", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_supported_media_type_is_used() {
        let rows = [
            ("", Some(Shape::Plain)),
            ("*/*", Some(Shape::Plain)),
            (
                "application/vnd.kubernetes.protobuf,application/json",
                Some(Shape::Plain),
            ),
            (
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
                Some(Shape::Table),
            ),
            (
                "application/json;as=Tree;v=v1;g=x,application/json",
                Some(Shape::Plain),
            ),
            (
                "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
                Some(Shape::Metadata),
            ),
            ("application/vnd.kubernetes.protobuf", None),
        ];
        for (accept, expected) in rows {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            assert_eq!(
                format_of(&headers).ok().map(|format| format.shape),
                expected,
                "{accept}"
            );
        }
    }
}
