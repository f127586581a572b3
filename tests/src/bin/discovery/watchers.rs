//! Many clients that each follow one set by gRPC: what each of them takes of the service.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::ensure;
use discovery_proto::{WatchRequest, discovery_client::DiscoveryClient, watch_response::Event};
use fedrs_tests::generated_members::until;
use futures::{StreamExt, TryStreamExt, stream};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::{task::JoinSet, time::timeout};
use tonic::transport::Channel;

use crate::{
    clients::{change_pods, channel, watched},
    members::Shape,
    service::Service,
};

/// Connections that are made at the same time.
const CONNECTED_TOGETHER: usize = 64;
/// How long the last changes may take until all clients have them.
const PATIENCE: Duration = Duration::from_secs(30);
/// Open files of each process besides connections of clients.
const OTHER_FILES: usize = 2_000;

/// What the clients take of the service.
pub(crate) struct Cost {
    /// Resident bytes of each client.
    pub(crate) bytes: f64,
    /// The CPU time while nothing changes, as a part of one processor.
    pub(crate) idle: f64,
    /// Seconds of CPU time for each change and client that follows its set, with what the change itself takes.
    pub(crate) seconds: f64,
    /// Changes, counted for each client that follows their sets.
    pub(crate) sent: usize,
    /// Those that did not arrive.
    pub(crate) lost: usize,
}

/// What clients have received.
#[derive(Default)]
struct Received {
    /// Clients that have their set.
    sets: AtomicUsize,
    /// Endpoints that are gone.
    removed: AtomicUsize,
}

/// Whether this process, and those that it starts from now on, may open as many connections. Raises its limit if need be.
pub(crate) fn can_open(connections: usize) -> bool {
    let needed = u64::try_from(connections + OTHER_FILES).unwrap_or(u64::MAX);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    current.is_none_or(|current| current >= needed)
        || (maximum.is_none_or(|maximum| maximum >= needed)
            && setrlimit(Resource::Nofile, raised).is_ok())
}

/// Lets `clients` over `connections` follow one set each, waits for `duration`, and then changes pods for as long, `a_second`.
#[expect(clippy::cast_precision_loss, reason = "for people")]
pub(crate) async fn cost(
    service: &Service,
    shape: Shape,
    (clients, connections): (usize, usize),
    (a_second, duration): (u32, Duration),
) -> anyhow::Result<Cost> {
    let process = service.process()?;
    let (before, _) = process.memory()?;
    let received = Arc::new(Received::default());
    let mut following = JoinSet::new();
    let channels: Vec<Channel> = stream::iter(0..connections)
        .map(|_| channel(service.grpc()))
        .buffer_unordered(CONNECTED_TOGETHER)
        .try_collect()
        .await?;
    for number in 0..clients {
        let client = DiscoveryClient::new(channels[number % connections].clone());
        following.spawn(follow(client, number % shape.sets, Arc::clone(&received)));
    }
    let mut ended = None;
    until("all clients have their sets", async || {
        ended = following.try_join_next();
        ended.is_some() || received.sets.load(Ordering::Relaxed) >= clients
    })
    .await?;
    ensure!(ended.is_none(), "a client ended: {ended:?}");
    let started = process.cpu_seconds()?;
    tokio::time::sleep(duration).await;
    let quiet = process.cpu_seconds()?;
    let (after, _) = process.memory()?;
    let mut sent = 0;
    change_pods(service, shape, (a_second, duration), |number| {
        sent += followers(number / shape.endpoints, clients, shape);
    })
    .await;
    let arrived = || received.removed.load(Ordering::Relaxed);
    let all = until("all changes arrive", async || arrived() >= sent);
    let _ = timeout(PATIENCE, all).await;
    let used = process.cpu_seconds()? - quiet;
    ended = following.try_join_next();
    ensure!(ended.is_none(), "a client ended: {ended:?}");
    Ok(Cost {
        bytes: after.saturating_sub(before) as f64 / clients as f64,
        idle: (quiet - started) / duration.as_secs_f64(),
        seconds: used / sent as f64,
        sent,
        lost: sent.saturating_sub(arrived()),
    })
}

/// How many clients follow a set.
fn followers(set: usize, clients: usize, shape: Shape) -> usize {
    clients / shape.sets + usize::from(set < clients % shape.sets)
}

/// Follows a set, until the task is aborted.
async fn follow(
    mut client: DiscoveryClient<Channel>,
    set: usize,
    received: Arc<Received>,
) -> anyhow::Result<()> {
    let request = WatchRequest {
        sets: vec![watched(set)],
    };
    let mut responses = client.watch(request).await?.into_inner();
    while let Some(response) = responses.message().await? {
        match response.event {
            Some(Event::Endpoints(_)) => _ = received.sets.fetch_add(1, Ordering::Relaxed),
            Some(Event::Changes(changes)) => {
                let removed = changes.removed.len();
                received.removed.fetch_add(removed, Ordering::Relaxed);
            }
            Some(Event::Problem(_)) | None => {}
        }
    }
    Ok(())
}
