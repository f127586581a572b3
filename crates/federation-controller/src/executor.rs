//! Carries out in the members what a check decided: each call with a deadline, a few per member at a time.
//!
//! ```text
//! Create    POST -> 404 namespace: create it, POST again
//!                -> 409: take over what is there (F29), unless it is somebody's
//! Scale     PATCH replicas, conditional on uid, generation and federation; on the resourceVersion as well where
//!           replicas are given up because they don't run
//! Overwrite GET, PUT, conditional on uid, generation and the resourceVersion that was read
//! LabelPods  LIST, PATCH each pod without our labels, conditional on its uid (F30)
//! ```
//!
//! The generation counts changes of the spec alone and never goes back: a write meant for a spec that is no longer
//! there fails, and the status that pods keep changing during a move doesn't stand in the way.
//!
//! The answer to each write goes into the member's store at once, so that the next check builds on it.

mod adoption;
mod last_writer;
mod pod_labels;
mod release;

use std::{sync::Arc, time::Duration};

use cluster_informer::{MemberView, WorkloadState};
use fedrs_api::{RejectionKind, SetKey, ValidFrs, labels};
use kube::Client;
use serde_json::{Value, json};
use tokio::{
    sync::{Semaphore, SemaphorePermit, oneshot},
    time::{Instant, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    calls::{self, CallError},
    check::{Action, Outcome, Outcomes, Precondition, SetChange},
    event::Event,
    frs_store::Entry,
    manifest, messages,
    metrics::Metrics,
};

/// Where writes to one member go. Cheap to clone.
#[derive(Clone)]
pub(crate) struct MemberAccess {
    pub(crate) name: Arc<str>,
    pub(crate) client: Client,
    pub(crate) store: Arc<dyn MemberView>,
    pub(crate) permits: Arc<Semaphore>,
}

impl MemberAccess {
    /// Waits until one of the few may be written that are written at the same time; for as long as it is held.
    async fn turn(&self) -> SemaphorePermit<'_> {
        let turn = self.permits.acquire().await;
        turn.expect("the permits are never closed")
    }
}

