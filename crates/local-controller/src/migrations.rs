//! The migrations of a set's pods: what MigrationRequests and the MigrationPolicy ask for, before a step, and how far each is, after it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use controller_base::{
    calls::{self, CallError},
    clock::whole_seconds,
    watchdog::Watched,
};
use fedrs_api::{
    LocalRecord, MigrationCause, MigrationPhase, MigrationRequest, MigrationRequestSpec,
    MigrationRequestStatus, ValidMigrationPolicy, names,
};
use futures::future::{join, join_all};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use replica_set_controller::{
    Eviction, EvictionBy, Life, MigrationState, MigrationStates, Plan, Pod, Policy,
    RequestedMigration, Set,
};
use serde_json::json;
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    backoff::Backoff,
    config::MigrationConfig,
    entry::Entry,
    execute::Executor,
    migration_object::RequestObject,
    store::{Node, Snapshot},
    waiting,
};

/// The MigrationPolicy of a set, and the MigrationRequests of its pods that have not ended.
pub(crate) struct Migrations {
    /// `Err` says why the policy is not known.
    policy: Result<Option<Arc<ValidMigrationPolicy>>, String>,
    /// The requests by the uid of their pod, which may be gone.
    of_pods: BTreeMap<String, Vec<Arc<RequestObject>>>,
    /// After how long a pod is moved whatever holds it up (M15).
    deadline: Duration,
    /// The deadlines of the nodes of pods, by the uid of the pod.
    of_nodes: BTreeMap<String, Timestamp>,
}

impl Migrations {
    /// Those of `snapshot`. `default_policy` is of sets that have none.
    pub(crate) fn of(
        snapshot: &Snapshot,
        default_policy: Option<&Arc<ValidMigrationPolicy>>,
        config: &MigrationConfig,
    ) -> Self {
        let policy = snapshot.policy.clone();
        let policy = policy.map(|own| own.or_else(|| default_policy.cloned()));
        let own = policy.as_ref().ok().and_then(Option::as_ref);
        let shorter = own.and_then(|policy| policy.deadline);
        Self {
            of_pods: by_pod(snapshot),
            of_nodes: node_deadlines(snapshot),
            deadline: shorter.map_or(config.deadline, |shorter| shorter.min(config.deadline)),
            policy,
        }
    }

