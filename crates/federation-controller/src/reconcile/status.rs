//! The status on the host: written if it differs from the last one.

use fedrs_api::{FederatedReplicaSetStatus, FieldError, SetKey};
use tokio::time::Instant;

use super::{
    RETRY, Reconciler,
    cache::{later, version_of},
    frs_path, subject,
};
use crate::{
    calls,
    check::{self, InvalidFrs, StatusRefresh},
    frs_store::Entry,
};

impl Reconciler {
    /// Reports an invalid spec by conditions and an event; the last valid layout stays (F4).
    pub(super) async fn reject(&self, key: &SetKey, entry: &Entry, errors: &[FieldError]) {
        let now = self.clock.now();
        let (previous, members) = self.look(key, entry, now);
        let invalid = InvalidFrs {
            errors,
            generation: entry.metadata.generation,
            preferences_hash: &entry.preferences_hash,
            previous: &previous,
            members: &members,
            settings: &self.settings,
        };
        self.report(key, entry, check::reject(&invalid, now)).await;
    }

    /// Records and publishes a status that no write in a member belongs to.
    pub(super) async fn report(&self, key: &SetKey, entry: &Entry, refreshed: StatusRefresh) {
        self.cache.put_moving(key, refreshed.moving);
        let subject = subject(entry);
        for event in refreshed.events {
            self.record(key, &subject, event);
        }
        self.put_and_publish(key, entry, refreshed.status).await;
    }

    /// Keeps `status` as the next check's previous one, and publishes it.
    pub(super) async fn put_and_publish(
        &self,
        key: &SetKey,
        entry: &Entry,
        status: FederatedReplicaSetStatus,
    ) {
        self.cache.put_status(key, status.clone());
        let started = Instant::now();
        self.publish(key, entry, &status).await;
        self.metrics.spent("publish", started);
    }

    /// Writes `status` to the host if it differs from the last one (F22, F38).
    pub(super) async fn publish(
        &self,
        key: &SetKey,
        entry: &Entry,
        status: &FederatedReplicaSetStatus,
    ) {
        let (published, version) = self.cache.published(key);
        if published.as_ref() == Some(status) {
            return;
        }
        let metadata = &entry.metadata;
        let version = later(version, metadata.resource_version.clone());
        let seen = (metadata.uid.as_deref(), version.as_deref());
        let path = frs_path(key);
        let call = calls::put_status(&self.host, &path, seen, status);
        match self.host_call(call).await {
            Ok(answer) => {
                let version = version_of(&answer);
                self.cache.put_published(key, status.clone(), version);
            }
            // The object is gone.
            Err(error) if matches!(error.code(), Some(404)) => {}
            Err(error) => {
                tracing::debug!(frs = %key, %error, "failed to write the status");
                self.queue.add_check(key.clone(), RETRY);
            }
        }
    }
}
