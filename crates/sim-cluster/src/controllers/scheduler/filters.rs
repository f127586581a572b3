//! The filters of the scheduler: `pod, node -> reasons why the node does not fit`. They run in the order of Kubernetes'
//! plugins, and the first that rejects the node gives the reason: unschedulable, taints, node affinity, ports, resources.

use std::borrow::Cow;

use serde_json::Value;

use crate::controllers::pod::Pod;
use crate::controllers::taints::{self, hinders_placement, tolerates};
use crate::object::{at, flag, integer, list, map, name, text};
use crate::selectors::object::{contains, requirement_holds, value_fits};

use super::amounts::Amounts;
use super::nodes::NodeInfo;

const ANY_ADDRESS: &str = "0.0.0.0";

/// A reason, as the pod's condition counts it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct UnfitReason {
    pub(crate) text: Cow<'static, str>,
    /// Preemption cannot help.
    pub(crate) unresolvable: bool,
}

impl UnfitReason {
    /// A reason that lies in the pods of the node.
    pub(crate) fn unschedulable(text: impl Into<Cow<'static, str>>) -> Self {
        Self {
            text: text.into(),
            unresolvable: false,
        }
    }

    /// A reason that lies in the node itself.
    pub(crate) fn unresolvable(text: impl Into<Cow<'static, str>>) -> Self {
        Self {
            text: text.into(),
            unresolvable: true,
        }
    }
}

/// The reasons of the filters that need only the pod and the node; empty if the node fits.
pub(crate) fn unfit_reasons(pod: Pod<'_>, requests: &Amounts, node: &NodeInfo) -> Vec<UnfitReason> {
    if !tolerates_cordon(pod, &node.object) {
        vec![UnfitReason::unresolvable("node(s) were unschedulable")]
    } else if hinders_placement(&node.object, pod.tolerations()) {
        vec![UnfitReason::unresolvable(
            "node(s) had untolerated taint(s)",
        )]
    } else if !matches_node_affinity(pod, &node.object) {
        vec![UnfitReason::unresolvable(
            "node(s) didn't match Pod's node affinity/selector",
        )]
    } else if wants_a_taken_port(pod, node) {
        vec![UnfitReason::unschedulable(
            "node(s) didn't have free ports for the requested pod ports",
        )]
    } else {
        lacks(requests, node)
    }
}

/// Whether another pod of the node has one of the pod's host ports.
fn wants_a_taken_port(pod: Pod<'_>, node: &NodeInfo) -> bool {
    let is_taken = |wanted: HostPort<'_>| {
        let mut others = node
            .pods
            .values()
            .flat_map(|(there, _)| host_ports(Pod(there)));
        others.any(|other| wanted.excludes(other))
    };
    host_ports(pod).any(is_taken)
}

/// A host port: address, number, protocol.
#[derive(Clone, Copy)]
struct HostPort<'a> {
    address: &'a str,
    number: i64,
    protocol: &'a str,
}

impl HostPort<'_> {
    fn excludes(self, other: HostPort<'_>) -> bool {
        let overlap =
            [self.address, other.address].contains(&ANY_ADDRESS) || self.address == other.address;
        overlap && (self.number, self.protocol) == (other.number, other.protocol)
    }
}

