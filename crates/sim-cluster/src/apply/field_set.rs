//! Sets of fields, as in `managedFields`: a tree of path elements, each of which is a member or leads to one.
//!
//! `fieldsV1` JSON <-> [`FieldSet`]; set algebra on it.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Map, Value};

use crate::schema::Node;

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathElement {
    /// `f:name`: a field, or a key of a map.
    Field(String),
    /// `k:{...}`: an item of a list by its keys, an object.
    Key(Value),
    /// `v:...`: an item of a set by its value.
    Value(Value),
    /// `i:0`: an item by position.
    Index(usize),
}

impl PathElement {
    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "f" => Some(Self::Field(rest.to_owned())),
            "k" => serde_json::from_str(rest)
                .ok()
                .filter(Value::is_object)
                .map(Self::Key),
            "v" => serde_json::from_str(rest).ok().map(Self::Value),
            "i" => rest.parse().ok().map(Self::Index),
            _ => None,
        }
    }

    fn to_key(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(keys) => format!("k:{keys}"),
            Self::Value(value) => format!("v:{value}"),
            Self::Index(index) => format!("i:{index}"),
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank()
            .cmp(&other.rank())
            .then_with(|| match (self, other) {
                (Self::Field(left), Self::Field(right)) => left.cmp(right),
                (Self::Index(left), Self::Index(right)) => left.cmp(right),
                _ => self.to_key().cmp(&other.to_key()),
            })
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
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(keys) => {
                let parts: Vec<String> = keys
                    .as_object()
                    .into_iter()
                    .flatten()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect();
                write!(f, "[{}]", parts.join(","))
            }
            Self::Value(value) => write!(f, "[={value}]"),
            Self::Index(index) => write!(f, "[{index}]"),
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

    fn parse_fields(fields: &Map<String, Value>) -> Option<Self> {
        let mut set = Self::default();
        for (name, below) in fields {
            if name == "." {
                continue;
            }
            let element = PathElement::parse(name)?;
            let below = below.as_object()?;
            let child = Self::parse_fields(below)?;
            let is_member = below.is_empty() || below.contains_key(".");
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
            fields.insert(element.to_key(), Value::Object(Map::new()));
        }
        for (element, child) in &self.children {
            let mut below = Map::new();
            if self.members.contains(element) {
                below.insert(".".to_owned(), Value::Object(Map::new()));
            }
            if let Value::Object(fields) = child.to_value() {
                below.extend(fields);
            }
            fields.insert(element.to_key(), Value::Object(below));
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

    fn extend(&mut self, other: Self) {
        self.members.extend(other.members);
        for (element, child) in other.children {
            self.children.entry(element).or_default().extend(child);
        }
    }

    /// The union of both sets.
    #[must_use]
    pub(super) fn union(&self, other: &Self) -> Self {
        let mut set = self.clone();
        set.extend(other.clone());
        set
    }

    /// The members that the other set does not have.
    #[must_use]
    pub(super) fn difference(&self, other: &Self) -> Self {
        let children = self.children.iter().filter_map(|(element, child)| {
            let rest = other
                .children
                .get(element)
                .map_or_else(|| child.clone(), |removed| child.difference(removed));
            (!rest.is_empty()).then(|| (element.clone(), rest))
        });
        Self {
            members: self.members.difference(&other.members).cloned().collect(),
            children: children.collect(),
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
            let below = match element {
                PathElement::Field(name) => {
                    if node.is_some_and(|node| node.declares(name)) {
                        members.insert(element.clone());
                    }
                    node.and_then(|node| node.field(name))
                }
                _ => node.and_then(|node| node.items()),
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
                let mut elements = path.into_iter().map(PathElement::Field).rev();
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
            prop_assert_eq!(left.difference(&right).union(&left.intersection(&right)), left.clone());
            prop_assert_eq!(left.intersection(&right), right.intersection(&left));
            prop_assert!(left.difference(&left).is_empty());
            prop_assert_eq!(FieldSet::parse(&left.to_value()), Some(left));
        }
    }
}
