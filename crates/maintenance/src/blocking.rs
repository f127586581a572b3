//! The pods that have to leave and wait: the MigrationRequests of pods that are still on their nodes.

use std::collections::BTreeMap;

use fedrs_api::{BLOCKING_MAX, BlockingPod, MigrationPhase};
use jiff::Timestamp;

use crate::observed::{Observed, PodId};

/// Those of one cluster.
pub(crate) fn of_cluster(cluster: &str, observed: &Observed) -> Vec<BlockingPod> {
    let left: BTreeMap<&PodId, &str> = observed
        .pods
        .iter()
        .flat_map(|(node, pods)| pods.iter().map(move |pod| (pod, node.as_str())))
        .collect();
    let blocking = observed.requests.iter().filter_map(|request| {
        let status = &request.status;
        let pod = request.pod();
        // A request that has ended is of an earlier pod of that name.
        let node = left
            .get(&pod)
            .filter(|_| !status.phase.is_some_and(MigrationPhase::is_end))?;
        Some(BlockingPod {
            cluster: cluster.to_owned(),
            node: (*node).to_owned(),
            namespace: pod.0,
            pod: pod.1,
            phase: status.phase,
            message: status.message.clone(),
            until: status.until.clone(),
            deadline: (status.deadline.clone()).or_else(|| request.spec.deadline.clone()),
        })
    });
    blocking.collect()
}

/// The first of all by their deadlines, and how many there are.
pub(crate) fn shown(mut all: Vec<BlockingPod>) -> (Vec<BlockingPod>, i32) {
    let total = all.len().try_into().unwrap_or(i32::MAX);
    all.sort_by_cached_key(|pod| {
        let deadline = pod
            .deadline
            .as_ref()
            .map_or(Timestamp::MAX, |deadline| deadline.0);
        let place = (pod.cluster.clone(), pod.namespace.clone(), pod.pod.clone());
        (deadline, place)
    });
    all.truncate(BLOCKING_MAX);
    (all, total)
}