/// What all writes share.
#[derive(Clone)]
pub(crate) struct Executor {
    pub(crate) federation: Arc<str>,
    pub(crate) call_timeout: Duration,
    pub(crate) create_kube_namespaces: bool,
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

/// How long the work on a set waits for members' answers. Healthy ones take milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);

/// The path of the ReplicaSets of `namespace`.
fn sets_path(namespace: &str) -> String {
    format!("/apis/apps/v1/namespaces/{namespace}/replicasets")
}

/// The path of the local set of `key`.
pub(crate) fn set_path(key: &SetKey) -> String {
    format!("{}/{}", sets_path(&key.namespace), key.name)
}

impl Executor {
    /// Carries out `actions`, all members at once, and waits a little for the answers: a member that takes longer
    /// delays no other member, and its outcome goes to `late`.
    pub(crate) async fn carry_out(
        &self,
        entry: &Arc<Entry>,
        actions: &[Action],
        access: impl Fn(&str) -> Option<MemberAccess>,
        late: Arc<dyn Fn(LateOutcome) + Send + Sync>,
    ) -> Outcomes {
        let deadline = Instant::now() + PATIENCE;
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
                let _turn = access.turn().await;
                // What was decided so long ago may be wrong by now: a member that hung must not get it all at once.
                if Instant::now() > latest {
                    return Outcome::Conflict("timed out waiting for a write slot".to_owned());
                }
                this.act(frs, &access, &action).await
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

    async fn act(&self, frs: &ValidFrs, member: &MemberAccess, action: &Action) -> Outcome {
        // Read before the write, which changes the managed fields.
        let by = if action.repairs {
            self.last_writer(&frs.key, member).await
        } else {
            None
        };
        let done = match &action.change {
            SetChange::Create { replicas } => Ok(self.create(frs, member, *replicas).await),
            SetChange::Scale { seen, from, to } => {
                if to < from {
                    member
                        .store
                        .observe_scale_down(&frs.key, &seen.uid, seen.generation, *to);
                }
                let patch = self.scale_patch(seen, *from, *to);
                self.scale(frs, member, &patch).await
            }
            SetChange::Overwrite { seen, replicas, .. } => {
                self.overwrite(frs, member, seen, *replicas).await
            }
            SetChange::LabelPods { seen } => {
                self.label_pods(frs, member, &seen.uid, seen.generation)
                    .await
            }
        };
        match done.unwrap_or_else(|error| undecided(&error)) {
            Outcome::Written(set) if action.repairs => Outcome::Repaired { set, by },
            outcome => outcome,
        }
    }

    async fn scale(
        &self,
        frs: &ValidFrs,
        member: &MemberAccess,
        patch: &Value,
    ) -> Result<Outcome, CallError> {
        let path = set_path(&frs.key);
        let call = calls::json_patch(&member.client, &path, patch);
        match self.written(member, "scale", call).await {
            // The API server doesn't say which of the tests failed.
            Err(error) if error.is_failed_test() => Ok(changed_meanwhile()),
            answer => answer,
        }
    }

    /// Sets the replicas of the very set that was seen, unless somebody has changed its spec or taken it over since.
    fn scale_patch(&self, seen: &Precondition, from: u32, to: u32) -> Value {
        let mark = labels::FEDERATION.replace('/', "~1");
        let mut expected = vec![
            ("/metadata/uid".to_owned(), json!(seen.uid)),
            ("/metadata/generation".to_owned(), json!(seen.generation)),
            ("/spec/replicas".to_owned(), json!(from)),
            (format!("/metadata/labels/{mark}"), json!(*self.federation)),
        ];
        if !seen.has_owners {
            // Passes only if the field is absent.
            expected.push(("/metadata/ownerReferences".to_owned(), Value::Null));
        }
        if let Some(version) = &seen.resource_version {
            expected.push(("/metadata/resourceVersion".to_owned(), json!(version)));
        }
        let mut patch: Vec<_> = expected
            .into_iter()
            .map(|(path, value)| json!({ "op": "test", "path": path, "value": value }))
            .collect();
        patch.push(json!({ "op": "replace", "path": "/spec/replicas", "value": to }));
        patch.into()
    }

    /// F28: whatever keeps the set from being created counts as a refusal.
    async fn create(&self, frs: &ValidFrs, member: &MemberAccess, replicas: u32) -> Outcome {
        let set = manifest::replica_set(frs, &self.federation, &member.name, replicas);
        let error = match self.post_set(frs, member, &set).await {
            Ok(outcome) => return outcome,
            Err(error) => error,
        };
        let retried = match error.code() {
            // Our credentials are refused, and not the set: the probe will say so as well.
            Some(401) => return undecided(&error),
            Some(404) => match self.create_namespace(frs, member).await {
                Ok(()) => self.post_set(frs, member, &set).await,
                Err(error) => Err(error),
            },
            Some(409) => return self.adopt(frs, member, replicas).await,
            _ => Err(error),
        };
        retried.unwrap_or_else(|error| Outcome::Rejected {
            kind: RejectionKind::Rejected,
            message: error.to_string(),
        })
    }

    async fn post_set(
        &self,
        frs: &ValidFrs,
        member: &MemberAccess,
        set: &Value,
    ) -> Result<Outcome, CallError> {
        let path = sets_path(&frs.key.namespace);
        self.written(member, "create", calls::post(&member.client, &path, set))
            .await
    }

    async fn create_namespace(
        &self,
        frs: &ValidFrs,
        member: &MemberAccess,
    ) -> Result<(), CallError> {
        let name = &*frs.key.namespace;
        if name.starts_with("kube-") && !self.create_kube_namespaces {
            return Err(CallError::Answer(messages::namespace_not_created(name)));
        }
        let namespace =
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        let call = calls::post(&member.client, "/api/v1/namespaces", &namespace);
        match self.call(member, "create namespace", call).await {
            Err(error) if error.code() != Some(409) => Err(error),
            _ => Ok(()),
        }
    }

    /// Writes the whole set, if its spec is still the one that was seen (F29).
    async fn overwrite(
        &self,
        frs: &ValidFrs,
        member: &MemberAccess,
        seen: &Precondition,
        replicas: u32,
    ) -> Result<Outcome, CallError> {
        let path = set_path(&frs.key);
        let live = self
            .call(member, "get", calls::get(&member.client, &path))
            .await?;
        let metadata = &live["metadata"];
        if metadata["uid"] != *seen.uid || metadata["generation"] != seen.generation {
            return Ok(changed_meanwhile());
        }
        if foreign_owner(&live, &self.federation).is_some() {
            return Ok(changed_meanwhile());
        }
        let store = &member.store;
        store.observe_scale_down(&frs.key, &seen.uid, seen.generation, replicas);
        self.write_over(frs, member, live, replicas).await
    }

    /// Waits for `call` within the deadline, and measures it.
    async fn call<T>(
        &self,
        member: &MemberAccess,
        verb: &'static str,
        call: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, CallError> {
        let started = Instant::now();
        let answer = calls::within(self.call_timeout, call).await;
        self.metrics
            .called(&member.name, verb, answer.as_ref().err(), started.elapsed());
        answer
    }

    /// Waits for a write of a set, and takes the answer into the member's store.
    async fn written(
        &self,
        member: &MemberAccess,
        verb: &'static str,
        call: impl Future<Output = kube::Result<Value>>,
    ) -> Result<Outcome, CallError> {
        let answer = self.call(member, verb, call).await?;
        let set = WorkloadState::from_value(answer)
            .map_err(|error| CallError::Answer(error.to_string()))?;
        member.store.observe_write(set.clone());
        Ok(Outcome::Written(set))
    }
}

/// Whose the local set `live` is, if it isn't ours: it must not be written or deleted (F29, F40).
fn foreign_owner(live: &Value, federation: &str) -> Option<String> {
    let metadata = &live["metadata"];
    let label = metadata["labels"][labels::FEDERATION].as_str();
    if let Some(other) = label.filter(|label| *label != federation) {
        return Some(messages::other_federation(other));
    }
    let mut owners = metadata["ownerReferences"].as_array().into_iter().flatten();
    let controller = owners.find(|owner| owner["controller"] == true)?;
    Some(messages::controlled_by(
        controller["kind"].as_str().unwrap_or("an object"),
        controller["name"].as_str().unwrap_or("without a name"),
    ))
}

/// What became of a write of a set that is there, or was. Only a refusal says for sure that nothing was written.
fn undecided(error: &CallError) -> Outcome {
    match error.code() {
        Some(404 | 409) => Outcome::Conflict(error.to_string()),
        Some(400..500) => Outcome::Failed(error.to_string()),
        _ => Outcome::Unknown(error.to_string()),
    }
}

fn changed_meanwhile() -> Outcome {
    Outcome::Conflict("the ReplicaSet has changed".to_owned())
}
