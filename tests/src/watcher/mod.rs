//! Watches independently how many replicas are ready in all members together: whether availability ever dipped (F20).
//!
//! ```text
//! embedded members --each committed change--.
//!                                           +--> total of ready pods over time --> lowest, highest
//! real members ------one watch each---------'
//! ```

mod committed;
mod totals;
mod watched;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use kube::Client;
use parking_lot::Mutex;
use simulation::ReadyPods;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::SimFederation;

use totals::{Sets, Totals};

/// How far the watches of several real clusters may be out of step: an addition in one cluster may be seen this much before
/// or after an earlier removal in another. A total that lasts for a shorter time may never have existed.
const SKEW: Duration = Duration::from_millis(400);

/// Watches the ready replicas of one set, or of each set of a namespace, over all members that exist at the start.
pub struct ReadyWatcher {
    sets: Arc<Mutex<Sets>>,
    /// The members by their indices.
    members: Vec<String>,
    /// Totals that last for a shorter time do not count.
    skew: Duration,
    _stop: DropGuard,
}

impl ReadyWatcher {
    /// Watches `default/NAME` from now on.
    pub fn start(federation: &SimFederation, name: &str) -> Self {
        Self::of_sim(federation, "default", name)
    }

    /// Watches a set in embedded members from now on: past all faults, without missing a change.
    pub(crate) fn of_sim(federation: &SimFederation, namespace: &str, name: &str) -> Self {
        let names = federation.member_names();
        let apis = names.iter().map(|name| federation.member(name).api());
        let changes = apis.clone().map(sim_cluster::Api::changes).collect();
        let members: Vec<_> = apis
            .map(|api| ReadyPods::list(api, namespace, name))
            .collect();
        let mut totals = Totals::default();
        totals.record(committed::counts(&members));
        let sets = Sets::from([(name.to_owned(), totals)]);
        let sets = Arc::new(Mutex::new(sets));
        let cancel = CancellationToken::new();
        let following = committed::follow(changes, members, name.to_owned(), Arc::clone(&sets));
        tokio::spawn(cancel.clone().run_until_cancelled_owned(following));
        Self {
            sets,
            members: names,
            skew: Duration::ZERO,
            _stop: cancel.drop_guard(),
        }
    }

    /// Watches a set in real members from now on, or without a name all sets; returns once all of them are listed.
    pub(crate) async fn of_clients(
        members: &BTreeMap<String, Client>,
        namespace: &str,
        name: Option<&str>,
    ) -> Self {
        let sets = Arc::<Mutex<Sets>>::default();
        let cancel = CancellationToken::new();
        for listed in watched::start(members.values(), namespace, name, &sets, &cancel) {
            listed.await.expect("a member can be listed");
        }
        let watcher = Self {
            sets,
            members: members.keys().cloned().collect(),
            skew: SKEW,
            _stop: cancel.drop_guard(),
        };
        // The totals were lower while only some members were listed.
        watcher.reset();
        watcher
    }

    /// Counts no pod of a member from now on (`is_dead`), whatever its status says, or counts its ready pods again.
    pub fn set_dead(&self, member: &str, is_dead: bool) {
        let place = self.members.iter().position(|name| name == member);
        let place = place.expect("the member is watched");
        for totals in self.sets.lock().values_mut() {
            totals.set_dead(place, is_dead);
        }
    }

    /// Forgets the totals so far.
    pub fn reset(&self) {
        self.sets.lock().values_mut().for_each(Totals::reset);
    }

    /// The fewest replicas of a set that run now.
    pub fn fewest(&self) -> u64 {
        let sets = self.sets.lock();
        sets.values().map(Totals::total).min().unwrap_or(0)
    }

    /// The lowest total of a set since the start or the last reset.
    pub fn lowest(&self) -> u64 {
        let sets = self.sets.lock();
        let lowest = |totals: &Totals| lowest(&totals.values, Instant::now(), self.skew);
        sets.values().map(lowest).min().unwrap_or(0)
    }

    /// The highest total of a set since the start or the last reset.
    pub fn highest(&self) -> u64 {
        let sets = self.sets.lock();
        let highest = |totals: &Totals| highest(&totals.values, Instant::now(), self.skew);
        sets.values().map(highest).max().unwrap_or(0)
    }

    /// Panics if the total was ever lower.
    pub fn assert_never_below(&self, wanted: u64) {
        let lowest = self.lowest();
        assert!(
            lowest >= wanted,
            "availability dipped to {lowest} of {wanted}"
        );
    }

    /// Panics if the total was ever higher.
    pub fn assert_never_above(&self, most: u64) {
        let highest = self.highest();
        assert!(highest <= most, "{highest} replicas ran, {most} at most");
    }
}

/// The smallest of the maxima over all windows of `skew`: a lower total that lasts for a shorter time does not count.
fn lowest(totals: &[(Instant, u64)], now: Instant, skew: Duration) -> u64 {
    let lows = windows(totals, now, skew).filter_map(Iterator::max);
    lows.min()
        .or(totals.last().map(|total| total.1))
        .unwrap_or(0)
}

/// The greatest of the minima over all windows of `skew`: a higher total that lasts for a shorter time does not count.
fn highest(totals: &[(Instant, u64)], now: Instant, skew: Duration) -> u64 {
    let highs = windows(totals, now, skew).filter_map(Iterator::min);
    highs
        .max()
        .or(totals.last().map(|total| total.1))
        .unwrap_or(0)
}

/// For each change but the last ones, the totals within `skew` after it.
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
    fn totals_over_time(totals: &[(u64, u64)]) -> (Vec<(Instant, u64)>, Instant) {
        let begin = Instant::now();
        let at = |&(millis, total): &(u64, u64)| (begin + Duration::from_millis(millis), total);
        (
            totals.iter().map(at).collect(),
            begin + Duration::from_secs(10),
        )
    }

    #[test]
    fn a_momentary_dip_is_ignored_within_the_skew_of_the_watches() {
        let (totals, now) = totals_over_time(&[
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
    fn a_momentary_surplus_is_ignored_within_the_skew_of_the_watches() {
        let (totals, now) = totals_over_time(&[(0, 50), (1000, 78), (1100, 70), (1600, 60)]);
        assert_eq!(highest(&totals, now, SKEW), 70);
        assert_eq!(
            highest(&totals[..1], totals[0].0, SKEW),
            50,
            "the first look"
        );
        assert_eq!(highest(&totals, now, Duration::ZERO), 78, "in step");
    }
}
