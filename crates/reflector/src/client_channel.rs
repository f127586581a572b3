//! The client for the next request: it can be exchanged while a reflector runs.
//!
//! ```text
//! renew    new credentials for the same cluster: used from the next request on; open watches continue
//! replace  possibly another cluster: receivers keep the previous client until they accept the replacement
//! ```

use std::{fmt, future::pending};

use kube::Client;
use tokio::sync::watch;

/// A channel for the client of a cluster, with `client` as the first.
#[must_use]
pub fn client_channel(client: Client) -> (ClientSender, ClientReceiver) {
    let latest = Target { client, number: 0 };
    let (sender, receiver) = watch::channel(latest.clone());
    let receiver = ClientReceiver {
        receiver,
        accepted: latest,
    };
    (ClientSender(sender), receiver)
}

/// A client, and the number of its cluster: how often the client has been replaced.
#[derive(Clone)]
struct Target {
    client: Client,
    number: u64,
}

/// Exchanges the client of all receivers.
pub struct ClientSender(watch::Sender<Target>);

impl ClientSender {
    /// Sends a client with new credentials for the same cluster.
    pub fn renew(&self, client: Client) {
        self.0.send_modify(|target| target.client = client);
    }

    /// Sends a client that may reach another cluster.
    pub fn replace(&self, client: Client) {
        self.0.send_modify(|target| {
            *target = Target {
                client,
                number: target.number + 1,
            };
        });
    }
}

impl fmt::Debug for ClientSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientSender")
    }
}

/// The latest client of one cluster.
#[derive(Clone)]
pub struct ClientReceiver {
    receiver: watch::Receiver<Target>,
    accepted: Target,
}

impl From<Client> for ClientReceiver {
    /// A client that is never exchanged.
    fn from(client: Client) -> Self {
        client_channel(client).1
    }
}

impl ClientReceiver {
    /// The client for the next request: the latest of the accepted cluster.
    pub fn current(&mut self) -> Client {
        let target = self.receiver.borrow_and_update();
        if target.number == self.accepted.number {
            self.accepted.client = target.client.clone();
        }
        self.accepted.client.clone()
    }

    /// Waits for new credentials for the accepted cluster.
    pub async fn renewed(&mut self) {
        self.wait_for(|number, accepted| number == accepted).await;
    }

    /// Waits for a client of another cluster.
    pub async fn replaced(&mut self) {
        self.wait_for(|number, accepted| number != accepted).await;
    }

    /// Accepts the latest cluster; returns a receiver for its clients alone.
    #[must_use]
    pub fn accept(&mut self) -> Self {
        self.accepted = self.receiver.borrow_and_update().clone();
        self.clone()
    }

    async fn wait_for(&mut self, is_awaited: impl Fn(u64, u64) -> bool) {
        loop {
            if self.receiver.changed().await.is_err() {
                return pending().await;
            }
            if is_awaited(
                self.receiver.borrow_and_update().number,
                self.accepted.number,
            ) {
                return;
            }
        }
    }
}

impl fmt::Debug for ClientReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientReceiver")
    }
}
