//! What is wrong with an object, for people.

use fedrs_api::{FieldError, SHOWN_ERRORS};
use reflector::printable;

/// The first errors, each in one short line.
#[must_use]
pub fn message(errors: &[FieldError]) -> String {
    let shown = errors.iter().take(SHOWN_ERRORS);
    let mut texts: Vec<_> = shown.map(|error| printable(&error.to_string())).collect();
    if errors.len() > SHOWN_ERRORS {
        texts.push("and more errors".to_owned());
    }
    texts.join("; ")
}
