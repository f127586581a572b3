//! Invariants of the layouts of any request (F10 to F19).

use std::collections::BTreeMap;

use federated_scheduler::{CapacityOverride, Cluster, Layout, Preference, Request, plan, what_if};
use proptest::prelude::*;

/// A cluster that owns its name, so that it can be generated.
#[derive(Clone, Debug)]
struct Member {
    name: String,
    preference: Option<Preference>,
    current: u64,
    capacity: Option<u64>,
}

#[derive(Clone, Debug)]
struct Case {
    replicas: u64,
    rebalance: bool,
    members: Vec<Member>,
}

impl Case {
    fn plan(&self) -> Layout {
        self.plan_for("default/web")
    }

    fn plan_for(&self, key: &str) -> Layout {
        plan(&self.request(key, &self.clusters()))
    }

    fn clusters(&self) -> Vec<Cluster<'_>> {
        self.members
            .iter()
            .map(|member| Cluster {
                name: &member.name,
                preference: member.preference,
                current: member.current,
                capacity: member.capacity,
            })
            .collect()
    }

    fn request<'a>(&self, key: &'a str, clusters: &'a [Cluster<'a>]) -> Request<'a> {
        Request {
            key,
            replicas: self.replicas,
            rebalance: self.rebalance,
            clusters,
        }
    }

    fn numbers(&self) -> Vec<u64> {
        self.plan()
            .shares
            .iter()
            .map(|share| share.replicas)
            .collect()
    }

    /// The documented method, literally: one replica at a time, to the highest quotient.
    fn naive(&self) -> Vec<u64> {
        let mut order: Vec<usize> = (0..self.members.len()).collect();
        let ranks = self.plan();
        order.sort_by_key(|&i| ranks.shares[i].rank);
        let mut left = self.replicas;
        let mut minimums = vec![0; order.len()];
        for &i in &order {
            let member = &self.members[i];
            minimums[i] = member
                .preference
                .map_or(0, |p| p.min)
                .min(member.ceiling())
                .min(left);
            left -= minimums[i];
        }
        let kept: Vec<u64> = (self.members.iter().zip(&minimums))
            .map(|(member, minimum)| {
                let kept = if self.rebalance {
                    0
                } else {
                    member.current.min(member.ceiling())
                };
                kept.saturating_sub(*minimum)
            })
            .collect();
        let shrinking = kept.iter().sum::<u64>() > left;
        let mut extras = if shrinking {
            vec![0; order.len()]
        } else {
            kept.clone()
        };
        left -= extras.iter().sum::<u64>();
        for tier in [true, false] {
            while left > 0 {
                let room = |&i: &usize| {
                    let member = &self.members[i];
                    let upper = if shrinking {
                        kept[i]
                    } else if member.weight() > 0 {
                        member.ceiling() - minimums[i]
                    } else {
                        kept[i]
                    };
                    (member.weight() > 0) == tier && extras[i] < upper
                };
                let price = |i: usize| {
                    (
                        2 * u128::from(extras[i]) + 1,
                        u128::from(self.members[i].weight().max(1)),
                    )
                };
                let cheapest = order.iter().copied().filter(|i| room(i)).reduce(|best, i| {
                    let ((a, v), (b, w)) = (price(best), price(i));
                    if b * v < a * w { i } else { best }
                });
                let Some(cheapest) = cheapest else { break };
                extras[cheapest] += 1;
                left -= 1;
            }
        }
        minimums
            .iter()
            .zip(extras)
            .map(|(minimum, extra)| minimum + extra)
            .collect()
    }
}

impl Member {
    fn ceiling(&self) -> u64 {
        let Some(preference) = self.preference else {
            return 0;
        };
        preference
            .max
            .unwrap_or(u64::MAX)
            .min(self.capacity.unwrap_or(u64::MAX))
    }

    fn weight(&self) -> u64 {
        self.preference.map_or(0, |preference| preference.weight)
    }
}

/// Small numbers, so that bounds and ties meet often.
fn small_member(name: usize) -> impl Strategy<Value = Member> {
    let weight = prop_oneof![1 => Just(0), 6 => 1..5_u64, 1 => Just(1000)];
    let minimum = prop_oneof![2 => Just(0), 1 => 0..8_u64];
    let room = proptest::option::of(0..12_u64);
    let preference = (minimum, room.clone(), weight).prop_map(|(min, above, weight)| Preference {
        min,
        max: above.map(|above| min + above),
        weight,
    });
    (
        proptest::option::weighted(0.9, preference),
        prop_oneof![1 => Just(0), 2 => 0..15_u64],
        room,
    )
        .prop_map(move |(preference, current, capacity)| Member {
            name: format!("cluster-{name}"),
            preference,
            current,
            capacity,
        })
}

