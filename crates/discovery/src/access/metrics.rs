//! The metrics of reviews.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

/// Counts what the host is asked, and what is refused.
#[derive(Clone, Debug, Default)]
pub(crate) struct AccessMetrics {
    reviews: Family<Review, Counter>,
    denied: Family<Denied, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Review {
    kind: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Denied {
    reason: &'static str,
}

impl AccessMetrics {
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "reviews",
            "Reviews by the host, by kind and result",
            self.reviews.clone(),
        );
        registry.register(
            "denied",
            "Questions that were not answered: of clients that are not known, of users who may not ask, and while the host was away",
            self.denied.clone(),
        );
    }

    pub(super) fn count_review(&self, kind: &'static str, result: &'static str) {
        self.reviews.get_or_create(&Review { kind, result }).inc();
    }

    pub(super) fn count_denied(&self, reason: &'static str) {
        self.denied.get_or_create(&Denied { reason }).inc();
    }
}
