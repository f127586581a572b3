//! What clients get that ask too much, or take nothing, on loopback.

use std::{sync::Arc, time::Duration};

use discovery::{DiscoveryMetrics, Limits, Service, serve_http};
use discovery_proto::{self as proto, discovery_client::DiscoveryClient, watch_response::Event};
use prometheus_client::{encoding::text::encode, registry::Registry};
use rstest::rstest;
use sim_cluster::SimCluster;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tonic::{
    Code,
    transport::{Channel, Endpoint},
};

use crate::{
    grpc::{Server, id, next},
    world::{World, create_pod},
};

const SOON: Duration = Duration::from_secs(60);
const REQUEST: &[u8] = b"GET /v1/endpoints/default/web HTTP/1.1\r\nhost: a\r\n\r\n";

async fn one_pod() -> World {
    let world = World::start(async |[eu, _]: &[SimCluster; 2]| {
        create_pod(eu, "a").await;
    })
    .await;
    world.answer(|answer| answer.endpoints.len() == 1).await;
    world
}

fn service(world: &World) -> Service {
    Service::new(Arc::clone(world.catalog()), DiscoveryMetrics::default())
}

fn watch(known_version: u64) -> proto::WatchRequest {
    let set = Some(id("web"));
    let sets = vec![proto::WatchedSet { set, known_version }];
    proto::WatchRequest { sets }
}

