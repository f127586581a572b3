//! The state of one member cluster, or of one of its namespaces, behind a lock. The task that owns the member, and responses
//! to our own writes, write it; checks read it.
//!
//! A holder keeps the lock for one event, one lookup, or the end of one list, and never across an await.

use std::{fmt, mem, sync::Arc, time::Duration};

use fedrs_api::ObjectKey;
use jiff::{SignedDuration, Timestamp};
use parking_lot::RwLock;
use reflector::{Error, ErrorKind, ResourceVersion, Uid};
use tokio::sync::Notify;

use crate::{
    change::{KeyedChange, WorkloadChange},
    cluster_info::ClusterInfo,
    health::{Health, HealthyProbes},
    member_view::WorkloadTotals,
    nodes::{Changed, NodeTable},
    pod::PodObject,
    pod_table::{MAX_PODS, PodTable},
    scale_requests::{ScaleRequest, ScaleRequests},
    server_clock::ServerClock,
    sync_state::SyncState,
    watch_state::WatchState,
    workload::{WorkloadState, WorkloadView},
    workload_table::{Believed, MAX_WORKLOADS, WorkloadTable},
};

/// Returns the current time. A member's state reads no other clock.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// How long a request may still be carried out after it was sent: twice the time after which an API server ends it.
const MAX_REQUEST_DURATION: SignedDuration = SignedDuration::from_secs(120);

/// What is known of one member cluster, or of one of its namespaces.
pub(crate) struct MemberStore {
    state: RwLock<State>,
    /// The nodes of the member.
    nodes: Arc<RwLock<NodeTable>>,
    clock: Clock,
    stale_after: SignedDuration,
    /// Wakes the watch of the workloads, to find out whether it works.
    confirmation: Arc<Notify>,
    /// Makes the watch of the workloads list again.
    relist_workloads: Arc<Notify>,
    /// Makes the watch of the pods list again.
    relist_pods: Arc<Notify>,
}

#[derive(Debug)]
struct State {
    workloads: WorkloadTable,
    workload_watch: WatchState,
    pods: PodTable,
    pod_watch: WatchState,
    /// The member's clock, while workloads are listed; the pods have their own.
    clock: ServerClock,
    health: Health,
    healthy_probes: HealthyProbes,
    /// Whether it has been unreachable, or rejected the credentials, since it was last healthy.
    is_away: bool,
    has_been_healthy: bool,
    version: Option<String>,
    /// The kind of the sync state that was last reported as a change.
    reported_sync: mem::Discriminant<SyncState>,
}

/// One of the two watches of a member cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    Workloads,
    Pods,
}

impl Watch {
    /// The most objects that a member may have.
    pub(crate) fn limit(self) -> usize {
        match self {
            Self::Workloads => MAX_WORKLOADS,
            Self::Pods => MAX_PODS,
        }
    }
}

/// The result of a probe, compared with the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HealthChange {
    /// The same kind of health.
    Unchanged,
    /// Another kind of health.
    Changed,
    /// Another kind of health: the member was unreachable, and is healthy.
    Returned,
}

impl State {
    fn watch(&mut self, watch: Watch) -> &mut WatchState {
        match watch {
            Watch::Workloads => &mut self.workload_watch,
            Watch::Pods => &mut self.pod_watch,
        }
    }

    fn sync_state(&self, now: Timestamp, stale_after: SignedDuration) -> SyncState {
        let workloads = self.workload_watch.sync_state(now, stale_after);
        workloads.and(self.pod_watch.sync_state(now, stale_after))
    }

    /// Forgets what a watch has brought.
    fn forget(&mut self, watch: Watch) {
        match watch {
            Watch::Workloads => self.workloads.clear(),
            Watch::Pods => self.pods.clear(),
        }
        *self.watch(watch) = WatchState::default();
    }

    /// Marks everything known as out of date until it is listed again (F39).
    fn invalidate(&mut self) {
        self.workload_watch.begin_list();
        self.pod_watch.begin_list();
    }
}

impl MemberStore {
    /// An empty store, not synced. A watch that fails for longer than `stale_after` makes the view stale.
    pub(crate) fn new(clock: Clock, stale_after: Duration) -> Self {
        let stale_after = SignedDuration::try_from(stale_after).unwrap_or(SignedDuration::MAX);
        Self::on(Arc::default(), clock, stale_after)
    }

