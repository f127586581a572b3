//! MigrationPolicies and MigrationRequests: which sets they concern.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use controller_base::listing::Listing;
use fedrs_api::ValidMigrationPolicy;
use replica_set_controller::{Eviction, PodController};

use super::{Node, State};
use crate::{
    key::{Changed, SetKey},
    migration_object::{PolicyObject, RequestObject},
};

impl State {
    /// A MigrationPolicy exists, was created or changed.
    pub(crate) fn apply_policy(&mut self, object: &PolicyObject) -> Changed {
        if self.policies.apply(object) {
            self.sets.in_namespace(object.id().0)
        } else {
            Changed::new()
        }
    }

    /// A MigrationPolicy is gone.
    pub(crate) fn remove_policy(&mut self, namespace: &str, name: &str) -> Changed {
        if self.policies.remove(namespace, name) {
            self.sets.in_namespace(namespace)
        } else {
            Changed::new()
        }
    }

    /// A MigrationRequest exists, was created or changed.
    pub(crate) fn apply_request(&mut self, object: RequestObject) -> Changed {
        let news = self.requests.apply(object);
        news.iter()
            .flat_map(|request| self.sets_of(request))
            .collect()
    }

    /// A MigrationRequest is gone.
    pub(crate) fn remove_request(&mut self, namespace: &str, name: &str) -> Changed {
        let removed = self.requests.remove(namespace, name);
        removed.map_or_else(Changed::new, |request| self.sets_of(&request))
    }

    pub(crate) fn policies_listing(&mut self) -> &mut Listing {
        &mut self.policies.listing
    }

    pub(crate) fn requests_listing(&mut self) -> &mut Listing {
        &mut self.requests.listing
    }

    /// The list of MigrationPolicies is complete: those that it did not show are gone.
    pub(crate) fn end_policies(&mut self, version: &str) -> Changed {
        let gone = self.policies.unlisted(version).into_iter();
        gone.flat_map(|(namespace, name)| self.remove_policy(&namespace, &name))
            .collect()
    }

    /// The list of MigrationRequests is complete: those that it did not show are gone.
    pub(crate) fn end_requests_list(&mut self, version: &str) -> Changed {
        let gone = self.requests.unlisted(version).into_iter();
        gone.flat_map(|(namespace, name)| self.remove_request(&namespace, &name))
            .collect()
    }

    /// Whether there is a MigrationRequest of this name.
    pub(crate) fn has_request(&self, namespace: &str, name: &str) -> bool {
        self.requests.has(namespace, name)
    }

    /// All MigrationRequests.
    pub(crate) fn requests(&self) -> Vec<Arc<RequestObject>> {
        self.requests.all().map(Arc::clone).collect()
    }

    /// The MigrationRequest of this name.
    pub(crate) fn request(&self, namespace: &str, name: &str) -> Option<Arc<RequestObject>> {
        self.requests.get(namespace, name).cloned()
    }

    /// The MigrationRequests of pods of the same workload as that of `request`, with those that have ended; none if it is not known.
    pub(crate) fn of_workload(&self, request: &RequestObject) -> Vec<Arc<RequestObject>> {
        self.requests.of_workload(request)
    }

    /// The MigrationRequests that have not ended and are about no pod of a set.
    pub(crate) fn without_set(&self) -> Vec<Arc<RequestObject>> {
        let is_ours = |pod: &PodController<'_>| matches!(pod, PodController::Set(_));
        let mut names: Option<HashSet<(&str, &str)>> = None;
        let mut has_pod = |request: &RequestObject| {
            if let Some(uid) = request.pod_uid() {
                let pod = self.pods.get(uid);
                return pod.is_some_and(|pod| is_ours(&pod.controller()));
            }
            let names = names.get_or_insert_with(|| {
                let pods = self.pods.all().filter(|pod| is_ours(&pod.controller()));
                pods.map(|pod| (pod.namespace(), pod.name())).collect()
            });
            names.contains(&(request.id().0, request.pod_name()))
        };
        let has_set = |request: &RequestObject| {
            let (namespace, _) = request.id();
            let key = request.replica_set().map(|set| SetKey::new(namespace, set));
            key.is_some_and(|key| self.sets.get(&key).is_some())
        };
        let open = self.requests.all().filter(|of| of.ended().is_none());
        // Also of a pod that a set has taken over since.
        let mut is_outside = |request: &RequestObject| {
            request.workload().is_some() || (!has_set(request) && !has_pod(request))
        };
        let without = open.filter(|request| is_outside(request));
        without.map(Arc::clone).collect()
    }

    /// The first MigrationPolicy by name that selects a ReplicaSet with these labels.
    pub(crate) fn policy_for(
        &self,
        namespace: &str,
        labels: &BTreeMap<String, String>,
    ) -> Option<(String, Arc<ValidMigrationPolicy>)> {
        let (name, policy) = self.policies.first(namespace, labels)?;
        Some((name.to_owned(), Arc::clone(policy)))
    }

    /// Whether a node does not answer, or is gone.
    pub(crate) fn is_lost(&self, node: &str) -> bool {
        match self.nodes.get(node) {
            Some(Node::Exists(state)) => !state.is_ready,
            Some(Node::Gone) => true,
            None => false,
        }
    }

    /// A node, if the watch or a read has shown it.
    pub(crate) fn node(&self, name: &str) -> Option<Node> {
        self.nodes.get(name)
    }

    /// The nodes that have the label `fedrs.dev/evict`, and what it asks for.
    pub(crate) fn marked_nodes(&self) -> BTreeMap<String, Eviction> {
        let nodes = self.nodes.existing().into_iter();
        nodes
            .filter_map(|(name, state)| Some((name.to_owned(), state.mark?)))
            .collect()
    }

    /// Whether a node has the label `fedrs.dev/evict`, so that its pods have to leave.
    pub(crate) fn is_marked(&self, node: &str) -> bool {
        let node = self.nodes.get(node);
        matches!(node, Some(Node::Exists(state)) if state.mark.is_some())
    }

    /// The sets that a MigrationRequest concerns; all of its namespace if it names its pod by name only.
    fn sets_of(&self, request: &RequestObject) -> Changed {
        let (namespace, _) = request.id();
        if let Some(set) = request.replica_set() {
            return Changed::from([SetKey::new(namespace, set)]);
        }
        let Some(uid) = request.pod_uid() else {
            return self.sets.in_namespace(namespace);
        };
        match self
            .pods
            .get(uid)
            .map(replica_set_controller::ObservedPod::controller)
        {
            Some(PodController::Set(uid)) => self.sets.of_uid(uid).cloned().into_iter().collect(),
            _ => Changed::new(),
        }
    }
}
