//! Kubernetes' `Status`: the body of every error of the API, and the error type of this crate.
//!
//! Messages are exactly those of the API server: clients match on them.

use std::fmt;

use serde_json::{Value, json};

use crate::field::{FieldError, aggregate};
use crate::resources::Kind;

/// An error of the API, with the API server's message.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The HTTP status code.
    pub code: u16,
    /// The machine-readable reason, `NotFound` for example; empty if there is none.
    pub reason: &'static str,
    /// The message for people.
    pub message: String,
    /// The object concerned, and the causes.
    pub details: Option<Box<StatusDetails>>,
    /// For an expired list: the token with which it continues inconsistently. Empty otherwise.
    pub continue_token: String,
}

/// `status.details`: the object concerned and the causes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatusDetails {
    /// The object's name.
    pub name: String,
    /// The API group.
    pub group: String,
    /// The plural resource, or for `Invalid` the kind.
    pub kind: String,
    /// The object's uid.
    pub uid: String,
    /// One cause for each invalid field or violated condition.
    pub causes: Vec<StatusCause>,
    /// The seconds after which to retry; 0 means unspecified.
    pub retry_after_seconds: u32,
}

/// A cause of an error: for an invalid object, one field.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatusCause {
    /// `FieldValueRequired`, `FieldValueInvalid`, ...
    pub reason: &'static str,
    /// The message for people, without the field: `Required value`.
    pub message: String,
    /// The path: `spec.template.spec.containers[0].name`.
    pub field: String,
}

impl StatusCause {
    /// A cause with this reason.
    pub fn new(reason: &'static str, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            field: field.into(),
        }
    }
}

impl From<&FieldError> for StatusCause {
    fn from(error: &FieldError) -> Self {
        Self::new(error.kind.reason(), &error.path, error.body())
    }
}

impl fmt::Display for StatusCause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.field, self.message)
    }
}

impl Status {
    /// A status without details.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
            continue_token: String::new(),
        }
    }

    fn about(code: u16, reason: &'static str, message: String, kind: &Kind, name: &str) -> Self {
        let details = StatusDetails {
            name: name.to_owned(),
            group: kind.group.clone(),
            kind: kind.plural.clone(),
            ..StatusDetails::default()
        };
        Self {
            details: Some(Box::new(details)),
            ..Self::new(code, reason, message)
        }
    }

    /// 404: `replicasets.apps "web" not found`.
    pub fn not_found(kind: &Kind, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", kind.group_resource());
        Self::about(404, "NotFound", message, kind, name)
    }

    /// 404 for a path that names no resource.
    pub fn no_such_resource() -> Self {
        let status = Self::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        );
        Self {
            details: Some(Box::default()),
            ..status
        }
    }

    /// 409: `pods "a" already exists`.
    pub fn already_exists(kind: &Kind, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", kind.group_resource());
        Self::about(409, "AlreadyExists", message, kind, name)
    }

    /// 409: `Operation cannot be fulfilled on pods "a": WHY`.
    pub fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": {why}",
            kind.group_resource()
        );
        Self::about(409, "Conflict", message, kind, name)
    }

    /// 409 of a write with a stale resourceVersion.
    pub fn modified(kind: &Kind, name: &str) -> Self {
        Self::conflict(
            kind,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// 403: `pods "a" is forbidden: WHY`.
    pub fn forbidden(kind: &Kind, name: &str, why: &str) -> Self {
        let message = if name.is_empty() {
            format!("{} is forbidden: {why}", kind.group_resource())
        } else {
            format!("{} \"{name}\" is forbidden: {why}", kind.group_resource())
        };
        Self::about(403, "Forbidden", message, kind, name)
    }

    /// 422: `ReplicaSet.apps "web" is invalid: spec.selector: Required value`.
    pub(crate) fn invalid(kind: &Kind, name: &str, errors: &[FieldError]) -> Self {
        Self::invalid_object((&kind.group, &kind.kind), name, errors)
    }

    /// [`Status::invalid`] for a group and kind that the server does not serve: `DeleteOptions.meta.k8s.io`.
    pub(crate) fn invalid_object(
        (group, kind): (&str, &str),
        name: &str,
        errors: &[FieldError],
    ) -> Self {
        let qualified = if group.is_empty() {
            kind.to_owned()
        } else {
            format!("{kind}.{group}")
        };
        let message = format!("{qualified} \"{name}\" is invalid: {}", aggregate(errors));
        let details = StatusDetails {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: kind.to_owned(),
            causes: errors.iter().map(StatusCause::from).collect(),
            ..StatusDetails::default()
        };
        Self {
            details: Some(Box::new(details)),
            ..Self::new(422, "Invalid", message)
        }
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 400 for an object without a name in a request for the object `name`.
    pub(crate) fn nameless(name: &str) -> Self {
        Self::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        ))
    }

    /// 401.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 405.
    pub fn method_not_allowed() -> Self {
        let status = Self::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        );
        Self {
            details: Some(Box::default()),
            ..status
        }
    }

    /// 410 for a resource version that is no longer in the log.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 429 with the seconds after which to retry.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        let details = StatusDetails {
            retry_after_seconds,
            ..StatusDetails::default()
        };
        Self {
            details: Some(Box::new(details)),
            ..Self::new(429, "TooManyRequests", message)
        }
    }

    /// 500.
    pub fn internal(message: impl fmt::Display) -> Self {
        let text = format!("Internal error occurred: {message}");
        let details = StatusDetails {
            causes: vec![StatusCause {
                message: message.to_string(),
                ..StatusCause::default()
            }],
            ..StatusDetails::default()
        };
        Self {
            details: Some(Box::new(details)),
            ..Self::new(500, "InternalError", text)
        }
    }

    /// The same with a further cause.
    #[must_use]
    pub fn with_cause(mut self, cause: StatusCause) -> Self {
        self.details.get_or_insert_default().causes.push(cause);
        self
    }

    /// The `Status` as JSON.
    pub fn to_value(&self) -> Value {
        let mut value = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {},
            "status": "Failure", "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            value["reason"] = json!(self.reason);
        }
        if let Some(details) = &self.details {
            value["details"] = details.to_value();
        }
        if !self.continue_token.is_empty() {
            value["metadata"]["continue"] = json!(self.continue_token);
        }
        value
    }
}

