//! What is known of one member: its pods, nodes and Services.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use planted_bugs::{PlantedBug, is_planted};

use crate::{
    freshness::Freshness,
    kept::{KeptPods, LoadedMember},
    node::Node,
    pod::{Pod, PodObject, Shared},
    services::Services,
};

/// The pods, nodes and Services of one member.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) name: Arc<str>,
    /// By namespace and name.
    pods: BTreeMap<Arc<str>, BTreeMap<Box<str>, Kept>>,
    /// The zones of its nodes.
    zones: HashMap<Box<str>, Option<Arc<str>>>,
    shared: Shared,
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

#[derive(Debug)]
struct Kept {
    pod: Arc<Pod>,
    /// Whether the list that is read, or the last one, had it.
    is_listed: bool,
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
            pods: BTreeMap::new(),
            zones: HashMap::new(),
            shared: Shared::default(),
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
        pods.flat_map(BTreeMap::values).map(|kept| &kept.pod)
    }

    /// The pod of this name.
    pub(crate) fn pod(&self, namespace: &str, name: &str) -> Option<&Arc<Pod>> {
        let pods = self.pods.get(namespace)?;
        pods.get(name).map(|kept| &kept.pod)
    }

    /// The namespaces in which it has pods.
    pub(crate) fn namespaces(&self) -> impl Iterator<Item = &Arc<str>> {
        self.pods.keys()
    }

    /// Pods exist, which `read` makes with what the member's pods have in common, and their namespaces. Returns what that changes
    /// now: pods that are in a list, and known, change with [`apply_deferred`](Self::apply_deferred), once the list is there as a
    /// whole, and with it those that serve in place of those that do not any more.
    ///
    /// # Errors
    /// Those of `read`: nothing has changed then.
    pub(crate) fn replicate<E>(
        &mut self,
        is_list: bool,
        read: impl FnOnce(&Arc<str>, &mut Shared) -> Result<Vec<(Box<str>, Pod)>, E>,
    ) -> Result<Vec<PodChange>, E> {
        let pods = read(&self.name, &mut self.shared)?.into_iter();
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
        let pods = self.pods.get_mut(namespace);
        let Some(kept) = pods.and_then(|pods| pods.get_mut(&pod.name)) else {
            return false;
        };
        kept.is_listed = true;
        let key = (Arc::clone(namespace), pod.name.clone());
        if kept.pod == *pod {
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
    pub(crate) fn apply(&mut self, object: PodObject) -> Option<PodChange> {
        let namespace = self.namespace(&object.metadata.namespace);
        let name = object.metadata.name.clone();
        let node = self.node(&object.spec.node_name);
        match object.into_pod(&self.name, node, &mut self.shared) {
            Some(pod) => self.put(namespace, Arc::new(pod)),
            None => self.remove(&namespace, &name),
        }
    }

    fn put(&mut self, namespace: Arc<str>, pod: Arc<Pod>) -> Option<PodChange> {
        let pods = self.pods.entry(Arc::clone(&namespace)).or_default();
        if let Some(kept) = pods.get_mut(&pod.name) {
            kept.is_listed = true;
            if kept.pod == pod {
                return None;
            }
            let before = Some(std::mem::replace(&mut kept.pod, Arc::clone(&pod)));
            let now = Some(pod);
            return Some(PodChange {
                namespace,
                before,
                now,
            });
        }
        let kept = Kept {
            pod: Arc::clone(&pod),
            is_listed: true,
        };
        pods.insert(pod.name.clone(), kept);
        Some(PodChange {
            namespace,
            before: None,
            now: Some(pod),
        })
    }

    /// A pod is gone, or has ended.
    pub(crate) fn remove(&mut self, namespace: &str, name: &str) -> Option<PodChange> {
        let (namespace, _) = self.pods.get_key_value(namespace)?;
        let namespace = Arc::clone(namespace);
        let pods = self.pods.get_mut(&namespace)?;
        let before = Some(pods.remove(name)?.pod);
        if pods.is_empty() {
            self.pods.remove(&namespace);
        }
        Some(PodChange {
            namespace,
            before,
            now: None,
        })
    }

    /// The node of this name. Its zone is known once the node is.
    fn node(&mut self, name: &str) -> Option<Arc<Node>> {
        let zone = self.zones.get(name).cloned().flatten();
        let node = || Node {
            name: name.into(),
            zone,
        };
        (!name.is_empty()).then(|| self.shared.nodes.get(node()))
    }

    /// A node is gone. Its pods keep its zone until they are, too.
    pub(crate) fn remove_node(&mut self, name: &str) {
        self.zones.remove(name);
    }

    /// A node exists, was created or changed. Returns the pods whose zone that changes.
    pub(crate) fn apply_node(&mut self, node: Node) -> Vec<PodChange> {
        let before = self.zones.insert(node.name.clone(), node.zone.clone());
        if before.unwrap_or_default() == node.zone {
            return Vec::new();
        }
        let node = self.shared.nodes.get(node);
        let mut changes = Vec::new();
        for (namespace, pods) in &mut self.pods {
            for kept in pods.values_mut() {
                if (kept.pod.node.as_ref()).is_some_and(|of| of.name == node.name) {
                    let now = Arc::new(Pod {
                        node: Some(Arc::clone(&node)),
                        ..Pod::clone(&kept.pod)
                    });
                    let before = std::mem::replace(&mut kept.pod, Arc::clone(&now));
                    changes.push(PodChange {
                        namespace: Arc::clone(namespace),
                        before: Some(before),
                        now: Some(now),
                    });
                }
            }
        }
        changes
    }

    /// A list of the pods begins.
    pub(crate) fn begin_list(&mut self) {
        self.is_list_unreadable = false;
        self.deferred.clear();
        let pods = self.pods.values_mut().flat_map(BTreeMap::values_mut);
        pods.for_each(|kept| kept.is_listed = false);
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
        let mut gone = Vec::new();
        for (namespace, pods) in &self.pods {
            let unlisted = pods.values().filter(|kept| !kept.is_listed);
            gone.extend(unlisted.map(|kept| (Arc::clone(namespace), kept.pod.name.clone())));
        }
        let removed = gone.into_iter();
        removed
            .filter_map(|(namespace, name)| self.remove(&namespace, &name))
            .collect()
    }

    /// A member as its snapshot has it. The zones of its nodes are known by its pods, until the nodes have been listed.
    pub(crate) fn loaded(loaded: LoadedMember) -> Self {
        let LoadedMember { member, shared } = loaded;
        let mut zones = HashMap::new();
        for node in member.pods.iter().flat_map(|(_, pods)| nodes(pods)) {
            if !zones.contains_key(&node.name) {
                zones.insert(node.name.clone(), node.zone.clone());
            }
        }
        let unlisted = |pod: Arc<Pod>| {
            let is_listed = false;
            (pod.name.clone(), Kept { pod, is_listed })
        };
        let freshness = Freshness::loaded(member.mark.current_at);
        let services = member.services;
        let services = services.map(|kept| Services::loaded(kept, freshness.clone()));
        let pods = member.pods.into_iter();
        let pods = pods
            .map(|(namespace, pods)| (namespace, pods.into_iter().map(unlisted).collect()))
            .collect();
        Self {
            pods,
            zones,
            shared,
            freshness,
            services: services.unwrap_or_default(),
            ..Self::new(member.name)
        }
    }

    /// All pods, for a snapshot.
    pub(crate) fn kept(&self) -> KeptPods {
        let pods = |pods: &BTreeMap<_, Kept>| {
            let pods = pods.values();
            pods.map(|kept| Arc::clone(&kept.pod)).collect()
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
