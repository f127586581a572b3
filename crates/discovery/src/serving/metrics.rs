//! The metrics of connections.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use super::limits::Exceeded;

/// Counts connections, and what is refused.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerMetrics {
    connections: Family<Server, Gauge>,
    refused: Family<Limit, Counter>,
    cut_off: Family<Server, Counter>,
    failed_handshakes: Counter,
    tls_reloads: Family<Reload, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Server {
    server: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Limit {
    limit: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reload {
    result: &'static str,
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct Open(Gauge);

impl ServerMetrics {
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "connections",
            "Open connections by HTTP and gRPC, and by TCP for DNS",
            self.connections.clone(),
        );
        registry.register(
            "refused",
            "Connections, calls and queries that were refused, by the limit that was reached",
            self.refused.clone(),
        );
        registry.register(
            "cut_off_connections",
            "Connections that ended because the client took nothing of what was sent to it",
            self.cut_off.clone(),
        );
        registry.register(
            "tls_failed_handshakes",
            "Connections without a valid TLS handshake, or client certificate",
            self.failed_handshakes.clone(),
        );
        registry.register(
            "tls_reloads",
            "Changes of the files of TLS that are used, and those that can't be",
            self.tls_reloads.clone(),
        );
    }

    /// Counts a connection, until the result is dropped.
    pub(crate) fn open(&self, server: &'static str) -> Open {
        let open = self.connections.get_or_create(&Server { server }).clone();
        open.inc();
        Open(open)
    }

    pub(crate) fn count_refused(&self, exceeded: Exceeded) {
        self.count_limit(exceeded.as_str());
    }

    /// Counts a query by DNS that its client may not send.
    pub(crate) fn count_refused_query(&self) {
        self.count_limit("client_dns_queries");
    }

    fn count_limit(&self, limit: &'static str) {
        self.refused.get_or_create(&Limit { limit }).inc();
    }

    pub(super) fn count_cut_off(&self, server: &'static str) {
        self.cut_off.get_or_create(&Server { server }).inc();
    }

    pub(super) fn count_failed_handshake(&self) {
        self.failed_handshakes.inc();
    }

    pub(super) fn count_tls_reload(&self, is_used: bool) {
        let result = if is_used { "used" } else { "failed" };
        self.tls_reloads.get_or_create(&Reload { result }).inc();
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}
