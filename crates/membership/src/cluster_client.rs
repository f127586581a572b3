//! One cluster as a command reaches it: with the user's own rights, a deadline for each call, and errors that name
//! the cluster and the object.

use std::{fmt, time::Duration};

use anyhow::anyhow;
use federation_controller::calls;
use kube::{Client, Config};
use reflector::format_error;
use serde_json::Value;

/// The longest that one call may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(15);

/// Which cluster of a federation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It holds the FederatedReplicaSets.
    Host,
    /// Replicas run in it.
    Member,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "host",
            Self::Member => "member",
        })
    }
}

/// A cluster.
#[derive(Clone)]
pub struct ClusterClient {
    /// Which one.
    pub side: Side,
    /// How it is reached.
    pub config: Config,
    client: Client,
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[error("{side}: failed to {doing}: {cause}")]
pub struct RequestError {
    side: Side,
    doing: String,
    cause: Cause,
}

#[derive(Debug, thiserror::Error)]
enum Cause {
    #[error("{}", words(.0))]
    Kube(Box<kube::Error>),
    #[error("no answer within {CALL_TIMEOUT:?}")]
    Deadline,
    #[error("{0}")]
    Answer(&'static str),
}

/// The API server's own message, or the causes of a failed connection.
fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.code == 401 => {
            "the API server does not accept the credentials (401)".to_owned()
        }
        error => federation_controller::words(error),
    }
}

impl RequestError {
    /// The HTTP status of a refusal.
    pub fn code(&self) -> Option<u16> {
        match &self.cause {
            Cause::Kube(error) => match &**error {
                kube::Error::Api(status) => Some(status.code),
                _ => None,
            },
            Cause::Deadline | Cause::Answer(_) => None,
        }
    }
}

impl ClusterClient {
    /// A cluster that `config` reaches. Nothing is asked yet.
    pub fn new(side: Side, mut config: Config) -> anyhow::Result<Self> {
        // What was asked for is told as it went, not asked for again.
        config.default_retry = false;
        config.connect_timeout = Some(CALL_TIMEOUT);
        let client = Client::try_from(config.clone())
            .map_err(|error| anyhow!("{side}: {}", format_error(&error)))?;
        Ok(Self {
            side,
            config,
            client,
        })
    }

    /// Where its API server is.
    pub fn url(&self) -> String {
        let url = self.config.cluster_url.to_string();
        url.trim_end_matches('/').to_owned()
    }

    /// The client, for typed calls: wrap them in [`ClusterClient::call`].
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Waits for `call` within the deadline. `doing` completes "failed to ...".
    pub async fn call<T>(
        &self,
        doing: impl Into<String>,
        call: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, RequestError> {
        let cause = match tokio::time::timeout(CALL_TIMEOUT, call).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => Cause::Kube(Box::new(error)),
            Err(_) => Cause::Deadline,
        };
        Err(RequestError {
            side: self.side,
            doing: doing.into(),
            cause,
        })
    }

    /// An answer that can't be used. `doing` completes "failed to ...".
    pub fn failure(&self, doing: &str, cause: &'static str) -> RequestError {
        RequestError {
            side: self.side,
            doing: doing.to_owned(),
            cause: Cause::Answer(cause),
        }
    }

    /// One request with a JSON body, or none.
    pub async fn send(
        &self,
        doing: impl Into<String>,
        method: &str,
        uri: &str,
        body: Option<&Value>,
    ) -> Result<Value, RequestError> {
        let content_type = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = calls::send(&self.client, method, uri, content_type, body);
        self.call(doing, request).await
    }
}
