//! The watch of the federated sets of one kind on the host: objects go into the store, the keys of changed ones onto the queue.

use std::{collections::HashSet, sync::Arc, time::Duration};

use cluster_informer::ServerClock;
use controller_base::{
    clock::Clock,
    error_text::format_error,
    list_progress::{ListProgress, ListState},
};
use fedrs_api::{ObjectKey, SetKind};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use reflector::{Error, EventHandler, InvalidObject};
use tokio::{sync::watch, time::Instant};

use crate::{
    frs_object::FrsObject,
    frs_store::{FrsStore, Source, key_of},
    host_lists::list_progress,
    messages,
    reconcile::ReconcileCache,
    reconcile_queue::ReconcileQueue,
};

/// Handles events of federated sets: one that was created, updated or deleted is checked without delay (F21).
pub(crate) struct FrsHandler {
    kind: SetKind,
    shared: SharedState,
    progress: ListProgress,
    /// When the current list began.
    list_began: Option<Instant>,
    /// What it has shown.
    seen: HashSet<ObjectKey>,
    /// Whether it has shown an object without a readable name.
    has_unnamed: bool,
    /// Whether the host was found to lack the kind.
    is_missing: bool,
    host_clock: ServerClock,
}

/// What the watches of all kinds share.
#[derive(Clone)]
pub(crate) struct SharedState {
    pub(crate) sets: Arc<FrsStore>,
    pub(crate) cache: Arc<ReconcileCache>,
    pub(crate) queue: ReconcileQueue,
    pub(crate) federation: Arc<str>,
    pub(crate) clock: Clock,
}

fn plural(kind: SetKind) -> &'static str {
    match kind {
        SetKind::FederatedReplicaSet => "FederatedReplicaSets",
        SetKind::FederatedDeployment => "FederatedDeployments",
    }
}

impl FrsHandler {
    /// Handles the sets of `kind`; `listed` gets the progress of the first list.
    pub(crate) fn new(
        kind: SetKind,
        shared: SharedState,
        listed: watch::Sender<ListState>,
    ) -> Self {
        Self {
            kind,
            shared,
            progress: list_progress(plural(kind), listed),
            list_began: None,
            seen: HashSet::new(),
            has_unnamed: false,
            is_missing: false,
            host_clock: ServerClock::default(),
        }
    }

    /// Dates the deletion of `object` by this process's clock: the host's may be far from it.
    fn date(&self, object: &mut FrsObject) {
        let metadata = &mut object.metadata;
        let Some(since) = metadata.deletion_timestamp.take() else {
            return;
        };
        let known = self.shared.sets.get(&key_of(self.kind, metadata));
        let known = known.filter(|known| known.metadata.uid == metadata.uid);
        let known = known.and_then(|known| known.metadata.deletion_timestamp.clone());
        let began = || {
            Time(
                self.host_clock
                    .began(Some(since.0), self.shared.clock.now()),
            )
        };
        metadata.deletion_timestamp = Some(known.unwrap_or_else(began));
    }

    fn check_now(&self, keys: impl IntoIterator<Item = ObjectKey>) {
        for key in keys {
            self.shared.queue.add_check(key, Duration::ZERO);
        }
    }

    fn remove(&self, key: &ObjectKey) {
        let overlapping = self.shared.sets.remove(key);
        self.check_now(overlapping.into_iter().chain([key.clone()]));
    }
}

impl EventHandler<FrsObject> for FrsHandler {
    fn on_init(&mut self) {
        self.list_began = Some(Instant::now());
        self.seen.clear();
        self.has_unnamed = false;
    }

    fn on_page(&mut self, date: Option<&str>) {
        self.host_clock.begin_page(date);
    }

    fn on_apply(&mut self, mut object: FrsObject) {
        self.date(&mut object);
        let key = key_of(self.kind, &object.metadata);
        if let Some(status) = object.status.take() {
            object.status = Some(self.shared.cache.shared(&key, status));
        }
        let lacks_write = |began| {
            self.shared
                .cache
                .is_older_than_written(&key, &object.metadata, began)
        };
        let source = self.list_began.map(|began| Source::List {
            lacks_write: lacks_write(began),
        });
        let source = source.unwrap_or(Source::Watch);
        let applied = (self.shared.sets).apply(self.kind, object, source, &self.shared.federation);
        self.seen.insert(applied.key.clone());
        if applied.changed {
            self.check_now(applied.overlapping.into_iter().chain([applied.key]));
        }
    }

    fn on_delete(&mut self, object: FrsObject) {
        self.remove(&key_of(self.kind, &object.metadata));
    }

    fn on_init_done(&mut self, _resource_version: &str) {
        self.list_began = None;
        self.host_clock.end_list();
        // Any of the sets may be the one without a name: none counts as deleted.
        let is_gone = |key: &ObjectKey| {
            key.kind == self.kind && !self.has_unnamed && !self.seen.contains(key)
        };
        for key in self.shared.sets.keys().into_iter().filter(is_gone) {
            self.remove(&key);
        }
        self.seen = HashSet::new();
        self.progress.complete();
    }

    fn on_invalid(&mut self, object: &InvalidObject) {
        match (&object.namespace, &object.name) {
            (Some(namespace), Some(name)) => {
                let key = ObjectKey::of_kind(self.kind, &**namespace, &**name);
                if object.deleted {
                    self.remove(&key);
                } else {
                    self.seen.insert(key);
                }
            }
            _ => self.has_unnamed = true,
        }
    }

    /// A host without the kind, or without the permission to list it, has no set of it for this controller: it may be older.
    fn on_error(&mut self, error: &Error) {
        let is_optional = self.kind != SetKind::FederatedReplicaSet;
        if is_optional && matches!(error.code(), Some(403 | 404)) {
            if !std::mem::replace(&mut self.is_missing, true) {
                let text = messages::may_not_list(plural(self.kind), &format_error(error));
                tracing::warn!("{text}");
            }
            self.progress.complete();
        } else {
            self.progress.failed(error);
        }
    }

    fn on_activity(&mut self) {
        self.progress.answered();
    }
}
