//! Faults of an API server and of the way to it, switched on and off by tests and demonstrations.
//!
//! What each one does to a request, exactly:
//!
//! - *unreachable*: the request fails as a connection does; nothing takes effect; open watches break.
//! - *hanging*: requests and watches wait until it is over, then go on, as after SIGSTOP and SIGCONT.
//! - *slow*: every answer takes that much longer.
//! - *error*: refused with the given status before it takes effect, a number of times.
//! - *lost answer*: takes effect, then the connection breaks, a number of times.
//! - *watch cut*: open watches end cleanly; *stalled*: they stay open and silent.
//! - *compaction*: versions older than now answer 410, open watches in which nothing happened since among them, as if the API
//!   server had started anew after it.
//!
//! Every fault that fires is counted: one that never fired has shown nothing.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::api::Api;
use crate::status::Status;
use crate::verb::Verb;

/// The switches of one cluster. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Faults {
    api: Api,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    switches: Mutex<Switches>,
    /// Rings whenever a switch changes.
    bell: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Switches {
    unreachable: bool,
    hanging: bool,
    watches_stalled: bool,
    latency: Duration,
    rules: Vec<Rule>,
    /// Watches born before this many cuts are over.
    cuts: u64,
    /// The same for breaks, which end with an error.
    breaks: u64,
    counts: FaultCounts,
}

/// A fault that fires for some requests a number of times.
#[derive(Debug)]
struct Rule {
    requests: RequestMatcher,
    left: u32,
    /// `None` loses the answer.
    refusal: Option<Status>,
}

/// Which requests a fault is for; an empty one is for all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestMatcher {
    verb: Option<Verb>,
    plural: Option<String>,
}

/// How often each fault fired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// Requests and connections refused.
    pub unreachable: u64,
    /// Requests held.
    pub hung: u64,
    /// Requests slowed down.
    pub slowed: u64,
    /// Requests answered with an injected error.
    pub refused: u64,
    /// Answers lost after their write took effect.
    pub answers_lost: u64,
    /// Watches ended or broken.
    pub watches_cut: u64,
    /// Times a watch was held.
    pub watches_stalled: u64,
    /// Compactions of the log.
    pub compactions: u64,
}

/// A connection to a cluster that failed; what a client sees of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionError {
    /// The connection could not be made.
    #[error("connection refused: the cluster is unreachable")]
    Refused,
    /// The connection broke before the answer came.
    #[error("connection reset before the answer arrived")]
    Reset,
    /// An open watch broke.
    #[error("connection reset while reading the answer")]
    Broken,
}

/// What happens to a request.
#[derive(Debug)]
pub(crate) enum Fate {
    Served {
        latency: Duration,
        answer_lost: bool,
    },
    Refused(Status),
    Unreachable,
    Hangs,
}

/// What happens to an open watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchFault {
    Cut,
    Broken,
    Stalled,
}

/// A watch's view of the faults.
#[derive(Clone, Debug)]
pub(crate) struct WatchFaults {
    shared: Arc<Shared>,
    cuts: u64,
    breaks: u64,
    stalled: bool,
}

impl RequestMatcher {
    /// All of them.
    pub fn all() -> Self {
        Self::default()
    }

    /// Those of one verb.
    #[must_use]
    pub fn verb(mut self, verb: Verb) -> Self {
        self.verb = Some(verb);
        self
    }

    /// Those to one plural resource: `replicasets`.
    #[must_use]
    pub fn resource(mut self, plural: &str) -> Self {
        self.plural = Some(plural.to_owned());
        self
    }

    fn matches(&self, verb: Option<Verb>, plural: &str) -> bool {
        self.verb.is_none_or(|wanted| verb == Some(wanted))
            && self.plural.as_ref().is_none_or(|wanted| wanted == plural)
    }
}

impl Faults {
    pub(crate) fn new(api: Api) -> Self {
        Self {
            api,
            shared: Arc::default(),
        }
    }

    fn switch(&self, change: impl FnOnce(&mut Switches)) {
        change(&mut self.shared.switches.lock());
        self.shared.bell.notify_waiters();
    }

    /// Connections fail, and open ones break, while it is on.
    pub fn set_unreachable(&self, on: bool) {
        self.switch(|switches| {
            switches.unreachable = on;
            switches.breaks += u64::from(on);
        });
    }

    /// Nothing answers while it is on.
    pub fn set_hanging(&self, on: bool) {
        self.switch(|switches| switches.hanging = on);
    }

