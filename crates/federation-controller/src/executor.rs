//! Carries out in the members what a check decided: each call with a deadline, a few per member at a time.
//!
//! ```text
//! Create    of a Deployment: GET the ReplicaSet of its name, which may have been left behind: hand it over (F29)
//!           POST -> 404 namespace: create it, POST again
//!                -> 409: adopt the existing workload (F29), unless it has another owner
//! Scale     PATCH replicas, conditional on uid, generation and federation; on the resourceVersion as well where
//!           replicas are removed because they do not run
//! Overwrite GET, PATCH spec and labels, conditional on uid, generation and the resourceVersion that was read
//! LabelPods LIST, PATCH each pod without our labels, conditional on its uid (F30)
//! DrainPods LIST, PATCH pods that are removed next, or no longer, conditional on their uid (D2)
//! Rollout   PATCH template and strategy, or the strategy, of a Deployment, conditional as a Scale
//! ```
//!
//! The set decides the kind of the local workload: a ReplicaSet, a Deployment, or a LocalReplicaSet, which is written as a Deployment
//! is. The template of a Deployment that exists is written by a Rollout only, since any difference replaces its pods.
//!
//! The generation counts changes of the spec alone and never decreases: a write that was decided for another
//! spec fails, and the changes of the status during a move do not matter.
//!
//! The response to each write goes into the member's store at once, so that the next check builds on it.

mod adoption;
mod creation;
mod failing_pod;
mod handover;
mod json_patch;
mod live_set;
mod pod_drain;
mod pod_labels;
mod release;
mod replicas;
mod rollout;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use cluster_informer::{DeploymentObject, LocalReplicaSetObject, MemberView, WorkloadState};
use federated_rollout::Action as RolloutAction;
use fedrs_api::{DeletionPolicy, LocalKind, WorkloadKey};
use kube::Client;
use serde::Serialize;
use tokio::{
    sync::{Semaphore, SemaphorePermit, oneshot},
    time::{Instant, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    json_patch::JsonPatch,
    live_set::{LiveSet, Over},
};
use crate::{
    check::{Action, DesiredHashes, Outcome, Outcomes, Precondition, SetChange},
    config::NamespacesConfig,
    frs_store::Entry,
    host_namespaces::HostNamespaces,
    manifest::{Source, Workload},
    metrics::Metrics,
};
use controller_base::{
    calls::{self, CallError},
    event::Event,
};

/// Where writes to one member go. Cheap to clone.
#[derive(Clone)]
pub(crate) struct MemberAccess {
    pub(crate) name: Arc<str>,
    pub(crate) client: Client,
    pub(crate) store: Arc<dyn MemberView>,
    pub(crate) slots: Slots,
}

/// The slots for writes to one member: few are sent at a time.
#[derive(Clone)]
pub(crate) struct Slots {
    writes: Arc<Semaphore>,
    /// Some of them: deletions that hang leave the others to repairs.
    deletions: Arc<Semaphore>,
}

impl Slots {
    /// So many slots.
    pub(crate) fn new(count: u32) -> Self {
        let semaphore = |count: u32| Arc::new(Semaphore::new(count as usize));
        Self {
            writes: semaphore(count),
            deletions: semaphore(count.div_ceil(4)),
        }
    }

    /// Waits for a slot.
    async fn of_write(&self) -> SemaphorePermit<'_> {
        let slot = self.writes.acquire().await;
        slot.expect("the permits are never closed")
    }

    /// Waits for a slot that a deletion may use.
    async fn of_deletion(&self) -> [SemaphorePermit<'_>; 2] {
        let slot = self.deletions.acquire().await;
        let slot = slot.expect("the permits are never closed");
        [slot, self.of_write().await]
    }
}

/// What all writes share.
#[derive(Clone)]
pub(crate) struct Executor {
    pub(crate) federation: Arc<str>,
    pub(crate) call_timeout: Duration,
    pub(crate) namespaces: NamespacesConfig,
    pub(crate) host_namespaces: Arc<HostNamespaces>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) tasks: TaskTracker,
    pub(crate) cancel: CancellationToken,
}

/// The outcome of an action that arrived after the wait for it had ended.
#[derive(Clone, Debug)]
pub(crate) struct LateOutcome {
    pub(crate) member: String,
    pub(crate) outcome: Outcome,
    /// The event to record if the action was carried out.
    pub(crate) event: Event,
    pub(crate) is_news: bool,
    /// What was written.
    pub(crate) desired: DesiredHashes,
}

/// How long a reconciliation waits for the members' answers. Healthy members take milliseconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// The local workload of one federated set in one member, which may exist. Its kind is that of the key.
#[derive(Clone, Copy)]
struct LocalWorkload<'a> {
    executor: &'a Executor,
    member: &'a MemberAccess,
    key: &'a WorkloadKey,
}