    /// The policy for a step.
    pub(crate) fn policy(&self) -> Policy<'_> {
        match &self.policy {
            Ok(None) => Policy::None,
            Ok(Some(policy)) => Policy::Is(policy),
            Err(_) => Policy::Unknown,
        }
    }

    /// Why the policy is not known.
    pub(crate) fn unknown_policy(&self) -> Option<&str> {
        self.policy.as_ref().err().map(String::as_str)
    }

    /// The label by which pods are grouped into shards (M6).
    pub(crate) fn shard_label(&self) -> Option<&str> {
        Some(&self.known_policy()?.per_shard.as_ref()?.label)
    }

    /// Whether pods stay until their containers have stopped when they are removed (M11).
    pub(crate) fn adds_finalizer(&self) -> bool {
        self.known_policy()
            .is_some_and(|policy| policy.shutdown.is_some())
    }

    fn known_policy(&self) -> Option<&ValidMigrationPolicy> {
        self.policy.as_ref().ok()?.as_deref()
    }

    /// Adds the requests to the facts of the pods.
    pub(crate) fn add_to<'a>(&self, snapshot: &'a Snapshot, pods: &mut [Pod<'a>]) {
        let label = self.shard_label();
        for pod in pods {
            if let Some(label) = label {
                let labels = snapshot.pods.get(pod.uid).and_then(|pod| pod.labels());
                pod.shard = labels.and_then(|labels| labels.get(label).map(String::as_str));
            }
            for request in self.of_pods.get(pod.uid).into_iter().flatten() {
                self.add_request(request, pod);
            }
        }
    }

    fn add_request(&self, request: &RequestObject, pod: &mut Pod<'_>) {
        let confirmation = request.0.spec.confirmation.as_ref();
        let is_destroyed = confirmation.is_some_and(|of| of.machine_is_destroyed);
        pod.is_destroyed |= is_destroyed;
        if !request.is_cancelled() && !request.follows_its_cause() {
            let by = match request.0.spec.cause {
                MigrationCause::Node => Eviction::Involuntary,
                _ => Eviction::Voluntary,
            };
            pod.eviction = pod.eviction.into_iter().chain([by]).min();
            pod.eviction_by = EvictionBy::Pod;
        } else if pod.eviction.is_none() {
            return;
        }
        // What a person confirms counts, also if the pod leaves for another reason than a request that was cancelled: it has no other one.
        let new = RequestedMigration {
            deadline: self.deadline_of(request, pod.uid),
            is_compaction: request.is_compaction(),
            confirmed: request.confirmed(),
        };
        let merged = pod.migration.map_or(new, |other| new.merged(other));
        pod.migration = Some(merged);
    }

    /// When the pod is moved whatever holds it up. That of its node counts as long as it is there, if it leaves because of its node.
    fn deadline_of(&self, request: &RequestObject, pod_uid: &str) -> Timestamp {
        let own = request.deadline(self.deadline);
        let of_node = self.of_nodes.get(pod_uid).copied();
        let of_node = of_node.filter(|_| request.follows_its_cause());
        of_node.map_or(own, |of_node| of_node.min(own))
    }

    /// The requests whose statuses have changed, with these.
    fn changed(
        &self,
        set: &Set<'_>,
        states: &MigrationStates<'_, '_>,
        now: Timestamp,
    ) -> Vec<(&RequestObject, MigrationRequestStatus)> {
        let requests = self.of_pods.iter().flat_map(|(uid, requests)| {
            let of_pod = requests.iter().map(|request| &**request);
            of_pod.map(move |request| (uid, request))
        });
        let changed = requests.filter_map(|(uid, request)| {
            let previous = request.status().cloned().unwrap_or_default();
            let has_begun = previous.has_begun();
            let known = Some(&*previous.new_pod).filter(|name| !name.is_empty());
            let successor = known.unwrap_or(request.pod_name());
            let state = states.of(uid, successor, has_begun);
            let status = self.status(set, (request, uid), &state, &previous, now);
            (status != previous).then_some((request, status))
        });
        changed.collect()
    }

    fn status(
        &self,
        set: &Set<'_>,
        (request, pod_uid): (&RequestObject, &str),
        state: &MigrationState<'_>,
        previous: &MigrationRequestStatus,
        now: Timestamp,
    ) -> MigrationRequestStatus {
        let successor = state.successor;
        let mut status = MigrationRequestStatus {
            message: waiting::message(request, state, self.unknown_policy()),
            awaits: state.awaits,
            reason: waiting::reason(state),
            // With fractions, which the API server does not keep, each look would write it again.
            until: state.until.map(|until| Time(whole_seconds(until))),
            deadline: previous
                .deadline
                .clone()
                .filter(|_| state.node.is_none())
                .or_else(|| Some(Time(whole_seconds(self.deadline_of(request, pod_uid))))),
            replica_set: set.name.to_owned(),
            pod_uid: pod_uid.to_owned(),
            node: state
                .node
                .map_or_else(|| previous.node.clone(), str::to_owned),
            new_pod: successor.map_or_else(String::new, |pod| pod.name.to_owned()),
            new_node: successor
                .and_then(|pod| pod.node)
                .map_or_else(String::new, |node| node.name.to_owned()),
            forced: previous.forced || state.is_forced,
            ..previous.clone()
        };
        let phase = match state.phase {
            MigrationPhase::Done if status.forced => MigrationPhase::Forced,
            phase => phase,
        };
        status.reach(phase, now);
        status
    }

    /// The requests that are missing: of pods that have to leave their nodes by a policy, and of which no request says so (M8: the history);
    /// of pods that somebody has removed, and that a person has to look after.
    fn missing(
        &self,
        entry: &Entry,
        (set, pods): (&Set<'_>, &[Pod<'_>]),
        now: Timestamp,
    ) -> Vec<MigrationRequest> {
        if !matches!(self.policy, Ok(Some(_))) {
            return Vec::new();
        }
        let is_asked = |pod: &Pod<'_>| match pod.life {
            Life::Live(_) => pod.eviction.is_some(),
            Life::Terminating { .. } => pod.waits_for_a_person(set, now),
            Life::Terminated => false,
        };
        let pods = pods.iter().filter(|pod| {
            let has_request = self.of_pods.contains_key(pod.uid);
            !has_request && is_asked(pod)
        });
        pods.map(|pod| request_of(entry, pod)).collect()
    }
}