    /// An empty store for one of the namespaces, with the nodes of this one.
    pub(crate) fn part(&self) -> Self {
        Self::on(
            Arc::clone(&self.nodes),
            Arc::clone(&self.clock),
            self.stale_after,
        )
    }

    fn on(nodes: Arc<RwLock<NodeTable>>, clock: Clock, stale_after: SignedDuration) -> Self {
        let state = State {
            workloads: WorkloadTable::default(),
            workload_watch: WatchState::default(),
            pods: PodTable::on(Arc::clone(&nodes)),
            pod_watch: WatchState::default(),
            clock: ServerClock::default(),
            health: Health::Unknown,
            healthy_probes: HealthyProbes::default(),
            is_away: false,
            has_been_healthy: false,
            version: None,
            reported_sync: mem::discriminant(&SyncState::NotSynced),
        };
        Self {
            state: RwLock::new(state),
            nodes,
            clock,
            stale_after,
            confirmation: Arc::default(),
            relist_workloads: Arc::default(),
            relist_pods: Arc::default(),
        }
    }

    /// Forgets the workloads and pods.
    pub(crate) fn forget_objects(&self) {
        let mut state = self.state.write();
        state.forget(Watch::Workloads);
        state.forget(Watch::Pods);
    }

    /// Moves the requests for objects in `namespace`, or for all, to another store of the member.
    pub(crate) fn move_requests(&self, other: &Self, namespace: Option<&str>) {
        let mut moved = ScaleRequests::default();
        let mut state = self.state.write();
        (state.workloads.scale_requests).move_to(&mut moved, namespace);
        drop(state);
        let mut state = other.state.write();
        moved.move_to(&mut state.workloads.scale_requests, None);
    }

    /// The bytes that the workloads and pods take.
    pub(crate) fn bytes(&self) -> usize {
        let state = self.state.read();
        state.workloads.bytes() + state.pods.bytes()
    }

    /// The number of objects that a watch has brought.
    pub(crate) fn size(&self, watch: Watch) -> usize {
        let state = self.state.read();
        match watch {
            Watch::Workloads => state.workloads.len(),
            Watch::Pods => state.pods.len(),
        }
    }

