//! Ready pods by the committed changes of embedded clusters, whatever the controller sees.

use std::sync::Arc;

use parking_lot::Mutex;
use sim_cluster::Changes;
use simulation::{ReadyPods, next_changes};

use super::totals::Sets;

/// Follows the members' changes forever.
pub(super) async fn follow(
    mut changes: Vec<Changes>,
    mut members: Vec<ReadyPods>,
    set: String,
    sets: Arc<Mutex<Sets>>,
) {
    loop {
        // Changes of the same instant count as one.
        for (place, event) in next_changes(&mut changes).await {
            members[place].apply(&event);
        }
        let mut sets = sets.lock();
        sets.entry(set.clone())
            .or_default()
            .record(counts(&members));
    }
}

/// Ready pods, by the member's index.
pub(super) fn counts(members: &[ReadyPods]) -> impl Iterator<Item = (usize, u64)> {
    members.iter().map(ReadyPods::count).enumerate()
}
