//! Ready pods of the sets of a namespace, by a watch of each real member.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use control_plane::request;
use futures::TryStreamExt;
use http::Request;
use kube::{Client, core::WatchEvent};
use parking_lot::Mutex;
use serde_json::Value;
use simulation::{is_ready, name_of, set_of};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::totals::Sets;

/// The pause before a watch that ended starts again.
const PAUSE: Duration = Duration::from_millis(100);

/// Watches until `cancel`; each receiver resolves once its member is listed.
pub(super) fn start<'a>(
    members: impl Iterator<Item = &'a Client>,
    namespace: &str,
    only: Option<&str>,
    sets: &Arc<Mutex<Sets>>,
    cancel: &CancellationToken,
) -> Vec<oneshot::Receiver<()>> {
    let mut listed = Vec::new();
    for (place, client) in members.enumerate() {
        let (first, wait) = oneshot::channel();
        listed.push(wait);
        let watch = Watch {
            place,
            client: client.clone(),
            path: format!("/api/v1/namespaces/{namespace}/pods"),
            only: only.map(str::to_owned),
            ready: BTreeMap::new(),
            sets: Arc::clone(sets),
        };
        tokio::spawn(cancel.clone().run_until_cancelled_owned(watch.run(first)));
    }
    listed
}

/// The watch of one member.
struct Watch {
    place: usize,
    client: Client,
    path: String,
    /// The only set that counts, if there is one.
    only: Option<String>,
    /// The names of the ready, non-terminating pods of each set.
    ready: BTreeMap<String, BTreeSet<String>>,
    sets: Arc<Mutex<Sets>>,
}

impl Watch {
    async fn run(mut self, first: oneshot::Sender<()>) {
        let mut first = Some(first);
        loop {
            // A member's API server may restart meanwhile.
            if let Ok(version) = self.list().await {
                if let Some(first) = first.take() {
                    let _ = first.send(());
                }
                let _ = self.follow(&version).await;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Lists the pods. Returns the resource version to watch from.
    async fn list(&mut self) -> kube::Result<String> {
        let list = request(&self.client, "GET", &self.path, &Value::Null).await?;
        self.ready.values_mut().for_each(BTreeSet::clear);
        for pod in list["items"].as_array().into_iter().flatten() {
            if let Some(set) = set_of(pod).filter(|set| is_ready(pod, set)) {
                let pods = self.ready.entry(set.to_owned()).or_default();
                pods.insert(name_of(pod));
            }
        }
        self.ready.keys().for_each(|set| self.record(set));
        let version = &list["metadata"]["resourceVersion"];
        Ok(version.as_str().unwrap_or_default().to_owned())
    }

    async fn follow(&mut self, version: &str) -> kube::Result<()> {
        let path = format!("{}?watch=1&resourceVersion={version}", self.path);
        let request = Request::get(path)
            .body(Vec::new())
            .expect("a path makes a request");
        let events = self.client.request_events::<Value>(request).await?;
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.try_next().await? {
            match event {
                WatchEvent::Added(pod) | WatchEvent::Modified(pod) => {
                    self.take(&pod, false);
                }
                WatchEvent::Deleted(pod) => self.take(&pod, true),
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(_) => return Ok(()),
            }
        }
        Ok(())
    }

    /// Applies a change of a pod.
    fn take(&mut self, pod: &Value, is_deleted: bool) {
        let Some(set) = set_of(pod) else { return };
        let ready = self.ready.entry(set.to_owned()).or_default();
        if is_ready(pod, set) && !is_deleted {
            ready.insert(name_of(pod));
        } else {
            ready.remove(&name_of(pod));
        }
        self.record(set);
    }

    fn record(&self, set: &str) {
        if self.only.as_ref().is_some_and(|only| only != set) {
            return;
        }
        let count = self.ready.get(set).map_or(0, BTreeSet::len) as u64;
        let mut sets = self.sets.lock();
        let totals = sets.entry(set.to_owned()).or_default();
        totals.record([(self.place, count)]);
    }
}