/// Tries until it succeeds.
async fn until(what: &str, mut attempt: impl AsyncFnMut() -> bool) {
    let attempts = async {
        while !attempt().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    let done = timeout(SOON, attempts).await;
    done.unwrap_or_else(|_| panic!("{what}: not in {SOON:?}"));
}

#[tokio::test]
async fn a_client_follows_no_more_sets_at_a_time_than_the_limit() {
    let world = one_pod().await;
    let limits = Limits {
        streams_per_client: 2,
        ..Limits::default()
    };
    let server = Server::of(service(&world).with_limits(limits)).await;
    let mut client = DiscoveryClient::new(server.channel.clone());
    let first = client.watch(watch(0)).await.unwrap();
    let _second = client.watch(watch(0)).await.unwrap();
    let error = client.watch(watch(0)).await.unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted);
    assert_eq!(
        error.message(),
        "too many calls that follow sets of this client: 2 is the most"
    );
    let resolved = client.resolve(proto::ResolveRequest {
        set: Some(id("web")),
        known_version: 0,
    });
    resolved.await.expect("it follows nothing");
    drop(first);
    until("another call", async || {
        client.watch(watch(0)).await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn connections_beyond_the_limit_are_told_so_by_grpc() {
    let world = one_pod().await;
    let limits = Limits {
        connections_per_client: 1,
        ..Limits::default()
    };
    let server = Server::of(service(&world).with_limits(limits)).await;
    let second = Endpoint::from_shared(server.uri.clone())
        .unwrap()
        .connect_lazy();
    let error = DiscoveryClient::new(second)
        .watch(watch(0))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted);
    assert_eq!(
        error.message(),
        "too many connections of this client: 1 is the most"
    );
    let uri = server.uri.clone();
    drop(server.channel);
    until("another connection", async || {
        let channel = Endpoint::from_shared(uri.clone()).unwrap().connect_lazy();
        DiscoveryClient::new(channel).watch(watch(0)).await.is_ok()
    })
    .await;
}

#[rstest]
#[case::of_a_client(Limits { connections_per_client: 1, ..Limits::default() }, "HTTP/1.1 429", "of this client: 1 is the most")]
#[case::of_all(Limits { connections: 1, ..Limits::default() }, "HTTP/1.1 503", "of all clients: 1 is the most")]
#[tokio::test]
async fn connections_beyond_the_limit_are_told_so_by_http(
    #[case] limits: Limits,
    #[case] status: &str,
    #[case] text: &str,
) {
    let world = one_pod().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let cancel = CancellationToken::new();
    let service = service(&world).with_limits(limits);
    let serving = tokio::spawn(serve_http(listener, service, cancel.clone()));
    let mut first = TcpStream::connect(address).await.unwrap();
    first.write_all(REQUEST).await.unwrap();
    let mut line = [0; 12];
    first.read_exact(&mut line).await.unwrap();
    assert_eq!(&line, b"HTTP/1.1 200");
    let mut second = TcpStream::connect(address).await.unwrap();
    second.write_all(REQUEST).await.unwrap();
    let mut response = String::new();
    second.read_to_string(&mut response).await.unwrap();
    assert!(
        response.starts_with(status) && response.contains(text),
        "{response}"
    );
    cancel.cancel();
    timeout(SOON, serving).await.expect("it ends").unwrap();
}

/// The metric, once one client was cut off.
const CUT_OFF: &str = "discovery_cut_off_connections_total{server=\"grpc\"} 1\n";

/// A server that cuts clients off after two seconds, and its metrics.
async fn impatient(world: &World) -> (Server, Registry) {
    let mut registry = Registry::default();
    let metrics = DiscoveryMetrics::register(world.catalog(), &mut registry);
    let service = Service::new(Arc::clone(world.catalog()), metrics);
    let server = Server::of(service.with_patience(Duration::from_secs(2))).await;
    (server, registry)
}

/// A client with room for a small response, and no more until it is read.
fn small_client(server: &Server) -> DiscoveryClient<Channel> {
    let small = Endpoint::from_shared(server.uri.clone()).unwrap();
    DiscoveryClient::new(small.initial_stream_window_size(600).connect_lazy())
}

fn text(registry: &Registry) -> String {
    let mut text = String::new();
    encode(&mut text, registry).unwrap();
    text
}

#[tokio::test]
async fn a_replica_that_takes_nothing_is_cut_off() {
    let world = one_pod().await;
    let (server, registry) = impatient(&world).await;
    let replicating = small_client(&server)
        .replicate(proto::ReplicateRequest {})
        .await;
    let mut stuck = replicating.unwrap().into_inner();
    loop {
        let part = stuck.message().await.unwrap();
        if part.expect("all that there is, and then changes").complete {
            break;
        }
    }
    assert!(!text(&registry).contains(CUT_OFF));
    for number in 0..12 {
        create_pod(&world.members[1], &format!("b-{number}")).await;
    }
    until("the end of the connection", async || {
        text(&registry).contains(CUT_OFF)
    })
    .await;
    let end = async { while let Ok(Some(_)) = stuck.message().await {} };
    timeout(SOON, end)
        .await
        .expect("what was on its way, and the end");
}

#[tokio::test]
async fn a_client_that_takes_nothing_is_cut_off_and_continues_from_its_version() {
    let world = one_pod().await;
    let (server, registry) = impatient(&world).await;
    let mut stuck = small_client(&server)
        .watch(watch(0))
        .await
        .unwrap()
        .into_inner();
    let Event::Endpoints(whole) = next(&mut stuck).await else {
        panic!("first the whole set");
    };
    // One that reads lasts on.
    let mut reader = DiscoveryClient::new(server.channel.clone());
    let mut reads = reader
        .watch(watch(whole.version))
        .await
        .unwrap()
        .into_inner();
    next(&mut reads).await;
    for number in 0..12 {
        create_pod(&world.members[1], &format!("b-{number}")).await;
    }
    until("the end of the call", async || {
        while let Ok(read) = timeout(Duration::from_millis(1), reads.message()).await {
            read.expect("it reads");
        }
        text(&registry).contains("discovery_grpc_watches 1\n")
    })
    .await;
    let text = text(&registry);
    assert!(text.contains(CUT_OFF), "{text}");
    let end = async { while let Ok(Some(_)) = stuck.message().await {} };
    timeout(SOON, end)
        .await
        .expect("what was on its way, and the end");

    let mut again = reader
        .watch(watch(whole.version))
        .await
        .unwrap()
        .into_inner();
    let Event::Endpoints(now) = next(&mut again).await else {
        panic!("what has changed since");
    };
    assert_eq!(now.endpoints.len(), 13);
}
