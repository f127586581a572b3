//! The task of one Maintenance: reads its members, plans, and carries the plan out.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use controller_base::{
    answers::{Answer, Answers},
    calls::{self, CallError},
    clock::Clock,
    event_recorder::{EventRecorder, InvolvedObject},
    finalizer,
    members::{Access, Members},
    object_tasks::{Newest, put},
};
use fedrs_api::{Maintenance, finalizers, names};
use futures::future::join_all;
use kube::{Client, ResourceExt};
use serde::de::IgnoredAny;
use tokio::{sync::Semaphore, time::Instant};

use crate::{
    goal::{Goal, Scope},
    metrics::{Counted, MaintenanceMetrics},
    node_patch::NodePatch,
    observed::Observed,
    plan::{FinalizerChange, Input, PERIOD, Plan, plan},
    read::{self, NODES},
};

/// Where Maintenances are.
pub(crate) const PATH: &str = "/apis/fedrs.dev/v1alpha1/maintenances";
/// Members that are asked at a time.
const MEMBERS_AT_A_TIME: usize = 16;
/// Patches that one member gets at a time.
const PATCHES_AT_A_TIME: usize = 8;
/// The pause while clients of members are being made.
const JOINING_PAUSE: Duration = Duration::from_secs(1);

/// What the tasks of all Maintenances share.
pub(crate) struct Context {
    pub(crate) host: Client,
    pub(crate) members: Arc<dyn Members>,
    pub(crate) clock: Clock,
    pub(crate) call_timeout: Duration,
    pub(crate) joining_timeout: Duration,
    pub(crate) recorder: EventRecorder,
    pub(crate) metrics: MaintenanceMetrics,
}

/// The task of one Maintenance.
pub(crate) struct MaintenanceTask {
    context: Arc<Context>,
    object: Newest<Maintenance>,
    counted: Counted,
    /// What members answered to the last patches of nodes.
    answers: Answers,
    started: Instant,
}

/// A write to the host did not succeed: the object is seen again.
struct NotWritten;

impl MaintenanceTask {
    pub(crate) fn new(context: Arc<Context>, object: Newest<Maintenance>) -> Self {
        Self {
            counted: Counted::new(context.metrics.clone()),
            context,
            object,
            answers: Answers::default(),
            started: Instant::now(),
        }
    }

    /// Looks at the Maintenance when it changes, and when something is due. Never ends.
    pub(crate) async fn run(mut self) {
        let mut changes = self.object.subscribe();
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
        let maintenance = self.object.borrow().clone();
        let access = self.context.members.all();
        let members: BTreeSet<String> = access.keys().cloned().collect();
        let now = self.context.clock.machine();
        let goal = Goal::of(&maintenance, &members, now);
        let scopes = goal.scopes(&maintenance, &members);
        let is_joining = |name| matches!(access.get(name), Some(Access::Joining));
        if self.started.elapsed() < self.context.joining_timeout && scopes.keys().any(is_joining) {
            return Some(JOINING_PAUSE);
        }
        let observed = self.observe(&maintenance, &scopes, &access).await;
        self.answers.retain(|name| scopes.contains_key(name));
        let plan = plan(&Input {
            maintenance: &maintenance,
            members: &members,
            observed: &observed,
            rejected: self.answers.rejected(),
            now,
        });
        self.counted.count(&plan.status);
        let next = plan.next;
        match self.carry_out(maintenance, plan, &access).await {
            Ok(false) => next,
            // Nothing was known of the finalizer when it was planned.
            Ok(true) => Some(Duration::ZERO),
            Err(NotWritten) => Some(PERIOD),
        }
    }

    async fn observe(
        &self,
        maintenance: &Maintenance,
        scopes: &BTreeMap<String, Scope>,
        access: &BTreeMap<String, Access>,
    ) -> BTreeMap<String, Result<Observed, String>> {
        let selector = &maintenance.spec.node_selector;
        let timeout = self.context.call_timeout;
        let slots = Semaphore::new(MEMBERS_AT_A_TIME);
        let reads = scopes.iter().map(async |(name, scope)| {
            let _slot = slots.acquire().await;
            let observed = match access.get(name) {
                Some(Access::Client(client)) => {
                    let observed = read::observe(client, selector, scope, timeout).await;
                    observed.map_err(|error| error.to_string())
                }
                Some(Access::Unreachable(why)) => Err(why.clone()),
                Some(Access::Joining) | None => Err("it is not connected yet".to_owned()),
            };
            (name.clone(), observed)
        });
        join_all(reads).await.into_iter().collect()
    }