impl Executor {
    /// Carries out `actions` in all members at once, and waits a little for the responses: a member that takes longer delays no
    /// other member, and its outcome goes to `late`.
    pub(crate) async fn carry_out(
        &self,
        entry: &Arc<Entry>,
        actions: &[Action],
        access: impl Fn(&str) -> Option<MemberAccess>,
        late: Arc<dyn Fn(LateOutcome) + Send + Sync>,
    ) -> Outcomes {
        let deadline = Instant::now() + ANSWER_TIMEOUT;
        let calls: Vec<_> = actions
            .iter()
            .filter_map(|action| {
                let access = access(&action.member)?;
                let call = self.begin(entry, action, access, Arc::clone(&late));
                Some((action.member.clone(), call))
            })
            .collect();
        let mut outcomes = Outcomes::new();
        for (member, mut answer) in calls {
            let outcome = if let Ok(outcome) = timeout_at(deadline, &mut answer).await {
                outcome.ok()
            } else {
                // From here on the answer goes to `late`, unless it has just come.
                answer.close();
                answer.try_recv().ok()
            };
            outcomes.insert(member, outcome.unwrap_or(Outcome::Pending));
        }
        outcomes
    }

    /// Starts one action.
    fn begin(
        &self,
        entry: &Arc<Entry>,
        action: &Action,
        access: MemberAccess,
        late: Arc<dyn Fn(LateOutcome) + Send + Sync>,
    ) -> oneshot::Receiver<Outcome> {
        let (answer, answered) = oneshot::channel();
        let (this, entry, action) = (self.clone(), Arc::clone(entry), action.clone());
        let cancel = self.cancel.clone();
        let latest = Instant::now() + self.call_timeout;
        self.tasks.spawn(async move {
            let Ok(frs) = &entry.valid else { return };
            let act = async {
                let _slot = access.slots.of_write().await;
                // A decision of so long ago may be wrong by now: a member that hung must not get many of them at once.
                if Instant::now() > latest {
                    return Outcome::Conflict("timed out waiting for a write slot".to_owned());
                }
                let set = LocalWorkload {
                    executor: &this,
                    member: &access,
                    key: &frs.workload_key(),
                };
                let source = Source {
                    frs,
                    deployment: entry.deployment(),
                    federation: &this.federation,
                };
                set.act(&source, &action).await
            };
            let Some(outcome) = cancel.run_until_cancelled(act).await else {
                return;
            };
            if let Err(outcome) = answer.send(outcome) {
                let desired = entry.desired;
                late(LateOutcome {
                    member: action.member,
                    outcome,
                    event: action.event,
                    is_news: action.is_news,
                    desired,
                });
            }
        });
        answered
    }

    /// Releases or deletes the local workload of a federated set that is being deleted (F5).
    pub(crate) async fn release_or_delete(
        &self,
        key: &WorkloadKey,
        member: &MemberAccess,
        uid: &str,
        policy: DeletionPolicy,
    ) -> Result<(), CallError> {
        let _slot = member.slots.of_deletion().await;
        let set = LocalWorkload {
            executor: self,
            member,
            key,
        };
        set.release_or_delete(uid, policy).await
    }
}

