//! Whether a cluster can be observed, and how old what is believed of it may be.

use std::collections::BTreeMap;

use federation_controller::config::Config;
use tokio::time::{Duration, Instant};

use crate::plan::Fault;

/// How old the state that a write is based on may be, while its cluster can be observed: the deadline of a call, and of
/// another one before it.
const CALLS: u32 = 2;
/// A watch that was silent for 90 s is reopened for 5 s; if that is silent for 10 s more, all is listed, after a pause.
const SILENCE: Duration = Duration::from_secs(110);
/// The longest pause before a list that has failed is tried again, and more.
pub(super) const LIST_RETRY: Duration = Duration::from_secs(40);
/// More than the time in which an event arrives and a check is made.
const REACTION: Duration = Duration::from_secs(5);

/// What an outage of a cluster hides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutageKind {
    /// Requests get no response, which the next probes detect.
    Connection,
    /// Requests get responses, but events are missing, which silence shows: then all is listed.
    Events,
    /// Requests for lists and watches are rejected, while open watches go on.
    Rejections,
    /// Responses are wrong, which nothing shows.
    Lies,
    /// Its credentials are withdrawn on the host: the controller knows once it sees the host, and sees the cluster until then.
    Withdrawn,
}

/// The controller's view of a cluster is newer than the restored cluster, until it notices the restoration.
pub(crate) const RESTORED: (&str, OutageKind) = ("restored", OutageKind::Events);

/// Whether a cluster can be observed, and its last outage. At first it can be.
#[derive(Default)]
pub(super) struct Visibility {
    /// What makes it unobservable now.
    reasons: BTreeMap<String, OutageKind>,
    /// The current outage, or the last one.
    outage: Option<Outage>,
    /// When the controller may last have seen its state: at the start of the outage, or when one of several reasons ended.
    seen: Option<Instant>,
    /// When a controller last started.
    started: Option<Instant>,
    /// When its last responses were wrong, if they are no longer.
    lied_until: Option<Instant>,
    /// Whether it was ever restored or no member, or its responses were ever wrong: the controller may know nothing of what it wrote there.
    was_unreliable: bool,
}

#[derive(Clone, Copy)]
struct Outage {
    since: Instant,
    /// When the first of several outages began, between which the controller may have listed nothing.
    unlisted_since: Instant,
    until: Option<Instant>,
    /// Whether lists show the state all the time.
    is_listed: bool,
    /// Whether it lasted until the controller knew of it: afterwards it believes nothing of before (F39).
    was_noticed: bool,
}

impl Outage {
    /// When it ended, if the controller knew of it.
    fn noticed_until(&self) -> Option<Instant> {
        self.until.filter(|_| self.was_noticed)
    }
}

impl Visibility {
    /// Records that something makes the cluster unobservable, or no longer does.
    pub(super) fn set(&mut self, reason: &str, on: bool, config: &Config, kind: OutageKind) {
        let settled = max_age(config);
        let was_visible = self.reasons.is_empty();
        let is_noticed = self.is_known_to_be_unknown(config);
        // Lists show the state while only events are missing.
        let mut reasons = self.reasons.values();
        if !on || !reasons.any(|reason| *reason == OutageKind::Connection) {
            self.seen = Some(Instant::now());
        }
        if on {
            let is_gone = reason == Fault::NoKubeconfig.to_string();
            self.was_unreliable |= is_gone || kind == OutageKind::Lies || reason == RESTORED.0;
            self.reasons.insert(reason.to_owned(), kind);
        } else if self.reasons.remove(reason) == Some(OutageKind::Lies) {
            self.lied_until = Some(Instant::now());
        }
        let now = Instant::now();
        match (was_visible, self.reasons.is_empty()) {
            (true, false) => {
                // An outage soon after another one continues it.
                let recent = |within: Duration| {
                    let is_recent =
                        |outage: &Outage| outage.until.is_some_and(|until| until + within > now);
                    self.outage.filter(is_recent)
                };
                let before = recent(settled);
                self.outage = Some(Outage {
                    since: before
                        .map_or(now, |before| before.noticed_until().unwrap_or(before.since)),
                    unlisted_since: recent(LIST_RETRY).map_or(now, |before| before.unlisted_since),
                    until: None,
                    is_listed: before.is_none_or(|before| before.is_listed),
                    was_noticed: false,
                });
            }
            (false, true) => {
                if let Some(outage) = &mut self.outage {
                    outage.until = Some(now);
                    outage.was_noticed = is_noticed;
                }
            }
            _ => {}
        }
        if let Some(outage) = &mut self.outage {
            outage.is_listed &= !on || kind == OutageKind::Events;
        }
    }

