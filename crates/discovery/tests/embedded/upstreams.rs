//! A replica that reads others: real connections, on loopback.

use std::{sync::Arc, time::Duration};

use axum::http::StatusCode;
use discovery::{
    Answer, Catalog, Credentials, Discovery, DiscoveryMetrics, LoadedSnapshots, Service,
    SnapshotDirectory, UpstreamMetrics, Upstreams, write_snapshots,
};
use prometheus_client::{encoding::text, registry::Registry};
use serde_json::{Value, json};
use sim_cluster::SimCluster;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{
    grpc::Server,
    world::{SETS, World, answer, create_pod, delete_pod, get, write},
};

const WEB: &str = "/v1/endpoints/default/web";
/// How long answers wait for members of which there is no snapshot, without an upstream.
const PATIENCE: Duration = Duration::from_secs(3);

/// A replica without clusters.
struct Downstream {
    catalog: Arc<Catalog>,
    registry: Registry,
    cancel: CancellationToken,
    following: JoinHandle<()>,
}

impl Downstream {
    fn start(upstreams: &[&str], loaded: LoadedSnapshots) -> Self {
        Self::start_as(upstreams, loaded, Credentials::default())
    }

    fn start_as(upstreams: &[&str], loaded: LoadedSnapshots, credentials: Credentials) -> Self {
        let upstreams = Upstreams::new(upstreams.iter().copied(), credentials).unwrap();
        let catalog = Upstreams::catalog(loaded);
        let mut registry = Registry::default();
        let metrics = UpstreamMetrics::register(&mut registry);
        let cancel = CancellationToken::new();
        let follow = upstreams.follow(Arc::clone(&catalog), metrics, PATIENCE, cancel.clone());
        Self {
            catalog,
            registry,
            cancel,
            following: tokio::spawn(follow),
        }
    }

    async fn answer(&self, expected: impl Fn(&Answer) -> bool) -> Answer {
        answer(&self.catalog, expected).await
    }

    fn has_metric(&self, line: &str) -> bool {
        let mut encoded = String::new();
        text::encode(&mut encoded, &self.registry).unwrap();
        encoded.lines().any(|found| found == line)
    }

    async fn stop(self) {
        self.cancel.cancel();
        self.following.await.unwrap();
    }
}

async fn two_pods() -> World {
    let world = World::start(async |[eu, us]: &[SimCluster; 2]| {
        create_pod(eu, "a").await;
        create_pod(us, "b").await;
    })
    .await;
    world.answer(|answer| answer.endpoints.len() == 2).await;
    world
}

async fn serve(discovery: &Discovery) -> Server {
    let catalog = Arc::clone(discovery.catalog());
    Server::lazy(Service::new(catalog, DiscoveryMetrics::default())).await
}

fn names(answer: &Answer) -> Vec<&str> {
    let endpoints = answer.endpoints.iter();
    endpoints.map(|endpoint| endpoint.name.as_str()).collect()
}

fn are_all_stale(answer: &Answer) -> bool {
    let mut stale = answer.stale_members.iter();
    stale.len() == 2 && stale.all(|member| member.seconds.is_some())
}

