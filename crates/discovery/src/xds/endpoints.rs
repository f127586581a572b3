//! The endpoints of a port, by locality: the member cluster and the zone.

use std::collections::{BTreeMap, HashSet};

use prost_types::{Struct, Value, value::Kind};
use xds_proto::envoy::config::{
    core::v3::{
        Address, HealthStatus, Locality, Metadata, SocketAddress, address,
        socket_address::PortSpecifier,
    },
    endpoint::v3::{
        ClusterLoadAssignment, Endpoint as Message, LbEndpoint, LocalityLbEndpoints,
        endpoint::AdditionalAddress, lb_endpoint::HostIdentifier,
    },
};

use crate::{
    answer::AnswerEndpoint,
    snapshot::{Endpoint, EndpointSnapshot},
};

/// The metadata by which Envoy forms subsets.
const LABELS: &str = "envoy.lb";

/// The endpoints with an address that have the port.
///
/// Those that are being removed get no new requests, unless no others serve. Each locality has the weight of its endpoints that get
/// requests, so that all of these get as many. Of several endpoints with one address, which networks of clusters that overlap
/// bring, there is one: clients reject the whole otherwise.
pub(super) fn load_assignment(
    name: &str,
    snapshot: &EndpointSnapshot,
    port: &str,
) -> ClusterLoadAssignment {
    let endpoints = snapshot.endpoints.iter();
    let mut found: Vec<_> = endpoints
        .filter_map(|endpoint| Candidate::of(endpoint, snapshot, port))
        .collect();
    let is_any_ready = found.iter().any(|found| found.answer.ready);
    // The first of one address stays.
    found.sort_by_key(|found| (!found.answer.ready, !found.answer.serving));
    let mut addresses = HashSet::new();
    let mut localities: BTreeMap<(String, String), Vec<LbEndpoint>> = BTreeMap::new();
    for Candidate { answer, port } in found {
        let mut own = answer.addresses.iter();
        if own.any(|address| addresses.contains(&(*address, port))) {
            continue;
        }
        addresses.extend(answer.addresses.iter().map(|address| (*address, port)));
        let health = health(&answer, is_any_ready);
        let endpoint = endpoint(&answer, port, health);
        let locality = (answer.cluster, answer.zone.unwrap_or_default());
        localities.entry(locality).or_default().push(endpoint);
    }
    ClusterLoadAssignment {
        cluster_name: name.to_owned(),
        endpoints: localities.into_iter().map(locality).collect(),
    }
}

/// An endpoint with an address, and the number of the port.
struct Candidate {
    answer: AnswerEndpoint,
    port: u16,
}

impl Candidate {
    fn of(endpoint: &Endpoint, snapshot: &EndpointSnapshot, port: &str) -> Option<Self> {
        let mut ports = endpoint.ports().iter();
        let port = ports.find(|known| &*known.name == port)?.number;
        let answer = AnswerEndpoint::of(endpoint, snapshot);
        (!answer.addresses.is_empty()).then_some(Self { answer, port })
    }
}

fn health(answer: &AnswerEndpoint, is_any_ready: bool) -> HealthStatus {
    match answer {
        AnswerEndpoint { serving: false, .. } => HealthStatus::Unhealthy,
        AnswerEndpoint { ready: true, .. } => HealthStatus::Healthy,
        _ if is_any_ready => HealthStatus::Draining,
        _ => HealthStatus::Healthy,
    }
}

fn endpoint(answer: &AnswerEndpoint, port: u16, health: HealthStatus) -> LbEndpoint {
    let mut addresses = answer.addresses.iter().map(|address| Address {
        address: Some(address::Address::SocketAddress(SocketAddress {
            address: address.to_string(),
            port_specifier: Some(PortSpecifier::PortValue(port.into())),
        })),
    });
    let endpoint = Message {
        address: addresses.next(),
        additional_addresses: addresses
            .map(|address| AdditionalAddress {
                address: Some(address),
            })
            .collect(),
    };
    LbEndpoint {
        health_status: health.into(),
        metadata: labels(&answer.labels),
        host_identifier: Some(HostIdentifier::Endpoint(endpoint)),
    }
}

fn labels(labels: &BTreeMap<String, String>) -> Option<Metadata> {
    let text = |value: &String| Value {
        kind: Some(Kind::StringValue(value.clone())),
    };
    let fields = labels.iter().map(|(key, value)| (key.clone(), text(value)));
    let fields = Struct {
        fields: fields.collect(),
    };
    (!labels.is_empty()).then(|| Metadata {
        filter_metadata: [(LABELS.to_owned(), fields)].into(),
    })
}

fn locality(
    ((cluster, zone), lb_endpoints): ((String, String), Vec<LbEndpoint>),
) -> LocalityLbEndpoints {
    let healthy = i32::from(HealthStatus::Healthy);
    let healthy = (lb_endpoints.iter()).filter(|endpoint| endpoint.health_status == healthy);
    // A weight of 0 is not allowed.
    let weight = u32::try_from(healthy.count()).unwrap_or(u32::MAX).max(1);
    LocalityLbEndpoints {
        locality: Some(Locality {
            region: cluster,
            zone,
        }),
        lb_endpoints,
        load_balancing_weight: Some(weight),
    }
}
