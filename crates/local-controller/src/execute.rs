//! Carries out the actions of a plan: a few requests at a time, each with a deadline and its preconditions, and puts what the
//! responses show into the store.

use std::{sync::Arc, time::Duration};

use controller_base::{
    calls::{self, CallError, Method, within},
    clock::Clock,
    watchdog::Watched,
};
use fedrs_api::ValidLocalReplicaSet;
use futures::future::join_all;
use kube::Client;
use replica_set_controller::{
    Action, ObservedNode, ObservedPod, PodController, Request, Start, Verb, open_gate,
    remove_finalizer,
};
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};

use tokio::sync::Semaphore;

use crate::{
    entry::{Entry, SetObject},
    key::Changed,
    metrics::LocalMetrics,
    queue::Queue,
    store::{Sent, State, Store},
};

/// Changes an object, merging lists by their keys.
const STRATEGIC_PATCH: Method = ("PATCH", "application/strategic-merge-patch+json");
const DELETE: Method = ("DELETE", "application/json");

/// Sends requests for the pods of sets.
pub(crate) struct Executor {
    pub(crate) client: Client,
    pub(crate) store: Arc<Store>,
    pub(crate) queue: Queue,
    pub(crate) metrics: LocalMetrics,
    pub(crate) clock: Clock,
    pub(crate) call_timeout: Duration,
    /// Requests that may be under way.
    pub(crate) permits: Semaphore,
}

/// An action that was carried out, or not.
pub(crate) struct Executed<'a> {
    pub(crate) action: &'a Action<'a>,
    pub(crate) result: Outcome,
}

/// What became of a request.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It is done, and the store shows it.
    Done,
    /// The object has changed, or is gone: the next step decides from what it is now.
    Outdated,
    /// The name belongs to a pod that the set does not own.
    Taken,
    /// The API server rejects it.
    Rejected {
        /// The HTTP status.
        code: u16,
        message: String,
    },
    /// It may have been done, or not.
    Unanswered(String),
}

/// A response to a deletion: the pod, or a Status.
#[derive(Deserialize)]
#[serde(untagged)]
enum Deleted {
    Pod(Box<ObservedPod>),
    Other(IgnoredAny),
}