#[tokio::test]
async fn d3_a_replica_answers_what_its_upstream_does_and_watches_no_member() {
    let world = two_pods().await;
    let (server, watches) = (Server::start(&world).await, world.watches());
    let downstream = Downstream::start(&[&server.uri], LoadedSnapshots::default());
    let first = downstream.answer(|_| true).await;
    let upstream = world.answer(|_| true).await;
    assert_eq!(first.endpoints, upstream.endpoints);
    assert!(first.endpoints[0].node.is_some() && first.stale_members.is_empty());
    create_pod(&world.members[0], "c").await;
    delete_pod(&world.members[1], "b").await;
    let changed = downstream
        .answer(|answer| names(answer) == ["a", "c"])
        .await;
    assert!(changed.version > first.version);
    let missing = json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "EndpointSet", "metadata": { "name": "missing" },
        "spec": { "source": { "federatedReplicaSet": "nobody" } },
    });
    write(&world.host, "POST", SETS, &missing).await;
    let until_status = async |name: &str, expected: StatusCode| {
        let path = format!("/v1/endpoints/default/{name}");
        for _ in 0..2_000 {
            if get(&downstream.catalog, &path, None).await.0 == expected {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{name} is never answered by {expected}");
    };
    until_status("missing", StatusCode::CONFLICT).await;
    write(&world.host, "DELETE", &format!("{SETS}/web"), &Value::Null).await;
    until_status("web", StatusCode::NOT_FOUND).await;
    assert_eq!(world.watches(), watches);
    assert!(downstream.has_metric("discovery_upstream_connected 1"));
    assert!(downstream.has_metric("discovery_upstream_stale_seconds 0"));
    downstream.stop().await;
}

#[tokio::test]
async fn d3_a_replica_whose_upstream_is_gone_keeps_its_answers_until_another_takes_over() {
    let world = two_pods().await;
    let server = Server::start(&world).await;
    let another = world.another();
    let later = serve(&another).await;
    let uri = later.uri.clone();
    later.stop().await;
    let downstream = Downstream::start(&[&server.uri, &uri], LoadedSnapshots::default());
    let before = downstream
        .answer(|answer| answer.stale_members.is_empty())
        .await;
    server.stop().await;
    let alone = downstream.answer(are_all_stale).await;
    assert_eq!(
        (&alone.endpoints, alone.version),
        (&before.endpoints, before.version)
    );
    create_pod(&world.members[0], "c").await;
    answer(another.catalog(), |answer| answer.endpoints.len() == 3).await;
    let aged = downstream
        .answer(|answer| answer.stale_members[0].seconds >= Some(1))
        .await;
    assert_eq!(
        (aged.endpoints, aged.version),
        (before.endpoints, before.version)
    );
    assert!(downstream.has_metric("discovery_upstream_connected 0"));
    assert!(!downstream.has_metric("discovery_upstream_stale_seconds 0"));
    let catalog = Arc::clone(another.catalog());
    let service = Service::new(catalog, DiscoveryMetrics::default());
    let server = Server::lazy_at(uri.trim_start_matches("http://"), service).await;
    let after = downstream
        .answer(|answer| answer.stale_members.is_empty())
        .await;
    assert_eq!(names(&after), ["a", "c", "b"]);
    assert!(after.version > before.version);
    downstream.stop().await;
    server.stop().await;
    another.stop().await;
}

#[tokio::test]
async fn d3_a_replica_that_starts_while_its_upstream_is_away_answers_from_its_snapshots() {
    let world = two_pods().await;
    let server = Server::start(&world).await;
    let directory = tempfile::tempdir().unwrap();
    let snapshots = SnapshotDirectory::new(directory.path().join("snapshots"));
    let downstream = Downstream::start(&[&server.uri], snapshots.load());
    let before = downstream
        .answer(|answer| answer.stale_members.is_empty())
        .await;
    let written = CancellationToken::new();
    written.cancel();
    let metrics = DiscoveryMetrics::default();
    write_snapshots(
        snapshots.clone(),
        Arc::clone(&downstream.catalog),
        metrics,
        written,
    )
    .await;
    downstream.stop().await;
    let uri = server.uri.clone();
    server.stop().await;
    let downstream = Downstream::start(&[&uri], snapshots.load());
    downstream.catalog.ready().unwrap();
    let again = downstream.answer(are_all_stale).await;
    assert_eq!(again.endpoints, before.endpoints);
    assert!(again.version > before.version);
    downstream.stop().await;
    // A member of which the snapshot is lost may have the endpoints that a set lacks: it is waited for, and then said.
    std::fs::remove_file(directory.path().join("snapshots/member-us.snapshot")).unwrap();
    let downstream = Downstream::start(&[&uri], snapshots.load());
    let waiting = downstream.catalog.ready().unwrap_err().to_string();
    assert_eq!(waiting, "waiting for the first list of pods of us");
    let partial = downstream.answer(|_| true).await;
    assert_eq!(names(&partial), ["a"]);
    let stale: Vec<_> = (partial.stale_members.iter())
        .map(|member| (member.name.as_str(), member.seconds.is_some()))
        .collect();
    assert_eq!(stale, [("eu", true), ("us", false)]);
    downstream.stop().await;
    // Without that of the host, nothing is known.
    std::fs::remove_file(directory.path().join("snapshots/host.snapshot")).unwrap();
    let downstream = Downstream::start(&[&uri], snapshots.load());
    tokio::time::sleep(2 * PATIENCE).await;
    let (status, text, _) = get(&downstream.catalog, WEB, None).await;
    let expected = (
        StatusCode::SERVICE_UNAVAILABLE,
        "waiting for the first answer of an upstream\n",
    );
    assert_eq!((status, text.as_str()), expected);
    downstream.stop().await;
}

/// A replica can feed another one.
#[tokio::test]
async fn d3_ages_are_those_of_the_members_over_several_replicas() {
    let world = two_pods().await;
    let server = Server::start(&world).await;
    let first = Downstream::start(&[&server.uri], LoadedSnapshots::default());
    let service = Service::new(Arc::clone(&first.catalog), DiscoveryMetrics::default());
    let second_server = Server::lazy(service).await;
    let second = Downstream::start(&[&second_server.uri], LoadedSnapshots::default());
    second
        .answer(|answer| answer.stale_members.is_empty())
        .await;
    world.members[0].faults().set_unreachable(true);
    world.members[0].faults().cut_watches();
    let stale = |answer: &Answer| {
        let stale = &answer.stale_members;
        stale.len() == 1 && stale[0].seconds >= Some(1)
    };
    let answered = second.answer(stale).await;
    assert_eq!(
        (
            answered.stale_members[0].name.as_str(),
            answered.endpoints.len()
        ),
        ("eu", 2)
    );
    world.members[0].faults().heal();
    second
        .answer(|answer| answer.stale_members.is_empty())
        .await;
    second.stop().await;
    first.stop().await;
}
