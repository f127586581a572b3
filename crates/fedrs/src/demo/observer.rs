//! Looks at what really runs, independently of the controller: reads the clusters' stores in this process, not
//! through the network that the story breaks.
//!
//! ```text
//! members' pods and local sets --.
//! host's set, MemberClusters   --+-- every 25 ms --> Scene --> story (is the goal reached?), screen
//! ```

use std::{
    collections::BTreeMap,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use fedrs_api::{FederatedReplicaSetStatus, MemberClusterStatus};
use serde::de::DeserializeOwned;
use serde_json::Value;
use sim_cluster::{Api, Kind, kinds};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    expect::NAMESPACE,
    scene::{MemberScene, ReadyWatch, SetScene, State},
    story::{SHOP, WEB},
};
use crate::sim::fleet::Fleet;

/// How often the clusters are looked at. A pod of the demo takes 40 times as long to get ready.
const PERIOD: Duration = Duration::from_millis(25);
/// The label that the story's pods carry: the user's own, not one of fedrs's marks.
pub(crate) const APP_LABEL: &str = "app";

/// Everything there is to see at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scene {
    /// Since the demo started.
    pub(crate) at: Duration,
    /// The step of the story, from 1; 0 before it begins.
    pub(crate) step: usize,
    /// The sets of the story, by name.
    pub(crate) sets: BTreeMap<&'static str, SetScene>,
    /// The longest time between two looks.
    pub(crate) longest_gap: Duration,
}

/// Where the observer looks.
pub(crate) struct Observer {
    host: Api,
    sets_kind: Kind,
    members_kind: Kind,
    members: Vec<(String, Api)>,
    started: Instant,
}

impl Observer {
    /// An observer of `fleet`, whose host has the CRDs.
    pub(crate) fn of(fleet: &Fleet) -> anyhow::Result<Self> {
        let kind = |name| {
            let kind = fleet.host().kind_of("fedrs.dev/v1alpha1", name);
            kind.ok_or_else(|| anyhow::anyhow!("the embedded host does not serve {name}"))
        };
        Ok(Self {
            host: fleet.host().clone(),
            sets_kind: kind("FederatedReplicaSet")?,
            members_kind: kind("MemberCluster")?,
            members: fleet
                .members()
                .map(|(name, api)| (name.to_owned(), api.clone()))
                .collect(),
            started: Instant::now(),
        })
    }

    /// Looks until `cancel`, on a thread of its own: a busy runtime must not make it look away. `steps` says
    /// which step of the story it is.
    pub(crate) fn start(
        self,
        steps: watch::Receiver<usize>,
        scenes: watch::Sender<Scene>,
        cancel: CancellationToken,
    ) -> std::io::Result<JoinHandle<()>> {
        let look = move || {
            let mut scene = Scene::default();
            while !cancel.is_cancelled() {
                scene = self.look(scene, *steps.borrow());
                scenes.send_replace(scene.clone());
                thread::sleep(PERIOD);
            }
        };
        thread::Builder::new()
            .name("observer".to_owned())
            .spawn(look)
    }

    fn look(&self, before: Scene, step: usize) -> Scene {
        let at = self.started.elapsed();
        let mut sets = before.sets;
        for name in [WEB, SHOP] {
            let mut watch = sets.remove(name).unwrap_or_default().watch;
            if step != before.step {
                watch.begin();
            }
            sets.insert(name, self.set(name, watch, at));
        }
        // There is no gap before the first look.
        let gap = if before.at.is_zero() {
            before.at
        } else {
            at.saturating_sub(before.at)
        };
        Scene {
            at,
            step,
            sets,
            longest_gap: before.longest_gap.max(gap),
        }
    }

