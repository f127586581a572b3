//! Whether one list and watch is up to date (F39).

use jiff::{SignedDuration, Timestamp};

use crate::sync_state::SyncState;

/// The state of one list and watch.
#[derive(Debug, Default)]
pub(crate) struct WatchState {
    /// Whether a list was ever complete.
    has_listed: bool,
    /// Whether a list is in progress or about to begin.
    listing: bool,
    /// When the known objects were last up to date, by the last response of the server.
    current_at: Option<Timestamp>,
    /// The first failure since the last response.
    failing_since: Option<Timestamp>,
    /// What failed then.
    failure: String,
    /// Whether the last response was that the collection may not be read, or does not exist.
    refused: bool,
    /// Since when the last response was that the collection does not exist.
    missing_since: Option<Timestamp>,
    /// Since when it is not known whether events are missing: the watch was silent, or all is listed to make sure.
    in_doubt_since: Option<Timestamp>,
    /// The limit that the last list, or the watch after it, exceeded.
    exceeded: Option<String>,
}

impl WatchState {
    pub(crate) fn has_listed(&self) -> bool {
        self.has_listed
    }

    /// When the known objects were last up to date.
    pub(crate) fn current_at(&self) -> Option<Timestamp> {
        self.current_at
    }

    /// A list begins, or is necessary because the watch cannot be resumed.
    pub(crate) fn begin_list(&mut self) {
        self.listing = true;
    }

    pub(crate) fn end_list(&mut self, now: Timestamp) {
        self.has_listed = true;
        self.listing = false;
        self.exceeded = None;
        self.record_caught_up(now);
    }

    /// The server sent something. Returns whether the watch had been failing.
    pub(crate) fn record_activity(&mut self, now: Timestamp) -> bool {
        if !self.listing && self.in_doubt_since.is_none() {
            self.current_at = Some(now);
        }
        self.refused = false;
        self.missing_since = None;
        self.failing_since.take().is_some()
    }

    /// The watch was silent for longer than the time between two bookmarks, and is reopened; or a list follows one that works.
    pub(crate) fn record_doubt(&mut self, now: Timestamp) {
        self.in_doubt_since.get_or_insert(now);
    }

    /// The server has delivered all events that it had. Returns whether that was not known, or the watch had been failing.
    pub(crate) fn record_caught_up(&mut self, now: Timestamp) -> bool {
        let was_in_doubt = self.in_doubt_since.take().is_some();
        self.record_activity(now) || was_in_doubt
    }

    pub(crate) fn record_failure(&mut self, now: Timestamp, error: String) {
        if self.failing_since.is_none() {
            self.failing_since = Some(now);
            self.failure = error;
        }
    }

    /// The server has refused to show the collection, or has none, or something else has failed.
    pub(crate) fn set_refused(&mut self, refused: bool) {
        self.refused = refused;
    }

    /// The last response was that the collection does not exist, or something else.
    pub(crate) fn set_missing(&mut self, is_missing: bool, now: Timestamp) {
        let since = self.missing_since.unwrap_or(now);
        self.missing_since = is_missing.then_some(since);
    }

    /// Whether there is no such collection: the API server has said nothing else for so long that it is none that starts.
    pub(crate) fn is_missing(&self, now: Timestamp, stale_after: SignedDuration) -> bool {
        self.missing_since
            .is_some_and(|since| now.duration_since(since) > stale_after)
    }

    /// Whether the collection can't be read at all: the permission is missing, or the collection. While another failure may end
    /// by itself, or the refusal is one of an API server that starts, it is not known.
    pub(crate) fn is_unreadable(&self, now: Timestamp, stale_after: SignedDuration) -> bool {
        let is_current = matches!(
            self.sync_state(now, stale_after),
            SyncState::Synced | SyncState::Unconfirmed
        );
        self.refused && !is_current
    }

