//! Every committed change as a stream, for controllers and other readers in this process.
//!
//! log of the store -> [`Changes::next`] -> [`ChangeEvent`]; a reader that falls behind the log gets a resync.

use std::collections::VecDeque;
use std::sync::Arc;

use super::state::Api;
use crate::store::Change;

/// An item of [`Changes`].
#[derive(Clone, Debug)]
pub enum ChangeEvent {
    /// The next change.
    Change(Arc<Change>),
    /// The reader fell behind the log, or an earlier state was restored: it has to list all objects again. Changes continue from now.
    Resync,
}

/// Every change of a cluster from a point in time on, in order.
#[derive(Debug)]
pub struct Changes {
    api: Api,
    /// The resource version up to which changes were returned.
    cursor: u64,
    /// How often an earlier state had been restored by then.
    restores: u64,
    ready: VecDeque<Arc<Change>>,
}

impl Api {
    /// A stream of every change that is committed from now on.
    pub fn changes(&self) -> Changes {
        let (cursor, restores) = self.with_store(|store| (store.revision(), store.restores()));
        Changes {
            api: self.clone(),
            cursor,
            restores,
            ready: VecDeque::new(),
        }
    }
}

impl Changes {
    /// The next change; waits for one. Safe to cancel.
    pub async fn next(&mut self) -> ChangeEvent {
        loop {
            // Registered before the log is read, so that no change in between is missed.
            let notify = self.api.with_store(|store| Arc::clone(store.changed()));
            let notified = notify.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            if let Some(event) = self.try_next() {
                return event;
            }
            notified.await;
        }
    }

    /// The next change, if there is one.
    pub fn try_next(&mut self) -> Option<ChangeEvent> {
        if self.ready.is_empty() && !self.fetch() {
            return Some(ChangeEvent::Resync);
        }
        let change = self.ready.pop_front()?;
        Some(ChangeEvent::Change(change))
    }

    /// Reads new changes from the log; false if the log no longer has all of them.
    fn fetch(&mut self) -> bool {
        let cursor = self.cursor;
        let (fetched, revision, restores) = self.api.with_store(|store| {
            let changes = store.changes_after(cursor);
            (changes, store.revision(), store.restores())
        });
        self.cursor = revision;
        if restores != self.restores {
            self.restores = restores;
            return false;
        }
        match fetched {
            Ok(changes) => {
                self.ready = changes.into();
                true
            }
            Err(_too_old) => false,
        }
    }
}
