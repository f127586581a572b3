//! The latest changes of one collection, from which watches resume and older versions are listed.
//!
//! ```text
//! push -> whole, for current readers -> packed as JSON, for readers that resume -> dropped
//! ```
//!
//! A parsed object takes some ten times the memory of its JSON, and old changes are rarely read.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::change::{Change, from_json, to_json};
use crate::resources::Kind;

/// The time for which changes are kept, as in the API server's watch cache.
const FRESH: Duration = Duration::from_secs(75);
/// The number of changes that are kept regardless of their age, as there.
const KEPT_LEAST: usize = 100;
/// The number of changes that are not packed: more than a current reader is behind.
const WHOLE: usize = 32;

/// The latest changes, in order.
#[derive(Debug)]
pub(crate) struct Log {
    entries: VecDeque<Entry>,
    /// The number of packed entries, which are the oldest.
    packed: usize,
    /// The JSON of each object in its last packed state, which is the old state of its next change.
    last_packed: BTreeMap<(String, String), Bytes>,
    capacity: usize,
    /// The log has all changes after this version.
    kept_since: u64,
    /// Requests for changes before this version fail.
    compacted: u64,
}

#[derive(Debug)]
struct Entry {
    revision: u64,
    at: Instant,
    state: State,
}

#[derive(Debug)]
enum State {
    Whole(Arc<Change>),
    Packed(Box<Packed>),
}

/// A change as JSON.
#[derive(Debug)]
struct Packed {
    kind: Kind,
    namespace: String,
    name: String,
    old: Option<Bytes>,
    new: Option<Bytes>,
}

/// The requested version is older than the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooOld {
    /// The log has all changes after this version.
    pub(crate) complete_since: u64,
}

impl Log {
    /// The empty log of a collection without changes so far. Requests for changes before `compacted` fail.
    pub(crate) fn new(capacity: usize, compacted: u64) -> Self {
        Self {
            entries: VecDeque::new(),
            packed: 0,
            last_packed: BTreeMap::new(),
            capacity,
            kept_since: 0,
            compacted,
        }
    }

    /// Adds a change, and drops the oldest ones if there are too many or they are too old.
    pub(crate) fn push(&mut self, change: Arc<Change>, now: Instant) {
        self.entries.push_back(Entry {
            revision: change.revision,
            at: now,
            state: State::Whole(change),
        });
        while self.drops_oldest(now) {
            if let Some(dropped) = self.entries.pop_front() {
                self.kept_since = dropped.revision;
                self.packed = self.packed.saturating_sub(1);
            }
        }
        while self.entries.len() > self.packed + WHOLE {
            self.pack_next();
        }
    }

    fn drops_oldest(&self, now: Instant) -> bool {
        let oldest = self.entries.front();
        let stale = oldest.is_some_and(|oldest| now.duration_since(oldest.at) > FRESH);
        self.entries.len() > self.capacity || (stale && self.entries.len() > KEPT_LEAST)
    }

    fn pack_next(&mut self) {
        let entry = &mut self.entries[self.packed];
        self.packed += 1;
        let State::Whole(change) = &entry.state else {
            return;
        };
        let key = (change.namespace.clone(), change.name.clone());
        let old = change.old.as_ref().map(|old| {
            let known = self.last_packed.remove(&key);
            known.unwrap_or_else(|| to_json(old))
        });
        let new = change.new_json();
        if let Some(new) = &new {
            self.last_packed.insert(key, new.clone());
        }
        let packed = Packed {
            kind: change.kind.clone(),
            namespace: change.namespace.clone(),
            name: change.name.clone(),
            old,
            new,
        };
        entry.state = State::Packed(Box::new(packed));
    }

    /// The changes after `revision` that the API shows, oldest first.
    pub(crate) fn since(&self, revision: u64) -> Result<impl Iterator<Item = Arc<Change>>, TooOld> {
        if revision < self.compacted {
            return Err(TooOld {
                complete_since: self.compacted.max(self.kept_since),
            });
        }
        self.kept_after(revision)
    }

