//! The calls to one server.

use std::{error::Error, iter, time::Duration};

use discovery_client::{Credentials, Server, chain};
use discovery_proto::{WatchRequest, WatchResponse, WatchedSet, discovery_client::DiscoveryClient};
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use tonic::{Status, transport::Channel};

use crate::resolved::Problem;

/// How long the first response of a stream may take: the service reports each set at once.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) type Responses = BoxStream<'static, Result<WatchResponse, Problem>>;

pub(crate) async fn connect(
    server: &Server,
    credentials: &Credentials,
) -> Result<DiscoveryClient<Channel>, Problem> {
    let connected = discovery_client::connect(server, credentials).await;
    connected.map_err(|error| Problem::unavailable(error.to_string()))
}

/// The responses for `sets`, which end with a problem.
pub(crate) fn watch(
    mut client: DiscoveryClient<Channel>,
    credentials: Credentials,
    sets: Vec<WatchedSet>,
) -> Responses {
    let begun = async move {
        let request = credentials.request(WatchRequest { sets }).await;
        let request = request.map_err(|error| Status::unauthenticated(error.to_string()))?;
        let responses = client.watch(request).await?.into_inner();
        Ok(responses.into_future().await)
    };
    let responses = async {
        match tokio::time::timeout(PATIENCE, begun).await {
            Ok(Ok((first, rest))) => stream::iter(first).chain(rest).boxed(),
            Ok(Err(status)) => failed(status),
            Err(_) => failed(Status::unavailable(format!("no response in {PATIENCE:?}"))),
        }
    };
    let end = iter::once_with(|| Err(Status::unavailable("the server ended the stream")));
    let responses = stream::once(responses).flatten().chain(stream::iter(end));
    responses
        .map(|response| response.map_err(|status| problem(&status)))
        .boxed()
}

type Statuses = BoxStream<'static, Result<WatchResponse, Status>>;

fn failed(status: Status) -> Statuses {
    stream::iter([Err(status)]).boxed()
}

fn problem(status: &Status) -> Problem {
    let mut message = format!("the stream of changes broke: {}", status.message());
    if let Some(source) = status.source() {
        message = format!("{message}: {}", chain(source));
    }
    Problem::unavailable(message)
}
