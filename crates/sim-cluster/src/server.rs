//! A cluster over HTTPS, for kubectl and every other client.
//!
//! ```text
//! listener -> TLS (own authority) -> HTTP/1 or 2 -> bearer token -> service
//! ```
//!
//! Connections are dropped, not drained, when it stops or when the cluster is made unreachable: watches would
//! hold them for minutes.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::Service;

use crate::api::Api;
use crate::certificates::Certificates;
use crate::faults::Faults;
use crate::http::{Body, BoxError, Subject, refuse};
use crate::kubeconfig::Kubeconfig;
use crate::service::ApiService;
use crate::status::Status;

/// A cluster's HTTPS server. Dropping it stops it; [`Server::stop`] also waits for that.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    kubeconfig: Kubeconfig,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

/// What each connection needs.
#[derive(Clone)]
struct Connections {
    service: ApiService,
    api: Api,
    faults: Faults,
    tls: TlsAcceptor,
    token: Arc<str>,
}

impl Server {
    pub(crate) async fn start(
        name: &str,
        address: SocketAddr,
        service: ApiService,
        api: Api,
        faults: Faults,
    ) -> io::Result<Self> {
        let certificates = Certificates::for_address(address.ip()).map_err(io::Error::other)?;
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        // Not from the seed: it must not be guessable from outside of the process.
        let token =
            uuid::Uuid::new_v4().simple().to_string() + &uuid::Uuid::new_v4().simple().to_string();
        let kubeconfig = Kubeconfig {
            cluster: name.to_owned(),
            server: format!("https://{address}"),
            authority_pem: certificates.authority_pem.clone(),
            token: token.clone(),
        };
        let connections = Connections {
            service,
            api,
            faults,
            tls: TlsAcceptor::from(certificates.server_config().map_err(io::Error::other)?),
            token: Arc::from(token),
        };
        let stop = CancellationToken::new();
        let task = tokio::spawn(accept(listener, connections, stop.clone()));
        Ok(Self {
            address,
            kubeconfig,
            stop,
            task,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How clients get in.
    pub fn kubeconfig(&self) -> &Kubeconfig {
        &self.kubeconfig
    }

    /// Writes the kubeconfig to a file that only its owner can read.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn write_kubeconfig(&self, path: &Path) -> io::Result<()> {
        self.kubeconfig.write(path)
    }

    /// Stops it at once; open watches break.
    pub async fn stop(mut self) {
        self.stop.cancel();
        if let Err(error) = (&mut self.task).await
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn accept(listener: TcpListener, connections: Connections, stop: CancellationToken) {
    let mut open = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            // Finished connections are taken off the set as they end.
            Some(_) = open.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) if !connections.faults.refuses_connection() => {
                open.spawn(connections.clone().serve(stream));
            }
            // Dropped: to the client the connection was reset.
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                // Out of file descriptors, most likely: others must end first.
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
    }
}

impl Connections {
    async fn serve(self, stream: TcpStream) {
        // Events are small and must arrive at once.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "nodelay could not be set");
        }
        let (faults, tls) = (self.faults.clone(), self.tls.clone());
        let served = async {
            let stream = tls.accept(stream).await?;
            let service = service_fn(move |request| self.clone().answer(request));
            let builder = auto::Builder::new(TokioExecutor::new());
            builder
                .serve_connection(TokioIo::new(stream), service)
                .await
        };
        tokio::select! {
            biased;
            () = became_unreachable(&faults) => {}
            ended = served => if let Err(error) = ended {
                tracing::debug!(error, "a connection ended early");
            }
        }
    }

    async fn answer(mut self, request: Request<Incoming>) -> Result<Response<Body>, BoxError> {
        let (parts, body) = request.into_parts();
        let subject = Subject::of(&parts);
        let given = parts
            .headers
            .get(AUTHORIZATION)
            .map(http::HeaderValue::as_bytes);
        let known = given.map(|given| self.knows(given));
        // Who gives no token may ask for health and version; who gives a wrong one may not even that.
        if !known.unwrap_or(subject.public) {
            return Ok(refuse(&Status::unauthorized()));
        }
        self.service.call(Request::from_parts(parts, body)).await
    }

    fn knows(&self, authorization: &[u8]) -> bool {
        let text = std::str::from_utf8(authorization).unwrap_or_default();
        let Some((scheme, token)) = text.split_once(' ') else {
            return false;
        };
        scheme.eq_ignore_ascii_case("bearer")
            && (same(token.as_bytes(), self.token.as_bytes()) || self.api.knows_token(token))
    }
}

/// Compares in a time that does not depend on where the two differ.
fn same(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len()
        && left
            .iter()
            .zip(right)
            .fold(0, |differences, (left, right)| differences | (left ^ right))
            == 0
}

async fn became_unreachable(faults: &Faults) {
    loop {
        let bell = faults.bell();
        let rung = bell.notified();
        tokio::pin!(rung);
        rung.as_mut().enable();
        if faults.refuses_connection() {
            return;
        }
        rung.await;
    }
}
