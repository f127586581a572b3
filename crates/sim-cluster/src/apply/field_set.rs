//! Sets of fields, as in `managedFields`: a tree of path elements, each of which is a member or leads to one.
//!
//! `fieldsV1` JSON <-> [`FieldSet`]; set algebra on it.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::schema::Node;

/// One step of a path, as `fieldsV1` writes it: sets are read, compared and written for every write of an object.
///
/// - `f:name`: a field, or a key of a map.
/// - `k:{...}`: an item of a list by its keys, an object.
/// - `v:...`: an item of a set by its value.
/// - `i:0`: an item by position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathElement(Arc<str>);

impl PathElement {
    /// A field, or a key of a map.
    pub(super) fn field(name: &str) -> Self {
        Self(["f:", name].concat().into())
    }

    /// An item of a list by its keys.
    pub(super) fn keys(keys: Map<String, Value>) -> Self {
        Self(format!("k:{}", Value::Object(keys)).into())
    }

    /// An item of a set by its value.
    pub(super) fn value(value: &Value) -> Self {
        Self(format!("v:{value}").into())
    }

    fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "f" => Some(Self(text.into())),
            "k" => serde_json::from_str(rest).ok().map(Self::keys),
            "v" => serde_json::from_str(rest).ok().as_ref().map(Self::value),
            "i" => {
                let index: usize = rest.parse().ok()?;
                Some(Self(format!("i:{index}").into()))
            }
            _ => None,
        }
    }

    /// The name of a field.
    fn name(&self) -> Option<&str> {
        self.0.strip_prefix("f:")
    }

    /// The order of kinds. Of two positions the one with fewer digits is first.
    fn rank(&self) -> (u8, usize) {
        match self.0.as_bytes() {
            [b'f', ..] => (0, 0),
            [b'k', ..] => (1, 0),
            [b'v', ..] => (2, 0),
            position => (3, position.len()),
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.rank(), &self.0).cmp(&(other.rank(), &other.0))
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// `.name`, `[name="x",port=80]`, `[="x"]`, `[0]`.
impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.split_once(':').unwrap_or_default() {
            ("f", name) => write!(f, ".{name}"),
            ("k", keys) => {
                let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
                let parts: Vec<String> = keys
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect();
                write!(f, "[{}]", parts.join(","))
            }
            ("v", value) => write!(f, "[={value}]"),
            (_, index) => write!(f, "[{index}]"),
        }
    }
}

/// A set of fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FieldSet {
    members: BTreeSet<PathElement>,
    children: BTreeMap<PathElement, FieldSet>,
}

impl FieldSet {
    /// Parses `fieldsV1`; none if it is malformed.
    pub(super) fn parse(fields: &Value) -> Option<Self> {
        Self::parse_fields(fields.as_object()?)
    }

    /// Whether `fieldsV1` has a member of this set.
    pub(super) fn meets(&self, fields: &Value) -> bool {
        let below = |element: &PathElement| fields.get(&*element.0)?.as_object();
        let mut members = self.members.iter().filter_map(below);
        let child_meets = |(element, child): (&PathElement, &Self)| {
            let below = fields.get(&*element.0);
            below.is_some_and(|below| child.meets(below))
        };
        members.any(is_member) || self.children.iter().any(child_meets)
    }

    /// Whether `fieldsV1` has all members of this set.
    pub(super) fn is_within(&self, fields: &Value) -> bool {
        let has = |element: &PathElement| {
            let below = fields.get(&*element.0).and_then(Value::as_object);
            below.is_some_and(is_member)
        };
        let has_below = |(element, child): (&PathElement, &Self)| {
            let below = fields.get(&*element.0);
            below.is_some_and(|below| child.is_within(below))
        };
        self.members.iter().all(has) && self.children.iter().all(has_below)
    }

    fn parse_fields(fields: &Map<String, Value>) -> Option<Self> {
        let mut set = Self::default();
        for (name, below) in fields {
            if name == "." {
                continue;
            }
            let element = PathElement::parse(name)?;
            let below = below.as_object()?;
            let child = Self::parse_fields(below)?;
            let is_member = is_member(below);
            if !child.is_empty() {
                set.children.insert(element.clone(), child);
            }
            if is_member {
                set.members.insert(element);
            }
        }
        Some(set)
    }

    /// The set as `fieldsV1`.
    pub(super) fn to_value(&self) -> Value {
        let mut fields = Map::new();
        for element in &self.members {
            fields.insert(element.0.to_string(), Value::Object(Map::new()));
        }
        for (element, child) in &self.children {
            let mut below = Map::new();
            if self.members.contains(element) {
                below.insert(".".to_owned(), Value::Object(Map::new()));
            }
            if let Value::Object(fields) = child.to_value() {
                below.extend(fields);
            }
            fields.insert(element.0.to_string(), Value::Object(below));
        }
        Value::Object(fields)
    }

