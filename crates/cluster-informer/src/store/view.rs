//! What a [`MemberView`](crate::MemberView) shows of a store, and what it is told of our writes.

use fedrs_api::{LocalKind, WorkloadKey};
use jiff::SignedDuration;
use reflector::{ResourceVersion, Uid};

use super::{MemberStore, Watch};
use crate::{
    cluster_info::ClusterInfo,
    health::Health,
    member_view::WorkloadTotals,
    scale_requests::ScaleRequest,
    server_clock::ServerClock,
    sync_state::SyncState,
    watch_state::WatchState,
    workload::{WorkloadState, WorkloadView},
    workload_table::Believed,
};

/// How long a request may still be carried out after it was sent: twice the time after which an API server ends it.
const MAX_REQUEST_DURATION: SignedDuration = SignedDuration::from_secs(120);

impl MemberStore {
    pub(crate) fn workload(&self, key: &WorkloadKey) -> WorkloadView {
        let now = (self.clock)();
        let state = self.state.read();
        let (workload, pods) = state.workload(key, now, self.stale_after);
        WorkloadView {
            workload,
            pods,
            nodes_report: self.nodes.read().is_confirming(),
            current_at: state.of(key.kind).watch.current_at(),
        }
    }

    /// Whether the view of a kind of workloads is up to date.
    pub(crate) fn sync_state(&self, kind: LocalKind) -> SyncState {
        let state = self.state.read();
        state.sync_state(kind, (self.clock)(), self.stale_after)
    }

    /// Lists again what the view of a kind of workloads depends on.
    pub(crate) fn relist_view_of(&self, kind: LocalKind) {
        for watch in [
            Watch::Workloads(kind),
            Watch::Workloads(LocalKind::ReplicaSet),
            Watch::Pods,
        ] {
            self.relist_of(watch).notify_one();
        }
    }

    pub(crate) fn exceeded_limit(&self) -> Option<String> {
        let state = self.state.read();
        let watches = [&state.replica_sets.watch, &state.pod_watch];
        let exceeded = watches.into_iter().find_map(WatchState::exceeded);
        exceeded.map(str::to_owned)
    }

    pub(crate) fn health(&self) -> Health {
        self.state.read().health.clone()
    }

    pub(crate) fn cluster_info(&self) -> ClusterInfo {
        let state = self.state.read();
        ClusterInfo {
            version: state.version.clone(),
            nodes: self.nodes.read().info(),
        }
    }

    pub(crate) fn totals(&self, max_names: usize) -> WorkloadTotals {
        let state = self.state.read();
        let mut totals = WorkloadTotals::default();
        let deployments = &state.deployments.table;
        // The Deployment counts the replicas of its ReplicaSets, unless it is not ours. One that was released keeps our labels in
        // its template, and so in new ReplicaSets.
        let are_known = state.deployments.watch.has_listed();
        let is_counted = |workload: &WorkloadState| are_known && workload.owned_by.is_some();
        let workloads = state.replica_sets.table.iter();
        let workloads = workloads.filter(|(_, workload)| !is_counted(workload));
        let others = deployments
            .iter()
            .chain(state.local_replica_sets.table.iter());
        for (key, workload) in workloads.chain(others) {
            // Desired replicas will exist, and existing ones do until they are deleted.
            let replicas = workload.replicas.max(workload.status_replicas);
            if replicas > 0 {
                totals.workloads += 1;
                totals.replicas += u64::from(replicas);
                if totals.first.len() < max_names {
                    totals.first.push(key.clone());
                }
            }
        }
        totals
    }

    pub(crate) fn observe_write(&self, mut workload: WorkloadState) {
        let now = (self.clock)();
        let mut state = self.state.write();
        let table = &mut state.of_mut(workload.key.kind).table;
        let known = table.get(&workload.key);
        // The states in the response were seen before, or have just begun.
        ServerClock::default().date(&mut workload, known, now);
        let kind = workload.key.kind;
        if table.observe_write(workload) == Believed(false) {
            self.relist_view_of(kind);
        }
    }

    pub(crate) fn observe_scale(
        &self,
        key: &WorkloadKey,
        uid: &str,
        generation: i64,
        replicas: u32,
    ) {
        let now = (self.clock)();
        let request = ScaleRequest {
            uid: Uid::of(uid),
            generation,
            lowest: replicas,
            highest: replicas,
            until: now + MAX_REQUEST_DURATION,
        };
        let mut state = self.state.write();
        let requests = &mut state.of_mut(key.kind).table.scale_requests;
        requests.send(key, request, now);
    }

    pub(crate) fn observe_rejected_scale(&self, key: &WorkloadKey, uid: &str, generation: i64) {
        let mut state = self.state.write();
        let requests = &mut state.of_mut(key.kind).table.scale_requests;
        requests.reject(key, Uid::of(uid), generation);
    }

    pub(crate) fn observe_deletion(&self, key: &WorkloadKey, uid: &str) {
        let mut state = self.state.write();
        let table = &mut state.of_mut(key.kind).table;
        table.observe_deletion(key, Uid::of(uid));
    }

    pub(crate) fn observe_absence(&self, key: &WorkloadKey, uid: &str) {
        let mut state = self.state.write();
        let table = &mut state.of_mut(key.kind).table;
        table.observe_absence(key, Uid::of(uid));
    }

    pub(crate) fn observe_release(&self, key: &WorkloadKey, uid: &str, resource_version: &str) {
        let version = ResourceVersion::parse(resource_version);
        let mut state = self.state.write();
        let table = &mut state.of_mut(key.kind).table;
        table.delete(key, Uid::of(uid), version);
    }
}
