//! A client of one cluster, with the user's permissions: each request has a deadline, and each error names the cluster and
//! the object.

use std::{fmt, time::Duration};

use federation_controller::calls;
use kube::{Api, Client, Config, Resource, api::ListParams};
use reflector::format_error;
use serde::de::DeserializeOwned;
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
        f.pad(match self {
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

/// A request failed, or a client could not be created for it.
#[derive(Debug, thiserror::Error)]
#[error("{side}: failed to {operation}: {cause}")]
pub struct RequestError {
    side: Side,
    operation: String,
    cause: String,
    /// The HTTP status of a response.
    code: Option<u16>,
}

/// The API server's own message and the HTTP status, or the causes of a failed connection.
fn describe(error: &kube::Error) -> (String, Option<u16>) {
    let code = match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    };
    let message = match code {
        Some(401) => "the API server rejects the credentials (401)".to_owned(),
        _ => federation_controller::format_api_error(error),
    };
    (message, code)
}

impl RequestError {
    /// The HTTP status of a response.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        self.code
    }
}

/// The two clusters of a join.
pub(crate) struct Clusters<'a> {
    pub(crate) host: &'a ClusterClient,
    pub(crate) member: &'a ClusterClient,
}

impl Clusters<'_> {
    /// The cluster of this side.
    pub(crate) fn on(&self, side: Side) -> &ClusterClient {
        match side {
            Side::Host => self.host,
            Side::Member => self.member,
        }
    }
}

impl ClusterClient {
    /// A client of the cluster that `config` describes. Sends no request.
    pub fn new(side: Side, mut config: Config) -> Result<Self, RequestError> {
        // Progress reports each write: a hidden retry would make it untrue.
        config.default_retry = false;
        config.connect_timeout = Some(REQUEST_TIMEOUT);
        let client = Client::try_from(config.clone()).map_err(|error| RequestError {
            side,
            operation: "create a client".to_owned(),
            cause: format_error(&error),
            code: None,
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
        let (cause, code) = match tokio::time::timeout(REQUEST_TIMEOUT, Box::pin(request)).await {
            Ok(Ok(response)) => return Ok(response),
            Ok(Err(error)) => describe(&error),
            Err(_) => (format!("timed out after {REQUEST_TIMEOUT:?}"), None),
        };
        Err(RequestError {
            side: self.side,
            operation: operation.into(),
            cause,
            code,
        })
    }

    /// Lists all objects of a kind that match a label selector; an empty one matches all.
    pub(crate) async fn list<K>(&self, labels: &str) -> Result<Vec<K>, RequestError>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + fmt::Debug,
    {
        let objects: Api<K> = Api::all(self.client());
        let selected = ListParams::default().labels(labels);
        let operation = format!("list {}", K::plural(&()));
        let list = self.call(operation, objects.list(&selected)).await?;
        Ok(list.items)
    }

    /// The error of a response that can't be used. `operation` completes "failed to ...".
    pub(crate) fn invalid_response(&self, operation: &str, reason: &str) -> RequestError {
        RequestError {
            side: self.side,
            operation: operation.to_owned(),
            cause: reason.to_owned(),
            code: None,
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
