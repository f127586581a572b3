//! Validation errors with the path of their field.

/// A validation error of one field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct FieldError {
    /// Path of the field: `spec.placement.clusters[eu-1].maxReplicas`.
    pub field: String,
    /// The error, without the field: `must not be negative, but is -1`.
    pub message: String,
}

/// The errors of an object, collected to report all of them at once.
#[derive(Debug, Default)]
pub struct Errors(Vec<FieldError>);

impl Errors {
    /// Adds an error at `field`.
    pub fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.0.push(FieldError {
            field: field.into(),
            message: message.into(),
        });
    }

    /// Adds an error at `field` unless `holds`.
    pub(crate) fn require(&mut self, holds: bool, field: &str, message: &str) {
        if !holds {
            self.add(field, message);
        }
    }

    /// Adds the errors of a part.
    pub fn extend(&mut self, errors: Vec<FieldError>) {
        self.0.extend(errors);
    }

    /// All errors, in order.
    pub(crate) fn into_list(self) -> Vec<FieldError> {
        self.0
    }

    /// `value` if there is no error.
    pub fn or<T>(self, value: T) -> Result<T, Vec<FieldError>> {
        if self.0.is_empty() {
            Ok(value)
        } else {
            Err(self.0)
        }
    }
}
