//! From the layout to the replicas that each candidate should have: layout, pending replicas and capacity probes.
//!
//! ```text
//! N -> layout within bounds and capacities (the scheduler)
//!   + what no cluster can run now: pending where it is, else where it would go (F18); what runs and no other cluster can
//!     take stays
//!   + capacity probes: a couple of replicas pending in a full cluster, on top (F34)
//! ```

use federated_scheduler::{CapacityOverride, Request, plan, what_if};
use fedrs_api::{
    ClusterReason::{self, CapacityProbes, InsufficientCapacity},
    pluralize,
};

use super::candidate::{Candidate, KeepOrder};

/// The replicas that one candidate should have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Target {
    /// Replicas of the layout.
    pub(super) layout: u64,
    /// Replicas that no cluster can run now, pending here (F18).
    pub(super) pending: u64,
    /// Replicas that run here and that no other cluster can take, although the layout has none for them (F20).
    pub(super) kept: u64,
    /// Replicas pending on top, to detect capacity (F34).
    pub(super) probes: u64,
}

impl Target {
    /// Replicas without capacity probes.
    pub(super) fn desired(self) -> u64 {
        self.layout + self.pending + self.kept
    }

    /// Why replicas stay pending here, for people.
    pub(super) fn pending_reasons(self) -> impl Iterator<Item = (ClusterReason, String)> {
        let reasons = [
            (
                self.pending,
                InsufficientCapacity,
                "pending: no cluster has capacity",
            ),
            (self.probes, CapacityProbes, "pending to detect capacity"),
        ];
        let reasons = reasons.into_iter().filter(|(count, ..)| *count > 0);
        reasons
            .map(|(count, reason, why)| (reason, format!("{} {why}", pluralize(count, "replica"))))
    }

    /// Replicas that the local ReplicaSet should have.
    pub(super) fn total(self) -> u64 {
        self.desired() + self.probes
    }
}

/// The targets of all candidates, in their order, with the layout they come from.
#[derive(Clone, Debug)]
pub(super) struct Targets {
    pub(super) layout: federated_scheduler::Layout,
    pub(super) per_candidate: Vec<Target>,
}

/// The replicas to lay out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand<'a> {
    /// The key of the set: it decides ties between clusters (F11).
    pub(super) key: &'a str,
    /// Replicas for the candidates.
    pub(super) replicas: u64,
    /// Whether running replicas move to bring clusters to their shares (F13).
    pub(super) rebalance: bool,
    /// Capacity probes of a full cluster (F34).
    pub(super) capacity_probes: u64,
}

