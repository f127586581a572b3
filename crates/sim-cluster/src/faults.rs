//! Faults of an API server and of the connection to it, which tests and demonstrations inject.
//!
//! The effect of each fault on a request:
//!
//! - *unreachable*: the connection fails and the request has no effect; open watches break.
//! - *hanging*: requests and watches wait until the fault ends and then continue, as after SIGSTOP and SIGCONT.
//! - *slow*: every response takes longer.
//! - *error*: the request is rejected with the given status and has no effect, a number of times.
//! - *lost response*: the request takes effect, then the connection breaks, a number of times.
//! - *watch cut*: open watches end cleanly; *stalled*: they stay open and silent, all or those of one resource.
//! - *compaction*: older resource versions are answered with 410, also in open watches without events since, as if the API
//!   server had restarted afterwards.
//!
//! Every fault that fires is counted: a test of a fault that never fired shows nothing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::api::Api;
use crate::status::Status;
use crate::verb::Verb;

/// The faults of one cluster. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Faults {
    api: Api,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    switches: Mutex<Switches>,
    /// Notified whenever a fault changes.
    notify: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Switches {
    unreachable: bool,
    hanging: bool,
    watches_stalled: bool,
    /// Resources whose watches are stalled, by their plural names.
    stalled_resources: BTreeSet<String>,
    latency: Duration,
    rules: Vec<Rule>,
    /// The number of cuts: a watch that began before the last one ends.
    cuts: u64,
    /// The number of breaks, which end watches with an error.
    breaks: u64,
    counts: FaultCounts,
}

/// A fault that fires a number of times for matching requests.
#[derive(Debug)]
struct Rule {
    requests: RequestMatcher,
    left: u32,
    /// `None` loses the response.
    refusal: Option<Status>,
}

/// Which requests a fault affects; an empty matcher matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestMatcher {
    verb: Option<Verb>,
    plural: Option<String>,
    subresource: Option<String>,
}

/// How often each fault has fired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// Requests and connections that failed.
    pub unreachable: u64,
    /// Requests that waited.
    pub hung: u64,
    /// Requests that were delayed.
    pub slowed: u64,
    /// Requests that were rejected with an injected error.
    pub refused: u64,
    /// Responses that were lost after the request took effect.
    pub responses_lost: u64,
    /// Watches that were ended or broken.
    pub watches_cut: u64,
    /// How often a watch was stalled.
    pub watches_stalled: u64,
    /// Compactions of the log.
    pub compactions: u64,
}

/// A failed connection to a cluster: a fault as clients see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionError {
    /// The connection could not be made.
    #[error("connection refused: the cluster is unreachable")]
    Refused,
    /// The connection broke before the response arrived.
    #[error("connection reset before the response arrived")]
    Reset,
    /// An open watch broke.
    #[error("connection reset while reading the response")]
    Broken,
}

/// The outcome of a request.
#[derive(Debug)]
pub(crate) enum RequestOutcome {
    Served {
        latency: Duration,
        response_lost: bool,
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

/// The faults as one watch sees them.
#[derive(Clone, Debug)]
pub(crate) struct WatchFaults {
    shared: Arc<Shared>,
    /// What is watched.
    plural: String,
    cuts: u64,
    breaks: u64,
    stalled: bool,
}

impl RequestMatcher {
    /// Matches all requests.
    pub fn all() -> Self {
        Self::default()
    }

    /// Matches requests with this verb.
    #[must_use]
    pub fn verb(mut self, verb: Verb) -> Self {
        self.verb = Some(verb);
        self
    }

    /// Matches requests to this resource, by its plural name: `replicasets`.
    #[must_use]
    pub fn resource(mut self, plural: &str) -> Self {
        self.plural = Some(plural.to_owned());
        self
    }

    /// Matches requests to this subresource, such as `status`; empty for those to objects themselves.
    #[must_use]
    pub fn subresource(mut self, name: &str) -> Self {
        self.subresource = Some(name.to_owned());
        self
    }

    fn matches(&self, verb: Option<Verb>, plural: &str, subresource: &str) -> bool {
        let is = |wanted: &Option<String>, found: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted == found)
        };
        self.verb.is_none_or(|wanted| verb == Some(wanted))
            && is(&self.plural, plural)
            && is(&self.subresource, subresource)
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
        self.shared.notify.notify_waiters();
    }

    /// While on, connections fail and open ones break.
    pub fn set_unreachable(&self, on: bool) {
        self.switch(|switches| {
            switches.unreachable = on;
            switches.breaks += u64::from(on);
        });
    }

    /// While on, no request gets a response.
    pub fn set_hanging(&self, on: bool) {
        self.switch(|switches| switches.hanging = on);
    }

