//! How many objects of a collection have reached a state.

use std::collections::BTreeMap;

use kube::Client;
use reflector::{Collection, Error, EventHandler, Reflector, Versioned};
use serde::Deserialize;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A ReplicaSet or a FederatedReplicaSet.
#[derive(Deserialize)]
pub(super) struct Object {
    metadata: Metadata,
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    resource_version: String,
}

#[derive(Deserialize)]
struct Spec {
    replicas: u64,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    ready_replicas: u64,
}

impl Versioned for Object {
    fn resource_version(&self) -> Option<&str> {
        Some(&self.metadata.resource_version)
    }
}

/// How many objects there are, and how many of them are ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) all: usize,
    pub(super) ready: usize,
}

/// Counts the objects of a collection, until it is dropped.
pub(super) struct Progress {
    pub(super) count: watch::Receiver<Count>,
    _stop: DropGuard,
}

impl Progress {
    pub(super) fn start(client: &Client, path: &str) -> Self {
        let (sender, count) = watch::channel(Count::default());
        let counter = Counter {
            ready: BTreeMap::new(),
            count: sender,
        };
        let watches = Reflector::new(client.clone(), Collection::all(path)).run(counter);
        let cancel = CancellationToken::new();
        tokio::spawn(cancel.clone().run_until_cancelled_owned(watches));
        Self {
            count,
            _stop: cancel.drop_guard(),
        }
    }
}

struct Counter {
    /// Whether each object is ready, by name.
    ready: BTreeMap<String, bool>,
    count: watch::Sender<Count>,
}

impl Counter {
    fn publish(&self) {
        self.count.send_replace(Count {
            all: self.ready.len(),
            ready: self.ready.values().filter(|ready| **ready).count(),
        });
    }
}

impl EventHandler<Object> for Counter {
    fn on_init(&mut self) {
        self.ready.clear();
    }

    fn on_apply(&mut self, object: Object) {
        let is_ready = object.status.ready_replicas == object.spec.replicas;
        self.ready.insert(object.metadata.name, is_ready);
        self.publish();
    }

    fn on_delete(&mut self, object: Object) {
        self.ready.remove(&object.metadata.name);
        self.publish();
    }

    fn on_init_done(&mut self, _resource_version: &str) {
        self.publish();
    }

    fn on_error(&mut self, error: &Error) {
        eprintln!("{error}");
    }
}
