//! A cluster over HTTPS, for kubectl and every other client.
//!
//! ```text
//! listener -> TLS (own authority) -> HTTP/1 or 2 -> service
//! ```
//!
//! Connections are dropped, not drained, when the server stops or the cluster becomes unreachable: watches would keep
//! them open for minutes.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::api::Api;
use crate::authentication::User;
use crate::certificates::Certificates;
use crate::faults::Faults;
use crate::kubeconfig::Kubeconfig;
use crate::service::ApiService;

/// A cluster's HTTPS server. Dropping it stops it; [`Server::stop`] also waits until it has stopped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    kubeconfig: Kubeconfig,
    api: Api,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

/// The state that connections share.
#[derive(Clone)]
struct Connections {
    service: ApiService,
    faults: Faults,
    tls: TlsAcceptor,
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
        // Independent of the seed: the token must not be predictable outside of the process.
        let token =
            uuid::Uuid::new_v4().simple().to_string() + &uuid::Uuid::new_v4().simple().to_string();
        let kubeconfig = Kubeconfig {
            cluster: name.to_owned(),
            server: format!("https://{address}"),
            authority_pem: certificates.authority_pem.clone(),
            token,
        };
        let connections = Connections {
            service: service.for_remote_clients(),
            faults,
            tls: TlsAcceptor::from(certificates.server_config().map_err(io::Error::other)?),
        };
        api.admit_token(&kubeconfig.token, User::administrator());
        let stop = CancellationToken::new();
        let task = tokio::spawn(accept(listener, connections, stop.clone()));
        Ok(Self {
            address,
            kubeconfig,
            api,
            stop,
            task,
        })
    }

    /// The address on which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The kubeconfig of the administrator.
    pub fn kubeconfig(&self) -> &Kubeconfig {
        &self.kubeconfig
    }

    /// Writes the kubeconfig to a file that only its owner can read.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_kubeconfig(&self, path: &Path) -> io::Result<()> {
        self.kubeconfig.write(path)
    }

    /// Stops the server at once; open watches break.
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
        self.api.dismiss_token(&self.kubeconfig.token);
    }
}

async fn accept(listener: TcpListener, connections: Connections, stop: CancellationToken) {
    let mut open = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            // Finished connections are removed from the set.
            Some(_) = open.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) if !connections.faults.refuses_connection() => {
                open.spawn(connections.clone().serve(stream));
            }
            // Dropped: the client sees a reset connection.
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection");
                // Probably out of file descriptors: other connections must end first.
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
            let service = TowerToHyperService::new(self.service);
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
}

async fn became_unreachable(faults: &Faults) {
    loop {
        let notify = faults.notify();
        let notified = notify.notified();
        tokio::pin!(notified);
        notified.as_mut().enable();
        if faults.refuses_connection() {
            return;
        }
        notified.await;
    }
}
