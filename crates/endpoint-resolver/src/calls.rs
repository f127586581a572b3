//! The calls to one server.

use std::{error::Error, iter, time::Duration};

use discovery_proto::{WatchRequest, WatchResponse, WatchedSet, discovery_client::DiscoveryClient};
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use tonic::{
    Request, Status,
    transport::{self, Channel},
};

use crate::{credentials::Credentials, resolved::Problem};

/// How long a connection may take, and then the first response of a stream: the service reports each set at once.
const PATIENCE: Duration = Duration::from_secs(10);
const CONNECT: Duration = Duration::from_secs(5);
/// How often a connection is checked, and how long the response may take: together the time after which a silent server is
/// noticed, which [`crate::Resolved::age`] names.
const PING: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(5));
/// The largest response, in bytes: some 400,000 endpoints.
const MAX_RESPONSE: usize = 64 << 20;

pub(crate) type Responses = BoxStream<'static, Result<WatchResponse, Problem>>;

/// `server` with the settings that notice when it is gone.
pub(crate) fn configured(server: transport::Endpoint) -> transport::Endpoint {
    let (interval, patience) = PING;
    server
        .connect_timeout(CONNECT)
        .http2_keep_alive_interval(interval)
        .keep_alive_timeout(patience)
        .keep_alive_while_idle(true)
}

pub(crate) async fn connect(
    server: &transport::Endpoint,
    credentials: &Credentials,
) -> Result<DiscoveryClient<Channel>, Problem> {
    let problem = |reason: String| {
        Problem::unavailable(format!("failed to connect to {}: {reason}", server.uri()))
    };
    let endpoint = credentials.connection(server).await;
    let endpoint = endpoint.map_err(|error| problem(error.to_string()))?;
    let connected = tokio::time::timeout(PATIENCE, endpoint.connect()).await;
    let connected = connected.map_err(|_| problem(format!("no response in {PATIENCE:?}")))?;
    let channel = connected.map_err(|error| problem(chain(&error)))?;
    Ok(DiscoveryClient::new(channel).max_decoding_message_size(MAX_RESPONSE))
}

/// The responses for `sets`, which end with a problem.
pub(crate) fn watch(
    mut client: DiscoveryClient<Channel>,
    credentials: Credentials,
    sets: Vec<WatchedSet>,
) -> Responses {
    let begun = async move {
        let authorization = credentials.authorization().await;
        let authorization =
            authorization.map_err(|error| Status::unauthenticated(error.to_string()))?;
        let mut request = Request::new(WatchRequest { sets });
        if let Some(authorization) = authorization {
            request
                .metadata_mut()
                .insert("authorization", authorization);
        }
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

/// The texts of an error and its sources.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text = format!("{text}: {source}");
        next = source.source();
    }
    text
}
