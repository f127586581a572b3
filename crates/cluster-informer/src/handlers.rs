//! Passes the events of the reflectors to the store, and the changes to the [`ChangeHandler`].

use std::sync::Arc;

use fedrs_api::SetKey;
use reflector::{Error, EventHandler, InvalidObject, ResourceVersion, Uid};
use tracing::{debug, info};

use crate::{
    change::{ChangeHandler, WorkloadChange},
    health::Health,
    member_view::MemberView,
    metrics::WatchMetrics,
    pod::PodObject,
    replica_set::ReplicaSetObject,
    store::{HealthChange, MemberStore, Watch},
    workload::WorkloadState,
};

/// Reports the changes of one member cluster.
#[derive(Clone)]
pub(crate) struct Notifier {
    pub(crate) cluster: Arc<str>,
    pub(crate) store: Arc<MemberStore>,
    pub(crate) handler: Arc<dyn ChangeHandler>,
}

impl Notifier {
    fn workload_change(&self, key: &SetKey, change: WorkloadChange) {
        self.handler.on_workload_change(&self.cluster, key, change);
    }

    /// Sets the result of a probe.
    pub(crate) fn set_health(&self, health: Health) -> HealthChange {
        let text = format!("{health:?}");
        let change = self.store.set_health(health);
        if change != HealthChange::Unchanged {
            info!(health = text, "health of the member changed");
            self.handler.on_cluster_change(&self.cluster);
        }
        change
    }

    /// Reports the sync state if it has changed.
    pub(crate) fn check_sync_state(&self) {
        if self.store.take_sync_change() {
            info!(sync_state = ?self.store.sync_state(), "view of the member changed");
            self.handler.on_cluster_change(&self.cluster);
        }
    }

    fn begin_list(&self, watch: Watch) {
        self.store.begin_list(watch);
        self.check_sync_state();
    }

    fn activity(&self, watch: Watch) {
        if self.store.record_activity(watch) {
            self.check_sync_state();
        }
    }

    fn error(&self, watch: Watch, error: &Error) {
        debug!(?watch, %error, "watch failed");
        self.store.record_failure(watch, error.needs_relist());
        self.check_sync_state();
    }
}

/// Handles the events of the local ReplicaSets.
pub(crate) struct WorkloadHandler {
    pub(crate) notifier: Notifier,
    pub(crate) metrics: WatchMetrics,
}

impl WorkloadHandler {
    fn update_size(&self) {
        let (workloads, _) = self.notifier.store.size();
        self.metrics.set_objects(workloads);
    }

    fn delete(&self, key: &SetKey, uid: Uid, version: ResourceVersion) {
        if let Some(change) = self.notifier.store.delete_workload(key, uid, version) {
            self.notifier.workload_change(key, change);
        }
    }
}

impl EventHandler<ReplicaSetObject> for WorkloadHandler {
    fn on_init(&mut self) {
        self.metrics.lists.inc();
        self.notifier.begin_list(Watch::Workloads);
    }

    fn on_apply(&mut self, object: ReplicaSetObject) {
        self.metrics.events.inc();
        let workload = WorkloadState::from(object);
        let key = workload.key.clone();
        if let Some(change) = self.notifier.store.apply_workload(workload) {
            self.notifier.workload_change(&key, change);
        }
        self.update_size();
    }

    fn on_delete(&mut self, object: ReplicaSetObject) {
        self.metrics.events.inc();
        let workload = WorkloadState::from(object);
        let version = ResourceVersion::parse(&workload.resource_version);
        self.delete(&workload.key, workload.id(), version);
        self.update_size();
    }

    fn on_init_done(&mut self, resource_version: &str) {
        let version = ResourceVersion::parse(resource_version);
        for (key, change) in self.notifier.store.end_workload_list(version) {
            self.notifier.workload_change(&key, change);
        }
        self.update_size();
        self.notifier.check_sync_state();
    }

    fn on_error(&mut self, error: &Error) {
        self.metrics.failures.inc();
        self.notifier.error(Watch::Workloads, error);
    }

    fn on_activity(&mut self) {
        self.notifier.activity(Watch::Workloads);
    }

    fn on_invalid(&mut self, object: &InvalidObject) {
        self.metrics.invalid_objects.inc();
        let Some(uid) = object.uid else { return };
        if !object.deleted {
            self.notifier.store.keep_workload(uid);
        } else if let (Some(namespace), Some(name)) = (&object.namespace, &object.name) {
            let key = SetKey::new(&**namespace, &**name);
            self.delete(&key, uid, ResourceVersion::default());
        }
    }

    fn on_short_watch(&mut self) {
        self.metrics.short_watches.inc();
    }
}

/// Handles the events of the pods.
pub(crate) struct PodHandler {
    pub(crate) notifier: Notifier,
    pub(crate) metrics: WatchMetrics,
}

impl PodHandler {
    fn update_size(&self) {
        let (_, pods) = self.notifier.store.size();
        self.metrics.set_objects(pods);
    }

    fn delete(&self, uid: Uid, resource_version: &str) {
        if let Some((key, change)) = self.notifier.store.delete_pod(uid, resource_version) {
            self.notifier.workload_change(&key, change);
        }
    }
}

impl EventHandler<PodObject> for PodHandler {
    fn on_init(&mut self) {
        self.metrics.lists.inc();
        self.notifier.begin_list(Watch::Pods);
    }

    fn on_apply(&mut self, object: PodObject) {
        self.metrics.events.inc();
        for (key, change) in self.notifier.store.apply_pod(object) {
            self.notifier.workload_change(&key, change);
        }
        self.update_size();
    }

    fn on_delete(&mut self, object: PodObject) {
        self.metrics.events.inc();
        self.delete(object.metadata.uid, &object.metadata.resource_version);
        self.update_size();
    }

    fn on_init_done(&mut self, _resource_version: &str) {
        for key in self.notifier.store.end_pod_list() {
            self.notifier.workload_change(&key, WorkloadChange::Pods);
        }
        self.update_size();
        self.notifier.check_sync_state();
    }

    fn on_error(&mut self, error: &Error) {
        self.metrics.failures.inc();
        self.notifier.error(Watch::Pods, error);
    }

    fn on_activity(&mut self) {
        self.notifier.activity(Watch::Pods);
    }

    fn on_invalid(&mut self, object: &InvalidObject) {
        self.metrics.invalid_objects.inc();
        match object.uid {
            Some(uid) if object.deleted => self.delete(uid, ""),
            Some(uid) => self.notifier.store.keep_pod(uid),
            None => {}
        }
    }

    fn on_short_watch(&mut self) {
        self.metrics.short_watches.inc();
    }
}
