//! The status on the host: written if it differs from the last one.

use std::sync::Arc;

use controller_base::calls;
use fedrs_api::{FederatedReplicaSetStatus, FieldError, ObjectKey};
use tokio::time::Instant;

use super::{
    Reconciler,
    cache::{Cached, Publication, later, version_of},
    frs_path,
};
use crate::{
    check::{self, Action, InvalidFrs, StatusRefresh},
    frs_store::Entry,
    reconcile_queue::ReconcileWork,
};

impl Reconciler {
    /// Reports an invalid spec by conditions and an event; the last valid layout stays (F4).
    pub(super) async fn reject(&self, key: &ObjectKey, entry: &Entry, errors: &[FieldError]) {
        let now = self.clock.now();
        let (previous, members) = self.look(key, entry, None, now);
        let invalid = InvalidFrs {
            errors,
            generation: entry.metadata.generation,
            preferences_hash: &entry.preferences_hash,
            previous: &previous,
            members: &members,
            settings: &self.config,
        };
        self.report(key, entry, check::reject(&invalid, now)).await;
    }

    /// Records and publishes a status that no write in a member belongs to.
    pub(super) async fn report(&self, key: &ObjectKey, entry: &Entry, refresh: StatusRefresh) {
        let status = self.record_decision(key, entry, refresh);
        let work = ReconcileWork::StatusOnly;
        self.put_and_publish(key, entry, status, work).await;
    }

    /// Records what was decided; returns the status.
    pub(super) fn record_decision(
        &self,
        key: &ObjectKey,
        entry: &Entry,
        refresh: StatusRefresh,
    ) -> FederatedReplicaSetStatus {
        (self.cache).of_key(key, |cached| cached.moving = refresh.moving);
        for event in refresh.events {
            self.record(key, entry, event);
        }
        refresh.status
    }

    /// Keeps `status` as the next check's previous one. Writes it to the host if it differs from the published one, unless it is
    /// interim (F22, F38).
    pub(super) async fn put_and_publish(
        &self,
        key: &ObjectKey,
        entry: &Entry,
        status: FederatedReplicaSetStatus,
        work: ReconcileWork,
    ) {
        let started = Instant::now();
        let patience = self.queue.patience_after(work);
        match self.cache.put_status(key, status, patience, started) {
            Publication::Later => self.queue.add_status(key.clone()),
            Publication::Due(status, version) if self.may_write_host(key) => {
                self.publish(key, entry, version, status).await;
            }
            Publication::Done | Publication::Due(..) => {}
        }
        self.metrics.spent("publish", started);
    }

    /// Publishes the `status` of a decision before anything is done if it lends parts of a budget: only what is recorded may be
    /// used (L14). Also before `actions` create what no status knows of, beside other local ReplicaSets: a
    /// new leader would believe nothing that these show (F20). Returns whether the host has it; else the object is checked again.
    pub(super) async fn announce(
        &self,
        key: &ObjectKey,
        entry: &Entry,
        status: &FederatedReplicaSetStatus,
        actions: &[Action],
    ) -> bool {
        let unannounced = |cached: &mut Cached| {
            let is_unannounced =
                cached.lacks_creation(actions) || cached.lacks_record(entry, status);
            is_unannounced.then(|| cached.resource_version.clone())
        };
        let Some(version) = self.cache.of_key(key, unannounced) else {
            return true;
        };
        let status = Arc::new(status.as_stored());
        self.may_write_host(key) && self.publish(key, entry, version, status).await
    }

    /// Writes `status` to the host; `version` is the one after our last write. Returns whether the host has it.
    async fn publish(
        &self,
        key: &ObjectKey,
        entry: &Entry,
        version: Option<String>,
        status: Arc<FederatedReplicaSetStatus>,
    ) -> bool {
        let metadata = &entry.metadata;
        let version = later(version, metadata.resource_version.clone());
        let seen = (metadata.uid.as_deref(), version.as_deref());
        let path = frs_path(key);
        let call = calls::put_status(&self.host, &path, seen, &*status);
        match self.host_call(call).await {
            Ok(answer) => {
                self.cache.of_key(key, |cached| {
                    cached.published = Some(status);
                    cached.put_written(version_of(&answer));
                });
                return true;
            }
            // The object is gone.
            Err(error) if error.code() == Some(404) => {}
            Err(error) => {
                self.retry_host_write(key, entry, &error, "failed to write the status");
            }
        }
        false
    }
}
