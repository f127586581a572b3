//! What the reconciler keeps of each FederatedReplicaSet from one reconciliation to the next.
//!
//! Each entry is used by one worker at a time, and by tasks that bring late outcomes. A guard of the map is held for one
//! access, and never across an await.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use controller_base::finalizer;
use dashmap::DashMap;
use fedrs_api::{FederatedReplicaSetStatus, ObjectKey, ValidTemplate, finalizers};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use planted_bugs::{PlantedBug, is_planted};
use reflector::ResourceVersion;
use serde::Deserialize;
use tokio::time::Instant;

use super::{
    failed_attempts::FailedAttempts,
    interim::{self, InterimPace, is_interim},
    record_rate::RecordRate,
};
use crate::{
    check::{Action, RolloutRecord},
    executor::LateOutcome,
    frs_store::Entry,
};

/// What is kept of one object.
#[derive(Clone, Debug, Default)]
pub(super) struct Cached {
    uid: Option<String>,
    /// [`Entry::times_restored`] at the last access.
    times_restored: u32,
    /// The status of the last check, with what became of its writes: the next check starts from it.
    pub(super) status: Arc<FederatedReplicaSetStatus>,
    /// Whether replicas wait for their replacements to be ready.
    pub(super) moving: bool,
    /// The status that the host has, after our last write of it.
    pub(super) published: Option<Arc<FederatedReplicaSetStatus>>,
    /// Since when the host's status is behind, because what came since is interim, and when it is this object's turn.
    withheld: Option<Withheld>,
    /// Interim statuses that were written in a row for this generation.
    interim_writes: u32,
    /// The resourceVersion after our last write.
    pub(super) resource_version: Option<String>,
    /// When the response to it came.
    written_at: Option<Instant>,
    /// The resourceVersion after our write of the finalizer.
    finalizer_version: Option<ResourceVersion>,
    /// The revision that this process has kept on the host, with its change cause.
    pub(super) kept_revision: Option<(String, Option<String>)>,
    /// When the next attempt to keep the revision is due, after one that failed.
    pub(super) next_revision: Option<Instant>,
    /// The revision that has failed, of which the members were asked why its pods are not available.
    pub(super) asked_revision: Option<String>,
    /// The template of a revision that was read from the host.
    pub(super) read_template: Option<(String, Arc<ValidTemplate>)>,
    /// Attempts in a row to write the object that failed.
    pub(super) failed_attempts: Option<FailedAttempts>,
    /// Writes that lend something new.
    pub(super) records: RecordRate,
    /// Until when no member is asked again to release or delete the local ReplicaSet, because one has rejected it.
    pub(super) next_deletion: Option<Instant>,
    /// Members that the deletion waits for, as last reported.
    pub(super) waited_for: Vec<String>,
    /// Members that have not answered our last write, with the outcome once it arrives.
    pub(super) pending: BTreeMap<String, Option<LateOutcome>>,
}

/// A status whose write is delayed.
#[derive(Clone, Copy, Debug)]
struct Withheld {
    since: Instant,
    /// Interim statuses of all objects take turns.
    turn: Instant,
}

/// What is to be done with a status.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Publication {
    /// The host has it, or the object is gone.
    #[default]
    Done,
    /// Another one may follow soon.
    Later,
    /// To be written to the object, which has this resourceVersion after our last write.
    Due(Arc<FederatedReplicaSetStatus>, Option<String>),
}

impl Cached {
    fn of(entry: &Entry) -> Self {
        Self {
            uid: entry.metadata.uid.clone(),
            times_restored: entry.times_restored,
            published: entry.status.clone(),
            status: entry.status.clone().unwrap_or_default(),
            ..Self::default()
        }
    }

    /// Keeps `status`, which was decided at `now`, as the next check's previous one. Returns what is to be done with it, which
    /// may take `patience` longer than it has to.
    fn put_status(
        &mut self,
        status: FederatedReplicaSetStatus,
        (pace, patience): (&InterimPace, Duration),
        now: Instant,
    ) -> Publication {
        let is_same = |published: &&Arc<FederatedReplicaSetStatus>| {
            ***published == status && !is_planted(PlantedBug::StatusNotCompared)
        };
        if let Some(published) = self.published.as_ref().filter(is_same) {
            // One copy of what is both.
            self.status = Arc::clone(published);
            self.withheld = None;
            return Publication::Done;
        }
        self.status = Arc::new(status);
        if self.withholds_status((pace, patience), now) {
            return Publication::Later;
        }
        self.withheld = None;
        // The host keeps no fractions of seconds: what it will show is kept, once.
        self.status = Arc::new(self.status.as_stored());
        Publication::Due(Arc::clone(&self.status), self.resource_version.clone())
    }

