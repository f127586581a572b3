//! An independent look at what runs: whether it ever dipped (F20).
//!
//! Sees every change of every pod as it is committed in the members, whatever the controller sees of it.

use std::{collections::BTreeSet, sync::Arc};

use parking_lot::Mutex;
use serde_json::Value;
use sim_cluster::{Api, ChangeEvent, kinds};
use tokio_util::{sync::CancellationToken, sync::DropGuard};

use crate::{Fleet, changes::next_changes};

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
        let names = fleet.member_names();
        let apis = names.iter().map(|it| fleet.member(it).api());
        let mut changes: Vec<_> = apis.clone().map(Api::changes).collect();
        let mut members: Vec<_> = apis.map(|api| ReadyPods::list(api, name)).collect();
        let seen = Arc::new(Mutex::new(Seen::default()));
        seen.lock().look(&members);
        let cancel = CancellationToken::new();
        let shared = Arc::clone(&seen);
        tokio::spawn(cancel.clone().run_until_cancelled_owned(async move {
            loop {
                // What is over in no time at all was never there.
                for (place, event) in next_changes(&mut changes).await {
                    members[place].take(&event);
                }
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
    fn look(&mut self, members: &[ReadyPods]) {
        let ready = members.iter().map(ReadyPods::count).sum();
        self.lowest = Some(self.lowest.map_or(ready, |lowest| lowest.min(ready)));
        self.highest = self.highest.max(ready);
    }
}

/// One member's pods of a set that are ready and stay.
pub(crate) struct ReadyPods {
    api: Api,
    set: String,
    names: BTreeSet<String>,
}

impl ReadyPods {
    /// Those that there are now.
    pub(crate) fn list(api: &Api, set: &str) -> Self {
        let pods = api.list(&kinds::PODS, Some("default"));
        let names = pods
            .iter()
            .filter(|pod| is_ready(pod, set))
            .filter_map(|pod| pod["metadata"]["name"].as_str().map(str::to_owned));
        Self {
            api: api.clone(),
            set: set.to_owned(),
            names: names.collect(),
        }
    }

    /// Takes in a change of the member.
    pub(crate) fn take(&mut self, event: &ChangeEvent) {
        let change = match event {
            ChangeEvent::Resync => {
                *self = Self::list(&self.api, &self.set);
                return;
            }
            ChangeEvent::Change(change) if change.kind == *kinds::PODS => change,
            ChangeEvent::Change(_) => return,
        };
        let now = change.new.as_ref();
        if now.is_some_and(|pod| is_ready(pod, &self.set)) {
            self.names.insert(change.name.clone());
        } else {
            self.names.remove(&change.name);
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.names.len() as u64
    }
}

fn is_ready(pod: &Value, set: &str) -> bool {
    let metadata = &pod["metadata"];
    let conditions = pod["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    metadata["ownerReferences"][0]["name"] == set
        && metadata.get("deletionTimestamp").is_none()
        && conditions.any(|it| it["type"] == "Ready" && it["status"] == "True")
}
