//! On which PodDisruptionBudget of a member the loan of a set is written (A1). Pure.
//!
//! ```text
//! no set contains it            its own
//! a set that contains it has
//! one there, and lends by it    that one: two that match one pod fail each of its evictions. Of several, that of the widest set;
//!                               of sets that don't contain one another, the first by name
//! moving to another             the loan is written there; once the member has observed it, it is removed where it was. Meanwhile both match,
//!                               and nothing is evicted. Who removes the last loan deletes the PodDisruptionBudget
//! ```
//!
//! Each loan is an annotation. Whoever writes one sets `maxUnavailable` to the least of all, for the version that it has seen.

use fedrs_api::selector::{self, LabelSelector};

use crate::{
    neighbours::{Neighbour, includes},
    observed::{Budget, Pod},
    own::{Own, covers},
};

/// The PodDisruptionBudgets for one set in a member.
pub(crate) struct Carriers<'a> {
    /// Where its loan belongs; `None` for its own one, if that does not exist.
    pub(crate) carrier: Option<&'a Budget>,
    /// Whether it is that of a set that contains this one.
    pub(crate) is_covered: bool,
    /// Others on which its loan is.
    pub(crate) former: Vec<&'a Budget>,
}

impl<'a> Carriers<'a> {
    /// Those among all PodDisruptionBudgets of the namespace.
    pub(crate) fn of(budgets: &'a [Budget], own: &Own<'_>, selector: &LabelSelector) -> Self {
        let covering = covering(budgets, own, selector);
        let carrier = covering.or_else(|| budgets.iter().find(|budget| own.has_budget(budget)));
        let is_elsewhere =
            |budget: &&Budget| carrier.is_none_or(|at| at.metadata.name != budget.metadata.name);
        Self {
            carrier,
            is_covered: covering.is_some(),
            former: own.lent(budgets).filter(is_elsewhere).collect(),
        }
    }

    /// A PodDisruptionBudget that matches one of the pods, and beside which the set can have none.
    pub(crate) fn blocking(
        &self,
        budgets: &'a [Budget],
        (own, selector): (&Own<'_>, &LabelSelector),
        pods: &[&Pod],
    ) -> Option<&'a Budget> {
        let blocks = |budget: &Budget| {
            let Some(owner) = own.owner_of(budget) else {
                return budget.metadata.local_set().is_none();
            };
            match own.neighbours.get(owner) {
                // Whose set contains this one decides for both.
                _ if self.is_covered || owner == own.name => false,
                Some(Neighbour::Valid(other)) => {
                    let is_nested =
                        selector::contains(other, selector) || selector::contains(selector, other);
                    // The first by name has it, whoever was there before: each counts what the other one's grants as lent, and if both had
                    // one, in different members, their loans would follow one another without end.
                    !is_nested && *owner < *own.name
                }
                Some(Neighbour::Invalid) => budget.metadata.limit_of(owner).is_some(),
                // It goes with the last loan on it.
                Some(Neighbour::Deleted) | None => false,
            }
        };
        let mut budgets = budgets.iter();
        budgets.find(|budget| blocks(budget) && budget.matches_any(pods))
    }
}

/// The PodDisruptionBudget of a set that contains this one, and lends by it.
pub(crate) fn covering<'b>(
    budgets: &'b [Budget],
    own: &Own<'_>,
    selector: &LabelSelector,
) -> Option<&'b Budget> {
    let candidate = |budget: &'b Budget| {
        let owner = own.owner_of(budget)?;
        let includes_this = match own.neighbours.get(owner)? {
            Neighbour::Valid(wide) => includes((owner, wide), (&own.name, selector)),
            Neighbour::Invalid => owner != own.name,
            Neighbour::Deleted => false,
        };
        let lends = budget.metadata.limit_of(owner).is_some();
        let selects = budget.spec.selector.as_ref()?;
        (includes_this && lends && covers(budget, selector)).then_some((owner, selects, budget))
    };
    let candidates: Vec<_> = budgets.iter().filter_map(candidate).collect();
    let is_widest = |(name, selects, _): &&(&str, &LabelSelector, &Budget)| {
        let mut others = candidates.iter();
        !others.any(|other| includes((other.0, other.1), (name, selects)))
    };
    let widest = candidates.iter().filter(is_widest);
    let first = widest.min_by_key(|(name, ..)| *name)?;
    Some(first.2)
}
