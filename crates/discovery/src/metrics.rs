//! The metrics of the service.

use std::sync::Arc;

use jiff::Timestamp;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric},
    metrics::{
        MetricType,
        counter::Counter,
        family::Family,
        gauge::{ConstGauge, Gauge},
    },
    registry::{Registry, Unit},
};

use crate::{access::AccessMetrics, catalog::Catalog, serving::ServerMetrics, state::State};

/// Counts answers; what is known is counted when it is asked for.
#[derive(Clone, Debug, Default)]
pub struct DiscoveryMetrics {
    http: Family<Code, Counter>,
    dns: Family<Code, Counter>,
    grpc: Family<Code, Counter>,
    grpc_watches: Gauge,
    xds: Family<ResourceKind, Counter>,
    xds_rejections: Counter,
    xds_clients: Gauge,
    snapshot_writes: Family<Written, Counter>,
    pub(crate) servers: ServerMetrics,
    pub(crate) access: AccessMetrics,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Code {
    code: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Written {
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResourceKind {
    kind: &'static str,
}

impl DiscoveryMetrics {
    /// Registers the metrics of a service that answers from `catalog`.
    pub fn register(catalog: &Arc<Catalog>, registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let registry = registry.sub_registry_with_prefix("discovery");
        registry.register("http_responses", "Responses by HTTP", metrics.http.clone());
        registry.register("dns_responses", "Responses by DNS", metrics.dns.clone());
        registry.register("grpc_responses", "Responses by gRPC", metrics.grpc.clone());
        registry.register(
            "grpc_watches",
            "Clients that follow sets by gRPC now",
            metrics.grpc_watches.clone(),
        );
        registry.register(
            "snapshot_writes",
            "Snapshots written to disk, and those that failed",
            metrics.snapshot_writes.clone(),
        );
        registry.register(
            "xds_responses",
            "Responses by xDS, by the kind of resources",
            metrics.xds.clone(),
        );
        registry.register(
            "xds_rejections",
            "Responses by xDS that clients do not use: the log has their reasons",
            metrics.xds_rejections.clone(),
        );
        registry.register(
            "xds_clients",
            "Clients that follow resources by xDS now",
            metrics.xds_clients.clone(),
        );
        metrics.servers.register(registry);
        metrics.access.register(registry);
        registry.register_collector(Box::new(Known(Arc::clone(catalog))));
        metrics
    }

    pub(crate) fn count_http(&self, code: u16) {
        count(&self.http, &code);
    }

    pub(crate) fn count_dns(&self, code: &impl ToString) {
        count(&self.dns, code);
    }

    pub(crate) fn count_grpc(&self, code: &impl ToString) {
        count(&self.grpc, code);
    }

    /// Counts a snapshot that was written, or failed.
    pub(crate) fn count_snapshot<T, E>(&self, written: &Result<T, E>) {
        let result = if written.is_ok() { "written" } else { "failed" };
        let written = Written { result };
        self.snapshot_writes.get_or_create(&written).inc();
    }

    pub(crate) fn count_xds(&self, kind: &'static str) {
        self.xds.get_or_create(&ResourceKind { kind }).inc();
    }

    pub(crate) fn count_xds_rejection(&self) {
        self.xds_rejections.inc();
    }

    /// Counts a client that follows sets, until the result is dropped.
    pub(crate) fn watching(&self) -> Following {
        Following::one_of(&self.grpc_watches)
    }

    /// Counts a client that follows resources by xDS, until the result is dropped.
    pub(crate) fn following(&self) -> Following {
        Following::one_of(&self.xds_clients)
    }
}

fn count(responses: &Family<Code, Counter>, code: &impl ToString) {
    let code = code.to_string();
    responses.get_or_create(&Code { code }).inc();
}

/// A client that follows something.
#[derive(Debug)]
pub(crate) struct Following(Gauge);

impl Following {
    fn one_of(clients: &Gauge) -> Self {
        clients.inc();
        Self(clients.clone())
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// What the catalog has.
#[derive(Debug)]
struct Known(Arc<Catalog>);

impl Collector for Known {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let (sets, endpoints) = self.0.counts();
        for (name, help, count) in [
            ("endpoint_sets", "EndpointSets that answers exist for", sets),
            ("endpoints", "Endpoints of all EndpointSets", endpoints),
        ] {
            let metric = ConstGauge::new(u64::try_from(count).unwrap_or(u64::MAX));
            let encoder = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            metric.encode(encoder)?;
        }
        let now = Timestamp::now();
        self.encode_host(&mut encoder, now)?;
        let mut stale = encoder.encode_descriptor(
            "member_stale",
            "For how long changes of the member may be missing; 0 if none is",
            Some(&Unit::Seconds),
            MetricType::Gauge,
        )?;
        for member in self
            .0
            .members()
            .iter()
            .filter(|member| member.pods.is_known)
        {
            let seconds = seconds(member.pods.stale_since, now);
            let labels = [("cluster", &*member.name)];
            ConstGauge::new(seconds).encode(stale.encode_family(&labels)?)?;
        }
        let mut known = encoder.encode_descriptor(
            "member_known",
            "Whether the pods of the member have been listed since the start, or were loaded from a snapshot",
            None,
            MetricType::Gauge,
        )?;
        for member in self.0.members().iter() {
            let labels = [("cluster", &*member.name)];
            ConstGauge::new(u64::from(member.pods.is_known))
                .encode(known.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

impl Known {
    fn encode_host(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        now: Timestamp,
    ) -> Result<(), std::fmt::Error> {
        let known = |state: &State| (state.loaded(), state.host_stale_since());
        let ((loaded, stale_since), _) = self.0.look(known);
        let metric = ConstGauge::new(u64::try_from(loaded).unwrap_or(u64::MAX));
        metric.encode(encoder.encode_descriptor(
            "loaded_snapshots",
            "Snapshots in use: of the host, and of members, that have not been listed since the start",
            None,
            MetricType::Gauge,
        )?)?;
        let metric = ConstGauge::new(seconds(stale_since, now));
        metric.encode(encoder.encode_descriptor(
            "host_stale",
            "For how long changes of EndpointSets and their sources may be missing; 0 if none is",
            Some(&Unit::Seconds),
            MetricType::Gauge,
        )?)
    }
}

/// For how long something is stale.
fn seconds(since: Option<Timestamp>, now: Timestamp) -> i64 {
    since.map_or(0, |since| now.duration_since(since).as_secs())
}
