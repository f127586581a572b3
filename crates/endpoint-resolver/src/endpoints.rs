//! The handle of a set, and what publishes to it.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::watch;

use crate::{
    name::SetName,
    resolved::{Problem, Resolved, View},
};

/// The endpoints of a set, always the latest that is known. Cheap to clone; clones share what is known.
#[derive(Clone, Debug)]
pub struct Endpoints {
    name: SetName,
    view: Arc<ArcSwap<View>>,
    changes: watch::Receiver<()>,
}

/// The resolver was dropped: nothing changes any more. What a handle knows stays readable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the resolver of the EndpointSet {0} was dropped")]
pub struct Closed(SetName);

/// The other end of the handles of a set.
#[derive(Debug)]
pub(crate) struct Publisher {
    view: Arc<ArcSwap<View>>,
    changes: watch::Sender<()>,
}

impl Endpoints {
    /// A handle that shows `view`, and what publishes other views.
    pub(crate) fn new(name: SetName, view: View) -> (Self, Publisher) {
        let view = Arc::new(ArcSwap::from_pointee(view));
        let (sender, changes) = watch::channel(());
        let publisher = Publisher {
            view: Arc::clone(&view),
            changes: sender,
        };
        let handle = Self {
            name,
            view,
            changes,
        };
        (handle, publisher)
    }

    /// The set.
    pub fn name(&self) -> &SetName {
        &self.name
    }

    /// The last good answer; none if there was never one, neither from the service nor on disk. Takes no lock: fast enough
    /// for each request.
    pub fn current(&self) -> Option<Arc<Resolved>> {
        self.view.load().current().cloned()
    }

    /// Why the last attempt to get or confirm an answer failed, also if there is no answer yet.
    pub fn problem(&self) -> Option<Problem> {
        self.view.load().problem().cloned()
    }

    /// Waits until something is different since this handle was made, or since its last `changed`: the endpoints, the
    /// stale members, the problem, or whether the service confirms the answer. Several changes may be one.
    pub async fn changed(&mut self) -> Result<(), Closed> {
        let changed = self.changes.changed().await;
        changed.map_err(|_| Closed(self.name.clone()))
    }

    /// Waits until there is an answer, and returns it: at once, if there is one on disk.
    pub async fn ready(&self) -> Result<Arc<Resolved>, Closed> {
        let mut endpoints = self.fresh();
        loop {
            if let Some(current) = endpoints.current() {
                return Ok(current);
            }
            endpoints.changed().await?;
        }
    }

    /// Another handle of the set, for which nothing has changed yet.
    pub(crate) fn fresh(&self) -> Self {
        let mut endpoints = self.clone();
        endpoints.changes.mark_unchanged();
        endpoints
    }
}

impl Publisher {
    /// Shows `view` to all handles.
    pub(crate) fn publish(&self, view: &View) {
        self.view.store(Arc::new(view.clone()));
        self.changes.send_replace(());
    }
}
