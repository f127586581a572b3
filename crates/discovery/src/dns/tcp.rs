//! DNS by TCP: queries one after the other, each with its length before it. Connections are within the limits of those by HTTP.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use hickory_server::net::xfer::Protocol;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::handler::{Handler, LONGEST_QUERY};
use crate::serving::{Quota, ServerMetrics};

/// How long a connection may be without a query, and a client may take for a response.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause after a failure to accept a connection: others have to end first.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// The name of the server, in metrics.
const SERVER: &str = "dns";

/// Answers on connections until `cancel`. Those beyond the limits are closed at once.
pub(super) async fn accept(
    listener: TcpListener,
    handler: Arc<Handler>,
    (quota, metrics): (Arc<Quota>, ServerMetrics),
    cancel: CancellationToken,
) {
    let open = TaskTracker::new();
    while let Some(accepted) = cancel.run_until_cancelled(listener.accept()).await {
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        match quota.take(address.ip().to_canonical()) {
            Ok(share) => {
                let counted = (share, metrics.open(SERVER));
                let (handler, cancel) = (Arc::clone(&handler), cancel.clone());
                open.spawn(async move {
                    let _counted_while_it_lives = counted;
                    let answering = answer_all(stream, address, &handler);
                    if let Some(Err(error)) = cancel.run_until_cancelled(answering).await {
                        tracing::debug!(%address, %error, "a DNS connection ended");
                    }
                });
            }
            Err(exceeded) => metrics.count_refused(exceeded),
        }
    }
    open.close();
    open.wait().await;
}

/// Answers until the client ends the connection, or is silent.
async fn answer_all(
    mut stream: TcpStream,
    address: SocketAddr,
    handler: &Handler,
) -> io::Result<()> {
    loop {
        let query = timeout(PATIENCE, read(&mut stream)).await??;
        let Some(response) = handler.answer(&query, address, Protocol::Tcp) else {
            return Err(io::Error::other("it is no query"));
        };
        let Ok(length) = u16::try_from(response.len()) else {
            return Err(io::Error::other("the response is too long"));
        };
        let message = [&length.to_be_bytes()[..], &response].concat();
        timeout(PATIENCE, stream.write_all(&message)).await??;
    }
}

async fn read(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let length = stream.read_u16().await?;
    if length > LONGEST_QUERY {
        return Err(io::Error::other("the query is too long"));
    }
    let mut query = vec![0; usize::from(length)];
    stream.read_exact(&mut query).await?;
    Ok(query)
}
