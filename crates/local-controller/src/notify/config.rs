//! Who is notified by configuration, and which webhooks policies may name.

use std::{path::PathBuf, time::Duration};

use controller_base::{ConfigError, duration};
use fedrs_api::{ShutdownTimeout, ValidMethod, ValidMigrationPolicy, ValidNotify, Webhook};
use serde::{Deserialize, Serialize};

/// What can be configured of notifications.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NotifyConfig {
    /// The webhook for migrations of sets whose policy names none. Absent by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<String>,
    /// The file with a bearer token for this webhook, and for no other. It is read for each notification. Absent by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// The time between two notifications of this webhook while a person has to confirm something. 48 h.
    #[serde(with = "duration")]
    pub remind: Duration,
    /// The hosts of webhooks that policies may name: `tickets.example.com`, `tickets.example.com:8443`, `*.example.com`, or `*` for all.
    /// None by default: who may write a MigrationPolicy makes the controller send requests to its webhook.
    pub allowed_hosts: Vec<String>,
    /// The name of the cluster in notifications, for receivers of several. Empty by default.
    pub cluster: String,
}

impl Default for NotifyConfig {
    fn default() -> Self {
        Self {
            webhook: None,
            token_file: None,
            remind: Duration::from_hours(48),
            allowed_hosts: Vec::new(),
            cluster: String::new(),
        }
    }
}

impl NotifyConfig {
    /// Checks all fields.
    pub(crate) fn settings(&self) -> Result<NotifySettings, ConfigError> {
        let webhook = self.webhook.as_deref().map(Webhook::parse).transpose();
        let webhook = webhook.map_err(|problem| invalid("migration.notify.webhook", problem))?;
        if self.token_file.is_some() && webhook.is_none() {
            return Err(invalid("migration.notify.tokenFile", "needs a webhook"));
        }
        if self.remind.is_zero() {
            return Err(invalid("migration.notify.remind", "must be more than 0"));
        }
        let hosts = self
            .allowed_hosts
            .iter()
            .map(|host| HostPattern::parse(host));
        let allowed_hosts = hosts.collect::<Option<_>>().ok_or_else(|| {
            let field = "migration.notify.allowedHosts";
            invalid(
                field,
                "must be names of hosts, *.DOMAIN, or *, with or without a port",
            )
        })?;
        Ok(NotifySettings {
            by_default: webhook.map(|webhook| Target {
                notify: ValidNotify {
                    webhook,
                    remind: self.remind,
                },
                token_file: self.token_file.clone(),
            }),
            allowed_hosts,
            cluster: self.cluster.clone(),
        })
    }
}

fn invalid(field: &'static str, message: &'static str) -> ConfigError {
    ConfigError::Value { field, message }
}

/// A valid [`NotifyConfig`].
#[derive(Debug, Default)]
pub(crate) struct NotifySettings {
    by_default: Option<Target>,
    allowed_hosts: Vec<HostPattern>,
    /// The name of the cluster in notifications; empty if it has none.
    pub(crate) cluster: String,
}

/// Who is notified of a migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) notify: ValidNotify,
    /// The file with a bearer token for it.
    pub(crate) token_file: Option<PathBuf>,
}

/// Why those are not notified who should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotNotified {
    /// A person may have to confirm something, and no webhook is named.
    NoWebhook,
    /// The configuration does not allow the host of the policy's webhook.
    NotAllowed {
        host: String,
        /// Whether the webhook of the configuration is notified instead.
        has_default: bool,
    },
}

impl NotifySettings {
    /// Whether migrations of all sets are notified.
    pub(crate) fn has_default(&self) -> bool {
        self.by_default.is_some()
    }

    /// Who is notified of migrations by this policy.
    pub(crate) fn target(&self, policy: Option<&ValidMigrationPolicy>) -> Option<Target> {
        let own = policy.and_then(|policy| policy.notify.as_ref());
        match own {
            Some(notify) if self.allows(&notify.webhook) => Some(Target {
                notify: notify.clone(),
                token_file: None,
            }),
            _ => self.by_default.clone(),
        }
    }

    /// Why those are not notified who should be, by this policy.
    pub(crate) fn not_notified(&self, policy: &ValidMigrationPolicy) -> Option<NotNotified> {
        if let Some(notify) = &policy.notify {
            return (!self.allows(&notify.webhook)).then(|| NotNotified::NotAllowed {
                host: notify.webhook.host().to_owned(),
                has_default: self.has_default(),
            });
        }
        let shutdown = policy.shutdown.as_ref();
        let confirms_copies = match policy.method {
            ValidMethod::Copy(copy) => {
                copy.confirm_before_activation || copy.confirm_before_shutdown
            }
            // With its shutdown, of the method Manual.
            ValidMethod::Move | ValidMethod::Manual => false,
        };
        let needs_person =
            confirms_copies || shutdown.is_some_and(|of| of.on_timeout == ShutdownTimeout::HandsUp);
        (needs_person && !self.has_default()).then_some(NotNotified::NoWebhook)
    }

    fn allows(&self, webhook: &Webhook) -> bool {
        let is_default = self.by_default.as_ref();
        is_default.is_some_and(|of| of.notify.webhook == *webhook)
            || self.allowed_hosts.iter().any(|host| host.matches(webhook))
    }
}

/// The hosts of webhooks that policies may name.
#[derive(Debug)]
struct HostPattern {
    /// The name in lower case; what it ends with, if `is_suffix`.
    host: String,
    is_suffix: bool,
    /// Any, if there is none.
    port: Option<u16>,
}

