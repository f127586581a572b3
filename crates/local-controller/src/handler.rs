//! The watches of sets, pods, nodes, PodDisruptionBudgets and migrations: objects go into the store, the keys of the sets that they
//! concern onto the queue.

use std::{marker::PhantomData, sync::Arc, time::Duration};

use controller_base::{list_progress::ListProgress, listing::Listing};
use reflector::{Error, EventHandler, InvalidObject, Versioned};
use replica_set_controller::{BUDGETS, ObservedBudget, ObservedNode, ObservedPod};
use serde::{Deserialize, de::DeserializeOwned};

use crate::{
    entry::SetObject,
    key::{Changed, SETS, SetKey},
    metrics::LocalMetrics,
    migration_object::{PolicyObject, RequestObject},
    queue::Queue,
    store::{State, Store},
};

/// A kind that is watched.
pub(crate) trait WatchedKind: DeserializeOwned + Versioned + Send + 'static {
    /// The kind, in the plural.
    const KIND: &'static str;
    /// Its collection.
    const PATH: &'static str;

    /// It exists, was created or changed.
    fn apply(self, state: &mut State) -> Changed;
    /// It was deleted.
    fn delete(self, state: &mut State) -> Changed;
    /// How far its list is.
    fn listing(state: &mut State) -> &mut Listing;
    /// A list is complete, as of this version.
    fn end(state: &mut State, version: &str) -> Changed;
    /// The one of this name was deleted. Of a kind that is known by its uid, nothing follows.
    fn remove(_state: &mut State, _namespace: &str, _name: &str) -> Changed {
        Changed::new()
    }
}

impl WatchedKind for SetObject {
    const KIND: &'static str = "LocalReplicaSets";
    const PATH: &'static str = SETS;

    fn apply(self, state: &mut State) -> Changed {
        state.apply_set(self)
    }

    fn delete(self, state: &mut State) -> Changed {
        state.remove_set(&self.key())
    }

    fn listing(state: &mut State) -> &mut Listing {
        state.sets_listing()
    }

    fn end(state: &mut State, version: &str) -> Changed {
        state.end_sets(version)
    }

    fn remove(state: &mut State, namespace: &str, name: &str) -> Changed {
        state.remove_set(&SetKey::new(namespace, name))
    }
}

/// A pod that is watched.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct PodObject(ObservedPod);

impl Versioned for PodObject {
    fn resource_version(&self) -> Option<&str> {
        Some(self.0.resource_version())
    }
}

impl WatchedKind for PodObject {
    const KIND: &'static str = "Pods";
    const PATH: &'static str = "/api/v1/pods";

    fn apply(self, state: &mut State) -> Changed {
        state.apply_pod(self.0)
    }

    fn delete(self, state: &mut State) -> Changed {
        state.end_pod(self.0.uid())
    }

    fn listing(state: &mut State) -> &mut Listing {
        state.pods_listing()
    }

    fn end(state: &mut State, version: &str) -> Changed {
        state.end_pods(version)
    }
}

/// A node that is watched.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct NodeObject(ObservedNode);

impl Versioned for NodeObject {
    fn resource_version(&self) -> Option<&str> {
        Some(self.0.resource_version())
    }
}

impl WatchedKind for NodeObject {
    const KIND: &'static str = "Nodes";
    const PATH: &'static str = "/api/v1/nodes";

    fn apply(self, state: &mut State) -> Changed {
        state.apply_node(&self.0)
    }

    fn delete(self, state: &mut State) -> Changed {
        state.remove_node(self.0.name())
    }

    fn listing(state: &mut State) -> &mut Listing {
        state.nodes_listing()
    }

    fn end(state: &mut State, version: &str) -> Changed {
        state.end_nodes(version)
    }
}

/// A PodDisruptionBudget that is watched.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct BudgetObject(ObservedBudget);

impl Versioned for BudgetObject {
    fn resource_version(&self) -> Option<&str> {
        Some(self.0.resource_version())
    }
}

impl WatchedKind for BudgetObject {
    const KIND: &'static str = "PodDisruptionBudgets";
    const PATH: &'static str = BUDGETS;

