//! The metrics of the controller.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

/// Which member a metric is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct OfMember {
    cluster: String,
}

impl OfMember {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            cluster: name.to_owned(),
        }
    }
}

/// The metrics of the controller of the Multi-Cluster Services API.
#[derive(Clone, Debug, Default)]
pub struct McsMetrics {
    /// 1 if a member has been listed, else 0.
    pub(crate) member_known: Family<OfMember, Gauge>,
    /// ServiceExports known.
    pub(crate) exports: Family<OfMember, Gauge>,
    /// ServiceImports known, also those of others.
    pub(crate) imports: Family<OfMember, Gauge>,
    /// Writes that were sent.
    pub(crate) writes: Family<OfMember, Counter>,
    /// Writes that failed or were rejected.
    pub(crate) failed_writes: Family<OfMember, Counter>,
}

impl McsMetrics {
    /// New metrics, registered with `registry`.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let shown = metrics.clone();
        registry.register(
            "mcs_member_known",
            "1 if all kinds of a member have been listed, else 0",
            shown.member_known,
        );
        registry.register(
            "mcs_exports",
            "ServiceExports of a member, as last seen",
            shown.exports,
        );
        registry.register(
            "mcs_imports",
            "ServiceImports of a member, as last seen",
            shown.imports,
        );
        registry.register("mcs_writes", "Writes to a member", shown.writes);
        registry.register(
            "mcs_failed_writes",
            "Writes to a member that failed or were rejected",
            shown.failed_writes,
        );
        metrics
    }
}
