//! `/metrics`, `/healthz` and `/readyz`.

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
};

use anyhow::Context;
use axum::{
    Router, extract::State, http::StatusCode, http::header, response::IntoResponse, routing::get,
};
use federation_controller::Readiness;
use prometheus_client::{encoding::text::encode, registry::Registry};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// A server that is bound and not yet running.
pub(crate) struct Server {
    listener: TcpListener,
    shared: Shared,
}

#[derive(Clone)]
struct Shared {
    registry: Arc<Registry>,
    readiness: ReadinessSlot,
}

/// Where the controller's readiness goes once it has started.
#[derive(Clone, Default)]
pub(crate) struct ReadinessSlot(Arc<OnceLock<Readiness>>);

impl ReadinessSlot {
    /// The controller has started: it says from now on whether it is ready.
    pub(crate) fn set(&self, readiness: Readiness) {
        // A controller starts once.
        let _ = self.0.set(readiness);
    }
}

impl Server {
    /// Binds `address`, so that a port in use is told before anything starts.
    pub(crate) async fn bind(address: &str, registry: Arc<Registry>) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("can't listen on {address}"))?;
        let shared = Shared {
            registry,
            readiness: ReadinessSlot::default(),
        };
        Ok(Self { listener, shared })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.listener
            .local_addr()
            .expect("a bound socket has an address")
    }

    /// Where to put the controller's readiness.
    pub(crate) fn readiness(&self) -> ReadinessSlot {
        self.shared.readiness.clone()
    }

    /// Serves until `cancel`.
    pub(crate) async fn run(self, cancel: CancellationToken) -> std::io::Result<()> {
        let routes = Router::new()
            .route("/metrics", get(metrics))
            .route("/healthz", get(|| async { "ok\n" }))
            .route("/readyz", get(ready))
            .with_state(self.shared);
        axum::serve(self.listener, routes)
            .with_graceful_shutdown(cancel.cancelled_owned())
            .await
    }
}

async fn metrics(State(shared): State<Shared>) -> impl IntoResponse {
    let mut text = String::new();
    match encode(&mut text, &shared.registry) {
        Ok(()) => {
            let format = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, format)], text).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn ready(State(shared): State<Shared>) -> (StatusCode, String) {
    let ready = match shared.readiness.0.get() {
        Some(readiness) => readiness.check(),
        None => Err("waiting for the host".to_owned()),
    };
    match ready {
        Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
        Err(waiting) => (StatusCode::SERVICE_UNAVAILABLE, format!("{waiting}\n")),
    }
}
