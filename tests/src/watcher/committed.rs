//! Ready pods by the committed changes of embedded clusters, whatever the controller sees.

use std::{collections::BTreeSet, sync::Arc};

use parking_lot::Mutex;
use sim_cluster::{Api, ChangeEvent, Changes, kinds};

use super::totals::{Totals, is_ready, name_of};
use crate::changes::next_changes;

/// Follows the members' changes forever.
pub(super) async fn follow(
    mut changes: Vec<Changes>,
    mut members: Vec<ReadyPods>,
    totals: Arc<Mutex<Totals>>,
) {
    loop {
        // Changes of the same instant count as one.
        for (place, event) in next_changes(&mut changes).await {
            members[place].apply(&event);
        }
        totals.lock().record(counts(&members));
    }
}

/// Ready pods, by the member's index.
pub(super) fn counts(members: &[ReadyPods]) -> impl Iterator<Item = (usize, u64)> {
    members.iter().map(ReadyPods::count).enumerate()
}

/// The ready, non-terminating pods of a set in one member.
pub(crate) struct ReadyPods {
    api: Api,
    namespace: String,
    set: String,
    names: BTreeSet<String>,
}

impl ReadyPods {
    /// The ready pods that exist now.
    pub(crate) fn list(api: &Api, namespace: &str, set: &str) -> Self {
        let pods = api.list(&kinds::PODS, Some(namespace));
        let ready = pods.iter().filter(|pod| is_ready(pod, set));
        Self {
            api: api.clone(),
            namespace: namespace.to_owned(),
            set: set.to_owned(),
            names: ready.map(|pod| name_of(pod)).collect(),
        }
    }

    /// Applies a change of the member.
    pub(crate) fn apply(&mut self, event: &ChangeEvent) {
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

    /// The number of ready pods.
    pub(crate) fn count(&self) -> u64 {
        self.names.len() as u64
    }
}
