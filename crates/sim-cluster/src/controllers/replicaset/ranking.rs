//! The order in which a ReplicaSet that is scaled down deletes its pods: `pods -> pods in order of deletion`.
//!
//! The order is Kubernetes' own (`ActivePodsWithRanks`): 1 without a node, 2 by phase, 3 not ready, 4 lower deletion cost,
//! 5 on a node with more pods of the related sets, 6 ready for a shorter time, 7 more restarts, 8 newer.
//! Times are compared by powers of two of their age, and equal ones by uid, so that not always the newest node loses its
//! pods.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::controllers::pod::Pod;

/// The indexes of `pods` in order of deletion. `related` are the pods of all sets with the same controller as this one. It is
/// empty for a set without a controller, for which rule 5 decides nothing, as in Kubernetes.
pub(crate) fn deletion_order(pods: &[Pod<'_>], related: &[Pod<'_>], now: Timestamp) -> Vec<usize> {
    let mut on_node: BTreeMap<&str, usize> = BTreeMap::new();
    for pod in related.iter().filter(|pod| pod.is_active()) {
        *on_node.entry(pod.node()).or_default() += 1;
    }
    let rank = |pod: &Pod<'_>| on_node.get(pod.node()).copied().unwrap_or_default();
    let compare = |a: usize, b: usize| {
        let (left, right) = (pods[a], pods[b]);
        by_state(left, right)
            .then_with(|| rank(&right).cmp(&rank(&left)))
            .then_with(|| by_ready_time(left, right, now))
            .then_with(|| right.restarts().cmp(&left.restarts()))
            .then_with(|| younger_first(left.created(), right.created(), (left, right), now))
    };
    // Kubernetes' rules can form a cycle (uids decide within a bucket, restarts between equal times), on which `sort_by` may
    // panic. Insertion one by one does not, and orders every cycle in the same way each time.
    let mut order: Vec<usize> = Vec::with_capacity(pods.len());
    for pod in 0..pods.len() {
        let place = order.partition_point(|&earlier| compare(earlier, pod) != Ordering::Greater);
        order.insert(place, pod);
    }
    order
}

/// Rules 1 to 4.
fn by_state(left: Pod<'_>, right: Pod<'_>) -> Ordering {
    (!left.node().is_empty())
        .cmp(&!right.node().is_empty())
        .then_with(|| phase_rank(left).cmp(&phase_rank(right)))
        .then_with(|| left.is_ready().cmp(&right.is_ready()))
        .then_with(|| left.deletion_cost().cmp(&right.deletion_cost()))
}

fn phase_rank(pod: Pod<'_>) -> u8 {
    match pod.phase() {
        "Running" => 2,
        "Unknown" => 1,
        _ => 0,
    }
}

/// Rule 6, for pods that are both ready.
fn by_ready_time(left: Pod<'_>, right: Pod<'_>, now: Timestamp) -> Ordering {
    if left.is_ready() && right.is_ready() {
        younger_first(left.ready_since(), right.ready_since(), (left, right), now)
    } else {
        Ordering::Equal
    }
}

/// The later time first, an absent time before all others; times in one bucket are ordered by uid.
fn younger_first(
    left: Option<Timestamp>,
    right: Option<Timestamp>,
    pods: (Pod<'_>, Pod<'_>),
    now: Timestamp,
) -> Ordering {
    match (left, right) {
        (left, right) if left == right => Ordering::Equal,
        (None, _) => Ordering::Less,
        (_, None) => Ordering::Greater,
        (Some(left), Some(right)) => age_bucket(left, now)
            .cmp(&age_bucket(right, now))
            .then_with(|| pods.0.uid().cmp(pods.1.uid())),
    }
}

