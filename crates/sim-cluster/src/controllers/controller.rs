//! What a controller is to the driver: `observe` a change, then `sync` one key after the other.

use std::fmt;

use tokio::time::Instant;

use super::queue::Queue;
use super::world::World;
use crate::store::Change;

/// A part of the cluster that looks at one key after the other.
pub(super) trait Controller: Send + fmt::Debug {
    /// What it looks at.
    type Key: Ord + Clone + fmt::Debug;
    /// Why a look failed.
    type Failure: fmt::Display;

    /// The keys to be looked at.
    fn queue(&mut self) -> &mut Queue<Self::Key>;

    /// Takes in a change; the index has it already. Decides nothing, only what is to be looked at.
    fn observe(&mut self, change: &Change, world: &World);

    /// Looks at one key, and at it again later if that fails.
    fn sync(&mut self, world: &mut World, key: &Self::Key) -> Result<(), Self::Failure>;

    /// A node's kubelet died or lives again.
    fn power_changed(&mut self, _node: &str, _world: &World) {}
}

/// A controller of whatever keys, as the driver sees it.
pub(super) trait Worker: Send + fmt::Debug {
    fn observe(&mut self, change: &Change, world: &World);

    /// When [`Worker::work`] has something to do.
    fn due(&mut self) -> Option<Instant>;

    /// Looks at the key that is due first.
    fn work(&mut self, world: &mut World);

    fn power_changed(&mut self, node: &str, world: &World);
}

impl<C: Controller> Worker for C {
    fn observe(&mut self, change: &Change, world: &World) {
        Controller::observe(self, change, world);
    }

    fn due(&mut self) -> Option<Instant> {
        self.queue().due()
    }

    fn work(&mut self, world: &mut World) {
        let Some(key) = self.queue().pop() else {
            return;
        };
        match self.sync(world, &key) {
            Ok(()) => self.queue().forget(&key),
            Err(why) => {
                let controller = std::any::type_name::<C>();
                tracing::debug!(controller, ?key, %why, "failed, trying again");
                self.queue().retry(key);
            }
        }
    }

    fn power_changed(&mut self, node: &str, world: &World) {
        Controller::power_changed(self, node, world);
    }
}
