//! One pass over a set: decides, publishes what begins, carries out, and reports.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use controller_base::{
    calls::CallError,
    clock::Clock,
    event::Event,
    event_recorder::{EventRecorder, InvolvedObject},
    watchdog::Watched,
};
use fedrs_api::{LocalEventReason, LocalReplicaSetStatus, ValidMigrationPolicy, names};
use jiff::Timestamp;
use kube::Client;
use planted_bugs::{PlantedBug, is_planted};
use replica_set_controller::{
    Action, Change, Created, Life, Plan, Pod, Policy, Request, Requests, Set, Wait, step,
};
use tokio::time::Instant;

use crate::{
    config::LocalControllerConfig,
    disruption::Budgets,
    entry::{Entry, ValidSet},
    events::events,
    execute::{Executed, Executor, Outcome},
    key::SetKey,
    memory::{Memories, Memory},
    migrations::{Migrations, changes_evictions},
    notify::{NotNotified, NotifySettings},
    publish::{Publisher, Unpublished},
    queue::Queue,
    rejected::remember_pod,
    report::{self, Report},
    revisions::Revisions,
    store::{Node, Sent, Snapshot, Store},
};

/// The pause before what could not be read is read again.
const RETRY: Duration = Duration::from_secs(1);
/// How long pods are created for a set that was seen to exist, before it is read again.
const SEEN_FOR: Duration = Duration::from_secs(1);

/// What the workers share.
pub(crate) struct Reconciler {
    pub(crate) client: Client,
    pub(crate) store: Arc<Store>,
    pub(crate) queue: Queue,
    pub(crate) executor: Arc<Executor>,
    pub(crate) publisher: Publisher,
    pub(crate) recorder: EventRecorder,
    pub(crate) clock: Clock,
    pub(crate) config: LocalControllerConfig,
    /// The MigrationPolicy of sets that have none.
    pub(crate) default_policy: Option<Arc<ValidMigrationPolicy>>,
    /// Who is notified of migrations.
    pub(crate) notify: Arc<NotifySettings>,
    pub(crate) memories: Memories,
}

/// When a set is looked at again.
type Next = Option<Duration>;

impl Reconciler {
    /// Reconciles the set `key`. The caller is the only one that does.
    pub(crate) async fn reconcile(&self, key: &SetKey, watched: &Watched) {
        let next = match self.look(key).await {
            Some(Ok(snapshot)) => {
                let mut memory = self.memories.take(key, &snapshot.entry.uid);
                let next = self.pass(&snapshot, &mut memory, watched).await;
                self.memories.put(key, memory);
                next
            }
            Some(Err(Unread)) => Some(RETRY),
            None => {
                self.memories.forget(key);
                self.queue.forget(key);
                None
            }
        };
        if let Some(delay) = next {
            self.queue.add(key.clone(), delay);
        }
    }

    /// The set with what it depends on, once everything is read that the watches have not shown. `None` if it does not exist.
    async fn look(&self, key: &SetKey) -> Option<Result<Snapshot, Unread>> {
        let snapshot = self.store.snapshot(key)?;
        let unanswered = |(uid, sent): (&String, &Sent)| {
            let pod = snapshot.pods.get(uid)?;
            sent.is_unanswered()
                .then(|| (pod.name().to_owned(), uid.clone()))
        };
        let unanswered: Vec<_> = snapshot.sent.iter().filter_map(unanswered).collect();
        if unanswered.is_empty() && snapshot.unknown_nodes.is_empty() {
            return Some(Ok(snapshot));
        }
        let mut is_read = true;
        for (name, uid) in unanswered {
            is_read &= self.executor.refresh(&key.namespace, &name, &uid).await;
        }
        for node in &snapshot.unknown_nodes {
            is_read &= self.executor.refresh_node(node).await;
        }
        if !is_read {
            return Some(Err(Unread));
        }
        Some(Ok(self.store.snapshot(key)?))
    }

    async fn pass(&self, snapshot: &Snapshot, memory: &mut Memory, watched: &Watched) -> Next {
        let entry = &*snapshot.entry;
        // The garbage collector deletes its pods, or releases them (C7).
        if entry.is_deleted {
            return None;
        }
        let previous = match &entry.status {
            Ok(previous) => previous,
            Err(error) => {
                let reason = LocalEventReason::UnreadableStatus;
                self.report_once(entry, memory, reason, error.to_string());
                return None;
            }
        };
        match &entry.valid {
            Ok(valid) => self.step(snapshot, valid, previous, memory, watched).await,
            Err(errors) => {
                let now = self.clock.now();
                let status = report::invalid(entry, previous, errors, now);
                let message = report::invalid_message(errors);
                self.report_once(entry, memory, LocalEventReason::InvalidSpec, message);
                if status == *previous {
                    return None;
                }
                self.publisher
                    .publish(entry, &status, memory)
                    .await
                    .err()
                    .map(|Unpublished| RETRY)
            }
        }
    }

