//! Reads a member cluster's version: when it becomes healthy, and every few minutes.
//!
//! ```text
//! healthy --> GET /version --> ClusterStore
//! ```

use std::time::Duration;

use http::Request;
use kube::{Client, client::Body};
use reflector::{Backoff, ClientReceiver, Limits, partial::printable_text, read_response};
use serde::Deserialize;
use tokio::{sync::Notify, time::timeout};

use crate::{cluster_store::ClusterStore, health::Health, member_view::MemberView};

/// How often a member cluster's version is read.
#[derive(Clone, Debug)]
pub struct ClusterVersionSettings {
    /// The time between two reads, less up to a fifth. Default 5 min.
    pub period: Duration,
    /// The time after a failed read. Default 30 s.
    pub retry: Duration,
    /// The time within which a response must be complete. Default 30 s.
    pub timeout: Duration,
}

impl Default for ClusterVersionSettings {
    fn default() -> Self {
        Self {
            period: Duration::from_secs(300),
            retry: Duration::from_secs(30),
            timeout: Duration::from_secs(30),
        }
    }
}

/// Reads the version while the member is healthy, without an end; at once when `healthy` is notified.
pub(crate) async fn run(
    mut clients: ClientReceiver,
    settings: ClusterVersionSettings,
    store: &ClusterStore,
    healthy: &Notify,
    seed: u64,
) {
    let mut backoff = Backoff::new(settings.period, settings.period, seed);
    loop {
        let mut pause = settings.period;
        if store.health() == Health::Healthy {
            match version(&clients.current(), settings.timeout).await {
                Some(version) => store.set_version(version),
                None => pause = settings.retry,
            }
        }
        let _notified = timeout(backoff.jitter(pause, 0.2), healthy.notified()).await;
    }
}

/// The API server's version, unless it does not report one.
async fn version(client: &Client, within: Duration) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Version {
        #[serde(deserialize_with = "printable_text")]
        git_version: String,
    }
    let request = Request::get("/version")
        .body(Body::empty())
        .expect("a constant path is a request");
    let response = async { read_response(client.send(request).await?, Limits::default()).await };
    let bytes = timeout(within, response).await.ok()?.ok()?;
    Some(serde_json::from_slice::<Version>(&bytes).ok()?.git_version)
}

#[cfg(test)]
#[path = "cluster_version_tests.rs"]
mod tests;
