//! DNS by UDP: whoever receives a query answers it at once, without a task or a queue for each.

use std::{sync::Arc, thread::available_parallelism, time::Duration};

use hickory_server::net::xfer::Protocol;
use tokio::{net::UdpSocket, task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;

use super::handler::Handler;

/// The longest query: what is longer is cut off, and malformed.
const LONGEST_QUERY: usize = 4096;
/// The pause after a failure to receive.
const PAUSE: Duration = Duration::from_millis(50);

/// Answers queries until `cancel`, as many at a time as there are processors.
pub(super) async fn answer_all(
    socket: UdpSocket,
    handler: &Arc<Handler>,
    cancel: &CancellationToken,
) {
    let socket = Arc::new(socket);
    let mut receivers = JoinSet::new();
    for _ in 0..available_parallelism().map_or(1, usize::from) {
        receivers.spawn(answer_each(Arc::clone(&socket), Arc::clone(handler)));
    }
    cancel.cancelled().await;
    receivers.shutdown().await;
}

async fn answer_each(socket: Arc<UdpSocket>, handler: Arc<Handler>) {
    let mut query = vec![0; LONGEST_QUERY];
    loop {
        let (length, client) = match socket.recv_from(&mut query).await {
            Ok(received) => received,
            Err(error) => {
                tracing::warn!(%error, "failed to receive DNS queries");
                sleep(PAUSE).await;
                continue;
            }
        };
        let response = handler.answer(&query[..length], client, Protocol::Udp);
        let Some(response) = response else { continue };
        if let Err(error) = socket.send_to(&response, client).await {
            tracing::debug!(%client, %error, "a DNS response could not be sent");
        }
    }
}
