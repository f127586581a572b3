//! What is known of one member: its pods, nodes and Services.

use std::{
    borrow::Borrow,
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use planted_bugs::{PlantedBug, is_planted};

use crate::{
    freshness::Freshness,
    kept::{KeptMember, KeptPods},
    node::Node,
    pod::{Pod, PodObject, Shared},
    services::Services,
};

/// The pods, nodes and Services of one member.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) name: Arc<str>,
    pods: Pods,
    /// Those that the list that is read, or the last one, did not have.
    unlisted: Pods,
    /// The zones of its nodes.
    zones: HashMap<Box<str>, Option<Arc<str>>>,
    /// How current its pods are.
    pub(crate) freshness: Freshness,
    pub(crate) services: Services,
    /// How many changes its pods and Services had since the start.
    pub(crate) revision: u64,
    /// Whether the list that is read has a pod that could not be decoded.
    is_list_unreadable: bool,
    /// Pods that were known, and are different in the list of another replica that is read, by namespace and name.
    deferred: BTreeMap<(Arc<str>, Box<str>), Arc<Pod>>,
}

/// Pods by namespace and name.
type Pods = BTreeMap<Arc<str>, BTreeSet<ByName>>;

/// A pod among those of its namespace. Its name is not kept twice.
#[derive(Clone, Debug)]
struct ByName(Arc<Pod>);

impl Borrow<str> for ByName {
    fn borrow(&self) -> &str {
        &self.0.name
    }
}

impl Ord for ByName {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.name.cmp(&other.0.name)
    }
}

impl PartialOrd for ByName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ByName {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ByName {}

/// Removes a pod, and returns it.
fn take(pods: &mut Pods, namespace: &str, name: &str) -> Option<Arc<Pod>> {
    let of_namespace = pods.get_mut(namespace)?;
    let ByName(pod) = of_namespace.take(name)?;
    if of_namespace.is_empty() {
        pods.remove(namespace);
    }
    Some(pod)
}

/// A pod that has changed: what it was, and what it is.
#[derive(Debug)]
pub(crate) struct PodChange {
    pub(crate) namespace: Arc<str>,
    pub(crate) before: Option<Arc<Pod>>,
    pub(crate) now: Option<Arc<Pod>>,
}

impl Member {
    pub(crate) fn new(name: Arc<str>) -> Self {
        Self {
            name,
            pods: Pods::new(),
            unlisted: Pods::new(),
            zones: HashMap::new(),
            freshness: Freshness::default(),
            services: Services::default(),
            revision: 0,
            is_list_unreadable: false,
            deferred: BTreeMap::new(),
        }
    }

    /// The pods of a namespace.
    pub(crate) fn pods(&self, namespace: &str) -> impl Iterator<Item = &Arc<Pod>> {
        let pods = self.pods.get(namespace).into_iter();
        pods.flatten().map(|ByName(pod)| pod)
    }

    /// The pod of this name.
    pub(crate) fn pod(&self, namespace: &str, name: &str) -> Option<&Arc<Pod>> {
        let ByName(pod) = self.pods.get(namespace)?.get(name)?;
        Some(pod)
    }

    /// The namespaces in which it has pods.
    pub(crate) fn namespaces(&self) -> impl Iterator<Item = &Arc<str>> {
        self.pods.keys()
    }

    /// Pods exist, which `read` makes for this member, and their namespaces. Returns what that changes now: pods that are in a list,
    /// and known, change with [`apply_deferred`](Self::apply_deferred), once the list is there as a whole, and with it those that
    /// serve in place of those that do not any more.
    ///
    /// # Errors
    /// Those of `read`: nothing has changed then.
    pub(crate) fn replicate<E>(
        &mut self,
        is_list: bool,
        read: impl FnOnce(&Arc<str>) -> Result<Vec<(Box<str>, Pod)>, E>,
    ) -> Result<Vec<PodChange>, E> {
        let pods = read(&self.name)?.into_iter();
        let changes = pods.filter_map(|(namespace, pod)| {
            let namespace = self.namespace(&namespace);
            let pod = Arc::new(pod);
            if is_list && self.defer(&namespace, &pod) {
                return None;
            }
            self.put(namespace, pod)
        });
        Ok(changes.collect())
    }

    /// Defers the change of a pod, if it is known.
    fn defer(&mut self, namespace: &Arc<str>, pod: &Arc<Pod>) -> bool {
        let Some(known) = self.pod(namespace, &pod.name) else {
            return false;
        };
        let is_known = known == pod;
        take(&mut self.unlisted, namespace, &pod.name);
        let key = (Arc::clone(namespace), pod.name.clone());
        if is_known {
            self.deferred.remove(&key);
        } else {
            self.deferred.insert(key, Arc::clone(pod));
        }
        true
    }

    /// The pods whose changes were deferred change now.
    pub(crate) fn apply_deferred(&mut self) -> Vec<PodChange> {
        let deferred = std::mem::take(&mut self.deferred).into_iter();
        let changes = deferred.filter_map(|((namespace, _), pod)| self.put(namespace, pod));
        changes.collect()
    }

    /// The one copy of the name of a namespace.
    fn namespace(&self, name: &str) -> Arc<str> {
        match self.pods.get_key_value(name) {
            Some((namespace, _)) => Arc::clone(namespace),
            None => name.into(),
        }
    }

