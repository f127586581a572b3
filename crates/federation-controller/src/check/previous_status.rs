//! Finds the previous status of each member.
//!
//! The status lists clusters in the order of the members it was decided for, so that each search nearly always ends where it
//! starts: behind the entry that was found last. Searching from the front costs the square of the number of members.

use fedrs_api::ClusterStatus;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::time::after;
use crate::config::Config;

/// Looks up members in the previous status, in any order; fastest in its own.
pub(super) struct PreviousStatus<'a> {
    clusters: &'a [ClusterStatus],
    next: usize,
}

impl<'a> PreviousStatus<'a> {
    pub(super) fn of(clusters: &'a [ClusterStatus]) -> Self {
        Self { clusters, next: 0 }
    }

    /// The entry of the member with this name.
    pub(super) fn get(&mut self, name: &str) -> Option<&'a ClusterStatus> {
        let (before, after) = self.clusters.split_at(self.next);
        let mut entries = (self.next..).zip(after).chain((0..).zip(before));
        let (index, found) = entries.find(|(_, cluster)| cluster.name == name)?;
        self.next = index + 1;
        Some(found)
    }
}

/// Bounds times that were written by another process, whose clock may be ahead of this one's: what began in the future begins
/// now, and no wait is longer than the longest backoff.
pub(crate) fn bound_times(clusters: &mut [ClusterStatus], now: Timestamp, settings: &Config) {
    let began = |time: &mut Time| time.0 = time.0.min(now);
    let next = |time: &mut Time| time.0 = time.0.min(after(now, settings.backoff_max));
    for internal in clusters.iter_mut().map(|cluster| &mut cluster.internal) {
        let writes = &mut internal.writes;
        let times = [
            internal.lost_since.as_mut(),
            internal.unready_since.as_mut(),
            internal.behind_since.as_mut(),
            internal
                .rejection
                .as_mut()
                .map(|rejection| &mut rejection.since),
            writes.repaired_time.as_mut(),
            writes.write_failure_time.as_mut(),
            writes.write_rejected_since.as_mut(),
        ];
        times.into_iter().flatten().for_each(began);
        internal.next_attempt_time.iter_mut().for_each(next);
        if let Some(rejection) = &mut internal.template_rejection {
            began(&mut rejection.since);
            next(&mut rejection.next_attempt_time);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_members_in_any_order() {
        let clusters = ["a", "b", "d"].map(|name| ClusterStatus {
            name: name.to_owned(),
            ..ClusterStatus::default()
        });
        let mut previous = PreviousStatus::of(&clusters);
        for name in ["a", "b", "c", "d", "d", "a", "", "b", "d"] {
            let found = previous.get(name).map(|cluster| cluster.name.as_str());
            let expected = ["a", "b", "d"].contains(&name).then_some(name);
            assert_eq!(found, expected);
        }
        assert!(PreviousStatus::of(&[]).get("a").is_none());
    }

    #[test]
    fn f28_times_of_a_process_whose_clock_was_ahead_hold_nothing_up() {
        let at = |second| Timestamp::from_second(second).expect("in range");
        let settings = Config::default();
        let mut cluster = ClusterStatus::default();
        cluster.internal.next_attempt_time = Some(Time(at(9000)));
        cluster.internal.writes.repaired_time = Some(Time(at(9000)));
        cluster.internal.unready_since = Some(Time(at(50)));
        let mut clusters = [cluster];
        bound_times(&mut clusters, at(100), &settings);
        let internal = &clusters[0].internal;
        let longest = Time(after(at(100), settings.backoff_max));
        assert_eq!(internal.next_attempt_time, Some(longest));
        assert_eq!(internal.writes.repaired_time, Some(Time(at(100))));
        assert_eq!(internal.unready_since, Some(Time(at(50))));
    }
}
