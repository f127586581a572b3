//! Reconciles one federated set, by one worker at a time (F25).
//!
//! ```text
//! being deleted -> release or delete its local ReplicaSets, then remove the finalizer (F5)
//! invalid       -> report it, change nothing in the members (F4)
//! else          -> finalizer, snapshot -> check -> carry out -> cache -> status -> next check
//! ```

mod cache;
mod deletion;
mod failed_attempts;
mod host_write;
mod interim;
mod outcome_event;
mod record_rate;
mod revisions;
mod status;
mod triggers;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use cluster_informer::{Health, SyncState};
use dashmap::DashSet;
use fedrs_api::{
    EventReason, FederatedReplicaSetStatus, LocalKind, ObjectKey, SetKind, TimeLimit, ValidFrs,
    WorkloadKey, finalizers, names, revision_name,
};
use futures::future::join;
use jiff::Timestamp;
use kube::Client;
use tokio::{sync::Semaphore, time::Instant};

pub(crate) use self::cache::ReconcileCache;
use self::cache::Written;
use self::{
    failed_attempts::RETRY,
    outcome_event::{at_once, outcome_event},
};
use crate::{
    check::{self, Outcome, Outcomes, RolloutRecord, RolloutSnapshot, Snapshot, StatusRefresh},
    config::Config,
    executor::{Executor, LateOutcome},
    frs_store::{Entry, FrsStore},
    local_kind::set_collection,
    members::Registry,
    metrics::Metrics,
    reconcile_queue::{ReconcileQueue, ReconcileWork},
};
use controller_base::{
    calls::{self, CallError},
    clock::Clock,
    event::{Event, EventType},
    event_recorder::{EventRecorder, InvolvedObject},
    finalizer,
};

/// Failed writes in a row after which one more conflict shows that the view of a member may be wrong.
const CONTRADICTIONS: i32 = 4;

/// What the workers share.
pub(crate) struct Reconciler {
    pub(crate) host: Client,
    pub(crate) sets: Arc<FrsStore>,
    pub(crate) members: Arc<Registry>,
    pub(crate) queue: ReconcileQueue,
    pub(crate) executor: Executor,
    pub(crate) recorder: EventRecorder,
    pub(crate) clock: Clock,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) config: Config,
    pub(crate) cache: Arc<ReconcileCache>,
    /// The objects that are being deleted, each by a task of its own.
    pub(crate) deletions: DashSet<ObjectKey>,
    /// Bounds the concurrent writes of these tasks to the host.
    pub(crate) deletion_writes: Semaphore,
    /// Until when no replica that runs is removed.
    pub(crate) keeps_running_until: Option<Instant>,
}

impl Reconciler {
    /// Does `work` for `key`.
    pub(crate) async fn reconcile(self: &Arc<Self>, key: &ObjectKey, work: ReconcileWork) {
        let Some(entry) = self.sets.get(key) else {
            self.forget(key);
            return;
        };
        if entry.federation != self.config.federation {
            return;
        }
        if let Some(policy) = entry.deletion_policy
            && entry.metadata.deletion_timestamp.is_some()
        {
            self.start_deletion(key, &entry, policy);
            return;
        }
        // Its record of what is lent would be lost, and then lent again.
        if let Some(error) = entry.status_error.as_ref()
            && key.kind == SetKind::FederatedDeployment
        {
            let message =
                format!("nothing is changed: this version of fedrs can't read status: {error}");
            let event = Event::warning(EventReason::UnreadableStatus, message);
            return self.record(key, &entry, event);
        }
        let template = entry.template;
        let frs = match &entry.valid {
            Ok(frs) => frs,
            Err(errors) => return self.reject(key, &entry, errors).await,
        };
        // F39: the outage is that of the controller's own connection. The first answer of a member causes a check.
        if self.members.is_disconnected() {
            return;
        }
        let is_check = work == ReconcileWork::Check;
        if is_check && !self.ensure_finalizer(key, &entry).await {
            return;
        }
        if is_check {
            self.keep_revision(key, &entry, frs).await;
        }
        let recorded = self.recorded_rollout(key, &entry);
        let entry = self.rolled_out(key, &entry, &recorded).await;
        let spec_revision = revision_name(&key.name, template);
        if let Ok(frs) = &entry.valid {
            self.check(key, &entry, frs, (&recorded, &spec_revision), work)
                .await;
        }
    }

