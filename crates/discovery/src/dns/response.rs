//! A response, and its bytes.

use std::{net::IpAddr, ops::Range};

use hickory_proto::{
    ProtoError,
    op::{Edns, Metadata, ResponseCode},
    rr::{DNSClass, Record, RecordType},
    serialize::binary::BinEncoder,
};
use hickory_server::{net::xfer::Protocol, server::Request, zone_handler::MessageResponseBuilder};

/// The largest response by UDP that is not split on its way (DNS Flag Day 2020).
const UDP_PAYLOAD: u16 = 1232;
/// The smallest one that every client takes.
const LEAST_PAYLOAD: u16 = 512;
/// The bytes of an OPT record (EDNS) without options.
const OPT: usize = 11;
/// A compression pointer to the name in the question, which begins after the header of 12 bytes (RFC 1035, 4.1.4).
const NAME_OF_QUESTION: [u8; 2] = [0xc0, 12];
/// Places in the header: the byte with the flag of truncation, and the number of answers.
const FLAGS: usize = 2;
const TRUNCATION: u8 = 0b10;
const ANSWERS: Range<usize> = 6..8;

/// A response without its question.
pub(super) struct Response {
    /// Whether the client is to ask by TCP.
    pub(super) is_truncated: bool,
    pub(super) code: ResponseCode,
    pub(super) is_authoritative: bool,
    pub(super) answers: Vec<Record>,
    /// More answers: the addresses of the name that was asked for, and for how many seconds clients may keep them.
    pub(super) addresses: (Vec<IpAddr>, u32),
    pub(super) soa: Option<Record>,
    pub(super) additional: Vec<Record>,
}

impl Response {
    /// One without records.
    pub(super) fn of_code(code: ResponseCode) -> Self {
        Self {
            is_truncated: false,
            code,
            is_authoritative: false,
            answers: Vec::new(),
            addresses: (Vec::new(), 0),
            soa: None,
            additional: Vec::new(),
        }
    }

    /// The response as it is sent; by UDP cut off where the client can't take more.
    pub(super) fn encode(&self, request: &Request) -> Result<Vec<u8>, ProtoError> {
        let mut metadata = Metadata::response_from_request(&request.metadata);
        metadata.authoritative = self.is_authoritative;
        metadata.truncation = self.is_truncated;
        metadata.response_code = self.code;
        let edns = request.edns.as_ref().map(|asked| {
            let mut edns = Edns::new();
            edns.set_max_payload(asked.max_payload().clamp(LEAST_PAYLOAD, UDP_PAYLOAD));
            edns
        });
        let largest = match request.protocol() {
            Protocol::Udp => edns.as_ref().map_or(LEAST_PAYLOAD, Edns::max_payload),
            _ => u16::MAX,
        };
        let message = MessageResponseBuilder::new(&request.queries, edns.as_ref()).build(
            metadata,
            &self.answers,
            [],
            &self.soa,
            &self.additional,
        );
        let mut bytes = Vec::with_capacity(usize::from(UDP_PAYLOAD));
        let mut encoder = BinEncoder::new(&mut bytes);
        encoder.set_max_size(largest);
        message.destructive_emit(&mut encoder)?;
        if !self.addresses.0.is_empty() {
            self.insert_addresses(&mut bytes, edns.is_some(), largest.into());
        }
        Ok(bytes)
    }

    /// Inserts the addresses after the question, as many as fit. Most queries are for addresses, and records would need a name and an
    /// object each.
    fn insert_addresses(&self, message: &mut Vec<u8>, has_opt: bool, largest: usize) {
        let (addresses, ttl) = &self.addresses;
        let opt = message.split_off(message.len() - if has_opt { OPT } else { 0 });
        let mut count = 0_u16;
        for address in addresses {
            let end = message.len();
            match address {
                IpAddr::V4(v4) => put_record(message, RecordType::A, *ttl, &v4.octets()),
                IpAddr::V6(v6) => put_record(message, RecordType::AAAA, *ttl, &v6.octets()),
            }
            if message.len() + opt.len() > largest {
                message.truncate(end);
                message[FLAGS] |= TRUNCATION;
                break;
            }
            count += 1;
        }
        message[ANSWERS].copy_from_slice(&count.to_be_bytes());
        message.extend(opt);
    }
}

/// Writes a record of the name in the question (RFC 1035, 4.1.3).
fn put_record(message: &mut Vec<u8>, kind: RecordType, ttl: u32, data: &[u8]) {
    let length = u16::try_from(data.len()).expect("an address is short");
    message.extend(NAME_OF_QUESTION);
    message.extend(u16::from(kind).to_be_bytes());
    message.extend(u16::from(DNSClass::IN).to_be_bytes());
    message.extend(ttl.to_be_bytes());
    message.extend(length.to_be_bytes());
    message.extend(data);
}
