//! How many pods each part of a set may lose by evictions and updates (A1). Pure.
//!
//! ```text
//! at worst, of a part     max(what is lent to it, or may still be; what is unreachable)
//! what always holds       the sum of that over all parts <= budget, unless more pods fail by themselves
//!
//! a loan gets smaller     written at once; counts as it was until the member has observed it, and what it had granted is seen
//! a loan gets larger      only by what the sum leaves over; recorded in the status before it is written
//! a write was lost        it may still arrive: it counts until a later write has arrived, for each names the version that it replaces
//! ```
//!
//! A loan says how many pods of the part may be unavailable whatever the reason: one pod that has failed by itself uses it, too, so that
//! members keep to it while the host is away.

/// The pods that one thing in a member limits: a LocalReplicaSet, or a PodDisruptionBudget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// Its pods that count.
    pub(crate) pods: u64,
    /// Those of them that can't be reached.
    pub(crate) unreachable: u64,
    /// How many of them may be unavailable by all that was lent, or may still arrive.
    pub(crate) exposure: u64,
    /// How many of them may be made unavailable whatever is written: what a rollout has lent to members.
    pub(crate) held: u64,
    /// Those that can't be reached and stay so without a loan: a rollout replaces them.
    pub(crate) repairs: u64,
    /// Pods that would be evicted or updated if they might be.
    pub(crate) wanted: u64,
    /// What is written in the member; `None` if it can't be changed now.
    pub(crate) limit: Option<Limit>,
}

/// What is written in a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    /// The pods that may be unavailable; `None` if nothing is written.
    pub(crate) max_unavailable: Option<u64>,
    /// Whether no other write can arrive any more.
    pub(crate) is_last: bool,
}

impl Limit {
    fn written(self) -> u64 {
        self.max_unavailable.unwrap_or_default()
    }
}

impl Part {
    /// The pods that may be unavailable at worst.
    fn worst(&self) -> u64 {
        self.exposure.max(self.unreachable)
    }

    /// Pods that can be lost beyond those that can't be reached.
    fn reachable(&self) -> u64 {
        self.pods.saturating_sub(self.unreachable)
    }

    /// What is used of the budget whatever is lent.
    fn used(&self) -> u64 {
        if self.limit.is_some() {
            self.unreachable.max(self.held)
        } else {
            self.worst()
        }
    }

    /// What it has without a share of what is left: a pod that is unreachable uses a loan that is there, and needs no larger one, unless it
    /// is replaced by that.
    fn base(&self) -> u64 {
        let written = self.limit.map_or(0, Limit::written);
        written
            .min(self.unreachable.max(self.held))
            .max(self.repairs)
    }
}

/// What has to be written, by part: the pods that may be unavailable. `None` for nothing.
pub(crate) fn writes(budget: u64, parts: &[Part]) -> Vec<Option<u64>> {
    let targets = targets(budget, parts);
    let at_worst: u64 = parts.iter().map(Part::worst).sum();
    let mut room = budget.checked_sub(at_worst);
    let lent: u64 = parts.iter().map(|part| part.exposure).sum();
    let mut unlent = budget.saturating_sub(lent);
    let write = |(part, target): (&Part, u64)| {
        let limit = part.limit?;
        let written = limit.written();
        if target <= written {
            let is_new = limit.max_unavailable != Some(target) || !limit.is_last;
            return is_new.then_some(target);
        }
        // Beyond the budget, a loan in place of a pod that has failed would stay when that pod is back. What replaces such pods is within the
        // budget, with all other loans.
        let repaired = part.repairs.min(part.exposure + unlent);
        let most = room.map_or(part.exposure.max(repaired), |room| {
            part.worst().saturating_add(room)
        });
        let raised = target.min(most).max(written);
        room = room.map(|room| room - raised.saturating_sub(part.worst()));
        unlent -= raised.saturating_sub(part.exposure).min(unlent);
        let is_new = limit.max_unavailable != Some(raised) || !limit.is_last;
        is_new.then_some(raised)
    };
    parts.iter().zip(targets).map(write).collect()
}

