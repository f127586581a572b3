//! Observes what actually runs, independently of the controller: reads the clusters' stores in this process, because the
//! story disconnects the network.
//!
//! ```text
//! members' pods and local Deployments --.
//! host's set, MemberClusters   --+-- every 25 ms --> Snapshot --> runner (is the goal reached?), views
//! ```

use std::{
    collections::BTreeMap,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::Context;
use fedrs_api::{
    ConditionReason, ConditionType, FederatedReplicaSetStatus, MemberClusterStatus,
    MemberConditionType, MemberReason, conditions,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use sim_cluster::{Api, Kind, kinds};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    snapshot::{ClusterSnapshot, ReadyTracker, SetSnapshot, State},
    story::{APP_LABEL, NAMESPACE, SHOP, WEB},
};
use crate::embedded::EmbeddedClusters;

/// How often the observer reads the clusters. A pod of the demo takes 80 times as long to become ready.
pub(crate) const PERIOD: Duration = Duration::from_millis(25);

/// All sets of the story at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    /// The time since the demo started.
    pub(crate) at: Duration,
    /// The number of the current step; 0 before the first one.
    pub(crate) step: usize,
    /// The sets of the story, by name.
    pub(crate) sets: BTreeMap<&'static str, SetSnapshot>,
    /// The longest time between two observations.
    pub(crate) longest_gap: Duration,
}

/// Reads the clusters periodically.
struct Observer {
    host: Api,
    sets_kind: Kind,
    members_kind: Kind,
    members: Vec<(String, Api)>,
    started: Instant,
}

/// Observes `clusters` until `cancel`, on a thread of its own, so that a busy runtime does not delay it. The CRDs are installed
/// on the host. `steps` has the number of the current step.
pub(crate) fn start(
    clusters: &EmbeddedClusters,
    steps: watch::Receiver<usize>,
    snapshots: watch::Sender<Snapshot>,
    cancel: CancellationToken,
) -> anyhow::Result<JoinHandle<()>> {
    let kind = |name| {
        let kind = clusters.host().kind_of("fedrs.dev/v1alpha1", name);
        kind.with_context(|| format!("the embedded host does not serve {name}"))
    };
    let members = clusters.members();
    let observer = Observer {
        host: clusters.host().clone(),
        sets_kind: kind("FederatedDeployment")?,
        members_kind: kind("MemberCluster")?,
        members: members
            .map(|member| (member.name().to_owned(), member.api().clone()))
            .collect(),
        started: Instant::now(),
    };
    let thread = thread::Builder::new().name("observer".to_owned());
    let observing = thread.spawn(move || {
        let mut snapshot = Snapshot::default();
        while !cancel.is_cancelled() {
            snapshot = observer.observe(snapshot, *steps.borrow());
            snapshots.send_replace(snapshot.clone());
            thread::sleep(PERIOD);
        }
    });
    Ok(observing?)
}

impl Observer {
    fn observe(&self, before: Snapshot, step: usize) -> Snapshot {
        let at = self.started.elapsed();
        let mut sets = before.sets;
        for name in [WEB, SHOP] {
            let mut tracker = sets.remove(name).unwrap_or_default().ready_tracker;
            if step != before.step {
                tracker.begin_step();
            }
            sets.insert(name, self.set(name, tracker, at));
        }
        // There is no gap before the first observation.
        let gap = if before.at.is_zero() {
            before.at
        } else {
            at.saturating_sub(before.at)
        };
        Snapshot {
            at,
            step,
            sets,
            longest_gap: before.longest_gap.max(gap),
        }
    }

    fn set(&self, name: &str, mut tracker: ReadyTracker, at: Duration) -> SetSnapshot {
        // Read the members first: a scale-down between the reads must not look like a dip.
        let members = self.members.iter();
        let mut clusters: Vec<_> = members
            .map(|(member, api)| running(member, api, name))
            .collect();
        let set = self.host.get(&self.sets_kind, NAMESPACE, name).ok();
        let set = set.as_deref().unwrap_or(&Value::Null);
        let desired = set["spec"]["replicas"].as_u64();
        let status: FederatedReplicaSetStatus = parse(&set["status"]);
        for cluster in &mut clusters {
            self.add_status(cluster, &status);
        }
        let is_deleting = !set["metadata"]["deletionTimestamp"].is_null();
        let required = desired.filter(|_| !is_deleting).unwrap_or(0);
        let ready = clusters.iter().map(|cluster| cluster.ready).sum();
        tracker.record(required, ready, at);
        SetSnapshot {
            desired,
            settled: settled(set, &status),
            stopped: stopped(set, &status),
            unplaced: count(status.unplaced_replicas),
            clusters,
            ready_tracker: tracker,
        }
    }

