//! Carries out in the members what a check decided: each call with a deadline, a few per member at a time.
//!
//! ```text
//! Create    POST -> 404 namespace: create it, POST again
//!                -> 409: adopt the existing ReplicaSet (F29), unless it has another owner
//! Scale     PATCH replicas, conditional on uid, generation and federation; on the resourceVersion as well where
//!           replicas are removed because they do not run
//! Overwrite GET, PATCH spec and labels, conditional on uid, generation and the resourceVersion that was read
//! LabelPods LIST, PATCH each pod without our labels, conditional on its uid (F30)
//! ```
//!
//! The generation counts changes of the spec alone and never decreases: a write that was decided for another
//! spec fails, and the changes of the status during a move do not matter.
//!
//! The response to each write goes into the member's store at once, so that the next check builds on it.

mod adoption;
mod live_set;
mod pod_labels;
mod release;

use std::{sync::Arc, time::Duration};

use cluster_informer::{MemberView, WorkloadState};
use fedrs_api::{DeletionPolicy, ObjectKey, RejectionKind, ValidFrs, labels};
use kube::Client;
use planted_bugs::{PlantedBug, is_planted};
use serde::{Serialize, de::IgnoredAny};
use serde_json::{Value, json};
use tokio::{
    sync::{Semaphore, SemaphorePermit, oneshot},
    time::{Instant, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::live_set::LiveSet;
use crate::{
    calls::{self, CallError},
    check::{Action, Outcome, Outcomes, Precondition, SetChange},
    config::NamespacesConfig,
    event::Event,
    frs_store::Entry,
    host_namespaces::HostNamespaces,
    manifest::ReplicaSet,
    messages,
    metrics::Metrics,
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
    /// The spec that was written.
    pub(crate) desired_spec_hash: u64,
}

/// How long a reconciliation waits for the members' answers. Healthy members take milliseconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// The local ReplicaSet of one FederatedReplicaSet in one member, which may exist.
#[derive(Clone, Copy)]
struct LocalWorkload<'a> {
    executor: &'a Executor,
    member: &'a MemberAccess,
    key: &'a ObjectKey,
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
                    key: &frs.key,
                };
                set.act(frs, &action).await
            };
            let Some(outcome) = cancel.run_until_cancelled(act).await else {
                return;
            };
            if let Err(outcome) = answer.send(outcome) {
                let desired_spec_hash = entry.desired_spec_hash;
                late(LateOutcome {
                    member: action.member,
                    outcome,
                    event: action.event,
                    desired_spec_hash,
                });
            }
        });
        answered
    }

    /// Releases or deletes the local ReplicaSet of a FederatedReplicaSet that is being deleted (F5).
    pub(crate) async fn release_or_delete(
        &self,
        key: &ObjectKey,
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
    async fn act(self, frs: &ValidFrs, action: &Action) -> Outcome {
        // Read before the write, which changes the managed fields.
        let by = if action.repairs {
            let live = self.get().await;
            live.ok().and_then(|live| live.metadata.last_writer.0)
        } else {
            None
        };
        let done = match &action.change {
            SetChange::Create { replicas } => Ok(self.create(frs, *replicas).await),
            SetChange::Scale { seen, from, to } => {
                let done = self.scale(seen, *from, *to).await;
                self.forget_if_absent(seen, &done);
                done
            }
            SetChange::Overwrite { seen, replicas, .. } => {
                let done = self.overwrite(frs, seen, *replicas).await;
                self.forget_if_absent(seen, &done);
                match done {
                    Err(error) if rejects_object(&error) => Ok(Outcome::TemplateRejected {
                        message: error.to_string(),
                        creates: false,
                    }),
                    Err(error) => Ok(match failed_write(&error) {
                        Outcome::Unknown(message) => Outcome::TemplateUnknown(message),
                        outcome => outcome,
                    }),
                    done => done,
                }
            }
            SetChange::LabelPods { seen } => self.label_pods(frs, &seen.uid, seen.generation).await,
        };
        match done.unwrap_or_else(|error| failed_write(&error)) {
            Outcome::Written(set) if matches!(action.change, SetChange::Scale { .. }) => {
                Outcome::Scaled { set, by }
            }
            Outcome::Written(set) if action.repairs => Outcome::Repaired { set, by },
            outcome => outcome,
        }
    }

    /// Has the next check see no ReplicaSet if a change did not find the one that was seen: a member whose watch lost the
    /// deletion would show it for ever.
    fn forget_if_absent(self, seen: &Precondition, done: &Result<Outcome, CallError>) {
        if let Err(error) = done
            && error.code() == Some(404)
        {
            self.member.store.observe_absence(self.key, &seen.uid);
        }
    }

    /// Sets the replicas of the ReplicaSet that was seen, unless its spec or its owner has changed since.
    async fn scale(self, seen: &Precondition, from: u32, to: u32) -> Result<Outcome, CallError> {
        let label = labels::FEDERATION.replace('/', "~1");
        let mut expected = vec![
            ("/metadata/uid".to_owned(), json!(seen.uid)),
            ("/metadata/generation".to_owned(), json!(seen.generation)),
            ("/spec/replicas".to_owned(), json!(from)),
            (
                format!("/metadata/labels/{label}"),
                json!(*self.executor.federation),
            ),
        ];
        if !seen.has_owners {
            // Passes only if the field is absent.
            expected.push(("/metadata/ownerReferences".to_owned(), Value::Null));
        }
        if let Some(version) = &seen.resource_version {
            expected.push(("/metadata/resourceVersion".to_owned(), json!(version)));
        }
        let tests = expected
            .into_iter()
            .map(|(path, value)| json!({ "op": "test", "path": path, "value": value }));
        let replace = json!({ "op": "replace", "path": "/spec/replicas", "value": to });
        let patch: Value = tests.chain([replace]).collect();
        let write = Box::pin(self.patch("scale", &patch));
        self.change_replicas(seen, to, write).await
    }

    /// Changes the set by a JSON patch that begins with tests.
    async fn patch(self, verb: &'static str, patch: &impl Serialize) -> Result<Outcome, CallError> {
        let path = self.path();
        let call = calls::json_patch(&self.member.client, &path, patch);
        match self.written(verb, call).await {
            // The API server doesn't say which of the tests failed.
            Err(error) if error.is_failed_test() => Ok(changed_meanwhile()),
            answer => answer,
        }
    }

    /// Creates the set. Every error counts as a rejection (F28).
    async fn create(self, frs: &ValidFrs, replicas: u32) -> Outcome {
        let object = self.desired(frs, replicas);
        let error = match self.post(&object).await {
            Ok(outcome) => return outcome,
            Err(error) => error,
        };
        let retried = match error.code() {
            // The member rejects the credentials and not the set: the probe will show that as well.
            Some(401) => return failed_write(&error),
            Some(404) => match self.create_namespace().await {
                Ok(()) => self.post(&object).await,
                Err(error) => Err(error),
            },
            Some(409) => return self.adopt(frs, replicas).await,
            _ => Err(error),
        };
        retried.unwrap_or_else(|error| match error.code() {
            // A 403 may be about the namespace, or the credentials.
            Some(400 | 413 | 422) => Outcome::TemplateRejected {
                message: error.to_string(),
                creates: true,
            },
            _ => Outcome::Rejected {
                kind: RejectionKind::Rejected,
                message: error.to_string(),
            },
        })
    }

    async fn create_namespace(self) -> Result<(), CallError> {
        let name = &*self.key.namespace;
        let Executor {
            namespaces,
            host_namespaces,
            ..
        } = self.executor;
        if !namespaces.create {
            return Err(CallError::NotSent(messages::namespace_not_created(name)));
        }
        // Without them the member might run what the host's pod security rejects.
        let mut labels = host_namespaces
            .labels(name)
            .map_err(|why| CallError::NotSent(messages::namespace_labels_unknown(name, &why)))?;
        labels.retain(|key, _| namespaces.copies(key));
        let metadata = json!({ "name": name, "labels": labels });
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata });
        let call = calls::post(&self.member.client, "/api/v1/namespaces", &namespace);
        match self.call("create namespace", call).await {
            Err(error) if error.code() != Some(409) => Err(error),
            Ok(IgnoredAny) | Err(_) => Ok(()),
        }
    }

    /// Writes the whole set, if its spec is still the one that was seen (F29).
    async fn overwrite(
        self,
        frs: &ValidFrs,
        seen: &Precondition,
        replicas: u32,
    ) -> Result<Outcome, CallError> {
        let live = self.get().await?;
        if live.metadata.uid != seen.uid || live.metadata.generation != seen.generation {
            return Ok(changed_meanwhile());
        }
        if self.foreign_owner(&live).is_some() {
            return Ok(changed_meanwhile());
        }
        let write = Box::pin(self.write_over(frs, &live, replicas));
        self.change_replicas(seen, replicas, write).await
    }

    /// Sends a `write` that sets the replicas to `to`: from now on the store counts with them, because the write may be carried
    /// out, unless the response shows that it was not.
    async fn change_replicas(
        self,
        seen: &Precondition,
        to: u32,
        write: impl Future<Output = Result<Outcome, CallError>>,
    ) -> Result<Outcome, CallError> {
        if is_planted(PlantedBug::LostScaleDownForgotten) {
            return write.await;
        }
        let store = &self.member.store;
        store.observe_scale(self.key, &seen.uid, seen.generation, to);
        let done = write.await;
        let is_rejected = match &done {
            Ok(outcome) => matches!(outcome, Outcome::Conflict(_)),
            Err(error) => matches!(error.code(), Some(400..500)),
        };
        if is_rejected {
            store.observe_rejected_scale(self.key, &seen.uid, seen.generation);
        }
        done
    }

    /// The owner of the set `live`, if it isn't ours: the set must not be written or deleted then (F29, F40).
    fn foreign_owner(self, live: &LiveSet) -> Option<String> {
        live.foreign_owner(&self.executor.federation)
    }

    /// The object that fedrs writes.
    fn desired<'a>(self, frs: &'a ValidFrs, replicas: u32) -> ReplicaSet<'a>
    where
        Self: 'a,
    {
        ReplicaSet::of(frs, &self.executor.federation, &self.member.name, replicas)
    }

    fn path(self) -> String {
        format!("{}/{}", self.collection(), self.key.name)
    }

    fn collection(self) -> String {
        format!(
            "/apis/apps/v1/namespaces/{}/replicasets",
            self.key.namespace
        )
    }

    async fn get(self) -> Result<LiveSet, CallError> {
        self.call("get", calls::get(&self.member.client, &self.path()))
            .await
    }

    async fn post(self, object: &ReplicaSet<'_>) -> Result<Outcome, CallError> {
        let collection = self.collection();
        self.written(
            "create",
            calls::post(&self.member.client, &collection, object),
        )
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

    /// Waits for a write of the set, and puts the response into the member's store.
    async fn written(
        self,
        verb: &'static str,
        call: impl Future<Output = kube::Result<WorkloadState>>,
    ) -> Result<Outcome, CallError> {
        let set = self.call(verb, call).await?;
        self.member.store.observe_write(set.clone());
        Ok(Outcome::Written(set))
    }
}

/// The outcome of a failed write of an existing set. Only a rejection says for sure that nothing was written.
fn failed_write(error: &CallError) -> Outcome {
    match error.code() {
        Some(404 | 409) => Outcome::Conflict(error.to_string()),
        Some(400..500) => Outcome::Failed(error.to_string()),
        _ => Outcome::Unknown(error.to_string()),
    }
}

/// Whether validation or admission rejected the whole object, so that its replicas alone may be accepted.
fn rejects_object(error: &CallError) -> bool {
    matches!(error.code(), Some(400 | 403 | 413 | 422))
}

fn changed_meanwhile() -> Outcome {
    Outcome::Conflict("the ReplicaSet has changed".to_owned())
}
