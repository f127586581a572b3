//! `/metrics`, `/healthz` and `/readyz`.

use std::sync::{Arc, OnceLock};

use axum::{
    Router, extract::State, http::StatusCode, http::header, response::IntoResponse, routing::get,
};
use federation_controller::{Readiness, election::LeaderState};
use parking_lot::RwLock;
use prometheus_client::{
    encoding::text::{encode_eof, encode_registry},
    registry::Registry,
};
use tokio::{net::TcpListener, sync::watch};
use tokio_util::sync::CancellationToken;

/// What the server reports.
#[derive(Default)]
pub(crate) struct ServerState {
    /// The metrics of the process.
    pub(crate) registry: Registry,
    /// The state of the leader election, if it is enabled: it decides whether a standby is ready.
    pub(crate) election: OnceLock<watch::Receiver<LeaderState>>,
    /// The controller, while it runs: it decides whether the process is ready.
    pub(crate) controller: RwLock<Option<RunningController>>,
}

/// A running controller.
pub(crate) struct RunningController {
    /// Whether it is ready.
    pub(crate) readiness: Readiness,
    /// Its metrics. They end with the controller, as the metrics of a process do.
    pub(crate) registry: Registry,
}

impl ServerState {
    /// The text of a ready process, or what it waits for.
    fn ready(&self) -> Result<String, String> {
        if let Some(controller) = &*self.controller.read() {
            let ready = controller.readiness.check();
            return ready
                .map(|()| "ok".to_owned())
                .map_err(|not_ready| not_ready.to_string());
        }
        match self
            .election
            .get()
            .map(|election| election.borrow().clone())
        {
            Some(LeaderState::Standby { leader }) => {
                Ok(format!("ok: standby, the leader is {leader}"))
            }
            Some(LeaderState::Failed(why)) => Err(why),
            Some(LeaderState::Unknown) => Err("waiting for the Lease".to_owned()),
            Some(LeaderState::Leading) | None => Err("waiting for the host".to_owned()),
        }
    }

    fn metrics(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode_registry(&mut text, &self.registry)?;
        if let Some(controller) = &*self.controller.read() {
            encode_registry(&mut text, &controller.registry)?;
        }
        encode_eof(&mut text)?;
        Ok(text)
    }
}

/// Serves `state` on `listener` until `cancel`.
pub(crate) async fn serve(
    listener: TcpListener,
    state: Arc<ServerState>,
    cancel: CancellationToken,
) -> std::io::Result<()> {
    let routes = Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .with_state(state);
    axum::serve(listener, routes)
        .with_graceful_shutdown(cancel.cancelled_owned())
        .await
}

async fn metrics(State(state): State<Arc<ServerState>>) -> impl IntoResponse {
    match state.metrics() {
        Ok(text) => {
            let format = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, format)], text).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn ready(State(state): State<Arc<ServerState>>) -> (StatusCode, String) {
    match state.ready() {
        Ok(ready) => (StatusCode::OK, format!("{ready}\n")),
        Err(waiting) => (StatusCode::SERVICE_UNAVAILABLE, format!("{waiting}\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standby_is_ready_if_it_could_become_leader() {
        let state = ServerState::default();
        assert_eq!(state.ready(), Err("waiting for the host".to_owned()));
        let (sender, election) = watch::channel(LeaderState::Unknown);
        state.election.set(election).unwrap();
        let leader = "other".to_owned();
        for (leader_state, ready, part) in [
            (LeaderState::Unknown, false, "Lease"),
            (
                LeaderState::Failed("forbidden".to_owned()),
                false,
                "forbidden",
            ),
            (LeaderState::Standby { leader }, true, "the leader is other"),
            (LeaderState::Leading, false, "waiting for the host"),
        ] {
            sender.send_replace(leader_state);
            let answer = state.ready();
            assert_eq!(answer.is_ok(), ready, "{answer:?}");
            let (Ok(text) | Err(text)) = answer;
            assert!(text.contains(part), "{text}");
        }
    }
}
