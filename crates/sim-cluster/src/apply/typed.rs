//! Typed objects: their fields, their merge, and their pruning.

use serde_json::{Map, Value};

use super::field_set::{FieldSet, PathElement};
use crate::schema::{ListKind, Node};

/// The shape of a value for server-side apply.
pub(super) enum Shape<'a> {
    /// One value: a scalar, an atomic list or object.
    Leaf,
    /// An object whose fields are owned separately.
    Fields(&'a Map<String, Value>),
    /// A list whose items are owned separately.
    Items(&'a [Value], ListKind<'a>),
    /// An object or list that is absent or null where its type has parts.
    Nothing,
}

/// The shape of a value; `null` has the shape of its type.
pub(super) fn shape<'a>(value: &'a Value, node: Option<Node<'a>>) -> Shape<'a> {
    match value {
        Value::Object(_) if is_atomic_object(node) => Shape::Leaf,
        Value::Object(fields) => Shape::Fields(fields),
        Value::Array(items) => match node.map_or(ListKind::Atomic, |node| node.list_kind()) {
            ListKind::Atomic => Shape::Leaf,
            kind => Shape::Items(items, kind),
        },
        Value::Null if !is_atomic_object(node) && node.is_some_and(|node| has_parts(node)) => {
            Shape::Nothing
        }
        _ => Shape::Leaf,
    }
}

fn has_parts(node: Node<'_>) -> bool {
    match node.json_type() {
        Some("object") => true,
        Some("array") => node.list_kind() != ListKind::Atomic,
        _ => false,
    }
}

/// Objects that are marked as atomic, and built-in ones with arbitrary content.
fn is_atomic_object(node: Option<Node<'_>>) -> bool {
    const FREE_FORM: &[&str] = &["RawExtension", "FieldsV1", "JSON"];
    node.is_some_and(|node| {
        let name = node.definition().and_then(|name| name.rsplit('.').next());
        node.is_atomic_map() || name.is_some_and(|name| FREE_FORM.contains(&name))
    })
}

/// The identity of an item of a list; an absent key has its default.
pub(super) fn item_element(
    item: &Value,
    kind: &ListKind<'_>,
    items: Option<Node<'_>>,
) -> PathElement {
    let ListKind::Map(keys) = kind else {
        return PathElement::value(item);
    };
    let mut found = Map::new();
    for key in keys {
        let default = || {
            items
                .and_then(|items| items.declared(key))
                .and_then(|field| field.default().cloned())
        };
        if let Some(value) = item.get(*key).cloned().or_else(default) {
            found.insert((*key).to_owned(), value);
        }
    }
    PathElement::keys(found)
}

/// The fields of an object.
pub(super) fn field_set(value: &Value, node: Option<Node<'_>>) -> FieldSet {
    let mut set = FieldSet::default();
    match shape(value, node) {
        Shape::Fields(fields) => {
            for (name, child) in fields {
                let element = PathElement::field(name);
                let child_node = node.and_then(|node| node.field(name));
                let declared = node.is_some_and(|node| node.declares(name));
                let empty = child.is_null() || child.as_object().is_some_and(Map::is_empty);
                if empty || !declared || matches!(shape(child, child_node), Shape::Leaf) {
                    set.insert(element.clone());
                }
                set.insert_below(element, field_set(child, child_node));
            }
        }
        Shape::Items(items, kind) => {
            let item_node = node.and_then(|node| node.items());
            for item in items {
                let element = item_element(item, &kind, item_node);
                set.insert(element.clone());
                set.insert_below(element, field_set(item, item_node));
            }
        }
        Shape::Leaf | Shape::Nothing => {}
    }
    set
}

/// The first field of `value` that its type does not declare, as a path.
pub(super) fn undeclared(value: &Value, node: Option<Node<'_>>, path: &str) -> Option<String> {
    let node = node?;
    match shape(value, Some(node)) {
        Shape::Fields(fields) => fields.iter().find_map(|(name, child)| {
            let at = format!("{path}.{name}");
            match node.field(name) {
                Some(child_node) => undeclared(child, Some(child_node), &at),
                None if node.keeps_unknown_fields() || node.json_type() != Some("object") => None,
                None => Some(at),
            }
        }),
        Shape::Items(items, kind) => items.iter().find_map(|item| {
            let element = item_element(item, &kind, node.items());
            undeclared(item, node.items(), &format!("{path}{element}"))
        }),
        Shape::Leaf | Shape::Nothing => None,
    }
}

