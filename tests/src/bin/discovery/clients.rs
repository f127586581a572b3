//! Clients of the service by gRPC, in this process.

use std::{
    collections::HashMap,
    hint::black_box,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context;
use discovery_proto::{
    ResolveRequest, SetId, WatchRequest, WatchedSet, discovery_client::DiscoveryClient,
    watch_response::Event,
};
use endpoint_resolver::Resolver;
use fedrs_tests::generated_members::until;
use futures::future::try_join_all;
use parking_lot::Mutex;
use rand::RngExt;
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};

use crate::{
    members::{self, Shape},
    service::Service,
};

/// Connections.
const CONNECTIONS: usize = 4;
/// Calls of each connection at the same time.
const CALLS: usize = 32;
/// How long the last changes may take until the client has them.
const PATIENCE: Duration = Duration::from_secs(1);

/// How many answers there were.
pub(crate) struct Rate {
    pub(crate) answers: usize,
    pub(crate) failed: usize,
    pub(crate) seconds: f64,
}

impl Rate {
    /// What clients counted since the start: answers, and queries that failed.
    pub(crate) fn of(counts: &[(usize, usize)], started: Instant) -> Self {
        Self {
            answers: counts.iter().map(|(answers, _)| answers).sum(),
            failed: counts.iter().map(|(_, failed)| failed).sum(),
            seconds: started.elapsed().as_secs_f64(),
        }
    }
}

/// How long changes took until a client had them.
pub(crate) struct Latencies {
    pub(crate) median: Duration,
    pub(crate) p99: Duration,
    /// Changes that the client never got.
    pub(crate) lost: usize,
}

impl Latencies {
    /// Of changes that took so long each.
    pub(crate) fn of(mut took: Vec<Duration>, lost: usize) -> anyhow::Result<Self> {
        took.sort();
        let at = |part: usize| took.get(took.len() * part / 100).copied();
        Ok(Self {
            median: at(50).context("no change was seen")?,
            p99: at(99).context("no change was seen")?,
            lost,
        })
    }
}

fn set(number: usize) -> SetId {
    SetId {
        namespace: "default".to_owned(),
        name: format!("set-{number}"),
    }
}

fn request(number: usize, known_version: u64) -> ResolveRequest {
    ResolveRequest {
        set: Some(set(number)),
        known_version,
    }
}

pub(crate) fn watched(number: usize) -> WatchedSet {
    WatchedSet {
        set: Some(set(number)),
        known_version: 0,
    }
}

pub(crate) fn any_set(shape: Shape) -> usize {
    rand::rng().random_range(0..shape.sets)
}

pub(crate) async fn channel(server: SocketAddr) -> anyhow::Result<Channel> {
    let endpoint = Endpoint::from_shared(format!("http://{server}"))?;
    Ok(endpoint.tcp_nodelay(true).connect().await?)
}

/// Resolves a second, by one thread of a client that has the set.
#[expect(clippy::cast_precision_loss, reason = "for people")]
pub(crate) async fn in_process(server: SocketAddr, duration: Duration) -> anyhow::Result<f64> {
    const AT_ONCE: u64 = 10_000;
    let resolver = Resolver::builder()
        .server(format!("http://{server}"))
        .build()?;
    let endpoints = resolver.endpoints("default/set-0")?;
    endpoints.ready().await?;
    let (started, mut resolves) = (Instant::now(), 0);
    while started.elapsed() < duration {
        for _ in 0..AT_ONCE {
            black_box(endpoints.current());
        }
        resolves += AT_ONCE;
    }
    Ok(resolves as f64 / started.elapsed().as_secs_f64())
}

/// Asks for sets by gRPC.
pub(crate) async fn grpc(
    server: SocketAddr,
    shape: Shape,
    has_version: bool,
    duration: Duration,
) -> anyhow::Result<Rate> {
    let mut channels = Vec::new();
    for _ in 0..CONNECTIONS {
        channels.push(channel(server).await?);
    }
    let mut versions = vec![0; shape.sets];
    if has_version {
        let mut client = DiscoveryClient::new(channels[0].clone());
        for (number, version) in versions.iter_mut().enumerate() {
            let resolved = client.resolve(request(number, 0)).await?;
            *version = resolved.into_inner().version;
        }
    }
    let (versions, started) = (Arc::new(versions), Instant::now());
    let callers = (0..CONNECTIONS * CALLS).map(|caller| {
        let mut client = DiscoveryClient::new(channels[caller % CONNECTIONS].clone());
        let versions = Arc::clone(&versions);
        tokio::spawn(async move {
            let (mut answers, mut failed) = (0, 0);
            while started.elapsed() < duration {
                let number = any_set(shape);
                match client.resolve(request(number, versions[number])).await {
                    Ok(_) => answers += 1,
                    Err(_) => failed += 1,
                }
            }
            (answers, failed)
        })
    });
    let counts = try_join_all(callers).await?;
    Ok(Rate::of(&counts, started))
}

/// Changes of pods, by the names of these: when they were made, until the client knows, and then how long that took.
#[derive(Default)]
struct Seen {
    /// Sets that the client has.
    sets: usize,
    made: HashMap<String, Instant>,
    took: Vec<Duration>,
}

/// Changes pods, and measures how long it takes until a client that watches all sets knows.
pub(crate) async fn changes(
    service: &Service,
    shape: Shape,
    a_second: u32,
    duration: Duration,
) -> anyhow::Result<Latencies> {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let client = DiscoveryClient::new(channel(service.grpc()).await?);
    let watching = tokio::spawn(watch(client, shape, Arc::clone(&seen)));
    until("a client has all sets", async || {
        seen.lock().sets == shape.sets
    })
    .await?;
    change_pods(service, shape, (a_second, duration), |number| {
        let name = members::name(shape, number);
        seen.lock().made.insert(name, Instant::now());
    })
    .await;
    let all = until("all changes arrive", async || seen.lock().made.is_empty());
    let _ = timeout(PATIENCE, all).await;
    watching.abort();
    let mut seen = seen.lock();
    let lost = seen.made.len();
    Latencies::of(std::mem::take(&mut seen.took), lost)
}

/// Changes pods for a while; calls `on_change` with the number of each before. Each of them once stops being ready, and so leaves
/// its set.
pub(crate) async fn change_pods(
    service: &Service,
    shape: Shape,
    (a_second, duration): (u32, Duration),
    mut on_change: impl FnMut(usize),
) {
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / a_second);
    let started = Instant::now();
    for number in rand::seq::index::sample(&mut rand::rng(), shape.all(), shape.all()) {
        ticks.tick().await;
        if started.elapsed() > duration {
            break;
        }
        on_change(number);
        service.members().change(number, false);
    }
}

/// Follows all sets, until the task is aborted.
async fn watch(
    mut client: DiscoveryClient<Channel>,
    shape: Shape,
    seen: Arc<Mutex<Seen>>,
) -> anyhow::Result<()> {
    let request = WatchRequest {
        sets: (0..shape.sets).map(watched).collect(),
    };
    let mut responses = client.watch(request).await?.into_inner();
    while let Some(response) = responses.message().await? {
        let mut seen = seen.lock();
        match response.event {
            Some(Event::Endpoints(_)) => seen.sets += 1,
            Some(Event::Changes(changes)) => {
                for key in changes.removed {
                    if let Some(made) = seen.made.remove(&key.pod) {
                        seen.took.push(made.elapsed());
                    }
                }
            }
            Some(Event::Problem(_)) | None => {}
        }
    }
    Ok(())
}
