//! What is known of a cluster: sets, their pods, pods without a controller, nodes, PodDisruptionBudgets and migrations.
//!
//! ```text
//! watches, responses to requests --apply--> State --> keys of the sets to reconcile
//!                                             '-----> Snapshot of one set
//! ```
//!
//! An object that is older than the known one is ignored, so that a response counts from when it arrives, whenever the watch shows
//! it.

mod budgets;
mod finalizers;
mod migrations;
mod nodes;
mod notified;
mod pods;
mod policies;
mod requests;
mod sets;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use controller_base::listing::Listing;
use fedrs_api::ValidMigrationPolicy;
use parking_lot::Mutex;
use replica_set_controller::{ObservedBudget, ObservedNode, ObservedPod};

use crate::{
    entry::{Entry, SetObject},
    key::{Changed, SetKey},
    migration_object::RequestObject,
};
use budgets::Budgets;
pub(crate) use nodes::Node;
use nodes::Nodes;
pub(crate) use pods::Sent;
use pods::{Change, Pods};
use policies::Policies;
use requests::Requests;
use sets::Sets;

/// The state, shared by the watches and the workers. The lock is held for one object, or one snapshot.
#[derive(Debug, Default)]
pub(crate) struct Store(Mutex<State>);

/// The state of a cluster.
#[derive(Debug, Default)]
pub(crate) struct State {
    sets: Sets,
    pods: Pods,
    nodes: Nodes,
    budgets: Budgets,
    policies: Policies,
    requests: Requests,
}

/// One set with what it depends on, at one moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) entry: Arc<Entry>,
    /// The pods that it controls, and those of its namespace without a controller, by uid.
    pub(crate) pods: BTreeMap<String, Arc<ObservedPod>>,
    /// Requests for pods whose effect nothing has shown yet, by uid.
    pub(crate) sent: BTreeMap<String, Sent>,
    /// Sets whose selectors overlap with that of the set.
    pub(crate) overlapping: Vec<SetKey>,
    /// The nodes of these pods.
    pub(crate) nodes: HashMap<String, Node>,
    /// Nodes of these pods that no watch has shown: they are new, or do not exist any more.
    pub(crate) unknown_nodes: BTreeSet<String>,
    /// The PodDisruptionBudgets of its namespace, without those of sets whose selectors do not overlap.
    pub(crate) budgets: Vec<Arc<ObservedBudget>>,
    /// Its MigrationPolicy; `Err` says why the one that it names can't be used.
    pub(crate) policy: Result<Option<Arc<ValidMigrationPolicy>>, String>,
    /// The MigrationRequests of its pods that have not ended.
    pub(crate) requests: Vec<Arc<RequestObject>>,
}

impl Store {
    /// Changes the state.
    pub(crate) fn update<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.lock())
    }

    /// The set `key` with what it depends on; `None` if it does not exist.
    pub(crate) fn snapshot(&self, key: &SetKey) -> Option<Snapshot> {
        let state = self.0.lock();
        let entry = Arc::clone(state.sets.get(key)?);
        let pods = state.pods.of(&entry.uid, &key.namespace);
        let sent = state.pods.sent(pods.keys());
        let (mut nodes, mut unknown_nodes) = (HashMap::new(), BTreeSet::new());
        for name in pods.values().filter_map(|pod| pod.node()) {
            match state.nodes.get(name) {
                Some(node) => _ = nodes.insert(name.to_owned(), node),
                None => _ = unknown_nodes.insert(name.to_owned()),
            }
        }
        let overlapping = state.sets.overlapping(key);
        let sets = overlapping.iter().chain([key]).map(|key| &*key.name);
        let budgets = state.budgets.of(&key.namespace, sets);
        let valid = entry.valid.as_ref();
        let policy = valid.map_or(Ok(None), |valid| state.policies.of(&valid.set));
        let names = pods.values().map(|pod| pod.name());
        let requests = state.requests.of(&key.namespace, &key.name, names);
        Some(Snapshot {
            entry,
            pods,
            sent,
            overlapping,
            nodes,
            unknown_nodes,
            budgets,
            policy,
            requests,
        })
    }
}

