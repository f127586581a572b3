//! What the API server has, and had.

use std::collections::{BTreeMap, BTreeSet};

use fedrs_api::{MigrationPolicySpec, ValidMethod, ValidMigrationPolicy};
use serde_json::Value;
use sim_cluster::Change;
use tokio::time::Instant;

use super::{
    lag::Lag,
    pod::{Pod, controller, has_condition, uid},
    pod_change::{is_start, removes},
    set::Set,
};

/// All pods, nodes and sets, and how old what the controller sees of them may be.
#[derive(Debug, Default)]
pub(in crate::local) struct Observed {
    /// By uid, also those that are gone.
    pub(super) pods: BTreeMap<String, Pod>,
    /// By uid, also those that are gone.
    pub(super) sets: BTreeMap<String, Set>,
    /// Whether each node is ready, by its name.
    nodes: BTreeMap<String, bool>,
    /// The PodDisruptionBudgets: the set that each belongs to, and when its spec was written last, by name.
    pub(super) budgets: BTreeMap<String, (Option<String>, Instant)>,
    pub(in crate::local) lag: Lag,
    /// The policy of all sets.
    pub(super) policy: Option<ValidMigrationPolicy>,
    /// The nodes whose machines are destroyed.
    pub(in crate::local) destroyed: BTreeSet<String>,
}

impl Observed {
    /// All sets have this policy.
    pub(in crate::local) fn set_policy(&mut self, spec: &Value) {
        let spec: MigrationPolicySpec = serde_json::from_value(spec.clone()).unwrap();
        self.policy = ValidMigrationPolicy::check(&spec).ok();
    }

    /// Whether the sets have a policy.
    pub(in crate::local) fn has_policy(&self) -> bool {
        self.policy.is_some()
    }

    /// How many pods more than the replicas there may be of each set (M2).
    pub(super) fn most_copies(&self) -> usize {
        let method = self.policy.as_ref().map(|policy| policy.method);
        match method {
            Some(ValidMethod::Copy(copy)) => copy.max_at_once,
            _ => 0,
        }
    }

    /// Something has changed.
    pub(in crate::local) fn put(&mut self, change: &Change) {
        match &*change.kind.plural {
            "pods" => self.put_pod(change),
            "nodes" => self.put_node(change),
            "localreplicasets" => self.put_set(change),
            "poddisruptionbudgets" => self.put_budget(change),
            _ => {}
        }
    }

    fn put_pod(&mut self, change: &Change) {
        let Some(uid) = uid_of(change) else { return };
        let Some(object) = &change.new else {
            if let Some(pod) = self.pods.get_mut(&uid) {
                pod.remove();
            }
            return;
        };
        let pod = self.pods.entry(uid).or_insert_with(|| Pod::new(object));
        pod.put(change.old.as_deref(), object);
        let is_node_ready = self.nodes.get(&pod.node).copied().unwrap_or_default();
        pod.judge(is_node_ready);
    }

    fn put_node(&mut self, change: &Change) {
        let is_ready = change.new.as_deref();
        let is_ready = is_ready.is_some_and(|node| has_condition(node, "Ready"));
        if self.nodes.insert(change.name.clone(), is_ready) == Some(is_ready) {
            return;
        }
        let pods = self.pods.values_mut();
        for pod in pods.filter(|pod| pod.node == change.name) {
            pod.judge(is_ready);
        }
    }