/// The binary logarithm of the age in nanoseconds; -1 for a time in the future.
fn age_bucket(time: Timestamp, now: Timestamp) -> i64 {
    let nanoseconds = now.as_nanosecond() - time.as_nanosecond();
    if nanoseconds > 0 {
        i64::from(nanoseconds.ilog2())
    } else {
        -1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    const NOW: i64 = 1_000_000;

    fn pod(uid: &str, node: &str, phase: &str, ready_for: Option<i64>, age: i64) -> Value {
        let at = |ago: i64| Timestamp::from_second(NOW - ago).unwrap().to_string();
        let mut pod = json!({
            "metadata": {"name": uid, "uid": uid, "creationTimestamp": at(age)},
            "spec": {"nodeName": node}, "status": {"phase": phase},
        });
        if let Some(ago) = ready_for {
            pod["status"]["conditions"] =
                json!([{"type": "Ready", "status": "True", "lastTransitionTime": at(ago)}]);
        }
        pod
    }

    fn with(mut pod: Value, pointer: &[&str], value: Value) -> Value {
        let mut place = &mut pod;
        for name in pointer {
            place = &mut place[*name];
        }
        *place = value;
        pod
    }

    fn cost(pod: Value, cost: &str) -> Value {
        with(
            pod,
            &["metadata", "annotations"],
            json!({DELETION_COST: cost}),
        )
    }

    fn restarts(pod: Value, count: i64) -> Value {
        with(
            pod,
            &["status", "containerStatuses"],
            json!([{"restartCount": 0}, {"restartCount": count}]),
        )
    }

    const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

    fn order(pods: &[Value], related: &[Value]) -> Vec<usize> {
        let view = |pods: &'_ [Value]| pods.iter().map(|p| Pod(p).0.clone()).collect::<Vec<_>>();
        let (pods, related) = (view(pods), view(related));
        let pods: Vec<Pod<'_>> = pods.iter().map(Pod).collect();
        let related: Vec<Pod<'_>> = related.iter().map(Pod).collect();
        deletion_order(&pods, &related, Timestamp::from_second(NOW).unwrap())
    }

    /// In each case the first pod is deleted before the second.
    #[rstest]
    #[case::r1_unassigned_first(
        pod("b", "", "Running", None, 9),
        pod("a", "n", "Pending", None, 9)
    )]
    #[case::r2_pending_before_unknown(
        pod("b", "n", "Pending", None, 9),
        pod("a", "n", "Unknown", None, 9)
    )]
    #[case::r2_unknown_before_running(
        pod("b", "n", "Unknown", None, 9),
        pod("a", "n", "Running", None, 9)
    )]
    #[case::r3_not_ready_first(
        pod("b", "n", "Running", None, 900),
        pod("a", "n", "Running", Some(1), 9)
    )]
    #[case::r4_cheaper_first(
        cost(pod("b", "n", "Running", Some(99), 99), "-5"),
        pod("a", "n", "Running", Some(1), 9)
    )]
    #[case::r4_nonsense_is_0(
        cost(pod("b", "n", "Running", Some(1), 9), "many"),
        cost(pod("a", "n", "Running", Some(1), 9), "1")
    )]
    #[case::r6_ready_for_less_time(
        pod("b", "n", "Running", Some(10), 99),
        pod("a", "n", "Running", Some(90), 99)
    )]
    #[case::r6_same_bucket_by_uid(
        pod("a", "n", "Running", Some(61), 99),
        pod("b", "n", "Running", Some(60), 9)
    )]
    #[case::r7_more_restarts(
        restarts(pod("b", "n", "Running", None, 99), 2),
        restarts(pod("a", "n", "Running", None, 9), 1)
    )]
    #[case::r8_newer_first(pod("b", "n", "Pending", None, 9), pod("a", "n", "Pending", None, 99))]
    #[case::r8_same_bucket_by_uid(
        pod("a", "n", "Pending", None, 61),
        pod("b", "n", "Pending", None, 60)
    )]
    fn is_deleted_before(#[case] first: Value, #[case] second: Value) {
        assert_eq!(order(&[first.clone(), second.clone()], &[]), [0, 1]);
        assert_eq!(order(&[second, first], &[]), [1, 0]);
    }

    #[test]
    fn r5_pods_that_share_a_node_are_deleted_first_if_the_set_has_a_controller() {
        let pods = [
            pod("a", "n1", "Running", Some(50), 99),
            pod("b", "n2", "Running", Some(50), 99),
        ];
        let crowd = [
            pods[0].clone(),
            pods[1].clone(),
            pod("c", "n2", "Running", None, 9),
        ];
        assert_eq!(order(&pods, &crowd), [1, 0]);
        assert_eq!(order(&pods, &[]), [0, 1]);
    }

    proptest! {
        /// The order of the input does not change which pods are deleted.
        #[test]
        fn the_order_of_the_input_does_not_matter(
            facts in proptest::collection::vec((0..2_u8, 0..3_u8, proptest::option::of(0..200_i64), 0..200_i64), 1..12),
            turn in 0..12_usize,
        ) {
            let pods: Vec<Value> = facts.iter().enumerate().map(|(i, &(node, phase, ready, age))| {
                let phase = ["Pending", "Unknown", "Running"][usize::from(phase)];
                pod(&format!("u{i}"), ["", "n"][usize::from(node)], phase, ready, age)
            }).collect();
            let mut turned = pods.clone();
            let turn = turn % pods.len();
            turned.rotate_left(turn);
            let names = |pods: &[Value]| order(pods, &[]).iter().map(|&i| pods[i]["metadata"]["name"].clone()).collect::<Vec<_>>();
            // Pods that are equal by all eight rules keep the order of the input: they are left out.
            let mut seen = std::collections::BTreeSet::new();
            prop_assume!(facts.iter().all(|fact| seen.insert(*fact)));
            prop_assume!(facts.iter().map(|f| f.3).collect::<std::collections::BTreeSet<_>>().len() == facts.len());
            prop_assert_eq!(names(&pods), names(&turned));
        }
    }
}