    /// Adds the finalizer, unless it is there: without it the object could disappear before its local ReplicaSets are
    /// released (F5). Returns whether the object has it.
    async fn ensure_finalizer(&self, key: &ObjectKey, entry: &Entry) -> bool {
        let metadata = &entry.metadata;
        let has_finalizer =
            || (self.cache).of_object(key, entry, |cached| cached.has_finalizer(metadata));
        if finalizer::is_present(metadata, finalizers::MEMBERS) || has_finalizer() {
            return true;
        }
        if !self.may_write_host(key) {
            return false;
        }
        let patch = finalizer::addition(metadata, finalizers::MEMBERS);
        let path = frs_path(key);
        let call = calls::merge_patch(&self.host, &path, &patch);
        let answer = self.host_call(call).await;
        match &answer {
            // The watch shows the finalizer later; the check does not wait for it.
            Ok(answer) => {
                let version = cache::version_of(answer);
                (self.cache).of_object(key, entry, |cached| cached.put_finalizer(version));
            }
            Err(error) => self.retry_host_write(key, entry, error, "failed to add the finalizer"),
        }
        answer.is_ok()
    }

    /// Forgets an object that is gone, or that the controller no longer holds.
    fn forget(&self, key: &ObjectKey) {
        self.cache.forget(key);
        self.queue.forget(key);
    }

    async fn check(
        self: &Arc<Self>,
        key: &ObjectKey,
        entry: &Arc<Entry>,
        frs: &ValidFrs,
        (recorded, spec_revision): (&RolloutRecord, &str),
        work: ReconcileWork,
    ) {
        let now = self.clock.now();
        let grace_period = frs.rescheduling.lost_grace_period;
        let (previous, members) = self.look(key, entry, grace_period, now);
        let settings = self.config.of_set(&frs.rescheduling);
        let revision = revision_name(&key.name, entry.template);
        let mut snapshot = Snapshot {
            frs,
            desired: entry.desired,
            template_hash: entry.template,
            rollout: entry.rollout.as_deref().map(|settings| RolloutSnapshot {
                settings,
                revision: &revision,
                recorded,
                spec_revision,
                limit: entry.rollout_limit(),
                failing_pod: None,
            }),
            previous: &previous,
            members: &members,
            overlapping: &self.sets.overlapping(key),
            keeps_running_until: self.keeps_running_until(now),
            settings: &settings,
        };
        if work == ReconcileWork::StatusOnly {
            let refresh = || check::refresh_status(&snapshot, now);
            let refreshed = self.metrics.time("check", refresh);
            return self.report(key, entry, refreshed).await;
        }
        let mut decided = self.metrics.time("check", || check::check(&snapshot, now));
        let failing_pod = self.failing_pod(key, entry, &decided.status).await;
        if failing_pod.is_some()
            && let Some(rollout) = &mut snapshot.rollout
        {
            rollout.failing_pod = failing_pod.as_deref();
            decided = self.metrics.time("check", || check::check(&snapshot, now));
        }
        let refresh = StatusRefresh {
            status: decided.status,
            events: decided.events,
            moving: decided.moving,
        };
        self.confirm_watches(&key.workload(entry.local), &decided.unconfirmed);
        // Stored before the writes: a watch may show the effect of a write before the write returns.
        let status = self.record_decision(key, entry, refresh);
        let mut actions = decided.actions;
        let lends = (self.cache).of_key(key, |cached| cached.is_new_record(entry, &status));
        if !self.announce(key, entry, &status, &actions).await {
            actions.retain(|action| !action.change.creates());
        } else if lends {
            // What was recorded may be used now.
            (self.cache).of_key(key, |cached| cached.records.add(Instant::now()));
            self.queue.add_check(key.clone(), Duration::ZERO);
        }
        let (earlier, latest): (Vec<_>, Vec<_>) =
            (actions.into_iter()).partition(|action| action.change.earlier_revision().is_some());
        let started = Instant::now();
        let (mut outcomes, (created, desired)) = join(
            self.carry_out(key, entry, &latest),
            self.create_earlier(key, entry, frs, &earlier),
        )
        .await;
        self.metrics.spent("carry out", started);
        let now = self.clock.now();
        let status = check::with_outcomes(status, &created, desired, now, &self.config);
        let status = check::with_outcomes(status, &outcomes, entry.desired, now, &self.config);
        outcomes.extend(created);
        let events = latest.iter().chain(&earlier).filter_map(|action| {
            let outcome = outcomes.get(&action.member)?;
            event_of(
                (key, entry.local),
                &action.member,
                (&action.event, action.is_news),
                outcome,
            )
        });
        for event in at_once(events) {
            self.record(key, entry, event);
        }
        self.relist_contradicted(&key.workload(entry.local), &status, &outcomes);
        self.put_and_publish(key, entry, status, work).await;
        if outcomes.values().any(Outcome::needs_retry) {
            self.queue.add_check(key.clone(), RETRY);
        }
        if let Some(time) = decided.next_check {
            self.queue.add_check(key.clone(), until(now, time));
        }
    }

