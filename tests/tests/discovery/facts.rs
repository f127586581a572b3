//! What has happened in the members, whatever discovery knows of it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tokio::time::Instant;

use crate::world::{World, pods};

/// A pod: its cluster and its name.
pub(crate) type PodKey = (String, String);

/// All pods that ever were.
#[derive(Debug, Default)]
pub(crate) struct Facts(pub(crate) BTreeMap<PodKey, Fact>);

/// What has happened to a pod.
#[derive(Debug, Default)]
pub(crate) struct Fact {
    pub(crate) was_ready: bool,
    /// Since when it is ready all the time, with an address.
    pub(crate) ready_since: Option<Instant>,
    /// Since when it does not exist.
    pub(crate) gone_since: Option<Instant>,
}

impl Facts {
    /// Looks at all members.
    pub(crate) fn look(&mut self, world: &World) {
        let now = Instant::now();
        let mut seen = BTreeSet::new();
        for member in world.members() {
            for pod in pods(member) {
                let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
                let key = (member.name().to_owned(), name);
                let fact = self.0.entry(key.clone()).or_default();
                seen.insert(key);
                let is_ready = is_ready(&pod);
                fact.was_ready |= is_ready;
                fact.ready_since = is_ready.then(|| fact.ready_since.unwrap_or(now));
            }
        }
        for (_, fact) in self.0.iter_mut().filter(|(key, _)| !seen.contains(key)) {
            fact.ready_since = None;
            fact.gone_since.get_or_insert(now);
        }
    }

    /// The pods that exist, or only those that are ready.
    pub(crate) fn existing(&self, only_ready: bool) -> BTreeSet<&PodKey> {
        let is_one = |fact: &Fact| {
            let exists = fact.gone_since.is_none();
            exists && (fact.ready_since.is_some() || !only_ready)
        };
        let pods = self.0.iter().filter(|(_, fact)| is_one(fact));
        pods.map(|(key, _)| key).collect()
    }
}

fn is_ready(pod: &Value) -> bool {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let is_ready =
        |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
    conditions.any(is_ready) && pod["status"]["podIP"].is_string()
}
