//! What happens to the ReplicaSets when the replicas of their Deployment change, or while it is paused:
//! `Revisions, Limits -> resizes`. Pure.
//!
//! In the middle of a rollout every ReplicaSet gets its share of the change, so that scaling neither speeds up a rollout
//! nor undoes it.

use std::cmp::Ordering;

use super::limits::Limits;
use super::revisions::{Revisions, replicas_annotations};
use super::views::{DESIRED_REPLICAS, Deployment, MAX_REPLICAS, Set, total};
use crate::object::integer;

/// New replicas for a ReplicaSet. They may be the same: then only its annotations change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Resize<'a> {
    pub(super) set: Set<'a>,
    pub(super) from: i64,
    pub(super) to: i64,
}

impl<'a> Resize<'a> {
    /// The change to `to` replicas, or `None` if there are that many.
    pub(super) fn of(set: Set<'a>, to: i64) -> Option<Self> {
        let from = set.replicas();
        (from != to).then_some(Self { set, from, to })
    }
}

/// Whether the replicas of the Deployment have changed since its ReplicaSets were scaled.
pub(super) fn is_due(deployment: Deployment<'_>, revisions: &Revisions<'_>) -> bool {
    let mut active = revisions.all().filter(|set| set.is_active());
    active.any(|set| {
        set.replicas_annotation(DESIRED_REPLICAS)
            .is_some_and(|desired| desired != deployment.replicas())
    })
}

/// The changes of all ReplicaSets, in the order of their writes.
pub(super) fn scale<'a>(
    deployment: Deployment<'_>,
    revisions: &Revisions<'a>,
    limits: Limits,
) -> Vec<Resize<'a>> {
    let replicas = deployment.replicas();
    let mut active: Vec<Set<'a>> = revisions.all().filter(|set| set.is_active()).collect();
    if active.len() < 2 {
        let newest = revisions.new.or_else(|| revisions.old.last().copied());
        let only = active.first().copied().or(newest);
        return only
            .and_then(|set| Resize::of(set, replicas))
            .into_iter()
            .collect();
    }
    if revisions
        .new
        .is_some_and(|new| is_saturated(deployment, new))
    {
        let old = revisions.active_old().into_iter();
        return old.filter_map(|set| Resize::of(set, 0)).collect();
    }
    if !deployment.is_rolling() {
        return Vec::new();
    }
    let most = if replicas > 0 {
        replicas + limits.surge
    } else {
        0
    };
    let change = most - total(active.iter().copied());
    active.sort_by(|one, other| larger_first(*one, *other, change));
    let needed = |resize: &Resize<'_>| {
        resize.from != resize.to || !has_replicas_annotations(deployment, limits, resize.set)
    };
    let mut resizes = shares(deployment, limits, &active, change);
    resizes.retain(needed);
    resizes
}

/// Larger ReplicaSets first; of equal ones the newest when there are replicas to add, otherwise the oldest.
fn larger_first(one: Set<'_>, other: Set<'_>, change: i64) -> Ordering {
    let by_age = match change.cmp(&0) {
        Ordering::Greater => other.by_age(one),
        _ => one.by_age(other),
    };
    other.replicas().cmp(&one.replicas()).then(by_age)
}

/// Distributes `change` replicas in proportion to the sizes; the first ReplicaSet gets what rounding leaves.
fn shares<'a>(
    deployment: Deployment<'_>,
    limits: Limits,
    sets: &[Set<'a>],
    change: i64,
) -> Vec<Resize<'a>> {
    let mut left = change;
    let mut resizes: Vec<Resize<'a>> = Vec::new();
    for set in sets {
        let fraction = fraction(deployment, limits, *set);
        let share = match change.cmp(&0) {
            Ordering::Greater => fraction.min(left),
            Ordering::Less => fraction.max(left),
            Ordering::Equal => 0,
        };
        let share = if left == 0 { 0 } else { share };
        left -= share;
        let from = set.replicas();
        resizes.push(Resize {
            set: *set,
            from,
            to: from + share,
        });
    }
    if let Some(first) = resizes.first_mut().filter(|_| change != 0) {
        first.to = (first.to + left).max(0);
    }
    resizes
}

/// The change of a ReplicaSet that keeps its share of the Deployment's largest number of pods.
fn fraction(deployment: Deployment<'_>, limits: Limits, set: Set<'_>) -> i64 {
    let size = set.replicas();
    if deployment.replicas() == 0 {
        return -size;
    }
    let after = deployment.replicas() + limits.surge;
    let before = set
        .replicas_annotation(MAX_REPLICAS)
        .filter(|most| *most > 0)
        .or_else(|| integer(deployment.0, "/status/replicas"))
        .filter(|most| *most > 0);
    // Rounded to the nearest number, halves up.
    before.map_or(0, |before| {
        (2 * size * after + before) / (2 * before) - size
    })
}

/// Whether all replicas of the Deployment are in this ReplicaSet and available.
fn is_saturated(deployment: Deployment<'_>, new: Set<'_>) -> bool {
    let replicas = deployment.replicas();
    new.replicas() == replicas
        && new.replicas_annotation(DESIRED_REPLICAS) == Some(replicas)
        && new.available() == replicas
}

