//! DNS by UDP: whoever receives a query answers it at once, without a task or a queue for each.

use std::{sync::Arc, thread::available_parallelism, time::Duration};

use hickory_server::net::xfer::Protocol;
use tokio::{net::UdpSocket, task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;

use super::handler::{Handler, LONGEST_QUERY};

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
    // A panic of one ends the server, too.
    cancel.run_until_cancelled(receivers.join_all()).await;
}

async fn answer_each(socket: Arc<UdpSocket>, handler: Arc<Handler>) {
    // What is longer is cut off, and malformed.
    let mut query = vec![0; usize::from(LONGEST_QUERY)];
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
