//! Numbers that may be percentages, as in `maxSurge: 25%`.

/// The number before `%`, as Kubernetes reads it: digits without a sign. `None` for another text, or one above `u32::MAX`.
pub(crate) fn percentage(text: &str) -> Option<u32> {
    text.strip_suffix('%')
        .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()))
        .and_then(|digits| digits.parse().ok())
}
