//! The MigrationRequests of the cluster.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use controller_base::listing::Listing;
use reflector::ResourceVersion;

use crate::{key::id, migration_object::RequestObject};

/// Those of each namespace.
#[derive(Debug, Default)]
pub(super) struct Requests {
    namespaces: HashMap<String, Namespace>,
    pub(super) listing: Listing,
}

/// Those of one namespace, by name. The indexes of pods and sets have those that have not ended.
#[derive(Debug, Default)]
struct Namespace {
    known: BTreeMap<String, Arc<RequestObject>>,
    by_pod: HashMap<String, BTreeSet<String>>,
    by_set: HashMap<String, BTreeSet<String>>,
    /// Those of pods of ReplicaSets, also those that have ended.
    by_workload: HashMap<String, BTreeSet<String>>,
}

impl Requests {
    /// Those that have not ended of a set with these pods.
    pub(super) fn of<'a>(
        &self,
        namespace: &str,
        set: &str,
        pods: impl Iterator<Item = &'a str>,
    ) -> Vec<Arc<RequestObject>> {
        let Some(requests) = self.namespaces.get(namespace) else {
            return Vec::new();
        };
        let by_pod = pods.filter_map(|pod| requests.by_pod.get(pod));
        let names: BTreeSet<_> = (by_pod.chain(requests.by_set.get(set))).flatten().collect();
        let known = names
            .into_iter()
            .filter_map(|name| requests.known.get(name));
        known.map(Arc::clone).collect()
    }

    /// All.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<RequestObject>> {
        self.namespaces
            .values()
            .flat_map(|requests| requests.known.values())
    }

    /// Those of pods of the same workload, with those that have ended; none if it is not known.
    pub(super) fn of_workload(&self, request: &RequestObject) -> Vec<Arc<RequestObject>> {
        let requests = self.namespaces.get(request.id().0);
        let of_workload = requests
            .zip(request.workload())
            .and_then(|(requests, workload)| {
                let names = requests.by_workload.get(&workload)?.iter();
                let known = names.filter_map(|name| requests.known.get(name));
                Some(known.map(Arc::clone).collect())
            });
        of_workload.unwrap_or_default()
    }

    /// The one of this name.
    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<&Arc<RequestObject>> {
        self.namespaces.get(namespace)?.known.get(name)
    }

    /// Whether there is one of this name.
    pub(super) fn has(&self, namespace: &str, name: &str) -> bool {
        self.get(namespace, name).is_some()
    }

    /// The request as it was and as it is, if that is news.
    pub(super) fn apply(&mut self, mut object: RequestObject) -> Vec<Arc<RequestObject>> {
        // The largest part of an object, of which nothing is needed.
        object.0.metadata.managed_fields = None;
        let (namespace, name) = object.id();
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        self.listing.show(&id(&namespace, &name));
        let requests = self.namespaces.entry(namespace).or_default();
        let is_news = requests.known.get(&name).is_none_or(|known| {
            ResourceVersion::parse(known.version())
                .is_older_than(ResourceVersion::parse(object.version()))
        });
        if !is_news {
            return Vec::new();
        }
        let before = requests.remove(&name);
        let object = Arc::new(object);
        requests.insert(&name, &object);
        before.into_iter().chain([object]).collect()
    }

    /// The request as it was.
    pub(super) fn remove(&mut self, namespace: &str, name: &str) -> Option<Arc<RequestObject>> {
        let requests = self.namespaces.get_mut(namespace)?;
        let removed = requests.remove(name);
        if requests.known.is_empty() {
            self.namespaces.remove(namespace);
        }
        removed
    }

    /// Those that a complete list, as of this version, did not show: namespaces and names.
    pub(super) fn unlisted(&mut self, as_of: &str) -> Vec<(String, String)> {
        let namespaces = self.namespaces.values();
        let all = namespaces.flat_map(|requests| requests.known.values());
        let known = all.map(|request| {
            let (namespace, name) = request.id();
            let object = (namespace.to_owned(), name.to_owned());
            (object, id(namespace, name), request.version())
        });
        self.listing.gone(as_of, known)
    }
}

impl Namespace {
    fn insert(&mut self, name: &str, request: &Arc<RequestObject>) {
        self.known.insert(name.to_owned(), Arc::clone(request));
        if let Some(workload) = request.workload() {
            let requests = self.by_workload.entry(workload).or_default();
            requests.insert(name.to_owned());
            return;
        }
        if request.ended().is_some() {
            return;
        }
        let pod = request.pod_name().to_owned();
        self.by_pod.entry(pod).or_default().insert(name.to_owned());
        if let Some(set) = request.replica_set() {
            let requests = self.by_set.entry(set.to_owned()).or_default();
            requests.insert(name.to_owned());
        }
    }

    fn remove(&mut self, name: &str) -> Option<Arc<RequestObject>> {
        let removed = self.known.remove(name)?;
        if let Some(workload) = removed.workload() {
            forget(&mut self.by_workload, &workload, name);
        }
        forget(&mut self.by_pod, removed.pod_name(), name);
        if let Some(set) = removed.replica_set() {
            forget(&mut self.by_set, set, name);
        }
        Some(removed)
    }
}

fn forget(index: &mut HashMap<String, BTreeSet<String>>, key: &str, name: &str) {
    if let Some(names) = index.get_mut(key) {
        names.remove(name);
        if names.is_empty() {
            index.remove(key);
        }
    }
}