impl Executor {
    /// Carries out `actions` with their requests.
    pub(crate) async fn carry_out<'a>(
        &self,
        set: &ValidLocalReplicaSet,
        actions: Vec<(&'a Action<'a>, Request)>,
        watched: &Watched,
    ) -> Vec<Executed<'a>> {
        if actions.is_empty() {
            return Vec::new();
        }
        self.store.update(State::begin_requests);
        let requests = actions.into_iter();
        let requests = requests.map(|(action, request)| self.one(set, action, request, watched));
        let executed = join_all(requests).await;
        self.store.update(State::end_requests);
        executed
    }

    /// Sends one request, when there is a permit for it.
    async fn one<'a>(
        &self,
        set: &ValidLocalReplicaSet,
        action: &'a Action<'a>,
        request: Request,
        watched: &Watched,
    ) -> Executed<'a> {
        let _permit = self.permits.acquire().await.expect("it is never closed");
        let result = self.send(set, action, &request).await;
        watched.beat();
        Executed { action, result }
    }

    async fn send(
        &self,
        set: &ValidLocalReplicaSet,
        action: &Action<'_>,
        request: &Request,
    ) -> Outcome {
        let result = match (request.verb, action.pod()) {
            (Verb::Create, _) | (_, None) => self.create(set, action, request).await,
            (Verb::Patch, Some(pod)) => {
                let of = (set, pod.name, pod.uid);
                let is_resize = matches!(action, Action::Resize { .. });
                self.patch(of, request, is_resize).await
            }
            (Verb::Delete, Some(pod)) => {
                let is_forced = matches!(action, Action::ForceRemove { .. });
                self.delete((set, pod.name, pod.uid), request, is_forced)
                    .await
            }
        };
        if matches!(result, Outcome::Rejected { .. } | Outcome::Unanswered(_)) {
            self.metrics.failed_requests.inc();
        }
        result
    }

    async fn create(
        &self,
        set: &ValidLocalReplicaSet,
        action: &Action<'_>,
        request: &Request,
    ) -> Outcome {
        let call = calls::post(&self.client, &request.path, &request.body);
        match self.call::<ObservedPod>(call).await {
            Ok(pod) => {
                let is_held = matches!(
                    action,
                    Action::Create {
                        start: Start::Held,
                        ..
                    }
                );
                let pod = if is_held {
                    pod
                } else {
                    self.with_open_gate(pod).await
                };
                self.show(|state| state.apply_response(pod))
            }
            Err(error) if error.code() == Some(409) => {
                let Action::Create { name, .. } = action else {
                    return failure(&error);
                };
                self.find_created(set, name)
                    .await
                    .unwrap_or_else(|error| Outcome::Unanswered(error.to_string()))
            }
            Err(error) => failure(&error),
        }
    }

    /// The pod as it is once its gate is open. Where that fails, the next step opens it.
    async fn with_open_gate(&self, pod: ObservedPod) -> ObservedPod {
        let Some(Request { path, body, .. }) = open_gate(&pod, self.clock.now()) else {
            return pod;
        };
        let call = calls::write(&self.client, STRATEGIC_PATCH, &path, &body);
        self.call(call).await.unwrap_or(pod)
    }

    /// A pod of this name exists. It is ours, if the response to its creation was lost.
    async fn find_created(
        &self,
        set: &ValidLocalReplicaSet,
        name: &str,
    ) -> Result<Outcome, CallError> {
        let pod = self.read_pod(&set.namespace, name).await?;
        if pod.controller() != PodController::Set(&set.uid) {
            return Ok(Outcome::Taken);
        }
        Ok(self.show(|state| state.apply_response(pod)))
    }

    async fn patch(
        &self,
        of: (&ValidLocalReplicaSet, &str, &str),
        request: &Request,
        is_resize: bool,
    ) -> Outcome {
        let call = calls::write(&self.client, STRATEGIC_PATCH, &request.path, &request.body);
        match self.call::<ObservedPod>(call).await {
            Ok(pod) => self.show(|state| state.apply_response(pod)),
            Err(error) if is_resize && error.code() == Some(404) => {
                self.gone_or_not_resizable(of, &error).await
            }
            Err(error) => {
                let sent = Sent::UnansweredChange;
                self.outdated_or_failed(of, &error, sent).await
            }
        }
    }

    /// Removes the finalizer of a pod that no set looks after. What fails is tried again with the next look.
    pub(crate) async fn remove_finalizer(&self, pod: &ObservedPod) {
        let Request { path, body, .. } = remove_finalizer(pod);
        let call = calls::write(&self.client, STRATEGIC_PATCH, &path, &body);
        match self.call::<ObservedPod>(call).await {
            Ok(pod) => _ = self.show(|state| state.apply_response(pod)),
            Err(error) if matches!(error.code(), Some(404 | 409)) => {
                self.refresh(pod.namespace(), pod.name(), pod.uid()).await;
            }
            Err(error) => {
                self.metrics.failed_requests.inc();
                tracing::warn!(pod = pod.name(), %error, "failed to remove the finalizer of a pod whose set is gone");
            }
        }
    }

    /// The pod is gone, or the API server has no subresource `resize`.
    async fn gone_or_not_resizable(
        &self,
        (set, name, uid): (&ValidLocalReplicaSet, &str, &str),
        error: &CallError,
    ) -> Outcome {
        let is_read = self.refresh(&set.namespace, name, uid).await;
        if is_read && self.store.update(|state| state.has_pod(uid)) {
            failure(error)
        } else {
            Outcome::Outdated
        }
    }

    async fn delete(
        &self,
        of: (&ValidLocalReplicaSet, &str, &str),
        request: &Request,
        is_forced: bool,
    ) -> Outcome {
        let (method, content_type) = DELETE;
        let (path, body) = (&request.path, Some(&request.body));
        let call = calls::send::<Deleted>(&self.client, method, path, content_type, body);
        let (_, _, uid) = of;
        match self.call(call).await {
            Ok(response) => self.show(|state| {
                // A finalizer of ours keeps it also after a removal by force, of which no event need follow: others may have done it before.
                let shown = match response {
                    Deleted::Pod(pod)
                        if pod.is_terminating() && (!is_forced || pod.has_finalizer()) =>
                    {
                        Some(*pod)
                    }
                    Deleted::Pod(_) | Deleted::Other(_) => None,
                };
                if let Some(pod) = shown {
                    return state.apply_response(pod);
                }
                let sent = if is_forced {
                    Sent::ForcedRemoval
                } else {
                    Sent::Removal
                };
                state.requested(uid, sent);
                Changed::new()
            }),
            Err(error) => {
                let sent = Sent::UnansweredRemoval;
                self.outdated_or_failed(of, &error, sent).await
            }
        }
    }

    /// A request for a pod has failed: if its precondition did, the pod is read; if it was not answered, it is read before the next
    /// step.
    async fn outdated_or_failed(
        &self,
        (set, name, uid): (&ValidLocalReplicaSet, &str, &str),
        error: &CallError,
        sent: Sent,
    ) -> Outcome {
        match error.code() {
            Some(404) => {
                self.show(|state| state.remove_pod(uid));
                Outcome::Outdated
            }
            Some(409) => {
                self.refresh(&set.namespace, name, uid).await;
                Outcome::Outdated
            }
            _ => {
                let outcome = failure(error);
                if let Outcome::Unanswered(_) = outcome {
                    self.store.update(|state| state.requested(uid, sent));
                }
                outcome
            }
        }
    }

    /// Reads the pod of this name, which had this uid. Returns whether it was read.
    pub(crate) async fn refresh(&self, namespace: &str, name: &str, uid: &str) -> bool {
        match self.read_pod(namespace, name).await {
            Ok(pod) => {
                self.show(|state| {
                    let mut changed = Changed::new();
                    if pod.uid() != uid {
                        changed = state.remove_pod(uid);
                    }
                    changed.extend(state.read_pod(pod));
                    changed
                });
                true
            }
            Err(error) if error.code() == Some(404) => {
                self.show(|state| state.remove_pod(uid));
                true
            }
            Err(error) => {
                tracing::warn!(pod = name, %error, "failed to read a pod");
                // It is not what is known of it: no step decides from that.
                self.store.update(|state| state.doubt(uid));
                false
            }
        }
    }

    /// Reads a node that no watch has shown. Returns whether it was read.
    pub(crate) async fn refresh_node(&self, name: &str) -> bool {
        let path = format!("/api/v1/nodes/{name}");
        match self
            .call::<ObservedNode>(calls::get(&self.client, &path))
            .await
        {
            Ok(node) => _ = self.show(|state| state.apply_node(&node)),
            Err(error) if error.code() == Some(404) => {
                self.show(|state| state.remove_node(name));
            }
            Err(error) => {
                tracing::warn!(node = name, %error, "failed to read a node");
                return false;
            }
        }
        true
    }

    /// Reads a set. Returns whether it exists, and is not being deleted.
    pub(crate) async fn refresh_set(&self, entry: &Entry) -> bool {
        let (path, uid) = (entry.key.path(), &entry.uid);
        match self
            .call(calls::get::<SetObject>(&self.client, &path))
            .await
        {
            Ok(set) if set.metadata.uid.as_ref() == Some(uid) => {
                let exists = set.metadata.deletion_timestamp.is_none();
                self.show(|state| state.update_set(set));
                exists
            }
            Err(error) if error.code() != Some(404) => {
                tracing::warn!(set = %entry.key, %error, "failed to read a set");
                false
            }
            _ => {
                self.show(|state| state.remove_set_of(&entry.key, uid));
                false
            }
        }
    }

    async fn read_pod(&self, namespace: &str, name: &str) -> Result<ObservedPod, CallError> {
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
        self.call(calls::get(&self.client, &path)).await
    }

    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        call: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, CallError> {
        within(self.call_timeout, call).await
    }

    /// Puts what a response shows into the store.
    pub(crate) fn show(&self, change: impl FnOnce(&mut State) -> Changed) -> Outcome {
        for key in self.store.update(change) {
            self.queue.add(key, Duration::ZERO);
        }
        Outcome::Done
    }
}

/// The result of a request that failed.
fn failure(error: &CallError) -> Outcome {
    match error.code() {
        Some(code) if error.is_rejection() => Outcome::Rejected {
            code,
            message: error.to_string(),
        },
        _ => Outcome::Unanswered(error.to_string()),
    }
}