    /// What failed since the last response.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failing_since.map(|_| &*self.failure)
    }

    /// The server sent more than a limit allows; `error` says what.
    pub(crate) fn record_excess(&mut self, error: String) {
        self.exceeded = Some(error);
    }

    pub(crate) fn exceeded(&self) -> Option<&str> {
        self.exceeded.as_deref()
    }

    /// Stale as soon as a new list is needed, and when the watch has been failing, or what is known in doubt, for longer than
    /// `stale_after`.
    pub(crate) fn sync_state(&self, now: Timestamp, stale_after: SignedDuration) -> SyncState {
        let is_long = |since: Option<Timestamp>| {
            since.is_some_and(|since| now.duration_since(since) > stale_after)
        };
        match self.current_at {
            Some(since) if self.has_listed => {
                let is_in_doubt = self.in_doubt_since.is_some();
                let needs_list = self.listing && !is_in_doubt;
                if needs_list || is_long(self.failing_since) || is_long(self.in_doubt_since) {
                    SyncState::Stale { since }
                } else if is_in_doubt {
                    SyncState::Unconfirmed
                } else {
                    SyncState::Synced
                }
            }
            _ => SyncState::NotSynced,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn sync_state(watch: &WatchState, second: i64) -> SyncState {
        watch.sync_state(at(second), SignedDuration::from_secs(30))
    }

    #[test]
    fn f39_synced_after_the_first_list_and_stale_after_failing_for_long() {
        let mut watch = WatchState::default();
        watch.begin_list();
        watch.record_activity(at(1));
        assert_eq!(sync_state(&watch, 1), SyncState::NotSynced);
        watch.end_list(at(2));
        watch.record_failure(at(100), "timed out".to_owned());
        watch.record_failure(at(120), "refused".to_owned());
        assert_eq!(watch.failure(), Some("timed out"));
        assert_eq!(sync_state(&watch, 130), SyncState::Synced);
        assert_eq!(sync_state(&watch, 131), SyncState::Stale { since: at(2) });
        watch.record_activity(at(132));
        assert_eq!(sync_state(&watch, 132), SyncState::Synced);
        assert_eq!(watch.failure(), None);
    }

    #[test]
    fn f39_a_refused_collection_is_unreadable_once_what_is_known_of_it_is_stale() {
        let is_unreadable = |watch: &WatchState, at: Timestamp| {
            watch.is_unreadable(at, SignedDuration::from_secs(30))
        };
        let mut watch = WatchState::default();
        assert!(!is_unreadable(&watch, at(0)), "nobody has asked");
        watch.record_failure(at(1), "403".to_owned());
        watch.set_refused(true);
        assert!(is_unreadable(&watch, at(1)));
        watch.set_refused(false);
        assert!(!is_unreadable(&watch, at(2)), "another failure");
        watch.set_refused(true);
        watch.end_list(at(3));
        assert!(!is_unreadable(&watch, at(3)));
        watch.record_failure(at(10), "403".to_owned());
        watch.set_refused(true);
        assert!(
            !is_unreadable(&watch, at(40)),
            "the API server may be starting"
        );
        assert!(is_unreadable(&watch, at(41)));
    }

    #[test]
    fn f39_a_collection_is_missing_once_nothing_else_was_said_for_long() {
        let is_missing = |watch: &WatchState, second| {
            watch.is_missing(at(second), SignedDuration::from_secs(30))
        };
        let mut watch = WatchState::default();
        assert!(!is_missing(&watch, 100), "nobody has asked");
        watch.set_missing(true, at(1));
        watch.set_missing(true, at(20));
        assert!(!is_missing(&watch, 31), "the API server may be starting");
        assert!(is_missing(&watch, 32));
        watch.set_missing(false, at(33));
        assert!(!is_missing(&watch, 33), "another failure");
        watch.set_missing(true, at(40));
        assert!(!is_missing(&watch, 70));
        watch.end_list(at(80));
        assert!(!is_missing(&watch, 200));
    }

    #[test]
    fn f39_a_silent_watch_is_unconfirmed_at_once_and_stale_if_it_stays_so() {
        let mut watch = WatchState::default();
        watch.end_list(at(2));
        watch.record_doubt(at(92));
        assert_eq!(sync_state(&watch, 92), SyncState::Unconfirmed);
        watch.record_activity(at(93));
        assert_eq!(
            sync_state(&watch, 94),
            SyncState::Unconfirmed,
            "others may follow the event"
        );
        assert!(watch.record_caught_up(at(97)));
        assert_eq!(sync_state(&watch, 97), SyncState::Synced);
        assert!(!watch.record_caught_up(at(98)));
        watch.record_doubt(at(190));
        watch.record_doubt(at(200));
        assert_eq!(sync_state(&watch, 221), SyncState::Stale { since: at(98) });
        watch.begin_list();
        watch.end_list(at(230));
        assert_eq!(sync_state(&watch, 230), SyncState::Synced);
    }

    #[test]
    fn f39_unconfirmed_during_a_list_that_only_makes_sure() {
        let mut watch = WatchState::default();
        watch.end_list(at(2));
        watch.record_doubt(at(90));
        watch.begin_list();
        assert_eq!(sync_state(&watch, 91), SyncState::Unconfirmed);
        assert_eq!(sync_state(&watch, 121), SyncState::Stale { since: at(2) });
        watch.end_list(at(122));
        assert_eq!(sync_state(&watch, 122), SyncState::Synced);
    }

    #[test]
    fn f39_stale_at_once_when_a_new_list_is_needed() {
        let mut watch = WatchState::default();
        watch.end_list(at(2));
        watch.record_activity(at(50));
        watch.begin_list();
        assert_eq!(sync_state(&watch, 51), SyncState::Stale { since: at(50) });
        watch.record_activity(at(52));
        assert_eq!(
            sync_state(&watch, 53),
            SyncState::Stale { since: at(50) },
            "a page is not a complete list"
        );
        watch.end_list(at(54));
        assert_eq!(sync_state(&watch, 54), SyncState::Synced);
    }
}
