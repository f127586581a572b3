//! The plan of a ReplicaSet's reconciliation: `set, pods -> Plan {adopt, release, manage}`. Pure.
//!
//! The plan claims pods and decides how many to create or which to delete. Kubernetes' expectations, which bridge the time
//! between a write and its arrival in an informer, have no counterpart here: the index observes each write before the
//! next step.

use jiff::Timestamp;
use serde_json::Value;

use super::ranking::deletion_order;
use crate::controllers::pod::Pod;
use crate::object::{integer, is_terminating, uid};
use crate::selectors::object as selector;

/// The most pods that one reconciliation creates or deletes.
pub(crate) const BURST: usize = 500;

/// The plan for one set. Indexes are those of the given pods.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Plan {
    /// Matching orphans to adopt.
    pub(crate) adopt: Vec<usize>,
    /// Pods of the set to release because they no longer match.
    pub(crate) release: Vec<usize>,
    /// The set's active pods, adopted ones included. The status is computed from them, as they are before `manage`.
    pub(crate) claimed: Vec<usize>,
    /// Pods of the set that are terminating.
    pub(crate) terminating: Vec<usize>,
    /// The step towards the specified number of pods.
    pub(crate) manage: Manage,
}

/// A step towards the specified number of replicas.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Manage {
    /// Nothing: the number is right, or the set is being deleted.
    Nothing,
    /// Create this many pods, at most [`BURST`].
    Create(usize),
    /// Delete these pods in this order, at most [`BURST`].
    Delete(Vec<usize>),
}

/// The specified replicas; 1 if the field is absent.
pub(crate) fn wanted(set: &Value) -> usize {
    usize::try_from(integer(set, "/spec/replicas").unwrap_or(1)).unwrap_or_default()
}

/// Plans for `set`. `pods` are those it controls and the orphans of its namespace; `related` are the pods of all sets that
/// share its controller, for the order of deletion.
pub(crate) fn sync(set: &Value, pods: &[Pod<'_>], related: &[Pod<'_>], now: Timestamp) -> Plan {
    let mut plan = Plan {
        adopt: Vec::new(),
        release: Vec::new(),
        claimed: Vec::new(),
        terminating: Vec::new(),
        manage: Manage::Nothing,
    };
    for (index, pod) in pods.iter().enumerate() {
        claim(set, *pod, index, &mut plan);
    }
    if !is_terminating(set) {
        plan.manage = manage(wanted(set), pods, &plan.claimed, related, now);
    }
    plan
}

fn claim(set: &Value, pod: Pod<'_>, index: usize, plan: &mut Plan) {
    let matches = selector::matches(&set["spec"]["selector"], pod.labels());
    let controller = pod.controller_uid();
    let terminating = is_terminating(set);
    if controller == uid(set) && matches && pod.is_terminating() && !pod.is_terminal() {
        plan.terminating.push(index);
    }
    if !pod.is_active() {
        return;
    }
    if controller == uid(set) {
        if matches {
            plan.claimed.push(index);
        } else if !terminating {
            plan.release.push(index);
        }
    } else if controller.is_empty() && matches && !terminating {
        plan.adopt.push(index);
        plan.claimed.push(index);
    }
}

