//! The gRPC service `fedrs.discovery.v1alpha1.Discovery`, with reflection and health.

mod follower;
mod messages;
mod resolve;

use std::{pin::Pin, sync::Arc};

use discovery_proto::{
    self as proto,
    discovery_server::{Discovery, DiscoveryServer},
};
use futures::{Stream, StreamExt, stream};
use jiff::Timestamp;
use tokio::{net::TcpListener, sync::oneshot};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Request, Response, Status, server::NamedService, service::Routes};
use tonic_health::{ServingStatus, server::HealthReporter};

use self::{
    follower::Follower,
    resolve::{Encoded, EncodedEndpoints},
};
use crate::{
    access::Caller,
    answer::StaleMember,
    catalog::Catalog,
    peer::Peer,
    problem::Problem,
    replication::Feed,
    service::Service,
    serving::{Protocol, accept},
    set::SetKey,
    xds,
};

/// The most sets that one call follows.
const MAX_SETS: usize = 1_000;
/// The longest request.
const MAX_REQUEST: usize = 1 << 20;

type Responses<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Answers on `listener` until `cancel`.
pub async fn serve_grpc(listener: TcpListener, service: Service, cancel: CancellationToken) {
    let (health, health_service) = tonic_health::server::health_reporter();
    set_health(&health, ServingStatus::NotServing).await;
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(proto::DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .expect("the descriptors are compiled ones");
    let connections = service.connections(Protocol::Http2);
    let catalog = Arc::clone(&service.catalog);
    let xds = xds::server(service.clone(), cancel.clone()).max_decoding_message_size(MAX_REQUEST);
    let calls = Arc::new(Calls::new(service, cancel.clone()));
    let resolving = Arc::clone(&calls);
    let resolve = resolve::router(MAX_REQUEST, move |request| {
        let calls = Arc::clone(&resolving);
        async move { calls.counted(calls.resolved(request).await) }
    });
    let calls = DiscoveryServer::from_arc(calls).max_decoding_message_size(MAX_REQUEST);
    let routes = Routes::new(calls)
        .add_service(xds)
        .add_service(health_service)
        .add_service(reflection);
    let router = routes.prepare().into_axum_router().merge(resolve);
    let healthy = async {
        catalog.begun().await;
        set_health(&health, ServingStatus::Serving).await;
    };
    tokio::join!(
        accept(listener, connections, router, cancel.clone()),
        cancel.run_until_cancelled(healthy)
    );
}

/// Sets the state of this service, and of the process as a whole: its name is empty.
async fn set_health(health: &HealthReporter, status: ServingStatus) {
    for service in ["", DiscoveryServer::<Calls>::NAME] {
        health.set_service_status(service, status).await;
    }
}

#[derive(Debug)]
struct Calls {
    service: Service,
    encoded: EncodedEndpoints,
    /// Ends the calls that follow sets.
    cancel: CancellationToken,
}

impl Calls {
    fn new(service: Service, cancel: CancellationToken) -> Self {
        Self {
            service,
            encoded: EncodedEndpoints::default(),
            cancel,
        }
    }

    async fn resolved(&self, request: Request<proto::ResolveRequest>) -> Result<Encoded, Status> {
        let caller = self.service.caller(&request).await?;
        let request = request.into_inner();
        let key = key(request.set)?;
        let permitted = caller.check(&key).await;
        let found =
            permitted.and_then(|()| Problem::check(&key, self.service.catalog.lookup(&key)));
        let found = found.map_err(|problem| messages::status(&problem))?;
        let stale = StaleMember::all(&found, &self.service.catalog.members(), Timestamp::now());
        let unchanged = found.version == request.known_version;
        let endpoints = (!unchanged).then(|| self.encoded.of(&key, &found));
        let rest = proto::ResolveResponse {
            version: found.version,
            unchanged,
            endpoints: Vec::new(),
            stale_members: messages::stale_members(stale),
        };
        Ok(Encoded::new(endpoints.unwrap_or_default(), rest))
    }

    async fn watched(
        &self,
        request: Request<proto::WatchRequest>,
    ) -> Result<Responses<proto::WatchResponse>, Status> {
        let caller = self.service.caller(&request).await?;
        let share = self.service.stream(&Peer::of(&request))?;
        let request = request.into_inner();
        if request.sets.is_empty() || request.sets.len() > MAX_SETS {
            let text = format!("sets: must have 1 to {MAX_SETS} items");
            return Err(Status::invalid_argument(text));
        }
        let followed = request.sets.into_iter().map(|watched| {
            let follower = Follower::new(key(watched.set)?, watched.known_version);
            let catalog = Arc::clone(&self.service.catalog);
            Ok(follow(catalog, follower, caller.clone()).boxed())
        });
        let followed = followed.collect::<Result<Vec<_>, Status>>()?;
        let watching = self.service.metrics.watching();
        let responses = stream::select_all(followed).map(move |response| {
            let _counted_while_they_live = (&watching, &share);
            Ok(response)
        });
        Ok(until(responses, self.end(caller)).boxed())
    }

    async fn replicated(
        &self,
        request: Request<proto::ReplicateRequest>,
    ) -> Result<Responses<proto::ReplicateResponse>, Status> {
        let caller = self.service.caller(&request).await?;
        let share = self.service.stream(&Peer::of(&request))?;
        caller.check_all().await?;
        let catalog = &self.service.catalog;
        catalog
            .ready()
            .map_err(|waiting| Status::unavailable(waiting.to_string()))?;
        let feed = Feed::new(Arc::clone(catalog));
        let watching = self.service.metrics.watching();
        let responses = stream::unfold(
            (feed, share, watching),
            |(mut feed, share, watching)| async {
                Some((Ok(feed.next().await), (feed, share, watching)))
            },
        );
        let end = self.end(caller.clone());
        let end = async move {
            tokio::select! {
                status = end => status,
                status = revoked(caller) => status,
            }
        };
        Ok(until(responses, end).boxed())
    }

    /// The end of a call that follows sets: that of the service, or of the caller's time.
    fn end(&self, caller: Caller) -> impl Future<Output = Status> + use<> {
        let stopped = self.cancel.clone().cancelled_owned();
        async move {
            tokio::select! {
                () = stopped => Status::unavailable("this replica is stopping"),
                status = caller.term() => status,
            }
        }
    }

    fn counted<T>(&self, result: Result<T, Status>) -> Result<Response<T>, Status> {
        let code = result.as_ref().map_or_else(Status::code, |_| Code::Ok);
        self.service.metrics.count_grpc(&format!("{code:?}"));
        result.map(Response::new)
    }
}

#[tonic::async_trait]
impl Discovery for Calls {
    type WatchStream = Responses<proto::WatchResponse>;
    type ReplicateStream = Responses<proto::ReplicateResponse>;

    /// Servers have [`resolve::router`] instead.
    async fn resolve(
        &self,
        request: Request<proto::ResolveRequest>,
    ) -> Result<Response<proto::ResolveResponse>, Status> {
        let resolved = self.resolved(request).await;
        self.counted(resolved.map(|encoded| encoded.decoded()))
    }

    async fn watch(
        &self,
        request: Request<proto::WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        self.counted(self.watched(request).await)
    }

    async fn replicate(
        &self,
        request: Request<proto::ReplicateRequest>,
    ) -> Result<Response<Self::ReplicateStream>, Status> {
        self.counted(self.replicated(request).await)
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

/// The responses until `end`, which is the last one.
fn until<T>(
    responses: impl Stream<Item = Result<T, Status>>,
    end: impl Future<Output = Status>,
) -> impl Stream<Item = Result<T, Status>> {
    let (sender, receiver) = oneshot::channel();
    let ended = async { _ = sender.send(end.await) };
    let last = async { receiver.await.ok().map(Err) };
    let last = stream::once(last).filter_map(std::future::ready);
    responses.take_until(ended).chain(last)
}

/// The end of a call for everything: the caller may not ask for it any more. While that is not known, the call lasts on.
async fn revoked(caller: Caller) -> Status {
    loop {
        caller.look_again().await;
        match caller.check_all().await {
            Err(status) if status.code() == Code::PermissionDenied => return status,
            _ => {}
        }
    }
}

/// What the client gets: as much as it reads, always the latest.
fn follow(
    catalog: Arc<Catalog>,
    follower: Follower,
    caller: Caller,
) -> impl Stream<Item = proto::WatchResponse> {
    let state = (catalog, follower, caller);
    stream::unfold(state, |(catalog, mut follower, caller)| async {
        loop {
            // Before the lookup: a change after it is not missed.
            let changes = catalog.changes(&follower.key);
            let mut others = catalog.other_changes();
            let permitted = caller.check(&follower.key).await;
            let found = permitted
                .and_then(|()| Problem::check(&follower.key, catalog.lookup(&follower.key)));
            let response = follower.next(&found, &catalog.members(), Timestamp::now());
            if let Some(response) = response {
                return Some((response, (catalog, follower, caller)));
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
                () = caller.look_again() => {}
            }
        }
    })
}

#[cfg(test)]
mod authorization_tests;
