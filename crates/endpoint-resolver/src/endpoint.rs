//! The endpoints of a set.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
};

use discovery_proto as proto;
use serde::{Deserialize, Serialize};

/// Which endpoint: the pods of several clusters may have one name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EndpointKey {
    /// The member cluster.
    pub cluster: String,
    /// The pod.
    pub pod: String,
}

/// A pod of a member cluster. As JSON, it is an item of the files on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// The member cluster.
    pub cluster: String,
    /// The pod.
    pub pod: String,
    /// Its addresses in text form, the IPv4 one first.
    pub addresses: Vec<String>,
    /// Its ports, in the order of the set's.
    pub ports: Vec<Port>,
    /// Whether new requests may be sent to it: it serves, and is not being removed.
    pub ready: bool,
    /// Whether it takes requests, also while it is being removed.
    pub serving: bool,
    /// Whether it is being removed.
    pub terminating: bool,
    /// The zone of its node, or empty.
    #[serde(default)]
    pub zone: String,
    /// Its node, or empty.
    #[serde(default)]
    pub node: String,
    /// Those labels of the pod that the set asks for.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

/// A port of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// The name that the set gives it.
    pub name: String,
    /// The number.
    pub number: u16,
}

/// An endpoint in a response that can't be one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidEndpoint {
    #[error("an endpoint has no key")]
    NoKey,
    #[error("port {number} of the endpoint {pod} in cluster {cluster} is not from 1 to 65535")]
    Port {
        cluster: String,
        pod: String,
        number: u32,
    },
}

impl Endpoint {
    /// Which endpoint it is.
    pub fn key(&self) -> EndpointKey {
        EndpointKey {
            cluster: self.cluster.clone(),
            pod: self.pod.clone(),
        }
    }

    /// The number of the port that the set calls `name`.
    pub fn port(&self, name: &str) -> Option<u16> {
        let port = self.ports.iter().find(|port| port.name == name);
        port.map(|port| port.number)
    }

    /// Its first address with the port that the set calls `port`, as URLs and socket addresses have them: `10.0.0.1:80`,
    /// `[fd00::1]:80`. None if it has no address, or no such port.
    pub fn authority(&self, port: &str) -> Option<String> {
        let (address, number) = (self.addresses.first()?, self.port(port)?);
        Some(match address.parse::<IpAddr>() {
            Ok(address) => SocketAddr::new(address, number).to_string(),
            Err(_) => format!("{address}:{number}"),
        })
    }

    /// The endpoint of a response.
    pub(crate) fn of_message(endpoint: proto::Endpoint) -> Result<Self, InvalidEndpoint> {
        let proto::EndpointKey { cluster, pod } = endpoint.key.ok_or(InvalidEndpoint::NoKey)?;
        let port = |port: proto::Port| {
            let number = u16::try_from(port.number).ok().filter(|number| *number > 0);
            number
                .map(|number| Port {
                    name: port.name,
                    number,
                })
                .ok_or_else(|| InvalidEndpoint::Port {
                    cluster: cluster.clone(),
                    pod: pod.clone(),
                    number: port.number,
                })
        };
        let ports = endpoint
            .ports
            .into_iter()
            .map(port)
            .collect::<Result<_, _>>()?;
        Ok(Self {
            addresses: endpoint.addresses,
            ports,
            ready: endpoint.ready,
            serving: endpoint.serving,
            terminating: endpoint.terminating,
            zone: endpoint.zone,
            node: endpoint.node,
            labels: endpoint.labels.into_iter().collect(),
            cluster,
            pod,
        })
    }
}

impl EndpointKey {
    pub(crate) fn of_message(key: proto::EndpointKey) -> Self {
        Self {
            cluster: key.cluster,
            pod: key.pod,
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn message(addresses: &[&str], port: u32) -> proto::Endpoint {
        proto::Endpoint {
            key: Some(proto::EndpointKey {
                cluster: "eu".to_owned(),
                pod: "web-1".to_owned(),
            }),
            addresses: addresses.iter().map(ToString::to_string).collect(),
            ports: vec![proto::Port {
                name: "http".to_owned(),
                number: port,
            }],
            ..proto::Endpoint::default()
        }
    }

    #[rstest]
    #[case::v4(&["10.0.0.1", "fd00::1"], "http", Some("10.0.0.1:80"))]
    #[case::v6_in_brackets(&["fd00::1"], "http", Some("[fd00::1]:80"))]
    #[case::a_host_name(&["lb.example.com"], "http", Some("lb.example.com:80"))]
    #[case::no_address(&[], "http", None)]
    #[case::no_such_port(&["10.0.0.1"], "grpc", None)]
    fn d1_an_endpoint_has_an_address_for_each_port(
        #[case] addresses: &[&str],
        #[case] port: &str,
        #[case] authority: Option<&str>,
    ) {
        let endpoint = Endpoint::of_message(message(addresses, 80)).unwrap();
        assert_eq!(endpoint.authority(port).as_deref(), authority);
    }

    #[rstest]
    #[case(0, false)]
    #[case(1, true)]
    #[case(65_535, true)]
    #[case(65_536, false)]
    fn d1_ports_are_in_range(#[case] number: u32, #[case] is_valid: bool) {
        let endpoint = Endpoint::of_message(message(&[], number));
        assert_eq!(endpoint.is_ok(), is_valid, "{endpoint:?}");
    }

    #[test]
    fn d1_an_endpoint_without_a_key_is_an_error() {
        let endpoint = Endpoint::of_message(proto::Endpoint::default());
        assert_eq!(endpoint, Err(InvalidEndpoint::NoKey));
    }
}
