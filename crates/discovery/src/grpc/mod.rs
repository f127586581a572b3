//! The gRPC service `fedrs.discovery.v1alpha1.Discovery`, with reflection and health.

mod follower;
mod messages;

use std::{pin::Pin, sync::Arc, time::Duration};

use discovery_proto::{
    self as proto,
    discovery_server::{Discovery, DiscoveryServer},
};
use futures::{Stream, StreamExt, stream};
use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::{
    Request, Response, Status,
    server::NamedService,
    transport::{Server, server::TcpIncoming},
};

use tonic_health::{ServingStatus, server::HealthReporter};

use self::follower::Follower;
use crate::{
    answer::StaleMember, catalog::Catalog, metrics::DiscoveryMetrics, problem::Problem,
    set::SetKey, xds,
};

/// The most sets that one call follows.
const MAX_SETS: usize = 1_000;
/// The longest request.
const MAX_REQUEST: usize = 1 << 20;
/// Calls of one connection at the same time.
const MAX_CALLS: u32 = 1_000;
/// How often an idle connection is checked, and how long the response may take.
const PING: (Duration, Duration) = (Duration::from_secs(20), Duration::from_secs(10));

type Responses = Pin<Box<dyn Stream<Item = Result<proto::WatchResponse, Status>> + Send>>;

/// Answers on `listener` until `cancel`.
pub async fn serve_grpc(
    listener: TcpListener,
    (catalog, metrics): (Arc<Catalog>, DiscoveryMetrics),
    cancel: CancellationToken,
) {
    let (health, health_service) = tonic_health::server::health_reporter();
    set_health(&health, ServingStatus::NotServing).await;
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(proto::DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .expect("the descriptors are compiled ones");
    let xds = xds::server(Arc::clone(&catalog), metrics.clone(), cancel.clone())
        .max_decoding_message_size(MAX_REQUEST);
    let service = Service {
        catalog: Arc::clone(&catalog),
        metrics,
        cancel: cancel.clone(),
    };
    let service = DiscoveryServer::new(service).max_decoding_message_size(MAX_REQUEST);
    let (interval, patience) = PING;
    let serving = Server::builder()
        .max_concurrent_streams(MAX_CALLS)
        .http2_keepalive_interval(Some(interval))
        .http2_keepalive_timeout(Some(patience))
        .add_service(service)
        .add_service(xds)
        .add_service(health_service)
        .add_service(reflection)
        .serve_with_incoming_shutdown(
            TcpIncoming::from(listener).with_nodelay(Some(true)),
            cancel.cancelled(),
        );
    let healthy = async {
        catalog.begun().await;
        set_health(&health, ServingStatus::Serving).await;
    };
    let (served, _) = tokio::join!(serving, cancel.run_until_cancelled(healthy));
    if let Err(error) = served {
        tracing::error!(%error, "the gRPC server ended");
    }
}

/// Sets the state of this service, and of the process as a whole: its name is empty.
async fn set_health(health: &HealthReporter, status: ServingStatus) {
    for service in ["", DiscoveryServer::<Service>::NAME] {
        health.set_service_status(service, status).await;
    }
}

#[derive(Debug)]
struct Service {
    catalog: Arc<Catalog>,
    metrics: DiscoveryMetrics,
    /// Ends the calls that follow sets.
    cancel: CancellationToken,
}

impl Service {
    fn resolved(&self, request: proto::ResolveRequest) -> Result<proto::ResolveResponse, Status> {
        let key = key(request.set)?;
        let found = Problem::check(&key, self.catalog.lookup(&key));
        let found = found.map_err(|problem| messages::status(&problem))?;
        let stale = StaleMember::all(&found, &self.catalog.members(), Timestamp::now());
        let unchanged = found.version == request.known_version;
        Ok(proto::ResolveResponse {
            version: found.version,
            unchanged,
            endpoints: if unchanged {
                Vec::new()
            } else {
                messages::endpoints(&found)
            },
            stale_members: messages::stale_members(stale),
        })
    }

    fn watched(&self, request: proto::WatchRequest) -> Result<Responses, Status> {
        if request.sets.is_empty() || request.sets.len() > MAX_SETS {
            let text = format!("sets: must have 1 to {MAX_SETS} items");
            return Err(Status::invalid_argument(text));
        }
        let followed = request.sets.into_iter().map(|watched| {
            let follower = Follower::new(key(watched.set)?, watched.known_version);
            Ok(follow(Arc::clone(&self.catalog), follower).boxed())
        });
        let followed = followed.collect::<Result<Vec<_>, Status>>()?;
        let watching = self.metrics.watching();
        let responses = stream::select_all(followed).map(move |response| {
            let _counted_while_it_lives = &watching;
            Ok(response)
        });
        let end = stream::once(async { Err(Status::unavailable("this replica is stopping")) });
        let stopped = self.cancel.clone().cancelled_owned();
        Ok(responses.take_until(stopped).chain(end).boxed())
    }

    fn counted<T>(&self, result: Result<T, Status>) -> Result<Response<T>, Status> {
        let code = result
            .as_ref()
            .map_or_else(Status::code, |_| tonic::Code::Ok);
        self.metrics.count_grpc(&format!("{code:?}"));
        result.map(Response::new)
    }
}

#[tonic::async_trait]
impl Discovery for Service {
    type WatchStream = Responses;

    async fn resolve(
        &self,
        request: Request<proto::ResolveRequest>,
    ) -> Result<Response<proto::ResolveResponse>, Status> {
        self.counted(self.resolved(request.into_inner()))
    }

    async fn watch(
        &self,
        request: Request<proto::WatchRequest>,
    ) -> Result<Response<Responses>, Status> {
        self.counted(self.watched(request.into_inner()))
    }
}

fn key(set: Option<proto::SetId>) -> Result<SetKey, Status> {
    let set = set.unwrap_or_default();
    if set.namespace.is_empty() || set.name.is_empty() {
        return Err(Status::invalid_argument(
            "set: needs a namespace and a name",
        ));
    }
    Ok(SetKey::new(set.namespace, set.name))
}

/// What the client gets: as much as it reads, always the latest.
fn follow(catalog: Arc<Catalog>, follower: Follower) -> impl Stream<Item = proto::WatchResponse> {
    stream::unfold((catalog, follower), |(catalog, mut follower)| async {
        loop {
            // Before the lookup: a change after it is not missed.
            let changes = catalog.changes(&follower.key);
            let mut others = catalog.other_changes();
            let lookup = catalog.lookup(&follower.key);
            let response = follower.next(lookup, &catalog.members(), Timestamp::now());
            if let Some(response) = response {
                return Some((response, (catalog, follower)));
            }
            let of_set = async {
                match changes {
                    // Ends when the set is deleted, too.
                    Some(mut changes) => _ = changes.changed().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = of_set => {}
                _ = others.changed() => {}
            }
        }
    })
}