/// The deadlines of the nodes of a snapshot's pods, by the uid of the pod.
fn node_deadlines(snapshot: &Snapshot) -> BTreeMap<String, Timestamp> {
    let deadline = |node: &Node| match node {
        Node::Exists(state) => state.deadline,
        Node::Gone => None,
    };
    // Most of the time, no node has one.
    if !snapshot.nodes.values().any(|node| deadline(node).is_some()) {
        return BTreeMap::new();
    }
    let pods = snapshot.pods.iter();
    let deadlines = pods.filter_map(|(uid, pod)| {
        let node = snapshot.nodes.get(pod.node()?)?;
        Some((uid.clone(), deadline(node)?))
    });
    deadlines.collect()
}

/// The requests of a snapshot by the uid of their pod: the one that they name, or the one that has its name now.
fn by_pod(snapshot: &Snapshot) -> BTreeMap<String, Vec<Arc<RequestObject>>> {
    let mut of_pods: BTreeMap<String, Vec<Arc<RequestObject>>> = BTreeMap::new();
    for request in &snapshot.requests {
        let named = || {
            let mut pods = snapshot.pods.values();
            let pod = pods.find(|pod| pod.name() == request.pod_name())?;
            Some(pod.uid())
        };
        if let Some(uid) = request.pod_uid().or_else(named) {
            let of_pod = of_pods.entry(uid.to_owned()).or_default();
            of_pod.push(Arc::clone(request));
        }
    }
    of_pods
}

/// The request for a pod that its node, or a mark of its own, asks to leave.
fn request_of(entry: &Entry, pod: &Pod<'_>) -> MigrationRequest {
    let node = pod.node.map_or("", |node| node.name);
    let (cause, reason) = match (pod.eviction_by, pod.eviction) {
        (_, None) => (
            MigrationCause::Person,
            "the pod was removed, and may still run".to_owned(),
        ),
        (EvictionBy::Pod, _) => (
            MigrationCause::Person,
            "the pod has fedrs.dev/evict".to_owned(),
        ),
        (EvictionBy::Node, Some(Eviction::Involuntary)) => (
            MigrationCause::Node,
            format!("node {node} is gone, out of service, or not ready for too long"),
        ),
        (EvictionBy::Node, _) => (MigrationCause::Maintenance, node_asks(node)),
    };
    let spec = MigrationRequestSpec {
        pod_name: pod.name.to_owned(),
        pod_uid: Some(pod.uid.to_owned()),
        cause,
        reason,
        ..MigrationRequestSpec::default()
    };
    let mut request = MigrationRequest::new("", spec);
    request.metadata.namespace = Some(entry.key.namespace.to_string());
    let owner = json!([{
        "apiVersion": names::API_VERSION,
        "kind": "LocalReplicaSet",
        "name": &*entry.key.name,
        "uid": entry.uid,
        "controller": true,
    }]);
    request.metadata.owner_references = serde_json::from_value(owner).ok();
    request
}

/// Why a pod leaves a node with a mark, for people.
pub(crate) fn node_asks(node: &str) -> String {
    format!("node {node} has the label fedrs.dev/evict")
}

/// Whether a step begins evictions, or ends them. Then requests and their statuses are written before the record: afterwards, a pod that is
/// gone at once would never get a request (M8), and nothing would show that one which is gone was evicted.
pub(crate) fn changes_evictions(before: &LocalRecord, after: &LocalRecord) -> bool {
    fn begun(record: &LocalRecord) -> impl Iterator<Item = &String> {
        let begun = record.evictions.iter().filter(|(_, of)| of.begun);
        begun.map(|(uid, _)| uid)
    }
    !begun(before).eq(begun(after))
}

/// What the states of migrations follow from: a set and its pods, the step for them and what is recorded, and the time.
type States<'s, 'a> = (
    (&'s Set<'a>, &'a [Pod<'a>]),
    (&'s Plan<'a>, &'s LocalRecord),
    Timestamp,
);

/// What became of the status of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Done,
    /// The request has changed meanwhile, and is known.
    Outdated,
    Failed,
}

