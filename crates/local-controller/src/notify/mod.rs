//! Notifications of migrations, for tickets (M8).
//!
//! ```text
//! MigrationRequests in the store --due()--> CloudEvent --POST, retried with the same id--> webhook of the policy or the configuration
//!                 ^                                             |
//!                 '------- status.notified <----acknowledged----'
//! ```
//!
//! What was acknowledged is in the status of the request, so that neither a restart nor another leader sends it again. Nothing waits
//! for a webhook: migrations go on while it is away.

mod cloud_event;
mod config;
mod due;
#[cfg(test)]
mod interleavings;
mod memory;
mod metrics;
mod notifier;
mod webhooks;

pub use config::NotifyConfig;
pub(crate) use config::{NotNotified, NotifySettings, Target};
pub use metrics::NotificationMetrics;
pub(crate) use notifier::Notifier;
pub use webhooks::Webhooks;