    /// The age of the view, while it is stale.
    pub(crate) fn staleness(&self) -> SignedDuration {
        match self.sync_state() {
            SyncState::Stale { since } => (self.clock)().duration_since(since),
            SyncState::NotSynced | SyncState::Synced | SyncState::Unconfirmed => {
                SignedDuration::ZERO
            }
        }
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Wakes the watch of the workloads, to find out whether it works.
    pub(crate) fn confirmation(&self) -> &Arc<Notify> {
        &self.confirmation
    }

    /// Makes a watch list again.
    pub(crate) fn relist_of(&self, watch: Watch) -> &Arc<Notify> {
        match watch {
            Watch::Workloads => &self.relist_workloads,
            Watch::Pods => &self.relist_pods,
        }
    }

    /// Lists everything again: what is known may be wrong.
    pub(crate) fn relist(&self) {
        self.relist_workloads.notify_one();
        self.relist_pods.notify_one();
    }

    // Until the first list of a watch is complete its changes are not reported: every workload is checked when the
    // member becomes synced (F23).

    pub(crate) fn begin_list(&self, watch: Watch) {
        let mut state = self.state.write();
        match watch {
            Watch::Workloads => state.workloads.begin_list(),
            Watch::Pods => state.pods.begin_list(),
        }
        state.watch(watch).begin_list();
    }

    /// A page of a list arrives, with this header `Date`.
    pub(crate) fn begin_page(&self, watch: Watch, date: Option<&str>) {
        let mut state = self.state.write();
        match watch {
            Watch::Workloads => state.clock.begin_page(date),
            Watch::Pods => state.pods.begin_page(date),
        }
    }

    pub(crate) fn apply_workload(&self, mut workload: WorkloadState) -> Option<WorkloadChange> {
        let now = (self.clock)();
        let mut state = self.state.write();
        let known = state.workloads.get(&workload.key);
        state.clock.date(&mut workload, known, now);
        let change = state.workloads.apply(workload);
        change.filter(|_| state.workload_watch.has_listed())
    }

    pub(crate) fn delete_workload(
        &self,
        key: &ObjectKey,
        uid: Uid,
        version: ResourceVersion,
    ) -> Option<KeyedChange> {
        let mut state = self.state.write();
        let change = state.workloads.delete(key, uid, version)?;
        Some((key.clone(), change))
    }

    pub(crate) fn apply_pod(&self, pod: PodObject) -> Vec<KeyedChange> {
        let now = (self.clock)();
        let mut state = self.state.write();
        let changes = state.pods.apply(pod, now);
        if state.pod_watch.has_listed() {
            changes
        } else {
            Vec::new()
        }
    }

    pub(crate) fn delete_pod(&self, uid: Uid, resource_version: &str) -> Option<KeyedChange> {
        self.state.write().pods.delete(uid, resource_version)
    }

    /// An object exists and can't be read: what is known of it stays.
    pub(crate) fn keep(&self, watch: Watch, uid: Uid) {
        let mut state = self.state.write();
        match watch {
            Watch::Workloads => state.workloads.keep(uid),
            Watch::Pods => state.pods.keep(uid),
        }
    }

    pub(crate) fn end_list(&self, watch: Watch, version: ResourceVersion) -> Vec<KeyedChange> {
        let now = (self.clock)();
        let mut state = self.state.write();
        let lost = match watch {
            Watch::Workloads => {
                state.clock.end_list();
                state.workloads.end_list(version)
            }
            Watch::Pods => {
                let lost = state.pods.end_list().into_iter();
                lost.map(|key| (key, WorkloadChange::Pods)).collect()
            }
        };
        let watch = state.watch(watch);
        let reported = watch.has_listed();
        watch.end_list(now);
        if reported { lost } else { Vec::new() }
    }

    /// The server sent something. Returns whether the watch had been failing.
    pub(crate) fn record_activity(&self, watch: Watch) -> bool {
        let now = (self.clock)();
        self.state.write().watch(watch).record_activity(now)
    }

    /// The watch was silent for longer than bookmarks are apart.
    pub(crate) fn record_doubt(&self, watch: Watch) {
        let now = (self.clock)();
        self.state.write().watch(watch).record_doubt(now);
    }

    /// All events that the server had were delivered. Returns whether that may change the sync state.
    pub(crate) fn record_caught_up(&self, watch: Watch) -> bool {
        let now = (self.clock)();
        self.state.write().watch(watch).record_caught_up(now)
    }

    /// Whether the member has more objects than it may have.
    pub(crate) fn is_full(&self, watch: Watch) -> bool {
        let state = self.state.read();
        match watch {
            Watch::Workloads => state.workloads.is_full(),
            Watch::Pods => state.pods.is_full(),
        }
    }

    /// Whether the member has as many nodes as it may have.
    pub(crate) fn has_all_nodes(&self) -> bool {
        self.nodes.read().is_full()
    }

    /// A list or watch failed.
    pub(crate) fn record_failure(&self, watch: Watch, error: &Error) {
        let now = (self.clock)();
        let needs_relist = error.needs_relist();
        let mut state = self.state.write();
        if matches!(error.kind, ErrorKind::TooManyObjects) {
            // What is known is incomplete, and may come from lists that were never completed.
            state.forget(watch);
        }
        if error.exceeds_limit() {
            state.watch(watch).record_excess(error.to_string());
        }
        let watch = state.watch(watch);
        watch.record_failure(now, error.kind.to_string());
        if needs_relist {
            watch.begin_list();
        }
    }

    /// The failure while the view is not up to date.
    pub(crate) fn failure(&self) -> Option<String> {
        let state = self.state.read();
        let watches = [&state.workload_watch, &state.pod_watch];
        let failure = watches.into_iter().find_map(WatchState::failure);
        failure.map(str::to_owned)
    }

    /// Whether the kind of the sync state has changed since the last call.
    pub(crate) fn take_sync_change(&self) -> bool {
        let now = (self.clock)();
        let mut state = self.state.write();
        let sync = mem::discriminant(&state.sync_state(now, self.stale_after));
        mem::replace(&mut state.reported_sync, sync) != sync
    }

    /// The client may reach another cluster from now on.
    pub(crate) fn invalidate(&self) {
        self.state.write().invalidate();
    }

    pub(crate) fn set_version(&self, version: String) {
        self.state.write().version = Some(version);
    }

    /// Changes the nodes of the member, whose pods are in `stores`. Returns what changed for which workload, and whether the
    /// state of the member itself has changed.
    pub(crate) fn change_nodes(
        &self,
        stores: &[Arc<Self>],
        change: impl FnOnce(&mut NodeTable, Timestamp) -> Changed,
    ) -> (Vec<KeyedChange>, bool) {
        let now = (self.clock)();
        // No pod is counted between the change of its node and the recount.
        let mut states: Vec<_> = stores.iter().map(|store| store.state.write()).collect();
        let runs_none = |nodes: &NodeTable| {
            let nodes = nodes.info();
            (nodes.none_is_ready(), nodes.none_is_confirmed())
        };
        let mut nodes = self.nodes.write();
        let ran_none = runs_none(&nodes);
        let mut changed = change(&mut nodes, now);
        changed.retain(|id, before| nodes.state(Some(*id)) != *before);
        let is_news = runs_none(&nodes) != ran_none;
        drop(nodes);
        let states = states.iter_mut();
        let workloads = states.flat_map(|state| state.pods.recount(&changed));
        (workloads.collect(), is_news)
    }

    /// Whether it has been healthy since this process knows it.
    pub(crate) fn has_been_healthy(&self) -> bool {
        self.state.read().has_been_healthy
    }

    /// The healthy results of the probe.
    pub(crate) fn healthy_probes(&self) -> HealthyProbes {
        self.state.read().healthy_probes
    }

    /// Sets the result of a probe.
    pub(crate) fn set_health(&self, health: Health) -> HealthChange {
        let mut state = self.state.write();
        state.healthy_probes.observe(&health);
        let before = mem::replace(&mut state.health, health);
        if mem::discriminant(&before) == mem::discriminant(&state.health) {
            return HealthChange::Unchanged;
        }
        if state.health != Health::Healthy {
            // How long a member was away that has not been healthy yet is not known: perhaps since long before this process.
            state.is_away |=
                !state.has_been_healthy || !matches!(state.health, Health::Failing { .. });
            return HealthChange::Changed;
        }
        state.has_been_healthy = true;
        if mem::take(&mut state.is_away) {
            HealthChange::Returned
        } else {
            HealthChange::Changed
        }
    }
}

/// What a [`MemberView`](crate::MemberView) shows of the store.
impl MemberStore {
    pub(crate) fn workload(&self, key: &ObjectKey) -> WorkloadView {
        let now = (self.clock)();
        let state = self.state.read();
        let workload = state.workloads.at(key, now);
        let pods = workload
            .as_ref()
            .map(|workload| state.pods.counts(workload.id()))
            .unwrap_or_default();
        WorkloadView {
            workload,
            pods,
            nodes_report: self.nodes.read().is_confirming(),
            current_at: state.workload_watch.current_at(),
        }
    }

