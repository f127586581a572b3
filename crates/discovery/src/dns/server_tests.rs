//! Queries as resolvers send them, and what they get.

use std::net::Ipv4Addr;

use fedrs_api::EndpointSet;
use hickory_proto::{
    op::{Edns, Message, MessageType, OpCode, Query, ResponseCode},
    rr::{Name, RData, RecordType},
    serialize::binary::{BinDecodable, BinEncodable},
};
use hickory_server::net::xfer::Protocol;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinHandle,
};

use super::*;
use crate::dns::records::MOST_ENDPOINTS;

const ZONE: &str = "endpoints.fedrs.internal.";

fn read<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    serde_json::from_str(&value.to_string()).unwrap()
}

fn endpoint_set(name: &str, source: &Value) -> EndpointSet {
    read(&json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "EndpointSet",
        "metadata": { "namespace": "shop", "name": name },
        "spec": { "source": source, "ports": [{ "name": "http", "port": 8080 }, { "name": "metrics", "port": 9090 }] },
    }))
}

fn pod(name: &str, app: &str, addresses: &[&str], is_terminating: bool) -> Value {
    let ips = addresses.iter().map(|ip| json!({ "ip": ip }));
    let mut pod = json!({
        "metadata": {
            "namespace": "shop", "name": name, "resourceVersion": "1", "labels": { "app": app },
        },
        "status": {
            "phase": "Running", "podIPs": ips.collect::<Vec<_>>(),
            "conditions": [{ "type": "Ready", "status": "True" }],
        },
    });
    if is_terminating {
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    }
    pod
}

/// A catalog with the sets `web` (two endpoints, and one that leaves), `leaving` (one that leaves), `twice` (two with one address),
/// `empty`, `many` and `lost`, whose source does not exist.
fn catalog() -> Arc<Catalog> {
    let catalog = Catalog::waiting_for([]);
    catalog.update(|state| {
        for name in ["web", "leaving", "twice", "empty", "many"] {
            let selector = json!({ "selector": { "matchLabels": { "app": name } } });
            state.apply_set(&endpoint_set(name, &selector));
        }
        let source = json!({ "federatedReplicaSet": "nobody" });
        state.apply_set(&endpoint_set("lost", &source));
        state.add_member(&"eu".into());
        for object in [
            pod("web-1", "web", &["10.0.0.1", "fd00::1"], false),
            pod("web.2", "web", &["10.0.0.2"], false),
            pod("web-3", "web", &["10.0.0.3"], true),
            pod("leaving-1", "leaving", &["10.0.1.1"], true),
            pod("twice-1", "twice", &["10.0.2.1"], false),
            pod("twice-2", "twice", &["10.0.2.1"], false),
        ] {
            state.apply_pod("eu", read(&object));
        }
        for number in 0..=MOST_ENDPOINTS {
            let address = Ipv4Addr::from(0x0a01_0000 + u32::try_from(number).unwrap());
            let address = address.to_string();
            let object = pod(&format!("many-{number}"), "many", &[&address], false);
            state.apply_pod("eu", read(&object));
        }
        state.end_pods("eu");
    });
    catalog.members_known();
    catalog
}

fn handler(catalog: Arc<Catalog>) -> Handler {
    limited(catalog, 0)
}

/// One that answers so many queries a second of a client.
fn limited(catalog: Arc<Catalog>, queries_per_client: u32) -> Handler {
    let zone = Zone::new("fedrs.internal", 5).unwrap();
    Handler::new(
        catalog,
        DiscoveryMetrics::default(),
        zone,
        queries_per_client,
    )
}

fn query(name: &str, kind: RecordType) -> Message {
    let mut message = Message::new(7, MessageType::Query, OpCode::Query);
    message.add_query(Query::query(Name::from_ascii(name).unwrap(), kind));
    message
}

fn respond(handler: &Handler, message: &Message) -> Message {
    let source = SocketAddr::from(([127, 0, 0, 1], 4000));
    let response = handler.answer(&message.to_bytes().unwrap(), source, Protocol::Tcp);
    Message::from_bytes(&response.unwrap()).unwrap()
}