    /// Whether this makes the cluster unobservable now.
    pub(super) fn has(&self, reason: &str) -> bool {
        self.reasons.contains_key(reason)
    }

    /// Whether it was ever restored or no member, or its responses were ever wrong.
    pub(super) fn was_unreliable(&self) -> bool {
        self.was_unreliable
    }

    /// Whether nothing else makes the cluster unobservable now.
    pub(super) fn is_only(&self, reason: &str) -> bool {
        self.reasons.len() == 1 && self.has(reason)
    }

    /// Whether lists show the state during the outage, because only events are missing: the controller may know it.
    pub(super) fn is_listed(&self) -> bool {
        self.outage.is_some_and(|outage| outage.is_listed)
    }

    /// When the last outage ended, if it has.
    pub(super) fn ended(&self) -> Option<Instant> {
        self.outage?.until
    }

    /// Records that a controller starts: it lists the cluster.
    pub(super) fn controller_starts(&mut self) {
        self.seen = Some(Instant::now());
        self.started = self.seen;
    }

    /// When a controller last started; `None` if the first one still runs.
    pub(super) fn controller_started(&self) -> Option<Instant> {
        self.started
    }

    /// Whether the cluster has been observable from before `time` until now.
    pub(super) fn is_visible_since(&self, time: Instant) -> bool {
        let ended = |outage: Outage| outage.until.is_some_and(|until| until < time);
        self.outage.is_none_or(ended)
    }

    /// When responses of the cluster were last wrong, if they are no more.
    pub(super) fn lied_until(&self) -> Option<Instant> {
        self.lied_until
    }

    /// Whether responses of the cluster are wrong, or were within this time.
    pub(super) fn has_lied_within(&self, time: Duration) -> bool {
        let lies = (self.reasons.values()).any(|reason| *reason == OutageKind::Lies);
        lies || self.lied_until.is_some_and(|until| until.elapsed() < time)
    }

    /// The time since which any state of the cluster may still count as current.
    pub(super) fn oldest_belief(&self, config: &Config) -> Instant {
        let recent = Instant::now() - max_age(config);
        if let Some(until) = self.outage.and_then(|outage| outage.noticed_until()) {
            return until.max(recent);
        }
        match self.outage {
            Some(outage) if outage.until.is_none_or(|until| until > recent) => {
                let listed = outage.is_listed.then(|| recent - SILENCE);
                let since = listed.map_or(outage.since, |listed| listed.max(outage.since));
                since.min(recent) - max_age(config)
            }
            _ => recent,
        }
    }

    /// Whether the last outage has ended after `time`, and the controller knew of it.
    pub(super) fn was_noticed_after(&self, time: Instant) -> bool {
        let until = self.outage.and_then(|outage| outage.noticed_until());
        until.is_some_and(|until| until > time)
    }

    /// When the last outage began, if it is not over, or was not before `time`.
    pub(super) fn outage_since(&self, time: Instant) -> Option<Instant> {
        let is_recent = |outage: &Outage| outage.until.is_none_or(|until| until > time);
        Some(self.outage.filter(is_recent)?.since)
    }

    /// Since when the controller may have listed nothing of the cluster.
    pub(super) fn unlisted_since(&self) -> Option<Instant> {
        self.outage_since(Instant::now() - LIST_RETRY)?;
        Some(self.outage?.unlisted_since)
    }

    /// Whether nothing need have shown the controller yet that it can't see the cluster: open watches go on while others are rejected.
    pub(super) fn is_outage_unnoticed(&self, config: &Config) -> bool {
        let mut reasons = self.reasons.values();
        let only_rejections = reasons.all(|reason| *reason == OutageKind::Rejections);
        let noticed_after = if only_rejections {
            known_after(config)
        } else {
            REACTION
        };
        let outage = self.outage.filter(|outage| outage.until.is_none());
        outage.is_some_and(|outage| outage.since.elapsed() <= noticed_after)
    }

    /// Whether the controller must know by now that the state of the cluster is unknown.
    pub(super) fn is_known_to_be_unknown(&self, config: &Config) -> bool {
        let has = |kind| self.reasons.values().any(|reason| *reason == kind);
        if !has(OutageKind::Connection) || has(OutageKind::Lies) {
            return false;
        }
        (self.seen).is_some_and(|seen| seen.elapsed() > known_after(config))
    }
}

/// After which time without any response the controller knows that the state of a cluster is unknown.
fn known_after(config: &Config) -> Duration {
    let probe = &config.probe;
    let noticed_after = probe.period * (probe.failure_threshold + 1) + probe.timeout * 2;
    noticed_after + config.call_timeout + REACTION
}

/// How old the state of a cluster that can be observed may be when a write arrives.
pub(super) fn max_age(config: &Config) -> Duration {
    config.call_timeout * CALLS + REACTION
}
