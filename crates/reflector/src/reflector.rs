//! A reflector: lists a collection, and then watches it.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use tokio::sync::Notify;

use crate::{
    client_channel::ClientReceiver,
    collection::Collection,
    handler::{EventHandler, Versioned},
    list_watch::ListWatch,
    settings::ReflectorSettings,
    transport::KubeTransport,
};

/// Lists a collection, then watches it, and passes what it sees to an [`EventHandler`].
///
/// Keeps no objects: a store is the handler's business.
#[derive(Debug)]
pub struct Reflector {
    clients: ClientReceiver,
    collection: Collection,
    settings: ReflectorSettings,
    seed: u64,
    relist: Arc<Notify>,
    confirm: Arc<Notify>,
}

impl Reflector {
    /// A reflector of `collection` with default settings.
    ///
    /// Turn off the client's own retry (`Config::default_retry`): the reflector reports each failure and retries with
    /// backoff.
    pub fn new(client: impl Into<ClientReceiver>, collection: Collection) -> Self {
        Self {
            clients: client.into(),
            collection,
            settings: ReflectorSettings::default(),
            seed: rand::random(),
            relist: Arc::default(),
            confirm: Arc::default(),
        }
    }

    /// Replaces the default settings.
    #[must_use]
    pub fn settings(self, settings: ReflectorSettings) -> Self {
        Self { settings, ..self }
    }

    /// The seed of the jitter, which is random by default: the same seed gives the same pauses on a simulated clock.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Makes the reflector drop what it is doing and list whenever `relist` is notified: an open watch may have lost its
    /// server without an error, and a pause after failures may last long after the server is back.
    #[must_use]
    pub fn relist_on(self, relist: Arc<Notify>) -> Self {
        Self { relist, ..self }
    }

    /// Makes the reflector confirm whenever `confirm` wakes it that the watch works: it reopens the watch for a few seconds, as
    /// after a silence.
    #[must_use]
    pub fn confirm_on(self, confirm: Arc<Notify>) -> Self {
        Self { confirm, ..self }
    }

    /// Runs without an end. Drop the future to stop it.
    pub async fn run<T, H>(self, handler: H)
    where
        T: DeserializeOwned + Versioned + Send,
        H: EventHandler<T>,
    {
        let path = Arc::clone(&self.collection.path);
        let transport = KubeTransport::new(self.clients, self.collection, self.settings.limits);
        let list_watch = ListWatch::new(transport, handler, self.settings, self.seed, path);
        list_watch.run(&self.relist, &self.confirm).await;
    }
}
