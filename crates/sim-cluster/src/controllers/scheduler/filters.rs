//! Why one node can't take a pod: `pod, node -> refusals`. In the order in which Kubernetes' plugins look, the first that
//! refuses speaks: unschedulable, taints, node affinity, resources, spreading, affinity among pods.

use std::borrow::Cow;

use serde_json::Value;

use crate::controllers::object::{at, flag, list, map, name, text};
use crate::controllers::pod::Pod;
use crate::controllers::selector::{contains, holds, requirement_holds};
use crate::controllers::taints::{self, hinders_placement, tolerates};

use super::amounts::Amounts;
use super::nodes::NodeInfo;

/// One reason, as it's counted in the pod's condition.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) text: Cow<'static, str>,
    /// No eviction of other pods could help.
    pub(crate) hopeless: bool,
}

impl Refusal {
    /// Refused because of the pods that are there.
    pub(crate) fn by_pods(text: impl Into<Cow<'static, str>>) -> Self {
        Self {
            text: text.into(),
            hopeless: false,
        }
    }

    /// Refused by the node itself.
    pub(crate) fn by_node(text: impl Into<Cow<'static, str>>) -> Self {
        Self {
            text: text.into(),
            hopeless: true,
        }
    }
}

/// The refusals of the filters that look at pod and node alone; empty if none refuses.
pub(crate) fn refusals(pod: Pod<'_>, requests: &Amounts, node: &NodeInfo) -> Vec<Refusal> {
    if !tolerates_cordon(pod, &node.object) {
        vec![Refusal::by_node("node(s) were unschedulable")]
    } else if hinders_placement(&node.object, pod.tolerations()) {
        vec![Refusal::by_node("node(s) had untolerated taint(s)")]
    } else if !matches_node_affinity(pod, &node.object) {
        vec![Refusal::by_node(
            "node(s) didn't match Pod's node affinity/selector",
        )]
    } else {
        lacks(requests, node)
    }
}

/// Not cordoned, or the pod tolerates the taint that stands for it.
pub(crate) fn tolerates_cordon(pod: Pod<'_>, node: &Value) -> bool {
    let taint = serde_json::json!({"key": taints::UNSCHEDULABLE, "effect": "NoSchedule"});
    !flag(node, &["spec", "unschedulable"])
        || pod
            .tolerations()
            .iter()
            .any(|toleration| tolerates(toleration, &taint))
}

/// `spec.nodeSelector` and the required node affinity.
pub(crate) fn matches_node_affinity(pod: Pod<'_>, node: &Value) -> bool {
    let labels = map(node, &["metadata", "labels"]);
    if !contains(labels, map(pod.0, &["spec", "nodeSelector"])) {
        return false;
    }
    let path = [
        "spec",
        "affinity",
        "nodeAffinity",
        "requiredDuringSchedulingIgnoredDuringExecution",
    ];
    let Some(required) = at(pod.0, &path) else {
        return true;
    };
    list(required, &["nodeSelectorTerms"]).iter().any(|term| {
        let (expressions, fields) = (
            list(term, &["matchExpressions"]),
            list(term, &["matchFields"]),
        );
        let field = |rule: &Value| match text(rule, &["key"]) {
            "metadata.name" => holds(
                text(rule, &["operator"]),
                Some(name(node)),
                list(rule, &["values"]),
            ),
            _ => false,
        };
        // A term without any rule matches nothing.
        !(expressions.is_empty() && fields.is_empty())
            && expressions
                .iter()
                .all(|rule| requirement_holds(rule, labels))
            && fields.iter().all(field)
    })
}

/// The resources of which the node has too little left.
fn lacks(requests: &Amounts, node: &NodeInfo) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    for (resource, wanted) in requests.iter().filter(|(_, wanted)| *wanted > 0) {
        let capacity = node.allocatable.get(resource);
        if wanted <= capacity.saturating_sub(node.used.get(resource)) {
            continue;
        }
        refusals.push(match resource {
            "pods" => Refusal::by_pods("Too many pods"),
            _ if wanted > capacity => Refusal::by_node(format!("Insufficient {resource}")),
            _ => Refusal::by_pods(format!("Insufficient {resource}")),
        });
    }
    refusals
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
        let refusals = refusals(Pod(&pod), &Amounts::of_pod(Pod(&pod)), &node);
        refusals
            .into_iter()
            .map(|refusal| (refusal.text.into_owned(), refusal.hopeless))
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
    fn a_full_node_could_be_emptied() {
        let mut info = NodeInfo::new(Arc::new(node()));
        let pod = json!({"metadata": {"name": "p", "uid": "p"}, "spec": ask("1500m")});
        info.add(Arc::new(pod.clone()));
        let refusals = refusals(Pod(&pod), &Amounts::of_pod(Pod(&pod)), &info);
        assert_eq!(
            refusals,
            [
                Refusal::by_pods("Insufficient cpu"),
                Refusal::by_pods("Too many pods")
            ]
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
