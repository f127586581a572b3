//! What the lock of a store protects: the objects of each watch, and whether they are up to date.

use std::mem;

use fedrs_api::{LocalKind, WorkloadKey};
use jiff::{SignedDuration, Timestamp};
use reflector::ResourceVersion;

use crate::{
    change::{KeyedChange, WorkloadChange},
    health::{Health, HealthyProbes},
    owners::PodOwner,
    pod_table::{MAX_PODS, PodTable},
    server_clock::ServerClock,
    sync_state::SyncState,
    watch_state::WatchState,
    workload::{PodCounts, WorkloadState},
    workload_table::{MAX_WORKLOADS, WorkloadTable},
};

/// One of the watches of a member cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    /// ReplicaSets always, another kind once somebody asks for it.
    Workloads(LocalKind),
    Pods,
}

impl Watch {
    pub(crate) const ALL: [Self; 4] = [
        Self::Workloads(LocalKind::ReplicaSet),
        Self::Workloads(LocalKind::Deployment),
        Self::Workloads(LocalKind::LocalReplicaSet),
        Self::Pods,
    ];

    /// The most objects that a member may have.
    pub(crate) fn limit(self) -> usize {
        match self {
            Self::Workloads(_) => MAX_WORKLOADS,
            Self::Pods => MAX_PODS,
        }
    }
}

/// The local workloads of one kind.
#[derive(Debug, Default)]
pub(super) struct LocalWorkloads {
    pub(super) table: WorkloadTable,
    pub(super) watch: WatchState,
    /// The member's clock, while they are listed; the pods have their own.
    pub(super) clock: ServerClock,
}

impl LocalWorkloads {
    /// The list is complete as of `version`. Returns what it did not contain.
    pub(super) fn end_list(&mut self, version: ResourceVersion) -> Vec<KeyedChange> {
        self.clock.end_list();
        self.table.end_list(version)
    }
}

#[derive(Debug)]
pub(super) struct State {
    /// Since when it is filled.
    pub(super) watched_since: Timestamp,
    pub(super) replica_sets: LocalWorkloads,
    pub(super) deployments: LocalWorkloads,
    pub(super) local_replica_sets: LocalWorkloads,
    pub(super) pods: PodTable,
    pub(super) pod_watch: WatchState,
    pub(super) health: Health,
    pub(super) healthy_probes: HealthyProbes,
    /// Whether it has been unreachable, or rejected the credentials, since it was last healthy.
    pub(super) is_away: bool,
    pub(super) has_been_healthy: bool,
    /// Since when it rejects the credentials.
    pub(super) rejects_since: Option<Timestamp>,
    pub(super) version: Option<String>,
    /// What was last reported as a change, by kind of workloads: the kind of the sync state, and whether there are no such
    /// workloads.
    pub(super) reported_sync: [(mem::Discriminant<SyncState>, bool); 3],
}

impl State {
    pub(super) fn on(pods: PodTable, watched_since: Timestamp) -> Self {
        Self {
            watched_since,
            replica_sets: LocalWorkloads::default(),
            deployments: LocalWorkloads::default(),
            local_replica_sets: LocalWorkloads::default(),
            pods,
            pod_watch: WatchState::default(),
            health: Health::Unknown,
            healthy_probes: HealthyProbes::default(),
            is_away: false,
            has_been_healthy: false,
            rejects_since: None,
            version: None,
            reported_sync: [(mem::discriminant(&SyncState::NotSynced), false); 3],
        }
    }

    /// The local workloads of a kind.
    pub(super) fn of(&self, kind: LocalKind) -> &LocalWorkloads {
        match kind {
            LocalKind::ReplicaSet => &self.replica_sets,
            LocalKind::Deployment => &self.deployments,
            LocalKind::LocalReplicaSet => &self.local_replica_sets,
        }
    }

    /// The same, to be changed.
    pub(super) fn of_mut(&mut self, kind: LocalKind) -> &mut LocalWorkloads {
        match kind {
            LocalKind::ReplicaSet => &mut self.replica_sets,
            LocalKind::Deployment => &mut self.deployments,
            LocalKind::LocalReplicaSet => &mut self.local_replica_sets,
        }
    }

    pub(super) fn watch(&mut self, watch: Watch) -> &mut WatchState {
        match watch {
            Watch::Workloads(kind) => &mut self.of_mut(kind).watch,
            Watch::Pods => &mut self.pod_watch,
        }
    }

    /// The watches that the view of a kind of workloads depends on. Of a Deployment, the watch of the ReplicaSets only shows which
    /// pods are its own: where ReplicaSets cannot be read at all, the status of the Deployment counts them.
    pub(super) fn watches_of(
        &self,
        kind: LocalKind,
        now: Timestamp,
        stale_after: SignedDuration,
    ) -> impl Iterator<Item = &WatchState> {
        let own = &self.of(kind).watch;
        let replica_sets = &self.replica_sets.watch;
        let needs_replica_sets =
            kind == LocalKind::Deployment && !replica_sets.is_unreadable(now, stale_after);
        let replica_sets = needs_replica_sets.then_some(replica_sets);
        [own, &self.pod_watch].into_iter().chain(replica_sets)
    }

