//! The interface of controllers: `observe` a change, then `sync` one key after the other.

use std::fmt;

use tokio::time::Instant;

use super::context::Context;
use super::queue::Queue;
use crate::store::Change;

/// A controller that reconciles one key after the other.
pub(super) trait Controller: Send + fmt::Debug {
    /// The key of what is reconciled.
    type Key: Ord + Clone + fmt::Debug;
    /// The error of a failed reconciliation.
    type Failure: fmt::Display;

    /// The keys to reconcile.
    fn queue(&mut self) -> &mut Queue<Self::Key>;

    /// Observes a change, which the index has already, and queues keys.
    fn observe(&mut self, change: &Change, context: &Context);

    /// Reconciles one key. The driver retries a key that fails, with a growing delay.
    fn sync(&mut self, context: &mut Context, key: &Self::Key) -> Result<(), Self::Failure>;

    /// The node's kubelet stopped or started.
    fn power_changed(&mut self, _node: &str, _world: &Context) {}

    /// Whether it runs in the kube-controller-manager.
    fn is_managed(&self) -> bool {
        true
    }
}

/// A controller with any type of key, as the driver sees it.
pub(super) trait Worker: Send + fmt::Debug {
    fn observe(&mut self, change: &Change, context: &Context);

    /// When [`Worker::work`] has something to do.
    fn due(&mut self) -> Option<Instant>;

    /// Reconciles the key that is due first.
    fn work(&mut self, context: &mut Context);

    fn power_changed(&mut self, node: &str, context: &Context);

    /// Whether it runs in the kube-controller-manager.
    fn is_managed(&self) -> bool;
}

impl<C: Controller> Worker for C {
    fn observe(&mut self, change: &Change, context: &Context) {
        Controller::observe(self, change, context);
    }

    fn due(&mut self) -> Option<Instant> {
        self.queue().due()
    }

    fn work(&mut self, context: &mut Context) {
        let Some(key) = self.queue().pop() else {
            return;
        };
        match self.sync(context, &key) {
            Ok(()) => self.queue().forget(&key),
            Err(why) => {
                let controller = std::any::type_name::<C>();
                tracing::debug!(controller, ?key, %why, "failed, trying again");
                self.queue().retry(key);
            }
        }
    }

    fn power_changed(&mut self, node: &str, context: &Context) {
        Controller::power_changed(self, node, context);
    }

    fn is_managed(&self) -> bool {
        Controller::is_managed(self)
    }
}