    fn apply(self, state: &mut State) -> Changed {
        state.apply_budget(self.0)
    }

    fn delete(self, state: &mut State) -> Changed {
        state.remove_budget(self.0.namespace(), self.0.name())
    }

    fn listing(state: &mut State) -> &mut Listing {
        state.budgets_listing()
    }

    fn end(state: &mut State, version: &str) -> Changed {
        state.end_budgets(version)
    }

    fn remove(state: &mut State, namespace: &str, name: &str) -> Changed {
        state.remove_budget(namespace, name)
    }
}

impl WatchedKind for PolicyObject {
    const KIND: &'static str = "MigrationPolicies";
    const PATH: &'static str = "/apis/fedrs.dev/v1alpha1/migrationpolicies";

    fn apply(self, state: &mut State) -> Changed {
        state.apply_policy(&self)
    }

    fn delete(self, state: &mut State) -> Changed {
        let (namespace, name) = self.id();
        Self::remove(state, namespace, name)
    }

    fn listing(state: &mut State) -> &mut Listing {
        state.policies_listing()
    }

    fn end(state: &mut State, version: &str) -> Changed {
        state.end_policies(version)
    }

    fn remove(state: &mut State, namespace: &str, name: &str) -> Changed {
        state.remove_policy(namespace, name)
    }
}

impl WatchedKind for RequestObject {
    const KIND: &'static str = "MigrationRequests";
    const PATH: &'static str = "/apis/fedrs.dev/v1alpha1/migrationrequests";

    fn apply(self, state: &mut State) -> Changed {
        state.apply_request(self)
    }

    fn delete(self, state: &mut State) -> Changed {
        let (namespace, name) = self.id();
        Self::remove(state, namespace, name)
    }

    fn listing(state: &mut State) -> &mut Listing {
        state.requests_listing()
    }

    fn end(state: &mut State, version: &str) -> Changed {
        state.end_requests_list(version)
    }

    fn remove(state: &mut State, namespace: &str, name: &str) -> Changed {
        state.remove_request(namespace, name)
    }
}

/// Handles the events of one watch.
pub(crate) struct Handler<T> {
    store: Arc<Store>,
    queue: Queue,
    metrics: LocalMetrics,
    progress: ListProgress,
    kind: PhantomData<fn() -> T>,
}

impl<T: WatchedKind> Handler<T> {
    pub(crate) fn new(
        store: &Arc<Store>,
        queue: &Queue,
        metrics: &LocalMetrics,
        progress: ListProgress,
    ) -> Self {
        Self {
            store: Arc::clone(store),
            queue: queue.clone(),
            metrics: metrics.clone(),
            progress,
            kind: PhantomData,
        }
    }

    fn update(&self, change: impl FnOnce(&mut State) -> Changed) {
        let (changed, counts) = self.store.update(|state| (change(state), state.counts()));
        self.metrics.show(counts);
        for key in changed {
            self.queue.add(key, Duration::ZERO);
        }
    }
}

impl<T: WatchedKind> EventHandler<T> for Handler<T> {
    fn on_init(&mut self) {
        self.store.update(|state| T::listing(state).begin());
    }

    fn on_apply(&mut self, object: T) {
        self.update(|state| object.apply(state));
    }

    fn on_delete(&mut self, object: T) {
        self.update(|state| object.delete(state));
    }

    fn on_init_done(&mut self, resource_version: &str) {
        self.update(|state| T::end(state, resource_version));
        self.progress.complete();
    }

    fn on_error(&mut self, error: &Error) {
        self.progress.failed(error);
    }

    fn on_activity(&mut self) {
        self.progress.answered();
    }

    fn on_invalid(&mut self, object: &InvalidObject) {
        tracing::warn!(kind = T::KIND, error = %object, "skipped an object that can't be read");
        if object.deleted {
            let (namespace, name) = (&object.namespace, &object.name);
            if let (Some(namespace), Some(name)) = (namespace, name) {
                self.update(|state| T::remove(state, namespace, name));
            }
        } else {
            self.store.update(|state| T::listing(state).unreadable());
        }
    }
}
