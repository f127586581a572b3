//! The metrics of notifications.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

/// A type of notifications: `opened`, `reminder`, `closed`.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct OfType {
    r#type: &'static str,
}

/// The metrics of notifications of migrations (M8).
#[derive(Clone, Debug, Default)]
pub struct NotificationMetrics {
    /// Notifications that webhooks have acknowledged, by type.
    pub acknowledged: Family<OfType, Counter>,
    /// Attempts that were not acknowledged, by type.
    pub failed: Family<OfType, Counter>,
    /// Notifications that are due and not acknowledged.
    pub pending: Gauge,
}

impl NotificationMetrics {
    pub(crate) fn register(self, registry: &mut Registry) {
        registry.register(
            "local_notifications",
            "Notifications of migrations that webhooks have acknowledged, by type",
            self.acknowledged,
        );
        registry.register(
            "local_failed_notifications",
            "Attempts to notify of a migration that the webhook has not acknowledged, by type",
            self.failed,
        );
        registry.register(
            "local_pending_notifications",
            "Notifications of migrations that are due, and not acknowledged",
            self.pending,
        );
    }
}

impl From<&'static str> for OfType {
    fn from(r#type: &'static str) -> Self {
        Self { r#type }
    }
}
