//! The state of one member cluster, or of one of its namespaces, behind a lock. The task that owns the member, and responses
//! to our own writes, write it; checks read it.
//!
//! A holder keeps the lock for one event, one lookup, or the end of one list, and never across an await.

#[cfg(test)]
mod deployment_tests;
mod state;
mod view;

use std::{collections::BTreeMap, fmt, mem, sync::Arc, time::Duration};

use fedrs_api::{LocalKind, WorkloadKey};
use jiff::{SignedDuration, Timestamp};
use parking_lot::RwLock;
use reflector::{Error, ErrorKind, ResourceVersion, Uid};
use tokio::sync::Notify;

use self::state::State;
pub(crate) use self::state::Watch;
use crate::{
    change::{KeyedChange, WorkloadChange},
    health::{Health, HealthyProbes},
    nodes::{Changed, NodeTable, SILENCE},
    pod::PodObject,
    pod_table::PodTable,
    scale_requests::ScaleRequests,
    sync_state::SyncState,
    watch_state::WatchState,
    workload::WorkloadState,
};

/// Returns the current time. A member's state reads no other clock.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What is known of one member cluster, or of one of its namespaces.
pub(crate) struct MemberStore {
    state: RwLock<State>,
    /// The nodes of the member.
    nodes: Arc<RwLock<NodeTable>>,
    clock: Clock,
    stale_after: SignedDuration,
    replica_sets: Signals,
    deployments: Signals,
    local_replica_sets: Signals,
    pods: Signals,
}

/// What a watch is told.
#[derive(Default)]
struct Signals {
    /// Wakes the watch, to find out whether it works.
    confirm: Arc<Notify>,
    /// Makes the watch list again.
    relist: Arc<Notify>,
}

