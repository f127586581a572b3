//! The state of one member cluster: of all its namespaces together, or of each that is watched by itself.
//!
//! A failure in one namespace, such as a forbidden list, affects only the workloads in it.

mod view;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use fedrs_api::LocalKind;
use jiff::{SignedDuration, Timestamp};
use parking_lot::RwLock;
use tokio::sync::{Notify, watch};

use crate::{
    change::KeyedChange,
    health::{Health, HealthyProbes},
    nodes::{Changed, NodeTable},
    store::{Clock, HealthChange, MemberStore, Watch},
};

/// Which namespaces of a member cluster are watched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WatchScope {
    /// All, by one watch.
    #[default]
    All,
    /// These, each by a watch of its own.
    Namespaces(BTreeSet<String>),
}

/// What the workloads and pods of a member may take in memory: a third more than the most of usual ones do.
const MAX_BYTES: usize = 32 << 20;

/// What is known of one member cluster.
pub struct ClusterStore {
    /// Health, version and nodes; workloads and pods while all namespaces are watched together.
    whole: Arc<MemberStore>,
    /// The workloads and pods of each namespace that is watched by itself.
    parts: RwLock<Option<Parts>>,
    /// Notified when the nodes have to be confirmed.
    pub(crate) returned: Notify,
    /// Makes the watch of the nodes list again.
    pub(crate) relist_nodes: Arc<Notify>,
    /// Since when Deployments are watched.
    deployments: watch::Sender<Option<Timestamp>>,
    /// Since when LocalReplicaSets are watched.
    local_replica_sets: watch::Sender<Option<Timestamp>>,
}

/// The stores of the namespaces.
type Parts = BTreeMap<String, Arc<MemberStore>>;

impl ClusterStore {
    /// An empty store of all namespaces, not synced. A watch that fails for longer than `stale_after` makes the view stale.
    pub fn new(clock: Clock, stale_after: Duration) -> Self {
        Self {
            whole: Arc::new(MemberStore::new(clock, stale_after)),
            parts: RwLock::default(),
            returned: Notify::new(),
            relist_nodes: Arc::default(),
            deployments: watch::Sender::default(),
            local_replica_sets: watch::Sender::default(),
        }
    }

    /// Watches `scope` from now on. Returns the stores to fill, with their namespaces. What is known of a namespace that was
    /// watched before stays, and what was requested of any.
    pub(crate) fn set_scope(&self, scope: &WatchScope) -> Vec<(Option<String>, Arc<MemberStore>)> {
        let mut parts = self.parts.write();
        let WatchScope::Namespaces(names) = scope else {
            let before = parts.take();
            if before.is_some() {
                self.whole.begin_watch();
            }
            for store in before.unwrap_or_default().values() {
                store.move_requests(&self.whole, None);
            }
            return vec![(None, Arc::clone(&self.whole))];
        };
        let mut before = parts.take().unwrap_or_else(|| {
            self.whole.forget_objects();
            Parts::new()
        });
        let now: Parts = names
            .iter()
            .map(|name| {
                let store = before.remove(name).unwrap_or_else(|| {
                    let store = Arc::new(self.whole.part());
                    self.whole.move_requests(&store, Some(name));
                    store
                });
                (name.clone(), store)
            })
            .collect();
        for store in before.values() {
            store.move_requests(&self.whole, None);
        }
        let stores = now.iter();
        let stores = stores.map(|(name, store)| (Some(name.clone()), Arc::clone(store)));
        let stores = stores.collect();
        *parts = Some(now);
        stores
    }

    /// Takes over the requests of the store that the member had before: they may be carried out whoever watches.
    pub fn take_requests_of(&self, former: &Self) {
        former.whole.move_requests(&self.whole, None);
        for store in former.parts.read().iter().flat_map(Parts::values) {
            store.move_requests(&self.whole, None);
        }
        for (name, store) in self.parts.read().iter().flatten() {
            self.whole.move_requests(store, Some(name));
        }
    }

    /// The stores that watches fill.
    fn watched(&self) -> Vec<Arc<MemberStore>> {
        match &*self.parts.read() {
            Some(parts) => parts.values().cloned().collect(),
            None => vec![Arc::clone(&self.whole)],
        }
    }

    /// The store of a namespace; none if it is not watched.
    fn of(&self, namespace: &str) -> Option<Arc<MemberStore>> {
        match &*self.parts.read() {
            Some(parts) => parts.get(namespace).cloned(),
            None => Some(Arc::clone(&self.whole)),
        }
    }

