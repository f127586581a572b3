//! Finds the sets of a namespace that could adopt each other's pods, without comparing each with each.
//!
//! Of each set a few others are known, which is enough to report them. A set is compared with those that come as long as
//! fewer are known: a namespace full of equal selectors costs a few comparisons, and a few reports, for each change.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use fedrs_api::{ObjectKey, ValidFrs};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::required_labels::{Label, RequiredLabels, remove, required};

/// A set with a selector.
pub trait Selecting {
    /// What it is known by.
    type Key: Clone + Ord;

    /// Its key.
    fn key(&self) -> &Self::Key;
    /// Its namespace.
    fn namespace(&self) -> Arc<str>;
    /// Its selector.
    fn selector(&self) -> &LabelSelector;
    /// The labels of its pods.
    fn pod_labels(&self) -> &BTreeMap<String, String>;
}

impl Selecting for ValidFrs {
    type Key = ObjectKey;

    fn key(&self) -> &ObjectKey {
        &self.key
    }

    fn namespace(&self) -> Arc<str> {
        Arc::clone(&self.key.namespace)
    }

    fn selector(&self) -> &LabelSelector {
        &self.selector
    }

    fn pod_labels(&self) -> &BTreeMap<String, String> {
        &self.template.metadata.labels
    }
}

/// Others that are known of a set at most.
pub const MAX_KNOWN: usize = 9;

/// Sets, and which of them overlap.
#[derive(Debug)]
pub struct SelectorIndex<S: Selecting> {
    sets: BTreeMap<S::Key, Indexed<S>>,
    all: Candidates<S::Key>,
    /// Those of which fewer others than [`MAX_KNOWN`] are known.
    open: Candidates<S::Key>,
}

#[derive(Debug)]
struct Indexed<S: Selecting> {
    set: Arc<S>,
    /// Sets that overlap with it.
    known: BTreeSet<S::Key>,
    /// Sets that know it.
    known_by: BTreeSet<S::Key>,
}

impl<S: Selecting> Default for SelectorIndex<S> {
    fn default() -> Self {
        Self {
            sets: BTreeMap::new(),
            all: Candidates::default(),
            open: Candidates::default(),
        }
    }
}

impl<S: Selecting> SelectorIndex<S> {
    /// The sets that overlap with `key`: all, or [`MAX_KNOWN`] of them.
    pub fn known(&self, key: &S::Key) -> impl Iterator<Item = &S::Key> {
        self.sets.get(key).into_iter().flat_map(|set| &set.known)
    }

    /// The sets of a namespace whose selectors match these labels.
    pub fn selecting<'a>(
        &'a self,
        namespace: &Arc<str>,
        labels: &'a BTreeMap<String, String>,
    ) -> impl Iterator<Item = &'a S::Key> {
        let candidates = self.all.by_required.candidates(namespace, labels);
        candidates.filter(|key| {
            let set = &self.sets[*key].set;
            fedrs_api::selector::matches(set.selector(), labels)
        })
    }

    /// Adds or replaces a set. Returns the others whose known sets change.
    pub fn insert(&mut self, set: &Arc<S>) -> BTreeSet<S::Key> {
        let key = set.key();
        if let Some(known) = self.sets.get_mut(key)
            && known.set.selector() == set.selector()
            && known.set.pod_labels() == set.pod_labels()
        {
            known.set = Arc::clone(set);
            return BTreeSet::new();
        }
        let mut changed = self.remove(key);
        self.all.insert(&**set);
        let indexed = Indexed {
            set: Arc::clone(set),
            known: BTreeSet::new(),
            known_by: BTreeSet::new(),
        };
        self.sets.insert(key.clone(), indexed);
        let open: BTreeSet<_> = self.open.of(&**set).cloned().collect();
        for other in open {
            if overlap(&**set, &*self.sets[&other].set) {
                self.learn(&other, key);
                changed.insert(other);
            }
        }
        self.look_for_others(key);
        changed
    }

    /// Removes a set. Returns the others that knew it.
    pub fn remove(&mut self, key: &S::Key) -> BTreeSet<S::Key> {
        let Some(removed) = self.sets.remove(key) else {
            return BTreeSet::new();
        };
        self.all.remove(&*removed.set);
        self.open.remove(&*removed.set);
        for other in &removed.known {
            self.get_mut(other).known_by.remove(key);
        }
        for other in &removed.known_by {
            self.get_mut(other).known.remove(key);
            self.look_for_others(other);
        }
        removed.known_by
    }

    /// Completes the known sets of `key`.
    fn look_for_others(&mut self, key: &S::Key) {
        let Indexed { set, known, .. } = &self.sets[key];
        let mut found = BTreeSet::new();
        for other in self.all.of(&**set) {
            if known.len() + found.len() == MAX_KNOWN {
                break;
            }
            let is_new = !known.contains(other) && !found.contains(other);
            if is_new && overlap(&**set, &*self.sets[other].set) {
                found.insert(other.clone());
            }
        }
        self.open.insert(&**set);
        for other in found {
            self.learn(key, &other);
        }
    }

    /// Has `key` know `other`.
    fn learn(&mut self, key: &S::Key, other: &S::Key) {
        self.get_mut(other).known_by.insert(key.clone());
        let set = self.sets.get_mut(key).expect(INDEXED);
        set.known.insert(other.clone());
        if set.known.len() == MAX_KNOWN {
            self.open.remove(&*set.set);
        }
    }

    fn get_mut(&mut self, key: &S::Key) -> &mut Indexed<S> {
        self.sets.get_mut(key).expect(INDEXED)
    }
}

