//! How old what discovery knows of a cluster may be.

use std::collections::BTreeSet;

use tokio::time::{Duration, Instant};

/// Within this time after a change, or after the end of an outage, what is answered is as new, whatever the watches of the cluster
/// do, as long as it responds to lists: a pause of 30 s, 10 s for the current version and 10 s to open a watch; one that is silent
/// is noticed after 90 s, and in 25 s it is known that the next one is silent, too; after a pause of 30 s the list takes 30 s.
pub(crate) const KNOWN_WITHIN: Duration = Duration::from_secs(240);
/// The same if nothing has hindered watches for that long: events arrive at once.
const AT_ONCE: Duration = Duration::from_secs(2);
/// How often discovery takes snapshots: one that is killed knows that much less when it starts again.
pub(crate) const SNAPSHOT_INTERVAL: Duration = Duration::from_secs(10);

/// What keeps discovery from knowing what has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hindrance {
    /// Neither watches nor lists show the cluster.
    Outage,
    /// Watches may show nothing, or end. Lists show the cluster.
    Watches,
}

/// How old what is known of a cluster may be. At first nothing hinders discovery.
#[derive(Debug, Default)]
pub(crate) struct Currency {
    outages: BTreeSet<String>,
    /// The current outage, or the last one.
    outage: Option<Outage>,
    /// What hinders watches now.
    watches: BTreeSet<String>,
    /// When something last hindered them.
    watches_until: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Outage {
    /// What was true at this time may be what was last known.
    known: Instant,
    /// By when it has ended; none while it lasts.
    until: Option<Instant>,
}

impl Currency {
    /// Something begins to hinder discovery.
    pub(crate) fn begin(&mut self, hindrance: Hindrance, reason: &str) {
        match hindrance {
            Hindrance::Outage => {
                // One soon after another continues it.
                let known = self.known_since();
                self.outage = Some(Outage { known, until: None });
                self.outages.insert(reason.to_owned());
            }
            Hindrance::Watches => _ = self.watches.insert(reason.to_owned()),
        }
    }

    /// It ends, after `rest` at the latest.
    pub(crate) fn end(&mut self, reason: &str, rest: Duration) {
        let until = Some(Instant::now() + rest);
        if self.outages.remove(reason)
            && self.outages.is_empty()
            && let Some(outage) = &mut self.outage
        {
            outage.until = outage.until.max(until);
        }
        if self.watches.remove(reason) {
            self.watches_until = self.watches_until.max(until);
        }
    }

    /// Watches end, or have to be replaced by a list.
    pub(crate) fn watches_break(&mut self) {
        self.watches_until = self.watches_until.max(Some(Instant::now()));
    }

    /// Discovery starts again from what it knew by its last snapshot.
    pub(crate) fn begin_restart(&mut self, reason: &str) {
        self.begin(Hindrance::Outage, reason);
        if let Some(outage) = &mut self.outage {
            outage.known -= SNAPSHOT_INTERVAL;
        }
    }

    /// What was true at this time, or later, may be what is known now.
    pub(crate) fn known_since(&self) -> Instant {
        let now = Instant::now();
        if let Some(outage) = self.outage.filter(|_| !self.is_listed()) {
            return outage.known.min(now - KNOWN_WITHIN);
        }
        if self.is_at_once() {
            now - AT_ONCE
        } else {
            now - KNOWN_WITHIN
        }
    }

    /// Whether there is no outage, and none whose end may not have been noticed.
    pub(crate) fn is_listed(&self) -> bool {
        let is_over = |outage: Outage| outage.until.is_some_and(is_past);
        self.outages.is_empty() && self.outage.is_none_or(is_over)
    }

    /// Whether changes are known at once.
    pub(crate) fn is_at_once(&self) -> bool {
        self.is_listed() && self.watches.is_empty() && self.watches_until.is_none_or(is_past)
    }

    /// What hinders discovery now.
    pub(crate) fn reasons(&self) -> Vec<&str> {
        let reasons = self.outages.iter().chain(&self.watches);
        reasons.map(String::as_str).collect()
    }
}

/// Whether what ended at this time has no effect any more.
fn is_past(end: Instant) -> bool {
    end + KNOWN_WITHIN <= Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn pass(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    fn age(currency: &Currency) -> u64 {
        currency.known_since().elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn d3_what_is_known_is_as_old_as_the_outage_and_new_some_time_after_it() {
        pass(10_000).await;
        let mut currency = Currency::default();
        assert_eq!(age(&currency), 2);
        currency.begin(Hindrance::Outage, "unreachable");
        pass(500).await;
        assert_eq!(age(&currency), 502);
        currency.end("unreachable", Duration::ZERO);
        pass(239).await;
        assert_eq!((age(&currency), currency.is_listed()), (741, false));
        // Nothing was listed between two outages.
        currency.begin(Hindrance::Outage, "hanging");
        currency.end("hanging", Duration::from_secs(30));
        pass(269).await;
        assert_eq!(age(&currency), 1010);
        pass(1).await;
        assert_eq!((age(&currency), currency.is_at_once()), (2, true));
    }

    #[tokio::test(start_paused = true)]
    async fn d3_silent_watches_hide_changes_until_the_next_list() {
        pass(10_000).await;
        let mut currency = Currency::default();
        currency.begin(Hindrance::Watches, "silent");
        pass(1_000).await;
        assert_eq!((age(&currency), currency.is_listed()), (240, true));
        currency.end("silent", Duration::ZERO);
        pass(240).await;
        assert_eq!(age(&currency), 2);
        currency.begin_restart("killed");
        assert_eq!(age(&currency), 240);
        pass(300).await;
        assert_eq!(age(&currency), 312);
    }
}
