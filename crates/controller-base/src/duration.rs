//! Durations in a configuration: `90s`, `1m30s`, `500ms`, never negative.

use std::time::Duration;

use jiff::SignedDuration;
use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

/// Writes a duration.
pub fn serialize<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    let duration = SignedDuration::try_from(*duration).unwrap_or(SignedDuration::MAX);
    to.collect_str(&format_args!("{duration:#}"))
}

/// Reads a duration.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    let span: SignedDuration = text.parse().map_err(|error| {
        D::Error::custom(format!(
            "{text:?} is not a duration such as 90s or 1m30s: {error}"
        ))
    })?;
    Duration::try_from(span).map_err(|_| D::Error::custom(format!("{text:?} is negative")))
}