    fn put_set(&mut self, change: &Change) {
        let Some(uid) = uid_of(change) else { return };
        let Some(object) = &change.new else {
            if let Some(set) = self.sets.get_mut(&uid) {
                set.remove();
            }
            return;
        };
        let set = self.sets.entry(uid).or_insert_with(|| Set::new(object));
        let before = std::mem::take(&mut set.record);
        set.put(object);
        let evictions = &set.record.evictions;
        for uid in before.evictions.keys().chain(evictions.keys()) {
            if let Some(pod) = self.pods.get_mut(uid) {
                pod.record_eviction(evictions.get(uid).is_some_and(|of| of.begun));
            }
        }
        // What begins or ends is not available in between, whatever the pod says.
        let uids = before.updates.keys().chain(before.evictions.keys());
        let uids = uids.chain(set.record.updates.keys());
        let uids: Vec<_> = uids
            .chain(set.record.evictions.keys())
            .filter(|uid| super::set::has_begun(&before, uid) != set.has_begun(uid))
            .cloned()
            .collect();
        for uid in uids {
            // That nothing takes the place of a pod which others have removed is recorded, too.
            let pod = self.pods.get_mut(&uid);
            if let Some(pod) = pod.filter(|pod| !pod.is_removed_by_others()) {
                pod.disrupt();
            }
        }
    }

    fn put_budget(&mut self, change: &Change) {
        let Some(object) = &change.new else {
            self.budgets.remove(&change.name);
            return;
        };
        let old = change.old.as_deref();
        if old.is_none_or(|old| old["spec"] != object["spec"]) {
            let owner = super::pod::controller(object).map(|(uid, _)| uid);
            self.budgets
                .insert(change.name.clone(), (owner, Instant::now()));
        }
    }

    /// The pods that the set controls or could adopt, also those that are gone.
    pub(super) fn pods_of<'a>(
        &'a self,
        uid: &'a str,
        set: &'a Set,
    ) -> impl Iterator<Item = (&'a str, &'a Pod)> {
        let pods = self.pods.iter();
        pods.filter(move |(_, pod)| pod.is_of(uid, &set.name))
            .map(|(uid, pod)| (&**uid, pod))
    }

    /// As [`pods_of`](Self::pods_of), with those that somebody has taken out of the set since then.
    pub(super) fn pods_lately_of<'a>(
        &'a self,
        uid: &'a str,
        set: &'a Set,
        since: Instant,
    ) -> impl Iterator<Item = (&'a str, &'a Pod)> {
        let pods = self.pods.iter();
        pods.filter(move |(_, pod)| pod.was_of(uid, &set.name, since))
            .map(|(uid, pod)| (&**uid, pod))
    }

    /// Whether the pod is ready now.
    pub(in crate::local) fn is_ready(&self, uid: &str) -> bool {
        self.pods.get(uid).is_some_and(Pod::is_ready_now)
    }

    /// Somebody has evicted a pod.
    pub(in crate::local) fn evicted(&mut self, uid: &str) {
        if let Some(pod) = self.pods.get_mut(uid) {
            pod.disrupt();
        }
    }

    /// The controller removes the pod.
    fn removed(&mut self, uid: &str) {
        if let Some(pod) = self.pods.get_mut(uid) {
            pod.is_removed_by_set = true;
        }
    }

    /// The controller has made this change, which was checked.
    pub(in crate::local) fn written(&mut self, change: &Change) {
        if let Some((set, pod)) = self.started(change) {
            self.start(&set, &pod);
        }
        if let Some(pod) = removes(change) {
            self.removed(&pod);
        }
    }

    /// The set whose update of the pod begins with this change, for the first time since it was recorded.
    fn started(&self, change: &Change) -> Option<(String, String)> {
        let object = change.old.as_ref()?;
        if change.kind.plural != "pods" {
            return None;
        }
        let (owner, _) = controller(object)?;
        let set = self.sets.get(&owner)?;
        let pod = uid(object);
        is_start(set, &pod, change).then_some((owner, pod))
    }

    /// An update of the pod begins to change it now.
    fn start(&mut self, set: &str, pod: &str) {
        if let Some(set) = self.sets.get_mut(set) {
            let now = Instant::now();
            let recorded = set.recorded.get(pod).copied().unwrap_or(now);
            set.starts.push((now, recorded));
            set.started.insert(pod.to_owned());
        }
    }
}

/// The uid of an object.
pub(super) fn uid_of(change: &Change) -> Option<String> {
    let object = change.new.as_ref().or(change.old.as_ref())?;
    Some(uid(object))
}
