//! Passes the events of the reflectors to the store, and the changes to the [`ChangeHandler`].

use std::sync::Arc;

use fedrs_api::{LocalKind, WorkloadKey};
use jiff::Timestamp;
use reflector::{Error, ErrorKind, EventHandler, InvalidObject, ResourceVersion, Uid};
use tracing::{debug, info};

use crate::{
    change::{ChangeHandler, KeyedChange, WorkloadChange},
    cluster_info::NodeObject,
    cluster_store::ClusterStore,
    deployment::DeploymentObject,
    health::Health,
    local_replica_set::LocalReplicaSetObject,
    member_view::MemberView,
    metrics::WatchMetrics,
    nodes::{Changed, NodeTable},
    pod::PodObject,
    replica_set::ReplicaSetObject,
    server_clock::ServerClock,
    store::{HealthChange, MemberStore, Watch},
    workload::WorkloadState,
};

/// Reports the changes of one member cluster.
#[derive(Clone)]
pub(crate) struct Notifier {
    pub(crate) cluster: Arc<str>,
    pub(crate) store: Arc<ClusterStore>,
    pub(crate) handler: Arc<dyn ChangeHandler>,
}

impl Notifier {
    fn workload_change(&self, key: &WorkloadKey, change: WorkloadChange) {
        self.handler.on_workload_change(&self.cluster, key, change);
    }

    /// Sets the result of a probe.
    pub(crate) fn set_health(&self, health: &Health) -> HealthChange {
        let change = self.store.set_health(health);
        if change != HealthChange::Unchanged {
            info!(%health, "health of the member changed");
            self.handler.on_cluster_change(&self.cluster);
        }
        change
    }

    /// Changes the nodes, and reports the changes of workloads and of the member.
    pub(crate) fn change_nodes(&self, change: impl FnOnce(&mut NodeTable, Timestamp) -> Changed) {
        let (workloads, is_news) = self.store.change_nodes(change);
        for (key, change) in workloads {
            self.workload_change(&key, change);
        }
        if is_news {
            self.handler.on_cluster_change(&self.cluster);
        }
    }

    /// Reports the sync state if it has changed.
    pub(crate) fn check_sync_state(&self) {
        if self.store.take_sync_change() {
            info!(sync_state = %self.store.sync_state(), "view of the member changed");
            self.handler.on_cluster_change(&self.cluster);
        }
    }
}

/// Whether the controller lacks a permission, or an API server that starts rejects everything because it knows none yet: also the
/// probe, unless it was restarted between two of them. So a rejection counts if the probe has succeeded since the first one.
#[derive(Debug, Default)]
pub(crate) struct Rejections {
    /// The number of healthy probes at the first of the rejections in a row.
    first: Option<u64>,
}

impl Rejections {
    /// A request has failed. Whether the permission for it is missing.
    pub(crate) fn counts(&mut self, error: &Error, store: &ClusterStore) -> bool {
        if error.code() != Some(403) || store.health() != Health::Healthy {
            self.end();
            return false;
        }
        let probes = store.healthy_probes();
        let first = self.first.filter(|first| !probes.have_ended_since(*first));
        let first = *self.first.insert(first.unwrap_or(probes.total()));
        first < probes.total()
    }

    /// A request has succeeded, or has failed otherwise.
    pub(crate) fn end(&mut self) {
        self.first = None;
    }
}

/// Handles the events of the nodes.
///
/// A silent watch of nodes is reopened like any other, but the view of the member does not depend on it: a node only lowers
/// the count of ready pods, and the pods of a dead node become not ready by themselves.
pub(crate) struct NodeHandler {
    pub(crate) notifier: Notifier,
    pub(crate) clock: ServerClock,
    rejections: Rejections,
}

impl NodeHandler {
    pub(crate) fn new(notifier: Notifier) -> Self {
        Self {
            notifier,
            clock: ServerClock::default(),
            rejections: Rejections::default(),
        }
    }

    fn change(&self, change: impl FnOnce(&mut NodeTable, Timestamp) -> Changed) {
        self.notifier.change_nodes(change);
    }
}

impl EventHandler<NodeObject> for NodeHandler {
    fn on_init(&mut self) {
        self.change(|nodes, _| {
            nodes.begin_list();
            Changed::new()
        });
    }

    fn on_page(&mut self, date: Option<&str>) {
        self.clock.begin_page(date);
    }

    fn on_apply(&mut self, node: NodeObject) {
        self.change(|nodes, now| nodes.apply(&node, self.clock.began(node.since(), now)));
    }

    fn on_delete(&mut self, node: NodeObject) {
        self.change(|nodes, _| nodes.delete(&node.metadata.name));
    }

    fn on_init_done(&mut self, _resource_version: &str) {
        self.rejections.end();
        self.clock.end_list();
        self.change(|nodes, _| nodes.end_list());
    }

    fn on_error(&mut self, error: &Error) {
        debug!(%error, "watch of nodes failed");
        let lacks_permission = self.rejections.counts(error, &self.notifier.store);
        // Without the permission to watch them, nothing would update what a list showed.
        if lacks_permission || matches!(error.kind, ErrorKind::TooManyObjects) {
            self.change(|nodes, _| nodes.forbid());
        }
    }

    fn is_full(&self) -> bool {
        self.notifier.store.has_all_nodes()
    }
}