/// `live` with the fields of `config` merged into it.
pub(super) fn merge(live: &Value, config: &Value, node: Option<Node<'_>>) -> Value {
    match (shape(live, node), shape(config, node)) {
        (Shape::Fields(live), Shape::Fields(config)) => {
            let mut merged = live.clone();
            for (name, child) in config {
                let child_node = node.and_then(|node| node.field(name));
                let value = live
                    .get(name)
                    .map_or_else(|| child.clone(), |before| merge(before, child, child_node));
                merged.insert(name.clone(), value);
            }
            Value::Object(merged)
        }
        (Shape::Items(live, kind), Shape::Items(config, _)) => {
            let item_node = node.and_then(|node| node.items());
            Value::Array(merge_items(live, config, &kind, item_node))
        }
        // An empty object or list removes nothing.
        (Shape::Fields(_) | Shape::Items(..), Shape::Nothing) => live.clone(),
        _ => config.clone(),
    }
}

/// The items of both lists: those of the configuration in its order, the others near their places.
fn merge_items(
    live: &[Value],
    config: &[Value],
    kind: &ListKind<'_>,
    item_node: Option<Node<'_>>,
) -> Vec<Value> {
    let element = |item: &Value| item_element(item, kind, item_node);
    let before: Vec<PathElement> = live.iter().map(element).collect();
    let wanted: Vec<PathElement> = config.iter().map(element).collect();
    // The next item of both lists, at which both orders meet.
    let mut shared = wanted.iter().filter(|one| before.contains(one)).peekable();
    let mut done: Vec<&PathElement> = Vec::new();
    let mut merged = Vec::new();
    let (mut left, mut right) = (0, 0);
    while left < live.len() || right < config.len() {
        if left < live.len() && right < config.len() {
            if before[left] == wanted[right] {
                merged.push(merge(&live[left], &config[right], item_node));
                done.push(&wanted[right]);
                shared.next();
                left += 1;
                right += 1;
                continue;
            }
            if wanted.contains(&before[left])
                && shared.peek().is_some_and(|next| **next != before[left])
            {
                left += 1;
                continue;
            }
        }
        if left < live.len() {
            if !wanted.contains(&before[left]) {
                merged.push(live[left].clone());
                left += 1;
                continue;
            }
            if done.contains(&&before[left]) {
                left += 1;
                continue;
            }
        }
        if right < config.len() {
            let place = before.iter().position(|one| *one == wanted[right]);
            merged.push(place.map_or_else(
                || config[right].clone(),
                |place| merge(&live[place], &config[right], item_node),
            ));
            done.push(&wanted[right]);
            if shared.peek().is_some_and(|next| **next == wanted[right]) {
                shared.next();
            }
            right += 1;
        }
    }
    merged
}

/// `value` without the fields and items in `gone`, and without the objects and lists that become empty.
pub(super) fn without(value: &Value, gone: &FieldSet, node: Option<Node<'_>>) -> Option<Value> {
    match shape(value, node) {
        Shape::Fields(fields) => {
            let mut kept = Map::new();
            for (name, child) in fields {
                let element = PathElement::field(name);
                if gone.has(&element) {
                    continue;
                }
                let child_node = node.and_then(|node| node.field(name));
                let rest = match gone.below(&element) {
                    Some(below) => without(child, below, child_node),
                    None => Some(child.clone()),
                };
                kept.extend(rest.map(|rest| (name.clone(), rest)));
            }
            (!kept.is_empty() || fields.is_empty()).then_some(Value::Object(kept))
        }
        Shape::Items(items, kind) => {
            let item_node = node.and_then(|node| node.items());
            let mut kept = Vec::new();
            for item in items {
                let element = item_element(item, &kind, item_node);
                if gone.has(&element) {
                    continue;
                }
                kept.extend(match gone.below(&element) {
                    Some(below) => without(item, below, item_node),
                    None => Some(item.clone()),
                });
            }
            (!kept.is_empty() || items.is_empty()).then_some(Value::Array(kept))
        }
        Shape::Leaf | Shape::Nothing => Some(value.clone()),
    }
}