    /// Decides and acts.
    async fn step(
        &self,
        snapshot: &Snapshot,
        valid: &ValidSet,
        previous: &LocalReplicaSetStatus,
        memory: &mut Memory,
        watched: &Watched,
    ) -> Next {
        memory.reported = None;
        let entry = &*snapshot.entry;
        if memory.budget.is_unanswered {
            let read = self.executor.refresh_budget(&valid.set, &mut memory.budget);
            return Some(if read.await { Duration::ZERO } else { RETRY });
        }
        let budgets = Budgets::of(snapshot, valid);
        let disruptions = budgets.disruptions(&valid.set, &memory.budget);
        let default_policy = self.default_policy.as_ref();
        let migrations = Migrations::of(snapshot, default_policy, &self.config.migration);
        let mut pods = facts(snapshot, valid, self.clock.now());
        migrations.add_to(snapshot, &mut pods);
        let Ok(changes) = self.changes(entry, valid, &pods, memory).await else {
            return Some(RETRY);
        };
        memory.observe(&mut pods, snapshot);
        let now = self.clock.now();
        let set = Set {
            migration: migrations.policy(),
            availability_limit: entry.availability_limit(),
            ..Set::new(&valid.set, false, valid.template.hash, &changes)
        };
        let mut recorded = Cow::Borrowed(&previous.record);
        let is_new = memory.written.is_none();
        if is_new && is_planted(PlantedBug::StartedUpdatesForgottenByRestart) {
            recorded.to_mut().begun.clear();
        }
        let known = (&*recorded, &memory.slow_start);
        let plan = step(&set, &pods, &disruptions, known, now);
        (memory.progress).observe(&set, &plan, (previous, entry.generation), now);
        let status = |memory: &Memory| {
            let report = Report {
                entry,
                valid,
                previous,
                set: &set,
                plan: &plan,
                memory,
                overlapping: &snapshot.overlapping,
                other_budget: budgets.other,
                unknown_policy: migrations.unknown_policy(),
                not_notified: self.not_notified(&set),
                now,
            };
            report.status()
        };
        let begins = plan.record != previous.record;
        let states = ((&set, &*pods), (&plan, &previous.record), now);
        if changes_evictions(&previous.record, &plan.record) {
            let of = (entry, &migrations, &mut memory.migrations);
            if (self.executor.write_migrations(of, states, watched)).await {
                return Some(Duration::ZERO);
            }
        }
        if begins {
            let new = status(memory);
            if let Err(Unpublished) = self.publisher.publish(entry, &new, memory).await {
                return Some(RETRY);
            }
        }
        let has_changed_budget = self
            .executor
            .change_budget(
                &valid.set,
                &budgets,
                plan.disruption.change,
                &mut memory.budget,
            )
            .await;
        let may_get_pods = self.may_get_pods(entry, &plan.actions, memory).await;
        let of = (snapshot, valid, &migrations, may_get_pods);
        let executed = self.act(of, &plan, memory, watched).await;
        let has_changed = self.remember(&executed, &plan, set.target, memory);
        for event in events(&executed) {
            self.recorder.record(&involved(entry), event);
        }
        if begins || has_changed || has_changed_budget {
            return Some(Duration::ZERO);
        }
        if plan.disruption.reads_pods {
            let memory = &mut memory.budget;
            let read = (self.executor).read_pods(&valid.set, &snapshot.pods, &disruptions, memory);
            return Some(if read.await { Duration::ZERO } else { RETRY });
        }
        // What a read shows anew has brought the set back into the queue.
        let is_outdated = |executed: &Executed<'_>| matches!(executed.result, Outcome::Outdated);
        let again = (!may_get_pods || executed.iter().any(is_outdated)).then_some(RETRY);
        let of = (entry, &migrations, &mut memory.migrations);
        (self.executor.write_migrations(of, states, watched)).await;
        let report = status(memory);
        let publish = self
            .publisher
            .publish_if_due(entry, previous, &report, memory)
            .await;
        let deadline = memory.progress.deadline(set.progress_deadline);
        let deadline = deadline.filter(|at| *at > now && !is_complete(&report, set.replicas));
        let times = [plan.next, deadline, nodes_evict_at(snapshot, valid, now)];
        self.next_look(times, [publish, again], memory, now)
    }

