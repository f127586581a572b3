//! Whether one list and watch is current (F39).

use jiff::{SignedDuration, Timestamp};

use crate::view::Sync;

/// State of one list and watch.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    /// Whether a list has ever been completed.
    has_listed: bool,
    /// Whether a list is under way, or about to begin.
    listing: bool,
    /// When what is known was last current, as far as the member was heard.
    current: Option<Timestamp>,
    /// The first failure since the member was heard.
    down_since: Option<Timestamp>,
}

impl Feed {
    pub(crate) fn has_listed(&self) -> bool {
        self.has_listed
    }

    /// A list is to come: what is known can't be followed any more.
    pub(crate) fn restarted(&mut self) {
        self.listing = true;
    }

    pub(crate) fn listed(&mut self, now: Timestamp) {
        self.has_listed = true;
        self.listing = false;
        self.alive(now);
    }

    /// The member was heard; whether the feed had been failing before.
    pub(crate) fn alive(&mut self, now: Timestamp) -> bool {
        if !self.listing {
            self.current = Some(now);
        }
        self.down_since.take().is_some()
    }

    pub(crate) fn failed(&mut self, now: Timestamp) {
        self.down_since.get_or_insert(now);
    }

    /// Stale as soon as a list is needed again, and when the watch has been failing for longer than `stale_after`.
    /// Since when: when what is known was last current.
    pub(crate) fn sync(&self, now: Timestamp, stale_after: SignedDuration) -> Sync {
        let down = self
            .down_since
            .is_some_and(|since| now.duration_since(since) > stale_after);
        match self.current {
            Some(current) if self.has_listed => {
                if self.listing || down {
                    Sync::Stale { since: current }
                } else {
                    Sync::Synced
                }
            }
            _ => Sync::NotSynced,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn sync(feed: &Feed, second: i64) -> Sync {
        feed.sync(at(second), SignedDuration::from_secs(30))
    }

    #[test]
    fn f39_synced_after_the_first_list_and_stale_when_down_for_long() {
        let mut feed = Feed::default();
        feed.restarted();
        feed.alive(at(1));
        assert_eq!(sync(&feed, 1), Sync::NotSynced);
        feed.listed(at(2));
        assert_eq!(
            sync(&feed, 1000),
            Sync::Synced,
            "an idle watch is current: the probe watches over it"
        );
        feed.failed(at(100));
        feed.failed(at(120));
        assert_eq!(sync(&feed, 130), Sync::Synced);
        assert_eq!(sync(&feed, 131), Sync::Stale { since: at(2) });
        feed.alive(at(132));
        assert_eq!(sync(&feed, 132), Sync::Synced);
    }

    #[test]
    fn f39_stale_at_once_when_the_list_is_lost() {
        let mut feed = Feed::default();
        feed.listed(at(2));
        feed.alive(at(50));
        feed.restarted();
        assert_eq!(sync(&feed, 51), Sync::Stale { since: at(50) });
        feed.alive(at(52));
        assert_eq!(
            sync(&feed, 53),
            Sync::Stale { since: at(50) },
            "pages are no complete list"
        );
        feed.listed(at(54));
        assert_eq!(sync(&feed, 54), Sync::Synced);
    }
}