fn manage(
    wanted: usize,
    pods: &[Pod<'_>],
    claimed: &[usize],
    related: &[Pod<'_>],
    now: Timestamp,
) -> Manage {
    if claimed.len() < wanted {
        return Manage::Create((wanted - claimed.len()).min(BURST));
    }
    let surplus = (claimed.len() - wanted).min(BURST);
    if surplus == 0 {
        return Manage::Nothing;
    }
    if surplus == claimed.len() {
        return Manage::Delete(claimed.to_vec());
    }
    let own: Vec<Pod<'_>> = claimed.iter().map(|&index| pods[index]).collect();
    Manage::Delete(
        deletion_order(&own, related, now)
            .into_iter()
            .take(surplus)
            .map(|place| claimed[place])
            .collect(),
    )
}

/// The sizes of the batches in which `count` creations are tried: 1, 2, 4, ... A batch with a failure is the last.
pub(crate) fn slow_start(count: usize) -> impl Iterator<Item = usize> {
    let mut remaining = count;
    let mut next = 1;
    std::iter::from_fn(move || {
        let batch = next.min(remaining);
        remaining -= batch;
        next = batch * 2;
        (batch > 0).then_some(batch)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn set(replicas: i64) -> Value {
        json!({
            "metadata": {"name": "web", "uid": "rs"},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}},
        })
    }

    fn pod(app: &str, owner: &str, phase: &str) -> Value {
        let mut pod = json!({"metadata": {"name": "p", "uid": "p", "labels": {"app": app}}, "status": {"phase": phase}});
        if !owner.is_empty() {
            pod["metadata"]["ownerReferences"] = json!([{"uid": owner, "controller": true}]);
        }
        pod
    }

    fn terminating(mut object: Value) -> Value {
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        object
    }

    fn decide(set: &Value, pods: &[Value]) -> Plan {
        let pods: Vec<Pod<'_>> = pods.iter().map(Pod).collect();
        sync(set, &pods, &[], Timestamp::UNIX_EPOCH)
    }

    /// Claimed, adopted, released and terminating, as counts.
    #[rstest]
    #[case::own(pod("web", "rs", "Running"), [1, 0, 0, 0])]
    #[case::orphan_is_adopted(pod("web", "", "Running"), [1, 1, 0, 0])]
    #[case::another_sets(pod("web", "other", "Running"), [0, 0, 0, 0])]
    #[case::own_no_longer_matching_is_released(pod("db", "rs", "Running"), [0, 0, 1, 0])]
    #[case::strange_orphan(pod("db", "", "Running"), [0, 0, 0, 0])]
    #[case::failed(pod("web", "rs", "Failed"), [0, 0, 0, 0])]
    #[case::succeeded_orphan(pod("web", "", "Succeeded"), [0, 0, 0, 0])]
    #[case::terminating(terminating(pod("web", "rs", "Running")), [0, 0, 0, 1])]
    #[case::terminating_orphan(terminating(pod("web", "", "Running")), [0, 0, 0, 0])]
    #[case::terminating_and_failed(terminating(pod("web", "rs", "Failed")), [0, 0, 0, 0])]
    fn claims(#[case] pod: Value, #[case] expected: [usize; 4]) {
        let plan = decide(&set(1), &[pod]);
        assert_eq!(
            [
                plan.claimed.len(),
                plan.adopt.len(),
                plan.release.len(),
                plan.terminating.len()
            ],
            expected
        );
    }

    #[test]
    fn a_set_being_deleted_adopts_releases_and_manages_nothing() {
        let plan = decide(
            &terminating(set(3)),
            &[
                pod("web", "", "Running"),
                pod("db", "rs", "Running"),
                pod("web", "rs", "Running"),
            ],
        );
        assert_eq!(
            (plan.adopt.len(), plan.release.len(), plan.claimed),
            (0, 0, vec![2])
        );
        assert_eq!(plan.manage, Manage::Nothing);
    }

    #[rstest]
    #[case::missing(3, 1, Manage::Create(2))]
    #[case::burst(2000, 0, Manage::Create(500))]
    #[case::right(2, 2, Manage::Nothing)]
    #[case::surplus(1, 2, Manage::Delete(vec![0]))]
    #[case::all(0, 2, Manage::Delete(vec![0, 1]))]
    fn manages(#[case] replicas: i64, #[case] present: usize, #[case] expected: Manage) {
        let pods: Vec<Value> = (0..present).map(|_| pod("web", "rs", "Running")).collect();
        assert_eq!(decide(&set(replicas), &pods).manage, expected);
    }

    #[test]
    fn batches_double() {
        assert_eq!(slow_start(10).collect::<Vec<_>>(), [1, 2, 4, 3]);
        assert_eq!(slow_start(0).count(), 0);
    }
}