fn small_case() -> impl Strategy<Value = Case> {
    let members =
        (0..8_usize).prop_flat_map(|count| (0..count).map(small_member).collect::<Vec<_>>());
    (0..80_u64, any::<bool>(), members).prop_map(|(replicas, rebalance, members)| Case {
        replicas,
        rebalance,
        members,
    })
}

/// Numbers from all of `u64`, near its ends more often.
fn any_count() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0..10_u64,
        (u64::MAX - 10)..=u64::MAX,
        (0..64_u32).prop_map(|bit| 1 << bit)
    ]
}

fn large_case() -> impl Strategy<Value = Case> {
    let preference = (any_count(), proptest::option::of(any_count()), any_count()).prop_map(
        |(min, max, weight)| Preference {
            min: min / 2,
            max: max.map(|max| max.max(min / 2)),
            weight,
        },
    );
    let member = (
        proptest::option::weighted(0.9, preference),
        any_count(),
        proptest::option::of(any_count()),
    );
    let members = proptest::collection::vec(member, 0..30);
    (any_count(), any::<bool>(), members).prop_map(|(replicas, rebalance, members)| {
        let member = |(number, (preference, current, capacity))| Member {
            name: format!("cluster-{number}"),
            preference,
            current,
            capacity,
        };
        Case {
            replicas,
            rebalance,
            members: members.into_iter().enumerate().map(member).collect(),
        }
    })
}

/// No limit, mostly.
fn any_capacity() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![3 => Just(None), 2 => (0..20_u64).prop_map(Some), 1 => any_count().prop_map(Some)]
}

