//! A client of one cluster, with the user's permissions: each request has a deadline, and each error names the cluster and
//! the object.

use std::{fmt, time::Duration};

use federation_controller::calls;
use kube::{Client, Config};
use reflector::format_error;
use serde_json::Value;

/// The longest that one request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

/// Which cluster of a federation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The cluster with the FederatedReplicaSets.
    Host,
    /// A cluster that runs replicas.
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

/// A client of one cluster.
#[derive(Clone)]
pub struct ClusterClient {
    /// Which cluster.
    pub side: Side,
    config: Config,
    client: Client,
}

/// A client can't be created.
#[derive(Debug, thiserror::Error)]
#[error("{side}: failed to create a client: {message}")]
pub struct ClientError {
    side: Side,
    message: String,
}

/// A request failed.
#[derive(Debug, thiserror::Error)]
#[error("{side}: failed to {operation}: {cause}")]
pub struct RequestError {
    side: Side,
    operation: String,
    cause: RequestFailure,
}

#[derive(Debug, thiserror::Error)]
enum RequestFailure {
    #[error("{}", describe(.0))]
    Kube(Box<kube::Error>),
    #[error("timed out after {REQUEST_TIMEOUT:?}")]
    Timeout,
    #[error("{0}")]
    InvalidResponse(&'static str),
}

/// The API server's own message, or the causes of a failed connection.
fn describe(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.code == 401 => {
            "the API server rejects the credentials (401)".to_owned()
        }
        error => federation_controller::format_api_error(error),
    }
}

impl RequestError {
    /// The HTTP status of a response.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        match &self.cause {
            RequestFailure::Kube(error) => match &**error {
                kube::Error::Api(status) => Some(status.code),
                _ => None,
            },
            RequestFailure::Timeout | RequestFailure::InvalidResponse(_) => None,
        }
    }
}

impl ClusterClient {
    /// A client of the cluster that `config` describes. Sends no request.
    pub fn new(side: Side, mut config: Config) -> Result<Self, ClientError> {
        // Progress reports each write: a hidden retry would make it untrue.
        config.default_retry = false;
        config.connect_timeout = Some(REQUEST_TIMEOUT);
        let client = Client::try_from(config.clone()).map_err(|error| ClientError {
            side,
            message: format_error(&error),
        })?;
        Ok(Self {
            side,
            config,
            client,
        })
    }

    /// How to connect to the cluster.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// The address of the API server.
    #[must_use]
    pub fn url(&self) -> String {
        let url = self.config.cluster_url.to_string();
        url.trim_end_matches('/').to_owned()
    }

    /// The namespace of the kubeconfig's context, or `default`.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.config.default_namespace
    }

    /// The client, for typed requests inside [`Self::call`].
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// Waits for `request` until the deadline. `operation` completes "failed to ...".
    pub(crate) async fn call<T>(
        &self,
        operation: impl Into<String>,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, RequestError> {
        let cause = match tokio::time::timeout(REQUEST_TIMEOUT, request).await {
            Ok(Ok(response)) => return Ok(response),
            Ok(Err(error)) => RequestFailure::Kube(Box::new(error)),
            Err(_) => RequestFailure::Timeout,
        };
        Err(RequestError {
            side: self.side,
            operation: operation.into(),
            cause,
        })
    }

    /// The error of a response that can't be used. `operation` completes "failed to ...".
    pub(crate) fn invalid_response(
        &self,
        operation: impl Into<String>,
        reason: &'static str,
    ) -> RequestError {
        RequestError {
            side: self.side,
            operation: operation.into(),
            cause: RequestFailure::InvalidResponse(reason),
        }
    }

    /// Sends one request, with a JSON body or without one.
    pub(crate) async fn send(
        &self,
        operation: impl Into<String>,
        method: &str,
        uri: &str,
        body: Option<&Value>,
    ) -> Result<Value, RequestError> {
        let content_type = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = calls::send(&self.client, method, uri, content_type, body);
        self.call(operation, request).await
    }
}