    /// Whether the view of a kind of sets is up to date.
    pub(super) fn sync_state(
        &self,
        kind: LocalKind,
        now: Timestamp,
        stale_after: SignedDuration,
    ) -> SyncState {
        let watches = self.watches_of(kind, now, stale_after);
        let states = watches.map(|watch| watch.sync_state(now, stale_after));
        states.fold(SyncState::Synced, SyncState::and)
    }

    /// Forgets what a watch has brought.
    pub(super) fn forget(&mut self, watch: Watch) {
        match watch {
            Watch::Workloads(kind) => self.of_mut(kind).table.clear(),
            Watch::Pods => self.pods.clear(),
        }
        *self.watch(watch) = WatchState::default();
    }

    /// Marks everything known as out of date until it is listed again (F39).
    pub(super) fn invalidate(&mut self) {
        for watch in Watch::ALL {
            self.watch(watch).begin_list();
        }
    }

    /// The changes of Deployments that have other ReplicaSets since the last call, and so other pods.
    pub(super) fn take_owner_changes(&mut self) -> Vec<KeyedChange> {
        let owners = self.replica_sets.table.take_changed_owners();
        let known = owners.into_iter().filter(|key| self.has_deployment(key));
        known.map(|key| (key, WorkloadChange::Pods)).collect()
    }

    fn has_deployment(&self, key: &WorkloadKey) -> bool {
        self.deployments.table.get(key).is_some()
    }

    /// A change of pods by the workload to check: a known Deployment or LocalReplicaSet, or else what the label of the pods names.
    pub(super) fn by_workload(&self, (owner, change): (PodOwner, WorkloadChange)) -> KeyedChange {
        let deployment = self.replica_sets.table.owner_of(owner.uid);
        let deployment = deployment.filter(|key| self.has_deployment(key));
        let local = || {
            let key = owner.key.with_kind(LocalKind::LocalReplicaSet);
            let set = self.local_replica_sets.table.get(&key);
            set.is_some_and(|set| set.id() == owner.uid).then_some(key)
        };
        let key = deployment.cloned().or_else(local);
        (key.unwrap_or(owner.key), change)
    }

    /// The workload `key` at `now` with the counts of its pods, those of a Deployment over its ReplicaSets.
    pub(super) fn workload(
        &self,
        key: &WorkloadKey,
        now: Timestamp,
        stale_after: SignedDuration,
    ) -> (Option<WorkloadState>, PodCounts) {
        let Some(mut workload) = self.of(key.kind).table.at(key, now) else {
            return Default::default();
        };
        let id = workload.id();
        if key.kind != LocalKind::Deployment {
            return (Some(workload), self.pods.counts(id));
        }
        // What was known of ReplicaSets that cannot be read any more may be of any time.
        let is_unreadable = self.replica_sets.watch.is_unreadable(now, stale_after);
        let sets = (self.replica_sets.table.owned_by(id)).filter(|_| !is_unreadable);
        let sets: Vec<_> = sets.collect();
        see_replica_sets(&mut workload, &sets);
        let counts = sets.into_iter().map(|set| self.pods.counts(set.id()));
        let pods = counts.fold(PodCounts::default(), PodCounts::plus);
        (Some(workload), pods)
    }
}

/// Adds to the state of a Deployment what its known ReplicaSets say.
///
/// - How many of its pods have our labels. A `fullyLabeledReplicas` is about the labels of the ReplicaSet's own template (F30).
/// - The lowest replicas that the controller of ReplicaSets may still act on: when the Deployment has observed its spec, that one
///   may not have observed what became of it (F20).
///
/// The ReplicaSets are ahead of the status of the Deployment. So as long as all its pods are of one template with our labels, whose
/// ReplicaSet is known, what this one says counts, whatever the numbers of the Deployment are.
fn see_replica_sets(deployment: &mut WorkloadState, sets: &[&WorkloadState]) {
    let labeled = |set: &WorkloadState| {
        let owner = set.owned_by.as_ref();
        let is_labeled = owner.is_some_and(|owner| owner.template_is_labeled);
        let labeled = if is_labeled {
            set.fully_labeled_replicas
        } else {
            0
        };
        labeled.min(set.status_replicas)
    };
    let sum = |of: &dyn Fn(&WorkloadState) -> u32| {
        let numbers = sets.iter().map(|set| of(set));
        numbers.fold(0, u32::saturating_add)
    };
    let all = deployment.status_replicas;
    let template = deployment.deployment.as_ref();
    let has_one_template = deployment.observed_generation >= deployment.generation
        && deployment.updated_replicas() >= all
        && template.is_some_and(|template| template.template_is_labeled)
        && sets.iter().any(|set| set.status_replicas > 0);
    if has_one_template {
        let unlabeled = sum(&|set| set.status_replicas - labeled(set));
        deployment.fully_labeled_replicas = all.saturating_sub(unlabeled);
        let lowest = sum(&|set| set.lowest_replicas);
        deployment.lowest_replicas = deployment.lowest_replicas.min(lowest);
    } else {
        deployment.fully_labeled_replicas = sum(&labeled).min(all);
    }
}
