//! Records what happens in a run, and checks each write of the controller when it takes effect.
//!
//! ```text
//! audit of the API servers --versions that the controller wrote--.
//! changes of all clusters, in order ------------------------------+--> checks --> violations
//!                                                                 '--> Observed, Trace
//! ```

use std::{collections::BTreeMap, sync::Arc};

use fedrs_api::names;
use http::{Method, StatusCode, Uri};
use parking_lot::Mutex;
use sim_cluster::{Api, AuditEvent, Change, ChangeEvent, Changes};
use tokio::{
    sync::Notify,
    time::{Duration, Instant},
};

use super::{
    describe::{describe, pods, short},
    failures::Failures,
};
use crate::{
    changes::next_changes,
    checks::{
        self, Invariant, Observed, RESTORED, Violation,
        endpoints::{Answer, Answers},
    },
    crash::DelayedRequest,
    set_kind,
    sim_federation::HOST,
    trace::{Topic, Trace},
};

/// Records a run. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Recorder {
    state: Arc<Mutex<State>>,
    failed: Arc<Notify>,
}

struct State {
    /// By name, with what was not read yet.
    clusters: BTreeMap<String, Changes>,
    apis: BTreeMap<String, Api>,
    /// Whether there is an election, and who holds the Lease.
    elects: bool,
    holder: String,
    /// When the host was last restored.
    host_restored: Option<Instant>,
    observed: Observed,
    /// What discovery answers, if it runs.
    answers: Option<Answers>,
    /// How many of the next changes of ReplicaSets arrive late, and after which time, by member.
    delays: BTreeMap<String, (u32, Duration)>,
    trace: Trace,
    violations: Vec<Violation>,
    /// What the controller has written, but for Leases: `PUT host /api/v1/...`.
    writes: Vec<String>,
    failures: Failures,
    /// Writes of the controller that changed something, by kind and what was done.
    effects: BTreeMap<String, u64>,
}

impl Recorder {
    /// Records the changes of these clusters from now on.
    pub(crate) fn start(
        clusters: &[(String, Api)],
        observed: Observed,
        answers: Option<Answers>,
        elects: bool,
    ) -> Self {
        let changes = |clusters: &[(String, Api)]| {
            let changes = clusters
                .iter()
                .map(|(name, api)| (name.clone(), api.changes()));
            changes.collect::<BTreeMap<_, _>>()
        };
        let recorder = Self {
            state: Arc::new(Mutex::new(State {
                clusters: changes(clusters),
                apis: clusters.iter().cloned().collect(),
                elects,
                holder: String::new(),
                host_restored: None,
                observed,
                answers,
                delays: BTreeMap::new(),
                trace: Trace::starting(),
                violations: Vec::new(),
                writes: Vec::new(),
                failures: Failures::default(),
                effects: BTreeMap::new(),
            })),
            failed: Arc::default(),
        };
        let mut wakers: Vec<_> = changes(clusters).into_values().collect();
        let follower = recorder.clone();
        tokio::spawn(async move {
            loop {
                next_changes(&mut wakers).await;
                follower.read_changes();
            }
        });
        recorder
    }

    /// Reads what has changed since the last time.
    fn read_changes(&self) {
        let mut state = self.state.lock();
        state.read_changes(None);
        self.report(&state);
    }

    /// Wakes the run if something is violated.
    fn report(&self, state: &State) {
        if !state.violations.is_empty() {
            self.failed.notify_one();
        }
    }

    /// Adds a line to the trace.
    pub(crate) fn trace(&self, topic: Topic, text: impl Into<String>) {
        self.state.lock().trace.add(topic, text.into());
    }

    /// Records a violation.
    pub(crate) fn violated(&self, invariant: Invariant, text: String) {
        let mut state = self.state.lock();
        state.violate(Violation { invariant, text });
        self.report(&state);
    }

    /// Waits until an invariant is violated.
    pub(crate) async fn failed(&self) {
        while self.state.lock().violations.is_empty() {
            self.failed.notified().await;
        }
    }

    /// Changes what is known of the clusters.
    pub(crate) fn observe<T>(&self, change: impl FnOnce(&mut Observed) -> T) -> T {
        let mut state = self.state.lock();
        // What happened before is known first.
        state.read_changes(None);
        change(&mut state.observed)
    }

    /// Changes what is known of discovery, if it runs.
    pub(crate) fn observe_answers(&self, change: impl FnOnce(&mut Answers)) {
        let mut state = self.state.lock();
        if state.answers.is_none() {
            return;
        }
        // What happened before is known first.
        state.read_changes(None);
        if let Some(answers) = &mut state.answers {
            change(answers);
        }
    }

