//! Pods as embedded clusters commit them, whatever the controller sees of it.

use std::{collections::BTreeSet, sync::Arc};

use parking_lot::Mutex;
use sim_cluster::{Api, ChangeEvent, Changes, kinds};

use super::seen::{Seen, is_ready, name_of};
use crate::changes::next_changes;

/// Follows the members' changes for ever.
pub(super) async fn follow(
    mut changes: Vec<Changes>,
    mut members: Vec<CommittedPods>,
    seen: Arc<Mutex<Seen>>,
) {
    loop {
        // What is over in no time at all was never there.
        for (place, event) in next_changes(&mut changes).await {
            members[place].take(&event);
        }
        seen.lock().tell(counts(&members));
    }
}

/// How many are ready, by the member's place.
pub(super) fn counts(members: &[CommittedPods]) -> impl Iterator<Item = (usize, u64)> {
    members.iter().map(CommittedPods::count).enumerate()
}

/// One member's pods of a set that are ready and stay.
pub(crate) struct CommittedPods {
    api: Api,
    namespace: String,
    set: String,
    names: BTreeSet<String>,
}

impl CommittedPods {
    /// Those that there are now.
    pub(crate) fn list(api: &Api, namespace: &str, set: &str) -> Self {
        let pods = api.list(&kinds::PODS, Some(namespace));
        let ready = pods.iter().filter(|pod| is_ready(pod, set));
        Self {
            api: api.clone(),
            namespace: namespace.to_owned(),
            set: set.to_owned(),
            names: ready.map(|it| name_of(it)).collect(),
        }
    }

    /// Takes in a change of the member.
    pub(crate) fn take(&mut self, event: &ChangeEvent) {
        let change = match event {
            ChangeEvent::Resync => {
                *self = Self::list(&self.api, &self.namespace, &self.set);
                return;
            }
            ChangeEvent::Change(change) => change,
        };
        if change.kind != *kinds::PODS || change.namespace != self.namespace {
            return;
        }
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
