//! Converts times of another cluster's clock to ours.
//!
//! An event of a watch has just happened. A state in a list has lasted from the time in the object to the time of the response
//! (its header `Date`): both are by the cluster's clock, so its difference from ours does not matter. A state that was seen
//! before keeps its time: a corrected clock changes no duration.

use jiff::{SignedDuration, Timestamp, fmt::rfc2822::DateTimeParser};

use crate::workload::WorkloadState;

/// The clock of a cluster, while one of its collections is listed.
#[derive(Debug, Default)]
pub struct ServerClock {
    /// The time of the last page, by the cluster's clock.
    listed_at: Option<Timestamp>,
}

impl ServerClock {
    /// A page of a list arrives with this `Date`.
    pub fn begin_page(&mut self, date: Option<&str>) {
        let parsed = date.map(|date| DateTimeParser::new().parse_timestamp(date));
        self.listed_at = parsed.and_then(Result::ok);
    }

    /// The list is complete, or has failed.
    pub fn end_list(&mut self) {
        self.listed_at = None;
    }

    /// When a state began that is first seen at `now` and that began at `since` by the cluster's clock. Without a date it
    /// begins when it is seen, so that it is too young rather than too old.
    #[must_use]
    pub fn began(&self, since: Option<Timestamp>, now: Timestamp) -> Timestamp {
        let age = self
            .listed_at
            .zip(since)
            .map(|(listed, since)| listed.duration_since(since).max(SignedDuration::ZERO));
        now.checked_sub(age.unwrap_or_default()).unwrap_or(now)
    }

    /// Converts the times of `set` at `now` to our clock; `known` is its previous state.
    pub(crate) fn date(
        &self,
        set: &mut WorkloadState,
        known: Option<&WorkloadState>,
        now: Timestamp,
    ) {
        let known = known.filter(|known| known.uid == set.uid);
        if let Some(deletion) = &mut set.deletion {
            let before = known.and_then(|known| known.deletion.as_ref());
            let since = || self.began(Some(deletion.since), now);
            deletion.since = before.map_or_else(since, |before| before.since);
        }
        if let Some(failure) = &mut set.replica_failure {
            let before = known.and_then(|known| known.replica_failure.as_ref());
            let since = || self.began(failure.since, now);
            failure.since = Some(before.and_then(|before| before.since).unwrap_or_else(since));
        }
        let progress = |set: &WorkloadState| {
            let updated = set.updated_replicas();
            (set.observed_generation, set.status_replicas, updated)
        };
        set.behind_since = set.is_behind().then(|| {
            let same = known.filter(|known| progress(known) == progress(set));
            same.and_then(|known| known.behind_since).unwrap_or(now)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    #[test]
    fn f34_a_state_is_as_old_as_the_members_own_clock_says_and_never_older_than_it_was_seen() {
        // The member's clock is 90 s behind, right, and an hour ahead.
        for offset in [-90, 0, 3600] {
            let of_member = |second: i64| at(second + offset);
            let mut clock = ServerClock::default();
            assert_eq!(
                clock.began(Some(of_member(0)), at(0)),
                at(0),
                "from a watch"
            );
            let printer = jiff::fmt::rfc2822::DateTimePrinter::new();
            let date = printer.timestamp_to_rfc9110_string(&of_member(50)).unwrap();
            clock.begin_page(Some(&date));
            assert_eq!(clock.began(Some(of_member(20)), at(50)), at(20));
            assert_eq!(clock.began(Some(of_member(60)), at(50)), at(50));
            assert_eq!(clock.began(None, at(50)), at(50));
            for date in [None, Some("yesterday")] {
                clock.begin_page(date);
                assert_eq!(clock.began(Some(of_member(20)), at(50)), at(50), "{date:?}");
            }
        }
    }
}