impl LocalWorkload<'_> {
    async fn act(self, source: &Source<'_>, action: &Action) -> Outcome {
        // Read before the write, which changes the managed fields.
        let by = if action.repairs {
            let live = self.get().await;
            live.ok().and_then(|live| live.metadata.last_writer.0)
        } else {
            None
        };
        let change = &action.change;
        let done = match change {
            SetChange::Create { replicas, .. } => Ok(self.create(source, *replicas).await),
            SetChange::Scale { seen, from, to } => {
                let done = self.scale(seen, *from, *to).await;
                self.forget_if_absent(seen, done)
            }
            SetChange::Overwrite {
                seen,
                replicas,
                keeps_pause,
                ..
            } => {
                let over = Over::Own {
                    keeps_pause: *keeps_pause,
                };
                let done = self.overwrite(source, seen, *replicas, over).await;
                self.forget_if_absent(seen, done)
            }
            SetChange::LabelPods { seen } => {
                let labeled = self.label_pods(source, &seen.uid, seen.spec_version);
                Box::pin(labeled).await
            }
            SetChange::DrainPods { seen, pods, since } => {
                Box::pin(self.drain_pods(source, seen, (*pods, *since))).await
            }
            SetChange::Rollout { seen, action } => {
                let done = Box::pin(self.roll_out(source, seen, *action)).await;
                self.forget_if_absent(seen, done)
            }
        };
        let writes_template = self.writes_template(change);
        let done = done.unwrap_or_else(|error| match change {
            SetChange::Overwrite { .. } | SetChange::Rollout { .. } if writes_template => {
                failed_template(&error)
            }
            _ => failed_write(&error),
        });
        match done {
            Outcome::Written(set) if !writes_template => match change {
                SetChange::Overwrite { .. } => Outcome::Configured { set, by },
                _ => Outcome::Scaled { set, by },
            },
            Outcome::Written(set) if action.repairs => Outcome::Repaired { set, by },
            outcome => outcome,
        }
    }

    /// Whether the workload has the desired template after `change`.
    fn writes_template(self, change: &SetChange) -> bool {
        match change {
            SetChange::Create { .. } => true,
            SetChange::Overwrite { .. } => self.key.kind == LocalKind::ReplicaSet,
            SetChange::Rollout { action, .. } => matches!(action, RolloutAction::Roll(_)),
            SetChange::Scale { .. } | SetChange::LabelPods { .. } | SetChange::DrainPods { .. } => {
                false
            }
        }
    }

    /// Has the next check see no workload if a change did not find the one that was seen: a member whose watch lost the
    /// deletion would show it for ever.
    fn forget_if_absent(
        self,
        seen: &Precondition,
        done: Result<Outcome, CallError>,
    ) -> Result<Outcome, CallError> {
        if let Err(error) = &done
            && error.code() == Some(404)
        {
            self.member.store.observe_absence(self.key, &seen.uid);
        }
        done
    }

    /// Changes the workload by a JSON patch that begins with tests.
    async fn patch(self, verb: &'static str, patch: &JsonPatch<'_>) -> Result<Outcome, CallError> {
        match self
            .write(verb, calls::JSON_PATCH, &self.path(), patch)
            .await
        {
            // The API server doesn't say which of the tests failed.
            Err(error) if error.is_failed_test() => Ok(self.changed_meanwhile()),
            answer => answer,
        }
    }

    /// The owner of the workload `live`, if it isn't ours: the workload must not be written or deleted then (F29, F40).
    fn foreign_owner(self, live: &LiveSet) -> Option<String> {
        live.foreign_owner(&self.executor.federation)
    }

    /// The object that fedrs writes.
    fn desired<'a>(self, source: &Source<'a>, replicas: u32) -> Workload<'a>
    where
        Self: 'a,
    {
        Workload::of(source, &self.member.name, replicas)
    }

    fn path(self) -> String {
        format!("{}/{}", self.collection(), self.key.name)
    }

    fn collection(self) -> String {
        self.collection_of(self.key.kind)
    }

    /// The path of the local workloads of a kind.
    fn collection_of(self, kind: LocalKind) -> String {
        let (version, resource) = (kind.api_version(), kind.resource());
        format!(
            "/apis/{version}/namespaces/{}/{resource}",
            self.key.namespace
        )
    }

    async fn get(self) -> Result<LiveSet, CallError> {
        self.call("get", calls::get(&self.member.client, &self.path()))
            .await
    }

    /// Waits for `call` until its deadline, and measures it.
    async fn call<T>(
        self,
        verb: &'static str,
        call: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, CallError> {
        let started = Instant::now();
        let answer = calls::within(self.executor.call_timeout, call).await;
        let (metrics, error) = (&self.executor.metrics, answer.as_ref().err());
        metrics.called(&self.member.name, verb, error, started.elapsed());
        answer
    }

    /// Writes the workload, and puts the response into the member's store.
    async fn write(
        self,
        verb: &'static str,
        method: calls::Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<Outcome, CallError> {
        let client = &self.member.client;
        let set = match self.key.kind {
            LocalKind::ReplicaSet => {
                let call = calls::write::<WorkloadState>(client, method, path, body);
                self.call(verb, call).await?
            }
            LocalKind::Deployment => {
                let call = calls::write::<DeploymentObject>(client, method, path, body);
                self.call(verb, call).await?.into()
            }
            LocalKind::LocalReplicaSet => {
                let call = calls::write::<LocalReplicaSetObject>(client, method, path, body);
                self.call(verb, call).await?.into()
            }
        };
        self.member.store.observe_write(set.clone());
        Ok(Outcome::Written(set))
    }

    fn changed_meanwhile(self) -> Outcome {
        Outcome::Conflict(format!("the {} has changed", self.kind()))
    }

    /// The kind of the workload.
    fn kind(self) -> &'static str {
        self.key.kind.as_str()
    }
}

/// The outcome of a failed write of an existing workload. Only a rejection says for sure that nothing was written.
fn failed_write(error: &CallError) -> Outcome {
    match error.code() {
        Some(404 | 409) => Outcome::Conflict(error.to_string()),
        Some(400..500) => Outcome::Failed(error.to_string()),
        _ => Outcome::Unknown(error.to_string()),
    }
}

/// The outcome of a failed write of an existing workload with its template.
fn failed_template(error: &CallError) -> Outcome {
    // Validation or admission rejects the whole object: its replicas alone may be accepted.
    if matches!(error.code(), Some(400 | 403 | 413 | 422)) {
        return Outcome::TemplateRejected {
            message: error.to_string(),
            creates: false,
        };
    }
    match failed_write(error) {
        Outcome::Unknown(message) => Outcome::TemplateUnknown(message),
        outcome => outcome,
    }
}
