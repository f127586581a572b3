//! Connections to servers.

use std::{error::Error, time::Duration};

use discovery_proto::discovery_client::DiscoveryClient;
use tonic::transport::Channel;

use crate::{credentials::Credentials, server::Server};

/// How long a connection may take, with TLS.
const PATIENCE: Duration = Duration::from_secs(10);
/// The largest response, in bytes: some 400,000 endpoints.
const MAX_RESPONSE: usize = 64 << 20;

/// A server can't be reached.
#[derive(Debug, thiserror::Error)]
#[error("failed to connect to {server}: {reason}")]
pub struct ConnectError {
    server: String,
    reason: String,
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
