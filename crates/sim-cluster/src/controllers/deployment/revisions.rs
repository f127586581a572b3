//! Which ReplicaSet is the new one, and the numbers of the rollouts: `Deployment, ReplicaSets -> Revisions`. Pure.

use serde_json::{Map, Value, json};

use super::limits::Limits;
use super::template;
use super::views::{DESIRED_REPLICAS, Deployment, MAX_REPLICAS, REVISION, REVISION_HISTORY, Set};
use crate::object::map;

/// Annotations of the Deployment that its ReplicaSets do not get.
const NOT_COPIED: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    REVISION_HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    "deprecated.deployment.rollback.to",
];
/// The longest history of revisions in bytes; the oldest ones are dropped.
const HISTORY_MAX: usize = 2_000;

/// The ReplicaSets of a Deployment.
#[derive(Clone, Debug)]
pub(super) struct Revisions<'a> {
    /// The oldest one with the Deployment's template.
    pub(super) new: Option<Set<'a>>,
    /// All others, oldest first.
    pub(super) old: Vec<Set<'a>>,
}

impl<'a> Revisions<'a> {
    pub(super) fn of(deployment: Deployment<'_>, sets: &[Set<'a>]) -> Self {
        let mut old = sets.to_vec();
        old.sort_by(|one, other| one.by_age(*other));
        let wanted = &deployment.0["spec"]["template"];
        let new = (old.iter())
            .position(|set| template::is_same(&set.0["spec"]["template"], wanted))
            .map(|place| old.remove(place));
        Self { new, old }
    }

    /// The old ones, then the new one.
    pub(super) fn all(&self) -> impl Iterator<Item = Set<'a>> + Clone + '_ {
        self.old.iter().copied().chain(self.new)
    }

    /// The old ones with replicas, oldest first.
    pub(super) fn active_old(&self) -> Vec<Set<'a>> {
        let active = self.old.iter().filter(|set| set.is_active());
        active.copied().collect()
    }

    /// The revision that the new ReplicaSet has at least.
    pub(super) fn next_revision(&self) -> i64 {
        let revisions = self.old.iter().map(|set| set.revision());
        revisions.max().unwrap_or_default().max(0) + 1
    }
}

/// The annotations of a ReplicaSet that is created for this revision.
pub(super) fn first_annotations(
    deployment: Deployment<'_>,
    limits: Limits,
    revision: i64,
) -> Map<String, Value> {
    let mut annotations = Map::new();
    copy_annotations(deployment, &mut annotations);
    annotations.insert(REVISION.to_owned(), json!(revision.to_string()));
    annotations.extend(replicas_annotations(deployment, limits));
    annotations
}

/// The annotations that every write of a ReplicaSet's replicas updates.
pub(super) fn replicas_annotations(
    deployment: Deployment<'_>,
    limits: Limits,
) -> [(String, Value); 2] {
    let desired = deployment.replicas();
    let most = desired + limits.surge;
    [(DESIRED_REPLICAS, desired), (MAX_REPLICAS, most)]
        .map(|(key, number)| (key.to_owned(), json!(number.to_string())))
}

/// The annotations of the new ReplicaSet, which exists, or `None` if they do not change. A ReplicaSet that is rolled back
/// to gets a new revision and remembers the one it had.
pub(super) fn updated_annotations(
    deployment: Deployment<'_>,
    set: Set<'_>,
    revision: i64,
) -> Option<Map<String, Value>> {
    let before = map(set.0, "/metadata/annotations");
    let mut annotations = before.cloned().unwrap_or_default();
    copy_annotations(deployment, &mut annotations);
    let had = set.annotation(REVISION).unwrap_or_default();
    // As in Kubernetes, a revision that is no number stops all updates.
    let number: i64 = if had.is_empty() { 0 } else { had.parse().ok()? };
    if number < revision {
        annotations.insert(REVISION.to_owned(), json!(revision.to_string()));
        if set.annotation(REVISION).is_some() {
            let history = set.annotation(REVISION_HISTORY).unwrap_or_default();
            if let Some(history) = longer_history(history, had) {
                annotations.insert(REVISION_HISTORY.to_owned(), json!(history));
            }
        }
    }
    let changed = before.map_or(!annotations.is_empty(), |before| *before != annotations);
    changed.then_some(annotations)
}

