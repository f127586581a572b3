//! An independent look at what runs in all members together: whether it ever dipped (F20).
//!
//! ```text
//! embedded members --each change as it is committed--.
//!                                                    +-> how many are ready, over time --> the fewest, the most
//! real members -----a watch each, out of step--------'
//! ```

mod committed;
mod seen;
mod watched;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use kube::Client;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::Fleet;

pub(crate) use committed::CommittedPods;
use seen::Seen;

/// How far watches of several real clusters may be out of step: an addition in one is seen that much before a removal
/// in another which came first, or after it. What is seen for a shorter time may never have been.
const SKEW: Duration = Duration::from_millis(400);

/// Watches the ready replicas of one set over all members that there are when it starts.
pub struct ReadyWatcher {
    seen: Arc<Mutex<Seen>>,
    /// What is seen for a shorter time doesn't count.
    skew: Duration,
    _stop: DropGuard,
}

impl ReadyWatcher {
    /// Watches `default/NAME` from now on.
    pub fn start(fleet: &Fleet, name: &str) -> Self {
        Self::of_fleet(fleet, "default", name)
    }

    /// Watches a set in embedded members from now on: past all faults, and without missing a change.
    pub(crate) fn of_fleet(fleet: &Fleet, namespace: &str, name: &str) -> Self {
        let names = fleet.member_names();
        let apis = names.iter().map(|it| fleet.member(it).api());
        let changes = apis.clone().map(sim_cluster::Api::changes).collect();
        let members: Vec<_> = apis
            .map(|api| CommittedPods::list(api, namespace, name))
            .collect();
        let seen = Arc::new(Mutex::new(Seen::default()));
        seen.lock().tell(committed::counts(&members));
        let cancel = CancellationToken::new();
        let following = committed::follow(changes, members, Arc::clone(&seen));
        tokio::spawn(cancel.clone().run_until_cancelled_owned(following));
        Self {
            seen,
            skew: Duration::ZERO,
            _stop: cancel.drop_guard(),
        }
    }

    /// Watches a set in real members from now on: all of them have been listed.
    pub(crate) async fn of_clients(
        members: &BTreeMap<String, Client>,
        namespace: &str,
        name: &str,
    ) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let cancel = CancellationToken::new();
        for listed in watched::start(members.values(), namespace, name, &seen, &cancel) {
            listed.await.expect("a member can be listed");
        }
        // While only some had been listed there were fewer.
        seen.lock().forget();
        Self {
            seen,
            skew: SKEW,
            _stop: cancel.drop_guard(),
        }
    }

    /// The fewest that were ready at once since it started.
    pub fn lowest(&self) -> u64 {
        lowest(&self.seen.lock().totals, Instant::now(), self.skew)
    }

    /// The most that were ready at once since it started.
    pub fn highest(&self) -> u64 {
        highest(&self.seen.lock().totals, Instant::now(), self.skew)
    }

    /// Panics if ever fewer were ready at once.
    pub fn assert_never_below(&self, wanted: u64) {
        let lowest = self.lowest();
        assert!(
            lowest >= wanted,
            "{lowest} were ready at a time, of {wanted}"
        );
    }
}

/// The smallest of the maxima over all windows of `skew`: what is lower for a shorter time doesn't count.
fn lowest(totals: &[(Instant, u64)], now: Instant, skew: Duration) -> u64 {
    let lows = windows(totals, now, skew).filter_map(Iterator::max);
    lows.min().or(totals.last().map(|it| it.1)).unwrap_or(0)
}

/// The greatest of the minima over all windows of `skew`: what is higher for a shorter time doesn't count.
fn highest(totals: &[(Instant, u64)], now: Instant, skew: Duration) -> u64 {
    let highs = windows(totals, now, skew).filter_map(Iterator::min);
    highs.max().or(totals.last().map(|it| it.1)).unwrap_or(0)
}

/// For each change but the last ones, the totals within `skew` from it.
fn windows(
    totals: &[(Instant, u64)],
    now: Instant,
    skew: Duration,
) -> impl Iterator<Item = impl Iterator<Item = u64>> {
    let whole = totals
        .iter()
        .enumerate()
        .filter(move |(_, (begin, _))| *begin + skew <= now);
    whole.map(move |(number, (begin, total))| {
        let end = *begin + skew;
        let later = totals[number + 1..].iter();
        let later = later.take_while(move |(at, _)| *at < end);
        std::iter::once(*total).chain(later.map(|(_, total)| *total))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SKEW: Duration = Duration::from_millis(400);

    /// Totals by milliseconds, and a time long after them.
    fn story(totals: &[(u64, u64)]) -> (Vec<(Instant, u64)>, Instant) {
        let begin = Instant::now();
        let at = |&(millis, total): &(u64, u64)| (begin + Duration::from_millis(millis), total);
        (
            totals.iter().map(at).collect(),
            begin + Duration::from_secs(10),
        )
    }

    #[test]
    fn what_is_lower_for_a_moment_is_no_dip_where_watches_are_out_of_step() {
        let (totals, now) = story(&[
            (0, 50),
            (1000, 49),
            (1300, 50),
            (5000, 48),
            (5200, 47),
            (5500, 50),
        ]);
        assert_eq!(lowest(&totals, now, SKEW), 48);
        assert_eq!(lowest(&totals[..3], now, SKEW), 50);
        assert_eq!(
            lowest(&totals[..1], totals[0].0, SKEW),
            50,
            "the first look"
        );
        assert_eq!(lowest(&totals, now, Duration::ZERO), 47, "in step");
    }

    #[test]
    fn what_is_higher_for_a_moment_is_no_surplus_where_watches_are_out_of_step() {
        let (totals, now) = story(&[(0, 50), (1000, 78), (1100, 70), (1600, 60)]);
        assert_eq!(highest(&totals, now, SKEW), 70);
        assert_eq!(
            highest(&totals[..1], totals[0].0, SKEW),
            50,
            "the first look"
        );
        assert_eq!(highest(&totals, now, Duration::ZERO), 78, "in step");
    }
}
