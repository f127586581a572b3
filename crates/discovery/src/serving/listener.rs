//! Accepts connections: of each client, and of all, as many as the limits allow.

use std::{net::IpAddr, sync::Arc, time::Duration};

use axum::Router;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{connection, server::Connections};
use crate::peer::Peer;

/// The pause after a failure to accept a connection: others have to end first.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Connections beyond the limits that are told so at the same time; others are closed at once.
const REFUSALS: usize = 64;
/// For how long they are told so.
const REFUSAL: Duration = Duration::from_secs(5);

/// Serves clients with `router` until `cancel`, and until all have got their responses.
pub(crate) async fn accept(
    listener: TcpListener,
    connections: Connections,
    router: Router,
    cancel: CancellationToken,
) {
    let connections = Arc::new(connections);
    let refusals = Arc::new(Semaphore::new(REFUSALS));
    let open = TaskTracker::new();
    if let Some(tls) = &connections.tls {
        open.spawn(Arc::clone(tls).keep_current(connections.metrics.clone(), cancel.clone()));
    }
    while let Some(accepted) = cancel.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((stream, address)) => {
                let address = address.ip().to_canonical();
                let (connections, router) = (Arc::clone(&connections), router.clone());
                let serving = serve(connections, (stream, address), router, &refusals, &cancel);
                if let Some(serving) = serving {
                    open.spawn(serving);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    open.close();
    open.wait().await;
}

/// The service of one connection; none if it is closed at once.
fn serve(
    connections: Arc<Connections>,
    (stream, address): (TcpStream, IpAddr),
    router: Router,
    refusals: &Arc<Semaphore>,
    cancel: &CancellationToken,
) -> Option<impl Future<Output = ()> + Send + use<>> {
    let (limit, router, share) = match connections.quota.take(address) {
        Ok(share) => (None, router, Some(share)),
        Err(exceeded) => {
            connections.metrics.count_refused(exceeded);
            let refusing = Arc::clone(refusals).try_acquire_owned().ok()?;
            let router = connection::refusals(connections.protocol, exceeded);
            (Some(refusing), router, None)
        }
    };
    let peer = Peer {
        address,
        certificate: None,
    };
    let cancel = cancel.clone();
    Some(async move {
        let _open = connections.metrics.open(connections.protocol.as_str());
        let _counted_while_it_lives = share;
        let serving = connection::serve(stream, peer, connections, router, cancel);
        match limit {
            None => serving.await,
            Some(_refusing) => _ = timeout(REFUSAL, serving).await,
        }
    })
}