    /// Why those are not notified of migrations who should be (M8).
    fn not_notified(&self, set: &Set<'_>) -> Option<NotNotified> {
        match set.migration {
            Policy::Is(policy) => self.notify.not_notified(policy),
            _ => None,
        }
    }

    /// How long until the first of these times, and of what failed, or after the first of these delays.
    fn next_look(
        &self,
        times: [Option<Timestamp>; 3],
        delays: [Next; 2],
        memory: &Memory,
        now: Timestamp,
    ) -> Next {
        let times = times.into_iter().chain([memory.next(now)]);
        let time = times.flatten().min();
        let until = time.map(|time| until(self.clock.now(), time));
        let delays = delays.into_iter().flatten().chain(until);
        delays.chain(memory.retry_after()).min()
    }

    /// Carries out what the plan allows: nothing on a pod whose last request has just failed.
    async fn act<'a>(
        &self,
        (snapshot, valid, migrations, may_get_pods): (&Snapshot, &ValidSet, &Migrations, bool),
        plan: &'a Plan<'a>,
        memory: &Memory,
        watched: &Watched,
    ) -> Vec<Executed<'a>> {
        let now = self.clock.now();
        let requests = Requests {
            set: &valid.set,
            template: &valid.template,
            pods: &snapshot.pods,
            shard_label: migrations.shard_label(),
            adds_finalizer: migrations.adds_finalizer(),
            now,
        };
        let permitted = plan.actions.iter().filter(|action| {
            let adds_pod = matches!(action, Action::Adopt { .. } | Action::Create { .. });
            let is_held = action.pod().is_some_and(|pod| memory.holds(pod.uid, now));
            !is_held && (may_get_pods || !adds_pod)
        });
        let requests = with_requests(permitted, &requests);
        self.executor.carry_out(&valid.set, requests, watched).await
    }

    /// How pods of earlier templates get to the current one.
    async fn changes(
        &self,
        entry: &Entry,
        valid: &ValidSet,
        pods: &[Pod<'_>],
        memory: &mut Memory,
    ) -> Result<BTreeMap<u32, Change>, Unread> {
        let revisions = Revisions {
            client: &self.client,
            call_timeout: self.config.call_timeout,
        };
        let in_use: BTreeSet<u32> = pods.iter().filter_map(|pod| pod.revision).collect();
        if let Err(error) = revisions.keep(entry, valid, &in_use, memory).await {
            self.failed_revision(entry, &error);
        }
        let target = valid.template.hash;
        memory.keep_refused(target);
        memory
            .templates
            .retain(|hash, _| *hash == target || in_use.contains(hash));
        let resources = memory.resource_updates(&valid.set.strategy, target);
        let mut changes = BTreeMap::new();
        for hash in in_use.into_iter().filter(|hash| *hash != target) {
            let template = match revisions.template(valid, hash, memory).await {
                Ok(template) => template,
                Err(error) => {
                    self.failed_revision(entry, &error);
                    return Err(Unread);
                }
            };
            let refused = memory.refused_revisions.get(&hash);
            let change = match (template, refused) {
                (None, _) => continue,
                (_, Some(refused)) => Change::Recreate(vec![refused.message.clone()]),
                (Some(template), None) => {
                    Change::between(&template, &valid.template.template, resources)
                }
            };
            changes.insert(hash, change);
        }
        Ok(changes)
    }

    fn failed_revision(&self, entry: &Entry, error: &CallError) {
        tracing::warn!(set = %entry.key, %error, "failed to keep or read a revision");
        let event = Event::warning(LocalEventReason::FailedRevision, error.to_string());
        self.recorder.record(&involved(entry), event);
    }

    /// Whether the actions may add pods to the set, if any does. If it was deleted, and its watch is behind, the garbage collector
    /// would delete each of them.
    async fn may_get_pods(
        &self,
        entry: &Entry,
        actions: &[Action<'_>],
        memory: &mut Memory,
    ) -> bool {
        let was_seen = memory.seen.is_some_and(|at| at.elapsed() < SEEN_FOR);
        let needs_read = actions.iter().any(|action| match action {
            Action::Adopt { .. } => true,
            Action::Create { .. } => !was_seen,
            _ => false,
        });
        if !needs_read {
            return true;
        }
        let exists = self.executor.refresh_set(entry).await;
        memory.seen = exists.then(Instant::now);
        exists
    }

    /// Remembers what became of the requests. Returns whether a pod was changed.
    fn remember(
        &self,
        executed: &[Executed<'_>],
        plan: &Plan<'_>,
        target: u32,
        memory: &mut Memory,
    ) -> bool {
        let now = self.clock.now();
        let is_creation = |wait: &Wait<'_>| matches!(wait, Wait::Creation { .. });
        let mut created = Created {
            has_more: plan.waits.iter().any(is_creation),
            ..Created::default()
        };
        let mut has_changed = false;
        let mut create_failure = None;
        for Executed { action, result } in executed {
            has_changed |= matches!(result, Outcome::Done | Outcome::Taken);
            match (action, action.pod()) {
                (Action::Create { name, .. }, _) => {
                    let of = match result {
                        Outcome::Done | Outcome::Outdated => &mut created.created,
                        Outcome::Taken => &mut created.taken,
                        Outcome::Rejected { message, .. } => {
                            create_failure.get_or_insert(message);
                            &mut created.rejected
                        }
                        Outcome::Unanswered(_) => &mut created.unanswered,
                    };
                    of.push(name.clone());
                }
                (action, Some(pod)) => remember_pod(action, pod, result, target, memory, now),
                (_, None) => {}
            }
        }
        if let Some(message) = create_failure {
            memory.create_failure = Some(message.clone());
        } else if !created.created.is_empty() || plan.account.missing == 0 {
            memory.create_failure = None;
        }
        memory.slow_start.record(created, now);
        has_changed
    }

    /// Records an event once, while its message stays the same.
    fn report_once(
        &self,
        entry: &Entry,
        memory: &mut Memory,
        reason: LocalEventReason,
        message: String,
    ) {
        if memory.reported.as_ref() != Some(&message) {
            memory.reported = Some(message.clone());
            tracing::warn!(set = %entry.key, reason = reason.as_str(), message);
            self.recorder
                .record(&involved(entry), Event::warning(reason, message));
        }
    }
}

/// Something that a decision needs could not be read.
struct Unread;

/// The facts of the pods. One whose removal was requested is being removed, whatever the watch shows so far.
fn facts<'a>(snapshot: &'a Snapshot, valid: &ValidSet, now: Timestamp) -> Vec<Pod<'a>> {
    let node = |name: &str| match snapshot.nodes.get(name) {
        Some(Node::Exists(state)) => Some(state.at(valid.set.node_timeout, now)),
        Some(Node::Gone) | None => None,
    };
    let (set, template) = (&valid.set, &valid.template);
    let all = snapshot.pods.values();
    let labels = all.clone().filter_map(|pod| pod.labels_with_slots(set));
    let slots_in_use = template.slots_of(labels);
    let pods = all.filter_map(|pod| Some((pod, pod.facts(set, node)?)));
    pods.map(|(observed, mut pod)| {
        let is_crowded = |labels| template.is_crowded(labels, &slots_in_use);
        pod.is_crowded = pod.revision == Some(template.hash)
            && pod.is_unschedulable()
            && observed.labels_with_slots(set).is_some_and(is_crowded);
        let sent = snapshot.sent.get(pod.uid);
        if sent.is_some_and(|sent| sent.is_removal()) && pod.life != Life::Terminated {
            pod.life = Life::Terminating { since: None };
        }
        pod
    })
    .collect()
}

