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

use crate::catalog::Catalog;

/// Counts answers; what is known is counted when it is asked for.
#[derive(Clone, Debug, Default)]
pub struct DiscoveryMetrics {
    http: Family<Code, Counter>,
    dns: Family<Code, Counter>,
    grpc: Family<Code, Counter>,
    grpc_watches: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Code {
    code: String,
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

    /// Counts a client that follows sets, until the result is dropped.
    pub(crate) fn watching(&self) -> Watching {
        self.grpc_watches.inc();
        Watching(self.grpc_watches.clone())
    }
}

fn count(responses: &Family<Code, Counter>, code: &impl ToString) {
    let code = code.to_string();
    responses.get_or_create(&Code { code }).inc();
}

/// A client that follows sets.
#[derive(Debug)]
pub(crate) struct Watching(Gauge);

impl Drop for Watching {
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
        let mut stale = encoder.encode_descriptor(
            "member_stale",
            "For how long changes of the member may be missing; 0 if none is",
            Some(&Unit::Seconds),
            MetricType::Gauge,
        )?;
        for member in self.0.members().iter().filter(|member| member.is_known) {
            let since = member.stale_since;
            let seconds = since.map_or(0, |since| now.duration_since(since).as_secs());
            let labels = [("cluster", &*member.name)];
            ConstGauge::new(seconds).encode(stale.encode_family(&labels)?)?;
        }
        let mut known = encoder.encode_descriptor(
            "member_known",
            "Whether the pods of the member have been listed since the start",
            None,
            MetricType::Gauge,
        )?;
        for member in self.0.members().iter() {
            let labels = [("cluster", &*member.name)];
            ConstGauge::new(u64::from(member.is_known)).encode(known.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
