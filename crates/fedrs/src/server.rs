//! `/metrics`, `/healthz` and `/readyz`.

use std::{net::SocketAddr, sync::Arc};

use anyhow::Context;
use axum::{
    Router, extract::State, http::StatusCode, http::header, response::IntoResponse, routing::get,
};
use federation_controller::{Readiness, election::Standing};
use parking_lot::RwLock;
use prometheus_client::{
    encoding::text::{encode_eof, encode_registry},
    registry::Registry,
};
use tokio::{net::TcpListener, sync::watch};
use tokio_util::sync::CancellationToken;

/// A server that is bound and not yet running.
pub(crate) struct Server {
    listener: TcpListener,
    shown: Shown,
}

/// What the server shows. Cheap to clone; clones show the same.
#[derive(Clone)]
pub(crate) struct Shown(Arc<Current>);

struct Current {
    /// The metrics of the process.
    registry: Registry,
    now: RwLock<Now>,
}

#[derive(Default)]
struct Now {
    /// Where the process stands in the leader election, if it takes part in one.
    standing: Option<watch::Receiver<Standing>>,
    /// The controller, while it works.
    work: Option<Work>,
}

/// A controller that works.
struct Work {
    readiness: Readiness,
    /// Its metrics: they end with it, as they would with a process.
    registry: Registry,
}

impl Shown {
    /// From now on `standing` tells whether a process without a controller is ready to take over.
    pub(crate) fn follow(&self, standing: watch::Receiver<Standing>) {
        self.0.now.write().standing = Some(standing);
    }

    /// A controller has started: it says from now on whether it is ready.
    pub(crate) fn works(&self, readiness: Readiness, registry: Registry) {
        self.0.now.write().work = Some(Work {
            readiness,
            registry,
        });
    }

    /// The controller has ended.
    pub(crate) fn rests(&self) {
        self.0.now.write().work = None;
    }

    /// `Ok` with what to say, else what is being waited for.
    fn ready(&self) -> Result<String, String> {
        let now = self.0.now.read();
        if let Some(work) = &now.work {
            return work.readiness.check().map(|()| "ok".to_owned());
        }
        let standing = now.standing.as_ref().map(|it| it.borrow().clone());
        match standing {
            Some(Standing::Standby { leader }) => Ok(format!("ok: standby, {leader} leads")),
            Some(Standing::Hindered(why)) => Err(why),
            Some(Standing::Unknown) => Err("the Lease has not been looked at yet".to_owned()),
            Some(Standing::Leading) | None => Err("waiting for the host".to_owned()),
        }
    }

    fn metrics(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode_registry(&mut text, &self.0.registry)?;
        if let Some(work) = &self.0.now.read().work {
            encode_registry(&mut text, &work.registry)?;
        }
        encode_eof(&mut text)?;
        Ok(text)
    }
}

impl Server {
    /// Binds `address`, so that a port in use is told before anything starts. `registry` has the metrics of the process.
    pub(crate) async fn bind(address: &str, registry: Registry) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("can't listen on {address}"))?;
        let shown = Shown(Arc::new(Current {
            registry,
            now: RwLock::default(),
        }));
        Ok(Self { listener, shown })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.listener
            .local_addr()
            .expect("a bound socket has an address")
    }

    /// What it shows, to be kept current.
    pub(crate) fn shown(&self) -> Shown {
        self.shown.clone()
    }

    /// Serves until `cancel`.
    pub(crate) async fn run(self, cancel: CancellationToken) -> std::io::Result<()> {
        let routes = Router::new()
            .route("/metrics", get(metrics))
            .route("/healthz", get(|| async { "ok\n" }))
            .route("/readyz", get(ready))
            .with_state(self.shown);
        axum::serve(self.listener, routes)
            .with_graceful_shutdown(cancel.cancelled_owned())
            .await
    }
}

async fn metrics(State(shown): State<Shown>) -> impl IntoResponse {
    match shown.metrics() {
        Ok(text) => {
            let format = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, format)], text).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn ready(State(shown): State<Shown>) -> (StatusCode, String) {
    match shown.ready() {
        Ok(ready) => (StatusCode::OK, format!("{ready}\n")),
        Err(waiting) => (StatusCode::SERVICE_UNAVAILABLE, format!("{waiting}\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_without_a_controller_is_ready_if_it_could_take_over() {
        let shown = Shown(Arc::new(Current {
            registry: Registry::default(),
            now: RwLock::default(),
        }));
        assert_eq!(shown.ready(), Err("waiting for the host".to_owned()));
        let (stands, standing) = watch::channel(Standing::Unknown);
        shown.follow(standing);
        let leader = "other".to_owned();
        for (standing, ready, part) in [
            (Standing::Unknown, false, "Lease"),
            (
                Standing::Hindered("forbidden".to_owned()),
                false,
                "forbidden",
            ),
            (Standing::Standby { leader }, true, "other leads"),
            (Standing::Leading, false, "waiting for the host"),
        ] {
            stands.send_replace(standing);
            let answer = shown.ready();
            assert_eq!(answer.is_ok(), ready, "{answer:?}");
            let (Ok(text) | Err(text)) = answer;
            assert!(text.contains(part), "{text}");
        }
    }
}
