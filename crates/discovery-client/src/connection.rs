//! Connections to servers, which notice when these are gone.

use std::{error::Error, time::Duration};

use discovery_proto::discovery_client::DiscoveryClient;
use http::Uri;
use tonic::transport::{self, Channel};

use crate::credentials::Credentials;

/// How long a TCP connection may take, and then all of it, with TLS.
const CONNECT: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a connection is checked, and how long the response may take: together the time after which a silent server is
/// noticed.
const PING: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(5));
/// The largest response, in bytes: some 400,000 endpoints.
const MAX_RESPONSE: usize = 64 << 20;

/// A server can't be reached.
#[derive(Debug, thiserror::Error)]
#[error("failed to connect to {server}: {reason}")]
pub struct ConnectError {
    server: String,
    reason: String,
}

/// A server, with the settings that notice within 15 seconds when it is gone.
#[derive(Clone, Debug)]
pub struct Server {
    pub(crate) endpoint: transport::Endpoint,
    /// Whether its TLS is up to the program, unless there are files.
    pub(crate) has_own_tls: bool,
}

impl Server {
    /// The server `http://HOST:PORT` or `https://HOST:PORT`. None for a text that is no URI with a scheme.
    #[must_use]
    pub fn of_uri(uri: &str) -> Option<Self> {
        let endpoint = transport::Endpoint::from_shared(uri.to_owned()).ok()?;
        endpoint.uri().scheme()?;
        Some(Self {
            has_own_tls: false,
            ..Self::of_endpoint(endpoint)
        })
    }

    /// A server with settings of its own, such as TLS.
    #[must_use]
    pub fn of_endpoint(endpoint: transport::Endpoint) -> Self {
        let (interval, patience) = PING;
        let endpoint = endpoint
            .connect_timeout(CONNECT)
            .http2_keep_alive_interval(interval)
            .keep_alive_timeout(patience)
            .keep_alive_while_idle(true);
        Self {
            endpoint,
            has_own_tls: true,
        }
    }

    /// Its address.
    #[must_use]
    pub fn uri(&self) -> &Uri {
        self.endpoint.uri()
    }

    /// Whether it is up to the credentials to configure TLS.
    pub(crate) fn needs_tls(&self) -> bool {
        !self.has_own_tls && self.uri().scheme_str() == Some("https")
    }
}

/// Connects to `server`, with the files of `credentials` as they are now.
///
/// # Errors
/// If a file can't be used, or the server is not there within 10 seconds.
pub async fn connect(
    server: &Server,
    credentials: &Credentials,
) -> Result<DiscoveryClient<Channel>, ConnectError> {
    let failed = |reason: String| ConnectError {
        server: server.uri().to_string(),
        reason,
    };
    let endpoint = credentials.connection(server).await;
    let endpoint = endpoint.map_err(|error| failed(error.to_string()))?;
    let connected = tokio::time::timeout(PATIENCE, endpoint.connect()).await;
    let connected = connected.map_err(|_| failed(format!("no response in {PATIENCE:?}")))?;
    let channel = connected.map_err(|error| failed(chain(&error)))?;
    Ok(DiscoveryClient::new(channel).max_decoding_message_size(MAX_RESPONSE))
}

/// The texts of an error and its sources.
#[must_use]
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text = format!("{text}: {source}");
        next = source.source();
    }
    text
}
