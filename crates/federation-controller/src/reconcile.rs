//! The work on one FederatedReplicaSet: one worker at a time has it (F25).
//!
//! ```text
//! being deleted -> release or delete its local sets, then remove the finalizer (F5)
//! invalid       -> say so, change nothing (F4)
//! else          -> finalizer, snapshot -> check -> carry out -> remember -> publish -> next check
//! ```

mod finish;
mod memory;

use std::{sync::Arc, time::Duration};

use cluster_informer::{ChangeHandler, Health, SyncState, WorkloadChange};
use fedrs_api::{FederatedReplicaSetStatus, FieldError, SetKey, ValidFrs, names};
use jiff::Timestamp;
use kube::Client;
use tokio::time::Instant;

pub(crate) use self::memory::Memories;
use crate::{
    agenda::Agenda,
    calls::{self, CallError},
    check::{self, Check, CheckSettings, Outcome, Outcomes, Snapshot},
    clock::Clock,
    config::Config,
    event::Event,
    events::{Recorder, Subject},
    executor::Executor,
    finalizer,
    host::{Entry, HostStore},
    members::Registry,
    metrics::Metrics,
};

/// All that the workers share.
pub(crate) struct Reconciler {
    pub(crate) host: Client,
    pub(crate) sets: Arc<HostStore>,
    pub(crate) members: Arc<Registry>,
    pub(crate) agenda: Agenda,
    pub(crate) executor: Executor,
    pub(crate) recorder: Recorder,
    pub(crate) clock: Clock,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) config: Config,
    pub(crate) settings: CheckSettings,
    pub(crate) memories: Memories,
}

/// How soon a write that lost against another one is decided anew, when no event tells before.
const RETRY: Duration = Duration::from_secs(1);

impl Reconciler {
    /// Works on `key`: checks it, or only publishes its status.
    pub(crate) async fn work_on(self: &Arc<Self>, key: &SetKey, check_due: bool) {
        let Some(entry) = self.sets.get(key) else {
            self.forget(key);
            return;
        };
        if entry.object.spec.federation != self.config.federation {
            return;
        }
        if entry.object.metadata.deletion_timestamp.is_some() {
            self.finish(key, &entry).await;
            return;
        }
        match &entry.valid {
            Err(errors) => self.refuse(key, &entry, errors).await,
            Ok(_) if check_due && !self.ensure_finalizer(key, &entry).await => {
                self.agenda.check(key.clone(), RETRY);
            }
            Ok(frs) => self.check(key, &entry, frs, check_due).await,
        }
    }

    /// Adds the finalizer, unless it is there: without it the object could disappear before its local sets are released
    /// (F5). Answers whether it is there.
    async fn ensure_finalizer(&self, key: &SetKey, entry: &Entry) -> bool {
        let object = &entry.object;
        if finalizer::is_present(object) || self.memories.has_finalizer(key, object) {
            return true;
        }
        let patch = finalizer::addition(object);
        let path = frs_path(key);
        let call = calls::merge_patch(&self.host, &path, &patch);
        match self.host_call(call).await {
            // The watch shows the finalizer later; the check does not wait for it.
            Ok(answer) => {
                self.memories
                    .put_finalizer(key, object, memory::version_of(&answer));
                true
            }
            Err(error) => {
                tell(key, &error, "failed to add the finalizer");
                false
            }
        }
    }

    /// Forgets an object that is gone, or that the controller no longer holds.
    fn forget(&self, key: &SetKey) {
        self.memories.forget(key);
        self.agenda.forget(key);
    }