/// The response to a query below the zone: its code, and the data of the answers, sorted.
fn ask(handler: &Handler, name: &str, kind: RecordType) -> (ResponseCode, Vec<String>) {
    let response = respond(handler, &query(&format!("{name}.{ZONE}"), kind));
    let answers = response
        .answers
        .iter()
        .map(|record| record.data.to_string());
    let mut answers: Vec<_> = answers.collect();
    answers.sort();
    assert_eq!(
        !response.authorities.is_empty(),
        answers.is_empty() && response.metadata.authoritative,
        "{name}: an answer without records says for how long"
    );
    (response.metadata.response_code, answers)
}

#[test]
fn d2_names_have_the_records_of_their_endpoints() {
    use RecordType::{A, AAAA, SRV, TXT};
    use ResponseCode::{NXDomain, NoError, ServFail};
    let handler = handler(catalog());
    let target = |pod: &str| format!("{pod}.eu.web.shop.{ZONE}");
    let http = [
        format!("0 1 8080 {}", target("web-1")),
        format!("0 1 8080 {}", target("web.2")),
    ];
    let http: Vec<&str> = http.iter().map(String::as_str).collect();
    let cases: &[(&str, RecordType, ResponseCode, &[&str])] = &[
        ("web.shop", A, NoError, &["10.0.0.1", "10.0.0.2"]),
        ("WEB.Shop", A, NoError, &["10.0.0.1", "10.0.0.2"]),
        ("web.shop", AAAA, NoError, &["fd00::1"]),
        ("web.shop", TXT, NoError, &[]),
        ("_http._tcp.web.shop", SRV, NoError, &http),
        ("_http._tcp.web.shop", A, NoError, &[]),
        ("_other._tcp.web.shop", SRV, NXDomain, &[]),
        ("web-1.eu.web.shop", A, NoError, &["10.0.0.1"]),
        ("web.2.eu.web.shop", A, NoError, &["10.0.0.2"]),
        ("web-1.us.web.shop", A, NXDomain, &[]),
        // Those that leave are endpoints while there are no others.
        ("leaving.shop", A, NoError, &["10.0.1.1"]),
        // The networks of clusters may overlap.
        ("twice.shop", A, NoError, &["10.0.2.1"]),
        ("empty.shop", A, NoError, &[]),
        ("other.shop", A, NXDomain, &[]),
        ("shop", A, NoError, &[]),
        // It is a mistake, not an empty set.
        ("lost.shop", A, ServFail, &[]),
    ];
    for (name, kind, code, expected) in cases {
        let (found, answers) = ask(&handler, name, *kind);
        assert_eq!(
            (found, answers.as_slice()),
            (
                *code,
                &expected.iter().map(ToString::to_string).collect::<Vec<_>>()[..]
            ),
            "{name} {kind}"
        );
    }
    let all = ask(&handler, "web.shop", SRV).1;
    assert_eq!(all.len(), 4, "two ports of two endpoints: {all:?}");
}

#[test]
fn d2_srv_records_come_with_the_addresses_of_their_targets() {
    let handler = handler(catalog());
    let response = respond(
        &handler,
        &query(&format!("_http._tcp.web.shop.{ZONE}"), RecordType::SRV),
    );
    let addresses: Vec<_> = response
        .additionals
        .iter()
        .map(|record| record.data.to_string())
        .collect();
    assert_eq!(addresses, ["10.0.0.1", "fd00::1", "10.0.0.2"]);
}

#[test]
fn d2_the_first_endpoint_is_another_one_each_time_and_answers_are_bounded() {
    let handler = handler(catalog());
    let asked = query(&format!("many.shop.{ZONE}"), RecordType::A);
    let first = |response: &Message| response.answers[0].data.clone();
    let answers = [respond(&handler, &asked), respond(&handler, &asked)];
    assert_ne!(first(&answers[0]), first(&answers[1]));
    assert!(
        answers
            .iter()
            .all(|response| response.answers.len() == MOST_ENDPOINTS)
    );
}

/// What is not known is no empty answer: the resolver asks another replica, or keeps what it has.
#[test]
fn d2_nothing_is_answered_before_everything_is_known() {
    let waiting = handler(Catalog::waiting_for(["EndpointSets"]));
    let (code, answers) = ask(&waiting, "web.shop", RecordType::A);
    assert_eq!((code, answers.len()), (ResponseCode::ServFail, 0));
}