impl HostPattern {
    fn parse(text: &str) -> Option<Self> {
        let text = text.to_ascii_lowercase();
        let (host, port) = match text.rsplit_once(':') {
            // An IPv6 address without a port ends with a bracket.
            Some((host, port)) if !text.ends_with(']') => (host, Some(port.parse().ok()?)),
            _ => (&*text, None),
        };
        let (host, is_suffix) = match host.strip_prefix('*') {
            Some(rest) if rest.is_empty() || rest.starts_with('.') => (rest, true),
            Some(_) => return None,
            None => (host, false),
        };
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || "-._:[]".contains(letter);
        let is_valid = (is_suffix || !host.is_empty()) && host.chars().all(is_name);
        is_valid.then(|| Self {
            host: host.to_owned(),
            is_suffix,
            port,
        })
    }

    fn matches(&self, webhook: &Webhook) -> bool {
        let host = webhook.host().to_ascii_lowercase();
        let is_host = if self.is_suffix {
            host.ends_with(&self.host)
        } else {
            host == self.host
        };
        is_host && self.port.is_none_or(|port| port == webhook.port())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn policy(spec: &Value) -> ValidMigrationPolicy {
        ValidMigrationPolicy::check(&serde_json::from_value(spec.clone()).unwrap()).unwrap()
    }

    #[test]
    fn m8_a_policy_may_only_name_hosts_that_the_configuration_allows() {
        for (allowed, webhook, expected) in [
            (&[][..], "https://tickets.example.com/x", false),
            (
                &["tickets.example.com"],
                "https://tickets.example.com/x",
                true,
            ),
            (
                &["tickets.example.com"],
                "https://TICKETS.example.com:8443/",
                true,
            ),
            (
                &["tickets.example.com:443"],
                "https://tickets.example.com/",
                true,
            ),
            (
                &["tickets.example.com:80"],
                "http://tickets.example.com/",
                true,
            ),
            (
                &["tickets.example.com:443"],
                "https://tickets.example.com:8443/",
                false,
            ),
            (
                &["tickets.example.com"],
                "https://tickets.example.com.evil.org/",
                false,
            ),
            (&["*.example.com"], "https://tickets.example.com/", true),
            (&["*.example.com"], "https://example.com/", false),
            (&["*.example.com"], "https://evil-example.com/", false),
            (&["*"], "http://169.254.169.254/latest", true),
            (&["[fd00::1]:443"], "https://[fd00::1]/", true),
            (&["[fd00::1]"], "https://[fd00::2]/", false),
        ] {
            let config = NotifyConfig {
                allowed_hosts: allowed.iter().map(|host| (*host).to_owned()).collect(),
                ..NotifyConfig::default()
            };
            let settings = config.settings().unwrap();
            let policy = policy(&json!({ "notify": { "webhook": webhook } }));
            let target = settings.target(Some(&policy));
            assert_eq!(target.is_some(), expected, "{allowed:?} {webhook}");
            assert_eq!(settings.not_notified(&policy).is_none(), expected);
        }
    }

    #[test]
    fn m8_hands_up_without_anybody_to_notify_is_told() {
        let none = NotifySettings::default();
        let config = NotifyConfig {
            webhook: Some("https://tickets.example.com/x".to_owned()),
            ..NotifyConfig::default()
        };
        let by_default = config.settings().unwrap();
        let hands_up = json!({ "shutdown": { "onTimeout": "HandsUp" } });
        let evict = json!({ "shutdown": { "onTimeout": "Evict" } });
        let copy = json!({ "confirmBeforeShutdown": true });
        let confirmed = json!({ "method": "Copy", "copy": copy });
        let foreign = json!({ "notify": { "webhook": "https://evil.example.com/" } });
        let not_allowed = |has_default| {
            let host = "evil.example.com".to_owned();
            Some(NotNotified::NotAllowed { host, has_default })
        };
        for (settings, policy, expected) in [
            (&none, &hands_up, Some(NotNotified::NoWebhook)),
            (&by_default, &hands_up, None),
            (
                &none,
                &json!({ "method": "Manual" }),
                Some(NotNotified::NoWebhook),
            ),
            (&none, &confirmed, Some(NotNotified::NoWebhook)),
            (&none, &json!({ "method": "Copy" }), None),
            (&none, &evict, None),
            (&none, &foreign, not_allowed(false)),
            (&by_default, &foreign, not_allowed(true)),
        ] {
            assert_eq!(
                settings.not_notified(&self::policy(policy)),
                expected,
                "{policy}"
            );
        }
        let target = by_default.target(Some(&self::policy(&foreign))).unwrap();
        assert_eq!(target.notify.webhook.host(), "tickets.example.com");
    }

    #[test]
    fn m8_what_is_wrong_is_named_and_not_quoted() {
        for (config, expected) in [
            (
                json!({ "webhook": "SECRET" }),
                "webhook: must begin with https:// or http://",
            ),
            (
                json!({ "tokenFile": "/SECRET" }),
                "tokenFile: needs a webhook",
            ),
            (json!({ "remind": "0s" }), "remind: must be more than 0"),
            (
                json!({ "allowedHosts": ["https://x.example.com"] }),
                "allowedHosts: must be names of hosts, *.DOMAIN, or *, with or without a port",
            ),
            (
                json!({ "allowedHosts": ["*x"] }),
                "allowedHosts: must be names of hosts, *.DOMAIN, or *, with or without a port",
            ),
        ] {
            let config: NotifyConfig = serde_json::from_value(config).unwrap();
            let error = config.settings().unwrap_err().to_string();
            assert_eq!(error, format!("migration.notify.{expected}"));
        }
    }
}