    /// Delays every response by `latency`; zero ends the fault.
    pub fn set_latency(&self, latency: Duration) {
        self.switch(|switches| switches.latency = latency);
    }

    /// Rejects the next `times` matching requests with `status`; they have no effect.
    pub fn refuse(&self, requests: RequestMatcher, times: u32, status: Status) {
        self.add(requests, times, Some(status));
    }

    /// Takes back the rejections of exactly these requests that are left.
    pub fn refuse_no_more(&self, requests: &RequestMatcher) {
        let is_other = |rule: &Rule| rule.refusal.is_none() || rule.requests != *requests;
        self.switch(|switches| switches.rules.retain(is_other));
    }

    /// Loses the responses to the next `times` matching requests, which do take effect.
    pub fn lose_responses(&self, requests: RequestMatcher, times: u32) {
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

    /// Ends all open watches, as a restart of the server does.
    pub fn cut_watches(&self) {
        self.switch(|switches| switches.cuts += 1);
    }

    /// Breaks all open watches, as a server that is killed does.
    pub fn break_watches(&self) {
        self.switch(|switches| switches.breaks += 1);
    }

    /// While on, open watches send nothing; they catch up afterwards.
    pub fn set_watches_stalled(&self, on: bool) {
        self.switch(|switches| switches.watches_stalled = on);
    }

    /// While on, open watches of a resource, by its plural name, send nothing: what other watches show is ahead of them.
    pub fn set_resource_stalled(&self, plural: &str, on: bool) {
        self.switch(|switches| {
            if on {
                switches.stalled_resources.insert(plural.to_owned());
            } else {
                switches.stalled_resources.remove(plural);
            }
        });
    }

    /// Compacts the log: watches and lists from older resource versions are answered with 410.
    pub fn compact(&self) {
        self.api.with_state(|state| state.store.compact());
        self.switch(|switches| switches.counts.compactions += 1);
    }

    /// Ends all faults, also those that have not fired yet.
    pub fn heal(&self) {
        self.switch(|switches| {
            switches.unreachable = false;
            switches.hanging = false;
            switches.watches_stalled = false;
            switches.stalled_resources.clear();
            switches.latency = Duration::ZERO;
            switches.rules.clear();
        });
    }

    /// How often each fault has fired.
    pub fn counts(&self) -> FaultCounts {
        self.shared.switches.lock().counts
    }

    /// Decides the outcome of a request and counts the fault.
    pub(crate) fn decide(
        &self,
        verb: Option<Verb>,
        plural: &str,
        subresource: &str,
    ) -> RequestOutcome {
        let mut switches = self.shared.switches.lock();
        if switches.unreachable {
            switches.counts.unreachable += 1;
            return RequestOutcome::Unreachable;
        }
        if switches.hanging {
            switches.counts.hung += 1;
            return RequestOutcome::Hangs;
        }
        let matching = (switches.rules.iter())
            .position(|rule| rule.requests.matches(verb, plural, subresource));
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
                return RequestOutcome::Refused(status);
            }
            Some(None) => switches.counts.responses_lost += 1,
            None => {}
        }
        switches.counts.slowed += u64::from(!switches.latency.is_zero());
        RequestOutcome::Served {
            latency: switches.latency,
            response_lost: refusal.is_some(),
        }
    }

    /// Whether connections fail now; counts the fault if so.
    pub(crate) fn refuses_connection(&self) -> bool {
        let mut switches = self.shared.switches.lock();
        switches.counts.unreachable += u64::from(switches.unreachable);
        switches.unreachable
    }

    /// Is notified whenever a switch changes.
    pub(crate) fn notify(&self) -> Arc<Notify> {
        Arc::clone(&self.shared.notify)
    }

    /// The faults for a watch of a resource that begins now.
    pub(crate) fn for_watch(&self, plural: &str) -> WatchFaults {
        let switches = self.shared.switches.lock();
        WatchFaults {
            shared: Arc::clone(&self.shared),
            plural: plural.to_owned(),
            cuts: switches.cuts,
            breaks: switches.breaks,
            stalled: false,
        }
    }
}

impl WatchFaults {
    /// The fault that stalls or ends the watch now.
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
        let stalled = switches.watches_stalled
            || switches.hanging
            || switches.stalled_resources.contains(&self.plural);
        switches.counts.watches_stalled += u64::from(stalled && !self.stalled);
        self.stalled = stalled;
        stalled.then_some(WatchFault::Stalled)
    }

    pub(crate) fn notify(&self) -> Arc<Notify> {
        Arc::clone(&self.shared.notify)
    }
}
