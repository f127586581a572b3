//! Removes events some time after their last write: `written -> an hour later -> removed`.
//!
//! In a real cluster etcd expires them.

use tokio::time::Instant;

use super::context::{Context, Deletion, ignore_not_found};
use super::controller::Controller;
use super::queue::Queue;
use crate::resources::kinds;
use crate::status::Status;
use crate::store::Change;

/// Events by namespace and name.
#[derive(Debug)]
pub(crate) struct EventExpiry {
    queue: Queue<(String, String)>,
}

impl EventExpiry {
    pub(crate) fn new(context: &Context) -> Self {
        Self {
            queue: Queue::new(context.settings.sync_latency),
        }
    }
}

impl Controller for EventExpiry {
    type Key = (String, String);
    type Failure = Status;

    fn is_managed(&self) -> bool {
        false
    }

    fn queue(&mut self) -> &mut Queue<Self::Key> {
        &mut self.queue
    }

    fn observe(&mut self, change: &Change, context: &Context) {
        if change.kind.storage != kinds::EVENTS.storage {
            return;
        }
        let key = (change.namespace.clone(), change.name.clone());
        // Another write extends the time.
        self.queue.remove(&key);
        if change.new.is_some() {
            self.queue
                .add_at(key, Instant::now() + context.settings.event_time);
        }
    }

    fn sync(
        &mut self,
        context: &mut Context,
        (namespace, name): &(String, String),
    ) -> Result<(), Status> {
        let Ok(event) = context.api.get(&kinds::EVENTS, namespace, name) else {
            return Ok(());
        };
        ignore_not_found(context.delete(&kinds::EVENTS, &event, Deletion::default()))
    }
}