    fn set(&self, name: &str, mut watch: ReadyWatch, at: Duration) -> SetScene {
        // The members first: a set that asks for less meanwhile has not lost anything yet.
        let running: Vec<_> = self
            .members
            .iter()
            .map(|(_, api)| running(api, name))
            .collect();
        let set = self.host.get(&self.sets_kind, NAMESPACE, name).ok();
        let wanted = set
            .as_ref()
            .and_then(|set| set["spec"]["replicas"].as_u64());
        let status: FederatedReplicaSetStatus = set
            .as_ref()
            .and_then(|set| parse(&set["status"]))
            .unwrap_or_default();
        let deleting = set
            .as_ref()
            .is_some_and(|set| !set["metadata"]["deletionTimestamp"].is_null());
        let members: Vec<_> = self
            .members
            .iter()
            .zip(running)
            .map(|((member, _), running)| self.member(member, &status, running))
            .collect();
        let ready = members.iter().map(|it| it.ready).sum();
        watch.sample(if deleting { 0 } else { wanted.unwrap_or(0) }, ready, at);
        SetScene {
            wanted,
            settled: set.as_ref().is_some_and(|set| settled(set, &status)),
            unplaced: u64::try_from(status.unplaced_replicas).unwrap_or(0),
            members,
            watch,
        }
    }

    fn member(
        &self,
        name: &str,
        status: &FederatedReplicaSetStatus,
        running: Running,
    ) -> MemberScene {
        let cluster = status.clusters.iter().find(|it| it.name == name);
        let desired = cluster.map(|it| u64::try_from(it.desired_replicas).unwrap_or(0));
        let full = cluster
            .and_then(|it| it.capacity)
            .map(|it| u64::try_from(it).unwrap_or(0));
        MemberScene {
            name: name.to_owned(),
            desired,
            reason: cluster.map(|it| it.message.clone()).unwrap_or_default(),
            state: self.state(name, desired, full),
            asked: running.asked,
            pods: running.pods,
            ready: running.ready,
            waiting: running.waiting,
            stopping: running.stopping,
        }
    }

    /// How the member is, by its MemberCluster, and for the set.
    fn state(&self, name: &str, desired: Option<u64>, full: Option<u64>) -> State {
        let object = self.host.get(&self.members_kind, "", name).ok();
        let status: MemberClusterStatus = object
            .and_then(|object| parse(&object["status"]))
            .unwrap_or_default();
        let Some(ready) = status.conditions.iter().find(|it| it.type_ == "Ready") else {
            return State::Joining;
        };
        match (ready.status.as_str(), ready.reason.as_str()) {
            ("True", _) => full.map_or(State::Healthy, State::Full),
            (_, "Unknown") => State::Joining,
            _ if status.unreachable_since.is_some() && desired == Some(0) => State::Lost,
            _ => State::Unreachable,
        }
    }
}

/// What one member runs of a set.
#[derive(Clone, Copy, Debug, Default)]
struct Running {
    asked: u64,
    pods: u64,
    ready: u64,
    waiting: u64,
    stopping: u64,
}

fn running(api: &Api, set: &str) -> Running {
    let local = api.get(&kinds::REPLICA_SETS, NAMESPACE, set).ok();
    let mut running = Running {
        asked: local
            .and_then(|set| set["spec"]["replicas"].as_u64())
            .unwrap_or(0),
        ..Running::default()
    };
    for pod in api.list(&kinds::PODS, Some(NAMESPACE)) {
        let metadata = &pod["metadata"];
        if metadata["labels"][APP_LABEL] != set {
            continue;
        }
        if !metadata["deletionTimestamp"].is_null() {
            running.stopping += 1;
            continue;
        }
        running.pods += 1;
        running.ready += u64::from(is_ready(&pod));
        running.waiting += u64::from(pod["spec"]["nodeName"].is_null());
    }
    running
}

fn is_ready(pod: &Value) -> bool {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|it| it["type"] == "Ready" && it["status"] == "True")
}

/// Whether the status answers the current spec and says that nothing is left to do.
fn settled(set: &Value, status: &FederatedReplicaSetStatus) -> bool {
    let generation = set["metadata"]["generation"].as_i64();
    let progressing = status
        .conditions
        .iter()
        .find(|it| it.type_ == "Progressing");
    status.observed_generation == generation && progressing.is_some_and(|it| it.status == "False")
}

fn parse<T: DeserializeOwned>(value: &Value) -> Option<T> {
    T::deserialize(value).ok()
}
