//! An independent look at what runs: whether it ever dipped (F20).
//!
//! Sees every change of every pod as it is committed in the members, whatever the controller sees of it.

use std::{collections::BTreeSet, sync::Arc};

use futures::future::select_all;
use parking_lot::Mutex;
use serde_json::Value;
use sim_cluster::{Api, ChangeEvent, Changes, kinds};
use tokio_util::{sync::CancellationToken, sync::DropGuard};

use crate::Fleet;

/// Watches the ready replicas of one set over all members that there are when it starts.
pub struct ReadyWatcher {
    seen: Arc<Mutex<Seen>>,
    _stop: DropGuard,
}

#[derive(Debug, Default)]
struct Seen {
    /// The fewest at once since it started, and the most.
    lowest: Option<u64>,
    highest: u64,
}

impl ReadyWatcher {
    /// Watches from now on.
    pub fn start(fleet: &Fleet, name: &str) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let names = fleet.member_names();
        let mut members: Vec<_> = names
            .iter()
            .map(|it| Followed::start(fleet.member(it).api(), name))
            .collect();
        seen.lock().look(&members);
        let cancel = CancellationToken::new();
        let shared = Arc::clone(&seen);
        tokio::spawn(cancel.clone().run_until_cancelled_owned(async move {
            loop {
                next_change(&mut members).await;
                shared.lock().look(&members);
            }
        }));
        Self {
            seen,
            _stop: cancel.drop_guard(),
        }
    }

    /// The fewest that were ready at once since it started.
    pub fn lowest(&self) -> u64 {
        self.seen.lock().lowest.unwrap_or(0)
    }

    /// The most that were ready at once since it started.
    pub fn highest(&self) -> u64 {
        self.seen.lock().highest
    }
}

impl Seen {
    fn look(&mut self, members: &[Followed]) {
        let ready: usize = members.iter().map(|it| it.ready.len()).sum();
        let ready = ready as u64;
        self.lowest = Some(self.lowest.map_or(ready, |lowest| lowest.min(ready)));
        self.highest = self.highest.max(ready);
    }
}

/// One member's ready pods of the set, by name.
struct Followed {
    api: Api,
    set: String,
    changes: Changes,
    ready: BTreeSet<String>,
}

impl Followed {
    fn start(api: &Api, set: &str) -> Self {
        let mut this = Self {
            api: api.clone(),
            set: set.to_owned(),
            changes: api.changes(),
            ready: BTreeSet::new(),
        };
        this.list();
        this
    }

    fn list(&mut self) {
        let pods = self.api.list(&kinds::PODS, Some("default"));
        self.ready = pods
            .iter()
            .filter(|pod| is_ready(pod, &self.set))
            .filter_map(|pod| pod["metadata"]["name"].as_str().map(str::to_owned))
            .collect();
    }

    fn take(&mut self, event: &ChangeEvent) {
        let change = match event {
            ChangeEvent::Resync => return self.list(),
            ChangeEvent::Change(change) => change,
        };
        if change.kind != *kinds::PODS {
            return;
        }
        if change
            .new
            .as_ref()
            .is_some_and(|it| is_ready(it, &self.set))
        {
            self.ready.insert(change.name.clone());
        } else {
            self.ready.remove(&change.name);
        }
    }
}

/// Waits for a change in any of the members, and takes in all that there are by then: what is over in no time at all
/// was never there.
async fn next_change(members: &mut [Followed]) {
    let next = members.iter_mut().map(|it| Box::pin(it.changes.next()));
    let (event, at, _) = select_all(next).await;
    members[at].take(&event);
    for member in members {
        while let Some(event) = member.changes.try_next() {
            member.take(&event);
        }
    }
}

/// Whether a pod of `set` is ready and stays.
fn is_ready(pod: &Value, set: &str) -> bool {
    let metadata = &pod["metadata"];
    let conditions = pod["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    metadata["ownerReferences"][0]["name"] == set
        && metadata.get("deletionTimestamp").is_none()
        && conditions.any(|it| it["type"] == "Ready" && it["status"] == "True")
}
