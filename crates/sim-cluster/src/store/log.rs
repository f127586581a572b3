//! A bounded log of changes, to resume watches and to list the past.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Change;

/// The newest changes, in order.
#[derive(Debug)]
pub(crate) struct Log {
    changes: VecDeque<Arc<Change>>,
    capacity: usize,
    /// Everything after this version is in the log.
    complete_since: u64,
}

/// The version asked for is older than the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooOld {
    /// Everything after this version is in the log.
    pub(crate) complete_since: u64,
}

impl Log {
    /// An empty log of a collection in which nothing happened after `complete_since`.
    pub(crate) fn new(capacity: usize, complete_since: u64) -> Self {
        Self {
            changes: VecDeque::new(),
            capacity,
            complete_since,
        }
    }

    /// Adds the newest change, dropping the oldest if the log is full.
    pub(crate) fn push(&mut self, change: Arc<Change>) {
        if self.changes.len() >= self.capacity
            && let Some(dropped) = self.changes.pop_front()
        {
            self.complete_since = dropped.revision;
        }
        self.changes.push_back(change);
    }

    /// The changes after `revision`, oldest first.
    pub(crate) fn since(
        &self,
        revision: u64,
    ) -> Result<impl DoubleEndedIterator<Item = &Arc<Change>>, TooOld> {
        if revision < self.complete_since {
            return Err(TooOld {
                complete_since: self.complete_since,
            });
        }
        let first = self
            .changes
            .partition_point(|change| change.revision <= revision);
        Ok(self.changes.range(first..))
    }

    /// Forgets everything up to `revision`.
    pub(crate) fn compact(&mut self, revision: u64) {
        self.changes.retain(|change| change.revision > revision);
        self.complete_since = self.complete_since.max(revision);
    }
}
