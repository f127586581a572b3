//! What clients are answered by gRPC, on loopback.

use std::{sync::Arc, time::Duration};

use discovery::{DiscoveryMetrics, Service, serve_grpc};
use discovery_proto::{
    self as proto, discovery_client::DiscoveryClient, problem::Reason, watch_response::Event,
};
use serde_json::json;
use sim_cluster::SimCluster;
use tokio::{net::TcpListener, task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;
use tonic::{
    Code, Streaming,
    transport::{Channel, Endpoint},
};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

use crate::world::{SETS, World, create_pod, delete_pod, write};

/// The gRPC server, and a connection to it.
pub(crate) struct Server {
    pub(crate) channel: Channel,
    pub(crate) uri: String,
    cancel: CancellationToken,
    serving: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(world: &World) -> Self {
        let catalog = Arc::clone(world.catalog());
        Self::of(Service::new(catalog, DiscoveryMetrics::default())).await
    }

    pub(crate) async fn of(service: Service) -> Self {
        let mut server = Self::lazy(service).await;
        let endpoint = Endpoint::from_shared(server.uri.clone()).unwrap();
        server.channel = endpoint.connect().await.unwrap();
        server
    }

    /// Connects when it is used.
    pub(crate) async fn lazy(service: Service) -> Self {
        Self::lazy_at("127.0.0.1:0", service).await
    }

    pub(crate) async fn lazy_at(address: &str, service: Service) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let uri = format!("http://{}", listener.local_addr().unwrap());
        let cancel = CancellationToken::new();
        Self {
            channel: Endpoint::from_shared(uri.clone()).unwrap().connect_lazy(),
            uri,
            serving: tokio::spawn(serve_grpc(listener, service, cancel.clone())),
            cancel,
        }
    }

    /// Ends it, with its connections.
    pub(crate) async fn stop(self) {
        self.cancel.cancel();
        self.serving.await.unwrap();
    }

    fn client(&self) -> DiscoveryClient<Channel> {
        DiscoveryClient::new(self.channel.clone())
    }

    async fn watch(&self, name: &str, known_version: u64) -> Streaming<proto::WatchResponse> {
        let set = proto::WatchedSet {
            set: Some(id(name)),
            known_version,
        };
        let request = proto::WatchRequest { sets: vec![set] };
        self.client().watch(request).await.unwrap().into_inner()
    }
}

pub(crate) fn id(name: &str) -> proto::SetId {
    proto::SetId {
        namespace: "default".to_owned(),
        name: name.to_owned(),
    }
}

fn resolve(name: &str, known_version: u64) -> proto::ResolveRequest {
    proto::ResolveRequest {
        set: Some(id(name)),
        known_version,
    }
}

pub(crate) async fn next(responses: &mut Streaming<proto::WatchResponse>) -> Event {
    let response = timeout(Duration::from_secs(60), responses.message()).await;
    let response = response.expect("a response in time").unwrap();
    response.expect("the stream has not ended").event.unwrap()
}

fn pods(endpoints: &[proto::Endpoint]) -> Vec<String> {
    let keys = endpoints
        .iter()
        .map(|endpoint| endpoint.key.clone().unwrap());
    keys.map(|key| format!("{}/{}", key.cluster, key.pod))
        .collect()
}

async fn two_pods() -> World {
    let world = World::start(async |[eu, us]: &[SimCluster; 2]| {
        create_pod(eu, "a").await;
        create_pod(us, "a").await;
    })
    .await;
    world.answer(|answer| answer.endpoints.len() == 2).await;
    world
}

#[tokio::test]
async fn d2_resolve_returns_endpoints_unless_the_client_has_them() {
    let world = two_pods().await;
    let server = Server::start(&world).await;
    let found = server.client().resolve(resolve("web", 0)).await.unwrap();
    let found = found.into_inner();
    assert_eq!(pods(&found.endpoints), ["eu/a", "us/a"]);
    let first = &found.endpoints[0];
    assert!(first.ready && first.serving && !first.terminating);
    assert_eq!(
        (first.ports[0].name.as_str(), first.ports[0].number),
        ("http", 8080)
    );
    assert_eq!(json!(first.labels), json!({ "version": "1" }));
    assert_eq!((first.addresses.len(), found.unchanged), (1, false));
    let same = server.client().resolve(resolve("web", found.version)).await;
    let same = same.unwrap().into_inner();
    assert_eq!(
        (same.unchanged, same.endpoints.len(), same.version),
        (true, 0, found.version)
    );
}

