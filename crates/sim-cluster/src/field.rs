//! Errors of fields of an object, with the API server's messages.
//!
//! validation -> `Vec<FieldError>` -> (the server) a `Status` with one cause for each.
//! It does not know HTTP or `Status`.

use std::fmt;

use serde_json::Value;

/// The kinds of field errors of the Kubernetes API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldErrorKind {
    /// A value that refers to nothing.
    NotFound,
    /// A value is missing.
    Required,
    /// A value that must be unique occurs twice.
    Duplicate,
    /// A malformed value.
    Invalid,
    /// A value of the wrong JSON type.
    TypeInvalid,
    /// A value that is not among those of an enumeration.
    NotSupported,
    /// A value that policy or immutability forbids.
    Forbidden,
    /// A string that is too long; the value is not repeated in the message.
    TooLong,
    /// A list or map with too many items; the value is their number.
    TooMany,
}

impl FieldErrorKind {
    /// The reason of a `Status` cause.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
        }
    }

    fn repeats_value(self) -> bool {
        !matches!(self, Self::Required | Self::Forbidden | Self::TooLong)
    }
}

/// An error of one field. `Display` is `path: body`, as kubectl prints it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FieldError {
    /// The kind of error.
    pub kind: FieldErrorKind,
    /// The path: `spec.containers[0].name`. Empty for the object itself.
    pub path: String,
    /// The value found; none if the message leaves it out.
    pub value: Option<Value>,
    /// The explanation; may be empty.
    pub detail: String,
}

impl FieldError {
    /// An error of any kind.
    pub(crate) fn new(
        kind: FieldErrorKind,
        path: impl Into<String>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            path: path.into(),
            value: Some(value.into()),
            detail: detail.into(),
        }
    }

    /// A malformed value.
    pub(crate) fn invalid(
        path: impl Into<String>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self::new(FieldErrorKind::Invalid, path, value, detail)
    }

    /// The same error without its value in the message, where that would be long.
    #[must_use]
    pub(crate) fn without_value(mut self) -> Self {
        self.value = None;
        self
    }

    /// A missing value.
    pub(crate) fn required(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Required, path, "", detail)
    }

    /// A value that policy or immutability forbids.
    pub(crate) fn forbidden(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Forbidden, path, "", detail)
    }

    /// A duplicate value.
    pub(crate) fn duplicate(path: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(FieldErrorKind::Duplicate, path, value, "")
    }

    /// A value that is none of `supported`.
    pub(crate) fn not_supported(
        path: impl Into<String>,
        value: impl Into<Value>,
        supported: &[&str],
    ) -> Self {
        let quoted: Vec<String> = supported.iter().map(|text| quote(text)).collect();
        let detail = if quoted.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", quoted.join(", "))
        };
        Self::new(FieldErrorKind::NotSupported, path, value, detail)
    }

    /// A string longer than `max` bytes.
    pub(crate) fn too_long(path: impl Into<String>, max: u64) -> Self {
        let unit = if max == 1 { "byte" } else { "bytes" };
        Self::new(
            FieldErrorKind::TooLong,
            path,
            "",
            format!("may not be more than {max} {unit}"),
        )
    }

    /// A list or map of `actual` items where `max` are allowed.
    pub(crate) fn too_many(path: impl Into<String>, actual: usize, max: u64) -> Self {
        let unit = if max == 1 { "item" } else { "items" };
        Self::new(
            FieldErrorKind::TooMany,
            path,
            actual,
            format!("must have at most {max} {unit}"),
        )
    }

    /// The message of a `Status` cause: everything but the path.
    pub(crate) fn body(&self) -> String {
        let mut body = self.kind.words().to_owned();
        if let Some(value) = self.value.as_ref().filter(|_| self.kind.repeats_value()) {
            body.push_str(": ");
            match value {
                Value::String(text) => body.push_str(&quote(text)),
                other => body.push_str(&other.to_string()),
            }
        }
        if !self.detail.is_empty() {
            body.push_str(": ");
            body.push_str(&self.detail);
        }
        body
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body())
    }
}

/// The errors as one text: the only one, or `[first, second]`, equal ones once.
pub(crate) fn aggregate(errors: &[FieldError]) -> String {
    let mut texts: Vec<String> = Vec::with_capacity(errors.len());
    for error in errors {
        let text = error.to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [only] => only.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

/// `prefix` and `path` as one path; either may be empty.
pub(crate) fn join(prefix: &str, path: &str) -> String {
    match (prefix, path) {
        ("", path) => path.to_owned(),
        (prefix, "") => prefix.to_owned(),
        (prefix, path) if path.starts_with('[') => [prefix, path].concat(),
        (prefix, path) => [prefix, ".", path].concat(),
    }
}

/// The JSON type of a value, as Go's decoder names it.
pub(crate) fn go_json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A value as Go's `%+v` shows it: `map[spec:map[replicas:1]]`.
pub(crate) fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_text).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => {
            let fields: Vec<String> = (fields.iter())
                .map(|(name, value)| format!("{name}:{}", go_text(value)))
                .collect();
            format!("map[{}]", fields.join(" "))
        }
        scalar => scalar.to_string(),
    }
}

/// `text` in double quotes with Go's escapes, as `%q` prints it.
pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            control if control.is_ascii_control() => {
                quoted.push_str("\\x");
                quoted.extend(char::from_digit(u32::from(control) >> 4, 16));
                quoted.extend(char::from_digit(u32::from(control) & 15, 16));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(
        FieldError::required("spec.selector", ""),
        "spec.selector: Required value"
    )]
    #[case(FieldError::invalid("spec.replicas", -1, "must be non-negative"), "spec.replicas: Invalid value: -1: must be non-negative")]
    #[case(FieldError::not_supported("spec.restartPolicy", "Never", &["Always"]), r#"spec.restartPolicy: Unsupported value: "Never": supported values: "Always""#)]
    #[case(
        FieldError::too_long("metadata.name", 63),
        "metadata.name: Too long: may not be more than 63 bytes"
    )]
    #[case(
        FieldError::too_many("spec.list", 3, 2),
        "spec.list: Too many: 3: must have at most 2 items"
    )]
    #[case(
        FieldError::invalid("spec.x", Value::Null, "no"),
        "spec.x: Invalid value: null: no"
    )]
    fn an_error_reads_as_the_api_server_prints_it(#[case] error: FieldError, #[case] text: &str) {
        assert_eq!(error.to_string(), text);
    }
}
