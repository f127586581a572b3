//! The context of controllers: the API, the index, the time, and the stopped kubelets.
//!
//! ```text
//! changes -> Index -> controller decides -> Context::{create, edit, delete, record_event} -> API -> changes
//! ```
//!
//! Every write has the uid of its object as precondition, so that it never affects a newer object of the same name.

use std::collections::{BTreeMap, BTreeSet};
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

/// The nodes whose kubelet is stopped. Shared with the handle of the cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoppedKubelets(Arc<Mutex<Stopped>>);

#[derive(Debug, Default)]
struct Stopped {
    kubelets: BTreeSet<String>,
    /// Of these: nodes without power, whose containers have stopped, too.
    without_power: BTreeSet<String>,
    /// When nodes that had no power started again.
    booted: BTreeMap<String, Timestamp>,
}

impl StoppedKubelets {
    /// Whether the node's kubelet is stopped.
    pub(crate) fn contains(&self, node: &str) -> bool {
        self.0.lock().kubelets.contains(node)
    }

    /// When the node started again after a loss of power, in whole seconds as in the status of containers.
    pub(crate) fn booted(&self, node: &str) -> Option<Timestamp> {
        self.0.lock().booted.get(node).copied()
    }

    /// Stops the kubelet and the containers of `node`.
    pub(crate) fn cut_power(&self, node: &str) {
        let mut stopped = self.0.lock();
        stopped.kubelets.insert(node.to_owned());
        stopped.without_power.insert(node.to_owned());
    }

    /// Stops or starts the kubelet; false if nothing changes.
    pub(crate) fn set(&self, node: &str, dead: bool, now: Timestamp) -> bool {
        let mut stopped = self.0.lock();
        if dead {
            return stopped.kubelets.insert(node.to_owned());
        }
        if stopped.without_power.remove(node) {
            let second = Timestamp::from_second(now.as_second()).unwrap_or(now);
            stopped.booted.insert(node.to_owned(), second);
        }
        stopped.kubelets.remove(node)
    }
}

/// The state that controllers share. One task owns it.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) api: Api,
    pub(crate) index: Index,
    pub(crate) settings: Settings,
    pub(crate) stopped: StoppedKubelets,
    pub(super) events: EventCorrelator,
}

/// The options of a deletion.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Deletion {
    pub(crate) grace_seconds: Option<i64>,
    pub(crate) propagation: Option<Propagation>,
    /// Fail if the object has changed since it was read.
    pub(crate) unchanged: bool,
}

impl Context {
    pub(crate) fn new(api: &Api, settings: Settings, stopped: StoppedKubelets) -> Self {
        Self {
            api: api.clone(),
            index: Index::default(),
            settings,
            stopped,
            events: EventCorrelator::default(),
        }
    }

    /// The cluster's current time.
    pub(crate) fn now(&self) -> Timestamp {
        self.api.clock().now()
    }

    /// The instant of `time`; now if it has passed.
    pub(crate) fn instant(&self, time: Timestamp) -> Instant {
        let ahead = time.duration_since(self.now());
        Instant::now() + Duration::try_from(ahead).unwrap_or_default()
    }

    /// Creates an object in its namespace.
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

    /// Edits the current state of `of`, or one of its subresources; 409 if a newer object has its name.
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

    /// Deletes `of`; 409 if a newer object has its name.
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

/// Ignores that the object no longer exists: there is nothing left to do.
pub(crate) fn ignore_not_found<T>(result: Result<T, Status>) -> Result<(), Status> {
    match result {
        Err(status) if status.code != 404 => Err(status),
        _ => Ok(()),
    }
}

/// Whether a creation failed because the namespace is being deleted.
pub(crate) fn is_namespace_terminating(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes
        .into_iter()
        .any(|cause| cause.reason == "NamespaceTerminating")
}