    /// What keeps discovery from knowing changes of the host and of these members at once.
    pub(crate) fn hinders_discovery(&self, members: &[String]) -> Vec<String> {
        let state = self.state.lock();
        let answers = state.answers.as_ref();
        answers.map_or_else(Vec::new, |answers| answers.hindered(members))
    }

    /// Discovery answers this for a set.
    pub(crate) fn answers(&self, set: &str, answer: &Answer) {
        let mut state = self.state.lock();
        state.read_changes(None);
        let Some(answers) = &mut state.answers else {
            return;
        };
        let (wrong, shown) = answers.answered(set, answer);
        if let Some(text) = shown {
            state.trace.add(Topic::Pods, text);
        }
        if let Some(violation) = wrong {
            state.violate(violation);
            self.report(&state);
        }
    }

    /// Has the next changes of ReplicaSets in a member arrive late.
    pub(crate) fn delay_changes(&self, member: &str, times: u32, delay: Duration) {
        let mut state = self.state.lock();
        state.delays.insert(member.to_owned(), (times, delay));
    }

    /// The process that holds the Lease, as its last change says; empty if none does.
    pub(crate) fn holder(&self) -> String {
        self.state.lock().holder.clone()
    }

    /// How many writes the controller has sent.
    pub(crate) fn writes(&self) -> usize {
        self.state.lock().writes.len()
    }

    /// What it has written after the first `count` writes: `PUT host /api/v1/...`.
    pub(crate) fn writes_after(&self, count: usize) -> Vec<String> {
        self.state.lock().writes[count..].to_vec()
    }

    /// Ends the recording.
    pub(crate) fn end(&self) -> (Trace, Vec<Violation>, BTreeMap<String, u64>) {
        let mut state = self.state.lock();
        state.read_changes(None);
        (
            state.trace.clone(),
            std::mem::take(&mut state.violations),
            std::mem::take(&mut state.effects),
        )
    }
}

impl Recorder {
    /// An API server has handled a write of a process.
    pub(crate) fn handled(&self, process: &str, cluster: &str, event: &AuditEvent) {
        let mut state = self.state.lock();
        state.read_changes(Some(&Write {
            process,
            cluster,
            event,
        }));
        let path = event.uri.path();
        if !path.contains("/leases") {
            let what = format!("{} {cluster} {path}", event.method);
            state.writes.push(what);
        }
        self.report(&state);
    }

    /// After which time the next change of a local set arrives, if it is late. Those of ReplicaSets of Deployments are not.
    pub(crate) fn delay(&self, cluster: &str, name: &str) -> Option<Duration> {
        if !self.observe(|observed| observed.is_set_of_user(name)) {
            return None;
        }
        let mut state = self.state.lock();
        let (left, delay) = state.delays.get_mut(cluster)?;
        *left = left.checked_sub(1)?;
        Some(*delay)
    }

    /// A late change is on its way, or has arrived.
    pub(crate) fn in_flight(&self, cluster: &str, request: &DelayedRequest) {
        if !request.has_arrived {
            let text = format!("{cluster}: a change of {} takes long", request.set);
            self.trace(Topic::Write, text);
        }
        self.observe(|observed| observed.put_in_flight(cluster, request));
    }

    /// A process knows the result of a write.
    pub(crate) fn answered(
        &self,
        cluster: &str,
        method: &Method,
        uri: &Uri,
        code: Option<StatusCode>,
    ) {
        if code.is_some_and(|code| code.is_success()) {
            self.state.lock().failures.succeeded(cluster, uri);
            return;
        }
        if uri.path().contains("/leases") {
            return;
        }
        let result = code.map_or("no response".to_owned(), |code| code.as_u16().to_string());
        let text = format!("{cluster}: {method} {}: {result}", short(uri));
        self.trace(Topic::Write, text);
        let mut state = self.state.lock();
        if let Some(text) = state.failures.put(cluster, method, uri) {
            state.violate(Violation {
                invariant: Invariant::BoundedRate,
                text,
            });
            self.report(&state);
        }
    }

    /// Something else happens: what failed before it may be tried again at once.
    pub(crate) fn is_disturbed(&self) {
        self.state.lock().failures.clear();
    }
}

/// A write that was just handled.
struct Write<'a> {
    process: &'a str,
    cluster: &'a str,
    event: &'a AuditEvent,
}

