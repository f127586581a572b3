//! Ready pods by a watch of each real member.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use control_plane::request;
use futures::TryStreamExt;
use http::Request;
use kube::{Client, core::WatchEvent};
use parking_lot::Mutex;
use serde_json::Value;
use simulation::{is_ready, name_of};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::totals::Totals;

/// The pause before a watch that ended starts again.
const PAUSE: Duration = Duration::from_millis(100);

/// Watches until `cancel`; each receiver resolves once its member is listed.
pub(super) fn start<'a>(
    members: impl Iterator<Item = &'a Client>,
    namespace: &str,
    set: &str,
    totals: &Arc<Mutex<Totals>>,
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
            set: set.to_owned(),
            ready: BTreeSet::new(),
            totals: Arc::clone(totals),
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
    set: String,
    /// The names of the ready, non-terminating pods.
    ready: BTreeSet<String>,
    totals: Arc<Mutex<Totals>>,
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
        let items = list["items"].as_array().into_iter().flatten();
        let ready = items.filter(|pod| is_ready(pod, &self.set));
        self.ready = ready.map(name_of).collect();
        self.record();
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
                WatchEvent::Added(pod) | WatchEvent::Modified(pod) if is_ready(&pod, &self.set) => {
                    self.ready.insert(name_of(&pod));
                }
                WatchEvent::Added(pod) | WatchEvent::Modified(pod) | WatchEvent::Deleted(pod) => {
                    self.ready.remove(&name_of(&pod));
                }
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(_) => return Ok(()),
            }
            self.record();
        }
        Ok(())
    }

    fn record(&self) {
        let count = self.ready.len() as u64;
        self.totals.lock().record([(self.place, count)]);
    }
}