impl State {
    /// The numbers of sets, of those with an invalid spec, and of pods.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        let (sets, invalid) = self.sets.counts();
        (sets, invalid, self.pods.len())
    }

    /// A set exists, was created or changed.
    pub(crate) fn apply_set(&mut self, object: SetObject) -> Changed {
        self.sets.apply(object)
    }

    /// A response or a read shows the set, which may be gone since.
    pub(crate) fn update_set(&mut self, object: SetObject) -> Changed {
        let known = self.sets.get(&object.key());
        let is_known = known.is_some_and(|known| Some(&known.uid) == object.metadata.uid.as_ref());
        if is_known {
            self.apply_set(object)
        } else {
            Changed::new()
        }
    }

    /// A read shows that the set with this uid is gone. Another one of its name may have been seen meanwhile.
    pub(crate) fn remove_set_of(&mut self, key: &SetKey, uid: &str) -> Changed {
        match self.sets.get(key) {
            Some(known) if known.uid == uid => self.sets.remove(key),
            _ => Changed::new(),
        }
    }

    /// The watch shows that a set is gone.
    pub(crate) fn remove_set(&mut self, key: &SetKey) -> Changed {
        self.sets.remove(key)
    }

    /// The watch shows that a pod exists, was created or changed.
    pub(crate) fn apply_pod(&mut self, pod: ObservedPod) -> Changed {
        let change = self.pods.apply(pod);
        self.concerned(&change)
    }

    /// A response to a request shows the pod.
    pub(crate) fn apply_response(&mut self, pod: ObservedPod) -> Changed {
        let change = self.pods.apply_response(pod);
        self.concerned(&change)
    }

    /// A read that began after all requests for the pod shows it.
    pub(crate) fn read_pod(&mut self, pod: ObservedPod) -> Changed {
        let change = self.pods.read(pod);
        self.concerned(&change)
    }

    /// Requests are sent, whose responses come until [`Self::end_requests`].
    pub(crate) fn begin_requests(&mut self) {
        self.pods.begin_requests();
    }

    /// All of them are answered, or given up.
    pub(crate) fn end_requests(&mut self) {
        self.pods.end_requests();
    }

    /// Whether the pod with this uid is known.
    pub(crate) fn has_pod(&self, uid: &str) -> bool {
        self.pods.has(uid)
    }

    /// The pod with this uid is gone.
    pub(crate) fn remove_pod(&mut self, uid: &str) -> Changed {
        let change = self.pods.remove(uid);
        self.concerned(&change)
    }

    /// The watch shows no more of the pod with this uid.
    pub(crate) fn end_pod(&mut self, uid: &str) -> Changed {
        let change = self.pods.end(uid);
        self.concerned(&change)
    }

    /// A request for a pod was sent, and its effect is not shown by its response.
    pub(crate) fn requested(&mut self, uid: &str, sent: Sent) {
        self.pods.requested(uid, sent);
    }

    /// A pod is not what is known of it, and could not be read.
    pub(crate) fn doubt(&mut self, uid: &str) {
        self.pods.doubt(uid);
    }

    /// A node exists, was created or changed.
    pub(crate) fn apply_node(&mut self, node: &ObservedNode) -> Changed {
        if self.nodes.apply(node) {
            self.on_node(node.name())
        } else {
            Changed::new()
        }
    }

    /// A node is gone.
    pub(crate) fn remove_node(&mut self, name: &str) -> Changed {
        if self.nodes.remove(name) {
            self.on_node(name)
        } else {
            Changed::new()
        }
    }

    /// A PodDisruptionBudget exists, was created or changed. It may concern every set of its namespace.
    pub(crate) fn apply_budget(&mut self, budget: ObservedBudget) -> Changed {
        let namespace = budget.namespace().to_owned();
        let owner = budget.set().map(str::to_owned);
        if !self.budgets.apply(budget) {
            return Changed::new();
        }
        match owner {
            Some(set) => Changed::from([SetKey::new(namespace, set)]),
            None => self.sets.in_namespace(&namespace),
        }
    }

    /// A PodDisruptionBudget is gone.
    pub(crate) fn remove_budget(&mut self, namespace: &str, name: &str) -> Changed {
        if self.budgets.remove(namespace, name) {
            self.sets.in_namespace(namespace)
        } else {
            Changed::new()
        }
    }

    pub(crate) fn sets_listing(&mut self) -> &mut Listing {
        &mut self.sets.listing
    }

    pub(crate) fn pods_listing(&mut self) -> &mut Listing {
        &mut self.pods.listing
    }

    pub(crate) fn nodes_listing(&mut self) -> &mut Listing {
        &mut self.nodes.listing
    }

    pub(crate) fn budgets_listing(&mut self) -> &mut Listing {
        &mut self.budgets.listing
    }

    /// The list of PodDisruptionBudgets is complete: those that it did not show are gone.
    pub(crate) fn end_budgets(&mut self, version: &str) -> Changed {
        let gone = self.budgets.unlisted(version).into_iter();
        gone.flat_map(|(namespace, name)| self.remove_budget(&namespace, &name))
            .collect()
    }

    /// The list of sets is complete: those that it did not show are gone.
    pub(crate) fn end_sets(&mut self, version: &str) -> Changed {
        let gone = self.sets.unlisted(version);
        gone.iter().flat_map(|key| self.sets.remove(key)).collect()
    }

    /// The list of pods is complete: those that it did not show are gone.
    pub(crate) fn end_pods(&mut self, version: &str) -> Changed {
        let gone = self.pods.unlisted(version);
        gone.iter().flat_map(|uid| self.end_pod(uid)).collect()
    }

    /// The list of nodes is complete: those that it did not show are gone.
    pub(crate) fn end_nodes(&mut self, version: &str) -> Changed {
        let gone = self.nodes.unlisted(version);
        gone.iter()
            .flat_map(|name| self.remove_node(name))
            .collect()
    }

    fn on_node(&self, node: &str) -> Changed {
        let controllers = self.pods.controllers_on(node);
        controllers
            .filter_map(|uid| self.sets.of_uid(uid).cloned())
            .collect()
    }

    /// The sets that the states of a pod before and after a change concern.
    fn concerned(&self, change: &Change) -> Changed {
        let states = change.iter().flatten();
        states.flat_map(|pod| self.sets.concerned(pod)).collect()
    }
}

#[cfg(test)]
mod tests;
