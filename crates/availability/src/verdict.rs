//! Whether a set is available, and whether it can be (A1). Pure.
//!
//! ```text
//! available = satisfiable, and unreachable <= budget
//! satisfiable = 3 pods or more, and a budget of 1 or more, which from 20 pods on is at least 5 % of them
//! ```

use federated_rollout::Amount;

/// The fewest pods of a set.
pub(crate) const PODS_MIN: u64 = 3;
/// The pods from which on the budget must be a part of them.
const PODS_OF_LARGE_SETS: u64 = 20;
/// That part, in percent.
const PERCENT_MIN: u64 = 5;

/// The pods of a set that count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// All.
    pub(crate) pods: u64,
    /// Those that can't be reached; not more than all.
    pub(crate) unreachable: u64,
}

/// Why a set can't be available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsatisfiable {
    /// It has fewer than [`PODS_MIN`] pods.
    TooFewPods,
    /// The budget is too small for so many pods.
    BudgetTooSmall {
        /// The smallest budget that would do, in pods.
        least: u64,
    },
}

/// What A1 says of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// The budget, in pods: a percentage is rounded up.
    pub(crate) budget: u64,
    /// Why the set can't be available, if it can't.
    pub(crate) unsatisfiable: Option<Unsatisfiable>,
    /// Whether it is available.
    pub(crate) is_available: bool,
    /// How many more pods may become unreachable; 0 if it can't be available.
    pub(crate) left: u64,
}

impl Verdict {
    /// The verdict about a set with this budget, which is not 0.
    pub(crate) fn of(counts: Counts, budget: Amount) -> Self {
        let budget = budget.rounded_up(counts.pods);
        let least = least_budget(counts.pods);
        let unsatisfiable = if counts.pods < PODS_MIN {
            Some(Unsatisfiable::TooFewPods)
        } else if budget < least {
            Some(Unsatisfiable::BudgetTooSmall { least })
        } else {
            None
        };
        let is_available = unsatisfiable.is_none() && counts.unreachable <= budget;
        let left = budget.saturating_sub(counts.unreachable);
        Self {
            budget,
            unsatisfiable,
            is_available,
            left: if unsatisfiable.is_none() { left } else { 0 },
        }
    }

    /// What may be unreachable: nothing of a set that can't be available.
    pub(crate) fn allowance(self) -> u64 {
        if self.unsatisfiable.is_none() {
            self.budget
        } else {
            0
        }
    }
}

/// The smallest budget of a set with so many pods.
fn least_budget(pods: u64) -> u64 {
    if pods < PODS_OF_LARGE_SETS {
        1
    } else {
        pods.saturating_mul(PERCENT_MIN).div_ceil(100)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    const fn too_small(least: u64) -> Unsatisfiable {
        Unsatisfiable::BudgetTooSmall { least }
    }

    /// Pods, those unreachable, the budget: the budget in pods, why it can't be available, whether it is, what is left.
    #[rstest]
    #[case::all_reachable(3, 0, Amount::Number(1), (1, None, true, 1))]
    #[case::as_many_as_the_budget(3, 1, Amount::Number(1), (1, None, true, 0))]
    #[case::one_more(3, 2, Amount::Number(1), (1, None, false, 0))]
    #[case::fewer_than_three(2, 0, Amount::Number(1), (1, Some(Unsatisfiable::TooFewPods), false, 0))]
    #[case::none(0, 0, Amount::Percent(5), (0, Some(Unsatisfiable::TooFewPods), false, 0))]
    #[case::nineteen(19, 1, Amount::Number(1), (1, None, true, 0))]
    #[case::twenty(20, 1, Amount::Number(1), (1, None, true, 0))]
    #[case::twenty_one(21, 0, Amount::Number(1), (1, Some(too_small(2)), false, 0))]
    #[case::forty(40, 0, Amount::Number(2), (2, None, true, 2))]
    #[case::forty_one(41, 0, Amount::Number(2), (2, Some(too_small(3)), false, 0))]
    #[case::percentages_round_up(39, 2, Amount::Percent(5), (2, None, true, 0))]
    #[case::a_small_percentage_of_a_small_set(19, 1, Amount::Percent(1), (1, None, true, 0))]
    #[case::a_small_percentage_of_a_large_set(100, 0, Amount::Percent(4), (4, Some(too_small(5)), false, 0))]
    #[case::more_than_all(4, 4, Amount::Number(9), (9, None, true, 5))]
    fn a1_available_if_at_most_the_budget_is_unreachable(
        #[case] pods: u64,
        #[case] unreachable: u64,
        #[case] budget: Amount,
        #[case] expected: (u64, Option<Unsatisfiable>, bool, u64),
    ) {
        let verdict = Verdict::of(Counts { pods, unreachable }, budget);
        let Verdict {
            budget,
            unsatisfiable,
            is_available,
            left,
        } = verdict;
        assert_eq!((budget, unsatisfiable, is_available, left), expected);
    }

    proptest! {
        #[test]
        fn a1_the_least_budget_would_do_and_one_less_would_not(pods in PODS_MIN..100_000) {
            let least = least_budget(pods);
            let can_be = |budget| Verdict::of(Counts { pods, unreachable: 0 }, Amount::Number(budget)).is_available;
            prop_assert!(can_be(least));
            prop_assert!(!can_be(least - 1) || least == 1);
            // As the rule says it.
            prop_assert!(least >= 1 && (pods < 20 || least * 100 >= pods * 5));
        }

        #[test]
        fn a1_five_percent_always_do(pods in PODS_MIN..100_000, percent in 5..=100_u64) {
            let verdict = Verdict::of(Counts { pods, unreachable: 0 }, Amount::Percent(percent));
            prop_assert!(verdict.is_available, "{verdict:?}");
        }
    }
}
