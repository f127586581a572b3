//! The watch of FederatedReplicaSets on the host: objects go into the store, the keys of changed ones onto the queue.

use std::{collections::HashSet, sync::Arc, time::Duration};

use cluster_informer::ServerClock;
use fedrs_api::ObjectKey;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use reflector::{Error, EventHandler, InvalidObject};
use tokio::{sync::watch, time::Instant};

use crate::{
    clock::Clock,
    frs_object::FrsObject,
    frs_store::{FrsStore, Source, key_of},
    metrics::Metrics,
    readiness::{ListProgress, ListState},
    reconcile::ReconcileCache,
    reconcile_queue::ReconcileQueue,
};

/// Handles events of FederatedReplicaSets: one that was created, updated or deleted is checked without delay (F21).
pub(crate) struct FrsHandler {
    sets: Arc<FrsStore>,
    cache: Arc<ReconcileCache>,
    queue: ReconcileQueue,
    federation: Arc<str>,
    metrics: Arc<Metrics>,
    progress: ListProgress,
    /// When the current list began.
    list_began: Option<Instant>,
    /// What it has shown.
    seen: HashSet<ObjectKey>,
    /// Whether it has shown an object without a readable name.
    has_unnamed: bool,
    clock: Clock,
    host_clock: ServerClock,
}

impl FrsHandler {
    pub(crate) fn new(
        sets: Arc<FrsStore>,
        cache: Arc<ReconcileCache>,
        queue: ReconcileQueue,
        federation: &Arc<str>,
        metrics: Arc<Metrics>,
        listed: watch::Sender<ListState>,
        clock: Clock,
    ) -> Self {
        Self {
            sets,
            cache,
            queue,
            federation: Arc::clone(federation),
            metrics,
            progress: ListProgress::new("FederatedReplicaSets", listed),
            list_began: None,
            seen: HashSet::new(),
            has_unnamed: false,
            clock,
            host_clock: ServerClock::default(),
        }
    }

    /// Dates the deletion of `object` by this process's clock: the host's may be far from it.
    fn date(&self, object: &mut FrsObject) {
        let metadata = &mut object.metadata;
        let Some(since) = metadata.deletion_timestamp.take() else {
            return;
        };
        let known = self.sets.get(&key_of(metadata));
        let known = known.filter(|known| known.metadata.uid == metadata.uid);
        let known = known.and_then(|known| known.metadata.deletion_timestamp.clone());
        let began = || Time(self.host_clock.began(Some(since.0), self.clock.now()));
        metadata.deletion_timestamp = Some(known.unwrap_or_else(began));
    }

    fn count(&self) {
        let (all, invalid) = self.sets.counts();
        let gauge = |count| i64::try_from(count).unwrap_or(i64::MAX);
        self.metrics.sets.set(gauge(all));
        self.metrics.invalid_sets.set(gauge(invalid));
    }

    fn check_now(&self, keys: impl IntoIterator<Item = ObjectKey>) {
        for key in keys {
            self.queue.add_check(key, Duration::ZERO);
        }
    }

    fn remove(&self, key: &ObjectKey) {
        let overlapping = self.sets.remove(key);
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
        let key = key_of(&object.metadata);
        if let Some(status) = object.status.take() {
            object.status = Some(self.cache.shared(&key, status));
        }
        let lacks_write = |began| {
            self.cache
                .is_older_than_written(&key, &object.metadata, began)
        };
        let source = self.list_began.map(|began| Source::List {
            lacks_write: lacks_write(began),
        });
        let source = source.unwrap_or(Source::Watch);
        let applied = self.sets.apply(object, source, &self.federation);
        self.seen.insert(applied.key.clone());
        if applied.changed {
            self.count();
            self.check_now(applied.overlapping.into_iter().chain([applied.key]));
        }
    }

    fn on_delete(&mut self, object: FrsObject) {
        self.remove(&key_of(&object.metadata));
        self.count();
    }

    fn on_init_done(&mut self, _resource_version: &str) {
        self.list_began = None;
        self.host_clock.end_list();
        // Any of the sets may be the one without a name: none counts as deleted.
        let is_gone = |key: &ObjectKey| !self.has_unnamed && !self.seen.contains(key);
        for key in self.sets.keys().into_iter().filter(is_gone) {
            self.remove(&key);
        }
        self.seen = HashSet::new();
        self.count();
        self.progress.complete();
    }

    fn on_invalid(&mut self, object: &InvalidObject) {
        match (&object.namespace, &object.name) {
            (Some(namespace), Some(name)) => {
                let key = ObjectKey::new(&**namespace, &**name);
                if object.deleted {
                    self.remove(&key);
                } else {
                    self.seen.insert(key);
                }
            }
            _ => self.has_unnamed = true,
        }
    }

    fn on_error(&mut self, error: &Error) {
        self.progress.failed(error);
    }

    fn on_activity(&mut self) {
        self.progress.answered();
    }
}
