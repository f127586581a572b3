//! Reads what a request depends on, and carries out what is decided.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use controller_base::{
    calls::{self, CallError},
    clock::Clock,
    watchdog::Watched,
};
use fedrs_api::{MigrationPhase, MigrationRequestStatus, ValidMigrationPolicy};
use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::Pod,
};
use reflector::printable;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::json;
use tokio::time::sleep;

use super::{
    asker::Asker,
    decide::{Case, Step, introduced, rejected, step},
    facts::{Owner, PodFacts, Workload},
    policy::Chosen,
    queue::{self, Pace},
};
use crate::{
    config::MigrationConfig, execute::Executor, migration_object::RequestObject, store::State,
    waiting::with_cancel,
};

/// The time between two rounds.
const PERIOD: Duration = Duration::from_secs(2);
/// How long a pod may be unknown before its request ends: the request may have been made before the pod, or before a set adopts it.
const UNKNOWN_FOR: Duration = Duration::from_secs(30);

/// The workloads that were read in a round, by namespace and name of their ReplicaSet.
pub(super) type Workloads = HashMap<(String, String), Option<Workload>>;

/// Evicts pods of ReplicaSets.
pub(crate) struct NativeMigrations {
    pub(crate) executor: Arc<Executor>,
    pub(crate) config: MigrationConfig,
    /// The MigrationPolicy of sets that have none.
    pub(crate) default_policy: Option<Arc<ValidMigrationPolicy>>,
    pub(crate) clock: Clock,
}

impl NativeMigrations {
    /// Looks again and again. Its future ends when it is dropped.
    pub(crate) async fn run(&self, watched: &Watched) {
        let mut pace = Pace::default();
        loop {
            sleep(PERIOD).await;
            let _busy = watched.begin("migrations of ReplicaSets");
            self.round(&mut pace, watched).await;
        }
    }

    /// One request after the other: what one has begun, the next one of its workload knows.
    async fn round(&self, pace: &mut Pace, watched: &Watched) {
        let requests = || self.executor.store.update(|state| state.without_set());
        let open = requests();
        pace.keep(&open);
        let mut workloads = Workloads::new();
        let mut out_of_turn = HashSet::new();
        for request in queue::unknown(&open, pace, self.clock.now()) {
            let result = self.introduce(&request, &mut workloads).await;
            watched.beat();
            if let Ok(Some(pod)) = &result
                && !pod.is_available
            {
                out_of_turn.insert(request.uid().to_owned());
            }
            self.failed(&request, result.err().as_ref());
            let known = self.known(&request);
            if known.is_none_or(|known| known.workload().is_none()) {
                pace.looked(&request, None, self.clock.now());
            }
        }
        let open = if open.is_empty() { open } else { requests() };
        out_of_turn.extend(self.news(&open));
        for request in queue::looks(&open, &out_of_turn, pace, self.clock.now()) {
            let result = self.look(&request, &mut workloads).await;
            watched.beat();
            self.failed(&request, result.err().as_ref());
            let known = self.known(&request);
            let status = known.as_deref().and_then(RequestObject::status);
            pace.looked(&request, status, self.clock.now());
        }
    }

    /// The uids of the requests whose marks say something new.
    fn news(&self, open: &[Arc<RequestObject>]) -> Vec<String> {
        self.executor.store.update(|state| {
            let is_news = |request: &&Arc<RequestObject>| {
                let node = request.status().map(|status| &*status.node);
                let node = node.and_then(|node| state.node(node));
                Asker::of(request, node).is_news(request)
            };
            let news = open.iter().filter(is_news);
            news.map(|request| request.uid().to_owned()).collect()
        })
    }

    /// Finds out which ReplicaSet the pod of a request has. Returns the pod, if it has one.
    async fn introduce(
        &self,
        request: &RequestObject,
        workloads: &mut Workloads,
    ) -> Result<Option<PodFacts>, CallError> {
        let (namespace, _) = request.id();
        let now = self.clock.now();
        let has_begun = (request.status()).is_some_and(MigrationRequestStatus::has_begun);
        let pod = self.pod(request).await?.filter(|_| !has_begun);
        let owner = pod.as_ref().map(|pod| Owner::of(&pod.metadata));
        if let (Some(pod), Some(Owner::ReplicaSet { name, uid })) = (&pod, &owner) {
            let workload = self.workload(namespace, name, workloads).await?;
            if let Some(workload) = workload.filter(|workload| workload.uid == *uid) {
                let facts = self.facts(pod, name);
                let policy = self.policy(namespace, workload);
                let case = self.case(request, Some(&facts), Some(workload), policy.as_ref());
                let pod_uid = pod.metadata.uid.as_deref().unwrap_or_default();
                let status = introduced(&case, (name, pod_uid), now);
                self.write(request, &status).await;
                return Ok(Some(facts));
            }
        }
        let known_by = request.created().checked_add(UNKNOWN_FOR);
        let is_early = known_by.is_ok_and(|known_by| now < known_by);
        let is_of_set = owner == Some(Owner::LocalReplicaSet) && !has_begun;
        if !is_of_set && !is_early {
            self.cancel(request, now).await;
        }
        Ok(None)
    }