/// The history with one more revision, without the oldest ones if it gets too long.
fn longer_history(history: &str, revision: &str) -> Option<String> {
    if history.is_empty() || history.starts_with(',') {
        return Some(revision.to_owned());
    }
    let mut kept = history;
    while kept.len() + 1 + revision.len() > HISTORY_MAX {
        (_, kept) = kept.split_once(',')?;
    }
    Some(format!("{kept},{revision}"))
}

fn copy_annotations(deployment: Deployment<'_>, to: &mut Map<String, Value>) {
    let own = deployment.annotations().into_iter().flatten();
    let copied = own.filter(|(key, _)| !NOT_COPIED.contains(&key.as_str()));
    to.extend(copied.map(|(key, value)| (key.clone(), value.clone())));
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn set(name: &str, created: &str, image: &str, annotations: &Value) -> Value {
        json!({
            "metadata": {"name": name, "creationTimestamp": created, "annotations": annotations},
            "spec": {"replicas": 1, "template": {
                "metadata": {"labels": {"app": "web", "pod-template-hash": name}}, "spec": {"image": image}}},
        })
    }

    fn deployment(annotations: &Value) -> Value {
        json!({
            "metadata": {"name": "web", "annotations": annotations},
            "spec": {"replicas": 4, "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"image": "b"}}},
        })
    }

    #[test]
    fn the_oldest_with_the_template_is_the_new_one() {
        let sets = [
            set("late", "2026-01-03T00:00:00Z", "b", &json!({REVISION: "7"})),
            set("b", "2026-01-02T00:00:00Z", "b", &json!({REVISION: "2"})),
            set("a", "2026-01-01T00:00:00Z", "a", &json!({REVISION: "x"})),
        ];
        let sets: Vec<Set<'_>> = sets.iter().map(Set).collect();
        let deployment = deployment(&json!({}));
        let revisions = Revisions::of(Deployment(&deployment), &sets);
        assert_eq!(revisions.new.map(Set::name), Some("b"));
        let old: Vec<_> = revisions.old.iter().map(|set| set.name()).collect();
        assert_eq!(old, ["a", "late"]);
        assert_eq!(revisions.next_revision(), 8);
    }

    #[test]
    fn a_new_set_gets_the_annotations_of_its_deployment_but_some() {
        let deployment = deployment(
            &json!({"kubernetes.io/change-cause": "x", REVISION: "9", NOT_COPIED[0]: "{}"}),
        );
        let limits = Limits {
            surge: 1,
            unavailable: 0,
        };
        let expected = json!({
            "kubernetes.io/change-cause": "x", REVISION: "3", DESIRED_REPLICAS: "4", MAX_REPLICAS: "5",
        });
        let annotations = first_annotations(Deployment(&deployment), limits, 3);
        assert_eq!(json!(annotations), expected);
    }

    #[rstest]
    #[case::current(json!({REVISION: "3"}), json!({}), None)]
    #[case::later_than_needed(json!({REVISION: "5"}), json!({}), None)]
    #[case::rolled_back_to(json!({REVISION: "1"}), json!({}), Some(json!({REVISION: "3", REVISION_HISTORY: "1"})))]
    #[case::again(json!({REVISION: "2", REVISION_HISTORY: "1"}), json!({}), Some(json!({REVISION: "3", REVISION_HISTORY: "1,2"})))]
    #[case::adopted(json!({}), json!({}), Some(json!({REVISION: "3"})))]
    #[case::copied(json!({REVISION: "3"}), json!({"a": "b"}), Some(json!({REVISION: "3", "a": "b"})))]
    #[case::removed_ones_stay(json!({REVISION: "3", "a": "b"}), json!({}), None)]
    #[case::no_number(json!({REVISION: "x"}), json!({"a": "b"}), None)]
    fn annotations_follow(
        #[case] has: Value,
        #[case] of_deployment: Value,
        #[case] expected: Option<Value>,
    ) {
        let (set, deployment) = (set("a", "", "b", &has), deployment(&of_deployment));
        let updated = updated_annotations(Deployment(&deployment), Set(&set), 3);
        assert_eq!(updated.map(Value::Object), expected);
    }

    #[test]
    fn a_long_history_loses_its_oldest_revisions() {
        let long = vec!["12345"; 333].join(",");
        assert_eq!(long.len(), 1_997);
        assert_eq!(longer_history(&long, "67"), Some(format!("{long},67")));
        assert_eq!(
            longer_history(&long, "678"),
            Some(format!("{},678", &long[6..]))
        );
    }
}
