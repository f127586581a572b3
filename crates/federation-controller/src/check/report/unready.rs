//! Pods that have a node and don't become ready: replicas that they are to replace stay where they are for as long (F20).

use std::time::Duration;

use jiff::Timestamp;

use crate::check::{after, considered::Considered, count, snapshot::Snapshot};

/// People are told when for so long none has become ready: as long as a Deployment waits unless told otherwise.
const PATIENCE: Duration = Duration::from_secs(600);

/// Since when the pods of a member that have a node wait to become ready, and none has.
pub(super) fn unready_since(it: &Considered<'_>, now: Timestamp) -> Option<Timestamp> {
    if it.unready() == 0 {
        return None;
    }
    let before = it
        .memory
        .filter(|memory| it.available() <= count(memory.available_replicas));
    let since = before.and_then(|memory| memory.internal.unready_since.as_ref());
    Some(since.map_or(now, |time| time.0))
}

/// Since when, if that is longer than pods may take.
pub(super) fn stuck_since(
    snapshot: &Snapshot<'_>,
    it: &Considered<'_>,
    now: Timestamp,
) -> Option<Timestamp> {
    let since = unready_since(it, now).filter(|_| it.usable())?;
    // Those that are ready, but not for long enough, count as progress only later.
    let min_ready = Duration::from_secs(snapshot.frs.min_ready_seconds.into());
    let due = after(since, PATIENCE + min_ready);
    (due <= now).then_some(since)
}
