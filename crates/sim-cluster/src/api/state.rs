//! The state of an API server, its lock, and [`Api`]: the handle that every component of a cluster holds.
//!
//! Reads are here; each kind of write has a module of its own.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use super::options::WriteOptions;
use crate::authentication::Credentials;
use crate::clock::Clock;
use crate::object::Object;
use crate::resources::{Kind, Registry};
use crate::status::Status;
use crate::store::{Identities, Store};

/// A cluster's API in this process. Cheap to clone.
#[derive(Clone)]
pub struct Api {
    shared: Arc<Shared>,
    /// The field manager of writes that do not name one.
    manager: Arc<str>,
}

struct Shared {
    /// Short critical sections without an await; a tokio mutex would make every reader async.
    state: Mutex<State>,
    clock: Clock,
}

/// The state behind the lock.
pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) registry: Registry,
    pub(crate) identities: Identities,
    /// The accepted bearer tokens.
    pub(crate) credentials: Credentials,
}

impl fmt::Debug for Api {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut api = formatter.debug_struct("Api");
        api.field("manager", &self.manager).finish_non_exhaustive()
    }
}

impl Api {
    /// An API over an empty store.
    pub fn new(clock: Clock, seed: u64, log_capacity: usize) -> Self {
        let state = State {
            store: Store::new(log_capacity),
            registry: Registry::default(),
            identities: Identities::seeded(seed),
            credentials: Credentials::new(),
        };
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                clock,
            }),
            manager: Arc::from("unknown"),
        }
    }

    /// The same API for a component: `managedFields` records its writes as those of `manager`.
    #[must_use]
    pub fn as_manager(&self, manager: &str) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            manager: Arc::from(manager),
        }
    }

    /// The cluster's clock.
    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// The resource version of the last change.
    pub fn revision(&self) -> u64 {
        self.shared.state.lock().store.revision()
    }

    /// One object; `namespace` is empty for cluster-scoped kinds.
    pub fn get(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Object, Status> {
        let state = self.shared.state.lock();
        let found = state.store.get(kind, namespace, name);
        found.cloned().ok_or_else(|| Status::not_found(kind, name))
    }

    /// The objects of one kind, of one namespace or all, ordered by namespace and name.
    pub fn list(&self, kind: &Kind, namespace: Option<&str>) -> Vec<Object> {
        let state = self.shared.state.lock();
        state.store.list(kind, namespace).cloned().collect()
    }

    /// The kind of an object's `apiVersion` and `kind`, if it is served.
    pub fn kind_of(&self, api_version: &str, kind: &str) -> Option<Kind> {
        let state = self.shared.state.lock();
        state.registry.find_kind(api_version, kind).cloned()
    }

    /// All kinds that are served now, custom ones included, ordered by group, version and plural.
    pub fn kinds(&self) -> Vec<Kind> {
        self.shared.state.lock().registry.all().cloned().collect()
    }

    /// A pseudo-random number in `0..bound`, from the cluster's seed.
    pub fn random_below(&self, bound: u64) -> u64 {
        self.shared.state.lock().identities.below(bound)
    }

    /// Reads the store under its lock.
    pub(crate) fn with_store<T>(&self, read: impl FnOnce(&Store) -> T) -> T {
        read(&self.shared.state.lock().store)
    }

    /// Reads or writes the whole state under its lock.
    pub(crate) fn with_state<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.shared.state.lock())
    }

    /// The field manager of a write.
    pub(crate) fn manager_of<'a>(&'a self, options: &'a WriteOptions) -> &'a str {
        if options.field_manager.is_empty() {
            &self.manager
        } else {
            &options.field_manager
        }
    }
}