/// Small numbers, and numbers from all of `u64`.
fn any_case() -> impl Strategy<Value = Case> {
    prop_oneof![small_case(), large_case()]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn f14_the_quick_way_gives_what_the_literal_way_gives(case in small_case()) {
        prop_assert_eq!(case.numbers(), case.naive());
    }

    #[test]
    fn f12_f18_sums_and_bounds_hold(case in any_case()) {
        let layout = case.plan();
        let placed: u128 = layout.shares.iter().map(|share| u128::from(share.replicas)).sum();
        prop_assert_eq!(placed + u128::from(layout.unplaced), u128::from(case.replicas));
        for (member, share) in case.members.iter().zip(&layout.shares) {
            prop_assert!(share.replicas <= member.ceiling());
            if layout.unplaced > 0 && member.weight() > 0 {
                prop_assert_eq!(share.replicas, member.ceiling(), "{} has room", member.name);
            }
        }
    }

    #[test]
    fn f16_one_more_takes_from_nobody(case in any_case()) {
        let more = Case { replicas: case.replicas.saturating_add(1), ..case.clone() };
        for (before, after) in case.numbers().into_iter().zip(more.numbers()) {
            prop_assert!(before <= after && after <= before.saturating_add(1));
        }
    }

    #[test]
    fn f11_the_order_of_the_input_does_not_matter(case in any_case(), by in any::<prop::sample::Index>()) {
        let by_name = |case: &Case| -> BTreeMap<String, (u64, String)> {
            let value = |share: &federated_scheduler::Share| (share.replicas, share.reasons.to_string());
            case.members.iter().map(|member| member.name.clone()).zip(case.plan().shares.iter().map(value)).collect()
        };
        let mut turned = case.clone();
        turned.members.reverse();
        if !turned.members.is_empty() {
            let by = by.index(turned.members.len());
            turned.members.rotate_left(by);
        }
        prop_assert_eq!(by_name(&case), by_name(&turned));
    }

    #[test]
    fn f13_planning_again_changes_nothing(case in any_case()) {
        let first = case.numbers();
        let mut again = case;
        for (member, &replicas) in again.members.iter_mut().zip(&first) {
            member.current = replicas;
        }
        prop_assert_eq!(again.numbers(), first);
    }

    #[test]
    fn f13_nothing_present_is_taken_while_it_fits(case in any_case()) {
        let case = Case { rebalance: false, ..case };
        let needed = |member: &Member| {
            let minimum = member.preference.map_or(0, |preference| preference.min);
            u128::from(member.current.max(minimum).min(member.ceiling()))
        };
        let needed: u128 = case.members.iter().map(needed).sum();
        let Ok(needed) = u64::try_from(needed) else { return Ok(()) };
        let case = Case { replicas: case.replicas.max(needed), ..case };
        for (member, replicas) in case.members.iter().zip(case.numbers()) {
            prop_assert!(replicas >= member.current.min(member.ceiling()));
        }
    }

    /// The condition that only Webster's layouts meet: no cluster's last replica has a lower quotient than another's next one,
    /// as far as bounds allow.
    #[test]
    fn f16_no_replica_would_be_better_elsewhere(case in any_case()) {
        let case = Case { rebalance: true, ..case };
        let order = case.plan();
        let mut left = case.replicas;
        let mut members: Vec<_> = case.members.iter().zip(&order.shares).collect();
        members.sort_by_key(|(_, share)| share.rank);
        let mut extras = Vec::new();
        for (member, share) in members {
            let minimum = member.preference.map_or(0, |p| p.min).min(member.ceiling()).min(left);
            left -= minimum;
            extras.push((member.weight(), share.replicas - minimum, share.replicas < member.ceiling()));
        }
        for &(weight, extra, _) in extras.iter().filter(|&&(weight, extra, _)| weight > 0 && extra > 0) {
            for &(other, next, _) in extras.iter().filter(|&&(other, _, room)| other > 0 && room) {
                // (2·extra − 1) / weight ≤ (2·next + 1) / other, in halves as 128 bits have no room for the doubles.
                let last = u128::from(extra) * u128::from(other);
                let free = u128::from(next) * u128::from(weight);
                let slack = (u128::from(other) + u128::from(weight)).div_ceil(2);
                prop_assert!(last <= free + slack, "a replica of {weight} belongs to {other}");
            }
        }
    }

    /// All overrides in one call, against a plan for each.
    #[test]
    fn f34_what_if_says_what_a_plan_would(case in any_case(), capacities in prop::collection::vec(any_capacity(), 60)) {
        let places = (0..case.members.len()).chain(0..case.members.len());
        let changes: Vec<_> = places.zip(capacities).map(|(cluster, capacity)| CapacityOverride { cluster, capacity }).collect();
        let answers = what_if(&case.request("default/web", &case.clusters()), &changes);
        prop_assert_eq!(answers.len(), changes.len());
        for (change, answer) in changes.iter().zip(answers) {
            let mut changed = case.clone();
            changed.members[change.cluster].capacity = change.capacity;
            prop_assert_eq!(answer, changed.numbers()[change.cluster], "{:?}", change);
        }
    }

    #[test]
    fn f19_every_number_has_its_reasons(case in any_case()) {
        for share in case.plan().shares {
            prop_assert!(share.reasons.iter().next().is_some());
        }
    }
}

#[test]
fn f11_ties_fall_evenly_over_many_keys() {
    let preference = Some(Preference {
        weight: 1,
        ..Preference::default()
    });
    let member = |number| Member {
        name: format!("cluster-{number}"),
        preference,
        current: 0,
        capacity: None,
    };
    let case = Case {
        replicas: 1,
        rebalance: false,
        members: (0..10).map(member).collect(),
    };
    let mut firsts = [0; 10];
    for key in 0..10_000 {
        let layout = case.plan_for(&format!("default/web-{key}"));
        let first = layout
            .shares
            .iter()
            .position(|share| share.replicas == 1)
            .expect("one is placed");
        firsts[first] += 1;
    }
    assert!(
        firsts.iter().all(|first| (900..=1100).contains(first)),
        "{firsts:?}"
    );
}

#[test]
fn f14_a_thousand_clusters_with_adverse_bounds_match_the_literal_way() {
    // Bounds in geometric progression meet Newton's steps one after the other.
    let member = |number: u32| Member {
        name: format!("cluster-{number}"),
        preference: Some(Preference {
            min: 0,
            max: Some(1 << (number % 12)),
            weight: 1 << (number % 17),
        }),
        current: u64::from(number % 7),
        capacity: None,
    };
    for (replicas, rebalance) in [(1, true), (777, false), (5000, true), (20_000, false)] {
        let case = Case {
            replicas,
            rebalance,
            members: (0..300).map(member).collect(),
        };
        assert_eq!(case.numbers(), case.naive());
    }
}
