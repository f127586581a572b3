//! The comparison of two objects of a type: added, modified and removed fields.

use serde_json::{Map, Value};

use super::field_set::{FieldSet, PathElement};
use super::typed::{Shape, item_element, shape};
use crate::schema::{ListKind, Node};

/// The differences of two objects.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Comparison {
    pub(super) added: FieldSet,
    pub(super) modified: FieldSet,
    pub(super) removed: FieldSet,
}

impl Comparison {
    /// The added and modified fields.
    pub(super) fn changed(&self) -> FieldSet {
        self.added.clone().union(&self.modified)
    }

    fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    fn place(&mut self, element: &PathElement, below: Self) {
        self.added.insert_below(element.clone(), below.added);
        self.modified.insert_below(element.clone(), below.modified);
        self.removed.insert_below(element.clone(), below.removed);
    }
}

/// Compares two objects; their roots count as present in both.
pub(super) fn compare(old: &Value, new: &Value, node: Option<Node<'_>>) -> Comparison {
    let mut comparison = Comparison::default();
    compare_parts(Some(old), Some(new), node, &mut comparison);
    comparison
}

/// Whether a value is compared as a whole: it has no parts, or is empty on both sides.
fn is_leaf(old: Option<&Value>, new: Option<&Value>, node: Option<Node<'_>>) -> bool {
    let sides = || [old, new].into_iter().flatten();
    let leaf = |value: &Value| matches!(shape(value, node), Shape::Leaf);
    let empty = |value: &Value| match shape(value, node) {
        Shape::Fields(fields) => fields.is_empty(),
        Shape::Items(items, _) => items.is_empty(),
        Shape::Leaf | Shape::Nothing => true,
    };
    sides().any(leaf) || sides().all(empty)
}

/// Compares one place, which differs and is absent on at most one side, and files it under `element`.
fn compare_place(
    element: &PathElement,
    sides: (Option<&Value>, Option<&Value>),
    node: Option<Node<'_>>,
    into: &mut Comparison,
) {
    let (old, new) = sides;
    let leaf = is_leaf(old, new, node);
    match (old, new) {
        (None, _) => into.added.insert(element.clone()),
        (_, None) => into.removed.insert(element.clone()),
        _ if leaf => into.modified.insert(element.clone()),
        _ => {}
    }
    if !leaf {
        let mut below = Comparison::default();
        compare_parts(old, new, node, &mut below);
        if !below.is_empty() {
            into.place(element, below);
        }
    }
}

fn compare_parts(
    old: Option<&Value>,
    new: Option<&Value>,
    node: Option<Node<'_>>,
    into: &mut Comparison,
) {
    let either = [old, new]
        .into_iter()
        .flatten()
        .map(|value| shape(value, node));
    let Some(example) = either
        .into_iter()
        .find(|shape| !matches!(shape, Shape::Nothing))
    else {
        return;
    };
    match example {
        Shape::Fields(_) => {
            let empty = Map::new();
            let (old, new) = (
                old.and_then(Value::as_object).unwrap_or(&empty),
                new.and_then(Value::as_object).unwrap_or(&empty),
            );
            let names = old
                .keys()
                .chain(new.keys().filter(|name| !old.contains_key(*name)));
            for name in names {
                let sides = (old.get(name), new.get(name));
                // Most parts are equal: no more has to be known of them.
                if sides.0 == sides.1 {
                    continue;
                }
                let child = node.and_then(|node| node.field(name));
                compare_place(&PathElement::field(name), sides, child, into);
            }
        }
        Shape::Items(_, kind) => compare_items(old, new, &kind, node, into),
        Shape::Leaf | Shape::Nothing => {}
    }
}

fn compare_items(
    old: Option<&Value>,
    new: Option<&Value>,
    kind: &ListKind<'_>,
    node: Option<Node<'_>>,
    into: &mut Comparison,
) {
    let item_node = node.and_then(|node| node.items());
    let (old, new) = (keyed(old, kind, item_node), keyed(new, kind, item_node));
    for (element, item) in &old {
        let sides = (Some(*item), find(&new, element));
        if sides.0 != sides.1 {
            compare_place(element, sides, item_node, into);
        }
    }
    let added = new
        .iter()
        .filter(|(element, _)| find(&old, element).is_none());
    for (element, item) in added {
        compare_place(element, (None, Some(item)), item_node, into);
    }
}

/// The items of a list with their identities.
fn keyed<'a>(
    list: Option<&'a Value>,
    kind: &ListKind<'_>,
    item_node: Option<Node<'_>>,
) -> Vec<(PathElement, &'a Value)> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items
        .map(|item| (item_element(item, kind, item_node), item))
        .collect()
}

fn find<'a>(list: &[(PathElement, &'a Value)], element: &PathElement) -> Option<&'a Value> {
    list.iter()
        .find(|(other, _)| other == element)
        .map(|(_, item)| *item)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::TypeInfo;
    use serde_json::json;

    #[test]
    fn differences_are_found_by_key_not_by_place() {
        let info = TypeInfo::builtin("", "v1", "Pod").unwrap();
        let old = json!({ "spec": { "containers": [{ "name": "a", "image": "x" }, { "name": "b", "image": "x" }] } });
        let new = json!({ "spec": { "containers": [{ "name": "b", "image": "y" }, { "name": "a", "image": "x", "env": [{ "name": "E" }] }],
            "tolerations": [{ "key": "k" }] } });
        let comparison = compare(&old, &new, Some(info.root()));
        assert_eq!(
            comparison.modified.paths(),
            [".spec.containers[name=\"b\"].image"]
        );
        assert_eq!(
            comparison.added.paths(),
            [
                ".spec.tolerations",
                ".spec.containers[name=\"a\"].env",
                ".spec.containers[name=\"a\"].env[name=\"E\"]",
                ".spec.containers[name=\"a\"].env[name=\"E\"].name",
            ]
        );
        assert!(comparison.removed.is_empty());
    }
}
