//! A task for each object of a collection on the host: it begins and ends with its object, and always knows its newest state.

use std::{collections::BTreeMap, sync::Arc};

use kube::ResourceExt;
use reflector::{Error, EventHandler, InvalidObject, ResourceVersion, format_error};
use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::listing::Listing;

/// The newest state of an object that its watch and the answers to our own writes have shown.
pub type Newest<K> = Arc<watch::Sender<K>>;

/// What the tasks of a kind do.
pub trait ObjectTasks: Send + 'static {
    /// The kind.
    type Object: ResourceExt + Clone + Send + Sync + 'static;
    /// The kind for people, in the plural.
    const KINDS: &'static str;

    /// Whether the object gets a task.
    fn is_own(&self, object: &Self::Object) -> bool;

    /// An object with a task, before that begins, and whenever it changes.
    fn seen(&self, _object: &Self::Object) {}

    /// An object has no task any more.
    fn gone(&self, _object: &Self::Object) {}

    /// All objects are known.
    fn listed(&self) {}

    /// The task of an object. It never ends by itself.
    fn task(&self, object: Newest<Self::Object>) -> impl Future<Output = ()> + Send + 'static;
}

/// Handles the events of the watch.
pub struct ObjectTasksHandler<T: ObjectTasks> {
    tasks: T,
    tracker: TaskTracker,
    cancel: CancellationToken,
    known: BTreeMap<String, Entry<T::Object>>,
    listing: Listing,
    /// The last failure, while it lasts: it is logged once.
    failure: Option<String>,
}

/// An object with a task.
struct Entry<K> {
    object: Newest<K>,
    cancel: CancellationToken,
}

impl<T: ObjectTasks> ObjectTasksHandler<T> {
    /// Spawns the tasks with `tracker`; they end with `cancel`.
    pub fn new(tasks: T, tracker: TaskTracker, cancel: CancellationToken) -> Self {
        Self {
            tasks,
            tracker,
            cancel,
            known: BTreeMap::new(),
            listing: Listing::default(),
            failure: None,
        }
    }

    fn begin(&mut self, key: String, object: T::Object) {
        self.tasks.seen(&object);
        let entry = Entry {
            object: Arc::new(watch::Sender::new(object)),
            cancel: self.cancel.child_token(),
        };
        let task = self.tasks.task(Arc::clone(&entry.object));
        let cancel = entry.cancel.clone();
        self.tracker.spawn(async move {
            cancel.run_until_cancelled(task).await;
        });
        self.known.insert(key, entry);
    }

    fn end(&mut self, key: &str) {
        if let Some(entry) = self.known.remove(key) {
            entry.cancel.cancel();
            self.tasks.gone(&entry.object.borrow());
        }
    }
}

impl<T: ObjectTasks> EventHandler<T::Object> for ObjectTasksHandler<T> {
    fn on_init(&mut self) {
        self.listing.begin();
    }

    fn on_apply(&mut self, object: T::Object) {
        let key = key(object.namespace().as_deref(), &object.name_any());
        self.listing.show(&key);
        if !self.tasks.is_own(&object) {
            return self.end(&key);
        }
        match self.known.get(&key) {
            None => self.begin(key, object),
            Some(entry) => {
                // A list of a host that was restored has older states, which hold from now on.
                let is_listed = self.listing.is_active();
                entry.object.send_if_modified(|known| {
                    if is_listed {
                        replace(known, object)
                    } else {
                        put(known, object)
                    }
                });
                self.tasks.seen(&entry.object.borrow());
            }
        }
    }

    fn on_delete(&mut self, object: T::Object) {
        self.end(&key(object.namespace().as_deref(), &object.name_any()));
    }

    /// What the list does not show is gone, also if it is newer than the list: then the host was restored from a backup. All that is known
    /// was shown before the list began; answers to writes add nothing.
    fn on_init_done(&mut self, _resource_version: &str) {
        if let Some(shown) = self.listing.end() {
            let is_gone = |key: &&String| !shown.contains(*key);
            let gone: Vec<_> = self.known.keys().filter(is_gone).cloned().collect();
            for key in gone {
                self.end(&key);
            }
        }
        self.tasks.listed();
    }