/// The result of a probe, compared with the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HealthChange {
    /// The same kind of health.
    Unchanged,
    /// Another kind of health.
    Changed,
    /// Another kind of health: the member was unreachable, and is healthy.
    Returned {
        /// Whether what it says of its pods is from now: it has rejected the credentials for so long that its own controllers
        /// have noticed which nodes do not run.
        is_current: bool,
    },
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
        Self {
            state: RwLock::new(State::on(PodTable::on(Arc::clone(&nodes)), clock())),
            nodes,
            clock,
            stale_after,
            replica_sets: Signals::default(),
            deployments: Signals::default(),
            local_replica_sets: Signals::default(),
            pods: Signals::default(),
        }
    }

    /// Its watches begin again, with nothing known.
    pub(crate) fn begin_watch(&self) {
        self.state.write().watched_since = (self.clock)();
    }

    /// Since when it is filled.
    pub(crate) fn watched_since(&self) -> Timestamp {
        self.state.read().watched_since
    }

    /// Forgets the workloads and pods.
    pub(crate) fn forget_objects(&self) {
        let mut state = self.state.write();
        for watch in Watch::ALL {
            state.forget(watch);
        }
    }

    /// Moves the requests for objects in `namespace`, or for all, to another store of the member.
    pub(crate) fn move_requests(&self, other: &Self, namespace: Option<&str>) {
        for kind in LocalKind::ALL {
            let mut moved = ScaleRequests::default();
            let mut state = self.state.write();
            let requests = &mut state.of_mut(kind).table.scale_requests;
            requests.move_to(&mut moved, namespace);
            drop(state);
            let mut state = other.state.write();
            moved.move_to(&mut state.of_mut(kind).table.scale_requests, None);
        }
    }

    /// The bytes that the workloads and pods take.
    pub(crate) fn bytes(&self) -> usize {
        let state = self.state.read();
        let workloads = LocalKind::ALL.map(|kind| state.of(kind).table.bytes());
        workloads.iter().sum::<usize>() + state.pods.bytes()
    }

    /// The number of objects that a watch has brought.
    pub(crate) fn size(&self, watch: Watch) -> usize {
        let state = self.state.read();
        match watch {
            Watch::Workloads(kind) => state.of(kind).table.len(),
            Watch::Pods => state.pods.len(),
        }
    }

    /// The age of the view of the ReplicaSets, while it is stale.
    pub(crate) fn staleness(&self) -> SignedDuration {
        match self.sync_state(LocalKind::ReplicaSet) {
            SyncState::Stale { since } => (self.clock)().duration_since(since),
            SyncState::NotSynced | SyncState::Synced | SyncState::Unconfirmed => {
                SignedDuration::ZERO
            }
        }
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    fn signals(&self, watch: Watch) -> &Signals {
        match watch {
            Watch::Workloads(LocalKind::ReplicaSet) => &self.replica_sets,
            Watch::Workloads(LocalKind::Deployment) => &self.deployments,
            Watch::Workloads(LocalKind::LocalReplicaSet) => &self.local_replica_sets,
            Watch::Pods => &self.pods,
        }
    }

    /// Wakes a watch, to find out whether it works.
    pub(crate) fn confirmation_of(&self, watch: Watch) -> &Arc<Notify> {
        &self.signals(watch).confirm
    }

    /// Makes a watch list again.
    pub(crate) fn relist_of(&self, watch: Watch) -> &Arc<Notify> {
        &self.signals(watch).relist
    }

    /// Lists everything again: what is known may be wrong.
    pub(crate) fn relist(&self) {
        for watch in Watch::ALL {
            self.relist_of(watch).notify_one();
        }
    }

    // Until the first list of a watch is complete its changes are not reported: every workload is checked when the
    // member becomes synced (F23).

    pub(crate) fn begin_list(&self, watch: Watch) {
        let mut state = self.state.write();
        match watch {
            Watch::Workloads(kind) => state.of_mut(kind).table.begin_list(),
            Watch::Pods => state.pods.begin_list(),
        }
        state.watch(watch).begin_list();
    }

    /// A page of a list arrives, with this header `Date`.
    pub(crate) fn begin_page(&self, watch: Watch, date: Option<&str>) {
        let mut state = self.state.write();
        match watch {
            Watch::Workloads(kind) => state.of_mut(kind).clock.begin_page(date),
            Watch::Pods => state.pods.begin_page(date),
        }
    }

    /// A local workload exists, in this state. Returns what changed.
    pub(crate) fn apply_workload(&self, mut workload: WorkloadState) -> Vec<KeyedChange> {
        let now = (self.clock)();
        let mut state = self.state.write();
        let key = workload.key.clone();
        let of_kind = state.of_mut(key.kind);
        let known = of_kind.table.get(&key);
        of_kind.clock.date(&mut workload, known, now);
        let change = of_kind.table.apply(workload);
        let reported = of_kind.watch.has_listed();
        let owners = state.take_owner_changes();
        let changes = change.map(|change| (key, change)).into_iter().chain(owners);
        changes.filter(|_| reported).collect()
    }

    /// A local workload was deleted, or no longer has our labels. Returns what changed.
    pub(crate) fn delete_workload(
        &self,
        key: &WorkloadKey,
        uid: Uid,
        version: ResourceVersion,
    ) -> Vec<KeyedChange> {
        let mut state = self.state.write();
        let change = state.of_mut(key.kind).table.delete(key, uid, version);
        let change = change.map(|change| (key.clone(), change));
        change
            .into_iter()
            .chain(state.take_owner_changes())
            .collect()
    }

    pub(crate) fn apply_pod(&self, pod: PodObject) -> Vec<KeyedChange> {
        let now = (self.clock)();
        let mut state = self.state.write();
        let changes = state.pods.apply(pod, now).into_iter();
        let changes = changes.filter(|_| state.pod_watch.has_listed());
        changes.map(|change| state.by_workload(change)).collect()
    }

    pub(crate) fn delete_pod(&self, uid: Uid, resource_version: &str) -> Option<KeyedChange> {
        let mut state = self.state.write();
        let change = state.pods.delete(uid, resource_version)?;
        Some(state.by_workload(change))
    }

    /// An object exists and can't be read: what is known of it stays.
    pub(crate) fn keep(&self, watch: Watch, uid: Uid) {
        let mut state = self.state.write();
        match watch {
            Watch::Workloads(kind) => state.of_mut(kind).table.keep(uid),
            Watch::Pods => state.pods.keep(uid),
        }
    }

    pub(crate) fn end_list(&self, watch: Watch, version: ResourceVersion) -> Vec<KeyedChange> {
        let now = (self.clock)();
        let mut state = self.state.write();
        let lost = match watch {
            Watch::Workloads(kind) => state.of_mut(kind).end_list(version),
            Watch::Pods => {
                let lost = state.pods.end_list().into_iter();
                let lost = lost.map(|owner| state.by_workload((owner, WorkloadChange::Pods)));
                let by_key: BTreeMap<_, _> = lost.collect();
                by_key.into_iter().collect()
            }
        };
        let owners = state.take_owner_changes();
        let watch = state.watch(watch);
        let reported = watch.has_listed();
        watch.end_list(now);
        let lost = lost.into_iter().chain(owners);
        lost.filter(|_| reported).collect()
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
            Watch::Workloads(kind) => state.of(kind).table.is_full(),
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
        watch.set_refused(matches!(error.code(), Some(403 | 404)));
        watch.set_missing(error.code() == Some(404), now);
        if needs_relist {
            watch.begin_list();
        }
    }

    /// The failure while the view of a kind of workloads is not up to date.
    pub(crate) fn failure(&self, kind: LocalKind) -> Option<String> {
        let now = (self.clock)();
        let state = self.state.read();
        let mut watches = state.watches_of(kind, now, self.stale_after);
        watches.find_map(WatchState::failure).map(str::to_owned)
    }

    /// Whether the member has no such kind of workloads.
    pub(crate) fn lacks(&self, kind: LocalKind) -> bool {
        let state = self.state.read();
        let watch = &state.of(kind).watch;
        watch.is_missing((self.clock)(), self.stale_after)
    }

    /// Whether the kind of the sync state, of any kind of workloads, has changed since the last call, or whether the member has
    /// that kind.
    pub(crate) fn take_sync_change(&self) -> bool {
        let now = (self.clock)();
        let mut state = self.state.write();
        let sync = |kind| {
            let is_missing = state.of(kind).watch.is_missing(now, self.stale_after);
            let sync = state.sync_state(kind, now, self.stale_after);
            (mem::discriminant(&sync), is_missing)
        };
        let sync = LocalKind::ALL.map(sync);
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
        let workloads = states.iter_mut().flat_map(|state| {
            let owners = state.pods.recount(&changed).into_iter();
            let by_key = owners.map(|change| state.by_workload(change));
            by_key.collect::<BTreeMap<_, _>>()
        });
        (workloads.collect(), is_news)
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
        let now = (self.clock)();
        let rejected_since = match state.health {
            Health::Unauthorized { .. } => state.rejects_since.replace(now),
            _ => state.rejects_since.take(),
        };
        if state.health != Health::Healthy {
            // How long a member was away that has not been healthy yet is not known: perhaps since long before this process.
            state.is_away |=
                !state.has_been_healthy || !matches!(state.health, Health::Failing { .. });
            return HealthChange::Changed;
        }
        let was_healthy = mem::replace(&mut state.has_been_healthy, true);
        if mem::take(&mut state.is_away) {
            // An API server that rejects the credentials runs, and with it what watches the nodes. One that starts answers for a
            // moment that it knows no permissions: it may have been without power.
            let silence = SignedDuration::from_secs(SILENCE.into());
            let watched = |since| now.duration_since(since) >= silence;
            HealthChange::Returned {
                is_current: was_healthy && rejected_since.is_some_and(watched),
            }
        } else {
            HealthChange::Changed
        }
    }
}

impl fmt::Debug for MemberStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemberStore").finish_non_exhaustive()
    }
}
