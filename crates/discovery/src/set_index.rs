//! The EndpointSets whose selectors may match a pod, without a look at each of the namespace.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::{pod::Labels, set::SetKey};

/// A namespace, and a label that the selectors of its sets require; none for sets that require no value.
type Place = (Arc<str>, Option<(String, String)>);

/// Sets by the first label that their selector requires.
#[derive(Debug, Default)]
pub(crate) struct SetIndex(BTreeMap<Place, BTreeSet<SetKey>>);

impl SetIndex {
    pub(crate) fn insert(&mut self, key: &SetKey, selector: &LabelSelector) {
        let sets = self.0.entry(place(key, selector)).or_default();
        sets.insert(key.clone());
    }

    pub(crate) fn remove(&mut self, key: &SetKey, selector: &LabelSelector) {
        let place = place(key, selector);
        if let Some(sets) = self.0.get_mut(&place) {
            sets.remove(key);
            if sets.is_empty() {
                self.0.remove(&place);
            }
        }
    }

    /// The sets that could match a pod with these labels, each once.
    pub(crate) fn candidates<'a>(
        &'a self,
        namespace: &Arc<str>,
        labels: &'a Labels,
    ) -> impl Iterator<Item = &'a SetKey> {
        let labels = labels.iter();
        let labels = labels.map(|(key, value)| Some((key.clone(), value.clone())));
        let namespace = Arc::clone(namespace);
        let sets = (labels.chain([None])).filter_map(move |label| {
            let place = (Arc::clone(&namespace), label);
            self.0.get(&place)
        });
        sets.flatten()
    }
}

fn place(key: &SetKey, selector: &LabelSelector) -> Place {
    let mut labels = selector.match_labels.iter().flatten();
    let label = labels.next();
    let label = label.map(|(key, value)| (key.clone(), value.clone()));
    (Arc::clone(&key.namespace), label)
}