    fn on_error(&mut self, error: &Error) {
        let kinds = T::KINDS;
        let failure = match error.code() {
            Some(404) => {
                format!("the host has no CRD of {kinds}: install those of this version; waiting")
            }
            _ => format!("failed to list or watch {kinds}: {}", format_error(error)),
        };
        if self.failure.as_ref() != Some(&failure) {
            tracing::warn!("{failure}");
            self.failure = Some(failure);
        }
    }

    fn on_activity(&mut self) {
        self.failure = None;
    }

    fn on_invalid(&mut self, object: &InvalidObject) {
        tracing::warn!(error = %object, "skipped one of the {} that can't be read", T::KINDS);
        let name = object.name.as_deref();
        match (
            name.map(|name| key(object.namespace.as_deref(), name)),
            object.deleted,
        ) {
            (Some(key), true) => self.end(&key),
            (Some(key), false) => self.listing.show(&key),
            (None, _) => self.listing.unreadable(),
        }
    }
}

/// `NAMESPACE/NAME`, or the name of an object without a namespace.
fn key(namespace: Option<&str>, name: &str) -> String {
    namespace.map_or_else(
        || name.to_owned(),
        |namespace| format!("{namespace}/{name}"),
    )
}

/// Takes a state of the object that the task knows. Returns whether the task has to look at it: not for what it has written itself.
pub fn put<K: ResourceExt>(known: &mut K, object: K) -> bool {
    let version = |of: &K| ResourceVersion::parse(&of.resource_version().unwrap_or_default());
    if known.uid() == object.uid() && version(&object).is_older_than(version(known)) {
        return false;
    }
    replace(known, object)
}

/// Takes a state of the object, whatever was known. Returns whether the task has to look at it.
fn replace<K: ResourceExt>(known: &mut K, object: K) -> bool {
    let (old, new) = (known.meta(), object.meta());
    let has_changed = old.uid != new.uid
        || old.generation != new.generation
        || old.deletion_timestamp != new.deletion_timestamp
        || old.finalizers != new.finalizers;
    *known = object;
    has_changed
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    struct Endless;

    impl ObjectTasks for Endless {
        type Object = ConfigMap;
        const KINDS: &'static str = "ConfigMaps";

        fn is_own(&self, _: &ConfigMap) -> bool {
            true
        }

        fn task(&self, _: Newest<ConfigMap>) -> impl Future<Output = ()> + Send + 'static {
            std::future::pending()
        }
    }

    fn object(name: &str, version: u64) -> ConfigMap {
        let metadata = json!({ "name": name, "uid": name, "resourceVersion": version.to_string() });
        serde_json::from_value(json!({ "metadata": metadata })).unwrap()
    }

    #[tokio::test]
    async fn lists_of_a_restored_host_replace_newer_states_and_late_events_do_not() {
        let mut handler =
            ObjectTasksHandler::new(Endless, TaskTracker::new(), CancellationToken::new());
        // Whether it is listed, its version, and the version that is known then.
        for (is_listed, version, expected) in [
            (true, 100, "100"),
            (false, 120, "120"),
            (false, 110, "120"),
            (true, 50, "50"),
            (false, 60, "60"),
        ] {
            if is_listed {
                handler.on_init();
            }
            handler.on_apply(object("a", version));
            if is_listed {
                handler.on_init_done(&version.to_string());
            }
            let known = handler.known["a"].object.borrow().resource_version();
            assert_eq!(known.as_deref(), Some(expected), "{is_listed} {version}");
        }
    }

    #[tokio::test]
    async fn tasks_of_objects_that_a_restored_host_does_not_have_end() {
        let tracker = TaskTracker::new();
        let mut handler =
            ObjectTasksHandler::new(Endless, tracker.clone(), CancellationToken::new());
        for (shown, version, expected) in [
            (&["a", "b"][..], 100, 2),
            // An older version: the host was restored.
            (&["a"], 50, 1),
            (&[], 60, 0),
        ] {
            handler.on_init();
            for name in shown {
                handler.on_apply(object(name, version));
            }
            handler.on_init_done(&version.to_string());
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            assert_eq!(tracker.len(), expected, "{shown:?}");
        }
    }
}
