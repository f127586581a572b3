//! xDS over ADS, for gRPC's own `xds:///` resolver and for Envoy: each port of an EndpointSet is a cluster with its endpoints.
//!
//! ```text
//! request --> Client (pure): what it wants and has --> response
//! change of a set ------^
//! ```

mod client;
mod endpoints;
mod name;
mod protocol;
mod resource;
mod rights;
mod stream;
mod subscription;
mod world;

use std::{pin::Pin, sync::Arc};

use futures::{Stream, StreamExt};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};
use xds_proto::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
    aggregated_discovery_service_server::{
        AggregatedDiscoveryService, AggregatedDiscoveryServiceServer,
    },
};

use self::{
    protocol::{Delta, Protocol, StateOfTheWorld},
    stream::responses,
};
use crate::{peer::Peer, service::Service};

type Responses<R> = Pin<Box<dyn Stream<Item = Result<R, Status>> + Send>>;

/// The service.
pub(crate) type XdsServer = AggregatedDiscoveryServiceServer<Xds>;

/// The service that answers until `cancel`.
pub(crate) fn server(service: Service, cancel: CancellationToken) -> XdsServer {
    AggregatedDiscoveryServiceServer::new(Xds { service, cancel })
}

#[derive(Debug)]
pub(crate) struct Xds {
    service: Service,
    cancel: CancellationToken,
}

impl Xds {
    async fn respond<P: Protocol + 'static>(
        &self,
        request: Request<Streaming<P::Request>>,
    ) -> Result<Response<Responses<P::Response>>, Status> {
        let caller = self.service.caller(&request).await?;
        let share = self.service.stream(&Peer::of(&request))?;
        let following = self.service.metrics.following();
        let responses = responses::<P>(
            (
                Arc::clone(&self.service.catalog),
                self.service.metrics.clone(),
            ),
            caller,
            request.into_inner().boxed(),
            self.cancel.clone(),
        );
        let responses = responses.inspect(move |_| {
            let _counted_while_they_live = (&following, &share);
        });
        Ok(Response::new(responses.boxed()))
    }
}

#[tonic::async_trait]
impl AggregatedDiscoveryService for Xds {
    type StreamAggregatedResourcesStream = Responses<DiscoveryResponse>;
    type DeltaAggregatedResourcesStream = Responses<DeltaDiscoveryResponse>;

    async fn stream_aggregated_resources(
        &self,
        request: Request<Streaming<DiscoveryRequest>>,
    ) -> Result<Response<Self::StreamAggregatedResourcesStream>, Status> {
        self.respond::<StateOfTheWorld>(request).await
    }

    async fn delta_aggregated_resources(
        &self,
        request: Request<Streaming<DeltaDiscoveryRequest>>,
    ) -> Result<Response<Self::DeltaAggregatedResourcesStream>, Status> {
        self.respond::<Delta>(request).await
    }
}
