//! What a watcher has seen of the pods of one set in all members.

use std::collections::BTreeMap;

use serde_json::Value;
use tokio::time::Instant;

#[derive(Default)]
pub(super) struct Seen {
    /// By the member's place.
    counts: BTreeMap<usize, u64>,
    /// The total since each time.
    pub(super) totals: Vec<(Instant, u64)>,
}

impl Seen {
    /// So many are ready in these members by now.
    pub(super) fn tell(&mut self, counts: impl IntoIterator<Item = (usize, u64)>) {
        self.counts.extend(counts);
        let total = self.counts.values().sum();
        if self.totals.last().is_none_or(|(_, last)| *last != total) {
            self.totals.push((Instant::now(), total));
        }
    }

    /// What was before is of no interest.
    pub(super) fn forget(&mut self) {
        self.totals.clear();
        self.tell([]);
    }
}

/// A pod's name.
pub(super) fn name_of(pod: &Value) -> String {
    let name = pod["metadata"]["name"].as_str();
    name.unwrap_or_default().to_owned()
}

/// Whether a pod of the set is ready and stays.
pub(super) fn is_ready(pod: &Value, set: &str) -> bool {
    let metadata = &pod["metadata"];
    let conditions = pod["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    metadata["ownerReferences"][0]["name"] == set
        && metadata.get("deletionTimestamp").is_none()
        && conditions.any(|it| it["type"] == "Ready" && it["status"] == "True")
}