impl State {
    /// Reads what has changed, in order. `by` is what the controller has just written.
    fn read_changes(&mut self, by: Option<&Write>) {
        let mut clusters = std::mem::take(&mut self.clusters);
        let mut counted = Vec::new();
        for (cluster, changes) in &mut clusters {
            while let Some(event) = changes.try_next() {
                let change = match event {
                    ChangeEvent::Change(change) => change,
                    ChangeEvent::Resync => {
                        self.restored(cluster);
                        continue;
                    }
                };
                let written = by.filter(|write| {
                    write.cluster == cluster && write.event.versions.contains(&change.revision)
                });
                if let Some(write) = written {
                    self.written(write, &change);
                }
                if let Some(answers) = &mut self.answers {
                    answers.changed(cluster, &change);
                }
                if cluster == HOST {
                    self.host_changed(&change);
                    continue;
                }
                if self.observed.member_changed(cluster, &change) {
                    counted.extend(set_of(&change));
                }
                if let Some(violation) = checks::of_start(&self.observed, cluster, &change) {
                    self.violate(violation);
                }
            }
        }
        self.clusters = clusters;
        counted.sort_unstable();
        counted.dedup();
        for set in counted {
            let pods = pods(&self.observed, &set);
            self.trace.add(Topic::Pods, pods);
        }
    }

    /// A cluster is restored: its objects are other ones.
    fn restored(&mut self, cluster: &str) {
        assert!(
            self.observed.is_unobservable_because(cluster, RESTORED.0),
            "the log of changes is long enough for what happens at one time"
        );
        let api = &self.apis[cluster];
        if let Some(answers) = &mut self.answers {
            answers.restored(cluster, api);
        }
        if cluster == HOST {
            // Who held the Lease then may not hold it any more.
            self.holder.clear();
            self.host_restored = Some(Instant::now());
            let objects = |kind| {
                let kind = api.kind_of("fedrs.dev/v1alpha1", kind);
                let objects = kind.map(|kind| api.list(&kind, None));
                objects.unwrap_or_default()
            };
            let sets = set_kind::ALL
                .into_iter()
                .flat_map(|kind| objects(set_kind::name(kind)));
            let (sets, members) = (sets.collect::<Vec<_>>(), objects("MemberCluster"));
            let maintenances = objects("Maintenance");
            self.observed.host_restored(&sets, &members, &maintenances);
        } else {
            self.observed.member_restored(cluster, api);
        }
    }

    fn host_changed(&mut self, change: &Change) {
        if change.kind.plural == "leases" && change.name == names::CONTROLLER {
            let lease = change.new.as_ref();
            let holder = lease.and_then(|lease| lease["spec"]["holderIdentity"].as_str());
            let holder = holder.unwrap_or_default();
            if holder != self.holder {
                holder.clone_into(&mut self.holder);
                // The next leader cannot know what the last one has sent.
                self.observed.forget_in_flight();
                self.trace
                    .add(Topic::Process, format!("the Lease is held by {holder:?}"));
            }
        }
        self.observed.host_changed(change);
    }

    /// Checks and records a change that the controller made.
    fn written(&mut self, write: &Write, change: &Change) {
        let Write {
            process, cluster, ..
        } = *write;
        let is_of_election = ["leases", "namespaces"].contains(&change.kind.plural.as_str());
        // A process that starts again resumes the Lease that it held when the backup was made. It cannot know who held it last.
        let term = self.observed.config().leader_election.renew_deadline;
        let was_restored = |time: Instant| time.elapsed() < term;
        let is_known = !self.holder.is_empty() && !self.host_restored.is_some_and(was_restored);
        // It was decided earlier, perhaps by a process that is gone.
        let is_late = self.observed.is_late(cluster, change);
        if self.elects && !is_late && is_known && process != self.holder && !is_of_election {
            self.violate(Violation {
                invariant: Invariant::OneWriter,
                text: format!(
                    "{process} changes {} {} in {cluster}, but the Lease is held by {:?}",
                    change.kind.kind, change.name, self.holder
                ),
            });
        }
        let violations = if cluster == HOST {
            checks::of_host(&self.observed, &self.apis, change)
        } else if is_late {
            checks::of_member_late(&self.observed, cluster, change)
        } else {
            checks::of_member(&self.observed, cluster, change)
        };
        let effect = match (&change.old, &change.new) {
            (None, _) => "create",
            (_, None) => "delete",
            _ => "change",
        };
        let plural = &change.kind.plural;
        *self
            .effects
            .entry(format!("{effect} {plural}"))
            .or_default() += 1;
        if let Some(text) = describe(cluster, change) {
            self.trace.add(Topic::Write, text);
        }
        for violation in violations {
            self.violate(violation);
        }
    }

    fn violate(&mut self, violation: Violation) {
        let Violation { invariant, text } = &violation;
        self.trace
            .add(Topic::Violation, format!("{invariant}: {text}"));
        self.violations.push(violation);
    }
}

/// The set of a pod.
fn set_of(change: &Change) -> Option<String> {
    let pod = change.new.as_ref().or(change.old.as_ref())?;
    Some(crate::set_of(pod)?.to_owned())
}
