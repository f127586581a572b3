//! What others see of a member: a workload by the store of its namespace, the member by all stores together.

use fedrs_api::{LocalKind, WorkloadKey};
use jiff::Timestamp;

use super::ClusterStore;
use crate::{
    cluster_info::ClusterInfo,
    health::Health,
    member_view::{MemberView, UnreadNamespace, WorkloadTotals},
    store::{MemberStore, Watch},
    sync_state::SyncState,
    workload::{WorkloadState, WorkloadView},
};

/// What the state of a member itself is about: other workloads are watched where somebody asks for it.
const REPLICA_SETS: LocalKind = LocalKind::ReplicaSet;

impl MemberView for ClusterStore {
    fn workload(&self, key: &WorkloadKey) -> WorkloadView {
        let store = self.of(&key.namespace);
        store.map(|store| store.workload(key)).unwrap_or_default()
    }

    fn sync_state(&self) -> SyncState {
        let stores = self.watched();
        let states = stores.iter().map(|store| store.sync_state(REPLICA_SETS));
        states.fold(SyncState::Synced, SyncState::and)
    }

    fn sync_state_of(&self, key: &WorkloadKey) -> SyncState {
        let store = self.of(&key.namespace);
        store.map_or(SyncState::NotSynced, |store| store.sync_state(key.kind))
    }

    fn failure_of(&self, key: &WorkloadKey) -> Option<String> {
        self.of(&key.namespace)?.failure(key.kind)
    }

    fn lacks(&self, kind: LocalKind) -> bool {
        let stores = self.watched();
        !stores.is_empty() && stores.iter().all(|store| store.lacks(kind))
    }

    fn watch(&self, kind: LocalKind) {
        if let Some(watched) = self.asked_for(kind) {
            watched.send_if_modified(|since| {
                let begins = since.is_none();
                since.get_or_insert_with(|| (self.clock())());
                begins
            });
        }
    }

    fn watched_since(&self, key: &WorkloadKey) -> Option<Timestamp> {
        let of_namespace = self.of(&key.namespace)?.watched_since();
        match self.asked_for(key.kind) {
            None => Some(of_namespace),
            Some(of_kind) => of_kind.borrow().map(|since| since.max(of_namespace)),
        }
    }

    fn unread_namespaces(&self) -> Vec<UnreadNamespace> {
        let parts = self.parts.read();
        let parts = parts.iter().flatten();
        let is_unread = |store: &MemberStore| {
            matches!(
                store.sync_state(REPLICA_SETS),
                SyncState::NotSynced | SyncState::Stale { .. }
            )
        };
        let unread = parts.filter(|(_, store)| is_unread(store));
        unread
            .map(|(name, store)| UnreadNamespace {
                name: name.clone(),
                failure: store.failure(REPLICA_SETS),
            })
            .collect()
    }

    fn exceeded_limit(&self) -> Option<String> {
        let stores = self.watched();
        stores.iter().find_map(|store| store.exceeded_limit())
    }

    fn health(&self) -> Health {
        self.whole.health()
    }

    fn cluster_info(&self) -> ClusterInfo {
        self.whole.cluster_info()
    }

    fn confirm_nodes(&self) {
        self.change_nodes(|nodes, _| nodes.begin_confirmation());
        self.returned.notify_one();
    }

    fn relist(&self, key: &WorkloadKey) {
        if let Some(store) = self.of(&key.namespace) {
            store.relist_view_of(key.kind);
        }
    }

    fn confirm_workloads(&self, key: &WorkloadKey) {
        if let Some(store) = self.of(&key.namespace) {
            // Nobody waits during a list, or while it is already being found out.
            store
                .confirmation_of(Watch::Workloads(key.kind))
                .notify_waiters();
        }
    }

    fn totals(&self, max_names: usize) -> WorkloadTotals {
        let stores = self.watched();
        let all = stores.iter().map(|store| store.totals(max_names));
        all.fold(WorkloadTotals::default(), |sum, part| {
            let first = sum.first.into_iter().chain(part.first);
            WorkloadTotals {
                workloads: sum.workloads + part.workloads,
                replicas: sum.replicas + part.replicas,
                first: first.take(max_names).collect(),
            }
        })
    }

    fn observe_write(&self, state: WorkloadState) {
        if let Some(store) = self.of(&state.key.namespace) {
            store.observe_write(state);
        }
    }

    fn observe_scale(&self, key: &WorkloadKey, uid: &str, generation: i64, replicas: u32) {
        if let Some(store) = self.of(&key.namespace) {
            store.observe_scale(key, uid, generation, replicas);
        }
    }

    fn observe_rejected_scale(&self, key: &WorkloadKey, uid: &str, generation: i64) {
        if let Some(store) = self.of(&key.namespace) {
            store.observe_rejected_scale(key, uid, generation);
        }
    }

    fn observe_deletion(&self, key: &WorkloadKey, uid: &str) {
        if let Some(store) = self.of(&key.namespace) {
            store.observe_deletion(key, uid);
        }
    }

    fn observe_absence(&self, key: &WorkloadKey, uid: &str) {
        if let Some(store) = self.of(&key.namespace) {
            store.observe_absence(key, uid);
        }
    }

    fn observe_release(&self, key: &WorkloadKey, uid: &str, resource_version: &str) {
        if let Some(store) = self.of(&key.namespace) {
            store.observe_release(key, uid, resource_version);
        }
    }
}