/// The host ports of the containers that keep running: regular ones and sidecars.
fn host_ports(pod: Pod<'_>) -> impl Iterator<Item = HostPort<'_>> {
    let sidecars = list(pod.0, "/spec/initContainers").iter();
    let sidecars = sidecars.filter(|container| text(container, "/restartPolicy") == "Always");
    let ports = pod
        .containers()
        .iter()
        .chain(sidecars)
        .flat_map(|container| list(container, "/ports"));
    ports.filter_map(move |port| {
        Some(HostPort {
            number: integer(port, "/hostPort").filter(|number| *number > 0)?,
            address: Some(text(port, "/hostIP"))
                .filter(|address| !address.is_empty())
                .unwrap_or(ANY_ADDRESS),
            protocol: Some(text(port, "/protocol"))
                .filter(|protocol| !protocol.is_empty())
                .unwrap_or("TCP"),
        })
    })
}

/// Whether the node is not cordoned, or the pod tolerates the taint of cordoned nodes.
pub(crate) fn tolerates_cordon(pod: Pod<'_>, node: &Value) -> bool {
    let taint = serde_json::json!({"key": taints::UNSCHEDULABLE, "effect": "NoSchedule"});
    !flag(node, "/spec/unschedulable")
        || pod
            .tolerations()
            .iter()
            .any(|toleration| tolerates(toleration, &taint))
}

/// `spec.nodeSelector` and the required node affinity.
pub(crate) fn matches_node_affinity(pod: Pod<'_>, node: &Value) -> bool {
    let labels = map(node, "/metadata/labels");
    if !contains(labels, map(pod.0, "/spec/nodeSelector")) {
        return false;
    }
    let path = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution";
    let Some(required) = at(pod.0, path) else {
        return true;
    };
    let terms = list(required, "/nodeSelectorTerms");
    terms.iter().any(|term| term_matches(term, node))
}

/// The sum of the weights of the preferred node affinity that the node has.
pub(crate) fn preference(pod: Pod<'_>, node: &Value) -> i64 {
    let path = "/spec/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution";
    let terms = list(pod.0, path).iter();
    let matching = terms.filter(|term| term_matches(&term["preference"], node));
    matching.filter_map(|term| integer(term, "/weight")).sum()
}

fn term_matches(term: &Value, node: &Value) -> bool {
    let labels = map(node, "/metadata/labels");
    let (expressions, fields) = (list(term, "/matchExpressions"), list(term, "/matchFields"));
    let field = |rule: &Value| match text(rule, "/key") {
        "metadata.name" => value_fits(rule, Some(name(node))),
        _ => false,
    };
    // A term without requirements matches nothing.
    !(expressions.is_empty() && fields.is_empty())
        && expressions
            .iter()
            .all(|rule| requirement_holds(rule, labels))
        && fields.iter().all(field)
}

/// The resources of which the node has too little.
fn lacks(requests: &Amounts, node: &NodeInfo) -> Vec<UnfitReason> {
    let mut unfit_reasons = Vec::new();
    for (resource, wanted) in requests.iter().filter(|(_, wanted)| *wanted > 0) {
        let capacity = node.allocatable.get(resource);
        if wanted <= capacity.saturating_sub(node.used.get(resource)) {
            continue;
        }
        unfit_reasons.push(match resource {
            "pods" => UnfitReason::unschedulable("Too many pods"),
            _ if wanted > capacity => UnfitReason::unresolvable(format!("Insufficient {resource}")),
            _ => UnfitReason::unschedulable(format!("Insufficient {resource}")),
        });
    }
    unfit_reasons
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value, reason = "cases are written as values")]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;
    use std::sync::Arc;

    fn node() -> Value {
        json!({
            "metadata": {"name": "n1", "labels": {"zone": "a", "cores": "8"}},
            "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "1", "example.com/gpu": "1"}},
        })
    }

    fn ask(cpu: &str) -> Value {
        json!({"containers": [{"resources": {"requests": {"cpu": cpu}}}]})
    }

    fn affinity(term: Value) -> Value {
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}})
    }

    fn refused(spec: Value, node: Value) -> Vec<(String, bool)> {
        let pod = json!({"metadata": {"name": "p"}, "spec": spec});
        let node = NodeInfo::new(Arc::new(node));
        let unfit_reasons = unfit_reasons(Pod(&pod), &Amounts::of_pod(Pod(&pod)), &node);
        unfit_reasons
            .into_iter()
            .map(|unfit_reason| (unfit_reason.text.into_owned(), unfit_reason.unresolvable))
            .collect()
    }

    const AFFINITY: &str = "node(s) didn't match Pod's node affinity/selector";

    #[rstest]
    #[case::fits(ask("2"), None)]
    #[case::more_than_it_has(ask("2001m"), Some("Insufficient cpu"))]
    #[case::extended(json!({"containers": [{"resources": {"requests": {"example.com/gpu": "2"}}}]}), Some("Insufficient example.com/gpu"))]
    #[case::unknown(json!({"containers": [{"resources": {"requests": {"example.com/tpu": "1"}}}]}), Some("Insufficient example.com/tpu"))]
    #[case::selector(json!({"nodeSelector": {"zone": "a"}}), None)]
    #[case::other_selector(json!({"nodeSelector": {"zone": "b"}}), Some(AFFINITY))]
    #[case::affinity(affinity(json!({"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["4"]}]})), None)]
    #[case::other_affinity(affinity(json!({"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]})), Some(AFFINITY))]
    #[case::empty_term(affinity(json!({})), Some(AFFINITY))]
    #[case::by_name(affinity(json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]})), None)]
    #[case::by_other_name(affinity(json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]})), Some(AFFINITY))]
    fn filters(#[case] spec: Value, #[case] expected: Option<&str>) {
        let expected: Vec<_> = expected
            .into_iter()
            .map(|text| (text.to_owned(), true))
            .collect();
        assert_eq!(refused(spec, node()), expected);
    }

    #[test]
    fn a_full_node_reports_each_missing_resource() {
        let mut info = NodeInfo::new(Arc::new(node()));
        let pod = json!({"metadata": {"name": "p", "uid": "p"}, "spec": ask("1500m")});
        info.add(Arc::new(pod.clone()));
        let unfit_reasons = unfit_reasons(Pod(&pod), &Amounts::of_pod(Pod(&pod)), &info);
        assert_eq!(
            unfit_reasons,
            [
                UnfitReason::unschedulable("Insufficient cpu"),
                UnfitReason::unschedulable("Too many pods")
            ]
        );
    }

    fn port(port: Value) -> Value {
        let port = json!({"name": "a", "ports": [port]});
        json!({"containers": [port]})
    }

    #[rstest]
    #[case::same(port(json!({"hostPort": 80})), true)]
    #[case::of_a_sidecar(json!({"containers": [], "initContainers": [{"restartPolicy": "Always", "ports": [{"hostPort": 80}]}]}), true)]
    #[case::before_it_starts(json!({"containers": [], "initContainers": [{"ports": [{"hostPort": 80}]}]}), false)]
    #[case::another(port(json!({"hostPort": 81})), false)]
    #[case::of_the_pod_alone(port(json!({"containerPort": 80})), false)]
    #[case::another_protocol(port(json!({"hostPort": 80, "protocol": "UDP"})), false)]
    #[case::one_address(port(json!({"hostPort": 80, "hostIP": "10.0.0.1"})), true)]
    fn a_host_port_is_used_by_one_pod(#[case] spec: Value, #[case] refused: bool) {
        let mut info = NodeInfo::new(Arc::new(
            json!({"metadata": {"name": "n"}, "status": {"allocatable": {"pods": "9"}}}),
        ));
        info.add(Arc::new(
            json!({"metadata": {"uid": "there"}, "spec": port(json!({"hostPort": 80}))}),
        ));
        let pod = json!({"metadata": {"uid": "p"}, "spec": spec});
        let wanted = refused.then(|| {
            UnfitReason::unschedulable("node(s) didn't have free ports for the requested pod ports")
        });
        assert_eq!(
            super::unfit_reasons(Pod(&pod), &Amounts::of_pod(Pod(&pod)), &info),
            Vec::from_iter(wanted)
        );
    }

    #[rstest]
    #[case::cordoned(json!({"unschedulable": true}), json!([]), Some("node(s) were unschedulable"))]
    #[case::cordon_tolerated(json!({"unschedulable": true}), json!([{"operator": "Exists"}]), None)]
    #[case::tainted(json!({"taints": [{"key": "k", "effect": "NoSchedule"}]}), json!([]), Some("node(s) had untolerated taint(s)"))]
    #[case::soft(json!({"taints": [{"key": "k", "effect": "PreferNoSchedule"}]}), json!([]), None)]
    #[case::tolerated(json!({"taints": [{"key": "k", "effect": "NoExecute"}]}), json!([{"key": "k", "operator": "Exists"}]), None)]
    fn cordons_and_taints(
        #[case] spec: Value,
        #[case] tolerations: Value,
        #[case] expected: Option<&str>,
    ) {
        let mut node = node();
        node["spec"] = spec;
        let expected: Vec<_> = expected
            .into_iter()
            .map(|text| (text.to_owned(), true))
            .collect();
        assert_eq!(refused(json!({"tolerations": tolerations}), node), expected);
    }
}
