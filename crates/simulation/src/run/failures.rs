//! How often the controller repeats what fails (F28, F38).

use std::collections::{BTreeMap, VecDeque};

use http::{Method, Uri};
use tokio::time::{Duration, Instant};

/// The time in which failures are counted.
const WINDOW: Duration = Duration::from_secs(60);
/// The most failures of one object in that time. A ReplicaSet is tried three times at once, with another template once more,
/// and then after 10, 20 and 40 s; an object of the host after 1, 2, 4, ... s.
const MOST: usize = 15;
/// What has limits of its own: pods are many, MemberClusters are retried each second, events are not retried.
const OTHERS: [&str; 4] = ["/pods", "/memberclusters", "/events", "/leases"];

/// The failed writes of the last minute, by object.
#[derive(Default)]
pub(super) struct Failures(BTreeMap<String, VecDeque<Instant>>);

impl Failures {
    /// Counts a failed write. Returns what is wrong if there are too many.
    pub(super) fn put(&mut self, cluster: &str, method: &Method, uri: &Uri) -> Option<String> {
        let path = uri.path();
        // A deletion ends a set: it is repeated every few seconds.
        if *method == Method::DELETE || OTHERS.iter().any(|other| path.contains(other)) {
            return None;
        }
        let failures = self.0.entry(key(cluster, uri)).or_default();
        failures.push_back(Instant::now());
        while failures
            .front()
            .is_some_and(|first| first.elapsed() > WINDOW)
        {
            failures.pop_front();
        }
        (failures.len() > MOST).then(|| {
            let seconds = WINDOW.as_secs();
            format!(
                "{} failed writes of {cluster}: {path} in {seconds} s",
                failures.len()
            )
        })
    }

    /// A write has succeeded: those that failed before it, because others had changed the object, were not in vain.
    pub(super) fn succeeded(&mut self, cluster: &str, uri: &Uri) {
        self.0.remove(&key(cluster, uri));
    }

    /// Begins anew: another process, or something that was changed meanwhile, has its own attempts.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

fn key(cluster: &str, uri: &Uri) -> String {
    format!("{cluster}: {}", uri.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_write_that_fails_once_a_second_is_too_often_and_once_in_ten_seconds_is_not() {
        let uri = Uri::from_static("/apis/apps/v1/namespaces/default/replicasets/web");
        for (seconds, is_too_often) in [(1, true), (10, false)] {
            let mut failures = Failures::default();
            let mut found = false;
            for _ in 0..30 {
                found |= failures.put("m1", &Method::PATCH, &uri).is_some();
                tokio::time::advance(Duration::from_secs(seconds)).await;
            }
            assert_eq!(found, is_too_often, "each {seconds} s");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn writes_that_succeed_after_a_conflict_are_not_too_often() {
        let uri = Uri::from_static("/apis/apps/v1/namespaces/default/deployments/web");
        let mut failures = Failures::default();
        for _ in 0..30 {
            assert_eq!(failures.put("m1", &Method::PATCH, &uri), None);
            failures.succeeded("m1", &uri);
        }
    }
}
