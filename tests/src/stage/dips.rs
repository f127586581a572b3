//! An independent look at what runs in all members together: whether it ever dipped (F20).

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
use tokio::{sync::oneshot, time::Instant};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Watches the ready pods of one set over all members.
pub struct Dips {
    seen: Arc<Mutex<Seen>>,
    skew: Duration,
    _stop: DropGuard,
}

#[derive(Default)]
struct Seen {
    ready: BTreeMap<String, BTreeSet<String>>,
    /// The total since each time.
    totals: Vec<(Instant, u64)>,
}

impl Dips {
    /// Watches from now on: all members have been listed.
    pub(super) async fn start(
        members: &BTreeMap<String, Client>,
        namespace: &str,
        name: &str,
        skew: Duration,
    ) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let cancel = CancellationToken::new();
        let mut listed = Vec::new();
        for (member, client) in members {
            let (first, wait) = oneshot::channel();
            listed.push(wait);
            let watch = Watch {
                member: member.clone(),
                client: client.clone(),
                namespace: namespace.to_owned(),
                set: name.to_owned(),
                seen: Arc::clone(&seen),
            };
            let watching = watch.run(first);
            tokio::spawn(cancel.clone().run_until_cancelled_owned(watching));
        }
        for wait in listed {
            wait.await.expect("a member can be listed");
        }
        seen.lock().totals.clear();
        seen.lock().look();
        Self {
            seen,
            skew,
            _stop: cancel.drop_guard(),
        }
    }

    /// Panics if fewer were ready at once for longer than watches may be out of step.
    pub fn assert_never_below(&self, wanted: u64) {
        let lowest = lowest(&self.seen.lock().totals, Instant::now(), self.skew);
        assert!(
            lowest >= wanted,
            "{lowest} were ready at a time, of {wanted}"
        );
    }

    /// The most that were ready at once for longer than watches may be out of step.
    pub fn highest(&self) -> u64 {
        highest(&self.seen.lock().totals, Instant::now(), self.skew)
    }
}

impl Seen {
    fn look(&mut self) {
        let total = self.ready.values().map(|it| it.len() as u64).sum();
        if self.totals.last().is_none_or(|(_, last)| *last != total) {
            self.totals.push((Instant::now(), total));
        }
    }
}

/// The smallest of the maxima over all windows of `skew`: what is lower for a shorter time doesn't count.
fn lowest(totals: &[(Instant, u64)], now: Instant, skew: Duration) -> u64 {
    let lows = windows(totals, now, skew).filter_map(|it| it.map(|(_, total)| *total).max());
    lows.min().or(totals.last().map(|it| it.1)).unwrap_or(0)
}

/// The greatest of the minima over all windows of `skew`: what is higher for a shorter time doesn't count.
fn highest(totals: &[(Instant, u64)], now: Instant, skew: Duration) -> u64 {
    let highs = windows(totals, now, skew).filter_map(|it| it.map(|(_, total)| *total).min());
    highs.max().or(totals.last().map(|it| it.1)).unwrap_or(0)
}

/// For each change but the last ones, the changes within `skew` from it.
fn windows(
    totals: &[(Instant, u64)],
    now: Instant,
    skew: Duration,
) -> impl Iterator<Item = impl Iterator<Item = &(Instant, u64)>> {
    let whole = totals
        .iter()
        .enumerate()
        .filter(move |(_, (begin, _))| *begin + skew <= now);
    whole.map(move |(number, (begin, _))| {
        let end = *begin + skew;
        totals[number..].iter().take_while(move |(at, _)| *at < end)
    })
}

/// The watch of one member.
struct Watch {
    member: String,
    client: Client,
    namespace: String,
    set: String,
    seen: Arc<Mutex<Seen>>,
}

impl Watch {
    async fn run(self, first: oneshot::Sender<()>) {
        let mut first = Some(first);
        loop {
            // A member's server may start anew meanwhile.
            if let Ok(version) = self.list().await {
                if let Some(first) = first.take() {
                    let _ = first.send(());
                }
                let _ = self.follow(&version).await;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    fn path(&self) -> String {
        format!("/api/v1/namespaces/{}/pods", self.namespace)
    }

    async fn list(&self) -> kube::Result<String> {
        let list = request(&self.client, "GET", &self.path(), &Value::Null).await?;
        let items = list["items"].as_array().into_iter().flatten();
        let ready = items.filter(|pod| is_ready(pod, &self.set)).map(name);
        let mut seen = self.seen.lock();
        seen.ready.insert(self.member.clone(), ready.collect());
        seen.look();
        let version = &list["metadata"]["resourceVersion"];
        Ok(version.as_str().unwrap_or_default().to_owned())
    }

    async fn follow(&self, version: &str) -> kube::Result<()> {
        let path = format!("{}?watch=1&resourceVersion={version}", self.path());
        let request = Request::get(path)
            .body(Vec::new())
            .expect("a path makes a request");
        let events = self.client.request_events::<Value>(request).await?;
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.try_next().await? {
            let mut seen = self.seen.lock();
            let pods = seen.ready.entry(self.member.clone()).or_default();
            match event {
                WatchEvent::Added(pod) | WatchEvent::Modified(pod) if is_ready(&pod, &self.set) => {
                    pods.insert(name(&pod));
                }
                WatchEvent::Added(pod) | WatchEvent::Modified(pod) | WatchEvent::Deleted(pod) => {
                    pods.remove(&name(&pod));
                }
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(_) => return Ok(()),
            }
            seen.look();
        }
        Ok(())
    }
}

fn name(pod: &Value) -> String {
    pod["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

fn is_ready(pod: &Value, set: &str) -> bool {
    let metadata = &pod["metadata"];
    let conditions = pod["status"]["conditions"].as_array();
    let ready = conditions.is_some_and(|all| {
        all.iter()
            .any(|it| it["type"] == "Ready" && it["status"] == "True")
    });
    metadata["ownerReferences"][0]["name"] == set
        && ready
        && metadata.get("deletionTimestamp").is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lower_for_a_moment_is_no_dip() {
        let begin = Instant::now();
        let at = |millis, total| (begin + Duration::from_millis(millis), total);
        let (now, skew) = (begin + Duration::from_secs(10), Duration::from_millis(400));
        let totals = [
            at(0, 50),
            at(1000, 49),
            at(1300, 50),
            at(5000, 48),
            at(5200, 47),
            at(5500, 50),
        ];
        assert_eq!(lowest(&totals, now, skew), 48);
        assert_eq!(lowest(&totals[..3], now, skew), 50);
        assert_eq!(lowest(&totals[..1], begin, skew), 50, "the first look");
    }

    #[test]
    fn what_is_higher_for_a_moment_is_no_surplus() {
        let begin = Instant::now();
        let at = |millis, total| (begin + Duration::from_millis(millis), total);
        let (now, skew) = (begin + Duration::from_secs(10), Duration::from_millis(400));
        let totals = [at(0, 50), at(1000, 78), at(1100, 70), at(1600, 60)];
        assert_eq!(highest(&totals, now, skew), 70);
        assert_eq!(highest(&totals[..1], begin, skew), 50, "the first look");
    }
}
