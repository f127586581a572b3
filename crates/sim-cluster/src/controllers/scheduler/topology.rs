//! Rules between pods: required affinity and anti-affinity by topology domain, and hard spreading constraints.
//! `pod, all nodes -> Topology`, which is then evaluated for each node. Only pods with such rules cause a scan of all pods.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::controllers::pod::Pod;
use crate::object::{integer, list, text};
use crate::selectors::object as selector;

use super::filters::{UnfitReason, matches_node_affinity};
use super::nodes::{NodeInfo, affinity, anti_affinity, spread};
use crate::controllers::taints::hinders_placement;

/// A topology domain: the label's key and its value on a node.
type Domain = (String, String);

/// The effect of the placed pods on one pod that is to be placed.
#[derive(Debug, Default)]
pub(crate) struct Topology<'a> {
    /// Domains in which this pod's own anti-affinity forbids it.
    repelled: BTreeSet<Domain>,
    /// Domains in which the anti-affinity of placed pods forbids it.
    unwanted: BTreeSet<Domain>,
    /// For each affinity term: its key and the domains that hold a matching pod.
    attracted: Vec<(&'a str, BTreeSet<String>)>,
    /// For each spreading constraint.
    spreads: Vec<Spread<'a>>,
}

#[derive(Debug)]
struct Spread<'a> {
    key: &'a str,
    max_skew: i64,
    /// 1 if the constraint's selector matches the pod itself.
    own: i64,
    /// Matching pods by domain, for the domains of nodes the pod could go to.
    counts: BTreeMap<String, i64>,
    /// The smallest of these, 0 while there are fewer domains than `minDomains`.
    least: i64,
}

impl<'a> Topology<'a> {
    /// Evaluates the rules of the pod and of the placed pods.
    pub(crate) fn new(pod: Pod<'a>, nodes: &BTreeMap<String, NodeInfo>) -> Self {
        let mut topology = Self::default();
        for node in nodes.values().filter(|node| node.exists()) {
            for there in node.exclusive.values().map(|there| Pod(there)) {
                let against = anti_affinity(there)
                    .iter()
                    .filter(|term| term_matches(term, there, pod));
                topology
                    .unwanted
                    .extend(against.filter_map(|term| domain(node, term)));
            }
        }
        let terms = anti_affinity(pod);
        for node in nodes
            .values()
            .filter(|node| !terms.is_empty() && node.exists())
        {
            let hit = |term: &&Value| {
                node.pods
                    .values()
                    .any(|(there, _)| term_matches(term, pod, Pod(there)))
            };
            topology.repelled.extend(
                terms
                    .iter()
                    .filter(hit)
                    .filter_map(|term| domain(node, term)),
            );
        }
        let terms = affinity(pod);
        topology.attracted = terms
            .iter()
            .map(|term| attraction(term, terms, pod, nodes))
            .collect();
        topology.spreads = spread(pod)
            .map(|constraint| Spread::new(constraint, pod, nodes))
            .collect();
        topology
    }

    /// The reason why the node does not fit, if it does not.
    pub(crate) fn unfit_reason(&self, node: &NodeInfo) -> Option<UnfitReason> {
        if let Some(unfit_reason) = self
            .spreads
            .iter()
            .find_map(|spread| spread.unfit_reason(node))
        {
            return Some(unfit_reason);
        }
        let close = |(key, domains): &(&str, BTreeSet<String>)| {
            node.label(key).is_some_and(|value| domains.contains(value))
        };
        let within = |domains: &BTreeSet<Domain>| {
            domains
                .iter()
                .any(|(key, value)| node.label(key) == Some(value))
        };
        if !self.attracted.iter().all(close) {
            Some(UnfitReason::unresolvable(
                "node(s) didn't match pod affinity rules",
            ))
        } else if within(&self.repelled) {
            Some(UnfitReason::unschedulable(
                "node(s) didn't match pod anti-affinity rules",
            ))
        } else if within(&self.unwanted) {
            Some(UnfitReason::unschedulable(
                "node(s) didn't satisfy existing pods anti-affinity rules",
            ))
        } else {
            None
        }
    }
}

fn domain(node: &NodeInfo, term: &Value) -> Option<Domain> {
    let key = text(term, "/topologyKey");
    Some((key.to_owned(), node.label(key)?.to_owned()))
}