impl StatusDetails {
    pub(crate) fn to_value(&self) -> Value {
        let mut value = json!({});
        let texts = [
            ("name", &self.name),
            ("group", &self.group),
            ("kind", &self.kind),
            ("uid", &self.uid),
        ];
        for (field, text) in texts {
            if !text.is_empty() {
                value[field] = json!(text);
            }
        }
        if !self.causes.is_empty() {
            value["causes"] = self.causes.iter().map(StatusCause::to_value).collect();
        }
        if self.retry_after_seconds > 0 {
            value["retryAfterSeconds"] = json!(self.retry_after_seconds);
        }
        value
    }
}

impl StatusCause {
    fn to_value(&self) -> Value {
        let mut value = json!({});
        let texts = [
            ("reason", self.reason),
            ("message", self.message.as_str()),
            ("field", self.field.as_str()),
        ];
        for (name, text) in texts {
            if !text.is_empty() {
                value[name] = json!(text);
            }
        }
        value
    }
}

impl fmt::Display for Status {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} ({} {})",
            self.message, self.code, self.reason
        )
    }
}

impl std::error::Error for Status {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::kinds;

    #[test]
    fn rejections_have_the_messages_of_the_api_server() {
        let conflict = Status::modified(&kinds::REPLICA_SETS, "x");
        assert_eq!(
            conflict.message,
            "Operation cannot be fulfilled on replicasets.apps \"x\": the object has been modified; \
             please apply your changes to the latest version and try again"
        );
        let one = [FieldError::required("spec.selector", "")];
        assert_eq!(
            Status::invalid(&kinds::REPLICA_SETS, "x", &one).message,
            "ReplicaSet.apps \"x\" is invalid: spec.selector: Required value"
        );
        let two = [
            FieldError::invalid("spec.replicas", -1, "must be greater than or equal to 0"),
            FieldError::not_supported("spec.restartPolicy", "Never", &["Always"]),
        ];
        assert_eq!(
            Status::invalid(&kinds::PODS, "x", &two).message,
            "Pod \"x\" is invalid: [spec.replicas: Invalid value: -1: must be greater than or equal to 0, \
             spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\"]"
        );
    }

    #[test]
    fn empty_fields_are_omitted_from_json() {
        assert_eq!(
            Status::not_found(&kinds::PODS, "a").to_value(),
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "pods \"a\" not found", "reason": "NotFound", "code": 404,
                "details": {"name": "a", "kind": "pods"}})
        );
    }
}
