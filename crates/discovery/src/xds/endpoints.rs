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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fedrs_api::{EndpointSetSpec, ValidEndpointSet};
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::{node::Node, pod::Pod, snapshot::EndpointPort};

    /// A pod, by `CLUSTER/ZONE/ADDRESS STATE...`: ready and terminating, or none of both. It listens on port 80.
    fn endpoint(text: &str) -> Endpoint {
        let (place, state) = text.split_once(' ').unwrap_or((text, ""));
        let [cluster, zone, address] = place.split('/').collect::<Vec<_>>()[..] else {
            panic!("{text}");
        };
        let node = Node {
            name: "n".into(),
            zone: Some(zone.into()),
        };
        let pod = Pod {
            name: address.into(),
            cluster: cluster.into(),
            node: Some(Arc::new(node)).filter(|_| !zone.is_empty()),
            labels: Arc::new([("version".to_owned(), "2".to_owned())].into()),
            ports: Arc::default(),
            v4: address.parse().ok(),
            v6: None,
            is_ready: state.contains("ready"),
            is_terminating: state.contains("terminating"),
        };
        let port = EndpointPort {
            name: "http".into(),
            number: 80,
        };
        Endpoint::new(&Arc::new(pod), Arc::new(vec![port]))
    }

    fn snapshot(endpoints: &[&str]) -> EndpointSnapshot {
        let spec = json!({
            "source": { "federatedReplicaSet": "web" }, "include": "All", "labels": ["version"],
            "ports": [{ "name": "http", "port": 80 }],
        });
        let spec: EndpointSetSpec = serde_json::from_value(spec).unwrap();
        EndpointSnapshot {
            version: 1,
            endpoints: Arc::new(endpoints.iter().map(|text| endpoint(text)).collect()),
            set: Arc::new(ValidEndpointSet::check(&spec).unwrap()),
        }
    }

    fn address(endpoint: &LbEndpoint) -> String {
        let Some(HostIdentifier::Endpoint(endpoint)) = &endpoint.host_identifier else {
            panic!("{endpoint:?}");
        };
        let address = endpoint.address.as_ref().unwrap().address.as_ref();
        let address::Address::SocketAddress(socket) = address.unwrap();
        assert_eq!(socket.port_specifier, Some(PortSpecifier::PortValue(80)));
        socket.address.clone()
    }

    /// Each locality as `CLUSTER/ZONE WEIGHT: ADDRESS HEALTH, ...`.
    fn localities(endpoints: &[&str]) -> Vec<String> {
        let found = load_assignment("web.shop", &snapshot(endpoints), "http");
        let text = |found: &LocalityLbEndpoints| {
            let place = found.locality.as_ref().unwrap();
            let endpoints = found.lb_endpoints.iter();
            let endpoints = endpoints.map(|endpoint| {
                let health = HealthStatus::try_from(endpoint.health_status).unwrap();
                format!("{} {}", address(endpoint), health.as_str_name())
            });
            let (region, zone) = (&place.region, &place.zone);
            let weight = found.load_balancing_weight.unwrap();
            let endpoints = endpoints.collect::<Vec<_>>().join(", ");
            format!("{region}/{zone} {weight}: {endpoints}")
        };
        found.endpoints.iter().map(text).collect()
    }

    #[rstest]
    #[case::none(&[], &[])]
    #[case::by_cluster_and_zone(
        &["eu/a/10.0.0.1 ready", "eu/b/10.0.0.2 ready", "eu/b/10.0.0.3 ready", "us//10.1.0.1 ready"],
        &["eu/a 1: 10.0.0.1 HEALTHY", "eu/b 2: 10.0.0.2 HEALTHY, 10.0.0.3 HEALTHY", "us/ 1: 10.1.0.1 HEALTHY"],
    )]
    #[case::the_weight_is_of_those_that_get_requests(
        &["eu/a/10.0.0.1 ready", "eu/a/10.0.0.2", "eu/a/10.0.0.3 ready terminating"],
        &["eu/a 1: 10.0.0.1 HEALTHY, 10.0.0.3 DRAINING, 10.0.0.2 UNHEALTHY"],
    )]
    #[case::a_weight_is_never_0(&["eu/a/10.0.0.1"], &["eu/a 1: 10.0.0.1 UNHEALTHY"])]
    #[case::those_that_terminate_serve_if_no_others_do(
        &["eu/a/10.0.0.1 ready terminating", "us/a/10.1.0.1 terminating"],
        &["eu/a 1: 10.0.0.1 HEALTHY", "us/a 1: 10.1.0.1 UNHEALTHY"],
    )]
    #[case::without_an_address(&["eu/a/none ready"], &[])]
    #[case::one_of_each_address_the_best(
        &["eu/a/10.0.0.1", "us/a/10.0.0.1 ready", "us/b/10.0.0.1 ready terminating"],
        &["us/a 1: 10.0.0.1 HEALTHY"],
    )]
    fn d1_endpoints_are_by_cluster_and_zone(#[case] endpoints: &[&str], #[case] expected: &[&str]) {
        assert_eq!(localities(endpoints), expected);
    }

    #[test]
    fn d1_labels_travel_along_and_other_ports_have_no_endpoints() {
        let snapshot = snapshot(&["eu/a/10.0.0.1 ready"]);
        assert_eq!(load_assignment("web.shop:x", &snapshot, "x").endpoints, []);
        let found = load_assignment("web.shop", &snapshot, "http");
        let metadata = found.endpoints[0].lb_endpoints[0].metadata.as_ref();
        let labels = &metadata.unwrap().filter_metadata[LABELS].fields;
        let version = labels["version"].kind.as_ref();
        assert_eq!(version, Some(&Kind::StringValue("2".to_owned())));
    }
}
