//! The watch of FederatedReplicaSets on the host: into the store, changes onto the agenda.

use std::{collections::HashSet, sync::Arc, time::Duration};

use fedrs_api::{FederatedReplicaSet, SetKey};
use reflector::{Error, EventHandler};
use tokio::sync::watch;

use crate::{
    error_text::format_error,
    host::{HostStore, key_of},
    metrics::Metrics,
    reconcile::Reconciler,
};

/// Whether a kind has been listed from the host, and why not if not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Listed {
    /// Whether a first list is complete.
    pub complete: bool,
    /// The last failure, while it lasts.
    pub trouble: Option<String>,
}

/// Publishes [`Listed`] and says in the log what a person has to do.
pub(crate) struct Progress {
    kind: &'static str,
    listed: watch::Sender<Listed>,
}

impl Progress {
    /// Of the objects of `kind`, named in the plural.
    pub(crate) fn of(kind: &'static str, listed: watch::Sender<Listed>) -> Self {
        Self { kind, listed }
    }

    pub(crate) fn complete(&self) {
        self.listed.send_if_modified(|listed| {
            let done = Listed {
                complete: true,
                trouble: None,
            };
            let changed = *listed != done;
            *listed = done;
            changed
        });
    }

    pub(crate) fn failed(&self, error: &Error) {
        let message = if error.code() == Some(404) {
            format!(
                "the host does not know {}: install the CRDs with `fedrs crds | kubectl apply -f -`; waiting",
                self.kind
            )
        } else {
            format!(
                "{} can't be read from the host: {}",
                self.kind,
                format_error(error)
            )
        };
        self.listed.send_if_modified(|listed| {
            let changed = listed.trouble.as_deref() != Some(&message);
            if changed {
                tracing::warn!("{message}");
                listed.trouble = Some(message);
            }
            changed
        });
    }
}

/// FederatedReplicaSets: created, updated or deleted means a check without delay (F21).
pub(crate) struct SetSink {
    reconciler: Arc<Reconciler>,
    progress: Progress,
    /// What the list under way has shown.
    seen: HashSet<SetKey>,
}

impl SetSink {
    pub(crate) fn new(reconciler: Arc<Reconciler>, listed: watch::Sender<Listed>) -> Self {
        Self {
            reconciler,
            progress: Progress::of("FederatedReplicaSets", listed),
            seen: HashSet::new(),
        }
    }

    fn sets(&self) -> &HostStore {
        &self.reconciler.sets
    }

    fn count(&self, metrics: &Metrics) {
        let (all, invalid) = self.sets().counts();
        metrics.sets.set(i64::try_from(all).unwrap_or(i64::MAX));
        metrics
            .invalid_sets
            .set(i64::try_from(invalid).unwrap_or(i64::MAX));
    }

    fn check_now(&self, keys: impl IntoIterator<Item = SetKey>) {
        for key in keys {
            self.reconciler.agenda.check(key, Duration::ZERO);
        }
    }

    fn gone(&self, key: &SetKey) {
        let others = self.sets().remove(key);
        self.check_now(others.into_iter().chain([key.clone()]));
    }
}

impl EventHandler<FederatedReplicaSet> for SetSink {
    fn on_init(&mut self) {
        self.seen.clear();
    }

    fn on_apply(&mut self, object: FederatedReplicaSet) {
        let federation = Arc::clone(&self.reconciler.executor.federation);
        let applied = self.sets().apply(object, &federation);
        self.seen.insert(applied.key.clone());
        if applied.changed {
            self.count(&self.reconciler.metrics);
            self.check_now(applied.others.into_iter().chain([applied.key]));
        }
    }

    fn on_delete(&mut self, object: FederatedReplicaSet) {
        self.gone(&key_of(&object));
        self.count(&self.reconciler.metrics);
    }

    fn on_init_done(&mut self, _resource_version: &str) {
        for key in self.sets().keys() {
            if !self.seen.contains(&key) {
                self.gone(&key);
            }
        }
        self.seen = HashSet::new();
        self.count(&self.reconciler.metrics);
        self.progress.complete();
    }

    fn on_error(&mut self, error: &Error) {
        self.progress.failed(error);
    }
}
