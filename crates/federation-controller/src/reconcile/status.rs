//! The status on the host: written if it differs from the last one.

use fedrs_api::{EventReason, FederatedReplicaSetStatus, FieldError, SetKey};

use super::{
    RETRY, Reconciler,
    cache::{later, version_of},
    frs_path, subject,
};
use crate::{calls, check, event::Event, frs_store::Entry};

impl Reconciler {
    /// Reports an invalid spec by a condition and an event; the last valid layout stays (F4).
    pub(super) async fn reject(&self, key: &SetKey, entry: &Entry, errors: &[FieldError]) {
        let message = errors
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("; ");
        let previous = self.cache.status(key, &entry.object);
        let mut status = FederatedReplicaSetStatus {
            observed_generation: entry.object.metadata.generation,
            observed_preferences_hash: fedrs_api::preferences_hash(&entry.object),
            ..previous.clone()
        };
        check::reject(&mut status, &message, self.clock.now());
        if status != previous {
            let event = Event::warning(EventReason::InvalidSpec, message);
            self.record(key, &subject(entry), event);
        }
        self.cache.put_status(key, status.clone());
        self.publish(key, entry, &status).await;
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
        let metadata = &entry.object.metadata;
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
