//! The records that answer a question, from what the catalog has.

use std::{collections::HashSet, net::IpAddr};

use hickory_proto::rr::{Name, RData, Record, RecordType, rdata::SRV};

use super::{question::Question, zone::Zone};
use crate::{
    catalog::{Catalog, Lookup},
    set::SetKey,
    snapshot::{Endpoint, EndpointSnapshot},
};

/// The most endpoints in one answer, so that it fits into a message: those that it has differ from answer to answer.
pub(super) const MOST_ENDPOINTS: usize = 256;
/// All endpoints are equal: priority and weight of an SRV record. With weight 0 some clients take one endpoint only.
const EQUAL: (u16, u16) = (0, 1);

/// An answer without its header.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    /// The name exists, and has these addresses.
    Addresses(Vec<IpAddr>),
    /// The name exists. Without records it has none of this type.
    Records {
        answers: Vec<Record>,
        /// The addresses of the targets of SRV records.
        additional: Vec<Record>,
    },
    /// The name does not exist.
    NoName,
    /// It is not known: whoever asks keeps what it has, or asks another replica.
    Unknown,
}

impl Answer {
    pub(super) fn of(answers: Vec<Record>) -> Self {
        Self::Records {
            answers,
            additional: Vec::new(),
        }
    }
}

/// Answers `question`, asked with the `name`, from what the catalog has. `turn` decides which endpoint is the first.
pub(super) fn answer(
    catalog: &Catalog,
    zone: &Zone,
    (name, question, kind): (&Name, &Question, RecordType),
    turn: usize,
) -> Answer {
    let found = |key: &SetKey, records: &dyn Fn(&EndpointSnapshot) -> Answer| {
        match catalog.lookup(key) {
            Lookup::Found(snapshot) => records(&snapshot),
            Lookup::NotFound => Answer::NoName,
            // A mistake in the set is no reason to forget its endpoints.
            Lookup::Waiting(_) | Lookup::NoSource | Lookup::Invalid(_) => Answer::Unknown,
        }
    };
    match question {
        Question::Zone => Answer::of(zone.own_records(kind)),
        Question::Between => Answer::of(Vec::new()),
        Question::Nothing => Answer::NoName,
        Question::Set(key) => found(key, &|snapshot| {
            let endpoints = in_turn(snapshot, turn);
            match kind {
                RecordType::SRV => services(zone, (name, key), &endpoints, None),
                _ => Answer::Addresses(addresses(&endpoints, kind)),
            }
        }),
        Question::Port { set, port } => found(set, &|snapshot| {
            let is_known = snapshot.set.ports.iter().any(|known| *known.name == **port);
            match kind {
                _ if !is_known => Answer::NoName,
                RecordType::SRV => {
                    services(zone, (name, set), &in_turn(snapshot, turn), Some(port))
                }
                _ => Answer::of(Vec::new()),
            }
        }),
        Question::Endpoint { set, cluster, pod } => found(set, &|snapshot| {
            let mut endpoints = snapshot.endpoints.iter();
            let endpoint = endpoints.find(|one| one.cluster() == cluster && one.name() == pod);
            endpoint.map_or(Answer::NoName, |endpoint| {
                Answer::Addresses(addresses(&[endpoint], kind))
            })
        }),
    }
}

/// The endpoints that new requests may be sent to, from another one on each time. Those that are being removed only if there are no
/// others, as with a Service.
fn in_turn(snapshot: &EndpointSnapshot, turn: usize) -> Vec<&Endpoint> {
    let reachable = snapshot.endpoints.iter();
    let reachable = reachable.filter(|endpoint| endpoint.addresses().next().is_some());
    let (leaving, mut endpoints): (Vec<_>, Vec<_>) =
        reachable.partition(|one| one.is_terminating());
    if endpoints.is_empty() {
        endpoints = leaving;
    }
    if !endpoints.is_empty() {
        let first = turn % endpoints.len();
        endpoints.rotate_left(first);
    }
    endpoints.truncate(MOST_ENDPOINTS);
    endpoints
}

/// The addresses of this type, or of both; each once, as the networks of clusters may overlap (RFC 2181, 5).
fn addresses(endpoints: &[&Endpoint], kind: RecordType) -> Vec<IpAddr> {
    let mut given = HashSet::with_capacity(endpoints.len());
    let addresses = endpoints.iter().flat_map(|endpoint| endpoint.addresses());
    let of_kind = addresses.filter(|address| match kind {
        RecordType::A => address.is_ipv4(),
        RecordType::AAAA => address.is_ipv6(),
        kind => kind == RecordType::ANY,
    });
    of_kind.filter(|address| given.insert(*address)).collect()
}

/// The SRV records of one port, or of all, with the addresses of their targets.
fn services(
    zone: &Zone,
    (name, key): (&Name, &SetKey),
    endpoints: &[&Endpoint],
    port: Option<&str>,
) -> Answer {
    let (priority, weight) = EQUAL;
    let (mut answers, mut additional) = (Vec::new(), Vec::new());
    for endpoint in endpoints {
        // A name that is too long for DNS has no record.
        let Some(target) = zone.endpoint_name(key, endpoint) else {
            continue;
        };
        let ports = endpoint.ports().iter();
        for one in ports.filter(|one| port.is_none_or(|port| *one.name == *port)) {
            let data = SRV::new(priority, weight, one.number, target.clone());
            answers.push(Record::from_rdata(name.clone(), zone.ttl, RData::SRV(data)));
        }
        additional.extend(endpoint.addresses().map(|address| {
            let data = match address {
                IpAddr::V4(address) => RData::A(address.into()),
                IpAddr::V6(address) => RData::AAAA(address.into()),
            };
            Record::from_rdata(target.clone(), zone.ttl, data)
        }));
    }
    Answer::Records {
        answers,
        additional,
    }
}