    pub(crate) fn sync_state(&self) -> SyncState {
        let state = self.state.read();
        state.sync_state((self.clock)(), self.stale_after)
    }

    pub(crate) fn exceeded_limit(&self) -> Option<String> {
        let state = self.state.read();
        let watches = [&state.workload_watch, &state.pod_watch];
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
        for (key, workload) in state.workloads.iter() {
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
        let known = state.workloads.get(&workload.key);
        // The states in the response were seen before, or have just begun.
        ServerClock::default().date(&mut workload, known, now);
        if state.workloads.observe_write(workload) == Believed(false) {
            self.relist();
        }
    }

    pub(crate) fn observe_scale(&self, key: &ObjectKey, uid: &str, generation: i64, replicas: u32) {
        let now = (self.clock)();
        let request = ScaleRequest {
            uid: Uid::of(uid),
            generation,
            lowest: replicas,
            highest: replicas,
            until: now + MAX_REQUEST_DURATION,
        };
        let mut state = self.state.write();
        state.workloads.scale_requests.send(key, request, now);
    }

    pub(crate) fn observe_rejected_scale(&self, key: &ObjectKey, uid: &str, generation: i64) {
        let mut state = self.state.write();
        let requests = &mut state.workloads.scale_requests;
        requests.reject(key, Uid::of(uid), generation);
    }

    pub(crate) fn observe_deletion(&self, key: &ObjectKey, uid: &str) {
        let mut state = self.state.write();
        state.workloads.observe_deletion(key, Uid::of(uid));
    }

    pub(crate) fn observe_absence(&self, key: &ObjectKey, uid: &str) {
        let mut state = self.state.write();
        state.workloads.observe_absence(key, Uid::of(uid));
    }

    pub(crate) fn observe_release(&self, key: &ObjectKey, uid: &str, resource_version: &str) {
        let version = ResourceVersion::parse(resource_version);
        let mut state = self.state.write();
        state.workloads.delete(key, Uid::of(uid), version);
    }
}

impl fmt::Debug for MemberStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemberStore").finish_non_exhaustive()
    }
}