    /// Adds what the set's status reports about the cluster.
    fn add_status(&self, cluster: &mut ClusterSnapshot, status: &FederatedReplicaSetStatus) {
        let mut clusters = status.clusters.iter();
        let reported = clusters.find(|reported| reported.name == cluster.name);
        cluster.desired = reported.map(|reported| count(reported.desired_replicas));
        cluster.updated = reported.map_or(0, |reported| count(reported.updated_replicas));
        cluster.reason = reported.map_or_else(String::new, |reported| reported.message.clone());
        let capacity = reported.and_then(|reported| reported.capacity).map(count);
        cluster.state = self.state(&cluster.name, cluster.desired, capacity);
    }

    /// The state of the cluster, according to its MemberCluster and the set's status.
    fn state(&self, name: &str, desired: Option<u64>, full: Option<u64>) -> State {
        let object = self.host.get(&self.members_kind, "", name).ok();
        let status: MemberClusterStatus = object
            .map(|object| parse(&object["status"]))
            .unwrap_or_default();
        let Some(ready) = conditions::find(&status.conditions, MemberConditionType::Ready) else {
            return State::Joining;
        };
        if ready.status == "True" {
            return full.map_or(State::Ready, State::Full);
        }
        match MemberReason::parse(&ready.reason) {
            Some(MemberReason::NotProbed) => State::Joining,
            _ if status.unreachable_since.is_some() && desired == Some(0) => State::Lost,
            _ => State::Unreachable,
        }
    }
}

/// What the member `name` runs for a set.
fn running(name: &str, api: &Api, set: &str) -> ClusterSnapshot {
    let local = api.get(&kinds::DEPLOYMENTS, NAMESPACE, set).ok();
    let spec_replicas = local.and_then(|set| set["spec"]["replicas"].as_u64());
    let mut running = ClusterSnapshot {
        name: name.to_owned(),
        spec_replicas: spec_replicas.unwrap_or(0),
        ..ClusterSnapshot::default()
    };
    for pod in api.list(&kinds::PODS, Some(NAMESPACE)) {
        let metadata = &pod["metadata"];
        if metadata["labels"][APP_LABEL] != set {
            continue;
        }
        if !metadata["deletionTimestamp"].is_null() {
            running.terminating += 1;
            continue;
        }
        running.pods += 1;
        running.ready += u64::from(is_ready(&pod));
        running.pending += u64::from(pod["spec"]["nodeName"].is_null());
    }
    running
}

fn is_ready(pod: &Value) -> bool {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// Whether the status observes the current spec and reports no change in progress.
fn settled(set: &Value, status: &FederatedReplicaSetStatus) -> bool {
    let generation = set["metadata"]["generation"].as_i64();
    status.observed_generation == generation
        && conditions::find(&status.conditions, ConditionType::Ready).is_some()
        && !conditions::is_true(&status.conditions, ConditionType::Reconciling)
}

/// Whether the status reports that the rollout of the current spec has stopped without progress.
fn stopped(set: &Value, status: &FederatedReplicaSetStatus) -> bool {
    let generation = set["metadata"]["generation"].as_i64();
    let progressing = conditions::find(&status.conditions, ConditionType::Progressing);
    status.observed_generation == generation
        && progressing.is_some_and(|condition| {
            condition.reason == ConditionReason::ProgressDeadlineExceeded.as_str()
        })
}

fn parse<T: DeserializeOwned + Default>(value: &Value) -> T {
    T::deserialize(value).unwrap_or_default()
}

/// A count in a status, which is never negative.
fn count(replicas: i32) -> u64 {
    u64::try_from(replicas).unwrap_or(0)
}
