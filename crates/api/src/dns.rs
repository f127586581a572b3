//! The syntax of Kubernetes' names and labels.

/// The longest DNS label, label value, and name part of a label key.
const MAX_LENGTH: usize = 63;
/// The longest prefix of a label key.
const MAX_PREFIX_LENGTH: usize = 253;

/// The error of a name that is no DNS label.
pub(crate) const IS_NO_LABEL: &str =
    "must be a DNS label: lower-case letters, digits and '-', at most 63 characters";

/// Whether `name` is a DNS label (RFC 1123): lower-case letters, digits and `-`, at most 63 characters.
#[must_use]
pub fn is_label(name: &str) -> bool {
    let bytes = name.as_bytes();
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() <= MAX_LENGTH
        && bytes.first().is_some_and(alphanumeric)
        && bytes.last().is_some_and(alphanumeric)
        && bytes.iter().all(|byte| alphanumeric(byte) || *byte == b'-')
}

/// Whether `key` can be the key of a label or annotation: a name, or a DNS prefix, `/` and a name.
pub(crate) fn is_label_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, name)) => {
            prefix.len() <= MAX_PREFIX_LENGTH
                && prefix.split('.').all(is_label)
                && is_qualified(name)
        }
        None => is_qualified(key),
    }
}

/// Whether `value` can be the value of a label: empty, or a name.
pub(crate) fn is_label_value(value: &str) -> bool {
    value.is_empty() || is_qualified(value)
}

/// Letters, digits, `-`, `_` and `.`, with a letter or digit at both ends.
fn is_qualified(name: &str) -> bool {
    let bytes = name.as_bytes();
    name.len() <= MAX_LENGTH
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}