/// When the first of the nodes has not been ready for so long that its pods leave it.
fn nodes_evict_at(snapshot: &Snapshot, valid: &ValidSet, now: Timestamp) -> Option<Timestamp> {
    let nodes = snapshot.nodes.values();
    let times = nodes.filter_map(|node| match node {
        Node::Exists(state) => state.evicts_at(valid.set.node_timeout),
        Node::Gone => None,
    });
    times.filter(|at| *at > now).min()
}

/// The actions with their requests. None for a pod that is not known any more.
fn with_requests<'a>(
    actions: impl Iterator<Item = &'a Action<'a>> + Clone,
    requests: &Requests<'_>,
) -> Vec<(&'a Action<'a>, Request)> {
    let of = requests.of(actions.clone());
    let pairs = actions.zip(of);
    pairs
        .filter_map(|(action, request)| Some((action, request?)))
        .collect()
}

fn is_complete(status: &LocalReplicaSetStatus, replicas: usize) -> bool {
    usize::try_from(status.updated_available_replicas) == Ok(replicas)
}

fn involved(entry: &Entry) -> InvolvedObject {
    InvolvedObject {
        api_version: names::API_VERSION,
        kind: "LocalReplicaSet",
        namespace: entry.key.namespace.to_string(),
        name: entry.key.name.to_string(),
        uid: entry.uid.clone(),
    }
}

/// The time from `now` to `time`.
fn until(now: Timestamp, time: Timestamp) -> Duration {
    Duration::try_from(time.duration_since(now)).unwrap_or(Duration::ZERO)
}