    /// Writes what the plan says: a finalizer first, then the status, by which marks are found, then marks. Returns whether a finalizer was
    /// added.
    async fn carry_out(
        &mut self,
        maintenance: Maintenance,
        plan: Plan,
        access: &BTreeMap<String, Access>,
    ) -> Result<bool, NotWritten> {
        let mut maintenance = maintenance;
        let adds = plan.finalizer == Some(FinalizerChange::Add);
        if adds {
            maintenance = self.change_finalizer(&maintenance, true).await?;
        }
        if maintenance.status.as_ref() != Some(&plan.status) {
            maintenance = self.write_status(&maintenance, &plan).await?;
            let involved = involved_object(&maintenance);
            for event in plan.events.iter().cloned() {
                self.context.recorder.record(&involved, event);
            }
        }
        let slots = Semaphore::new(MEMBERS_AT_A_TIME);
        let patches = plan.patches.iter().map(async |(cluster, patches)| {
            let _slot = slots.acquire().await;
            let Some(Access::Client(client)) = access.get(cluster) else {
                return None;
            };
            let answer = self.patch_nodes(cluster, client, patches).await;
            Some((cluster.clone(), answer))
        });
        let answers = join_all(patches).await;
        self.answers.put(answers.into_iter().flatten());
        if plan.finalizer == Some(FinalizerChange::Remove) {
            self.change_finalizer(&maintenance, false).await?;
        }
        Ok(adds)
    }

    /// Sends patches to the nodes of a member, until it rejects one.
    async fn patch_nodes(&self, cluster: &str, client: &Client, patches: &[NodePatch]) -> Answer {
        let mut all = Answer::Accepted;
        for some in patches.chunks(PATCHES_AT_A_TIME) {
            let sent = some.iter().map(async |patch| {
                let path = format!("{NODES}/{}", patch.node);
                let call = calls::merge_patch::<IgnoredAny>(client, &path, &patch.body);
                calls::within(self.context.call_timeout, call).await
            });
            for (patch, answer) in some.iter().zip(join_all(sent).await) {
                let Err(error) = answer else { continue };
                if matches!(error.code(), Some(404 | 409)) {
                    all = Answer::Outdated(error.to_string());
                    continue;
                }
                self.context.metrics.failed_writes.inc();
                let node = &patch.node;
                tracing::warn!(cluster, node, %error, "failed to change a node");
                return Answer::Rejected(error.to_string());
            }
        }
        all
    }

    async fn write_status(
        &self,
        maintenance: &Maintenance,
        plan: &Plan,
    ) -> Result<Maintenance, NotWritten> {
        let metadata = &maintenance.metadata;
        let seen = (
            metadata.uid.as_deref(),
            metadata.resource_version.as_deref(),
        );
        let path = path(maintenance);
        let call = calls::put_status(&self.context.host, &path, seen, &plan.status);
        self.written(maintenance, "the status", call).await
    }

    async fn change_finalizer(
        &self,
        maintenance: &Maintenance,
        adds: bool,
    ) -> Result<Maintenance, NotWritten> {
        let metadata = &maintenance.metadata;
        let patch = if adds {
            finalizer::addition(metadata, finalizers::MAINTENANCE)
        } else {
            finalizer::removal(metadata, finalizers::MAINTENANCE)
        };
        let path = path(maintenance);
        let call = calls::merge_patch(&self.context.host, &path, &patch);
        self.written(maintenance, "the finalizer", call).await
    }

    /// Waits for the answer to a write to the host, and keeps the object in it.
    async fn written(
        &self,
        before: &Maintenance,
        what: &str,
        call: impl Future<Output = kube::Result<Maintenance>>,
    ) -> Result<Maintenance, NotWritten> {
        let answer = calls::within(self.context.call_timeout, call).await;
        let object: Maintenance = answer.map_err(|error: CallError| {
            let maintenance = before.name_any();
            tracing::warn!(maintenance, %error, "failed to write {what}");
            NotWritten
        })?;
        self.object.send_if_modified(|known| {
            put(known, object.clone());
            false
        });
        Ok(object)
    }
}

fn path(maintenance: &Maintenance) -> String {
    format!("{PATH}/{}", maintenance.name_any())
}

fn involved_object(maintenance: &Maintenance) -> InvolvedObject {
    InvolvedObject {
        api_version: names::API_VERSION,
        kind: "Maintenance",
        namespace: String::new(),
        name: maintenance.name_any(),
        uid: maintenance.uid().unwrap_or_default(),
    }
}
