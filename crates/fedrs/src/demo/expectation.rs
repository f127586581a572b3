//! Whether a step has reached its goal: compares what runs with the layout that the scheduler computes.
//!
//! ```text
//! goal --federated-scheduler--> Expected --compared with--> SetSnapshot --> what is missing
//! ```

use std::collections::BTreeMap;

use super::{
    snapshot::{ClusterSnapshot, SetSnapshot, State},
    story::{Goal, LayoutGoal, MEMBERS, NAMESPACE},
};
use crate::plan::case::Case;

/// Capacity probes in a full cluster (F34): the controller's default.
pub(crate) const CAPACITY_PROBES: u64 = 2;

/// What must run in one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// Replicas that must be ready.
    pub(crate) replicas: u64,
    /// Replicas that must be pending besides, to detect new capacity (F34).
    pub(crate) pending: u64,
}

/// What must run in each reachable member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Expected(pub(crate) BTreeMap<&'static str, Share>);

/// The layout that the scheduler computes for `goal`.
pub(crate) fn expected(goal: &LayoutGoal) -> Expected {
    let members = MEMBERS.map(|member| member.name).into_iter();
    let reachable = members.filter(|name| goal.unreachable != Some(*name));
    let mut case = Case {
        key: format!("{NAMESPACE}/{}", goal.set),
        replicas: goal.replicas,
        placement: goal.placement(),
        clusters: reachable.clone().map(str::to_owned).collect(),
        ..Case::default()
    };
    let fair = case.plan();
    let capacity = goal
        .full
        .map(|(name, capacity)| (name.to_owned(), capacity));
    case.capacity.extend(capacity);
    let within_capacity = case.plan();
    let shares = within_capacity.shares.iter().zip(&fair.shares);
    let shares = reachable.zip(shares).map(|(name, (share, fair))| {
        let is_full = goal.full.is_some_and(|(member, _)| member == name);
        let replicas = share.replicas;
        let pending = if is_full {
            (fair.replicas - replicas).min(CAPACITY_PROBES)
        } else {
            0
        };
        (name, Share { replicas, pending })
    });
    Expected(shares.collect())
}

impl Expected {
    /// What is missing until the set has this layout and the controller reports that it is settled.
    fn missing(&self, goal: &LayoutGoal, snapshot: &SetSnapshot) -> Vec<String> {
        let mut missing = Vec::new();
        if snapshot.desired != Some(goal.replicas) {
            missing.push(format!(
                "spec.replicas of the set is {:?}",
                snapshot.desired
            ));
        }
        missing.extend(snapshot.clusters.iter().filter_map(|cluster| {
            match self.0.get(cluster.name.as_str()) {
                Some(share) => share.missing(cluster),
                None => unexpected(cluster),
            }
        }));
        if missing.is_empty() && !snapshot.settled {
            missing.push("the status does not report the set as settled".to_owned());
        }
        missing
    }
}

impl Share {
    fn missing(self, cluster: &ClusterSnapshot) -> Option<String> {
        let total = self.replicas + self.pending;
        let reached = cluster.desired == Some(self.replicas)
            && cluster.spec_replicas == total
            && cluster.pods == total
            && cluster.ready == self.replicas
            && matches!(cluster.state, State::Ready | State::Full(_));
        let pending = match self.pending {
            0 => String::new(),
            pending => format!(" and {pending} pending"),
        };
        (!reached).then(|| {
            format!(
                "{}: expected {} ready{pending}; desired replicas: {}, local spec.replicas: {}, pods: {}, ready: {}, cluster: {}",
                cluster.name,
                self.replicas,
                cluster.desired.map_or("none".to_owned(), |desired| desired.to_string()),
                cluster.spec_replicas,
                cluster.pods,
                cluster.ready,
                cluster.state,
            )
        })
    }
}

/// An unreachable cluster must get no replicas; its pods do not count.
fn unexpected(cluster: &ClusterSnapshot) -> Option<String> {
    let desired = cluster.desired.filter(|desired| *desired > 0)?;
    Some(format!(
        "{}: expected 0 desired replicas, found {desired}",
        cluster.name
    ))
}

/// What is missing until the rollout has stopped, with as many ready replicas as before.
fn not_stopped(goal: &LayoutGoal, snapshot: &SetSnapshot) -> Vec<String> {
    let mut missing = Vec::new();
    if !snapshot.stopped {
        missing.push("the status does not report the rollout as stopped".to_owned());
    }
    if snapshot.ready() != goal.replicas {
        let (ready, replicas) = (snapshot.ready(), goal.replicas);
        missing.push(format!("{ready} of {replicas} replicas are ready"));
    }
    missing
}

