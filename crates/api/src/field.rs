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

/// The most errors of an object that are kept: one more than [`SHOWN_ERRORS`], so that it is known that there are more.
const KEPT_ERRORS: usize = SHOWN_ERRORS + 1;
/// The most errors of an object that are shown.
pub const SHOWN_ERRORS: usize = 20;
/// The most characters of a field, and of a message, that are kept: both may quote the object, which may be large.
const KEPT_CHARS: usize = 512;

/// The errors of an object, collected to report them at once.
#[derive(Debug, Default)]
pub struct Errors(Vec<FieldError>);

impl Errors {
    /// Adds an error at `field`.
    pub fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        if !self.is_full() {
            self.0.push(FieldError {
                field: cut(field.into()),
                message: cut(message.into()),
            });
        }
    }

    /// Whether no more errors are kept.
    pub(crate) fn is_full(&self) -> bool {
        self.0.len() >= KEPT_ERRORS
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
        self.0.truncate(KEPT_ERRORS);
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

fn cut(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(KEPT_CHARS) {
        text.truncate(end);
        text.shrink_to_fit();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s6_errors_are_few_and_short() {
        let mut errors = Errors::default();
        for _ in 0..1000 {
            errors.add("ä".repeat(10_000), "no");
        }
        errors.extend(vec![errors.0[0].clone(); 1000]);
        let kept = errors.or(()).unwrap_err();
        assert_eq!(kept.len(), SHOWN_ERRORS + 1);
        assert!(
            kept.iter()
                .all(|error| error.field == "ä".repeat(KEPT_CHARS))
        );
    }
}
