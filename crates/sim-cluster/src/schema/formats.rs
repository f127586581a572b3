//! String formats of structural schemas; a format that is not listed is not checked.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Whether `text` is of the format.
pub(super) fn fits_format(format: &str, text: &str) -> bool {
    match format {
        "date-time" | "datetime" => text.parse::<jiff::Timestamp>().is_ok(),
        "date" => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
        "uuid" | "uuid3" | "uuid4" | "uuid5" => {
            text.len() >= 32 && uuid::Uuid::try_parse(text).is_ok()
        }
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "byte" => is_base64(text),
        "uri" => text
            .split_once(':')
            .is_some_and(|(scheme, _)| !scheme.is_empty()),
        "hostname" => !text.is_empty() && text.split('.').all(is_host_label),
        "duration" => text.parse::<jiff::Span>().is_ok() || is_go_duration(text),
        _ => true,
    }
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let Ok(bits) = bits.parse::<u8>() else {
        return false;
    };
    (address.parse::<Ipv4Addr>().is_ok() && bits <= 32)
        || (address.parse::<Ipv6Addr>().is_ok() && bits <= 128)
}

fn is_base64(text: &str) -> bool {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD
        .decode(text)
        .is_ok()
}

fn is_host_label(label: &str) -> bool {
    !label.is_empty()
        && label.len() <= 63
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label
            .chars()
            .all(|character| character.is_ascii_alphanumeric() || character == '-')
}

/// `1h30m`, `-1.5s`, `0`.
fn is_go_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let digits = rest
            .find(|character: char| !character.is_ascii_digit() && character != '.')
            .unwrap_or(rest.len());
        let units = ["ns", "us", "µs", "ms", "s", "m", "h"];
        let after = &rest[digits..];
        let unit = units
            .iter()
            .filter(|unit| after.starts_with(**unit))
            .max_by_key(|unit| unit.len());
        match unit {
            Some(unit) if digits > 0 => rest = &after[unit.len()..],
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("date-time", "2026-11-01T12:00:00Z", true)]
    #[case("date-time", "2026-11-01", false)]
    #[case("duration", "1h30m", true)]
    #[case("duration", "1x", false)]
    #[case("ipv4", "10.0.0.1", true)]
    #[case("ipv4", "10.0.0", false)]
    #[case("cidr", "10.0.0.0/8", true)]
    #[case("hostname", "a-b.example", true)]
    #[case("hostname", "-a", false)]
    #[case("made-up", "anything", true)]
    fn texts_are_checked_against_formats(
        #[case] format: &str,
        #[case] text: &str,
        #[case] fits: bool,
    ) {
        assert_eq!(fits_format(format, text), fits);
    }
}
