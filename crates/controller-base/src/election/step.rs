//! Decides what a candidate does with the Lease. Pure: the time is an argument.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{api::coordination::v1::LeaseSpec, apimachinery::pkg::apis::meta::v1::MicroTime};
use tokio::time::Instant;

/// A power failure, with the start of an API server after it, takes longer.
const UNLED: SignedDuration = SignedDuration::from_secs(60);

/// A process that takes part in the election.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    /// Its name in the Lease. An earlier process may have had it, and no other process may have it now.
    pub(super) identity: String,
    /// Whether another process has the name nevertheless: this one then never resumes a term.
    pub(super) is_shared: bool,
    /// How long other candidates have to wait after each renewal.
    pub(super) lease_duration: Duration,
}

/// What a candidate has observed of the Lease.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    /// The last record, and since when it has not changed, by this process's own clock.
    observed: Option<(LeaseSpec, Instant)>,
    /// Whether the Lease existed when it was last read.
    is_there: bool,
    /// Whether the record is of an earlier version than one before: the host was restored from a backup.
    is_restored: bool,
}

impl View {
    /// Records the Lease as it was found at `now`.
    pub(super) fn observe(&mut self, found: Option<LeaseSpec>, now: Instant) {
        self.is_there = found.is_some();
        let Some(found) = found else { return };
        if self
            .observed
            .as_ref()
            .is_none_or(|(seen, _)| *seen != found)
        {
            self.observed = Some((found, now));
            self.is_restored = false;
        }
    }

    /// Records the Lease of a host that was restored from a backup.
    pub(super) fn observe_restored(&mut self, found: LeaseSpec, now: Instant) {
        *self = Self {
            observed: Some((found, now)),
            is_there: true,
            is_restored: true,
        };
    }
}

/// One acquisition of the Lease, which renewals don't change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Acquisition {
    /// In microseconds, which is what the API server stores.
    time: Option<i64>,
    transitions: Option<i32>,
}

impl Acquisition {
    /// The acquisition that `record` shows.
    pub(super) fn of(record: &LeaseSpec) -> Self {
        let time = record.acquire_time.as_ref();
        Self {
            time: time.map(|time| time.0.as_microsecond()),
            transitions: record.lease_transitions,
        }
    }
}

/// What to do with the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Create it: it does not exist.
    Create,
    /// Take it: it has no holder, or has expired.
    Take,
    /// Renew it: this process holds it.
    Renew,
    /// Take it without waiting: an earlier process of the same name held it, and is dead.
    Resume,
    /// Wait: another candidate holds it, and may rely on it until then.
    Follow { leader: String, until: Instant },
}

/// Decides for `me`. `leads` is whether it was the leader until now; `acquired` are its acquisitions of the Lease.
///
/// A leader never takes the Lease from another candidate, even if it has expired: the other one has led in between. Another
/// process may have the same name by mistake: an acquisition that is not in `acquired` is that of another process.
///
/// The record in a restored host does not show who led last, and may still do so: nobody takes that Lease before another
/// candidate's term would have ended.
///
/// If the Lease was deleted, a standby waits for the last known holder, which creates it again unless it is dead. Only a
/// process that starts at this moment creates it at once; the holder notices this at its next renewal.
pub(super) fn step(
    me: &Candidate,
    leads: bool,
    acquired: &[Acquisition],
    view: &View,
    now: Instant,
) -> Step {
    let found = match &view.observed {
        None => Step::Create,
        Some((record, since)) if view.is_restored => {
            let until = *since + me.lease_duration;
            if now < until {
                let leader = holder(record).unwrap_or_default().to_owned();
                return Step::Follow { leader, until };
            }
            Step::Take
        }
        Some((record, since)) => match holder(record) {
            None => Step::Take,
            Some(leader)
                if leader == me.identity && acquired.contains(&Acquisition::of(record)) =>
            {
                Step::Renew
            }
            Some(leader) if leader == me.identity && !leads && !me.is_shared => Step::Resume,
            Some(leader) => {
                let until = *since + duration(record).unwrap_or(me.lease_duration);
                if leads || now < until {
                    let leader = leader.to_owned();
                    return Step::Follow { leader, until };
                }
                Step::Take
            }
        },
    };
    if view.is_there { found } else { Step::Create }
}

fn holder(record: &LeaseSpec) -> Option<&str> {
    record
        .holder_identity
        .as_deref()
        .filter(|identity| !identity.is_empty())
}

