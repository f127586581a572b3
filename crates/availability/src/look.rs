//! The task of one AvailabilitySet: reads the members, plans, and carries the plan out.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use controller_base::{
    answers::{Answer, Answers},
    calls::{self, CallError},
    clock::Clock,
    event_recorder::{EventRecorder, InvolvedObject},
    finalizer,
    members::{Access, Members},
    object_tasks::{Newest, put},
};
use fedrs_api::{AvailabilitySet, finalizers, names};
use futures::future::join_all;
use kube::{Client, ResourceExt};
use serde::de::IgnoredAny;
use tokio::{
    sync::{Mutex, Semaphore},
    time::Instant,
};

use crate::{
    federated_set::FederatedSet,
    metrics::{AvailabilityMetrics, Counted},
    neighbours::{AllNeighbours, Neighbours},
    observed::Seen,
    own::{Own, Request},
    plan::{FinalizerChange, Input, PERIOD, Plan, plan},
    read::{self, NodeCache, Question},
};

/// Where AvailabilitySets are.
pub(crate) const PATH: &str = "/apis/fedrs.dev/v1alpha1/availabilitysets";
/// Members that are asked at a time.
const MEMBERS_AT_A_TIME: usize = 16;
/// The pause while clients of members are being made.
const JOINING_PAUSE: Duration = Duration::from_secs(1);
/// The pause after other AvailabilitySets have changed while members were read.
const CHANGED_PAUSE: Duration = Duration::from_secs(1);

/// What the tasks of all AvailabilitySets share.
pub(crate) struct Context {
    pub(crate) host: Client,
    pub(crate) members: Arc<dyn Members>,
    /// The id of the federation.
    pub(crate) federation: Arc<str>,
    pub(crate) clock: Clock,
    pub(crate) call_timeout: Duration,
    pub(crate) joining_timeout: Duration,
    pub(crate) recorder: EventRecorder,
    pub(crate) metrics: AvailabilityMetrics,
    /// All AvailabilitySets.
    pub(crate) neighbours: Arc<AllNeighbours>,
    /// The nodes of members, by name.
    pub(crate) nodes: Mutex<BTreeMap<String, Arc<NodeCache>>>,
}

/// The task of one AvailabilitySet.
pub(crate) struct AvailabilityTask {
    context: Arc<Context>,
    object: Newest<AvailabilitySet>,
    counted: Counted,
    /// What members answered to the last requests.
    answers: Answers,
    /// Whether the host has rejected the last request.
    has_host_rejected: bool,
    started: Instant,
}

/// A write to the host did not succeed: the object is seen again.
struct NotWritten;

impl AvailabilityTask {
    pub(crate) fn new(context: Arc<Context>, object: Newest<AvailabilitySet>) -> Self {
        Self {
            counted: Counted::new(context.metrics.clone()),
            context,
            object,
            answers: Answers::default(),
            has_host_rejected: false,
            started: Instant::now(),
        }
    }

    /// Looks at the members when the set changes, and when something is due. Never ends.
    pub(crate) async fn run(mut self) {
        let mut changes = self.object.subscribe();
        // A loan of a set that is not listed yet would seem to be nobody's.
        self.context.neighbours.listed().await;
        loop {
            changes.mark_unchanged();
            let next = self.look().await;
            let changed = changes.changed();
            match next {
                None => _ = changed.await,
                Some(pause) => _ = tokio::time::timeout(pause, changed).await,
            }
        }
    }

