//! Finds the sets of a namespace whose selectors may match a pod, without a look at each.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// A label of a namespace; none for all that require no value.
pub(crate) type Label = (Arc<str>, Option<(String, String)>);

/// Sets by the first label that their selectors require.
#[derive(Debug)]
pub struct RequiredLabels<K>(BTreeMap<Label, BTreeSet<K>>);

impl<K> Default for RequiredLabels<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Clone + Ord> RequiredLabels<K> {
    /// Adds a set.
    pub fn insert(&mut self, namespace: &Arc<str>, selector: &LabelSelector, key: &K) {
        let sets = self.0.entry(required(namespace, selector)).or_default();
        sets.insert(key.clone());
    }

    /// Removes a set, which had this selector.
    pub fn remove(&mut self, namespace: &Arc<str>, selector: &LabelSelector, key: &K) {
        remove(&mut self.0, &required(namespace, selector), key);
    }

    /// The sets that could select a pod with these labels, each once.
    pub fn candidates<'a>(
        &'a self,
        namespace: &Arc<str>,
        labels: &'a BTreeMap<String, String>,
    ) -> impl Iterator<Item = &'a K> {
        let labels = labels.iter();
        let labels = labels.map(|(key, value)| Some((key.clone(), value.clone())));
        let namespace = Arc::clone(namespace);
        let required = labels.chain([None]).filter_map(move |label| {
            let label = (Arc::clone(&namespace), label);
            self.0.get(&label)
        });
        required.flatten()
    }

    /// The sets that require this label first.
    pub(crate) fn get(&self, label: &Label) -> Option<&BTreeSet<K>> {
        self.0.get(label)
    }
}

/// The first label that a selector requires.
pub(crate) fn required(namespace: &Arc<str>, selector: &LabelSelector) -> Label {
    let mut labels = selector.match_labels.iter().flatten();
    let label = labels.next();
    let label = label.map(|(key, value)| (key.clone(), value.clone()));
    (Arc::clone(namespace), label)
}

/// Removes a set from those of a label.
pub(crate) fn remove<K: Ord>(index: &mut BTreeMap<Label, BTreeSet<K>>, label: &Label, key: &K) {
    if let Some(sets) = index.get_mut(label) {
        sets.remove(key);
        if sets.is_empty() {
            index.remove(label);
        }
    }
}