    /// All stores: the first has the health of the cluster.
    fn all(&self) -> Vec<Arc<MemberStore>> {
        let parts = self.parts.read();
        let parts = parts.iter().flat_map(BTreeMap::values);
        [&self.whole].into_iter().chain(parts).cloned().collect()
    }

    /// Since when workloads of this kind are watched; `None` of one that always is.
    pub(crate) fn asked_for(&self, kind: LocalKind) -> Option<&watch::Sender<Option<Timestamp>>> {
        match kind {
            LocalKind::ReplicaSet => None,
            LocalKind::Deployment => Some(&self.deployments),
            LocalKind::LocalReplicaSet => Some(&self.local_replica_sets),
        }
    }

    /// The number of objects that the watches of a kind have brought.
    pub(crate) fn size(&self, watch: Watch) -> usize {
        self.watched().iter().map(|store| store.size(watch)).sum()
    }

    /// The age of the view, while it is stale.
    pub(crate) fn staleness(&self) -> SignedDuration {
        let stores = self.watched();
        let ages = stores.iter().map(|store| store.staleness());
        ages.max().unwrap_or_default()
    }

    pub(crate) fn clock(&self) -> &Clock {
        self.whole.clock()
    }

    /// Whether the member has more objects than it may have, or larger ones, in all namespaces together.
    pub(crate) fn is_full(&self, watch: Watch) -> bool {
        let stores = self.watched();
        let size: usize = stores.iter().map(|store| store.size(watch)).sum();
        let bytes: usize = stores.iter().map(|store| store.bytes()).sum();
        let is_full = |store: &Arc<MemberStore>| store.is_full(watch);
        size >= watch.limit() || bytes >= MAX_BYTES || stores.iter().any(is_full)
    }

    /// Whether the member has as many nodes as it may have.
    pub(crate) fn has_all_nodes(&self) -> bool {
        self.whole.has_all_nodes()
    }

    /// Whether the kind of the sync state of any namespace has changed since the last call.
    pub(crate) fn take_sync_change(&self) -> bool {
        let stores = self.watched().into_iter();
        let changed = stores.filter(|store| store.take_sync_change());
        changed.count() > 0
    }

    /// The client may reach another cluster from now on.
    pub(crate) fn invalidate(&self) {
        for store in self.all() {
            store.invalidate();
        }
    }

    pub(crate) fn set_version(&self, version: String) {
        self.whole.set_version(version);
    }

    /// Changes the nodes. Returns what changed for which workload, and whether the state of the member itself has changed.
    pub(crate) fn change_nodes(
        &self,
        change: impl FnOnce(&mut NodeTable, Timestamp) -> Changed,
    ) -> (Vec<KeyedChange>, bool) {
        self.whole.change_nodes(&self.all(), change)
    }

    /// Sets the result of a probe. If the member returns, what is known dates from before the outage, and is listed again (F39).
    pub(crate) fn set_health(&self, health: &Health) -> HealthChange {
        let was_unreachable = matches!(self.whole.health(), Health::Unreachable { .. });
        let change = self.whole.set_health(health.clone());
        let returned = HealthChange::Returned { is_current: false };
        if change == returned || change != HealthChange::Unchanged && was_unreachable {
            self.change_nodes(|nodes, _| nodes.begin_confirmation());
        }
        if matches!(change, HealthChange::Returned { .. }) {
            self.invalidate();
            self.relist_all();
            self.returned.notify_one();
        }
        change
    }

    /// The healthy results of the probe.
    pub(crate) fn healthy_probes(&self) -> HealthyProbes {
        self.whole.healthy_probes()
    }

    /// Lists everything again.
    pub(crate) fn relist_all(&self) {
        for store in self.watched() {
            store.relist();
        }
        self.relist_nodes.notify_one();
    }
}