    /// The changes after `revision`, compacted or not, oldest first.
    pub(crate) fn kept_after(
        &self,
        revision: u64,
    ) -> Result<impl Iterator<Item = Arc<Change>>, TooOld> {
        if revision < self.kept_since {
            return Err(TooOld {
                complete_since: self.kept_since,
            });
        }
        let first = self
            .entries
            .partition_point(|entry| entry.revision <= revision);
        Ok(self.entries.range(first..).map(Entry::change))
    }

    /// Hides the changes up to `revision` from the API.
    pub(crate) fn compact(&mut self, revision: u64) {
        self.compacted = self.compacted.max(revision);
    }
}

impl Entry {
    fn change(&self) -> Arc<Change> {
        let packed = match &self.state {
            State::Whole(change) => return Arc::clone(change),
            State::Packed(packed) => packed,
        };
        Arc::new(Change::new(
            self.revision,
            &packed.kind,
            &packed.namespace,
            &packed.name,
            packed.old.as_ref().map(from_json),
            packed.new.as_ref().map(from_json),
        ))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::object::Object;
    use crate::resources::kinds;

    fn state(revision: u64) -> Object {
        let metadata = json!({"name": "a", "resourceVersion": revision.to_string()});
        Arc::new(json!({"metadata": metadata, "number": 1.5, "empty": {}, "null": null}))
    }

    /// Changes of one object, from its creation as version 1 on.
    fn push(log: &mut Log, revisions: std::ops::RangeInclusive<u64>, now: Instant) {
        for revision in revisions {
            let old = (revision > 1).then(|| state(revision - 1));
            let new = Some(state(revision));
            let change = Change::new(revision, &kinds::CONFIG_MAPS, "x", "a", old, new);
            log.push(Arc::new(change), now);
        }
    }

    fn revisions(log: &Log, after: u64) -> Result<Vec<u64>, u64> {
        let changes = log.since(after).map_err(|old| old.complete_since)?;
        Ok(changes.map(|change| change.revision).collect())
    }

    #[test]
    fn packed_changes_are_restored_unchanged() {
        let mut log = Log::new(1_000, 0);
        push(&mut log, 1..=200, Instant::now());
        assert_eq!(log.packed, 200 - WHOLE);
        for (change, revision) in log.since(0).unwrap().zip(1..) {
            assert_eq!(change.revision, revision);
            assert_eq!(change.new, Some(state(revision)));
            assert_eq!(change.old, (revision > 1).then(|| state(revision - 1)));
            assert_eq!(
                (change.namespace.as_str(), change.name.as_str()),
                ("x", "a")
            );
        }
        assert_eq!(log.last_packed.len(), 1);
        let removal = Change::new(201, &kinds::CONFIG_MAPS, "x", "a", Some(state(200)), None);
        log.push(Arc::new(removal), Instant::now());
        push(&mut log, 202..=300, Instant::now());
        let removed = log.since(200).unwrap().next().unwrap();
        assert_eq!(
            (removed.old.clone(), removed.new.clone()),
            (Some(state(200)), None)
        );
    }

    #[test]
    fn changes_beyond_the_capacity_or_age_are_dropped() {
        let start = Instant::now();
        let mut log = Log::new(150, 0);
        push(&mut log, 1..=140, start);
        assert_eq!(revisions(&log, 0).unwrap().len(), 140);
        // As many as there is room for, while they are fresh.
        push(&mut log, 141..=160, start + FRESH);
        assert_eq!(revisions(&log, 10).unwrap().first(), Some(&11));
        assert_eq!(revisions(&log, 9), Err(10));
        // Then the last hundred.
        push(&mut log, 161..=161, start + FRESH + Duration::from_secs(1));
        assert_eq!(revisions(&log, 61).unwrap().len(), KEPT_LEAST);
        assert_eq!(revisions(&log, 60), Err(61));
        push(&mut log, 162..=170, start + 3 * FRESH);
        assert_eq!(revisions(&log, 70).unwrap().len(), KEPT_LEAST);
    }

    #[test]
    fn compaction_hides_older_versions_from_the_api_only() {
        let mut log = Log::new(150, 0);
        push(&mut log, 1..=9, Instant::now());
        log.compact(5);
        assert_eq!(revisions(&log, 4), Err(5));
        assert_eq!(revisions(&log, 5), Ok(vec![6, 7, 8, 9]));
        assert_eq!(log.kept_after(4).unwrap().count(), 5);
    }
}
