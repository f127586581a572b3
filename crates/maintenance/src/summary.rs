//! What the nodes of one cluster show: counts, the writes that they need, and what holds them.

use std::collections::{BTreeMap, BTreeSet};

use fedrs_api::{BlockingPod, MaintenanceCluster, MaintenanceMark, selector::LabelSelector};

use crate::{
    blocking,
    node_patch::{NodePatch, is_marked, mark, unmark},
    observed::{Node, Observed},
};

/// What a Maintenance does with the nodes of a cluster.
#[derive(Clone, Debug)]
pub(crate) enum Wanted<'a> {
    /// Those that match have the mark, and no others.
    Marks(&'a LabelSelector, MaintenanceMark),
    /// None has a mark. Those that match are counted.
    NoMarks(Option<&'a LabelSelector>, &'a str),
}

/// What one cluster shows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Summary {
    pub(crate) counts: MaintenanceCluster,
    pub(crate) patches: Vec<NodePatch>,
    pub(crate) blocking: Vec<BlockingPod>,
    /// The nodes that another Maintenance has marked, and its name.
    pub(crate) held: BTreeMap<String, String>,
    /// Whether pods are left that nobody in the cluster moves.
    pub(crate) is_stuck: bool,
    /// Nodes with marks that have to go.
    pub(crate) marks_left: usize,
}

impl Wanted<'_> {
    fn uid(&self) -> &str {
        match self {
            Self::Marks(_, mark) => &mark.uid,
            Self::NoMarks(_, uid) => uid,
        }
    }

    fn matches(&self, node: &Node) -> bool {
        match self {
            Self::Marks(selector, _) => node.is_selected(selector),
            Self::NoMarks(selector, _) => {
                selector.is_some_and(|selector| node.is_selected(selector))
            }
        }
    }
}

/// The summary of `cluster`.
pub(crate) fn of(cluster: &str, observed: &Observed, wanted: &Wanted<'_>) -> Summary {
    let mut summary = Summary::default();
    let counts = &mut summary.counts;
    cluster.clone_into(&mut counts.name);
    for node in observed.nodes.values() {
        let uid = wanted.uid();
        let matches = wanted.matches(node);
        let pods = observed.pods.get(node.name());
        counts.nodes += i32::from(matches);
        counts.pods_left += count(pods.map_or(0, |pods| if matches { pods.len() } else { 0 }));
        match wanted {
            Wanted::Marks(_, of) if matches => {
                let is_marked = is_marked(node, uid);
                counts.cordoned += i32::from(is_marked);
                let is_empty = pods.is_some_and(BTreeSet::is_empty);
                counts.emptied += i32::from(is_marked && is_empty);
                match mark(node, of) {
                    Ok(patch) => summary.patches.extend(patch),
                    Err(held) => _ = summary.held.insert(node.name().to_owned(), held.by),
                }
            }
            _ => {
                counts.cordoned += i32::from(is_marked(node, uid));
                let patch = unmark(node, uid);
                summary.marks_left += usize::from(patch.is_some());
                summary.patches.extend(patch);
            }
        }
    }
    let is_asked = matches!(wanted, Wanted::Marks(..));
    summary.is_stuck = is_asked && observed.lacks_requests && summary.counts.pods_left > 0;
    summary.blocking = blocking::of_cluster(cluster, observed);
    summary
}

/// A number in a status.
pub(crate) fn count(number: usize) -> i32 {
    number.try_into().unwrap_or(i32::MAX)
}
