//! Parts of texts.

use std::fmt::{self, Display};

use jiff::Timestamp;

/// A time as logs show it, to the second.
pub(super) struct Time(pub(super) Timestamp);

impl Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0}", self.0)
    }
}

/// `1 replica`, `2 replicas`.
pub(super) fn replicas(count: u64) -> String {
    fedrs_api::pluralize(count, "replica")
}

/// `1 pod`, `2 pods`.
pub(super) fn pods(count: u64) -> String {
    fedrs_api::pluralize(count, "pod")
}

/// The message of a member, in parentheses.
pub(super) fn quoted(message: Option<&str>) -> String {
    format!("({})", message.unwrap_or("no message"))
}

/// All of `parts` in one line.
pub(super) fn join(parts: impl IntoIterator<Item = impl Display>, separator: &str) -> String {
    let mut text = String::new();
    for part in parts {
        if !text.is_empty() {
            text.push_str(separator);
        }
        text.push_str(&part.to_string());
    }
    text
}
