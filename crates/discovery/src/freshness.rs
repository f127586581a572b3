//! How current what is known of a collection is: of the pods of a member, or of a kind of the host.

use jiff::{SignedDuration, Timestamp};

/// How current what is known of a collection is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Freshness {
    /// Whether it has been listed, or loaded from a snapshot.
    pub(crate) is_known: bool,
    /// Since when events may be missing.
    pub(crate) stale_since: Option<Timestamp>,
    /// Whether only a list shows what is missing.
    must_list: bool,
    /// Whether it is what a snapshot had, and has not been listed since.
    pub(crate) is_loaded: bool,
}

/// Whether a collection is known, and since when changes of it may be missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Staleness {
    /// Whether it has been listed since the start, or was loaded from a snapshot.
    pub is_known: bool,
    /// Since when changes may be missing; none if what is known is current.
    pub stale_since: Option<Timestamp>,
}

/// By how much times may differ that are the same, because messages take a different time.
const SLACK: SignedDuration = SignedDuration::from_secs(1);

impl Staleness {
    /// Whether what is known with `self` lacks changes that what is known with `other` has.
    pub(crate) fn is_older_than(self, other: Self) -> bool {
        let is_earlier = match (self.stale_since, other.stale_since) {
            (Some(since), Some(other)) => other.duration_since(since) > SLACK,
            (Some(_), None) => true,
            (None, _) => false,
        };
        other.is_known && (!self.is_known || is_earlier)
    }

    /// That of both: it is as old as the older one.
    pub(crate) fn and(self, other: Self) -> Self {
        let times = [self.stale_since, other.stale_since];
        Self {
            is_known: self.is_known && other.is_known,
            stale_since: times.into_iter().flatten().min(),
        }
    }
}

impl Freshness {
    pub(crate) fn staleness(&self) -> Staleness {
        Staleness {
            is_known: self.is_known,
            stale_since: self.stale_since,
        }
    }

    /// That of a snapshot which was last current at that time.
    pub(crate) fn loaded(current_at: Timestamp) -> Self {
        Self {
            is_known: true,
            stale_since: Some(current_at),
            must_list: true,
            is_loaded: true,
        }
    }

    /// That of an upstream. What differs by less than [`SLACK`] is the same: messages take a different time.
    pub(crate) fn replicated(&mut self, of_upstream: Staleness) {
        let is_same = self.is_known == of_upstream.is_known
            && !self.is_loaded
            && match (self.stale_since, of_upstream.stale_since) {
                (Some(known), Some(now)) => known.duration_since(now).abs() <= SLACK,
                (known, now) => known == now,
            };
        if !is_same {
            *self = Self {
                is_known: of_upstream.is_known,
                stale_since: of_upstream.stale_since,
                ..Self::default()
            };
        }
    }

    /// A list is complete.
    pub(crate) fn listed(&mut self) {
        *self = Self {
            is_known: true,
            ..Self::default()
        };
    }

    /// Events may be missing from now on; until a list, if it `must_list`.
    pub(crate) fn stale(&mut self, now: Timestamp, must_list: bool) {
        self.stale_since.get_or_insert(now);
        self.must_list |= must_list;
    }

    /// All events that there were have arrived.
    pub(crate) fn caught_up(&mut self) {
        if !self.must_list {
            self.stale_since = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d3_what_was_loaded_is_stale_until_it_is_listed() {
        let (loaded_at, now) = (Timestamp::UNIX_EPOCH, Timestamp::now());
        let mut freshness = Freshness::loaded(loaded_at);
        freshness.stale(now, false);
        freshness.caught_up();
        assert_eq!(freshness, Freshness::loaded(loaded_at));
        freshness.listed();
        assert_eq!((freshness.stale_since, freshness.is_loaded), (None, false));
        freshness.stale(now, false);
        assert_eq!(freshness.stale_since, Some(now));
        freshness.caught_up();
        assert_eq!(freshness.stale_since, None);
    }
}
