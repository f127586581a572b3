//! What answers a query: with which code, and within which rate, around the records.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use hickory_proto::{
    op::{Header, HeaderCounts, MessageType, Metadata, OpCode, ResponseCode},
    rr::{DNSClass, RecordType},
    serialize::binary::{BinDecodable, BinDecoder, BinEncodable},
};
use hickory_server::{net::xfer::Protocol, server::Request};
use parking_lot::Mutex;

use super::{
    question::question,
    rate::Rates,
    records::{Answer, answer},
    response::Response,
    zone::Zone,
};
use crate::{catalog::Catalog, metrics::DiscoveryMetrics};

/// The longest query: those that are answered have some hundred bytes.
pub(super) const LONGEST_QUERY: u16 = 4096;

/// What answers queries, by UDP and TCP.
pub(super) struct Handler {
    catalog: Arc<Catalog>,
    metrics: DiscoveryMetrics,
    zone: Zone,
    /// Grows with each answer, so that the first endpoint is another one each time.
    turn: AtomicUsize,
    /// The rates of clients by UDP, and by TCP.
    rates: Option<[Mutex<Rates>; 2]>,
}

fn rates(per_second: u32) -> Option<[Mutex<Rates>; 2]> {
    let rates = || Some(Mutex::new(Rates::new(per_second)?));
    Some([rates()?, rates()?])
}

impl Handler {
    /// It answers from what `catalog` has, so many queries a second of one client; any number if it is 0.
    pub(super) fn new(
        catalog: Arc<Catalog>,
        metrics: DiscoveryMetrics,
        zone: Zone,
        queries_per_client: u32,
    ) -> Self {
        Self {
            catalog,
            metrics,
            zone,
            turn: AtomicUsize::new(0),
            rates: rates(queries_per_client),
        }
    }

    /// The response to a message of a client; `None` if it is not to be answered.
    pub(super) fn answer(
        &self,
        message: &[u8],
        client: SocketAddr,
        protocol: Protocol,
    ) -> Option<Vec<u8>> {
        let Ok(request) = Request::from_bytes(message.to_vec(), client, protocol) else {
            let header = Header::read(&mut BinDecoder::new(message)).ok()?;
            if header.metadata.message_type != MessageType::Query {
                return None;
            }
            return self.failed(&header.metadata, ResponseCode::FormErr);
        };
        // A response that is answered may be answered again, without an end.
        if request.metadata.message_type != MessageType::Query {
            return None;
        }
        let response = self.respond(&request);
        match response.encode(&request) {
            Ok(bytes) => {
                self.metrics.count_dns(&response.code);
                Some(bytes)
            }
            Err(error) => {
                tracing::debug!(%error, "a DNS response can't be written");
                self.failed(&request.metadata, ResponseCode::ServFail)
            }
        }
    }

    /// A response that is a header alone.
    fn failed(&self, request: &Metadata, code: ResponseCode) -> Option<Vec<u8>> {
        self.metrics.count_dns(&code);
        let mut metadata = Metadata::response_from_request(request);
        metadata.response_code = code;
        let counts = HeaderCounts::default();
        Header { metadata, counts }.to_bytes().ok()
    }

    fn respond(&self, request: &Request) -> Response {
        let metadata = &request.metadata;
        if metadata.op_code != OpCode::Query {
            return Response::of_code(ResponseCode::NotImp);
        }
        let Ok(info) = request.request_info() else {
            return Response::of_code(ResponseCode::FormErr);
        };
        if request.version() > 0 {
            return Response::of_code(ResponseCode::BADVERS);
        }
        if !self.is_within_rate(request) {
            return too_many(request.protocol());
        }
        let (name, kind) = (info.query.original().name(), info.query.query_type());
        let is_internet = info.query.query_class() == DNSClass::IN;
        let labels = self.zone.labels_of(name).filter(|_| is_internet);
        let (Some(labels), false) = (labels, kind == RecordType::AXFR) else {
            return Response::of_code(ResponseCode::Refused);
        };
        let labels: Vec<_> = labels.iter().map(String::as_str).collect();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let asked = (name, &question(&labels), kind);
        let mut response = Response::of_code(ResponseCode::NoError);
        response.is_authoritative = true;
        match answer(&self.catalog, &self.zone, asked, turn) {
            Answer::Addresses(addresses) => response.addresses = (addresses, self.zone.ttl),
            Answer::Records {
                answers,
                additional,
            } => (response.answers, response.additional) = (answers, additional),
            Answer::NoName => response.code = ResponseCode::NXDomain,
            Answer::Unknown => return Response::of_code(ResponseCode::ServFail),
        }
        let is_empty = response.answers.is_empty() && response.addresses.0.is_empty();
        response.soa = is_empty.then(|| self.zone.soa());
        response
    }
}

impl Handler {
    /// Counts the query of a client.
    fn is_within_rate(&self, request: &Request) -> bool {
        let Some([by_udp, by_tcp]) = &self.rates else {
            return true;
        };
        let rates = match request.protocol() {
            Protocol::Udp => by_udp,
            _ => by_tcp,
        };
        let is_within = rates.lock().take(request.src().ip(), Instant::now());
        if !is_within {
            self.metrics.servers.count_refused_query();
        }
        is_within
    }
}

/// The response to a client that has sent too many queries: by UDP, that it is to ask by TCP, as the address may not be its own.
fn too_many(protocol: Protocol) -> Response {
    match protocol {
        Protocol::Udp => Response {
            is_truncated: true,
            ..Response::of_code(ResponseCode::NoError)
        },
        _ => Response::of_code(ResponseCode::Refused),
    }
}
