//! Parsers of option values.

use std::time::Duration;

use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp};

/// The shortest lifetime of a token that API servers accept.
const SHORTEST_TOKEN: Duration = Duration::from_secs(600);

/// The longest name of a process: as long as names of Kubernetes.
const LONGEST_IDENTITY: usize = 253;

/// The name of a member, a namespace or a ServiceAccount.
pub(crate) fn dns_label(text: &str) -> Result<String, String> {
    if fedrs_api::is_dns_label(text) {
        return Ok(text.to_owned());
    }
    Err("must be a DNS label: lower-case letters, digits and '-', at most 63 characters".to_owned())
}

/// The name of a process in the leader election.
pub(crate) fn identity(text: &str) -> Result<String, String> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
    if is_plain && (1..=LONGEST_IDENTITY).contains(&text.len()) {
        return Ok(text.to_owned());
    }
    Err("must be 1 to 253 printable ASCII characters without spaces".to_owned())
}

/// The name of a federation; may be empty.
pub(crate) fn federation(text: &str) -> Result<String, String> {
    match text {
        "" => Ok(String::new()),
        name => dns_label(name),
    }
}

/// A duration such as `90s`, `10m` or `720h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let duration: SignedDuration = text
        .parse()
        .map_err(|_| "must be a duration such as 90s, 10m or 720h".to_owned())?;
    Duration::try_from(duration).map_err(|_| "must not be negative".to_owned())
}

/// A duration that may have days of 24 hours: `7d`, `1d 12h`, or as [`duration`] takes it. At least a second.
pub(crate) fn days_or_less(text: &str) -> Result<Duration, String> {
    let in_seconds = |span: Span| span.to_duration(SpanRelativeTo::days_are_24_hours());
    let span: Result<Span, _> = text.parse();
    let duration = span.and_then(in_seconds).ok();
    let duration = duration.and_then(|duration| Duration::try_from(duration).ok());
    duration
        .filter(|duration| duration.as_secs() > 0)
        .ok_or_else(|| "must be a duration such as 90s, 12h or 7d".to_owned())
}

/// A time with an offset, in whole seconds.
pub(crate) fn time(text: &str) -> Result<Timestamp, String> {
    let time: Option<Timestamp> = text.parse().ok();
    let seconds = time.and_then(|time| Timestamp::from_second(time.as_second()).ok());
    seconds.ok_or_else(|| "must be a time such as 2027-01-15T08:00:00Z".to_owned())
}

/// The time so long after `begin`, in whole seconds, as times of objects are.
pub(crate) fn after(begin: Timestamp, duration: Duration) -> Timestamp {
    let duration = SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
    let at = begin.checked_add(duration).unwrap_or(Timestamp::MAX);
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

/// When something is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// At this time.
    At(Timestamp),
    /// So long after a beginning.
    After(Duration),
}

/// A time, or a duration after a beginning.
pub(crate) fn moment(text: &str) -> Result<Moment, String> {
    let at = time(text).map(Moment::At);
    let after = || days_or_less(text).map(Moment::After);
    at.or_else(|_| after()).map_err(|_| {
        "must be a time such as 2027-01-15T08:00:00Z, or a duration such as 7d".to_owned()
    })
}

/// `key=value`. The API server validates both.
pub(crate) fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("must be KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// The lifetime of a token.
pub(crate) fn token_duration(text: &str) -> Result<Duration, String> {
    let duration = duration(text)?;
    if duration < SHORTEST_TOKEN {
        return Err("must be at least 10m".to_owned());
    }
    Ok(duration)
}

/// The address of an API server.
pub(crate) fn https_url(text: &str) -> Result<String, String> {
    let url: http::Uri = text.parse().map_err(|error| format!("{error}"))?;
    if url.scheme_str() != Some("https") || url.host().is_none_or(str::is_empty) {
        return Err("must be of the form https://HOST[:PORT]".to_owned());
    }
    Ok(text.trim_end_matches('/').to_owned())
}

/// The address of a service that answers by HTTP.
pub(crate) fn http_url(text: &str) -> Result<http::Uri, String> {
    let url: http::Uri = text.parse().map_err(|error| format!("{error}"))?;
    let is_http = matches!(url.scheme_str(), Some("http" | "https"));
    if !is_http || url.host().is_none_or(str::is_empty) {
        return Err("must be of the form http[s]://HOST[:PORT]".to_owned());
    }
    Ok(url)
}

/// A label, `key=value`. Rejects keys of fedrs; the API server validates the rest.
pub(crate) fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = key_value(text)?;
    if key.starts_with("fedrs.dev/") {
        return Err("labels with the prefix fedrs.dev/ are reserved".to_owned());
    }
    Ok((key, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("720h"), Ok(Duration::from_secs(720 * 3600)));
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        for wrong in ["", "60", "-5s", "a day"] {
            assert!(duration(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn moments_are_times_or_durations_that_may_have_days() {
        let week = Duration::from_hours(7 * 24);
        assert_eq!(moment("7d"), Ok(Moment::After(week)));
        assert_eq!(days_or_less("1d 12h"), Ok(Duration::from_hours(36)));
        let at = "2027-01-15T08:00:00Z".parse().unwrap();
        assert_eq!(moment("2027-01-15T09:00:00.5+01:00"), Ok(Moment::At(at)));
        for wrong in ["", "0s", "-1h", "7", "tomorrow", "2027-01-15", "1mo"] {
            assert!(moment(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn only_https_addresses_are_accepted() {
        assert_eq!(
            https_url("https://10.0.0.7:6443/"),
            Ok("https://10.0.0.7:6443".to_owned())
        );
        for wrong in ["http://a", "a:6443", "10.0.0.7", "https://"] {
            assert!(https_url(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_http_addresses_are_asked() {
        for wrong in ["a:9480", "http://", "ftp://a"] {
            assert!(http_url(wrong).is_err(), "{wrong}");
        }
        for right in ["http://[::1]:9480", "https://discovery:9480"] {
            assert!(http_url(right).is_ok(), "{right}");
        }
    }

    #[test]
    fn an_identity_is_one_printable_word() {
        assert_eq!(identity("edge-1_a/b"), Ok("edge-1_a/b".to_owned()));
        for wrong in ["", "a b", "a\n", "\u{1b}[31m", &"a".repeat(254)] {
            assert!(identity(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn labels_of_fedrs_are_rejected() {
        assert_eq!(label("tier=gold"), Ok(("tier".into(), "gold".into())));
        assert_eq!(label("empty="), Ok(("empty".into(), String::new())));
        assert!(label("tier").is_err());
        assert!(label("fedrs.dev/cluster-id=1").is_err());
    }
}