const INDEXED: &str = "sets know only sets that are indexed";

/// Sets by the labels of their templates, and by one label that their selectors require.
#[derive(Debug)]
struct Candidates<K> {
    /// By each label of the template; all of a namespace under none.
    by_label: BTreeMap<Label, BTreeSet<K>>,
    by_required: RequiredLabels<K>,
}

impl<K> Default for Candidates<K> {
    fn default() -> Self {
        Self {
            by_label: BTreeMap::new(),
            by_required: RequiredLabels::default(),
        }
    }
}

impl<K: Clone + Ord> Candidates<K> {
    fn insert(&mut self, set: &impl Selecting<Key = K>) {
        for label in labels(set) {
            self.by_label
                .entry(label)
                .or_default()
                .insert(set.key().clone());
        }
        self.by_required
            .insert(&set.namespace(), set.selector(), set.key());
    }

    fn remove(&mut self, set: &impl Selecting<Key = K>) {
        for label in labels(set) {
            remove(&mut self.by_label, &label, set.key());
        }
        self.by_required
            .remove(&set.namespace(), set.selector(), set.key());
    }

    /// The sets that may overlap with `set`, some more than once; [`overlap`] decides. The nearest before it by name come
    /// first: of many equal sets each is known by a few.
    fn of<'a>(&'a self, set: &'a impl Selecting<Key = K>) -> impl Iterator<Item = &'a K> {
        let could_be_taken = self
            .by_label
            .get(&required(&set.namespace(), set.selector()));
        let could_take = labels(set).filter_map(|label| self.by_required.get(&label));
        let sets = could_be_taken.into_iter().chain(could_take);
        let nearest_first = |sets: &'a BTreeSet<K>| {
            let before = sets.range(..set.key()).rev();
            before.chain(sets.range(set.key()..).rev())
        };
        sets.flat_map(nearest_first).filter(|key| *key != set.key())
    }
}

/// Whether one of two sets of a namespace could adopt the other's pods.
fn overlap<S: Selecting>(a: &S, b: &S) -> bool {
    #[cfg(test)]
    tests::COMPARISONS.with(|count| count.set(count.get() + 1));
    let takes = |a: &S, b: &S| fedrs_api::selector::matches(a.selector(), b.pod_labels());
    takes(a, b) || takes(b, a)
}