impl Executor {
    /// Writes how far the migrations of a set are by what is recorded, and the requests that are missing; not during a pause after a
    /// failure. Returns whether a request has changed meanwhile: it is decided upon again.
    pub(crate) async fn write_migrations(
        &self,
        (entry, migrations, backoff): (&Entry, &Migrations, &mut Backoff),
        ((set, pods), known, now): States<'_, '_>,
        watched: &Watched,
    ) -> bool {
        if backoff.waits() {
            return false;
        }
        let changed = if migrations.of_pods.is_empty() {
            Vec::new()
        } else {
            let states = MigrationStates::new(set, pods, known, now);
            migrations.changed(set, &states, now)
        };
        let statuses = changed.iter().map(async |(request, status)| {
            let _permit = self.permits.acquire().await.expect("it is never closed");
            let written = self.write_request_status(request, status).await;
            watched.beat();
            written
        });
        let missing = migrations.missing(entry, (set, pods), now).into_iter();
        let created = missing.map(async |request| {
            let _permit = self.permits.acquire().await.expect("it is never closed");
            let is_known = self.create_request(request).await;
            watched.beat();
            is_known
        });
        let (statuses, created) = join(join_all(statuses), join_all(created)).await;
        let has_failed = statuses.contains(&Written::Failed);
        if has_failed || created.contains(&false) {
            backoff.fail();
        } else {
            backoff.succeed();
        }
        statuses.contains(&Written::Outdated)
    }

    /// Writes the status of a request that is as it was decided from.
    pub(crate) async fn write_request_status(
        &self,
        request: &RequestObject,
        status: &MigrationRequestStatus,
    ) -> Written {
        let (namespace, name) = request.id();
        let path = request_path(namespace, name);
        let of = (Some(request.uid()), Some(request.version()));
        let call = calls::put_status::<RequestObject>(&self.client, &path, of, status);
        match self.call(call).await {
            Ok(object) => {
                self.metrics.wrote_migration(status);
                self.show(|state| state.apply_request(object));
                Written::Done
            }
            Err(error) => {
                let is_outdated = self.failed_request(&path, &error);
                if self.refresh_request(namespace, name).await && is_outdated {
                    Written::Outdated
                } else {
                    Written::Failed
                }
            }
        }
    }

    /// Makes a request, under the first name that is free. Returns whether it is there and known.
    pub(crate) async fn create_request(&self, mut request: MigrationRequest) -> bool {
        let namespace = request.metadata.namespace.clone().unwrap_or_default();
        let name = self.free_name(&namespace, &request.spec);
        request.metadata.name = Some(name.clone());
        let path = format!("/apis/fedrs.dev/v1alpha1/namespaces/{namespace}/migrationrequests");
        let call = calls::post::<RequestObject>(&self.client, &path, &request);
        match self.call(call).await {
            Ok(object) => {
                self.show(|state| state.apply_request(object));
                true
            }
            Err(error) if error.code() == Some(409) => {
                self.refresh_request(&namespace, &name).await
            }
            Err(error) => {
                self.failed_request(&path, &error);
                false
            }
        }
    }

    /// The first name for a request that no earlier one for the pod has: of two creations, one fails.
    fn free_name(&self, namespace: &str, spec: &MigrationRequestSpec) -> String {
        let uid = spec.pod_uid.as_deref().unwrap_or_default();
        let names = (0_u32..).map(|number| {
            let hash = xxh3_64(format!("{uid}/{number}").as_bytes());
            // A name has at most 253 characters.
            let pod: String = spec.pod_name.chars().take(240).collect();
            format!("{pod}-{:08x}", hash >> 32)
        });
        let is_free = |name: &String| {
            let has = |state: &mut crate::store::State| state.has_request(namespace, name);
            !self.store.update(has)
        };
        names.into_iter().find(is_free).unwrap_or_default()
    }

    async fn refresh_request(&self, namespace: &str, name: &str) -> bool {
        let path = request_path(namespace, name);
        let call = calls::get::<RequestObject>(&self.client, &path);
        match self.call(call).await {
            Ok(object) => self.show(|state| state.apply_request(object)),
            Err(error) if error.code() == Some(404) => {
                self.show(|state| state.remove_request(namespace, name))
            }
            Err(error) => {
                self.failed_request(&path, &error);
                return false;
            }
        };
        true
    }

    /// Whether it only failed because the request is not what was known of it.
    pub(crate) fn failed_request(&self, path: &str, error: &CallError) -> bool {
        let is_outdated = error.is_failed_test() || matches!(error.code(), Some(404 | 409));
        if !is_outdated {
            self.metrics.failed_requests.inc();
            tracing::warn!(path, %error, "failed to write or read a MigrationRequest");
        }
        is_outdated
    }
}

/// The path of a request.
pub(crate) fn request_path(namespace: &str, name: &str) -> String {
    format!("/apis/fedrs.dev/v1alpha1/namespaces/{namespace}/migrationrequests/{name}")
}