    /// Ends a request for a pod that is not migrated.
    async fn cancel(&self, request: &RequestObject, now: Timestamp) {
        let mut status = request.status().cloned().unwrap_or_default();
        status.message = format!(
            "pod {} is gone, or belongs to no LocalReplicaSet or ReplicaSet: only pods of those are migrated",
            request.pod_name()
        );
        status.reason = String::new();
        status.until = None;
        status.reach(MigrationPhase::Cancelled, now);
        self.executor.write_request_status(request, &status).await;
    }

    /// Does what is next about a request whose ReplicaSet is known.
    async fn look(
        &self,
        request: &RequestObject,
        workloads: &mut Workloads,
    ) -> Result<(), CallError> {
        let (namespace, _) = request.id();
        let set = request.status().map(|status| status.replica_set.clone());
        let set = set.unwrap_or_default();
        let pod = self.pod(request).await?.map(|pod| self.facts(&pod, &set));
        let workload = self.workload(namespace, &set, workloads).await?;
        let policy = workload.and_then(|workload| self.policy(namespace, workload));
        let case = self.case(request, pod.as_ref(), workload, policy.as_ref());
        match step(&case, self.clock.now()) {
            Step::Tell(status) => _ = self.write(request, &status).await,
            Step::Begin(status) => {
                if !status.forced
                    && let Err(error) = self.evict(request, "?dryRun=All").await
                {
                    // The request is as it was before.
                    let before = request.status().cloned().unwrap_or_default();
                    let before = MigrationRequestStatus {
                        native: status.native,
                        deadline: status.deadline,
                        node: status.node,
                        until: None,
                        ..before
                    };
                    return self.not_removed(request, before, error).await;
                }
                // A restart forgets nothing that is written before the pod is removed.
                if let Some(begun) = self.write(request, &status).await {
                    self.remove(&begun, status).await?;
                }
            }
            Step::Remove(status) => self.remove(request, status).await?,
        }
        Ok(())
    }

    /// Removes the pod of a request whose status says that this has begun.
    async fn remove(
        &self,
        request: &RequestObject,
        status: MigrationRequestStatus,
    ) -> Result<(), CallError> {
        let removed = if status.forced {
            let options = json!({ "preconditions": { "uid": request.pod_uid() } });
            let path = pod_path(request);
            let deleted = calls::delete(&self.executor.client, &path, &options);
            self.executor.call(deleted).await
        } else {
            self.evict(request, "").await
        };
        match removed {
            Ok(IgnoredAny) => Ok(()),
            Err(error) => self.not_removed(request, status, error).await,
        }
    }

    /// Tells why the API server does not remove the pod. One that is not there any more is seen with the next look.
    async fn not_removed(
        &self,
        request: &RequestObject,
        status: MigrationRequestStatus,
        error: CallError,
    ) -> Result<(), CallError> {
        let code = error.code();
        if matches!(code, Some(404 | 409)) {
            return Ok(());
        }
        let is_budget = code == Some(429);
        if code.is_some() {
            let why = with_cancel(request, text(&error));
            let status = rejected(status, is_budget, why, self.clock.now());
            self.write(request, &status).await;
        }
        if is_budget { Ok(()) } else { Err(error) }
    }