#[test]
fn names_of_others_and_what_is_no_query_are_refused() {
    let handler = handler(catalog());
    let code = |message: &Message| respond(&handler, message).metadata.response_code;
    assert_eq!(
        code(&query("example.com.", RecordType::A)),
        ResponseCode::Refused
    );
    assert_eq!(code(&query(ZONE, RecordType::AXFR)), ResponseCode::Refused);
    let mut update = query(ZONE, RecordType::SOA);
    update.metadata.op_code = OpCode::Update;
    assert_eq!(code(&update), ResponseCode::NotImp);
    let response = respond(&handler, &query(ZONE, RecordType::SOA));
    assert!(matches!(response.answers[0].data, RData::SOA(_)));
}

/// A response that is answered may be answered again, without an end.
#[test]
fn what_is_no_query_is_malformed_or_ignored() {
    let handler = handler(catalog());
    let client = SocketAddr::from(([127, 0, 0, 1], 4000));
    let answer = |bytes: &[u8]| handler.answer(bytes, client, Protocol::Udp);
    let mut message = query(&format!("web.shop.{ZONE}"), RecordType::A);
    let bytes = message.to_bytes().unwrap();
    let cut_off = answer(&bytes[..20]).unwrap();
    let Message { metadata, .. } = Message::from_bytes(&cut_off).unwrap();
    let expected = (7, MessageType::Response, ResponseCode::FormErr);
    let found = (metadata.id, metadata.message_type, metadata.response_code);
    assert_eq!(found, expected);
    assert_eq!(answer(&bytes[..8]), None);
    message.metadata.message_type = MessageType::Response;
    assert_eq!(answer(&message.to_bytes().unwrap()), None);
}

/// A server within these limits, its address, and what ends it.
async fn start(limits: Limits) -> (SocketAddr, CancellationToken, JoinHandle<()>) {
    let config = DnsConfig {
        domain: "fedrs.internal".to_owned(),
        ttl: Duration::from_secs(5),
        queries_per_client: 0,
        limits,
    };
    let mut server = DnsServer::new(catalog(), DiscoveryMetrics::default(), &config).unwrap();
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let address = server.listen(any).await.unwrap();
    let cancel = CancellationToken::new();
    let running = tokio::spawn(server.run(cancel.clone()));
    (address, cancel, running)
}

/// The response to a query by TCP.
async fn by_tcp(stream: &mut TcpStream, asked: &[u8]) -> std::io::Result<Message> {
    stream
        .write_u16(u16::try_from(asked.len()).unwrap())
        .await?;
    stream.write_all(asked).await?;
    let mut response = vec![0; usize::from(stream.read_u16().await?)];
    stream.read_exact(&mut response).await?;
    Ok(Message::from_bytes(&response).unwrap())
}

#[tokio::test]
async fn connections_by_tcp_are_limited_and_answer_several_queries() {
    let limits = Limits {
        connections_per_client: 1,
        ..Limits::default()
    };
    let (address, cancel, running) = start(limits).await;
    let asked = query(&format!("web.shop.{ZONE}"), RecordType::A);
    let asked = asked.to_bytes().unwrap();
    let mut first = TcpStream::connect(address).await.unwrap();
    for _ in 0..3 {
        assert_eq!(by_tcp(&mut first, &asked).await.unwrap().answers.len(), 2);
    }
    let mut second = TcpStream::connect(address).await.unwrap();
    assert!(by_tcp(&mut second, &asked).await.is_err(), "closed");
    assert_eq!(by_tcp(&mut first, &asked).await.unwrap().answers.len(), 2);
    drop(first);
    let again = async {
        loop {
            let mut stream = TcpStream::connect(address).await.unwrap();
            if by_tcp(&mut stream, &asked).await.is_ok() {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), again)
        .await
        .expect("it has left");
    cancel.cancel();
    running.await.unwrap();
}

#[tokio::test]
async fn a_query_by_tcp_that_is_none_ends_its_connection_and_no_other() {
    let (address, cancel, running) = start(Limits::default()).await;
    let asked = query(&format!("web.shop.{ZONE}"), RecordType::A);
    let asked = asked.to_bytes().unwrap();
    let mut good = TcpStream::connect(address).await.unwrap();
    for bytes in [&[0xff; 5000][..], &[0; 3], &[]] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        assert!(
            by_tcp(&mut stream, bytes).await.is_err(),
            "{} bytes",
            bytes.len()
        );
        assert_eq!(by_tcp(&mut good, &asked).await.unwrap().answers.len(), 2);
    }
    cancel.cancel();
    running.await.unwrap();
}