/// What is to be lent in the end. Parts whose pods wait to be evicted or updated come first, and what is lent stays where it is as long as
/// nobody else waits.
fn targets(budget: u64, parts: &[Part]) -> Vec<u64> {
    let used: u64 = parts.iter().map(Part::used).sum();
    let Some(mut free) = budget.checked_sub(used) else {
        // Pods that come back must not be replaced by evictions before the others are back, too. A rollout may be what brings them back.
        let mut left = budget;
        let repairs = parts.iter().map(|part| {
            let lent = part.repairs.min(left);
            left -= lent;
            lent
        });
        return repairs.collect();
    };
    let mut shares = vec![0; parts.len()];
    let changeable = |index: &usize| parts[*index].limit.is_some();
    let indices: Vec<usize> = (0..parts.len()).filter(changeable).collect();
    let holds = |index: usize| {
        let part = &parts[index];
        let written = part.limit.map_or(0, Limit::written);
        written.saturating_sub(part.base()).min(part.reachable())
    };
    let mut by_holding = indices.clone();
    by_holding.sort_by_key(|index| std::cmp::Reverse(holds(*index)));
    let wanted = |index: usize| parts[index].wanted.min(parts[index].reachable());
    let most = parts
        .iter()
        .map(|part| part.wanted)
        .max()
        .unwrap_or_default();
    for round in 1..=most.min(budget) {
        for &index in by_holding.iter().filter(|index| wanted(**index) >= round) {
            let share = u64::from(free > 0);
            shares[index] += share;
            free -= share;
        }
    }
    for &index in &indices {
        let kept = holds(index).saturating_sub(shares[index]).min(free);
        shares[index] += kept;
        free -= kept;
    }
    while free > 0 {
        let has_room = |index: &&usize| shares[**index] < parts[**index].reachable();
        // The smallest part of its pods; of equal ones, the larger part, then the first.
        let of =
            |index: usize| ((shares[index] + 1) * 1_000_000).div_ceil(parts[index].pods.max(1));
        let Some(&next) = indices
            .iter()
            .filter(has_room)
            .min_by_key(|index| of(**index))
        else {
            break;
        };
        shares[next] += 1;
        free -= 1;
    }
    let with_share = parts.iter().zip(shares);
    with_share
        .map(|(part, share)| part.base() + share)
        .collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn part(pods: u64, unreachable: u64, written: u64) -> Part {
        Part {
            pods,
            unreachable,
            exposure: written,
            held: 0,
            repairs: 0,
            wanted: 0,
            limit: Some(Limit {
                max_unavailable: Some(written),
                is_last: true,
            }),
        }
    }

    fn wants(wanted: u64, part: Part) -> Part {
        Part { wanted, ..part }
    }

    /// A rollout replaces so many of its pods.
    fn repairs(repairs: u64, part: Part) -> Part {
        Part { repairs, ..part }
    }

    /// Nothing limits its evictions so far.
    fn unlimited(pods: u64) -> Part {
        Part {
            exposure: pods,
            limit: Some(Limit {
                max_unavailable: None,
                is_last: true,
            }),
            ..part(pods, 0, 0)
        }
    }

    /// It does not answer.
    fn away(pods: u64) -> Part {
        Part {
            limit: None,
            ..part(pods, pods, 1)
        }
    }

    /// Its last write was lower than what it may still lend.
    fn lowered(pods: u64, written: u64, exposure: u64) -> Part {
        Part {
            exposure,
            ..part(pods, 0, written)
        }
    }

    /// A write may still arrive.
    fn awaited(pods: u64, written: u64, exposure: u64) -> Part {
        Part {
            limit: Some(Limit {
                max_unavailable: Some(written),
                is_last: false,
            }),
            ..lowered(pods, written, exposure)
        }
    }

    #[rstest]
    #[case::what_is_not_limited_is_limited_first(1, vec![unlimited(3), unlimited(3)], vec![Some(1), Some(0)])]
    #[case::then_the_first(1, vec![part(3, 0, 0), part(3, 0, 0)], vec![Some(1), None])]
    #[case::then_the_larger(1, vec![part(3, 0, 0), part(4, 0, 0)], vec![None, Some(1)])]
    #[case::it_stays(1, vec![part(3, 0, 1), part(9, 0, 0)], vec![None, None])]
    #[case::an_eviction_changes_nothing(1, vec![part(3, 1, 1), part(3, 0, 0)], vec![None, None])]
    #[case::all_is_lent(4, vec![part(6, 0, 0), part(2, 0, 0)], vec![Some(3), Some(1)])]
    #[case::lower_first(1, vec![part(3, 0, 1), wants(1, part(3, 0, 0))], vec![Some(0), None])]
    #[case::not_seen_yet(1, vec![lowered(3, 0, 1), wants(1, part(3, 0, 0))], vec![None, None])]
    #[case::then_raise(1, vec![part(3, 0, 0), wants(1, part(3, 0, 0))], vec![None, Some(1)])]
    #[case::who_has_it_keeps_it(1, vec![wants(1, part(3, 0, 1)), wants(1, part(3, 0, 0))], vec![None, None])]
    #[case::both_get_some(2, vec![wants(2, part(3, 0, 2)), wants(1, part(3, 0, 0))], vec![Some(1), None])]
    #[case::a_failure_elsewhere(1, vec![part(3, 0, 1), part(3, 1, 0)], vec![Some(0), None])]
    #[case::too_many_failures(1, vec![part(3, 1, 1), part(3, 1, 0)], vec![Some(0), None])]
    #[case::a_cluster_is_away(3, vec![part(3, 0, 2), away(2)], vec![Some(1), None])]
    #[case::it_uses_up_all(2, vec![part(3, 0, 2), away(2)], vec![Some(0), None])]
    #[case::a_write_may_still_arrive(1, vec![awaited(3, 0, 1), wants(1, part(3, 0, 0))], vec![Some(0), None])]
    #[case::and_is_sent_again(1, vec![awaited(3, 0, 1), part(3, 0, 0)], vec![Some(1), None])]
    #[case::a_pod_that_fails_makes_no_room(2, vec![awaited(4, 0, 1), lowered(4, 1, 1), wants(1, part(4, 1, 0))], vec![Some(0), Some(0), None])]
    #[case::no_more_than_pods(9, vec![part(2, 0, 0), part(1, 0, 0)], vec![Some(2), Some(1)])]
    #[case::what_is_broken_may_be_replaced(2, vec![part(3, 0, 0), repairs(2, part(3, 2, 0))], vec![None, Some(2)])]
    #[case::as_much_as_the_budget(2, vec![part(3, 0, 0), repairs(3, part(3, 3, 0))], vec![None, Some(2)])]
    #[case::once_nothing_else_is_lent(2, vec![part(3, 0, 1), repairs(3, part(3, 3, 0))], vec![Some(0), Some(1)])]
    #[case::nor_may_be(2, vec![lowered(3, 0, 2), repairs(3, part(3, 3, 0))], vec![None, None])]
    #[case::by_two_rollouts(2, vec![repairs(1, part(3, 1, 0)), repairs(3, part(3, 3, 0))], vec![Some(1), Some(1)])]
    #[case::others_get_nothing_beside(3, vec![lowered(4, 0, 2), part(4, 2, 0), wants(1, part(4, 0, 0))], vec![None, None, None])]
    #[case::nothing_may_be_lost(0, vec![part(2, 0, 1), part(1, 0, 0)], vec![Some(0), None])]
    fn a1_loans(#[case] budget: u64, #[case] parts: Vec<Part>, #[case] expected: Vec<Option<u64>>) {
        assert_eq!(writes(budget, &parts), expected);
    }
}