    /// Every answer takes that much longer; zero ends it.
    pub fn set_latency(&self, latency: Duration) {
        self.switch(|switches| switches.latency = latency);
    }

    /// The next `times` of these requests are refused with `status` before they take effect.
    pub fn refuse(&self, requests: RequestMatcher, times: u32, status: Status) {
        self.add(requests, times, Some(status));
    }

    /// The next `times` of these requests take effect, but their answers don't arrive.
    pub fn lose_answers(&self, requests: RequestMatcher, times: u32) {
        self.add(requests, times, None);
    }

    fn add(&self, requests: RequestMatcher, times: u32, refusal: Option<Status>) {
        if times == 0 {
            return;
        }
        let rule = Rule {
            requests,
            left: times,
            refusal,
        };
        self.switch(|switches| switches.rules.push(rule));
    }

    /// Ends all open watches, as a server does that is restarted.
    pub fn cut_watches(&self) {
        self.switch(|switches| switches.cuts += 1);
    }

    /// Open watches stay silent while it is on; what they missed comes afterwards.
    pub fn set_watches_stalled(&self, on: bool) {
        self.switch(|switches| switches.watches_stalled = on);
    }

    /// Forgets all older versions: watches and lists from them answer 410.
    pub fn compact(&self) {
        self.api.with_state(|state| state.store.compact());
        self.switch(|switches| switches.counts.compactions += 1);
    }

    /// Switches everything off and drops what has not fired.
    pub fn heal(&self) {
        self.switch(|switches| {
            switches.unreachable = false;
            switches.hanging = false;
            switches.watches_stalled = false;
            switches.latency = Duration::ZERO;
            switches.rules.clear();
        });
    }

    /// How often each fault has fired.
    pub fn counts(&self) -> FaultCounts {
        self.shared.switches.lock().counts
    }

    /// Decides about a request and counts what it decided.
    pub(crate) fn fate(&self, verb: Option<Verb>, plural: &str) -> Fate {
        let mut switches = self.shared.switches.lock();
        if switches.unreachable {
            switches.counts.unreachable += 1;
            return Fate::Unreachable;
        }
        if switches.hanging {
            switches.counts.hung += 1;
            return Fate::Hangs;
        }
        let matching = (switches.rules.iter()).position(|rule| rule.requests.matches(verb, plural));
        let refusal = matching.map(|position| {
            let rule = &mut switches.rules[position];
            rule.left = rule.left.saturating_sub(1);
            let refusal = rule.refusal.clone();
            if rule.left == 0 {
                switches.rules.remove(position);
            }
            refusal
        });
        match refusal {
            Some(Some(status)) => {
                switches.counts.refused += 1;
                return Fate::Refused(status);
            }
            Some(None) => switches.counts.answers_lost += 1,
            None => {}
        }
        switches.counts.slowed += u64::from(!switches.latency.is_zero());
        Fate::Served {
            latency: switches.latency,
            answer_lost: refusal.is_some(),
        }
    }

    /// Whether connections are refused at the moment; counts one if so.
    pub(crate) fn refuses_connection(&self) -> bool {
        let mut switches = self.shared.switches.lock();
        switches.counts.unreachable += u64::from(switches.unreachable);
        switches.unreachable
    }

    /// Rings whenever a switch changes.
    pub(crate) fn bell(&self) -> Arc<Notify> {
        Arc::clone(&self.shared.bell)
    }

    /// The faults as a watch that begins now sees them.
    pub(crate) fn for_watch(&self) -> WatchFaults {
        let switches = self.shared.switches.lock();
        WatchFaults {
            shared: Arc::clone(&self.shared),
            cuts: switches.cuts,
            breaks: switches.breaks,
            stalled: false,
        }
    }
}

impl WatchFaults {
    /// What holds or ends the watch now.
    pub(crate) fn now(&mut self) -> Option<WatchFault> {
        let mut switches = self.shared.switches.lock();
        if switches.breaks > self.breaks {
            switches.counts.watches_cut += 1;
            return Some(WatchFault::Broken);
        }
        if switches.cuts > self.cuts {
            switches.counts.watches_cut += 1;
            return Some(WatchFault::Cut);
        }
        let stalled = switches.watches_stalled || switches.hanging;
        switches.counts.watches_stalled += u64::from(stalled && !self.stalled);
        self.stalled = stalled;
        stalled.then_some(WatchFault::Stalled)
    }

    pub(crate) fn bell(&self) -> Arc<Notify> {
        Arc::clone(&self.shared.bell)
    }
}
