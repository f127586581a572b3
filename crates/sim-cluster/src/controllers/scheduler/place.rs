//! The placement of a pod: `pod, nodes -> node, or the reasons why none fits`. Pure.
//!
//! Of the nodes that pass every filter it chooses the one that the pod prefers most, then the one with the fewest pods of the same controller, then the least loaded,
//! then the one with the fewest pods, then the first by name (where Kubernetes chooses at random).

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use crate::controllers::pod::Pod;

use super::amounts::Amounts;
use super::filters::{UnfitReason, preference, unfit_reasons};
use super::nodes::NodeInfo;
use super::topology::Topology;

/// No node fits the pod. `Display` is the message of the pod's condition.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct FitError {
    nodes: usize,
    /// The number of nodes by reason.
    reasons: BTreeMap<String, usize>,
    /// The number of nodes on which preemption cannot help.
    unresolvable: usize,
    /// The pod does not preempt others.
    never_preempts: bool,
}

/// Picks the node for `pod`.
pub(crate) fn place<'n>(
    pod: Pod<'_>,
    nodes: &'n BTreeMap<String, NodeInfo>,
) -> Result<&'n str, FitError> {
    let requests = Amounts::of_pod(pod);
    let topology = Topology::new(pod, nodes);
    let mut none = FitError {
        never_preempts: pod.0["spec"]["preemptionPolicy"] == "Never",
        ..FitError::default()
    };
    let mut best = None;
    for (name, node) in nodes.iter().filter(|(_, node)| node.exists()) {
        let mut unfit_reasons = unfit_reasons(pod, &requests, node);
        if unfit_reasons.is_empty() {
            unfit_reasons.extend(topology.unfit_reason(node));
        }
        if unfit_reasons.is_empty() {
            let score = (
                Reverse(preference(pod, &node.object)),
                node.siblings(pod.controller_uid()),
                node.load_with(&requests),
                node.pods.len(),
            );
            if best.as_ref().is_none_or(|(least, _)| score < *least) {
                best = Some((score, name.as_str()));
            }
        } else {
            none.count(unfit_reasons);
        }
    }
    best.map(|(_, name)| name).ok_or(none)
}

impl FitError {
    fn count(&mut self, unfit_reasons: Vec<UnfitReason>) {
        self.nodes += 1;
        self.unresolvable += usize::from(
            unfit_reasons
                .iter()
                .any(|unfit_reason| unfit_reason.unresolvable),
        );
        for unfit_reason in unfit_reasons {
            *self
                .reasons
                .entry(unfit_reason.text.into_owned())
                .or_default() += 1;
        }
    }
}

