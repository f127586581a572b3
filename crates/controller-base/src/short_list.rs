//! Lists in texts for people.

/// Parts that are shown at most: there may be a thousand members.
pub const SHOWN: usize = 8;

/// The first `parts` with `separator` between them, and how many more there are. None without parts.
pub fn short_list(mut parts: impl Iterator<Item = String>, separator: &str) -> Option<String> {
    let first: Vec<_> = parts.by_ref().take(SHOWN).collect();
    if first.is_empty() {
        return None;
    }
    let first = first.join(separator);
    Some(match parts.count() {
        0 => first,
        more => format!("{first}{separator}and {more} more"),
    })
}