/// What is missing until `goal` is reached; empty once it is reached.
pub(crate) fn missing(goal: &Goal, snapshot: &SetSnapshot) -> Vec<String> {
    match goal {
        Goal::Layout(layout) => expected(layout).missing(layout, snapshot),
        Goal::Stopped(layout) => not_stopped(layout, snapshot),
        Goal::Deleted(set) => {
            let left = snapshot
                .clusters
                .iter()
                .filter(|cluster| cluster.spec_replicas + cluster.pods + cluster.terminating > 0);
            let mut missing: Vec<_> = left
                .map(|cluster| {
                    format!(
                        "{}: {set} has {} pods, spec.replicas is {}",
                        cluster.name,
                        cluster.pods + cluster.terminating,
                        cluster.spec_replicas
                    )
                })
                .collect();
            if snapshot.desired.is_some() {
                missing.push(format!("{set} still exists on the host"));
            }
            missing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::story::{LARGE, SMALL, STEPS, UNREACHABLE};

    fn layouts() -> impl Iterator<Item = &'static LayoutGoal> {
        STEPS.iter().filter_map(|step| match &step.goal {
            Goal::Layout(layout) => Some(layout),
            Goal::Deleted(_) | Goal::Stopped(_) => None,
        })
    }

    /// The document's numbers in ascending order: it does not say which cluster a tie favors.
    #[test]
    fn f15_the_scheduler_computes_the_documented_layouts() {
        let even = [16, 17, 17];
        let full = [6, 22, 22];
        for (index, documented) in [(0, even), (1, full), (3, even)] {
            let expected = expected(layouts().nth(index).unwrap()).0;
            let mut replicas: Vec<_> = expected.values().map(|share| share.replicas).collect();
            replicas.sort_unstable();
            assert_eq!(replicas, documented);
        }
    }

    #[test]
    fn f16_the_storys_other_layouts_are_proportional() {
        let of = |index: usize| expected(layouts().nth(index).unwrap()).0;
        let share = |replicas, pending| Share { replicas, pending };
        assert_eq!(
            of(1)[SMALL],
            share(6, CAPACITY_PROBES),
            "F34: the capacity probes stay pending"
        );
        assert_eq!(
            of(2),
            BTreeMap::from([(LARGE, share(25, 0)), (SMALL, share(25, 0))])
        );
        assert_eq!(
            of(4),
            BTreeMap::from([
                (LARGE, share(20, 0)),
                (UNREACHABLE, share(20, 0)),
                (SMALL, share(20, 0))
            ])
        );
        assert_eq!(
            of(5),
            BTreeMap::from([
                (LARGE, share(30, 0)),
                (UNREACHABLE, share(15, 0)),
                (SMALL, share(15, 0))
            ])
        );
    }

    fn reached(layout: &LayoutGoal) -> SetSnapshot {
        let shares = expected(layout).0;
        let cluster = |name: &str| {
            let share = shares.get(name).copied().unwrap_or(Share {
                replicas: 0,
                pending: 0,
            });
            ClusterSnapshot {
                name: name.to_owned(),
                desired: Some(share.replicas),
                spec_replicas: share.replicas + share.pending,
                pods: share.replicas + share.pending,
                ready: share.replicas,
                state: State::Ready,
                ..ClusterSnapshot::default()
            }
        };
        SetSnapshot {
            desired: Some(layout.replicas),
            settled: true,
            clusters: MEMBERS.iter().map(|member| cluster(member.name)).collect(),
            ..SetSnapshot::default()
        }
    }

    type Mutation = fn(&mut SetSnapshot);

    #[test]
    fn only_the_exact_layout_reaches_a_goal() {
        for step in &STEPS {
            let Goal::Layout(layout) = &step.goal else {
                continue;
            };
            assert_eq!(missing(&step.goal, &reached(layout)), Vec::<String>::new());
            let mutations: [Mutation; 7] = [
                |snapshot| snapshot.desired = Some(49),
                |snapshot| snapshot.settled = false,
                |snapshot| snapshot.clusters[0].ready -= 1,
                |snapshot| snapshot.clusters[0].spec_replicas += 1,
                |snapshot| snapshot.clusters[0].pods += 1,
                |snapshot| snapshot.clusters[0].desired = None,
                |snapshot| snapshot.clusters[0].state = State::Unreachable,
            ];
            for mutate in mutations {
                let mut snapshot = reached(layout);
                mutate(&mut snapshot);
                assert!(
                    !missing(&step.goal, &snapshot).is_empty(),
                    "{}: {snapshot:?}",
                    step.title
                );
            }
        }
    }

    #[test]
    fn pods_in_an_unreachable_cluster_do_not_count() {
        let layout = layouts()
            .find(|layout| layout.unreachable.is_some())
            .unwrap();
        let mut snapshot = reached(layout);
        let unreachable = snapshot
            .clusters
            .iter_mut()
            .find(|cluster| cluster.name == UNREACHABLE)
            .unwrap();
        (
            unreachable.spec_replicas,
            unreachable.pods,
            unreachable.ready,
        ) = (17, 17, 17);
        assert!(missing(&Goal::Layout(*layout), &snapshot).is_empty());
        snapshot
            .clusters
            .iter_mut()
            .find(|cluster| cluster.name == UNREACHABLE)
            .unwrap()
            .desired = Some(17);
        assert_eq!(
            missing(&Goal::Layout(*layout), &snapshot),
            ["us-east: expected 0 desired replicas, found 17"]
        );
    }

    #[test]
    fn a_deleted_set_has_no_pods_left() {
        let deleted = Goal::Deleted("shop");
        assert!(missing(&deleted, &SetSnapshot::default()).is_empty());
        let left = SetSnapshot {
            desired: Some(50),
            clusters: vec![ClusterSnapshot {
                name: "a".to_owned(),
                pods: 1,
                terminating: 1,
                ..ClusterSnapshot::default()
            }],
            ..SetSnapshot::default()
        };
        assert_eq!(
            missing(&deleted, &left),
            [
                "a: shop has 2 pods, spec.replicas is 0",
                "shop still exists on the host"
            ]
        );
    }
}
