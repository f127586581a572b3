//! Who is notified of migrations (M8), and what of that is acknowledged.

use std::{fmt, time::Duration};

use http::Uri;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{compact::is_default, field::Errors, valid::positive};

/// Two days, in seconds.
const REMIND_SECONDS: i32 = 172_800;

/// Who is notified of each migration (M8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Notify {
    /// The URL to which notifications are sent as CloudEvents: `https://`, or `http://` within a network that is trusted. The controller's
    /// configuration has to allow its host (`migration.notify.allowedHosts`).
    #[schemars(length(max = 2048), extend("pattern" = "^https?://[^\\s]+$"))]
    pub webhook: String,
    /// Seconds between two notifications while a person has to confirm that a pod has stopped. Defaults to 172800, two days.
    #[serde(default = "remind_seconds")]
    #[schemars(range(min = 1))]
    pub remind_seconds: i32,
}

fn remind_seconds() -> i32 {
    REMIND_SECONDS
}

/// The URL of a webhook. It may hold a token: texts have [`Webhook::host`] alone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Webhook(Uri);

/// A valid [`Notify`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidNotify {
    /// Where notifications are sent.
    pub webhook: Webhook,
    /// The time between two notifications while a person has to act.
    pub remind: Duration,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Webhook({})", self.host())
    }
}

impl Webhook {
    /// Parses a URL.
    ///
    /// # Errors
    /// What is wrong with it; the text does not quote it.
    pub fn parse(url: &str) -> Result<Self, &'static str> {
        let uri: Uri = url.parse().map_err(|_| "is not a URL")?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err("must begin with https:// or http://");
        }
        match uri.authority() {
            Some(authority) if authority.as_str().contains('@') => {
                Err("must not have a user or a password")
            }
            Some(authority) if !authority.host().is_empty() => Ok(Self(uri)),
            _ => Err("has no host"),
        }
    }

    /// The URL.
    #[must_use]
    pub fn uri(&self) -> &Uri {
        &self.0
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        let by_scheme = if self.0.scheme_str() == Some("https") {
            443
        } else {
            80
        };
        self.0.port_u16().unwrap_or(by_scheme)
    }

    /// Its host, for people.
    #[must_use]
    pub fn host(&self) -> &str {
        self.0.host().unwrap_or_default()
    }
}

impl ValidNotify {
    /// Validates the fields; errors are at `field`.
    pub(crate) fn check(notify: &Notify, errors: &mut Errors) -> Option<Self> {
        let seconds = positive(notify.remind_seconds, "spec.notify.remindSeconds", errors);
        let webhook = Webhook::parse(&notify.webhook);
        if let Err(problem) = webhook {
            errors.add("spec.notify.webhook", problem);
        }
        Some(Self {
            webhook: webhook.ok()?,
            remind: Duration::from_secs(seconds.into()),
        })
    }
}

/// The notifications of a migration that were acknowledged (M8): none of them is sent again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NotificationStatus {
    /// When it was acknowledged that the ticket is opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opened: Option<Time>,
    /// How many reminders were acknowledged.
    #[serde(skip_serializing_if = "is_default")]
    pub reminders: i32,
    /// When a person was asked last for a confirmation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<Time>,
    /// When it was acknowledged that the ticket is closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed: Option<Time>,
    /// Why the next one was not acknowledged so far. It is sent again.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub failure: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m8_a_webhook_is_a_url_and_texts_show_only_its_host() {
        for (url, expected) in [
            (
                "https://tickets.example.com/hooks/SECRET?token=SECRET",
                Ok("tickets.example.com"),
            ),
            ("http://tickets.ops.svc:8080/", Ok("tickets.ops.svc")),
            ("https://[fd00::1]:8443/x", Ok("[fd00::1]")),
            (
                "ftp://tickets.example.com/",
                Err("must begin with https:// or http://"),
            ),
            ("/hooks", Err("must begin with https:// or http://")),
            ("https:///hooks", Err("is not a URL")),
            (
                "https://jane:SECRET@tickets.example.com/",
                Err("must not have a user or a password"),
            ),
            ("https://tickets example com", Err("is not a URL")),
        ] {
            let parsed = Webhook::parse(url);
            assert_eq!(
                parsed.as_ref().map(Webhook::host),
                expected.as_ref().map(|host| *host),
                "{url}"
            );
            assert!(!format!("{parsed:?}").contains("SECRET"), "{url}");
        }
    }

    #[test]
    fn m8_reminders_are_two_days_apart_by_default() {
        let notify: Notify =
            serde_json::from_str(r#"{ "webhook": "https://tickets.example.com" }"#).unwrap();
        let mut errors = Errors::default();
        let valid = ValidNotify::check(&notify, &mut errors).unwrap();
        assert_eq!(valid.remind, Duration::from_hours(48));
        errors.or(()).unwrap();
    }
}
