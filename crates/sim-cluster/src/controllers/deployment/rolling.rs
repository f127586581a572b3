//! The next step of a rolling update: `Revisions, Limits -> resizes`. Pure.
//!
//! new ReplicaSet up, up to the surge -> otherwise old ones down: first what is unhealthy, then what is not needed to stay
//! available

use super::limits::Limits;
use super::revisions::Revisions;
use super::scaling::Resize;
use super::views::{Deployment, Set, sum, total};

/// The replicas of a new ReplicaSet that has `present` ones; `all` are those of all ReplicaSets.
pub(super) fn new_replicas(
    deployment: Deployment<'_>,
    limits: Limits,
    all: i64,
    present: i64,
) -> i64 {
    if !deployment.is_rolling() {
        return deployment.replicas();
    }
    let room = (deployment.replicas() + limits.surge - all).max(0);
    present + room.min(deployment.replicas() - present)
}

/// The change of the new ReplicaSet, if there is one to make.
pub(super) fn resize_new<'a>(
    deployment: Deployment<'_>,
    revisions: &Revisions<'_>,
    new: Set<'a>,
    limits: Limits,
) -> Option<Resize<'a>> {
    let replicas = deployment.replicas();
    if new.replicas() >= replicas {
        return Resize::of(new, replicas);
    }
    let to = new_replicas(deployment, limits, total(revisions.all()), new.replicas());
    Resize::of(new, to)
}

/// The changes of the old ReplicaSets. The same one can occur twice: without its unhealthy pods, then with fewer healthy
/// ones.
pub(super) fn shrink_old<'a>(
    deployment: Deployment<'_>,
    revisions: &Revisions<'a>,
    new: Set<'_>,
    limits: Limits,
) -> Vec<Resize<'a>> {
    let least = deployment.replicas() - limits.unavailable;
    let new_unavailable = new.replicas() - new.available();
    let most = total(revisions.all()) - least - new_unavailable;
    let mut old = Shrinking::of(revisions.active_old());
    if most <= 0 || !old.remove_unhealthy(most) {
        return old.resizes;
    }
    let available = sum(old.sets.iter().map(|(set, _)| *set), "availableReplicas");
    old.remove(available + new.available() - least);
    old.resizes
}

/// Old ReplicaSets with their replicas after the resizes so far.
struct Shrinking<'a> {
    sets: Vec<(Set<'a>, i64)>,
    resizes: Vec<Resize<'a>>,
}

impl<'a> Shrinking<'a> {
    fn of(sets: Vec<Set<'a>>) -> Self {
        let sets = sets.into_iter().map(|set| (set, set.replicas()));
        Self {
            sets: sets.collect(),
            resizes: Vec::new(),
        }
    }

    /// Removes at most `most` replicas that are not available. Returns false if a ReplicaSet has more available pods than
    /// replicas: as in Kubernetes, nothing more is removed then.
    fn remove_unhealthy(&mut self, most: i64) -> bool {
        let mut left = most;
        for (set, size) in &mut self.sets {
            if left <= 0 {
                break;
            }
            let unhealthy = *size - set.available();
            if unhealthy < 0 {
                return false;
            }
            left -= shrink(*set, size, unhealthy.min(left), &mut self.resizes);
        }
        true
    }

    /// Removes `count` replicas, from the oldest ReplicaSets first.
    fn remove(&mut self, count: i64) {
        let mut left = count;
        for (set, size) in &mut self.sets {
            let by = (*size).min(left).max(0);
            left -= shrink(*set, size, by, &mut self.resizes);
        }
    }
}