fn duration(record: &LeaseSpec) -> Option<Duration> {
    let seconds = u64::try_from(record.lease_duration_seconds?).ok()?;
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

/// The record of a Lease that `me` takes at `now`, over the record `before`.
pub(super) fn taken(me: &Candidate, before: Option<LeaseSpec>, now: Timestamp) -> LeaseSpec {
    let transitions = before
        .as_ref()
        .map(|record| record.lease_transitions.unwrap_or(0).saturating_add(1));
    LeaseSpec {
        holder_identity: Some(me.identity.clone()),
        acquire_time: Some(MicroTime(now)),
        lease_transitions: Some(transitions.unwrap_or(0)),
        ..renewed(me, before.unwrap_or_default(), now)
    }
}

/// Whether nobody has led for so long at `now` that a member may have lost its power and returned, unseen.
pub(super) fn was_unled(before: &LeaseSpec, now: Timestamp) -> bool {
    let renewed = before.renew_time.as_ref();
    renewed.is_some_and(|renewed| now.duration_since(renewed.0) >= UNLED)
}

/// The record of a Lease that `me` holds and renews at `now`.
pub(super) fn renewed(me: &Candidate, before: LeaseSpec, now: Timestamp) -> LeaseSpec {
    LeaseSpec {
        lease_duration_seconds: Some(whole_seconds(me.lease_duration)),
        renew_time: Some(MicroTime(now)),
        ..before
    }
}

/// The record of a Lease that its holder releases at `now`: any candidate may take it at once.
pub(super) fn released(before: LeaseSpec, now: Timestamp) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(String::new()),
        // The API server rejects 0.
        lease_duration_seconds: Some(1),
        acquire_time: Some(MicroTime(now)),
        renew_time: Some(MicroTime(now)),
        ..before
    }
}

