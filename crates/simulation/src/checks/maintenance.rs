//! What the controller changes in nodes: the marks of Maintenances, and nothing else (M9, M15).
//!
//! A write is conditional on the node being as it was seen, so what was decided of the node is checked against what it was. Only
//! the Maintenance may be older.

use fedrs_api::{MaintenanceMark, annotations};
use serde_json::{Value, json};
use sim_cluster::{Change, Object};
use tokio::time::Duration;

use super::{
    maintenance_state::{Begun, State, mark_of},
    observed::Observed,
};

/// The value of the label that a mark has.
const EVICTS: &str = "Maintenance";
/// The most calls, one after the other, between a look at a Maintenance, or an AvailabilitySet, and its last write: five lists, the
/// finalizer, the status, and two requests.
const CALLS_OF_A_LOOK: u32 = 9;

/// Whether nodes with these labels are among those of a Maintenance. Plans have no expressions.
pub(crate) fn matches(spec: &Value, member: &str, labels: &Value) -> bool {
    let clusters = spec["clusters"].as_array();
    let is_named = clusters.is_none_or(|names| names.iter().any(|name| name == member));
    let wanted = spec["nodeSelector"]["matchLabels"].as_object();
    let mut wanted = wanted.into_iter().flatten();
    is_named && wanted.all(|(key, value)| labels[key] == *value)
}

/// Whether a node is cordoned, and asks its pods to leave.
pub(crate) fn is_closed(node: &Value) -> bool {
    let label = &node["metadata"]["labels"][annotations::EVICT];
    node["spec"]["unschedulable"] == true && label.is_string() && label != "false"
}

/// Checks a change that the controller made to a node.
pub(super) fn of_node(observed: &Observed, member: &str, change: &Change) -> Option<String> {
    let what = format!("Node {} in {member}", change.name);
    let (Some(old), Some(new)) = (&change.old, &change.new) else {
        return Some(format!("{what}: created or deleted"));
    };
    if others(old) != others(new) {
        return Some(format!("{what}: changed in more than its mark"));
    }
    let wrong = match (mark_of(old), mark_of(new)) {
        (None, None) => Some("changed without a mark".to_owned()),
        (before, Some(mark)) => wrong_mark(observed, member, (old, before.as_ref()), (new, &mark)),
        (Some(before), None) => wrong_removal(observed, member, (old, &before), new),
    };
    wrong.map(|wrong| format!("{what}: {wrong}"))
}

fn wrong_mark(
    observed: &Observed,
    member: &str,
    (old, before): (&Value, Option<&MaintenanceMark>),
    (new, mark): (&Value, &MaintenanceMark),
) -> Option<String> {
    let name = &mark.name;
    if let Some(other) = before.filter(|before| before.uid != mark.uid) {
        return Some(format!("{name} takes the mark of {}", other.name));
    }
    if !is_closed(new) {
        return Some(format!("marked by {name}, and not cordoned or emptied"));
    }
    let label = label(old).filter(|label| *label != "false");
    if label.is_some_and(|label| self::label(new) != Some(label)) {
        return Some(format!("{name} replaces a label that others have set"));
    }
    let was_cordoned = before.map_or(is_cordoned(old), |before| before.was_cordoned);
    if mark.was_cordoned != was_cordoned {
        return Some(format!("{name} forgets that cordoned was {was_cordoned}"));
    }
    let labels = &old["metadata"]["labels"];
    let may = observed.was_maintenance(&mark.uid, |state, begun| match state {
        State::Spec(spec) => begun.perhaps && matches(spec, member, labels),
        State::Absent | State::Over => false,
    });
    (!may).then(|| format!("marked by {name}, whose nodes have not had its labels {labels}"))
}

fn wrong_removal(
    observed: &Observed,
    member: &str,
    (old, before): (&Value, &MaintenanceMark),
    new: &Value,
) -> Option<String> {
    let name = &before.name;
    let is_cordoned_now = is_cordoned(new);
    if is_cordoned_now != (is_cordoned(old) && before.was_cordoned) {
        let was = before.was_cordoned;
        return Some(format!(
            "{name} leaves it cordoned {is_cordoned_now}, and cordoned was {was}"
        ));
    }
    if label(new) != label(old).filter(|label| *label != EVICTS) {
        return Some(format!("{name} leaves or takes a label that it should not"));
    }
    let labels = &old["metadata"]["labels"];
    let may = observed.was_maintenance(&before.uid, |state, begun| match state {
        State::Spec(spec) => !begun.surely || !matches(spec, member, labels),
        State::Absent => false,
        State::Over => true,
    });
    (!may).then(|| format!("loses the mark of {name}, which goes on, with labels {labels}"))
}

impl Observed {
    /// Whether what `is_so` says was so of a Maintenance when it was decided what to do with its nodes.
    fn was_maintenance(&self, uid: &str, is_so: impl Fn(&State, Begun) -> bool) -> bool {
        let since = self.host_belief(self.longest_look());
        self.maintenances.was(uid, since, is_so)
    }

    /// The longest time between a look at a Maintenance, or an AvailabilitySet, and its last write.
    pub(super) fn longest_look(&self) -> Duration {
        self.config().call_timeout * CALLS_OF_A_LOOK
    }
}

fn is_cordoned(node: &Value) -> bool {
    node["spec"]["unschedulable"] == true
}

fn label(node: &Value) -> Option<&str> {
    node["metadata"]["labels"][annotations::EVICT].as_str()
}

/// A node without what a mark consists of.
fn others(node: &Object) -> Value {
    let mut node = Value::clone(node);
    let fields = [
        ("/metadata", "resourceVersion"),
        ("/metadata", "managedFields"),
        ("/metadata/labels", annotations::EVICT),
        ("/metadata/annotations", annotations::MAINTENANCE),
        ("/spec", "unschedulable"),
    ];
    for (parent, field) in fields {
        let parent = node.pointer_mut(parent).and_then(Value::as_object_mut);
        parent.map(|parent| parent.remove(field));
    }
    if let Some(metadata) = node["metadata"].as_object_mut() {
        metadata.retain(|_, value| *value != json!({}));
    }
    node
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m9_nodes_match_by_cluster_and_labels() {
        let spec =
            json!({ "clusters": ["m1"], "nodeSelector": { "matchLabels": { "rack": "r1" } } });
        let labels = json!({ "rack": "r1", "zone": "a" });
        for (spec, member, labels, expected) in [
            (&spec, "m1", &labels, true),
            (&spec, "m2", &labels, false),
            (&spec, "m1", &json!({ "rack": "r2" }), false),
            (&json!({ "nodeSelector": {} }), "m2", &Value::Null, true),
        ] {
            assert_eq!(matches(spec, member, labels), expected, "{member} {labels}");
        }
    }
}