/// Whether the term of `holder` matches `other`. A term without namespaces matches the holder's own namespace.
fn term_matches(term: &Value, holder: Pod<'_>, other: Pod<'_>) -> bool {
    let namespaces = list(term, "/namespaces");
    let namespace_fits = if let Some(all) = term
        .get("namespaceSelector")
        .filter(|selector| !selector.is_null())
    {
        // The labels of namespaces are not known here: an empty selector matches all, any other only the listed namespaces.
        all.as_object().is_some_and(serde_json::Map::is_empty)
            || namespaces.iter().any(|name| name == other.namespace())
    } else if namespaces.is_empty() {
        holder.namespace() == other.namespace()
    } else {
        namespaces.iter().any(|name| name == other.namespace())
    };
    namespace_fits && selector::matches(&term["labelSelector"], other.labels())
}

/// The domains of one of the pod's terms that have a pod which matches all terms. The first pod of a group that has affinity
/// to itself fits anywhere.
fn attraction<'a>(
    term: &'a Value,
    all: &[Value],
    pod: Pod<'_>,
    nodes: &BTreeMap<String, NodeInfo>,
) -> (&'a str, BTreeSet<String>) {
    let is_meant = |other: Pod<'_>| all.iter().all(|term| term_matches(term, pod, other));
    let key = text(term, "/topologyKey");
    let labelled = || {
        nodes
            .values()
            .filter_map(|node| Some((node, node.label(key)?.to_owned())))
    };
    let holds_match = |node: &NodeInfo| node.pods.values().any(|(there, _)| is_meant(Pod(there)));
    let mut domains: BTreeSet<String> = labelled()
        .filter(|(node, _)| holds_match(node))
        .map(|(_, value)| value)
        .collect();
    if domains.is_empty() && is_meant(pod) {
        domains = labelled().map(|(_, value)| value).collect();
    }
    (key, domains)
}

impl<'a> Spread<'a> {
    fn new(constraint: &'a Value, pod: Pod<'_>, nodes: &BTreeMap<String, NodeInfo>) -> Self {
        let key = text(constraint, "/topologyKey");
        let matches = |other: Pod<'_>| {
            other.namespace() == pod.namespace()
                && !other.is_terminating()
                && selector::matches(&constraint["labelSelector"], other.labels())
        };
        let mut counts: BTreeMap<String, i64> = BTreeMap::new();
        // Nodes that the pod's node affinity excludes do not count by default; tainted ones do.
        let policy = |name: &str, default: bool| match constraint[name].as_str().unwrap_or_default()
        {
            "Honor" => true,
            "Ignore" => false,
            _ => default,
        };
        let (by_affinity, by_taints) = (
            policy("nodeAffinityPolicy", true),
            policy("nodeTaintsPolicy", false),
        );
        let counts_for = |node: &&NodeInfo| {
            node.exists()
                && (!by_affinity || matches_node_affinity(pod, &node.object))
                && (!by_taints || !hinders_placement(&node.object, pod.tolerations()))
        };
        for node in nodes.values().filter(counts_for) {
            let Some(value) = node.label(key) else {
                continue;
            };
            let here = node
                .pods
                .values()
                .filter(|(there, _)| matches(Pod(there)))
                .count();
            *counts.entry(value.to_owned()).or_default() += i64::try_from(here).unwrap_or(i64::MAX);
        }
        let domains = i64::try_from(counts.len()).unwrap_or(i64::MAX);
        let enough = domains >= integer(constraint, "/minDomains").unwrap_or(1);
        let least = if enough {
            counts.values().copied().min().unwrap_or_default()
        } else {
            0
        };
        let max_skew = integer(constraint, "/maxSkew").unwrap_or(1);
        Self {
            key,
            max_skew,
            own: i64::from(matches(pod)),
            counts,
            least,
        }
    }

    fn unfit_reason(&self, node: &NodeInfo) -> Option<UnfitReason> {
        let Some(value) = node.label(self.key) else {
            let text =
                "node(s) didn't match pod topology spread constraints (missing required label)";
            return Some(UnfitReason::unresolvable(text));
        };
        let here = self.counts.get(value).copied().unwrap_or_default();
        let skewed = here + self.own - self.least > self.max_skew;
        skewed.then(|| {
            UnfitReason::unschedulable("node(s) didn't match pod topology spread constraints")
        })
    }
}
