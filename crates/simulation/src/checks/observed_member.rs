//! What has been observed of one member, over time.

use std::collections::{BTreeMap, BTreeSet};

use sim_cluster::{Api, Change, Object, kinds};
use tokio::time::Instant;

use fedrs_api::SetKind;

use super::{
    local_set::{LocalSet, is_labeled},
    visibility::Visibility,
};
use crate::{history::History, set_kind, sim_federation::NAMESPACE};

/// A member over time.
pub(super) struct ObservedMember {
    pub(super) visibility: Visibility,
    /// Whether each node is ready; those that have not changed yet are.
    pub(super) nodes: BTreeMap<String, bool>,
    /// When one of them was last ready again while none was.
    pub(super) nodes_returned: Option<Instant>,
    /// Nodes without power, whose pods do not run, whatever their status says.
    pub(super) nodes_without_power: BTreeSet<String>,
    /// Nodes that have failed: no controller of the member may have noticed.
    pub(super) failed_nodes: BTreeSet<String>,
    /// When the first of those without power, or of the last ones, lost it.
    pub(super) power_lost_at: Option<Instant>,
    /// The pods of sets, by name.
    pods: BTreeMap<String, ObservedPod>,
    /// The uids of the ReplicaSets of Deployments, with that of their Deployment.
    owners: BTreeMap<String, String>,
    /// When its MemberCluster was last created, edited or deleted.
    pub(super) edited: Instant,
    /// Whether its MemberCluster closes it to the sets: cordoned, drained, or for other namespaces.
    pub(super) is_closed: History<bool>,
    /// Whether its MemberCluster drains it.
    pub(super) is_drained: History<bool>,
    /// When the controller last listed its ReplicaSets and its pods.
    pub(super) listed: [Option<Instant>; 2],
    /// When the controller last listed its Deployments.
    pub(super) deployments_listed: Option<Instant>,
    /// When it was last restored from a backup.
    pub(super) restored: Option<Instant>,
    /// By set.
    pub(super) local: BTreeMap<String, LocalSet>,
}

pub(super) struct ObservedPod {
    /// The uid of the ReplicaSet that owns it.
    owner: String,
    node: String,
    is_ready: bool,
    /// Whether it has the label of fedrs, without which the controller does not see it.
    is_labeled: bool,
}

impl ObservedMember {
    /// A member without objects.
    pub(super) fn new(sets: &[(&str, SetKind)]) -> Self {
        Self {
            visibility: Visibility::default(),
            nodes: BTreeMap::new(),
            nodes_returned: None,
            nodes_without_power: BTreeSet::new(),
            failed_nodes: BTreeSet::new(),
            power_lost_at: None,
            pods: BTreeMap::new(),
            owners: BTreeMap::new(),
            edited: Instant::now(),
            is_closed: History::starting(false),
            is_drained: History::starting(false),
            listed: [None; 2],
            deployments_listed: None,
            restored: None,
            local: sets
                .iter()
                .map(|&(set, kind)| (set.to_owned(), LocalSet::new(kind)))
                .collect(),
        }
    }

    /// Records its MemberCluster.
    pub(super) fn put(&mut self, object: Option<&Object>) {
        self.is_closed.put(object.is_some_and(is_closed));
        let is_drained = |object: &Object| object["spec"]["drain"] == true;
        self.is_drained.put(object.is_some_and(is_drained));
    }

    /// It has the objects that its API server shows, and no others.
    pub(super) fn restored(&mut self, api: &Api) {
        self.restored = Some(Instant::now());
        let named = |object: Object| (crate::name_of(&object), object);
        for (name, local) in &mut self.local {
            let set = api.get(set_kind::local(local.kind), NAMESPACE, name);
            local.put(set.ok().as_ref());
            local.forget_in_flight();
            // Also where the controller wrote last what it has now: that was earlier.
            local.edited = Some(Instant::now());
        }
        let sets = api.list(&kinds::REPLICA_SETS, Some(NAMESPACE)).into_iter();
        self.owners = sets.filter_map(|set| owner_of(&set)).collect();
        let nodes = api.list(&kinds::NODES, None).into_iter().map(named);
        self.nodes = nodes
            .map(|(name, node)| (name, is_ready_node(&node)))
            .collect();
        let pods = api.list(&kinds::PODS, Some("default")).into_iter();
        let pods = pods.map(named);
        self.pods = pods
            .filter_map(|(name, pod)| Some((name, observed_pod(&pod)?)))
            .collect();
        self.count();
    }