fn has_replicas_annotations(deployment: Deployment<'_>, limits: Limits, set: Set<'_>) -> bool {
    let wanted = replicas_annotations(deployment, limits);
    (wanted.iter()).all(|(key, value)| set.annotation(key) == value.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{prop_assert, proptest};
    use rstest::rstest;
    use serde_json::{Value, json};

    fn deployment(replicas: i64, surge: i64) -> Value {
        json!({"spec": {
            "replicas": replicas, "template": {"spec": {"image": "new"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": 0}},
        }})
    }

    /// A ReplicaSet that was scaled when the Deployment had `before` replicas and a surge of `surge`.
    fn set(index: usize, image: &str, size: i64, before: i64, surge: i64) -> Value {
        json!({
            "metadata": {
                "name": format!("s{index}"), "creationTimestamp": format!("2026-01-01T00:00:0{index}Z"),
                "annotations": {
                    DESIRED_REPLICAS: before.to_string(), MAX_REPLICAS: (before + surge).to_string(),
                },
            },
            "spec": {"replicas": size, "template": {"spec": {"image": image}}},
        })
    }

    /// The sizes of the old ReplicaSets, oldest first, and of the new one: before and after the Deployment changes.
    #[rstest]
    #[case::down(10, 5, 0, vec![5, 5], vec![2, 3])]
    #[case::up(5, 10, 0, vec![3, 2], vec![6, 4])]
    #[case::up_newest_first(4, 5, 0, vec![2, 2], vec![2, 3])]
    #[case::down_oldest_first(4, 3, 0, vec![2, 2], vec![1, 2])]
    #[case::surge_counts(10, 15, 3, vec![8, 5], vec![11, 7])]
    #[case::to_zero(5, 0, 1, vec![3, 3], vec![0, 0])]
    #[case::three_sets(10, 20, 0, vec![5, 3, 2], vec![10, 6, 4])]
    #[case::rest_to_the_largest(7, 8, 0, vec![3, 2, 2], vec![4, 2, 2])]
    #[case::one_active(3, 5, 0, vec![0, 3], vec![0, 5])]
    #[case::one_active_old(3, 5, 0, vec![3, 0], vec![5, 0])]
    #[case::none_active(0, 5, 0, vec![0, 0], vec![0, 5])]
    #[case::unchanged(5, 5, 0, vec![3, 2], vec![3, 2])]
    fn every_set_gets_its_share(
        #[case] before: i64,
        #[case] after: i64,
        #[case] surge: i64,
        #[case] sizes: Vec<i64>,
        #[case] expected: Vec<i64>,
    ) {
        let deployment = deployment(after, surge);
        let last = sizes.len() - 1;
        let image = |index: usize| if index == last { "new" } else { "old" };
        let objects: Vec<Value> = (sizes.iter().enumerate())
            .map(|(index, size)| set(index, image(index), *size, before, surge))
            .collect();
        let sets: Vec<Set<'_>> = objects.iter().map(Set).collect();
        let deployment = Deployment(&deployment);
        let revisions = Revisions::of(deployment, &sets);
        let resizes = scale(deployment, &revisions, Limits::of(deployment));
        let after = |set: &Set<'_>| {
            let resize = resizes.iter().find(|resize| resize.set == *set);
            resize.map_or(set.replicas(), |resize| resize.to)
        };
        assert_eq!(sets.iter().map(after).collect::<Vec<_>>(), expected);
    }

    proptest! {
        /// Rounding leaves too many when a Deployment is scaled down to very few; the rollout removes them later.
        #[test]
        fn shares_sum_up_and_have_one_direction(
            sizes in proptest::collection::vec(1_i64..30, 2..6), after in 1_i64..90,
        ) {
            let before: i64 = sizes.iter().sum();
            let objects: Vec<Value> = (sizes.iter().enumerate())
                .map(|(index, size)| set(index, "old", *size, before, 0))
                .collect();
            let sets: Vec<Set<'_>> = objects.iter().map(Set).collect();
            let deployment = deployment(after, 0);
            let resizes = shares(Deployment(&deployment), Limits::default(), &sets, after - before);
            let sum: i64 = resizes.iter().map(|resize| resize.to).sum();
            prop_assert!(sum == after || (after < before && sum > after && sum <= before));
            for resize in resizes {
                prop_assert!(resize.to >= 0);
                prop_assert!((resize.to - resize.from).signum() * (after - before).signum() >= 0);
            }
        }
    }

    #[test]
    fn old_sets_go_when_the_new_one_has_everything() {
        let deployment = deployment(2, 1);
        let mut new = set(1, "new", 2, 2, 1);
        new["status"] = json!({"availableReplicas": 2});
        let old = set(0, "old", 1, 3, 1);
        let revisions = Revisions::of(Deployment(&deployment), &[Set(&old), Set(&new)]);
        let limits = Limits::of(Deployment(&deployment));
        let resizes = scale(Deployment(&deployment), &revisions, limits);
        assert_eq!(
            resizes,
            [Resize {
                set: Set(&old),
                from: 1,
                to: 0
            }]
        );
        assert!(is_due(Deployment(&deployment), &revisions));
    }

    #[test]
    fn changed_annotations_are_written_without_a_change_of_size() {
        let deployment = deployment(4, 2);
        let sets = [set(0, "old", 3, 5, 1), set(1, "new", 3, 5, 1)];
        let sets: Vec<Set<'_>> = sets.iter().map(Set).collect();
        let revisions = Revisions::of(Deployment(&deployment), &sets);
        let limits = Limits::of(Deployment(&deployment));
        let resizes = scale(Deployment(&deployment), &revisions, limits);
        assert!(resizes.iter().all(|resize| resize.from == resize.to));
        assert_eq!(resizes.len(), 2);
    }

    #[test]
    fn recreate_scales_no_two_sets() {
        let mut deployment = deployment(9, 0);
        deployment["spec"]["strategy"] = json!({"type": "Recreate"});
        let sets = [set(0, "old", 3, 5, 0), set(1, "new", 2, 5, 0)];
        let sets: Vec<Set<'_>> = sets.iter().map(Set).collect();
        let revisions = Revisions::of(Deployment(&deployment), &sets);
        let resizes = scale(Deployment(&deployment), &revisions, Limits::default());
        assert_eq!(resizes, []);
    }
}