    /// A pod exists, was created or changed. Returns what that changes.
    pub(crate) fn apply(&mut self, object: PodObject, shared: &mut Shared) -> Option<PodChange> {
        let namespace = self.namespace(&object.metadata.namespace);
        let name = object.metadata.name.clone();
        let node = self.node(&object.spec.node_name, shared);
        match object.into_pod(&self.name, node, shared) {
            Some(pod) => self.put(namespace, Arc::new(pod)),
            None => self.remove(&namespace, &name),
        }
    }

    fn put(&mut self, namespace: Arc<str>, pod: Arc<Pod>) -> Option<PodChange> {
        take(&mut self.unlisted, &namespace, &pod.name);
        if self.pod(&namespace, &pod.name) == Some(&pod) {
            return None;
        }
        let pods = self.pods.entry(Arc::clone(&namespace)).or_default();
        let before = pods.replace(ByName(Arc::clone(&pod)));
        Some(PodChange {
            namespace,
            before: before.map(|ByName(pod)| pod),
            now: Some(pod),
        })
    }

    /// A pod is gone, or has ended.
    pub(crate) fn remove(&mut self, namespace: &str, name: &str) -> Option<PodChange> {
        let namespace = self.namespace(namespace);
        take(&mut self.unlisted, &namespace, name);
        let before = take(&mut self.pods, &namespace, name)?;
        Some(PodChange {
            namespace,
            before: Some(before),
            now: None,
        })
    }

    /// The node of this name. Its zone is known once the node is.
    fn node(&self, name: &str, shared: &mut Shared) -> Option<Arc<Node>> {
        let zone = self.zones.get(name).cloned().flatten();
        let node = || Node {
            name: name.into(),
            zone,
        };
        (!name.is_empty()).then(|| shared.nodes.get(node()))
    }

    /// A node is gone. Its pods keep its zone until they are, too.
    pub(crate) fn remove_node(&mut self, name: &str) {
        self.zones.remove(name);
    }

    /// A node exists, was created or changed. Returns the pods whose zone that changes.
    pub(crate) fn apply_node(&mut self, node: Node, shared: &mut Shared) -> Vec<PodChange> {
        let before = self.zones.insert(node.name.clone(), node.zone.clone());
        if before.unwrap_or_default() == node.zone {
            return Vec::new();
        }
        let node = shared.nodes.get(node);
        let mut changes = Vec::new();
        for (namespace, pods) in &mut self.pods {
            let is_on_node = |ByName(pod): &&ByName| {
                let on = pod.node.as_ref();
                on.is_some_and(|on| on.name == node.name)
            };
            let on_node: Vec<_> = pods.iter().filter(is_on_node).cloned().collect();
            for ByName(before) in on_node {
                let now = Arc::new(Pod {
                    node: Some(Arc::clone(&node)),
                    ..Pod::clone(&before)
                });
                pods.replace(ByName(Arc::clone(&now)));
                changes.push(PodChange {
                    namespace: Arc::clone(namespace),
                    before: Some(before),
                    now: Some(now),
                });
            }
        }
        changes
    }

    /// A list of the pods begins.
    pub(crate) fn begin_list(&mut self) {
        self.is_list_unreadable = false;
        self.deferred.clear();
        self.unlisted = self.pods.clone();
    }

    /// The list that is read has a pod that can't be decoded: what is known of it stays.
    pub(crate) fn unreadable(&mut self) {
        self.is_list_unreadable = true;
    }

    /// The list is complete: pods that it does not have are gone.
    pub(crate) fn end_list(&mut self) -> Vec<PodChange> {
        self.freshness.listed();
        if self.is_list_unreadable || is_planted(PlantedBug::EndpointsKeptByRelist) {
            return Vec::new();
        }
        self.remove_unlisted()
    }

    /// Pods that the list does not have are gone.
    pub(crate) fn remove_unlisted(&mut self) -> Vec<PodChange> {
        let unlisted = std::mem::take(&mut self.unlisted).into_iter();
        let unlisted = unlisted.flat_map(|(namespace, pods)| {
            pods.into_iter().map(move |pod| (namespace.clone(), pod))
        });
        unlisted
            .filter_map(|(namespace, ByName(pod))| self.remove(&namespace, &pod.name))
            .collect()
    }

    /// A member as its snapshot has it. The zones of its nodes are known by its pods, until the nodes have been listed.
    pub(crate) fn loaded(member: KeptMember) -> Self {
        let mut zones = HashMap::new();
        for node in member.pods.iter().flat_map(|(_, pods)| nodes(pods)) {
            if !zones.contains_key(&node.name) {
                zones.insert(node.name.clone(), node.zone.clone());
            }
        }
        let freshness = Freshness::loaded(member.mark.current_at);
        let services = member.services;
        let services = services.map(|kept| Services::loaded(kept, freshness.clone()));
        let pods = member.pods.into_iter();
        let pods: Pods = pods
            .map(|(namespace, pods)| (namespace, pods.into_iter().map(ByName).collect()))
            .collect();
        Self {
            pods,
            zones,
            freshness,
            services: services.unwrap_or_default(),
            ..Self::new(member.name)
        }
    }

    /// All pods, for a snapshot.
    pub(crate) fn kept(&self) -> KeptPods {
        let pods = |pods: &BTreeSet<ByName>| {
            let pods = pods.iter();
            pods.map(|ByName(pod)| Arc::clone(pod)).collect()
        };
        let namespaces = self.pods.iter();
        namespaces
            .map(|(namespace, of)| (Arc::clone(namespace), pods(of)))
            .collect()
    }
}

/// The nodes of pods.
fn nodes(pods: &[Arc<Pod>]) -> impl Iterator<Item = &Arc<Node>> {
    pods.iter().filter_map(|pod| pod.node.as_ref())
}