    async fn check(
        self: &Arc<Self>,
        key: &SetKey,
        entry: &Arc<Entry>,
        frs: &ValidFrs,
        check_due: bool,
    ) {
        let now = self.clock.now();
        let (memory, members) = self.look(key, entry, now);
        let snapshot = Snapshot {
            frs,
            desired_spec_hash: entry.desired_spec_hash,
            template_hash: entry.template,
            previous: &memory,
            members: &members,
            overlapping: &self.sets.overlapping(key),
            settings: &self.settings,
            observe_only: !check_due,
        };
        let decided = self.metrics.time("check", || check::check(&snapshot, now));
        let Check {
            actions,
            mut status,
            events,
            next_check,
            moving,
        } = decided;
        // Known before anything is written: what follows from a write may be seen before it has returned.
        self.memories.put_moving(key, moving);
        let subject = subject(entry);
        for event in events {
            self.record(key, &subject, event);
        }
        let started = Instant::now();
        let outcomes = self.carry_out(key, entry, &actions).await;
        self.metrics.spent("carry out", started);
        for action in &actions {
            if let Some(outcome) = outcomes.get(&action.member) {
                self.tell(key, &subject, &action.member, &action.event, outcome);
            }
        }
        let now = self.clock.now();
        check::remember(
            &mut status,
            &outcomes,
            entry.desired_spec_hash,
            now,
            &self.settings,
        );
        self.memories.remember(key, status.clone());
        let started = Instant::now();
        self.publish(key, entry, &status).await;
        self.metrics.spent("publish", started);
        if check_due {
            self.plan_next(key, &outcomes, next_check, now);
        }
    }

    /// What is known: the memory, with the answers that came late, and the members.
    fn look(
        &self,
        key: &SetKey,
        entry: &Entry,
        now: Timestamp,
    ) -> (FederatedReplicaSetStatus, Vec<check::Member>) {
        let mut memory = self.memories.recall(key, &entry.object);
        let (come, awaited) = self.memories.take_late(key);
        for late in come {
            self.tell(
                key,
                &subject(entry),
                &late.member,
                &late.event,
                &late.outcome,
            );
            let outcomes = Outcomes::from([(late.member, late.outcome)]);
            check::remember(
                &mut memory,
                &outcomes,
                late.desired_spec_hash,
                now,
                &self.settings,
            );
        }
        let mut members = self.metrics.time("snapshot", || self.members.snapshot(key));
        for member in &mut members {
            member.write_pending = awaited.contains(&member.name);
        }
        (memory, members)
    }

    /// Carries `actions` out; an answer that takes long checks the set once it comes.
    async fn carry_out(
        self: &Arc<Self>,
        key: &SetKey,
        entry: &Arc<Entry>,
        actions: &[check::Action],
    ) -> Outcomes {
        let late = {
            let (this, key) = (Arc::downgrade(self), key.clone());
            move |outcome| {
                if let Some(this) = this.upgrade() {
                    this.memories.put_late(&key, outcome);
                    this.agenda.check(key.clone(), Duration::ZERO);
                }
            }
        };
        let access = |name: &str| self.members.access(name);
        let outcomes = self
            .executor
            .carry_out(entry, actions, access, Arc::new(late))
            .await;
        for (member, outcome) in &outcomes {
            if *outcome == Outcome::Pending {
                self.memories.put_unanswered(key, member);
            }
        }
        outcomes
    }

    fn plan_next(
        &self,
        key: &SetKey,
        outcomes: &Outcomes,
        next_check: Option<Timestamp>,
        now: Timestamp,
    ) {
        if outcomes.values().any(Outcome::needs_retry) {
            self.agenda.check(key.clone(), RETRY);
        }
        if let Some(time) = next_check {
            self.agenda.check(key.clone(), until(now, time));
        }
    }

    /// Tells what became of an action in `member`; `done` is what to say if it was carried out.
    fn tell(&self, key: &SetKey, subject: &Subject, member: &str, done: &Event, outcome: &Outcome) {
        let event = match outcome {
            Outcome::Written(_) => done.clone(),
            Outcome::Repaired { by, .. } => Event {
                message: match by.as_deref() {
                    Some(names::FIELD_MANAGER) => format!(
                        "{} (changed by fedrs itself: before a restart, or by a second controller)",
                        done.message
                    ),
                    Some(by) => format!("{} (changed by {by})", done.message),
                    None => done.message.clone(),
                },
                ..done.clone()
            },
            Outcome::Adopted { changed, .. } => Event::warning(
                "Overwritten",
                format!("{member}: a set of that name was there and is taken over: {changed}"),
            ),
            Outcome::Replaced { was } => Event::warning(
                "Overwritten",
                format!(
                    "{member}: a set of that name was there ({was}) and is deleted without its pods, for its selector \
                     can't be changed"
                ),
            ),
            Outcome::Rejected { message, .. } => Event::warning(
                "CreationRefused",
                format!("{member} refuses the set: {message}"),
            ),
            Outcome::Failed(message) => Event::warning(
                "WriteFailed",
                format!("{member} refuses a change of the set: {message}"),
            ),
            Outcome::PodsLabeled { pods: 0, .. } | Outcome::Pending => return,
            Outcome::PodsLabeled { pods, .. } => Event {
                message: format!("{}: {pods}", done.message),
                ..done.clone()
            },
            Outcome::Conflict(message) | Outcome::Unknown(message) => {
                tracing::debug!(frs = %key, cluster = %member, message, "decided anew");
                return;
            }
        };
        self.record(key, subject, event);
    }