/// What each candidate with a limited capacity would get if its capacity had no limit and moves were free; `None` for the
/// others. The limits of the other candidates hold: where all are full, each could take more than its share by weight.
pub(super) fn unlimited_shares(
    demand: Demand<'_>,
    candidates: &[Candidate<'_>],
) -> Vec<Option<u64>> {
    let mut shares = vec![None; candidates.len()];
    let overrides: Vec<_> = candidates
        .iter()
        .enumerate()
        .filter(|(_, candidate)| candidate.is_limited())
        .map(|(cluster, candidate)| CapacityOverride {
            cluster,
            capacity: candidate.closed_limit(),
        })
        .collect();
    if overrides.is_empty() {
        return shares;
    }
    let clusters: Vec<_> = candidates.iter().map(Candidate::within_limit).collect();
    let request = Request {
        key: demand.key,
        replicas: demand.replicas,
        rebalance: true,
        clusters: &clusters,
    };
    for (limit, share) in overrides.iter().zip(what_if(&request, &overrides)) {
        shares[limit.cluster] = Some(share);
    }
    shares
}

/// Lays `demand` out over `candidates` (F10 to F19, F34).
pub(super) fn targets(
    demand: Demand<'_>,
    candidates: &[Candidate<'_>],
    unlimited_shares: &[Option<u64>],
) -> Targets {
    let clusters: Vec<_> = candidates.iter().map(Candidate::within_limit).collect();
    let layout = plan(&Request {
        key: demand.key,
        replicas: demand.replicas,
        rebalance: demand.rebalance,
        clusters: &clusters,
    });
    let mut targets: Vec<Target> = layout
        .shares
        .iter()
        .map(|share| Target {
            layout: share.replicas,
            ..Target::default()
        })
        .collect();
    if layout.unplaced > 0 {
        let left = place_pending(demand, layout.unplaced, candidates, &mut targets);
        keep_running(left, candidates, &mut targets);
    }
    let full = candidates.iter().zip(unlimited_shares);
    for (target, (candidate, share)) in targets.iter_mut().zip(full) {
        // Only where capacity is what keeps it below its share; replicas that are pending anyway serve as probes.
        if let Some(share) = share
            && !candidate.closed
        {
            let missing = share.saturating_sub(target.layout);
            let probes = missing.min(demand.capacity_probes);
            target.probes = probes.saturating_sub(target.pending);
        }
    }
    Targets {
        layout,
        per_candidate: targets,
    }
}

/// Of the `unplaced` replicas those that are pending somewhere stay there; the others are pending where they would go if
/// there were capacity, for a cluster autoscaler has to see them (F18, F34). Returns those that have no cluster to wait in.
fn place_pending(
    demand: Demand<'_>,
    unplaced: u64,
    candidates: &[Candidate<'_>],
    targets: &mut [Target],
) -> u64 {
    let mut left = unplaced;
    for (target, candidate) in targets.iter_mut().zip(candidates) {
        // The last probes are not pending replicas: otherwise they would replace the next ones, and be removed without them.
        let beyond_layout = candidate
            .requested_without_probes()
            .saturating_sub(target.layout);
        let allowed = candidate.max().saturating_sub(target.layout);
        target.pending = beyond_layout
            .min(candidate.unscheduled)
            .min(allowed)
            .min(left);
        left -= target.pending;
    }
    if left == 0 {
        return 0;
    }
    let clusters: Vec<_> = candidates
        .iter()
        .zip(targets.iter())
        .map(|(candidate, target)| {
            let current = target.layout + target.pending;
            let closed = candidate.closed || candidate.rejecting;
            candidate.with_replicas(current, closed.then_some(current))
        })
        .collect();
    let layout = plan(&Request {
        key: demand.key,
        replicas: demand.replicas,
        rebalance: false,
        clusters: &clusters,
    });
    for (target, share) in targets.iter_mut().zip(&layout.shares) {
        let present = target.layout + target.pending;
        // Minimums may be above what is left: they take nothing from what other clusters have.
        let more = share.replicas.saturating_sub(present).min(left);
        target.pending += more;
        left -= more;
    }
    left
}

/// Keeps up to `left` replicas that run beyond the layout where they are, so that neither a preference nor a drain that
/// leaves them no cluster stops a service (F20).
fn keep_running(left: u64, candidates: &[Candidate<'_>], targets: &mut [Target]) {
    let mut left = left;
    for order in [
        KeepOrder::Selected,
        KeepOrder::NotSelected,
        KeepOrder::Draining,
    ] {
        let targets = targets.iter_mut().zip(candidates);
        for (target, candidate) in targets.filter(|(_, candidate)| candidate.keep_order() == order)
        {
            target.kept = candidate
                .running_beyond(target.layout, target.pending)
                .min(left);
            left -= target.kept;
        }
    }
}

#[cfg(test)]
mod tests {
    use federated_scheduler::Preference;
    use proptest::{collection::vec, option::of, prelude::*};

    use super::*;
    use crate::check::capacity::CapacityEstimate;

    fn candidate() -> impl Strategy<Value = Candidate<'static>> {
        let preference = (0..9_u64, of(0..12_u64), 0..3_u32);
        let counts = (0..12_u64, 0..12_u64, 0..3_u64, of(0..8_u64));
        let is = prop::bool::weighted;
        (of(preference), counts, is(0.2), is(0.2), is(0.2)).prop_map(
            |(
                preference,
                (requested, unscheduled, probes, capacity),
                closed,
                draining,
                rejecting,
            )| {
                Candidate {
                    name: "",
                    preference: preference.map(|(min, max, weight)| Preference {
                        min: min.min(max.unwrap_or(min)),
                        max,
                        weight: weight.into(),
                    }),
                    closed,
                    draining,
                    requested,
                    unscheduled: unscheduled.min(requested),
                    probes: probes.min(requested),
                    capacity: CapacityEstimate {
                        capacity,
                        ..CapacityEstimate::default()
                    },
                    rejecting,
                }
            },
        )
    }

    #[test]
    fn f18_a_minimum_above_n_of_a_full_cluster_takes_what_no_cluster_can_run_and_no_more() {
        let full = |name, min, requested, capacity| Candidate {
            name,
            preference: Some(Preference {
                min,
                max: None,
                weight: 1,
            }),
            closed: false,
            draining: false,
            requested,
            unscheduled: 0,
            probes: 0,
            capacity: CapacityEstimate {
                capacity: Some(capacity),
                ..CapacityEstimate::default()
            },
            rejecting: false,
        };
        let demand = Demand {
            key: "default/web",
            replicas: 10,
            rebalance: true,
            capacity_probes: 2,
        };
        let candidates = [full("a", 0, 4, 4), full("b", 10, 2, 2)];
        let targets = targets(demand, &candidates, &[None, None]);
        let desired = targets.per_candidate.iter().map(|target| target.desired());
        assert_eq!(desired.collect::<Vec<_>>(), [4, 6]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]
        #[test]
        fn f18_targets_never_add_up_to_more_than_the_replicas(
            mut candidates in vec(candidate(), 1..6),
            replicas in 0..30_u64,
            rebalance: bool,
        ) {
            let names = ["a", "b", "c", "d", "e", "f"];
            for (candidate, name) in candidates.iter_mut().zip(names) {
                candidate.name = name;
            }
            let demand = Demand { key: "default/web", replicas, rebalance, capacity_probes: 2 };
            let shares = unlimited_shares(demand, &candidates);
            let targets = targets(demand, &candidates, &shares);
            let desired: u64 = targets.per_candidate.iter().map(|target| target.desired()).sum();
            prop_assert!(desired <= replicas, "{desired}: {:#?}", targets.per_candidate);
        }
    }
}