impl fmt::Debug for ClusterStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterStore").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

    use fedrs_api::WorkloadKey;
    use serde_json::json;

    use super::*;
    use crate::MemberView;

    #[test]
    fn s5_the_namespaces_of_a_member_share_its_nodes() {
        let clock = Arc::new(|| Timestamp::from_second(1000).unwrap());
        let store = ClusterStore::new(clock, Duration::from_secs(30));
        let scope = |names: &[&str]| {
            let names = names.iter().map(|&name| name.to_owned());
            WatchScope::Namespaces(names.collect())
        };
        let stores = store.set_scope(&scope(&["shop", "blog"]));
        for (namespace, part) in &stores {
            let namespace = namespace.as_deref().unwrap();
            let pod = json!({
                "metadata": {
                    "uid": namespace, "namespace": namespace, "resourceVersion": "1",
                    "ownerReferences": [{ "uid": namespace, "controller": true }],
                },
                "spec": { "nodeName": "n" },
                "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
            });
            part.apply_pod(serde_json::from_value(pod).unwrap());
            let set = json!({
                "metadata": { "uid": namespace, "namespace": namespace, "name": "web", "resourceVersion": "1" },
                "spec": {},
            });
            part.apply_workload(serde_json::from_value(set).unwrap());
        }
        let ready = |namespace| {
            store
                .workload(&WorkloadKey::new(namespace, "web"))
                .pods
                .ready
        };
        assert_eq!((ready("shop"), ready("blog")), (1, 1));
        let is_ready = |ready: &str| {
            let conditions = json!([{ "type": "Ready", "status": ready }]);
            let node =
                json!({ "metadata": { "name": "n" }, "status": { "conditions": conditions } });
            let node = serde_json::from_value(node).unwrap();
            store.change_nodes(|nodes, now| nodes.apply(&node, now)).0
        };
        assert_eq!(is_ready("True").len(), 0);
        assert_eq!(is_ready("False").len(), 2);
        assert_eq!((ready("shop"), ready("blog")), (0, 0));
        drop(stores);
        store.set_scope(&scope(&["shop"]));
        assert_eq!(is_ready("True").len(), 1);
        store.set_scope(&WatchScope::All);
        store.change_nodes(|nodes, _| nodes.delete("n"));
        assert_eq!(is_ready("False").len(), 0);
        assert!(!store.has_all_nodes());
    }

    #[test]
    fn f20_what_was_requested_stays_when_other_namespaces_are_watched() {
        let clock = Arc::new(|| Timestamp::from_second(1000).unwrap());
        let store = ClusterStore::new(clock, Duration::from_secs(30));
        let key = WorkloadKey::new("shop", "web");
        let show = || show_web(&store);
        show();
        store.observe_scale(&key, "a", 1, 2);
        store.observe_scale(&key, "a", 1, 7);
        let shop = ["shop".to_owned()];
        let blog = ["blog".to_owned()];
        for scope in [
            WatchScope::Namespaces(shop.clone().into()),
            WatchScope::Namespaces(blog.into()),
            WatchScope::Namespaces(shop.into()),
            WatchScope::All,
        ] {
            store.set_scope(&scope);
            if store.of("shop").is_some() {
                show();
                let set = store.workload(&key).workload.unwrap();
                assert_eq!(
                    (set.lowest_replicas, set.open_scale_up),
                    (2, Some(7)),
                    "{scope:?}"
                );
            }
        }
    }

    fn show_web(store: &ClusterStore) {
        let set = json!({
            "metadata": { "uid": "a", "namespace": "shop", "name": "web", "resourceVersion": "1", "generation": 1 },
            "spec": { "replicas": 5 },
        });
        let part = store.of("shop").unwrap();
        part.apply_workload(serde_json::from_value(set).unwrap());
    }

    /// Its kubeconfig was removed, and is there again.
    #[test]
    fn f20_what_was_requested_stays_when_a_member_returns() {
        let clock = Arc::new(|| Timestamp::from_second(1000).unwrap());
        let new = || ClusterStore::new(Arc::clone(&clock) as _, Duration::from_secs(30));
        let key = WorkloadKey::new("shop", "web");
        let only_shop = WatchScope::Namespaces(["shop".to_owned()].into());
        let scopes = [WatchScope::All, only_shop];
        for (before, after) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let former = new();
            former.set_scope(&scopes[before]);
            show_web(&former);
            former.observe_scale(&key, "a", 1, 2);
            let store = new();
            store.set_scope(&scopes[after]);
            store.take_requests_of(&former);
            show_web(&store);
            let set = store.workload(&key).workload.unwrap();
            assert_eq!(set.lowest_replicas, 2, "{before} {after}");
        }
    }

    #[test]
    fn f33_what_a_member_shows_when_it_answers_again_is_not_believed() {
        let (since, message) = (Timestamp::from_second(900).unwrap(), String::new());
        let failing = Health::Failing {
            since,
            message: message.clone(),
        };
        let refuses = Health::Unauthorized { message };
        // Each of them for so many seconds.
        for (healths, seconds, believed) in [
            (&[][..], 10, true),
            (&[&failing], 10, false),
            (&[&refuses], 60, false),
            (&[&failing, &refuses], 10, false),
            (&[&Health::Healthy, &failing], 10, true),
            // An API server that starts, after an outage that was too short to be one.
            (&[&Health::Healthy, &failing, &refuses], 59, false),
            // The node controller has run meanwhile.
            (&[&Health::Healthy, &failing, &refuses], 60, true),
            (&[&Health::Healthy, &refuses, &failing], 60, false),
        ] {
            let time = Arc::new(AtomicI64::new(1000));
            let clock = Arc::clone(&time);
            let clock = Arc::new(move || Timestamp::from_second(clock.load(Relaxed)).unwrap());
            let store = ClusterStore::new(clock, Duration::from_secs(30));
            let conditions = json!([{ "type": "Ready", "status": "True" }]);
            let node =
                json!({ "metadata": { "name": "n" }, "status": { "conditions": conditions } });
            let node = serde_json::from_value(node).unwrap();
            store.change_nodes(|nodes, now| nodes.apply(&node, now));
            for health in healths.iter().chain([&&Health::Healthy]) {
                store.set_health(health);
                time.fetch_add(seconds, Relaxed);
            }
            let nodes = store.cluster_info().nodes;
            assert_eq!(
                !nodes.none_is_confirmed(),
                believed,
                "{healths:?} {seconds}"
            );
        }
    }

    /// A kind from the first question on, a namespace from its turn on.
    #[test]
    fn f23_the_first_lists_are_waited_for_from_when_they_are_needed() {
        let time = Arc::new(AtomicI64::new(1000));
        let clock = Arc::clone(&time);
        let clock = Arc::new(move || Timestamp::from_second(clock.load(Relaxed)).unwrap());
        let store = ClusterStore::new(clock, Duration::from_secs(30));
        let since = |kind, namespace: &str| {
            let key = WorkloadKey::new(namespace, "web").with_kind(kind);
            let since = store.watched_since(&key);
            since.map(Timestamp::as_second)
        };
        let [replica_set, deployment] = [LocalKind::ReplicaSet, LocalKind::Deployment];
        time.store(1010, Relaxed);
        assert_eq!(since(replica_set, "shop"), Some(1000));
        assert_eq!(since(deployment, "shop"), None);
        store.watch(deployment);
        time.store(1020, Relaxed);
        store.watch(deployment);
        assert_eq!(since(deployment, "shop"), Some(1010));
        store.set_scope(&WatchScope::Namespaces(["shop".to_owned()].into()));
        for kind in [replica_set, deployment] {
            assert_eq!(
                [since(kind, "shop"), since(kind, "blog")],
                [Some(1020), None]
            );
        }
        time.store(1030, Relaxed);
        store.set_scope(&WatchScope::All);
        assert_eq!(since(deployment, "blog"), Some(1030));
    }

    /// An API server that starts rejects the credentials first, then it is not ready.
    #[test]
    fn f33_a_member_has_returned_whatever_its_api_server_says_while_it_starts() {
        let store = ClusterStore::new(
            Arc::new(|| Timestamp::from_second(1000).unwrap()),
            Duration::from_secs(30),
        );
        let (since, message) = (Timestamp::from_second(900).unwrap(), String::new());
        let unreachable = Health::Unreachable {
            since,
            message: message.clone(),
        };
        let refuses = Health::Unauthorized {
            message: message.clone(),
        };
        let failing = Health::Failing { since, message };
        let (changed, returned) = (
            HealthChange::Changed,
            HealthChange::Returned { is_current: false },
        );
        for (healths, wanted) in [
            (vec![&failing, &refuses, &Health::Healthy], returned),
            (vec![&failing, &Health::Healthy], changed),
            (vec![&failing, &unreachable, &Health::Healthy], returned),
            (
                vec![&unreachable, &refuses, &failing, &Health::Healthy],
                returned,
            ),
            (vec![&refuses, &failing, &Health::Healthy], returned),
            (vec![&failing, &Health::Healthy], changed),
        ] {
            let changes = healths.iter().map(|health| store.set_health(health));
            assert_eq!(changes.last(), Some(wanted), "{healths:?}");
        }
    }
}