/// By UDP an answer that is too long is cut off, and says so; by TCP it is whole.
#[tokio::test]
async fn long_answers_are_whole_by_tcp() {
    let (address, cancel, running) = start(Limits::default()).await;
    let mut asked = query(&format!("many.shop.{ZONE}"), RecordType::A);
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut buffer = vec![0; 65_535];
    for (payload, most, opt) in [(None, 512, 0), (Some(800), 800, 11), (Some(4096), 1232, 11)] {
        asked.edns = payload.map(|payload| {
            let mut edns = Edns::new();
            edns.set_max_payload(payload);
            edns
        });
        let asked = asked.to_bytes().unwrap();
        socket.send_to(&asked, address).await.unwrap();
        let length = socket.recv(&mut buffer).await.unwrap();
        let by_udp = Message::from_bytes(&buffer[..length]).unwrap();
        assert!(
            by_udp.metadata.truncation && length <= most,
            "{length} bytes"
        );
        assert_eq!(by_udp.edns.is_some(), payload.is_some());
        // The header, the question, and 16 bytes for each address.
        assert_eq!(by_udp.answers.len(), (most - 12 - 40 - opt) / 16);
    }

    let mut stream = TcpStream::connect(address).await.unwrap();
    let by_tcp = by_tcp(&mut stream, &asked.to_bytes().unwrap()).await;
    let by_tcp = by_tcp.unwrap();
    assert!(!by_tcp.metadata.truncation);
    assert_eq!(by_tcp.answers.len(), MOST_ENDPOINTS);

    cancel.cancel();
    running.await.unwrap();
}

/// Who asks too much by UDP is to ask by TCP, where it can't pretend to be somebody else.
#[test]
fn a_client_beyond_its_rate_is_sent_to_tcp_and_refused_there() {
    let handler = limited(catalog(), 1);
    let asked = query(&format!("web.shop.{ZONE}"), RecordType::A);
    let respond = |client: u8, protocol| {
        let source = SocketAddr::from(([10, 0, 0, client], 4000));
        let response = handler.answer(&asked.to_bytes().unwrap(), source, protocol);
        let Message {
            metadata, answers, ..
        } = Message::from_bytes(&response.unwrap()).unwrap();
        (metadata.truncation, metadata.response_code, answers.len())
    };
    let whole = (false, ResponseCode::NoError, 2);
    for (protocol, too_many) in [
        (Protocol::Udp, (true, ResponseCode::NoError, 0)),
        (Protocol::Tcp, (false, ResponseCode::Refused, 0)),
    ] {
        assert_eq!(respond(1, protocol), whole);
        // A slow machine may earn another query meanwhile.
        let beyond = (0..100)
            .map(|_| respond(1, protocol))
            .find(|response| *response != whole);
        assert_eq!(beyond, Some(too_many));
        assert_eq!(respond(2, protocol), whole, "another client");
    }
}

proptest! {
    /// Bytes of anybody lead to a response, or to none, but not to a panic.
    #[test]
    fn hostile_bytes_are_answered_or_ignored(
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        is_query in any::<bool>(),
    ) {
        if is_query {
            let mut valid = query(&format!("web.shop.{ZONE}"), RecordType::SRV).to_bytes().unwrap();
            for (index, byte) in bytes.iter().enumerate().take(8) {
                let place = index * 37 % valid.len();
                valid[place] ^= byte;
            }
            bytes = valid;
        }
        let client = SocketAddr::from(([127, 0, 0, 1], 4000));
        let handler = handler(Catalog::waiting_for([]));
        for protocol in [Protocol::Udp, Protocol::Tcp] {
            let response = handler.answer(&bytes, client, protocol);
            prop_assert!(response.is_none_or(|response| Message::from_bytes(&response).is_ok()));
        }
    }
}
