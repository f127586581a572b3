//! The writes that mark a node, and that remove a mark: merge patches, each conditional on the node being as it was seen.

use fedrs_api::{MaintenanceMark, MigrationCause, annotations};
use serde_json::{Map, Value, json};

use crate::observed::Node;

/// The value of the label [`annotations::EVICT`] that a mark has. Another value that asks pods to leave stays.
const EVICTS: &str = MigrationCause::Maintenance.as_str();

/// A merge patch of a node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NodePatch {
    pub(crate) node: String,
    pub(crate) body: Value,
}

/// What another Maintenance has marked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    /// The name of the other one.
    pub(crate) by: String,
}

/// The patch that gives `node` the mark `wanted`, if it lacks any of it. Whether the node was cordoned before is known from the first mark.
pub(crate) fn mark(node: &Node, wanted: &MaintenanceMark) -> Result<Option<NodePatch>, Held> {
    let old = node.mark();
    if let Some(other) = old.as_ref().filter(|mark| mark.uid != wanted.uid) {
        return Err(Held {
            by: other.name.clone(),
        });
    }
    let was_cordoned = old
        .as_ref()
        .map_or(node.spec.unschedulable, |mark| mark.was_cordoned);
    let wanted = MaintenanceMark {
        was_cordoned,
        ..wanted.clone()
    };
    let annotation = (old.as_ref() != Some(&wanted)).then(|| json!(wanted.to_annotation()));
    let label = node.evicts().is_none().then(|| json!(EVICTS));
    let cordon = (!node.spec.unschedulable).then_some(Value::Bool(true));
    Ok(patch(node, annotation, label, cordon))
}

/// The patch that removes the mark of the Maintenance with this uid, if `node` has it.
pub(crate) fn unmark(node: &Node, uid: &str) -> Option<NodePatch> {
    let mark = node.mark_of(uid)?;
    let label = (node.evicts() == Some(EVICTS)).then_some(Value::Null);
    let uncordons = node.spec.unschedulable && !mark.was_cordoned;
    patch(
        node,
        Some(Value::Null),
        label,
        uncordons.then_some(Value::Null),
    )
}

/// Whether `node` has all of the mark of the Maintenance with this uid.
pub(crate) fn is_marked(node: &Node, uid: &str) -> bool {
    node.mark_of(uid).is_some() && node.spec.unschedulable && node.evicts().is_some()
}

/// A patch with these fields; `None` without any.
fn patch(
    node: &Node,
    annotation: Option<Value>,
    label: Option<Value>,
    unschedulable: Option<Value>,
) -> Option<NodePatch> {
    let meta = &node.metadata;
    let mut metadata = Map::new();
    if let Some(annotation) = annotation {
        metadata.insert(
            "annotations".into(),
            json!({ annotations::MAINTENANCE: annotation }),
        );
    }
    if let Some(label) = label {
        metadata.insert("labels".into(), json!({ annotations::EVICT: label }));
    }
    if metadata.is_empty() && unschedulable.is_none() {
        return None;
    }
    metadata.insert("uid".into(), json!(meta.uid));
    metadata.insert("resourceVersion".into(), json!(meta.resource_version));
    let mut body = json!({ "metadata": metadata });
    if let Some(unschedulable) = unschedulable {
        body["spec"] = json!({ "unschedulable": unschedulable });
    }
    Some(NodePatch {
        node: meta.name.clone(),
        body,
    })
}