    /// Asks the API server to evict the pod: it counts it in its PodDisruptionBudget.
    async fn evict(&self, request: &RequestObject, query: &str) -> Result<IgnoredAny, CallError> {
        let path = format!("{}/eviction{query}", pod_path(request));
        let (namespace, _) = request.id();
        let eviction = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": { "namespace": namespace, "name": request.pod_name() },
            "deleteOptions": { "preconditions": { "uid": request.pod_uid() } },
        });
        let (method, content_type) = calls::POST;
        let (client, body) = (&self.executor.client, Some(&eviction));
        let call = calls::send(client, method, &path, content_type, body);
        self.executor.call(call).await
    }

    /// Writes a status, if it is not as it was. Returns the request, if it has it now.
    async fn write(
        &self,
        request: &RequestObject,
        status: &MigrationRequestStatus,
    ) -> Option<Arc<RequestObject>> {
        if request.status() != Some(status) {
            self.executor.write_request_status(request, status).await;
        }
        let known = self.known(request)?;
        let kept = known.status()?;
        if kept.native.is_none() {
            let (namespace, name) = request.id();
            tracing::warn!(
                namespace,
                name,
                "the CRD of MigrationRequests is of an earlier version"
            );
            return None;
        }
        let is_kept = (kept.phase, kept.forced) == (status.phase, status.forced);
        is_kept.then_some(known)
    }

    /// The request as it is known now, if it is there.
    fn known(&self, request: &RequestObject) -> Option<Arc<RequestObject>> {
        let (namespace, name) = request.id();
        let known = (self.executor.store).update(|state| state.request(namespace, name));
        known.filter(|known| known.uid() == request.uid())
    }

    fn case<'a>(
        &self,
        request: &'a RequestObject,
        pod: Option<&'a PodFacts>,
        workload: Option<&'a Workload>,
        policy: Option<&'a Chosen>,
    ) -> Case<'a> {
        let of_workload = |state: &mut State| state.of_workload(request);
        let of_workload = self.executor.store.update(of_workload);
        Case {
            request,
            pod,
            workload,
            policy,
            line: queue::line(request, &of_workload),
            asker: self.asker(request, pod),
            deadline: self.config.deadline,
        }
    }

    /// Who asks for what a request says, by the node of its pod.
    fn asker(&self, request: &RequestObject, pod: Option<&PodFacts>) -> Asker {
        let known = || request.status().map(|status| &*status.node);
        let node = pod.map(|pod| &*pod.node).or_else(known);
        let node = node.and_then(|node| self.executor.store.update(|state| state.node(node)));
        Asker::of(request, node)
    }

    /// The pod of a request, if it is there.
    async fn pod(&self, request: &RequestObject) -> Result<Option<Pod>, CallError> {
        let pod: Option<Pod> = self.read(&pod_path(request)).await?;
        let uid = request.pod_uid();
        Ok(pod.filter(|pod| uid.is_none_or(|uid| pod.metadata.uid.as_deref() == Some(uid))))
    }

    fn facts(&self, pod: &Pod, set: &str) -> PodFacts {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        let is_lost =
            node.is_some_and(|node| self.executor.store.update(|state| state.is_lost(node)));
        PodFacts::of(pod, set, is_lost)
    }

    /// The workload of a ReplicaSet, if that is there: read once in a round.
    pub(super) async fn workload<'w>(
        &self,
        namespace: &str,
        name: &str,
        workloads: &'w mut Workloads,
    ) -> Result<Option<&'w Workload>, CallError> {
        let key = (namespace.to_owned(), name.to_owned());
        if !workloads.contains_key(&key) {
            let collection = format!("/apis/apps/v1/namespaces/{namespace}");
            let set: Option<ReplicaSet> = self
                .read(&format!("{collection}/replicasets/{name}"))
                .await?;
            let mut deployment: Option<Deployment> = None;
            if let Some(name) = set.as_ref().and_then(Workload::deployment_of) {
                deployment = self
                    .read(&format!("{collection}/deployments/{name}"))
                    .await?;
            }
            let workload = set.map(|set| Workload::of(&set, deployment.as_ref()));
            workloads.insert(key.clone(), workload);
        }
        Ok(workloads.get(&key).and_then(Option::as_ref))
    }

    /// The first policy by name that selects the ReplicaSet, or else that of the configuration.
    fn policy(&self, namespace: &str, workload: &Workload) -> Option<Chosen> {
        let store = &self.executor.store;
        let own = store.update(|state| state.policy_for(namespace, &workload.labels));
        let own = own.map(|(name, valid)| Chosen {
            name: Some(name),
            valid,
        });
        own.or_else(|| {
            let valid = Arc::clone(self.default_policy.as_ref()?);
            Some(Chosen { name: None, valid })
        })
    }

    /// Reads an object, if it is there.
    async fn read<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, CallError> {
        let call = calls::get(&self.executor.client, path);
        match self.executor.call(call).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.code() == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn failed(&self, request: &RequestObject, error: Option<&CallError>) {
        let Some(error) = error else {
            return;
        };
        let (namespace, name) = request.id();
        self.executor.metrics.failed_requests.inc();
        tracing::warn!(namespace, name, %error, "failed to migrate a pod of a ReplicaSet; trying again");
    }
}

fn pod_path(request: &RequestObject) -> String {
    let (namespace, _) = request.id();
    format!("/api/v1/namespaces/{namespace}/pods/{}", request.pod_name())
}

/// What the API server says, with its causes: which PodDisruptionBudget.
fn text(error: &CallError) -> String {
    let causes = match error {
        CallError::Api(kube::Error::Api(status)) => status.details.iter(),
        _ => None.iter(),
    };
    let causes = causes.flat_map(|details| &details.causes);
    let causes = causes.map(|cause| format!(" {}", cause.message));
    printable(
        &std::iter::once(error.to_string())
            .chain(causes)
            .collect::<String>(),
    )
}
