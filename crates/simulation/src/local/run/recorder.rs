//! Records what happens in a run, and checks each write of the controller when it takes effect.

use std::{collections::BTreeMap, sync::Arc};

use http::{Method, StatusCode, Uri};
use local_controller::LEASE;
use parking_lot::Mutex;
use sim_cluster::{Api, AuditEvent, Change, ChangeEvent, Changes};
use tokio::{
    sync::Notify,
    time::{Duration, Instant},
};

use super::{
    super::checks::{self, Observed},
    describe::describe,
};
use crate::{
    changes::next_changes,
    checks::{Invariant, Violation},
    crash::{DelayedRequest, WriteObserver},
    run::{Recorded, short},
    trace::{Topic, Trace},
};

/// Records a run. Cheap to clone.
#[derive(Clone)]
pub(super) struct Recorder {
    state: Arc<Mutex<State>>,
    failed: Arc<Notify>,
}

struct State {
    /// What was not read yet.
    changes: Changes,
    /// Who holds the Lease; empty if nobody does.
    holder: String,
    observed: Observed,
    trace: Trace,
    violations: Vec<Violation>,
    /// What the controller has written, but for Leases and events: `PUT /api/v1/...`.
    writes: Vec<String>,
    /// Writes of the controller that changed something, by kind and what was done.
    effects: BTreeMap<String, u64>,
}

impl Recorder {
    /// Records the changes of the cluster from its beginning.
    pub(super) fn start(api: &Api) -> Self {
        let recorder = Self {
            state: Arc::new(Mutex::new(State {
                changes: api.changes(),
                holder: String::new(),
                observed: Observed::default(),
                trace: Trace::starting(),
                violations: Vec::new(),
                writes: Vec::new(),
                effects: BTreeMap::new(),
            })),
            failed: Arc::default(),
        };
        let mut wakers = vec![api.changes()];
        let follower = recorder.clone();
        tokio::spawn(async move {
            loop {
                next_changes(&mut wakers).await;
                follower.update(|state| state.read_changes(None));
            }
        });
        recorder
    }

    /// Changes the state, and wakes the run if something is violated.
    fn update<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock();
        let result = change(&mut state);
        if !state.violations.is_empty() {
            self.failed.notify_one();
        }
        result
    }

    /// Adds a line to the trace.
    pub(super) fn trace(&self, topic: Topic, text: impl Into<String>) {
        self.state.lock().trace.add(topic, text.into());
    }

    /// Records a violation.
    pub(super) fn violated(&self, invariant: Invariant, text: String) {
        self.update(|state| state.violate(Violation { invariant, text }));
    }

    /// Waits until an invariant is violated.
    pub(super) async fn failed(&self) {
        while self.state.lock().violations.is_empty() {
            self.failed.notified().await;
        }
    }

    /// Changes what is known of the cluster.
    pub(super) fn observe<T>(&self, change: impl FnOnce(&mut Observed) -> T) -> T {
        self.update(|state| {
            // What happened before is known first.
            state.read_changes(None);
            change(&mut state.observed)
        })
    }

    /// The API server has granted the eviction of a pod.
    pub(super) fn evicted(&self, uid: &str, was_ready: bool) {
        self.update(|state| {
            state.read_changes(None);
            if was_ready && let Some(violation) = checks::of_eviction(&state.observed, uid) {
                state.violate(violation);
            }
            state.observed.evicted(uid);
        });
    }

    /// How many writes the controller has sent.
    pub(super) fn writes(&self) -> usize {
        self.state.lock().writes.len()
    }

    /// What it has written after the first `count` writes.
    pub(super) fn writes_after(&self, count: usize) -> Vec<String> {
        self.state.lock().writes[count..].to_vec()
    }

    /// Ends the recording.
    pub(super) fn end(&self) -> Recorded {
        self.update(|state| {
            state.read_changes(None);
            (
                state.trace.clone(),
                std::mem::take(&mut state.violations),
                std::mem::take(&mut state.effects),
            )
        })
    }
}

/// Says which process writes.
pub(super) struct Writer {
    pub(super) process: String,
    pub(super) recorder: Recorder,
}

impl WriteObserver for Writer {
    fn handled(&self, _: &str, event: &AuditEvent) {
        let path = event.uri.path();
        self.recorder.update(|state| {
            state.read_changes(Some((&self.process, event)));
            if !path.contains("/leases") && !path.contains("/events") {
                state.writes.push(format!("{} {path}", event.method));
            }
        });
    }

    fn delay(&self, _: &str, _: &str) -> Option<Duration> {
        None
    }

    fn in_flight(&self, _: &str, _: &DelayedRequest) {}

    fn was_restored_since(&self, _: &str, _: Instant) -> bool {
        false
    }

    fn answered(&self, _: &str, method: &Method, uri: &Uri, code: Option<StatusCode>) {
        if !code.is_some_and(|code| code.is_success()) && !uri.path().contains("/leases") {
            let result = code.map_or("no response".to_owned(), |code| code.as_u16().to_string());
            let text = format!("{method} {}: {result}", short(uri));
            self.recorder.trace(Topic::Write, text);
        }
    }

    fn listed(&self, _: &str, _: &Uri) {}
}

impl State {
    /// Reads what has changed, in order. `by` is what a process has just written.
    fn read_changes(&mut self, by: Option<(&str, &AuditEvent)>) {
        while let Some(event) = self.changes.try_next() {
            let ChangeEvent::Change(change) = event else {
                panic!("the log of changes is long enough for what happens at one time");
            };
            let by = by.filter(|(_, event)| event.versions.contains(&change.revision));
            if let Some((process, _)) = by {
                self.written(process, &change);
            }
            if change.kind.plural == "leases" && change.name == LEASE {
                self.lease_changed(&change);
            }
            self.observed.put(&change);
        }
    }

    fn lease_changed(&mut self, change: &Change) {
        let lease = change.new.as_ref();
        let holder = lease.and_then(|lease| lease["spec"]["holderIdentity"].as_str());
        let holder = holder.unwrap_or_default();
        if holder != self.holder {
            holder.clone_into(&mut self.holder);
            let text = format!("the Lease is held by {holder:?}");
            self.trace.add(Topic::Process, text);
        }
    }

    /// Checks and records a change that a process made.
    fn written(&mut self, process: &str, change: &Change) {
        let kind = &change.kind;
        let is_of_election = ["leases", "namespaces"].contains(&&*kind.plural);
        if !self.holder.is_empty() && process != self.holder && !is_of_election {
            self.violate(Violation {
                invariant: Invariant::OneWriter,
                text: format!(
                    "{process} changes {} {}, but the Lease is held by {:?}",
                    kind.kind, change.name, self.holder
                ),
            });
        }
        let effect = match (&change.old, &change.new) {
            (None, _) => "create",
            (_, None) => "delete",
            _ => "change",
        };
        let effect = format!("{effect} {}", kind.plural);
        *self.effects.entry(effect).or_default() += 1;
        if let Some(text) = describe(change) {
            self.trace.add(Topic::Write, text);
        }
        for violation in checks::of_write(&self.observed, change) {
            self.violate(violation);
        }
        self.observed.written(change);
    }

    fn violate(&mut self, violation: Violation) {
        let Violation { invariant, text } = &violation;
        self.trace
            .add(Topic::Violation, format!("{invariant}: {text}"));
        self.violations.push(violation);
    }
}
