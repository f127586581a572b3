//! One connection, from its handshake to its end.

use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    http::{HeaderValue, Request, Response, StatusCode, header},
    response::IntoResponse,
};
use hyper::{
    body::Incoming,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::graceful::GracefulConnection,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::{Instant, interval, sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tower::ServiceExt;

use super::{
    limits::Exceeded,
    progress::{Monitored, Progress, Watched},
    server::{Connections, Protocol},
};
use crate::{peer::Peer, user::CertificateUser};

/// How long the handshake of TLS may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a client may take to send a request by HTTP/1, and between two requests.
const REQUEST: Duration = Duration::from_secs(30);
/// The most bytes of the head of a request.
const MAX_HEAD: usize = 16 << 10;
/// Calls of one connection at the same time, by HTTP/2.
const MAX_CALLS: u32 = 1_000;
/// How often an idle connection of HTTP/2 is checked, and how long the response may take.
const PING: (Duration, Duration) = (Duration::from_secs(20), Duration::from_secs(10));
/// How often a connection is looked at in the time for which its client may take nothing.
const LOOKS: u32 = 12;
/// How long responses may take after the end of the service.
const GRACE: Duration = Duration::from_secs(5);

/// Serves a client until it leaves, takes nothing for too long, or `cancel`.
pub(super) async fn serve(
    stream: TcpStream,
    mut peer: Peer,
    connections: Arc<Connections>,
    router: Router,
    cancel: CancellationToken,
) {
    // Changes are small, and must arrive at once.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "nodelay could not be set");
    }
    let progress = Arc::new(Progress::default());
    let stream = Monitored::new(stream, Arc::clone(&progress));
    let served = Served {
        connections,
        router,
        progress,
        cancel,
    };
    let Some(tls) = &served.connections.tls else {
        return served.run(stream, peer).await;
    };
    let current = tls.current();
    let configuration = match served.connections.protocol {
        Protocol::Http1 => &current.http1,
        Protocol::Http2 => &current.http2,
    };
    let accepted = TlsAcceptor::from(Arc::clone(configuration)).accept(stream);
    let accepted = timeout(HANDSHAKE, accepted).await;
    let stream = match accepted.map_err(Into::into).flatten() {
        Ok(stream) => stream,
        Err(error) => {
            served.connections.metrics.count_failed_handshake();
            tracing::debug!(client = %peer.address, %error, "no TLS handshake");
            return;
        }
    };
    let certificates = stream.get_ref().1.peer_certificates();
    if let Some(certificate) = certificates.and_then(<[_]>::first) {
        match CertificateUser::of(certificate) {
            Ok(user) => peer.certificate = Some(Arc::new(user)),
            Err(error) => {
                tracing::debug!(client = %peer.address, %error, "a client certificate names no user");
            }
        }
    }
    served.run(stream, peer).await;
}

/// A router of refusals.
pub(super) fn refusals(protocol: Protocol, exceeded: Exceeded) -> Router {
    Router::new().fallback(move || async move {
        match protocol {
            Protocol::Http1 => refusal(exceeded),
            Protocol::Http2 => Status::resource_exhausted(exceeded.to_string())
                .into_http::<Body>()
                .into_response(),
        }
    })
}

/// The refusal by HTTP, which ends the connection.
fn refusal(exceeded: Exceeded) -> Response<Body> {
    let status = match exceeded {
        Exceeded::OfClient { .. } => StatusCode::TOO_MANY_REQUESTS,
        Exceeded::OfAll { .. } => StatusCode::SERVICE_UNAVAILABLE,
    };
    let close = HeaderValue::from_static("close");
    (
        status,
        [(header::CONNECTION, close)],
        format!("{exceeded}\n"),
    )
        .into_response()
}

struct Served {
    connections: Arc<Connections>,
    router: Router,
    progress: Arc<Progress>,
    cancel: CancellationToken,
}

impl Served {
    async fn run<I>(self, stream: I, peer: Peer)
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (address, io) = (peer.address, TokioIo::new(stream));
        let service = service_fn(|mut request: Request<Incoming>| {
            request.extensions_mut().insert(peer.clone());
            let (router, progress) = (self.router.clone(), Arc::clone(&self.progress));
            async move {
                let response = router.oneshot(request).await?;
                Ok::<_, Infallible>(response.map(|body| Watched::new(body, progress)))
            }
        });
        let ended = match self.connections.protocol {
            Protocol::Http1 => {
                let mut builder = http1::Builder::new();
                builder
                    .timer(TokioTimer::new())
                    .header_read_timeout(REQUEST);
                builder.max_buf_size(MAX_HEAD);
                self.drive(builder.serve_connection(io, service)).await
            }
            Protocol::Http2 => {
                let (every, patience) = PING;
                let mut builder = http2::Builder::new(TokioExecutor::new());
                builder.timer(TokioTimer::new()).keep_alive_interval(every);
                builder.keep_alive_timeout(patience);
                builder.max_concurrent_streams(MAX_CALLS);
                builder.max_header_list_size(u32::try_from(MAX_HEAD).expect("it is small"));
                self.drive(builder.serve_connection(io, service)).await
            }
        };
        match ended {
            End::Left(None) => {}
            End::Left(Some(error)) => {
                tracing::debug!(client = %address, error, "a connection ended early");
            }
            End::Stuck => {
                let server = self.connections.protocol.as_str();
                self.connections.metrics.count_cut_off(server);
                tracing::info!(client = %address, server, "a client takes nothing of what is sent to it: cut off");
            }
        }
    }

    /// Lets the connection go on until it ends; gives it the time for its last responses after `cancel`.
    async fn drive<C>(&self, connection: C) -> End
    where
        C: GracefulConnection,
        C::Error: std::fmt::Display,
    {
        let mut connection = pin!(connection);
        let patience = self.connections.patience;
        let mut looks = interval(patience / LOOKS);
        loop {
            tokio::select! {
                ended = connection.as_mut() => return End::Left(ended.err().map(|error| error.to_string())),
                _ = looks.tick() => {
                    if self.progress.is_stuck(Instant::now(), patience) {
                        return End::Stuck;
                    }
                }
                () = self.cancel.cancelled() => break,
            }
        }
        connection.as_mut().graceful_shutdown();
        tokio::select! {
            ended = connection => End::Left(ended.err().map(|error| error.to_string())),
            () = sleep(GRACE) => End::Left(Some("it lasted longer than the service".to_owned())),
        }
    }
}

/// How a connection ended.
enum End {
    /// The client, or the service, has left: with an error if it was early.
    Left(Option<String>),
    /// The client took nothing for too long.
    Stuck,
}
