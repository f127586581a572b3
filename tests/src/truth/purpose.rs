//! What differs on purpose between embedded clusters and real ones, with reasons: the list in sim-cluster's README.

/// Keys and reasons. Each is used by a comparison, where it says where exactly.
pub const REASONS: &[(&str, &str)] = &[];

/// The list as it stands in the README.
pub fn markdown() -> String {
    let lines = REASONS
        .iter()
        .map(|(key, reason)| format!("- **{key}**: {reason}\n"));
    lines.collect()
}