/// Rounded up: others must not wait for less time than the holder leads.
fn whole_seconds(duration: Duration) -> i32 {
    let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    i32::try_from(seconds).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(15);

    fn me() -> Candidate {
        Candidate {
            identity: "me".to_owned(),
            is_shared: false,
            lease_duration: LEASE,
        }
    }

    fn record(holder: &str, seconds: i32, renewed: i64) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(holder.to_owned()),
            lease_duration_seconds: Some(seconds),
            renew_time: Some(MicroTime(Timestamp::from_second(renewed).unwrap())),
            lease_transitions: Some(3),
            ..LeaseSpec::default()
        }
    }

    /// What to do at second 10 after looks at the given seconds.
    fn decided(leads: bool, looks: &[(u64, Option<LeaseSpec>)]) -> (Step, Instant) {
        let start = Instant::now();
        let at = |second| start + Duration::from_secs(second);
        let mut view = View::default();
        for (second, found) in looks {
            view.observe(found.clone(), at(*second));
        }
        let acquired: &[_] = if leads {
            &[Acquisition::of(&record("me", 15, 0))]
        } else {
            &[]
        };
        (step(&me(), leads, acquired, &view, at(10)), start)
    }

    #[test]
    fn f33_what_nobody_has_looked_at_for_a_while_is_not_recorded() {
        let now = Timestamp::from_second(100).unwrap();
        for (before, expected) in [
            (record("other", 15, 95), false),
            (record("", 1, 41), false),
            (record("", 1, 40), true),
            // A clock that is ahead.
            (record("other", 15, 300), false),
            (LeaseSpec::default(), false),
        ] {
            assert_eq!(was_unled(&before, now), expected, "{before:?}");
        }
    }

    #[test]
    fn what_is_found_decides() {
        let free = || Some(record("", 1, 0));
        let mine = || Some(record("me", 15, 0));
        let other = |seconds| Some(record("other", seconds, 0));
        let renewed = || Some(record("other", 5, 2));
        for (what, leads, looks, wanted) in [
            ("never there", false, vec![(10, None)], Step::Create),
            ("nobody's", false, vec![(10, free())], Step::Take),
            (
                "an empty record",
                false,
                vec![(10, Some(LeaseSpec::default()))],
                Step::Take,
            ),
            (
                "expired",
                false,
                vec![(0, other(10)), (10, other(10))],
                Step::Take,
            ),
            (
                "ours from an earlier term",
                false,
                vec![(10, mine())],
                Step::Resume,
            ),
            ("ours", true, vec![(0, mine()), (10, mine())], Step::Renew),
            (
                "ours, deleted",
                true,
                vec![(0, mine()), (10, None)],
                Step::Create,
            ),
            (
                "ours, emptied",
                true,
                vec![(0, mine()), (10, free())],
                Step::Take,
            ),
            (
                "ours, long ago, deleted",
                false,
                vec![(0, mine()), (10, None)],
                Step::Create,
            ),
            (
                "nobody's, deleted",
                false,
                vec![(0, free()), (10, None)],
                Step::Create,
            ),
            (
                "expired and deleted",
                false,
                vec![(0, other(10)), (10, None)],
                Step::Create,
            ),
        ] {
            assert_eq!(decided(leads, &looks).0, wanted, "{what}");
        }
        for (what, leads, looks, until) in [
            ("another's", false, vec![(10, other(5))], 15),
            (
                "another's for a while",
                false,
                vec![(0, other(11)), (10, other(11))],
                11,
            ),
            (
                "renewed just now",
                false,
                vec![(0, other(5)), (9, renewed())],
                14,
            ),
            ("without a duration", false, vec![(10, other(0))], 25),
            (
                "deleted under its holder",
                false,
                vec![(0, other(11)), (10, None)],
                11,
            ),
            (
                "lost to another",
                true,
                vec![(0, mine()), (10, other(5))],
                15,
            ),
            (
                "lost to another that has expired",
                true,
                vec![(0, other(5)), (10, other(5))],
                5,
            ),
        ] {
            let (step, start) = decided(leads, &looks);
            let wanted = Step::Follow {
                leader: "other".to_owned(),
                until: start + Duration::from_secs(until),
            };
            assert_eq!(step, wanted, "{what}");
        }
    }

    #[test]
    fn what_another_process_of_the_same_name_acquired_is_not_ours() {
        let now = Instant::now();
        let mine = record("me", 15, 0);
        let acquired = [Acquisition::of(&mine)];
        let theirs = LeaseSpec {
            lease_transitions: Some(4),
            ..mine.clone()
        };
        let shared = Candidate {
            is_shared: true,
            ..me()
        };
        let follow = Step::Follow {
            leader: "me".to_owned(),
            until: now + LEASE,
        };
        for (what, me, leads, acquired, found, wanted) in [
            ("a renewal", me(), true, &acquired[..], &mine, Step::Renew),
            (
                "the response to the acquisition was lost",
                me(),
                false,
                &acquired,
                &mine,
                Step::Renew,
            ),
            (
                "taken by another process",
                me(),
                true,
                &acquired,
                &theirs,
                follow.clone(),
            ),
            (
                "of an earlier process",
                me(),
                false,
                &[],
                &mine,
                Step::Resume,
            ),
            ("of another process", shared, false, &[], &mine, follow),
        ] {
            let mut view = View::default();
            view.observe(Some(found.clone()), now);
            assert_eq!(step(&me, leads, acquired, &view, now), wanted, "{what}");
        }
    }

    #[test]
    fn nobody_takes_the_lease_of_a_restored_host_at_once() {
        let start = Instant::now();
        let mine = record("me", 15, 0);
        let acquired = [Acquisition::of(&mine)];
        for found in [mine, record("", 1, 0), record("other", 5, 0)] {
            let mut view = View::default();
            view.observe(Some(record("other", 15, 9)), start);
            view.observe_restored(found.clone(), start);
            let decided = |view: &View, seconds| {
                let now = start + Duration::from_secs(seconds);
                step(&me(), false, &acquired, view, now)
            };
            let follow = Step::Follow {
                leader: holder(&found).unwrap_or_default().to_owned(),
                until: start + LEASE,
            };
            assert_eq!(decided(&view, 0), follow);
            assert_eq!(decided(&view, 14), follow);
            assert_eq!(decided(&view, 15), Step::Take);
            view.observe(Some(record("other", 5, 20)), start + LEASE);
            let step = decided(&view, 16);
            assert!(matches!(step, Step::Follow { leader, .. } if leader == "other"));
        }
    }

    #[test]
    fn records_say_who_holds_the_lease_since_when() {
        let now = Timestamp::from_second(100).unwrap();
        let first = taken(&me(), None, now);
        assert_eq!(first.lease_transitions, Some(0));
        assert_eq!(holder(&first), Some("me"));

        let took = taken(&me(), Some(record("other", 5, 0)), now);
        assert_eq!(took.lease_transitions, Some(4));
        assert_eq!(took.acquire_time, Some(MicroTime(now)));
        assert_eq!(took.lease_duration_seconds, Some(15));

        let later = Timestamp::from_second(102).unwrap();
        let kept = renewed(&me(), took.clone(), later);
        assert_eq!(kept.acquire_time, took.acquire_time);
        assert_eq!(kept.lease_transitions, took.lease_transitions);
        assert_eq!(kept.renew_time, Some(MicroTime(later)));

        let free = released(kept, later);
        assert_eq!(holder(&free), None);
        assert_eq!(free.lease_transitions, Some(4));
        assert_eq!(duration(&free), Some(Duration::from_secs(1)));
    }

    #[test]
    fn others_never_wait_for_less_than_the_holders_term() {
        assert_eq!(whole_seconds(Duration::from_millis(1500)), 2);
        assert_eq!(whole_seconds(Duration::from_secs(15)), 15);
    }
}