    fn record(&self, key: &SetKey, subject: &Subject, event: Event) {
        tracing::info!(frs = %key, reason = event.reason, "{}", event.message);
        self.recorder.record(subject, event);
    }

    /// F4: the last good layout stays, a condition and an event say what is wrong and where.
    async fn refuse(&self, key: &SetKey, entry: &Entry, errors: &[FieldError]) {
        let message = errors
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("; ");
        let memory = self.memories.recall(key, &entry.object);
        let mut status = FederatedReplicaSetStatus {
            observed_generation: entry.object.metadata.generation,
            observed_preferences_hash: fedrs_api::preferences_hash(&entry.object),
            ..memory.clone()
        };
        check::reject(&mut status, &message, self.clock.now());
        if status != memory {
            let event = Event::warning("Invalid", message);
            self.record(key, &subject(entry), event);
        }
        self.memories.remember(key, status.clone());
        self.publish(key, entry, &status).await;
    }

    /// A call to the host with the deadline of all calls.
    pub(crate) async fn host_call(
        &self,
        call: impl Future<Output = kube::Result<serde_json::Value>>,
    ) -> Result<serde_json::Value, CallError> {
        calls::within(self.config.call_timeout, call).await
    }

    /// All sets are looked at anew (F23).
    pub(crate) fn check_all(&self) {
        for key in self.sets.keys() {
            self.agenda.check(key, Duration::ZERO);
        }
    }
}

impl ChangeHandler for Reconciler {
    /// What a change in a member means for `key` (F20, F22).
    fn on_workload_change(&self, _cluster: &str, key: &SetKey, change: WorkloadChange) {
        let delay = match change {
            WorkloadChange::Drift => Duration::ZERO,
            // Sets and pods come by two watches: whichever shows the replacement last must be looked at (F20).
            WorkloadChange::MoreAvailable | WorkloadChange::Status | WorkloadChange::Pods
                if self.memories.is_moving(key) =>
            {
                Duration::ZERO
            }
            WorkloadChange::PodUnscheduled { since } => {
                let due = check::after(since, self.settings.unscheduled_timeout);
                until(self.clock.now(), due).min(self.config.check_delay)
            }
            WorkloadChange::MoreAvailable | WorkloadChange::Status | WorkloadChange::Pods => {
                self.config.check_delay
            }
        };
        self.agenda.check(key.clone(), delay);
        self.agenda.publish(key.clone());
    }

    fn on_cluster_change(&self, _cluster: &str) {
        self.check_all();
    }
}

/// From `now` until `time`; a bit more than nothing, so that the time has come when the wait is over.
fn until(now: Timestamp, time: Timestamp) -> Duration {
    Duration::try_from(time.duration_since(now)).unwrap_or_default() + Duration::from_millis(1)
}

/// The path of a FederatedReplicaSet.
fn frs_path(key: &SetKey) -> String {
    format!(
        "/apis/fedrs.dev/v1alpha1/namespaces/{}/federatedreplicasets/{}",
        key.namespace, key.name
    )
}

fn subject(entry: &Entry) -> Subject {
    let metadata = &entry.object.metadata;
    Subject {
        api_version: names::API_VERSION,
        kind: "FederatedReplicaSet",
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone().unwrap_or_default(),
        uid: metadata.uid.clone().unwrap_or_default(),
    }
}

/// Logs that a write on the host failed, which is tried again.
fn tell(key: &SetKey, error: &CallError, what: &str) {
    if error.code() == Some(409) {
        // It was changed meanwhile: the watch tells.
        tracing::debug!(frs = %key, %error, "{what}");
    } else {
        tracing::warn!(frs = %key, %error, "{what}");
    }
}

/// Whether what is known of a member is current enough to decide that nothing is left in it.
fn is_current(member: &check::Member) -> bool {
    let answers = member.health == Health::Healthy && member.removed.is_none();
    answers && member.sync == SyncState::Synced && !member.write_pending
}
