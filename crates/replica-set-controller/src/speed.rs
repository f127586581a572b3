//! How many updates may begin now (L15): see [`record`](crate::record) for why that holds across restarts.

use federated_rollout::Speed;
use fedrs_api::LocalRecord;
use jiff::Timestamp;

/// What more may begin at `now`; no limit without a speed.
pub(crate) fn room(speed: Option<Speed>, record: &LocalRecord, now: Timestamp) -> usize {
    let Some(speed) = speed else {
        return usize::MAX;
    };
    let begun = record.begun.iter();
    let begun = begun.filter(|begun| begun.counts_at(speed.min_delay, now));
    let begun: u64 = begun.map(|begun| begun.pods).sum();
    let unseen = record.updates.values().filter(|update| !update.seen);
    let in_use = begun.saturating_add(unseen.count() as u64);
    usize::try_from(speed.portion.saturating_sub(in_use)).unwrap_or(usize::MAX)
}

/// When more may begin; `None` until an update that was recorded is seen to have begun.
pub(crate) fn next(speed: Speed, record: &LocalRecord, now: Timestamp) -> Option<Timestamp> {
    let ends = record.begun.iter().map(|begun| begun.ends(speed.min_delay));
    ends.filter(|end| *end > now).min()
}

/// Forgets what no longer counts, if the record changes anyway.
pub(crate) fn forget(
    speed: Option<Speed>,
    record: &mut LocalRecord,
    recorded: &LocalRecord,
    now: Timestamp,
) {
    if record != recorded {
        match speed {
            Some(speed) => record.forget_begun(speed.min_delay, now),
            None => record.begun.clear(),
        }
    }
}
