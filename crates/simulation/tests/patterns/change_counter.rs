//! Counts the creations and deletions in all members, and the ready replicas.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use sim_cluster::{Change, ChangeEvent, kinds};
use simulation::{ReadyPods, SimFederation, next_changes};
use tokio_util::sync::{CancellationToken, DropGuard};

/// How often local sets and pods were created and deleted, by member.
pub(crate) type ChangeCounts = BTreeMap<String, u64>;

/// Counts what happens in all members.
pub(crate) struct ChangeCounter {
    seen: Arc<Mutex<Seen>>,
    _stop: DropGuard,
}

/// What was seen.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) tally: ChangeCounts,
    /// The fewest and the most replicas that were ready at one time.
    pub(crate) lowest: u64,
    pub(crate) highest: u64,
}

impl ChangeCounter {
    /// Watches the set `web` from now on.
    pub(crate) fn start(federation: &SimFederation) -> Self {
        let names = federation.member_names();
        let api = |name: &String| federation.member(name).api().clone();
        let apis: Vec<_> = names.iter().map(api).collect();
        let mut changes: Vec<_> = apis.iter().map(sim_cluster::Api::changes).collect();
        let list = |api| ReadyPods::list(api, "default", "web");
        let mut pods: Vec<_> = apis.iter().map(list).collect();
        let ready = |pods: &[ReadyPods]| pods.iter().map(ReadyPods::count).sum();
        let seen = Arc::new(Mutex::new(Seen {
            tally: ChangeCounts::new(),
            lowest: ready(&pods),
            highest: ready(&pods),
        }));
        let cancel = CancellationToken::new();
        let follower = Arc::clone(&seen);
        let follow = async move {
            loop {
                let events = next_changes(&mut changes).await;
                let mut seen = follower.lock();
                for (place, event) in events {
                    pods[place].apply(&event);
                    let ChangeEvent::Change(change) = event else {
                        panic!("the log of changes is long enough for a run");
                    };
                    seen.count(&names[place], &change);
                }
                let ready = ready(&pods);
                seen.lowest = seen.lowest.min(ready);
                seen.highest = seen.highest.max(ready);
            }
        };
        tokio::spawn(cancel.clone().run_until_cancelled_owned(follow));
        Self {
            seen,
            _stop: cancel.drop_guard(),
        }
    }

    /// What was seen until now.
    pub(crate) fn seen(&self) -> Seen {
        self.seen.lock().clone()
    }
}

impl Seen {
    fn count(&mut self, member: &str, change: &Change) {
        let what = match (&change.old, &change.new) {
            (None, _) => "created",
            (_, None) => "deleted",
            _ => return,
        };
        if [&*kinds::REPLICA_SETS, &*kinds::PODS].contains(&&change.kind) {
            let key = format!("{} {what} in {member}", change.kind.plural);
            *self.tally.entry(key).or_default() += 1;
        }
    }
}