    /// Whether the set is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.values().all(Self::is_empty)
    }

    /// Adds the element itself.
    pub(super) fn insert(&mut self, element: PathElement) {
        self.members.insert(element);
    }

    /// Adds the set below the element.
    pub(super) fn insert_below(&mut self, element: PathElement, child: Self) {
        if !child.is_empty() {
            self.children.entry(element).or_default().extend(child);
        }
    }

    /// Whether the element itself is a member.
    pub(super) fn has(&self, element: &PathElement) -> bool {
        self.members.contains(element)
    }

    /// The set below the element.
    pub(super) fn below(&self, element: &PathElement) -> Option<&Self> {
        self.children.get(element)
    }

    /// Adds the members of the other set.
    pub(super) fn extend(&mut self, other: Self) {
        self.members.extend(other.members);
        for (element, child) in other.children {
            self.children.entry(element).or_default().extend(child);
        }
    }

    /// The union of both sets.
    #[must_use]
    pub(super) fn union(mut self, other: &Self) -> Self {
        self.extend(other.clone());
        self
    }

    /// The members that the other set does not have.
    #[must_use]
    pub(super) fn difference(mut self, other: &Self) -> Self {
        self.remove(other);
        self
    }

    /// Removes the members of the other set.
    pub(super) fn remove(&mut self, other: &Self) {
        for element in &other.members {
            self.members.remove(element);
        }
        for (element, removed) in &other.children {
            let Some(child) = self.children.get_mut(element) else {
                continue;
            };
            child.remove(removed);
            if child.is_empty() {
                self.children.remove(element);
            }
        }
    }

    /// The members of both sets.
    #[must_use]
    pub(super) fn intersection(&self, other: &Self) -> Self {
        let children = self.children.iter().filter_map(|(element, child)| {
            let both = child.intersection(other.children.get(element)?);
            (!both.is_empty()).then(|| (element.clone(), both))
        });
        Self {
            members: self.members.intersection(&other.members).cloned().collect(),
            children: children.collect(),
        }
    }

    /// The set with every declared field that leads to a member.
    #[must_use]
    pub(super) fn with_named_fields(&self, node: Option<Node<'_>>) -> Self {
        let mut members = self.members.clone();
        let mut children = BTreeMap::new();
        for (element, child) in &self.children {
            let below = match element.name() {
                Some(name) => {
                    if node.is_some_and(|node| node.declares(name)) {
                        members.insert(element.clone());
                    }
                    node.and_then(|node| node.field(name))
                }
                None => node.and_then(|node| node.items()),
            };
            children.insert(element.clone(), child.with_named_fields(below));
        }
        Self { members, children }
    }

    /// The paths of all members, as the API server prints them, in order.
    pub(super) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect_paths("", &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &str, paths: &mut Vec<String>) {
        paths.extend(
            self.members
                .iter()
                .map(|element| format!("{prefix}{element}")),
        );
        for (element, child) in &self.children {
            child.collect_paths(&format!("{prefix}{element}"), paths);
        }
    }
}

/// Whether an element with this below it in `fieldsV1` is a member, and does not only lead to members.
fn is_member(below: &Map<String, Value>) -> bool {
    below.is_empty() || below.contains_key(".")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn the_json_form_round_trips() {
        let fields = json!({ "f:metadata": { "f:labels": { ".": {}, "f:app": {} }, "f:finalizers": { "v:\"x\"": {} } },
            "f:spec": { "f:containers": { "k:{\"name\":\"a\"}": { ".": {}, "f:image": {} } } } });
        let set = FieldSet::parse(&fields).unwrap();
        assert_eq!(set.to_value(), fields);
        assert_eq!(
            set.paths(),
            [
                ".metadata.labels",
                ".metadata.finalizers[=\"x\"]",
                ".metadata.labels.app",
                ".spec.containers[name=\"a\"]",
                ".spec.containers[name=\"a\"].image",
            ]
        );
    }

    fn sets() -> impl Strategy<Value = FieldSet> {
        prop::collection::vec(prop::collection::vec("[a-c]", 1..4), 0..8).prop_map(|paths| {
            let mut set = FieldSet::default();
            for path in paths {
                let mut elements = path.iter().map(|name| PathElement::field(name)).rev();
                let mut tail = FieldSet::default();
                tail.insert(elements.next().expect("a path has an element"));
                for element in elements {
                    let mut parent = FieldSet::default();
                    parent.insert_below(element, tail);
                    tail = parent;
                }
                set = set.union(&tail);
            }
            set
        })
    }

    proptest! {
        #[test]
        fn field_sets_obey_the_laws_of_sets(left in sets(), right in sets()) {
            let both = left.intersection(&right);
            prop_assert_eq!(left.clone().difference(&right).union(&both), left.clone());
            prop_assert_eq!(&both, &right.intersection(&left));
            prop_assert!(left.clone().difference(&left).is_empty());
            prop_assert_eq!(left.meets(&right.to_value()), !both.is_empty());
            prop_assert!(both.is_within(&left.to_value()));
            prop_assert_eq!(left.is_within(&right.to_value()), left.clone().difference(&right).is_empty());
            prop_assert_eq!(FieldSet::parse(&left.to_value()), Some(left));
        }
    }
}