    /// Asks for the proof that the watches of these members' workloads work: the check lacks nothing else.
    fn confirm_watches(&self, key: &WorkloadKey, members: &[String]) {
        for access in members.iter().filter_map(|name| self.members.access(name)) {
            access.store.confirm_workloads(key);
        }
    }

    /// Lists the members again whose views conflict with their responses again and again: no event may ever correct what a
    /// member, or a proxy, once reported wrongly.
    fn relist_contradicted(
        &self,
        key: &WorkloadKey,
        status: &FederatedReplicaSetStatus,
        outcomes: &Outcomes,
    ) {
        for cluster in &status.clusters {
            let conflicts = matches!(outcomes.get(&cluster.name), Some(Outcome::Conflict(_)));
            let failures = cluster.internal.writes.write_failures;
            if conflicts
                && failures >= CONTRADICTIONS
                && failures.count_ones() == 1
                && let Some(access) = self.members.access(&cluster.name)
            {
                tracing::info!(frs = %key, cluster = cluster.name, failures, "listed again: writes conflict with the view");
                access.store.relist(key);
            }
        }
    }

    /// The previous status, with the outcomes that came late, and the members.
    fn look(
        &self,
        key: &ObjectKey,
        entry: &Entry,
        grace_period: Option<TimeLimit>,
        now: Timestamp,
    ) -> (FederatedReplicaSetStatus, Vec<check::Member>) {
        let (previous, (arrived, pending)) = (self.cache).of_object(key, entry, |cached| {
            (Arc::clone(&cached.status), cached.take_late())
        });
        let mut previous = Arc::unwrap_or_clone(previous);
        check::bound_times(&mut previous.clusters, now, &self.config);
        for late in arrived {
            if let Some(event) = event_of(
                (key, entry.local),
                &late.member,
                (&late.event, late.is_news),
                &late.outcome,
            ) {
                self.record(key, entry, event);
            }
            let outcomes = Outcomes::from([(late.member, late.outcome)]);
            previous = check::with_outcomes(previous, &outcomes, late.desired, now, &self.config);
        }
        let key = key.workload(entry.local);
        (
            previous,
            self.snapshot_members(&key, &pending, grace_period),
        )
    }

    /// What is lent to members, as far as the host has recorded it.
    fn recorded_rollout(&self, key: &ObjectKey, entry: &Entry) -> RolloutRecord {
        (self.cache).of_object(key, entry, |cached| cached.recorded_rollout(entry))
    }

    /// Until when no replica that runs is removed, if that is after `now`.
    fn keeps_running_until(&self, now: Timestamp) -> Option<Timestamp> {
        let left = self
            .keeps_running_until?
            .checked_duration_since(Instant::now())?;
        (!left.is_zero()).then(|| check::after(now, left))
    }

