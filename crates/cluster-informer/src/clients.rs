//! By which client a member is asked: credentials may be renewed while it is followed.
//!
//! ```text
//! put          same cluster: from the next request on; open watches go on, and it is probed at once
//! put_another  maybe another cluster: all that is known is stale until that has been listed (F39)
//! ```

use std::{fmt, future::pending};

use kube::Client;
use tokio::sync::watch;

/// A client, and which cluster it leads to, as far as that is known.
#[derive(Clone)]
struct Reach {
    client: Client,
    cluster: u64,
}

/// Puts another client in the place of the one by which a member is followed.
pub struct ClientSlot(watch::Sender<Reach>);

impl ClientSlot {
    pub(crate) fn new(client: Client) -> (Self, Clients) {
        let latest = Reach { client, cluster: 0 };
        let (slot, reach) = watch::channel(latest.clone());
        (Self(slot), Clients { reach, latest })
    }

    /// Other credentials for the same cluster: nothing that is known is doubted.
    pub fn put(&self, client: Client) {
        self.0.send_modify(|reach| reach.client = client);
    }

    /// A client that may lead to another cluster: everything is listed anew.
    pub fn put_another(&self, client: Client) {
        self.0.send_modify(|reach| {
            *reach = Reach {
                client,
                cluster: reach.cluster + 1,
            };
        });
    }
}

impl fmt::Debug for ClientSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientSlot")
    }
}

/// The latest client that leads to one cluster.
#[derive(Clone)]
pub(crate) struct Clients {
    reach: watch::Receiver<Reach>,
    latest: Reach,
}

impl Clients {
    /// A client that stays.
    pub(crate) fn of(client: Client) -> Self {
        ClientSlot::new(client).1
    }

    /// The one for the next request. Never one of another cluster, however late that is noticed.
    pub(crate) fn current(&mut self) -> Client {
        let reach = self.reach.borrow_and_update();
        if reach.cluster == self.latest.cluster {
            self.latest.client = reach.client.clone();
        }
        self.latest.client.clone()
    }

    /// Waits until there are other credentials for the same cluster.
    pub(crate) async fn renewed(&mut self) {
        self.wait_for(|now, latest| now.cluster == latest.cluster)
            .await;
    }

    /// Waits until another cluster is to be followed.
    pub(crate) async fn moved(&mut self) {
        self.wait_for(|now, latest| now.cluster != latest.cluster)
            .await;
    }

    /// Those of the latest cluster.
    pub(crate) fn anew(&mut self) -> Self {
        self.latest = self.reach.borrow_and_update().clone();
        self.clone()
    }

    async fn wait_for(&mut self, holds: impl Fn(&Reach, &Reach) -> bool) {
        loop {
            if self.reach.changed().await.is_err() {
                return pending().await;
            }
            if holds(&self.reach.borrow_and_update(), &self.latest) {
                return;
            }
        }
    }
}