    /// Records a change. Whether the pods of a set that run are other ones.
    pub(super) fn changed(&mut self, change: &Change) -> bool {
        if change.kind == *kinds::REPLICA_SETS {
            let set = change.new.as_ref().or(change.old.as_ref());
            let owner = set.and_then(owner_of);
            self.owners.extend(owner);
        }
        if [&*kinds::REPLICA_SETS, &*kinds::DEPLOYMENTS].contains(&&change.kind) {
            let local = self.local.get_mut(&change.name);
            if let Some(local) = local.filter(|local| *set_kind::local(local.kind) == change.kind) {
                local.put(change.new.as_ref());
                if is_new_generation(change) {
                    // Their preconditions fail.
                    local.forget_in_flight();
                }
            }
            // The pods of a ReplicaSet that is gone are not those of the next one.
            return self.count();
        }
        if change.kind == *kinds::NODES {
            let had_ready = self.has_ready_nodes();
            self.nodes.remove(&change.name);
            let ready = change.new.as_ref().map(is_ready_node);
            let entry = ready.map(|ready| (change.name.clone(), ready));
            self.nodes.extend(entry);
            if !had_ready && self.has_ready_nodes() {
                self.nodes_returned = Some(Instant::now());
            }
            return self.count();
        }
        if change.kind != *kinds::PODS {
            return false;
        }
        match change.new.as_ref().and_then(observed_pod) {
            Some(pod) => {
                self.pods.insert(change.name.clone(), pod);
            }
            None => {
                self.pods.remove(&change.name);
            }
        }
        self.count()
    }

    /// Whether replicas can run in it.
    pub(super) fn has_ready_nodes(&self) -> bool {
        self.nodes.is_empty() || self.nodes.values().any(|ready| *ready)
    }

    /// Counts the pods that run. Whether there are others than before.
    pub(super) fn count(&mut self) -> bool {
        let mut changed = false;
        for local in self.local.values_mut() {
            let placed = self.pods.values().filter(|pod| {
                (pod.owner == local.uid || self.owners.get(&pod.owner) == Some(&local.uid))
                    && !pod.node.is_empty()
            });
            let (mut pods, mut ready, mut reported) = (0, 0, 0);
            for pod in placed {
                reported += u64::from(pod.is_ready);
                if self.nodes_without_power.contains(&pod.node) {
                    continue;
                }
                let works = self.nodes.get(&pod.node) != Some(&false)
                    && !self.failed_nodes.contains(&pod.node);
                let is_seen = pod.is_labeled && works;
                pods += u64::from(is_seen);
                ready += u64::from(pod.is_ready);
            }
            local.reported_ready.put(reported);
            changed |= ready != *local.ready.now();
            local.ready.put(ready);
            local.placed.put(pods);
            local.compare();
        }
        changed
    }
}

/// Whether a user or a controller has changed more than the status of an object.
pub(super) fn is_new_generation(change: &Change) -> bool {
    let generation = |object: &Object| object["metadata"]["generation"].as_i64();
    change.old.as_ref().map(generation) != change.new.as_ref().map(generation)
}

fn is_ready_node(node: &Object) -> bool {
    let conditions = node["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// The uid of a ReplicaSet and that of its Deployment, if it has one.
fn owner_of(set: &Object) -> Option<(String, String)> {
    let uid = |object: &serde_json::Value| Some(object["uid"].as_str()?.to_owned());
    let metadata = &set["metadata"];
    let owner = &metadata["ownerReferences"][0];
    (owner["kind"] == "Deployment").then_some(())?;
    Some((uid(metadata)?, uid(owner)?))
}

/// A pod of a set that is not terminating.
fn observed_pod(pod: &Object) -> Option<ObservedPod> {
    let metadata = &pod["metadata"];
    let owner = &metadata["ownerReferences"][0];
    let set = crate::set_of(pod)?;
    if metadata.get("deletionTimestamp").is_some() {
        return None;
    }
    Some(ObservedPod {
        owner: owner["uid"].as_str()?.to_owned(),
        node: pod["spec"]["nodeName"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        is_ready: crate::ready_pods::is_ready(pod, set),
        is_labeled: is_labeled(pod),
    })
}

/// Whether a MemberCluster takes no replicas of the sets.
fn is_closed(member: &Object) -> bool {
    let spec = &member["spec"];
    let names = spec["namespaces"]["names"].as_array();
    let takes = names.is_none_or(|names| names.iter().any(|name| name == NAMESPACE));
    spec["unschedulable"] == true || spec["drain"] == true || !takes
}
