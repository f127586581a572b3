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
use crate::{catalog::Catalog, metrics::DiscoveryMetrics};

type Responses<R> = Pin<Box<dyn Stream<Item = Result<R, Status>> + Send>>;

/// The service.
pub(crate) type XdsServer = AggregatedDiscoveryServiceServer<Xds>;

/// The service that answers from `catalog` until `cancel`.
pub(crate) fn server(
    catalog: Arc<Catalog>,
    metrics: DiscoveryMetrics,
    cancel: CancellationToken,
) -> XdsServer {
    AggregatedDiscoveryServiceServer::new(Xds {
        catalog,
        metrics,
        cancel,
    })
}

#[derive(Debug)]
pub(crate) struct Xds {
    catalog: Arc<Catalog>,
    metrics: DiscoveryMetrics,
    cancel: CancellationToken,
}

impl Xds {
    fn respond<P: Protocol + 'static>(
        &self,
        requests: Streaming<P::Request>,
    ) -> Response<Responses<P::Response>> {
        let following = self.metrics.following();
        let responses = responses::<P>(
            Arc::clone(&self.catalog),
            self.metrics.clone(),
            requests.boxed(),
            self.cancel.clone(),
        );
        let responses = responses.inspect(move |_| {
            let _counted_while_it_lives = &following;
        });
        Response::new(responses.boxed())
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
        Ok(self.respond::<StateOfTheWorld>(request.into_inner()))
    }

    async fn delta_aggregated_resources(
        &self,
        request: Request<Streaming<DeltaDiscoveryRequest>>,
    ) -> Result<Response<Self::DeltaAggregatedResourcesStream>, Status> {
        Ok(self.respond::<Delta>(request.into_inner()))
    }
}
