//! `/metrics`, `/healthz` and `/readyz`, without authentication.
//!
//! ```text
//! own thread -> accept -> one request for each connection, within limits -> a fixed text, or metrics
//! ```
//!
//! The thread has its own runtime, so that it also responds while the other one hangs. The responses name no cluster and
//! quote no error; the log does.

use std::{
    collections::{BTreeMap, VecDeque},
    convert::Infallible,
    io,
    net::TcpListener,
    sync::{Arc, OnceLock},
    thread::{self, JoinHandle},
    time::Duration,
};

use discovery::{Catalog, Waiting};
use federation_controller::{
    NotReady, Readiness, Running,
    election::{ElectionMetrics, LeaderState},
    watchdog::{Hung, Watchdog, Watched},
};
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::RwLock;
use prometheus_client::{
    encoding::text::{encode_eof, encode_registry},
    registry::Registry,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
    task::{AbortHandle, JoinSet},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::metrics_text;

/// How long a client may take to send its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a connection may last: as long as Prometheus waits for metrics.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of a request. Bodies are not read.
const MAX_REQUEST_BYTES: usize = 16 << 10;
/// The most connections at a time. A new one ends the oldest, so that idle clients do not block the kubelet's probes.
const MAX_CONNECTIONS: usize = 64;
/// The pause after a failure to accept a connection: others have to end first.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How often a runtime reports that it makes progress.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// Reports that the runtime in which this is spawned makes progress. Never ends.
pub(crate) async fn heartbeat(runtime: Watched) {
    loop {
        runtime.beat();
        sleep(HEARTBEAT).await;
    }
}

/// What the server reports.
#[derive(Default)]
pub(crate) struct ServerState {
    /// The metrics of the process.
    pub(crate) registry: Registry,
    /// The parts of the process that outlive a controller.
    pub(crate) watchdog: Watchdog,
    /// The state of the leader election, if it is enabled: it decides whether a standby is ready.
    pub(crate) election: OnceLock<watch::Receiver<LeaderState>>,
    /// The controller, while it runs: it decides whether the process is ready.
    pub(crate) controller: RwLock<Option<RunningController>>,
    /// What it reports of each cluster with a controller of its own, once these are known: the process is ready then, whatever
    /// becomes of single clusters.
    clusters: RwLock<Option<BTreeMap<String, Arc<ServerState>>>>,
    /// The catalog of endpoints, in a process that answers from one: it is ready once that is complete.
    catalog: Option<Arc<Catalog>>,
    /// The metrics of the election.
    pub(crate) election_metrics: ElectionMetrics,
}

/// A running controller.
pub(crate) struct RunningController {
    /// Whether it is ready.
    pub(crate) readiness: Readiness,
    /// Whether a part of it hangs.
    pub(crate) watchdog: Watchdog,
    /// Its metrics. They end with the controller, as the metrics of a process do.
    pub(crate) registry: Registry,
}

impl ServerState {
    /// The state of a process, or of a cluster, whose terms last this long. Its metrics are registered with `registry`.
    pub(crate) fn new(mut registry: Registry, longest_term: Duration) -> Self {
        Self {
            election_metrics: ElectionMetrics::register(&mut registry),
            registry,
            watchdog: Watchdog::new(Watchdog::BOUND.max(2 * longest_term)),
            ..Self::default()
        }
    }

    /// The state of a process that answers from `catalog`. Its metrics are in `registry`.
    pub(crate) fn of_catalog(registry: Registry, catalog: Arc<Catalog>) -> Self {
        Self {
            registry,
            watchdog: Watchdog::new(Watchdog::BOUND),
            catalog: Some(catalog),
            ..Self::default()
        }
    }

    /// The state of a process whose terms are those of its clusters.
    pub(crate) fn of_clusters(longest_term: Duration) -> Self {
        Self {
            watchdog: Watchdog::new(Watchdog::BOUND.max(2 * longest_term)),
            ..Self::default()
        }
    }

    /// The process is ready: it knows its clusters.
    pub(crate) fn serve_clusters(&self) {
        self.clusters.write().get_or_insert_default();
    }

    /// Serves the state and the metrics of a cluster until it is [removed](Self::remove_cluster).
    pub(crate) fn add_cluster(&self, name: &str, state: Arc<Self>) {
        let mut clusters = self.clusters.write();
        let clusters = clusters.get_or_insert_default();
        clusters.insert(name.to_owned(), state);
    }

    /// Serves nothing of a cluster any more.
    pub(crate) fn remove_cluster(&self, name: &str) {
        if let Some(clusters) = &mut *self.clusters.write() {
            clusters.remove(name);
        }
    }

    /// Serves the state and the metrics of a controller until it has ended.
    pub(crate) async fn serve_controller(&self, running: Running, registry: Registry) {
        tracing::info!("controller started");
        *self.controller.write() = Some(RunningController {
            readiness: running.readiness(),
            watchdog: running.watchdog(),
            registry,
        });
        running.joined().await;
        *self.controller.write() = None;
    }
}

/// Why the process is not ready.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum ProcessNotReady {
    /// Its controller is not ready.
    #[error(transparent)]
    Controller(#[from] NotReady),
    /// The Lease can't be read or written.
    #[error("cannot read or write the Lease: see the log")]
    Election,
    /// The catalog is not complete.
    #[error(transparent)]
    Catalog(#[from] Waiting),
    /// The leader is not known yet.
    #[error("waiting for the Lease")]
    Lease,
    /// Its controller has not started yet.
    #[error("waiting for the host")]
    Host,
}

impl ServerState {
    fn respond(&self, method: &Method, path: &str) -> Response<String> {
        if !matches!(*method, Method::GET | Method::HEAD) {
            return text(StatusCode::METHOD_NOT_ALLOWED, "method not allowed");
        }
        match path {
            "/metrics" => match self.metrics() {
                Ok(metrics) => {
                    let format = "application/openmetrics-text; version=1.0.0; charset=utf-8";
                    response(StatusCode::OK, format, metrics)
                }
                Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
            },
            "/healthz" => match self.healthy() {
                Ok(()) => text(StatusCode::OK, "ok"),
                Err(hung) => text(StatusCode::INTERNAL_SERVER_ERROR, &hung.to_string()),
            },
            "/readyz" => match self.ready() {
                Ok(ready) => text(StatusCode::OK, ready),
                Err(reason) => text(StatusCode::SERVICE_UNAVAILABLE, &reason.to_string()),
            },
            _ => text(StatusCode::NOT_FOUND, "not found"),
        }
    }

    /// Fails with the part that hangs, if one does.
    fn healthy(&self) -> Result<(), Hung> {
        let controller = self.controller.read();
        let of_controller = controller.as_ref().map(|running| &running.watchdog);
        let mut watchdogs = of_controller.into_iter().chain([&self.watchdog]);
        let Some(hung) = watchdogs.find_map(Watchdog::hung) else {
            return self
                .each_cluster()
                .iter()
                .try_for_each(|cluster| cluster.healthy());
        };
        tracing::error!(work = hung.work, "{hung}");
        Err(hung)
    }

    /// The text of a ready process.
    fn ready(&self) -> Result<&'static str, ProcessNotReady> {
        if self.clusters.read().is_some() {
            return Ok("ok");
        }
        if let Some(catalog) = &self.catalog {
            catalog.ready()?;
            return Ok("ok");
        }
        if let Some(controller) = &*self.controller.read() {
            controller.readiness.check()?;
            return Ok("ok");
        }
        match self
            .election
            .get()
            .map(|election| election.borrow())
            .as_deref()
        {
            Some(LeaderState::Standby { .. }) => Ok("ok: standby"),
            Some(LeaderState::Failed(_)) => Err(ProcessNotReady::Election),
            Some(LeaderState::Unknown) => Err(ProcessNotReady::Lease),
            Some(LeaderState::Leading) | None => Err(ProcessNotReady::Host),
        }
    }

    fn metrics(&self) -> Result<String, std::fmt::Error> {
        let of_clusters = self.each_cluster();
        let states = [self]
            .into_iter()
            .chain(of_clusters.iter().map(|state| &**state));
        let texts = states
            .map(Self::own_metrics)
            .collect::<Result<Vec<_>, _>>()?;
        let mut text = metrics_text::merge(&texts);
        encode_eof(&mut text)?;
        Ok(text)
    }

    /// The metrics without those of clusters.
    fn own_metrics(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode_registry(&mut text, &self.registry)?;
        if let Some(controller) = &*self.controller.read() {
            encode_registry(&mut text, &controller.registry)?;
        }
        Ok(text)
    }

    fn each_cluster(&self) -> Vec<Arc<Self>> {
        let clusters = self.clusters.read();
        clusters
            .iter()
            .flat_map(BTreeMap::values)
            .cloned()
            .collect()
    }
}

fn text(status: StatusCode, text: &str) -> Response<String> {
    response(status, "text/plain; charset=utf-8", format!("{text}\n"))
}

fn response(status: StatusCode, format: &'static str, body: String) -> Response<String> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(format));
    response
}

/// Serves `state` on `listener` until `cancel`.
pub(crate) fn serve(
    listener: TcpListener,
    state: Arc<ServerState>,
    cancel: CancellationToken,
) -> io::Result<JoinHandle<()>> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let serving = move || {
        runtime.block_on(async {
            match tokio::net::TcpListener::from_std(listener) {
                Ok(listener) => accept(&listener, &state, &cancel).await,
                Err(error) => tracing::error!(%error, "failed to serve /healthz"),
            }
        });
    };
    thread::Builder::new()
        .name("http".to_owned())
        .spawn(serving)
}

async fn accept(
    listener: &tokio::net::TcpListener,
    state: &Arc<ServerState>,
    cancel: &CancellationToken,
) {
    let mut open = JoinSet::new();
    let mut by_age: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = cancel.cancelled() => return,
            Some(_) = open.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        by_age.retain(|connection| !connection.is_finished());
        if by_age.len() >= MAX_CONNECTIONS
            && let Some(oldest) = by_age.pop_front()
        {
            oldest.abort();
        }
        by_age.push_back(open.spawn(answer(stream, Arc::clone(state))));
    }
}

/// Answers one request, if it comes in time.
async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin, state: Arc<ServerState>) {
    let respond = service_fn(|request: Request<hyper::body::Incoming>| {
        let response = state.respond(request.method(), request.uri().path());
        async { Ok::<_, Infallible>(response) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIMEOUT)
        .max_buf_size(MAX_REQUEST_BYTES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), respond);
    match timeout(CONNECTION_TIMEOUT, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a connection ended early"),
        Err(_) => tracing::debug!("a connection took too long"),
    }
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