impl fmt::Display for FitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = self.nodes;
        if nodes == 0 {
            return f.write_str("no nodes available to schedule pods");
        }
        let mut reasons: Vec<String> = self
            .reasons
            .iter()
            .map(|(text, count)| format!("{count} {text}"))
            .collect();
        reasons.sort();
        write!(f, "0/{nodes} nodes are available: {}.", reasons.join(", "))?;
        if self.never_preempts {
            return f.write_str(" preemption: not eligible due to preemptionPolicy=Never.");
        }
        let victims = nodes - self.unresolvable;
        let mut outlook = Vec::new();
        if self.unresolvable > 0 {
            outlook.push(format!(
                "{} Preemption is not helpful for scheduling",
                self.unresolvable
            ));
        }
        if victims > 0 {
            outlook.push(format!(
                "{victims} No preemption victims found for incoming pod"
            ));
        }
        outlook.sort();
        // "no new claims to deallocate" is the message of the plugin for resource claims about a pod without claims.
        write!(
            f,
            " no new claims to deallocate, preemption: 0/{nodes} nodes are available: {}.",
            outlook.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn node(name: &str, zone: &str, cpu: &str, pods: &str) -> (String, NodeInfo) {
        let object = json!({
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "zone": zone}},
            "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": pods}},
        });
        (name.to_owned(), NodeInfo::new(Arc::new(object)))
    }

    fn pod(uid: &str, app: &str, spec: Value) -> Value {
        let mut spec = spec;
        spec["containers"] = json!([{"resources": {"requests": {"cpu": "1"}}}]);
        json!({
            "metadata": {"name": uid, "uid": uid, "namespace": "default", "labels": {"app": app},
                "ownerReferences": [{"uid": app, "controller": true}]},
            "spec": spec,
        })
    }

    /// Places `count` pods one after the other and returns the last outcome.
    fn fill(
        nodes: &mut BTreeMap<String, NodeInfo>,
        app: &str,
        spec: &Value,
        count: usize,
    ) -> Result<String, String> {
        let mut last = Err("none asked for".to_owned());
        for i in 0..count {
            let pod = pod(&format!("{app}-{i}"), app, spec.clone());
            last = place(Pod(&pod), nodes)
                .map(str::to_owned)
                .map_err(|none| none.to_string());
            if let Ok(name) = &last {
                nodes.get_mut(name).unwrap().add(Arc::new(pod));
            }
        }
        last
    }

    fn two_zones() -> BTreeMap<String, NodeInfo> {
        [
            node("n1", "a", "4", "10"),
            node("n2", "a", "4", "10"),
            node("n3", "b", "4", "10"),
        ]
        .into()
    }

    fn counts(nodes: &BTreeMap<String, NodeInfo>) -> Vec<usize> {
        nodes.values().map(|node| node.pods.len()).collect()
    }

    #[test]
    fn replicas_spread_over_the_nodes() {
        let mut nodes = two_zones();
        fill(&mut nodes, "web", &json!({}), 6).unwrap();
        assert_eq!(counts(&nodes), [2, 2, 2]);
    }

    #[test]
    fn a_cluster_without_nodes_has_a_message_of_its_own() {
        assert_eq!(
            fill(&mut BTreeMap::new(), "web", &json!({}), 1).unwrap_err(),
            "no nodes available to schedule pods"
        );
    }

    #[test]
    fn the_message_counts_reasons() {
        let mut nodes: BTreeMap<_, _> = [
            node("n1", "a", "1", "10"),
            node("n2", "a", "500m", "10"),
            node("n3", "b", "9", "1"),
        ]
        .into();
        let full = fill(&mut nodes, "web", &json!({}), 3).unwrap_err();
        assert_eq!(
            full,
            "0/3 nodes are available: 1 Too many pods, 2 Insufficient cpu. no new claims to deallocate, preemption: 0/3 nodes \
             are available: 1 Preemption is not helpful for scheduling, 2 No preemption victims found for incoming pod."
        );
    }

    fn apart(key: &str) -> Value {
        let term = json!({"topologyKey": key, "labelSelector": {"matchLabels": {"app": "web"}}});
        json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}})
    }

    fn together() -> Value {
        let term = json!({"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}});
        json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}})
    }

    fn preferring(node: &str) -> Value {
        let fields = json!([{"key": "metadata.name", "operator": "In", "values": [node]}]);
        let term = json!({"weight": 100, "preference": {"matchFields": fields}});
        json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}})
    }

    fn evenly() -> Value {
        json!({"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}}}]})
    }

    #[rstest]
    #[case::apart_by_host(apart("kubernetes.io/hostname"), 3, vec![1, 1, 1])]
    #[case::apart_by_zone(apart("zone"), 2, vec![1, 0, 1])]
    #[case::together_by_zone(together(), 4, vec![2, 2, 0])]
    #[case::evenly_by_zone(evenly(), 6, vec![2, 1, 3])]
    #[case::preferring_a_node(preferring("n3"), 3, vec![0, 0, 3])]
    fn rules_between_pods(
        #[case] spec: Value,
        #[case] replicas: usize,
        #[case] expected: Vec<usize>,
    ) {
        let mut nodes = two_zones();
        fill(&mut nodes, "web", &spec, replicas).unwrap();
        assert_eq!(counts(&nodes), expected);
    }

    #[test]
    fn anti_affinity_of_placed_pods_excludes_other_pods() {
        let mut nodes = two_zones();
        fill(&mut nodes, "web", &apart("kubernetes.io/hostname"), 3).unwrap();
        let more = fill(&mut nodes, "web", &json!({}), 1).unwrap_err();
        assert!(more.starts_with("0/3 nodes are available: 3 node(s) didn't satisfy existing pods anti-affinity rules."), "{more}");
        fill(&mut nodes, "db", &json!({}), 1).unwrap();
    }

    proptest! {
        /// No node gets more pods than it has capacity, and a pod is unschedulable only if no node has capacity.
        #[test]
        fn nodes_are_filled_and_never_overfilled(rooms in proptest::collection::vec(0..5_usize, 1..5), pods in 1..20_usize) {
            let mut nodes: BTreeMap<_, _> =
                rooms.iter().enumerate().map(|(i, room)| node(&format!("n{i}"), "a", "100", &room.to_string())).collect();
            let last = fill(&mut nodes, "web", &json!({}), pods);
            let room: usize = rooms.iter().sum();
            prop_assert_eq!(last.is_ok(), pods <= room);
            for (node, room) in nodes.values().zip(&rooms) {
                prop_assert!(node.pods.len() <= *room);
            }
            prop_assert_eq!(nodes.values().map(|node| node.pods.len()).sum::<usize>(), pods.min(room));
        }
    }
}