fn labels(set: &impl Selecting) -> impl Iterator<Item = Label> {
    let namespace = set.namespace();
    let labels = set.pod_labels().iter();
    let labels = labels.map(|(key, value)| Some((key.clone(), value.clone())));
    labels
        .chain([None])
        .map(move |label| (Arc::clone(&namespace), label))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use fedrs_api::FederatedReplicaSet;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    thread_local! {
        pub(super) static COMPARISONS: Cell<usize> = const { Cell::new(0) };
    }

    fn frs(name: usize, selector: &Value, labels: &Value) -> Arc<ValidFrs> {
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
        ValidFrs::check(&object).unwrap().into()
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

    /// What each set knows.
    fn known(index: &SelectorIndex<ValidFrs>) -> BTreeMap<ObjectKey, BTreeSet<ObjectKey>> {
        let sets = index.sets.iter();
        sets.map(|(key, set)| (key.clone(), set.known.clone()))
            .collect()
    }

    proptest! {
        #[test]
        fn every_overlap_is_known_and_who_learns_or_forgets_one_is_returned(
            changes in prop::collection::vec((0_usize..9, prop::option::of(set())), 1..40),
        ) {
            let mut index = SelectorIndex::default();
            let mut sets = BTreeMap::new();
            for (name, change) in changes {
                let before = known(&index);
                let key = ObjectKey::new("default", &*format!("s{name}"));
                let returned = if let Some((selector, labels)) = change {
                    let frs = frs(name, &selector, &labels);
                    sets.insert(key.clone(), Arc::clone(&frs));
                    index.insert(&frs)
                } else {
                    sets.remove(&key);
                    index.remove(&key)
                };
                let now = known(&index);
                prop_assert!(now.keys().eq(sets.keys()));
                for (a, frs) in &sets {
                    let others = sets.iter().filter(|(b, other)| a != *b && overlap(&**frs, &**other));
                    prop_assert!(now[a].iter().eq(others.map(|(b, _)| b)));
                    let is_unchanged = before.get(a) == Some(&now[a]);
                    prop_assert!(*a == key || is_unchanged || returned.contains(a));
                }
                prop_assert!(!returned.contains(&key));
            }
        }
    }

    proptest! {
        /// The index finds what a comparison with each set finds, each once.
        #[test]
        fn who_selects_a_pod_is_found_by_its_labels(
            sets in prop::collection::vec(set(), 0..9),
            removed in prop::collection::btree_set(0_usize..9, 0..3),
            labels in prop::collection::btree_map("[ab]", "[xy]", 0..3),
        ) {
            let mut index = SelectorIndex::default();
            let sets = sets.iter().enumerate();
            let mut sets: Vec<_> = sets
                .map(|(name, (selector, labels))| frs(name, selector, labels))
                .collect();
            for frs in &sets {
                index.insert(frs);
            }
            for name in removed {
                let key = ObjectKey::new("default", &*format!("s{name}"));
                index.remove(&key);
                sets.retain(|frs| frs.key != key);
            }
            let selecting = |namespace: &str| {
                let namespace = namespace.into();
                let found = index.selecting(&namespace, &labels);
                let mut found: Vec<_> = found.cloned().collect();
                found.sort();
                found
            };
            let expected = sets.iter().filter(|frs| {
                fedrs_api::selector::matches(&frs.selector, &labels)
            });
            let expected: Vec<_> = expected.map(|frs| frs.key.clone()).collect();
            prop_assert_eq!(selecting("default"), expected);
            prop_assert_eq!(selecting("other"), []);
        }
    }

    #[test]
    fn s4_equal_selectors_cost_a_few_comparisons_and_reports_each() {
        const SETS: usize = 1000;
        let labels = json!({ "app": "web" });
        let equal = |name| frs(name, &json!({ "matchLabels": labels }), &labels);
        let mut index = SelectorIndex::default();
        COMPARISONS.set(0);
        let mut reports = 0;
        // In the order of creation, in that of a list, and in the opposite one.
        for name in (SETS..2 * SETS)
            .chain(2 * SETS..3 * SETS)
            .chain((0..SETS).rev())
        {
            reports += index.insert(&equal(name)).len();
        }
        assert!(known(&index).values().all(|known| known.len() == MAX_KNOWN));
        // One that changes its labels again and again, and all that are deleted.
        let other = json!({ "app": "web", "other": "x" });
        for labels in [&other, &labels].into_iter().cycle().take(SETS) {
            let selector = json!({ "matchLabels": labels });
            reports += index.insert(&frs(SETS, &selector, labels)).len();
        }
        for name in 0..3 * SETS {
            let key = ObjectKey::new("default", &*format!("s{name}"));
            reports += index.remove(&key).len();
            // Who knew it has looked for another.
            let left = 3 * SETS - name - 1;
            if left < 2 * MAX_KNOWN {
                let others = left.saturating_sub(1).min(MAX_KNOWN);
                assert!(known(&index).values().all(|known| known.len() == others));
            }
        }
        let changes = 7 * SETS;
        let comparisons = COMPARISONS.get();
        assert!(comparisons < 100 * changes, "{comparisons} comparisons");
        assert!(reports < 20 * changes, "{reports} reports");
        println!(
            "{} comparisons and {} reports for each change",
            comparisons / changes,
            reports / changes
        );
    }
}
