//! Makes MigrationRequests for the pods of ReplicaSets on nodes that ask their pods to leave.

use std::{collections::HashMap, time::Duration};

use controller_base::{
    limited_list::{KeptLimit, Lists, ReadError},
    watchdog::Watched,
};
use futures::future::join_all;
use reflector::Collection;
use replica_set_controller::Eviction;
use tokio::time::sleep;

use super::{
    look::{NativeMigrations, Workloads},
    marked::{MarkedPod, Requested, missing},
};
use crate::backoff::Backoff;

const PODS: &str = "/api/v1/pods";
/// The time between two rounds.
const PERIOD: Duration = Duration::from_secs(10);
/// Requests that are made in one round: as many as are introduced until the next one.
const REQUESTED: usize = 100;
/// The lists of pods at a time, of a node each.
const LISTS_AT_A_TIME: usize = 8;
/// The most pods of the marked nodes.
const PODS_MAX: usize = 150_000;

/// What is known from one round to the next; without it, everything is tried again.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Namespace and name of the last pod that had its turn.
    last: Option<(String, String)>,
    /// The namespaces where requests could not be made.
    failing: HashMap<String, Backoff>,
}

impl Memory {
    fn waits(&self, namespace: &str) -> bool {
        self.failing.get(namespace).is_some_and(Backoff::waits)
    }

    fn tried(&mut self, pod: MarkedPod, is_made: Option<bool>) {
        match is_made {
            Some(true) => _ = self.failing.remove(&pod.namespace),
            Some(false) => self
                .failing
                .entry(pod.namespace.clone())
                .or_default()
                .fail(),
            None => {}
        }
        self.last = Some((pod.namespace, pod.name));
    }
}

impl NativeMigrations {
    /// Looks at marked nodes again and again. Its future ends when it is dropped.
    pub(crate) async fn run_marks(&self, watched: &Watched) {
        let mut memory = Memory::default();
        loop {
            sleep(PERIOD).await;
            let _busy = watched.begin("marks of nodes");
            self.ask(&mut memory, watched).await;
        }
    }

    /// Makes the requests that are missing, some at a time.
    async fn ask(&self, memory: &mut Memory, watched: &Watched) {
        let store = &self.executor.store;
        let marked = store.update(|state| state.marked_nodes());
        let metrics = &self.executor.metrics;
        if marked.is_empty() {
            metrics.unrequested_pods.set(0);
            *memory = Memory::default();
            return;
        }
        let pods = self.pods_on(marked.into_iter().collect(), watched).await;
        let requests = store.update(|state| state.requests());
        let requested = Requested::by(&requests);
        let last = memory.last.as_ref().map(|(a, b)| (a.as_str(), b.as_str()));
        let missing = missing(pods, &requested, last, self.clock.now());
        let all = missing.len();
        let mut workloads = Workloads::new();
        let (mut tried, mut made) = (0, 0);
        for pod in missing {
            if tried == REQUESTED || memory.waits(&pod.namespace) {
                continue;
            }
            let is_made = self.ask_one(&pod, &mut workloads).await;
            watched.beat();
            tried += 1;
            made += usize::from(is_made == Some(true));
            memory.tried(pod, is_made);
        }
        let unrequested = all.saturating_sub(made);
        let unrequested = i64::try_from(unrequested).unwrap_or(i64::MAX);
        metrics.unrequested_pods.set(unrequested);
    }

    /// Makes the request for one pod. Returns whether that has succeeded; `None` if it is not asked any more.
    async fn ask_one(&self, pod: &MarkedPod, workloads: &mut Workloads) -> Option<bool> {
        let is_marked = |node| (self.executor.store).update(|state| state.is_marked(node));
        if !is_marked(&pod.node) {
            return None;
        }
        let workload = match self.workload(&pod.namespace, &pod.set, workloads).await {
            Ok(workload) => workload?,
            Err(error) => {
                self.executor.metrics.failed_requests.inc();
                let (namespace, set) = (&pod.namespace, &pod.set);
                tracing::warn!(namespace, set, %error, "failed to read a ReplicaSet; trying again");
                return Some(false);
            }
        };
        // The garbage collector would remove what belongs to one that is gone, again and again.
        if workload.uid != pod.set_uid {
            return None;
        }
        let request = pod.request(workload.as_owner());
        Some(self.executor.create_request(request).await)
    }

    /// The pods of ReplicaSets on these nodes. Those of a node whose list fails are asked later.
    async fn pods_on(&self, nodes: Vec<(String, Eviction)>, watched: &Watched) -> Vec<MarkedPod> {
        let lists = Lists::new(&self.executor.client, self.executor.call_timeout);
        let limit = KeptLimit::new(PODS, PODS_MAX);
        let mut pods = Vec::new();
        for some in nodes.chunks(LISTS_AT_A_TIME) {
            let listed = some.iter().map(async |(node, eviction)| {
                let fields =
                    format!("spec.nodeName={node},status.phase!=Succeeded,status.phase!=Failed");
                let on_node = Collection::with_fields(PODS, fields).metadata();
                let keep = |pod| MarkedPod::of(pod, (node, *eviction));
                let pods = lists.list(on_node, &limit, keep).await;
                pods.unwrap_or_else(|error| self.not_listed(node, &error))
            });
            pods.extend(join_all(listed).await.into_iter().flatten());
            watched.beat();
        }
        pods
    }

    fn not_listed(&self, node: &str, error: &ReadError) -> Vec<MarkedPod> {
        self.executor.metrics.failed_requests.inc();
        tracing::warn!(node, %error, "failed to list the pods of a node that has to be left; trying again");
        Vec::new()
    }
}
