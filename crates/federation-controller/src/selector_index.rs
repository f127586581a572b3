//! Finds the FederatedReplicaSets of a namespace that could adopt each other's pods, without comparing each with each.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use fedrs_api::{ObjectKey, ValidFrs};

/// A label of a namespace.
type Label = (Arc<str>, Option<(String, String)>);

/// Sets by the labels of their templates, and by one label that their selectors require.
#[derive(Debug, Default)]
pub(crate) struct SelectorIndex {
    /// By each label of the template; all of a namespace under none.
    by_label: BTreeMap<Label, BTreeSet<ObjectKey>>,
    /// By the first label that the selector requires; under none if it requires no value.
    by_required: BTreeMap<Label, BTreeSet<ObjectKey>>,
}

impl SelectorIndex {
    pub(crate) fn insert(&mut self, frs: &ValidFrs) {
        for label in labels(frs) {
            self.by_label
                .entry(label)
                .or_default()
                .insert(frs.key.clone());
        }
        let required = self.by_required.entry(required(frs)).or_default();
        required.insert(frs.key.clone());
    }

    pub(crate) fn remove(&mut self, frs: &ValidFrs) {
        for label in labels(frs) {
            remove(&mut self.by_label, &label, &frs.key);
        }
        remove(&mut self.by_required, &required(frs), &frs.key);
    }

    /// The sets that may overlap with `frs`, each once; [`overlap`] decides.
    pub(crate) fn candidates(&self, frs: &ValidFrs) -> BTreeSet<&ObjectKey> {
        let could_be_taken = self.by_label.get(&required(frs));
        let could_take = labels(frs).filter_map(|label| self.by_required.get(&label));
        let candidates = could_be_taken.into_iter().chain(could_take).flatten();
        candidates.filter(|key| **key != frs.key).collect()
    }
}

/// Whether one of two sets of a namespace could adopt the other's pods.
pub(crate) fn overlap(a: &ValidFrs, b: &ValidFrs) -> bool {
    let takes = |a: &ValidFrs, b: &ValidFrs| {
        fedrs_api::selector::matches(&a.selector, &b.template.metadata.labels)
    };
    takes(a, b) || takes(b, a)
}

fn labels(frs: &ValidFrs) -> impl Iterator<Item = Label> {
    let labels = frs.template.metadata.labels.iter();
    let labels = labels.map(|(key, value)| Some((key.clone(), value.clone())));
    labels
        .chain([None])
        .map(|label| (Arc::clone(&frs.key.namespace), label))
}

fn required(frs: &ValidFrs) -> Label {
    let mut labels = frs.selector.match_labels.iter().flatten();
    let label = labels
        .next()
        .map(|(key, value)| (key.clone(), value.clone()));
    (Arc::clone(&frs.key.namespace), label)
}

fn remove(index: &mut BTreeMap<Label, BTreeSet<ObjectKey>>, label: &Label, key: &ObjectKey) {
    if let Some(sets) = index.get_mut(label) {
        sets.remove(key);
        if sets.is_empty() {
            index.remove(label);
        }
    }
}

#[cfg(test)]
mod tests {
    use fedrs_api::FederatedReplicaSet;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn frs(name: usize, selector: &Value, labels: &Value) -> ValidFrs {
        let object: FederatedReplicaSet = serde_json::from_value(json!({
            "apiVersion": "fedrs.dev/v1alpha1",
            "kind": "FederatedReplicaSet",
            "metadata": { "name": format!("s{name}"), "namespace": "default" },
            "spec": {
                "selector": selector,
                "template": { "metadata": { "labels": labels }, "spec": { "containers": [{}] } },
            },
        }))
        .unwrap();
        ValidFrs::check(&object).unwrap()
    }

    /// A set that requires some of its own labels, by value or by existence.
    fn set() -> impl Strategy<Value = (Value, Value)> {
        let labels = prop::collection::btree_map("[ab]", "[xy]", 1..3);
        (labels, any::<(bool, bool)>()).prop_map(|(labels, (by_value, both))| {
            let (key, value) = labels.first_key_value().unwrap();
            let exists = json!([{ "key": key, "operator": "Exists" }]);
            let selector = match (by_value, both) {
                (true, false) => json!({ "matchLabels": { key: value } }),
                (true, true) => json!({ "matchLabels": labels }),
                (false, _) => json!({ "matchExpressions": exists }),
            };
            (selector, json!(labels))
        })
    }

    proptest! {
        #[test]
        fn the_candidates_contain_every_overlap(
            sets in prop::collection::vec(set(), 1..8),
            removed in prop::collection::vec(any::<bool>(), 8),
        ) {
            let sets: Vec<_> = sets.iter().enumerate().map(|(name, (selector, labels))| frs(name, selector, labels)).collect();
            let mut index = SelectorIndex::default();
            for set in &sets {
                index.insert(set);
            }
            for (set, _) in sets.iter().zip(&removed).filter(|(_, removed)| **removed) {
                index.remove(set);
            }
            for set in &sets {
                let candidates = index.candidates(set);
                for (other, removed) in sets.iter().zip(&removed).filter(|(other, _)| other.key != set.key) {
                    let is_candidate = candidates.contains(&other.key);
                    prop_assert!(!removed || !is_candidate);
                    prop_assert!(*removed || is_candidate || !overlap(set, other));
                }
            }
        }
    }
}