/// Removes `by` replicas and returns how many.
fn shrink<'a>(set: Set<'a>, size: &mut i64, by: i64, resizes: &mut Vec<Resize<'a>>) -> i64 {
    if by > 0 {
        let from = *size;
        *size -= by;
        let to = *size;
        resizes.push(Resize { set, from, to });
    }
    by
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn deployment(replicas: i64, limits: Limits) -> Value {
        json!({"spec": {
            "replicas": replicas, "template": {"spec": {"image": "new"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {
                "maxSurge": limits.surge, "maxUnavailable": limits.unavailable}},
        }})
    }

    /// Replicas and available ones.
    fn set(index: usize, image: &str, (size, available): (i64, i64)) -> Value {
        json!({
            "metadata": {"name": format!("s{index}"), "creationTimestamp": format!("2026-01-01T00:00:0{index}Z")},
            "spec": {"replicas": size, "template": {"spec": {"image": image}}},
            "status": {"availableReplicas": available},
        })
    }

    fn limits(surge: i64, unavailable: i64) -> Limits {
        Limits { surge, unavailable }
    }

    #[rstest]
    #[case::first(10, 3, 0, 0, 10)]
    #[case::up_to_the_surge(10, 3, 10, 0, 3)]
    #[case::no_room(10, 3, 13, 5, 5)]
    #[case::more_than_allowed(10, 0, 13, 5, 5)]
    #[case::not_more_than_specified(10, 5, 11, 8, 10)]
    fn a_new_set_grows(
        #[case] replicas: i64,
        #[case] surge: i64,
        #[case] all: i64,
        #[case] present: i64,
        #[case] expected: i64,
    ) {
        let limits = limits(surge, 0);
        let deployment = deployment(replicas, limits);
        let replicas = new_replicas(Deployment(&deployment), limits, all, present);
        assert_eq!(replicas, expected);
    }

    #[rstest]
    #[case::up((5, 5), (0, 0), limits(1, 0), Some((0, 1)))]
    #[case::wait((5, 5), (1, 0), limits(1, 0), None)]
    #[case::down((0, 0), (7, 7), limits(1, 0), Some((7, 5)))]
    #[case::right((2, 2), (5, 5), limits(1, 0), None)]
    fn the_new_set_goes_first(
        #[case] old: (i64, i64),
        #[case] new: (i64, i64),
        #[case] limits: Limits,
        #[case] expected: Option<(i64, i64)>,
    ) {
        let deployment = deployment(5, limits);
        let (old, new) = (set(0, "old", old), set(1, "new", new));
        let revisions = Revisions::of(Deployment(&deployment), &[Set(&old), Set(&new)]);
        let resize = resize_new(Deployment(&deployment), &revisions, Set(&new), limits);
        assert_eq!(resize.map(|resize| (resize.from, resize.to)), expected);
    }

    /// Ten replicas are specified. Expected: which old ReplicaSet has how many replicas after each write.
    #[rstest]
    #[case::nothing_to_spare(vec![(10, 10)], (3, 0), limits(3, 0), vec![])]
    #[case::spare_ones_at_once(vec![(10, 10)], (0, 0), limits(3, 2), vec![(0, 8)])]
    #[case::for_each_available(vec![(8, 8)], (5, 2), limits(3, 2), vec![(0, 6)])]
    #[case::oldest_first(vec![(2, 2), (8, 8)], (3, 3), limits(3, 0), vec![(0, 0), (1, 7)])]
    #[case::unhealthy_first(vec![(4, 4), (8, 5)], (1, 1), limits(3, 0), vec![(1, 5)])]
    #[case::unhealthy_then_healthy(vec![(8, 7)], (5, 5), limits(3, 2), vec![(0, 7), (0, 3)])]
    #[case::unhealthy_new_ones_block(vec![(8, 7)], (5, 0), limits(3, 2), vec![])]
    #[case::still_terminating(vec![(8, 9)], (5, 5), limits(3, 2), vec![])]
    fn old_sets_shrink(
        #[case] old: Vec<(i64, i64)>,
        #[case] new: (i64, i64),
        #[case] limits: Limits,
        #[case] expected: Vec<(usize, i64)>,
    ) {
        let deployment = deployment(10, limits);
        let old: Vec<Value> = (old.into_iter().enumerate())
            .map(|(index, sizes)| set(index, "old", sizes))
            .collect();
        let new = set(9, "new", new);
        let sets: Vec<Set<'_>> = old.iter().chain([&new]).map(Set).collect();
        let revisions = Revisions::of(Deployment(&deployment), &sets);
        let resizes = shrink_old(Deployment(&deployment), &revisions, Set(&new), limits);
        let place = |set: Set<'_>| sets.iter().position(|other| *other == set).unwrap();
        let found: Vec<_> = (resizes.iter())
            .map(|resize| (place(resize.set), resize.to))
            .collect();
        assert_eq!(found, expected);
    }
}
