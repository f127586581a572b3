//! What controllers see and act with: the API, the index, the time, and the switchboard of node faults.
//!
//! ```text
//! changes -> Index -> controller decides -> World::{create, edit, delete, event} -> API -> changes
//! ```
//!
//! Every write carries the uid it means, so that an object of the same name made since is never hit.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::api::{Api, DeleteOptions, Preconditions, Propagation, WriteOptions};
use crate::object::Object;
use crate::resources::Kind;
use crate::status::Status;

use super::event_correlator::EventCorrelator;
use super::index::Index;
use super::settings::Settings;
use crate::object::{name, namespace, uid};

/// The nodes whose kubelet is dead. Shared with the handle that tests and demos hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeadNodes(Arc<Mutex<BTreeSet<String>>>);

impl DeadNodes {
    /// Whether the node's kubelet is dead.
    pub(crate) fn contains(&self, node: &str) -> bool {
        self.0.lock().contains(node)
    }

    /// Kills or revives it; false if it was so already.
    pub(crate) fn set(&self, node: &str, dead: bool) -> bool {
        let mut nodes = self.0.lock();
        if dead {
            nodes.insert(node.to_owned())
        } else {
            nodes.remove(node)
        }
    }
}

/// Everything controllers share. One task owns it.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) api: Api,
    pub(crate) index: Index,
    pub(crate) settings: Settings,
    pub(crate) dead: DeadNodes,
    pub(super) events: EventCorrelator,
}

/// What a deletion says besides the object.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Deletion {
    pub(crate) grace_seconds: Option<i64>,
    pub(crate) propagation: Option<Propagation>,
    /// Refuse if the object changed since it was read.
    pub(crate) unchanged: bool,
}

impl World {
    pub(crate) fn new(api: &Api, settings: Settings, dead: DeadNodes) -> Self {
        Self {
            api: api.clone(),
            index: Index::default(),
            settings,
            dead,
            events: EventCorrelator::default(),
        }
    }

    /// The cluster's time.
    pub(crate) fn now(&self) -> Timestamp {
        self.api.clock().now()
    }

    /// When the timer for `time` has to ring; now if it's past.
    pub(crate) fn instant(&self, time: Timestamp) -> Instant {
        let ahead = time.duration_since(self.now());
        Instant::now() + Duration::try_from(ahead).unwrap_or_default()
    }

    /// Creates an object in the namespace it names.
    pub(crate) fn create(
        &self,
        manager: &str,
        kind: &Kind,
        object: Value,
    ) -> Result<Object, Status> {
        let namespace = namespace(&object).to_owned();
        self.api
            .as_manager(manager)
            .create(kind, &namespace, object, &WriteOptions::default())
    }

    /// Edits `of`, or one of its subresources, as it is now; 409 if another object has its name since.
    pub(crate) fn edit(
        &self,
        manager: &str,
        (kind, subresource): (&Kind, Option<&str>),
        of: &Value,
        change: impl FnOnce(&mut Value),
    ) -> Result<Object, Status> {
        self.api
            .as_manager(manager)
            .modify(kind, subresource, namespace(of), name(of), |object| {
                change(object);
                object["metadata"]["uid"] = json!(uid(of));
            })
    }

    /// Deletes `of`; 409 if another object has its name since.
    pub(crate) fn delete(&self, kind: &Kind, of: &Value, how: Deletion) -> Result<(), Status> {
        let version = of["metadata"]["resourceVersion"]
            .as_str()
            .filter(|_| how.unchanged);
        let options = DeleteOptions {
            grace_period: how.grace_seconds,
            propagation: how.propagation,
            preconditions: Preconditions {
                uid: Some(uid(of).to_owned()),
                resource_version: version.map(str::to_owned),
            },
            dry_run: false,
        };
        self.api
            .delete(kind, namespace(of), name(of), &options)
            .map(|_| ())
    }
}

/// Ignores that the object is gone, or that another has its name: what was to be done to it is moot.
pub(crate) fn unless_gone<T>(result: Result<T, Status>) -> Result<(), Status> {
    match result {
        Err(status) if status.code != 404 => Err(status),
        _ => Ok(()),
    }
}