    /// Looks once. Returns when to look again; `None` if not before the object changes.
    async fn look(&mut self) -> Option<Duration> {
        let set = self.object.borrow().clone();
        let access = self.context.members.all();
        let is_joining = |access: &Access| matches!(access, Access::Joining);
        let may_wait = self.started.elapsed() < self.context.joining_timeout;
        if may_wait && access.values().any(is_joining) {
            return Some(JOINING_PAUSE);
        }
        let all = &self.context.neighbours;
        let namespace = set.namespace().unwrap_or_default();
        let neighbours = all.of(&namespace);
        let of = (&*namespace, &*set.spec.federation);
        let timeout = self.context.call_timeout;
        let deployments = match read::deployments(&self.context.host, of, timeout).await {
            Ok(deployments) => deployments,
            Err(error) => {
                let set = set.name_any();
                tracing::warn!(set, %error, "failed to list the FederatedDeployments of an AvailabilitySet");
                return Some(PERIOD);
            }
        };
        let seen = self
            .observe(&set, (&neighbours, &deployments), &access)
            .await;
        if all.of(&namespace) != neighbours {
            // What was read may have loans of sets that are new.
            return Some(CHANGED_PAUSE);
        }
        let plan = plan(&Input {
            set: &set,
            federation: &self.context.federation,
            neighbours: &neighbours,
            deployments: &deployments,
            seen: &seen,
            rejected: self.answers.rejected(),
            has_host_rejected: self.has_host_rejected,
            now: self.context.clock.machine(),
        });
        self.counted.count(&plan.status);
        let next = plan.next;
        match self.carry_out(set, plan, &access).await {
            Ok(false) => next,
            // Nothing was lent before the finalizer was there.
            Ok(true) => Some(Duration::ZERO),
            Err(NotWritten) => Some(PERIOD),
        }
    }

    async fn observe(
        &self,
        set: &AvailabilitySet,
        (neighbours, deployments): (&Neighbours, &[FederatedSet]),
        access: &BTreeMap<String, Access>,
    ) -> BTreeMap<String, Seen> {
        let question = &Question {
            own: &Own::of(set, &self.context.federation, neighbours),
            selector: &set.spec.selector,
            deployments,
            timeout: self.context.call_timeout,
        };
        let labels = &set.spec.domain_labels;
        let slots = Semaphore::new(MEMBERS_AT_A_TIME);
        let reads = access.iter().map(async |(name, access)| {
            let _slot = slots.acquire().await;
            let seen = match access {
                Access::Client(client) => {
                    let cache = self.nodes_of(name).await;
                    match read::observe(client, question, labels, &cache).await {
                        Ok(observed) => Seen::Observed(observed),
                        Err(error) => Seen::NotRead(error.to_string()),
                    }
                }
                Access::Unreachable(why) => Seen::Away(why.clone()),
                Access::Joining => Seen::NotRead("it is not connected yet".to_owned()),
            };
            (name.clone(), seen)
        });
        join_all(reads).await.into_iter().collect()
    }

    async fn nodes_of(&self, member: &str) -> Arc<NodeCache> {
        let mut caches = self.context.nodes.lock().await;
        Arc::clone(caches.entry(member.to_owned()).or_default())
    }

    /// Writes what the plan says: a finalizer first, then the status, by which loans are found, then requests to members. Returns whether
    /// a finalizer was added.
    async fn carry_out(
        &mut self,
        set: AvailabilitySet,
        plan: Plan,
        access: &BTreeMap<String, Access>,
    ) -> Result<bool, NotWritten> {
        let mut set = set;
        let adds = plan.finalizer == Some(FinalizerChange::Add);
        if adds {
            set = self.change_finalizer(&set, true).await?;
        }
        if set.status.as_ref() != Some(&plan.status) {
            set = self.write_status(&set, &plan).await?;
            let involved = involved_object(&set);
            for event in plan.events.iter().cloned() {
                self.context.recorder.record(&involved, event);
            }
        }
        let answer = self
            .send("host", &self.context.host, &plan.host_requests)
            .await;
        self.has_host_rejected = matches!(answer, Answer::Rejected(_));
        let slots = Semaphore::new(MEMBERS_AT_A_TIME);
        let sent = plan.requests.iter().map(async |(cluster, requests)| {
            let _slot = slots.acquire().await;
            let Some(Access::Client(client)) = access.get(cluster) else {
                return None;
            };
            Some((cluster.clone(), self.send(cluster, client, requests).await))
        });
        let answers = join_all(sent).await;
        self.answers.put(answers.into_iter().flatten());
        if plan.finalizer == Some(FinalizerChange::Remove) {
            self.change_finalizer(&set, false).await?;
        }
        Ok(adds)
    }

