//! Follows one of several upstreams: the next one when anything fails, after pauses that grow.

use std::{sync::Arc, time::Duration};

use discovery_client::{Credentials, Server, chain, connect, pause};
use discovery_proto as proto;
use jiff::Timestamp;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status, Streaming};

use super::{
    feed::HEARTBEAT,
    intake::{self, Intake},
    metrics::UpstreamMetrics,
};
use crate::{catalog::Catalog, kept::LoadedSnapshots};

/// After how long a silence an upstream counts as lost.
const SILENCE: Duration = HEARTBEAT.saturating_mul(3);
/// How long a stream has to last for the next failure to count as the first.
const STABLE: Duration = Duration::from_secs(10);

/// Replicas of the service that feed this one.
#[derive(Debug)]
pub struct Upstreams {
    servers: Vec<Server>,
    credentials: Credentials,
}

/// The address of an upstream is none.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not of the form http[s]://HOST:PORT")]
pub struct InvalidUpstream(String);

/// Why an upstream is not followed any longer.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Connect(#[from] discovery_client::ConnectError),
    #[error("{0}")]
    Credentials(#[from] discovery_client::CredentialsError),
    #[error("{}", text_of(.0))]
    Call(#[from] Status),
    #[error("it has sent nothing for {SILENCE:?}")]
    Silence,
    #[error("it ended the stream")]
    Ended,
    #[error("{0}")]
    Intake(#[from] intake::End),
}

/// How long an upstream was followed.
struct Followed {
    failure: Failure,
    /// When it was last heard of.
    last_heard: Option<Timestamp>,
    is_complete: bool,
}

impl Upstreams {
    /// Upstreams at `servers`, one at least, for a replica with these credentials.
    ///
    /// # Errors
    /// If an address is none.
    pub fn new<'a>(
        servers: impl IntoIterator<Item = &'a str>,
        credentials: Credentials,
    ) -> Result<Self, InvalidUpstream> {
        let servers = servers.into_iter().map(|uri| {
            let server = Server::of_uri(uri);
            server.ok_or_else(|| InvalidUpstream(uri.to_owned()))
        });
        Ok(Self {
            servers: servers.collect::<Result<_, _>>()?,
            credentials,
        })
    }

    /// A catalog for [`follow`](Self::follow), with what snapshots have, which is stale. It waits for an upstream without those of
    /// the host and of all members that it names.
    #[must_use]
    pub fn catalog(loaded: LoadedSnapshots) -> Arc<Catalog> {
        let catalog = Catalog::of_upstream();
        let members = loaded.host.as_ref().and_then(|host| host.members.clone());
        catalog.load(loaded);
        if let Some(members) = members {
            catalog.update(|state| members.iter().for_each(|name| state.add_member(name)));
            catalog.members_known();
        }
        catalog
    }

    /// Feeds `catalog` until `cancel`. For members that no snapshot has, and no upstream, answers wait for `patience` at most.
    pub async fn follow(
        self,
        catalog: Arc<Catalog>,
        metrics: UpstreamMetrics,
        patience: Duration,
        cancel: CancellationToken,
    ) {
        let give_up = async {
            sleep(patience).await;
            catalog.give_up();
            std::future::pending::<()>().await;
        };
        let follow = async {
            tokio::select! {
                () = give_up => {}
                () = self.follow_all(&catalog, &metrics) => {}
            }
        };
        cancel.run_until_cancelled(follow).await;
    }

    async fn follow_all(&self, catalog: &Arc<Catalog>, metrics: &UpstreamMetrics) {
        let mut place = rand::random_range(0..self.servers.len());
        let mut failures: u32 = 0;
        loop {
            let server = &self.servers[place];
            let began = Instant::now();
            let Followed {
                failure,
                last_heard,
                is_complete,
            } = self.follow_one(server, catalog, metrics).await;
            if let Some(since) = last_heard {
                catalog.update(|state| state.upstream_lost(since));
                metrics.lost(since);
            }
            let uri = server.uri();
            if matches!(failure, Failure::Intake(intake::End::CaughtUp)) {
                tracing::info!(upstream = %uri, "it knows now what was known better here: reads it again");
                continue;
            }
            metrics.failed();
            let is_first = is_complete && began.elapsed() >= STABLE;
            failures = if is_first {
                1
            } else {
                failures.saturating_add(1)
            };
            let pause = pause(failures, self.servers.len(), rand::random());
            tracing::warn!(upstream = %uri, error = %failure, failures, ?pause, "does not follow this upstream any longer: what is known stays in use");
            sleep(pause).await;
            place = (place + 1) % self.servers.len();
        }
    }

    async fn follow_one(
        &self,
        server: &Server,
        catalog: &Arc<Catalog>,
        metrics: &UpstreamMetrics,
    ) -> Followed {
        let mut intake = Intake::default();
        let mut last_heard = None;
        let followed = async {
            let mut responses = self.responses(server).await?;
            loop {
                let response = timeout(SILENCE, responses.message()).await;
                let response = response.map_err(|_| Failure::Silence)??;
                let response = response.ok_or(Failure::Ended)?;
                let now = Timestamp::now();
                last_heard = Some(now);
                let was_complete = intake.is_complete;
                let mut received = Ok(());
                catalog.update(|state| received = intake.receive(state, response, now));
                received?;
                if intake.is_complete && !was_complete {
                    catalog.replicated();
                    metrics.connected();
                    tracing::info!(upstream = %server.uri(), "follows this upstream");
                }
            }
        };
        let followed: Result<std::convert::Infallible, Failure> = followed.await;
        let Err(failure) = followed;
        Followed {
            failure,
            last_heard,
            is_complete: intake.is_complete,
        }
    }

    async fn responses(
        &self,
        server: &Server,
    ) -> Result<Streaming<proto::ReplicateResponse>, Failure> {
        let mut client = connect(server, &self.credentials).await?;
        let request = self.credentials.request(proto::ReplicateRequest {}).await?;
        let called = timeout(SILENCE, client.replicate(request)).await;
        let responses = called.map_err(|_| Failure::Silence)??;
        Ok(responses.into_inner())
    }
}

/// What a server, or the connection to it, says.
fn text_of(status: &Status) -> String {
    let source = std::error::Error::source(status);
    let source = source.map_or_else(String::new, |source| format!(": {}", chain(source)));
    let message = reflector::printable(status.message());
    let hint = match status.code() {
        Code::Unimplemented => ": it is of an earlier version",
        _ => "",
    };
    format!("{:?}: {message}{source}{hint}", status.code())
}