#[tokio::test]
async fn d2_a_client_follows_a_set_by_its_changes_and_continues_from_its_version() {
    let world = two_pods().await;
    let server = Server::start(&world).await;
    let mut responses = server.watch("web", 0).await;
    let Event::Endpoints(whole) = next(&mut responses).await else {
        panic!("first the whole set");
    };
    assert_eq!(pods(&whole.endpoints), ["eu/a", "us/a"]);
    create_pod(&world.members[1], "b").await;
    let Event::Changes(added) = next(&mut responses).await else {
        panic!("then what is different");
    };
    assert_eq!(
        (pods(&added.updated), added.removed.len()),
        (vec!["us/b".to_owned()], 0)
    );
    assert_eq!(added.from_version, whole.version);
    delete_pod(&world.members[0], "a").await;
    let mut version = added.version;
    loop {
        let Event::Changes(changes) = next(&mut responses).await else {
            panic!("then what is different");
        };
        assert_eq!(changes.from_version, version, "no version is left out");
        version = changes.version;
        if let [removed] = &*changes.removed {
            assert_eq!((&*removed.cluster, &*removed.pod), ("eu", "a"));
            break;
        }
        assert!(changes.updated[0].terminating, "it is marked before");
    }
    let mut continued = server.watch("web", version).await;
    let expected = proto::Changes {
        from_version: version,
        version,
        ..proto::Changes::default()
    };
    assert_eq!(next(&mut continued).await, Event::Changes(expected));
    server.cancel.cancel();
    let end = responses.message().await.unwrap_err();
    assert_eq!(end.code(), Code::Unavailable, "{end}");
    let ended = timeout(Duration::from_secs(60), server.serving).await;
    ended
        .expect("calls that follow sets don't keep it")
        .unwrap();
}

#[tokio::test]
async fn d2_what_is_not_known_is_a_problem_and_no_empty_set() {
    let world = two_pods().await;
    let server = Server::start(&world).await;
    let invalid = json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "EndpointSet", "metadata": { "name": "missing" },
        "spec": { "source": { "federatedReplicaSet": "nobody" } },
    });
    let mut responses = server.watch("missing", 0).await;
    let problem = |event: Event| match event {
        Event::Problem(problem) => (problem.reason(), problem.message),
        event => panic!("{event:?}"),
    };
    assert_eq!(
        problem(next(&mut responses).await),
        (
            Reason::NotFound,
            "EndpointSet default/missing does not exist".to_owned()
        )
    );
    write(&world.host, "POST", SETS, &invalid).await;
    let (reason, text) = problem(next(&mut responses).await);
    assert_eq!(reason, Reason::Invalid, "{text}");
    let set = json!({ "spec": { "source": { "federatedReplicaSet": null, "selector": { "matchLabels": { "app": "web" } } } } });
    write(&world.host, "PATCH", &format!("{SETS}/missing"), &set).await;
    let Event::Endpoints(whole) = next(&mut responses).await else {
        panic!("it exists now");
    };
    assert_eq!(pods(&whole.endpoints), ["eu/a", "us/a"]);
    let mut client = server.client();
    let nobody = proto::ResolveRequest::default();
    for (request, code) in [
        (resolve("other", 0), Code::NotFound),
        (nobody, Code::InvalidArgument),
    ] {
        let error = client.resolve(request).await.unwrap_err();
        assert_eq!(error.code(), code, "{error}");
    }
    for count in [0, 1_001] {
        let sets = vec![
            proto::WatchedSet {
                set: Some(id("web")),
                known_version: 0
            };
            count
        ];
        let error = client
            .watch(proto::WatchRequest { sets })
            .await
            .unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    }
}

#[tokio::test]
async fn the_health_service_says_whether_answers_have_begun() {
    let world = World::start(async |[eu, _]: &[SimCluster; 2]| {
        eu.faults().set_unreachable(true);
    })
    .await;
    let server = Server::start(&world).await;
    let health = HealthClient::new(server.channel.clone());
    let status = async |service: &str| {
        let service = service.to_owned();
        let checked = health.clone().check(HealthCheckRequest { service }).await;
        checked.unwrap().into_inner().status().as_str_name()
    };
    let services = ["", "fedrs.discovery.v1alpha1.Discovery"];
    for service in services {
        assert_eq!(status(service).await, "NOT_SERVING");
    }
    world.members[0].faults().heal();
    for service in services {
        let begun = async { while status(service).await != "SERVING" {} };
        timeout(Duration::from_secs(60), begun).await.unwrap();
    }
}