    /// Sends requests to a cluster, until it rejects one.
    async fn send(&self, cluster: &str, client: &Client, requests: &[Request]) -> Answer {
        let mut answer = Answer::Accepted;
        for request in requests {
            let Err(error) = self.send_one(client, request).await else {
                continue;
            };
            if error.is_failed_test() || matches!(error.code(), Some(404 | 409)) {
                answer = Answer::Outdated(error.to_string());
                continue;
            }
            self.context.metrics.failed_writes.inc();
            tracing::warn!(cluster, %error, "failed to lend a part of the budget");
            return Answer::Rejected(error.to_string());
        }
        answer
    }

    async fn send_one(&self, client: &Client, request: &Request) -> Result<IgnoredAny, CallError> {
        let limit = self.context.call_timeout;
        match request {
            Request::Create { path, body } => {
                calls::within(limit, calls::post(client, path, body)).await
            }
            Request::Patch { path, body } => {
                calls::within(limit, calls::json_patch(client, path, body)).await
            }
            Request::MergePatch { path, body } => {
                calls::within(limit, calls::merge_patch(client, path, body)).await
            }
            Request::Delete { path, body } => {
                calls::within(limit, calls::delete(client, path, body)).await
            }
        }
    }

    async fn write_status(
        &self,
        set: &AvailabilitySet,
        plan: &Plan,
    ) -> Result<AvailabilitySet, NotWritten> {
        let metadata = &set.metadata;
        let seen = (
            metadata.uid.as_deref(),
            metadata.resource_version.as_deref(),
        );
        let path = path(set);
        let call = calls::put_status(&self.context.host, &path, seen, &plan.status);
        self.written(set, "the status", call).await
    }

    async fn change_finalizer(
        &self,
        set: &AvailabilitySet,
        adds: bool,
    ) -> Result<AvailabilitySet, NotWritten> {
        let metadata = &set.metadata;
        let patch = if adds {
            finalizer::addition(metadata, finalizers::AVAILABILITY_SET)
        } else {
            finalizer::removal(metadata, finalizers::AVAILABILITY_SET)
        };
        let path = path(set);
        let call = calls::merge_patch(&self.context.host, &path, &patch);
        self.written(set, "the finalizer", call).await
    }

    /// Waits for the answer to a write to the host, and keeps the object in it.
    async fn written(
        &self,
        before: &AvailabilitySet,
        what: &str,
        call: impl Future<Output = kube::Result<AvailabilitySet>>,
    ) -> Result<AvailabilitySet, NotWritten> {
        let answer = calls::within(self.context.call_timeout, call).await;
        let object: AvailabilitySet = answer.map_err(|error: CallError| {
            let set = before.name_any();
            tracing::warn!(set, %error, "failed to write {what} of an AvailabilitySet");
            NotWritten
        })?;
        self.object.send_if_modified(|known| {
            put(known, object.clone());
            false
        });
        Ok(object)
    }
}

fn path(set: &AvailabilitySet) -> String {
    let namespace = set.namespace().unwrap_or_default();
    format!(
        "/apis/fedrs.dev/v1alpha1/namespaces/{namespace}/availabilitysets/{}",
        set.name_any()
    )
}

fn involved_object(set: &AvailabilitySet) -> InvolvedObject {
    InvolvedObject {
        api_version: names::API_VERSION,
        kind: "AvailabilitySet",
        namespace: set.namespace().unwrap_or_default(),
        name: set.name_any(),
        uid: set.uid().unwrap_or_default(),
    }
}