    /// All members; those in `pending` have not answered a write. `grace_period` overrides their own.
    fn snapshot_members(
        &self,
        key: &WorkloadKey,
        pending: &BTreeSet<String>,
        grace_period: Option<TimeLimit>,
    ) -> Vec<check::Member> {
        let snapshot = || self.members.snapshot(key, grace_period);
        let mut members = self.metrics.time("snapshot", snapshot);
        for member in &mut members {
            member.write_pending = pending.contains(&member.name);
        }
        members
    }

    /// Carries out `actions`. A response that takes long causes a check when it arrives.
    async fn carry_out(
        self: &Arc<Self>,
        key: &ObjectKey,
        entry: &Arc<Entry>,
        actions: &[check::Action],
    ) -> Outcomes {
        let late = {
            let (this, key) = (Arc::downgrade(self), key.clone());
            move |outcome: LateOutcome| {
                if let Some(this) = this.upgrade() {
                    this.cache.of_key(&key, |cached| {
                        cached.pending.insert(outcome.member.clone(), Some(outcome));
                    });
                    this.queue.add_check(key.clone(), Duration::ZERO);
                }
            }
        };
        let access = |name: &str| self.members.access(name);
        let outcomes = self
            .executor
            .carry_out(entry, actions, access, Arc::new(late))
            .await;
        let pending = outcomes
            .iter()
            .filter(|(_, outcome)| **outcome == Outcome::Pending);
        self.cache.of_key(key, |cached| {
            for (member, _) in pending {
                // The outcome may have arrived since the wait ended.
                cached.pending.entry(member.clone()).or_insert(None);
            }
        });
        outcomes
    }

    fn record(&self, key: &ObjectKey, entry: &Entry, event: Event) {
        let (frs, reason, message) = (key, event.reason, &event.message);
        match event.type_ {
            EventType::Normal => tracing::info!(%frs, reason, "{message}"),
            EventType::Warning => tracing::warn!(%frs, reason, "{message}"),
        }
        self.recorder.record(&involved_object(key, entry), event);
    }

    /// A call to the host with the deadline of all calls.
    pub(crate) async fn host_call(
        &self,
        call: impl Future<Output = kube::Result<Written>>,
    ) -> Result<Written, CallError> {
        calls::within(self.config.call_timeout, call).await
    }
}

/// The event of the outcome of an action on a `local` workload of `key` in `cluster`; `done` is the event if the action was carried out.
fn event_of(
    (key, local): (&ObjectKey, LocalKind),
    cluster: &str,
    (done, is_news): (&Event, bool),
    outcome: &Outcome,
) -> Option<Event> {
    if let Outcome::Conflict(message)
    | Outcome::Unknown(message)
    | Outcome::TemplateUnknown(message) = outcome
    {
        tracing::debug!(frs = %key, cluster, message, "write not carried out, decided again");
    }
    let event = outcome_event(local, cluster, done, outcome)?;
    if !is_news && event == *done {
        tracing::debug!(frs = %key, cluster, "{}", event.message);
        return None;
    }
    Some(event)
}

/// The duration from `now` until `time`, rounded up: a wait must not end before `time`.
fn until(now: Timestamp, time: Timestamp) -> Duration {
    Duration::try_from(time.duration_since(now)).unwrap_or_default() + Duration::from_millis(1)
}

/// The path of a federated set.
fn frs_path(key: &ObjectKey) -> String {
    let collection = set_collection(key.kind, Some(&key.namespace));
    format!("{collection}/{}", key.name)
}

fn involved_object(key: &ObjectKey, entry: &Entry) -> InvolvedObject {
    let metadata = &entry.metadata;
    InvolvedObject {
        api_version: names::API_VERSION,
        kind: key.kind.as_str(),
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone().unwrap_or_default(),
        uid: metadata.uid.clone().unwrap_or_default(),
    }
}

/// Whether the view of a member is current enough to decide that the member has no local ReplicaSet.
fn is_current(member: &check::Member) -> bool {
    let answers = member.health == Health::Healthy && member.removed.is_none();
    answers && member.sync == SyncState::Synced && !member.write_pending
}