    /// Whether the write of the status is delayed. Counts the interim statuses that are written.
    fn withholds_status(
        &mut self,
        (pace, patience): (&InterimPace, Duration),
        now: Instant,
    ) -> bool {
        let published = self.published.as_deref();
        let generation = published.and_then(|published| published.observed_generation);
        let is_interim = is_interim(published, &self.status);
        if !is_interim || generation != self.status.observed_generation {
            self.interim_writes = 0;
        }
        let Withheld { since, turn } = *self.withheld.get_or_insert_with(|| Withheld {
            since: now,
            turn: if is_interim { pace.turn(now) } else { now },
        });
        let due = if is_interim {
            turn.max(since + interim::max_delay(self.interim_writes))
        } else {
            since
        };
        if now < due + patience {
            return true;
        }
        self.interim_writes += u32::from(is_interim);
        false
    }

    /// What is lent to members, as the host has recorded it: by our last write, or by another one, as a leader's whose status
    /// arrived after its term. In what we have published ourselves, with the progress that was seen since, and without the loans
    /// that have ended.
    pub(super) fn recorded_rollout(&self, entry: &Entry) -> RolloutRecord {
        let recorded = self.host_record(entry);
        let decided = RolloutRecord::of(&self.status);
        let published = self.published.as_deref().map(RolloutRecord::of);
        let is_ours = recorded.is_covered_by(&published.unwrap_or_default());
        let mut known = if is_ours && decided.is_covered_by(&recorded) {
            decided
        } else {
            recorded
        };
        let has_started = self.resource_version.is_none();
        if has_started && is_planted(PlantedBug::SpeedForgottenByRestart) {
            known.state.progressed = None;
        }
        known
    }

    /// Whether `status` lends what the host has not recorded.
    pub(super) fn lacks_record(&self, entry: &Entry, status: &FederatedReplicaSetStatus) -> bool {
        !RolloutRecord::of(status).is_covered_by(&self.host_record(entry))
    }

    /// Whether `status` lends what neither the host has recorded nor the last status that was written lends. If that one lends the
    /// same, and the host has not recorded it, this version of its CRD drops it: to write it again and again would not help. If
    /// the host has, perhaps by another leader, nothing is new.
    pub(super) fn is_new_record(&self, entry: &Entry, status: &FederatedReplicaSetStatus) -> bool {
        let published = self.published.as_deref().map(RolloutRecord::of);
        self.lacks_record(entry, status)
            && !RolloutRecord::of(status).is_covered_by(&published.unwrap_or_default())
    }

    fn host_record(&self, entry: &Entry) -> RolloutRecord {
        let seen = parse(entry.metadata.resource_version.as_deref());
        let is_behind = seen.is_older_than(parse(self.resource_version.as_deref()));
        let status = if is_behind {
            self.published.as_ref()
        } else {
            entry.status.as_ref()
        };
        let record = status.map(|status| RolloutRecord::of(status));
        record.unwrap_or_default()
    }

    /// Whether `actions` create a local ReplicaSet that the published status does not know of, although it knows of others.
    pub(super) fn lacks_creation(&self, actions: &[Action]) -> bool {
        let known = || {
            let published = self.published.iter().flat_map(|status| &status.clusters);
            published.filter(|cluster| cluster.internal.requested_replicas.is_some())
        };
        let is_unknown = |action: &Action| known().all(|cluster| cluster.name != action.member);
        let mut creations = actions.iter().filter(|action| action.change.creates());
        creations.any(is_unknown) && known().next().is_some()
    }

    /// Takes the late outcomes that have arrived. Returns them, and the members that have not answered yet.
    pub(super) fn take_late(&mut self) -> (Vec<LateOutcome>, BTreeSet<String>) {
        let pending = std::mem::take(&mut self.pending).into_iter();
        let (arrived, pending): (BTreeMap<_, _>, _) =
            pending.partition(|(_, outcome)| outcome.is_some());
        self.pending = pending;
        let pending = self.pending.keys().cloned().collect();
        (arrived.into_values().flatten().collect(), pending)
    }