/// Handles the events of one watch.
pub(crate) struct WatchHandler {
    pub(crate) watch: Watch,
    pub(crate) store: Arc<MemberStore>,
    pub(crate) notifier: Notifier,
    pub(crate) metrics: WatchMetrics,
}

impl WatchHandler {
    fn report(&self, changes: impl IntoIterator<Item = KeyedChange>) {
        for (key, change) in changes {
            self.notifier.workload_change(&key, change);
        }
        self.metrics
            .set_objects(self.notifier.store.size(self.watch));
    }
}

impl<T: WatchedObject> EventHandler<T> for WatchHandler {
    fn on_init(&mut self) {
        self.metrics.lists.inc();
        self.store.begin_list(self.watch);
        self.notifier.check_sync_state();
    }

    fn on_page(&mut self, date: Option<&str>) {
        self.store.begin_page(self.watch, date);
    }

    fn on_apply(&mut self, object: T) {
        self.metrics.events.inc();
        self.report(object.apply(&self.store));
    }

    fn on_delete(&mut self, object: T) {
        self.metrics.events.inc();
        self.report(object.delete(&self.store));
    }

    fn on_init_done(&mut self, resource_version: &str) {
        let version = ResourceVersion::parse(resource_version);
        self.report(self.store.end_list(self.watch, version));
        self.notifier.check_sync_state();
    }

    fn on_error(&mut self, error: &Error) {
        self.metrics.failures.inc();
        debug!(watch = ?self.watch, %error, "watch failed");
        // The member was restored from a backup. Other watches may not notice: it may have reached the versions that they know.
        if matches!(error.kind, ErrorKind::WentBack { .. }) {
            self.notifier.store.relist_all();
        }
        let store = &self.store;
        store.record_failure(self.watch, error);
        self.notifier.check_sync_state();
    }

    fn is_full(&self) -> bool {
        self.notifier.store.is_full(self.watch)
    }

    fn on_activity(&mut self) {
        if self.store.record_activity(self.watch) {
            self.notifier.check_sync_state();
        }
    }

    fn on_silence(&mut self) {
        self.metrics.silences.inc();
        self.store.record_doubt(self.watch);
        self.notifier.check_sync_state();
    }

    fn on_verification(&mut self) {
        self.store.record_doubt(self.watch);
    }

    fn on_caught_up(&mut self) {
        if self.store.record_caught_up(self.watch) {
            self.notifier.check_sync_state();
        }
    }

    fn on_invalid(&mut self, object: &InvalidObject) {
        self.metrics.invalid_objects.inc();
        let Some(uid) = object.uid else { return };
        if object.deleted {
            self.report(T::delete_invalid(&self.store, uid, object));
        } else {
            self.store.keep(self.watch, uid);
        }
    }

    fn on_short_watch(&mut self) {
        self.metrics.short_watches.inc();
    }
}

/// A kind of object that is watched in members.
pub(crate) trait WatchedObject: Sized {
    /// Stores that the object exists, in this state. Returns what changed.
    fn apply(self, store: &MemberStore) -> Vec<KeyedChange>;
    /// Stores that the object was deleted, in this last state.
    fn delete(self, store: &MemberStore) -> Vec<KeyedChange>;
    /// Stores the deletion of an object whose last state can't be read.
    fn delete_invalid(store: &MemberStore, uid: Uid, object: &InvalidObject) -> Vec<KeyedChange>;
}

/// A kind of local workload.
pub(crate) trait LocalWorkload: Into<WorkloadState> {
    const KIND: LocalKind;
}

impl LocalWorkload for ReplicaSetObject {
    const KIND: LocalKind = LocalKind::ReplicaSet;
}

impl LocalWorkload for DeploymentObject {
    const KIND: LocalKind = LocalKind::Deployment;
}

impl LocalWorkload for LocalReplicaSetObject {
    const KIND: LocalKind = LocalKind::LocalReplicaSet;
}

impl<T: LocalWorkload> WatchedObject for T {
    fn apply(self, store: &MemberStore) -> Vec<KeyedChange> {
        store.apply_workload(self.into())
    }

    fn delete(self, store: &MemberStore) -> Vec<KeyedChange> {
        let workload: WorkloadState = self.into();
        let version = ResourceVersion::parse(&workload.resource_version);
        store.delete_workload(&workload.key, workload.id(), version)
    }

    fn delete_invalid(store: &MemberStore, uid: Uid, object: &InvalidObject) -> Vec<KeyedChange> {
        let (Some(namespace), Some(name)) = (object.namespace.as_deref(), object.name.as_deref())
        else {
            return Vec::new();
        };
        let key = WorkloadKey::of_kind(T::KIND, namespace, name);
        store.delete_workload(&key, uid, ResourceVersion::default())
    }
}

impl WatchedObject for PodObject {
    fn apply(self, store: &MemberStore) -> Vec<KeyedChange> {
        store.apply_pod(self)
    }

    fn delete(self, store: &MemberStore) -> Vec<KeyedChange> {
        let change = store.delete_pod(self.metadata.uid, &self.metadata.resource_version);
        change.into_iter().collect()
    }

    fn delete_invalid(store: &MemberStore, uid: Uid, _: &InvalidObject) -> Vec<KeyedChange> {
        store.delete_pod(uid, "").into_iter().collect()
    }
}
