//! A client of one cluster, with the user's permissions: each request has a deadline, and each error names the cluster and
//! the object.

use std::{fmt, time::Duration};

use controller_base::calls;
use fedrs_api::ClusterType;
use kube::{Api, Client, Config, Resource, api::ListParams};
use reflector::format_error;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The longest that one request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

/// A client of one cluster.
#[derive(Clone)]
pub struct ClusterClient {
    /// Which of the clusters it is.
    pub cluster_type: ClusterType,
    config: Config,
    client: Client,
}

/// A request failed, or a client could not be created for it.
#[derive(Debug, thiserror::Error)]
#[error("{cluster}: failed to {operation}: {cause}")]
pub struct RequestError {
    cluster: ClusterType,
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
        _ => controller_base::error_text::format_api_error(error),
    };
    (message, code)
}

impl RequestError {
    /// The HTTP status of a response.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        self.code
    }

    /// Whether the same request may succeed in a while: the API server did not answer, or was too busy.
    pub(crate) fn is_temporary(&self) -> bool {
        self.code.is_none_or(|code| code == 429 || code >= 500)
    }
}

/// The two clusters of a join.
pub(crate) struct Clusters<'a> {
    pub(crate) host: &'a ClusterClient,
    pub(crate) member: &'a ClusterClient,
}

impl Clusters<'_> {
    /// The client of this cluster.
    pub(crate) fn client(&self, cluster: ClusterType) -> &ClusterClient {
        match cluster {
            ClusterType::Host => self.host,
            ClusterType::Member => self.member,
        }
    }
}

impl ClusterClient {
    /// A client of the cluster that `config` describes. Sends no request.
    pub fn new(cluster_type: ClusterType, mut config: Config) -> Result<Self, RequestError> {
        // Progress reports each write: a hidden retry would make it untrue.
        config.default_retry = false;
        config.connect_timeout = Some(REQUEST_TIMEOUT);
        let client = Client::try_from(config.clone()).map_err(|error| RequestError {
            cluster: cluster_type,
            operation: "create a client".to_owned(),
            cause: format_error(&error),
            code: None,
        })?;
        Ok(Self {
            cluster_type,
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
            cluster: self.cluster_type,
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
            cluster: self.cluster_type,
            operation: operation.to_owned(),
            cause: reason.to_owned(),
            code: None,
        }
    }

    /// Sends one request, with a JSON body or without one. A list is a JSON patch, another patch a merge patch.
    pub(crate) async fn send(
        &self,
        operation: impl Into<String>,
        method: &str,
        uri: &str,
        body: Option<&Value>,
    ) -> Result<Value, RequestError> {
        let content_type = match method {
            "PATCH" if body.is_some_and(Value::is_array) => "application/json-patch+json",
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = calls::send(&self.client, method, uri, content_type, body);
        self.call(operation, request).await
    }
}