    /// Records that the finalizer was written, which made this version.
    pub(super) fn put_finalizer(&mut self, version: Option<String>) {
        self.finalizer_version = Some(parse(version.as_deref()));
        self.put_written(version);
    }

    /// Records that the object was written, which made this version.
    pub(super) fn put_written(&mut self, version: Option<String>) {
        self.resource_version = version;
        self.written_at = Some(Instant::now());
        self.failed_attempts = None;
    }

    /// Whether this process wrote the finalizer, and the object shows it or is older than that.
    pub(super) fn has_finalizer(&self, metadata: &ObjectMeta) -> bool {
        self.finalizer_version.is_some_and(|written| {
            let seen = parse(metadata.resource_version.as_deref());
            finalizer::is_present(metadata, finalizers::MEMBERS) || seen.is_older_than(written)
        })
    }
}

/// The reconcile cache.
#[derive(Debug, Default)]
pub(crate) struct ReconcileCache {
    objects: DashMap<ObjectKey, Cached>,
    pace: InterimPace,
}

impl ReconcileCache {
    /// Changes what is kept of an object. It is kept from the first access to it, and begins with the status that the object
    /// has; an object that replaces another one of its name begins anew.
    pub(super) fn of_object<T>(
        &self,
        key: &ObjectKey,
        entry: &Entry,
        change: impl FnOnce(&mut Cached) -> T,
    ) -> T {
        let cached = self.objects.entry(key.clone());
        let mut cached = cached.or_insert_with(|| Cached::of(entry));
        if cached.uid != entry.metadata.uid {
            *cached = Cached::of(entry);
        }
        if cached.times_restored != entry.times_restored {
            // The host has lost what was written since the backup.
            cached.times_restored = entry.times_restored;
            cached.published.clone_from(&entry.status);
            cached.resource_version = None;
            cached.finalizer_version = None;
        }
        change(&mut cached)
    }

    /// Changes what is kept of `key`, unless it is forgotten.
    pub(super) fn of_key<T: Default>(
        &self,
        key: &ObjectKey,
        change: impl FnOnce(&mut Cached) -> T,
    ) -> T {
        let cached = self.objects.get_mut(key);
        cached.map_or_else(T::default, |mut cached| change(&mut cached))
    }

    /// Keeps the `status` of `key`, see [`Cached::put_status`].
    pub(super) fn put_status(
        &self,
        key: &ObjectKey,
        status: FederatedReplicaSetStatus,
        patience: Duration,
        now: Instant,
    ) -> Publication {
        self.of_key(key, |cached| {
            cached.put_status(status, (&self.pace, patience), now)
        })
    }

    /// `status`, which the host shows, or the copy that is kept, if they are equal.
    pub(crate) fn shared(
        &self,
        key: &ObjectKey,
        status: Arc<FederatedReplicaSetStatus>,
    ) -> Arc<FederatedReplicaSetStatus> {
        let kept = self.of_key(key, |cached| Some(Arc::clone(&cached.status)));
        kept.filter(|kept| *kept == status).unwrap_or(status)
    }

    /// Whether `metadata`, in a list that began at `list_began`, is older than a write of ours that was answered before: the
    /// host was restored from a backup. A watch may be behind, a list is not.
    pub(crate) fn is_older_than_written(
        &self,
        key: &ObjectKey,
        metadata: &ObjectMeta,
        list_began: Instant,
    ) -> bool {
        let seen = parse(metadata.resource_version.as_deref());
        self.of_key(key, |cached| {
            cached.uid == metadata.uid
                && cached.written_at.is_some_and(|at| at < list_began)
                && seen.is_older_than(parse(cached.resource_version.as_deref()))
        })
    }

    /// Forgets an object.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.objects.remove(key);
    }
}

/// What is used of the response to a write: all of it may be a hundred times as large in memory.
#[derive(Debug, Deserialize)]
pub(crate) struct Written {
    metadata: WrittenMetadata,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenMetadata {
    resource_version: Option<String>,
}

/// The resourceVersion in the response to a write.
pub(super) fn version_of(response: &Written) -> Option<String> {
    response.metadata.resource_version.clone()
}

/// The later of two versions of one object.
pub(super) fn later(a: Option<String>, b: Option<String>) -> Option<String> {
    if parse(a.as_deref()).is_older_than(parse(b.as_deref())) {
        b
    } else {
        a.or(b)
    }
}

fn parse(version: Option<&str>) -> ResourceVersion {
    ResourceVersion::parse(version.unwrap_or_default())
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
