//! The pods that a PodDisruptionBudget limits in a member: where the loan is, where it belongs, and on the way from one to the other. Pure.

use fedrs_api::{DisruptionLimit, Loan, LoanKind, ValidAvailabilitySet};

use crate::{
    carriers::Carriers,
    limited::{MemberPart, Pods, Written, limited, recorded},
    loans::Part,
    neighbours::Neighbour,
    observed::{Budget, Observed, Pod},
    own::{Own, Target, covers, is_intact},
};

/// What is limited by PodDisruptionBudgets of AvailabilitySets.
#[derive(Default)]
pub(crate) struct BudgetPart<'a> {
    /// `None` if there is nothing to limit.
    pub(crate) part: Option<MemberPart<'a>>,
    /// From which the loan has to be removed.
    pub(crate) obsolete: Vec<&'a Budget>,
    /// From which it will have to be, once it holds elsewhere.
    pub(crate) former: Vec<&'a Budget>,
    /// The sets whose loans keep the PodDisruptionBudget of this one from being changed.
    pub(crate) awaited: Vec<String>,
}

/// The part of these pods.
pub(crate) fn of<'a>(
    pods: &[&Pod],
    (observed, carriers): (&'a Observed, Carriers<'a>),
    own: &Own<'_>,
    valid: &ValidAvailabilitySet,
    loans: &[Loan],
) -> BudgetPart<'a> {
    let Carriers {
        carrier,
        is_covered,
        former,
    } = carriers;
    let record =
        |budget: &Budget| recorded(loans, LoanKind::PodDisruptionBudget, &budget.metadata.name);
    let counted = Pods::of(pods.iter().copied(), &observed.nodes);
    let part = match carrier.filter(|_| is_covered) {
        Some(carrier) => covered(counted, carrier, observed, own),
        None => counted.part(carrier.map_or(0, |budget| budget.status.expected_pods)),
    };
    let has_loan = carrier
        .into_iter()
        .chain(former.iter().copied())
        .any(|of| own.has_loan(of));
    let is_limited = if is_covered {
        counted.live > 0 || (has_loan && part.pods > 0)
    } else {
        // It stays for pods to come.
        carrier.is_some() || counted.live > 0
    };
    if !is_limited {
        return BudgetPart {
            obsolete: own.lent(&observed.budgets).collect(),
            ..BudgetPart::default()
        };
    }
    // What they had granted before this one was there.
    let are_settled = own.all_settled(&observed.budgets, pods);
    let at_carrier = carrier.and_then(|budget| written(budget, own, valid, are_settled));
    let elsewhere: Vec<_> = former
        .iter()
        .filter_map(|budget| Some((written(budget, own, valid, are_settled)?, record(budget))))
        .collect();
    let held = elsewhere
        .iter()
        .map(|(written, _)| written.max_unavailable)
        .max();
    let to_move = held.map(|max_unavailable| Written {
        max_unavailable,
        revision: 0,
        is_intact: false,
        is_settled: false,
        grants: 0,
    });
    let own_name = own.budget_name();
    let name = carrier.map_or(&*own_name, |budget| &budget.metadata.name);
    let last = recorded(loans, LoanKind::PodDisruptionBudget, name);
    let target = Target::Budget(carrier);
    let mut of = limited(part, target, at_carrier.or(to_move), last);
    let exposures = elsewhere
        .iter()
        .map(|(written, record)| written.exposure(*record));
    let most = exposures.max().unwrap_or_default();
    of.part.exposure = of.part.exposure.max(most).min(of.part.pods);
    let awaited = match carrier {
        Some(budget) if !is_covered => awaited(budget, own, valid),
        _ => Vec::new(),
    };
    if !awaited.is_empty() {
        of.part.limit = None;
    }
    let holds = at_carrier.is_some_and(|written| written.holds(last));
    let (obsolete, former) = if holds {
        (former, Vec::new())
    } else {
        (Vec::new(), former)
    };
    BudgetPart {
        part: Some(of),
        obsolete,
        former,
        awaited,
    }
}

/// The part of a set that another one contains. Of pods that do not exist yet nobody knows which of the sets on the PodDisruptionBudget
/// they would be in: they count in each. The loan follows those of the sets before it, to where pods wait: else each of them might lend
/// something where the other one lends nothing, and the least of them would be nothing everywhere.
fn covered(pods: Pods, carrier: &Budget, observed: &Observed, own: &Own<'_>) -> Part {
    let all = Pods::of(&observed.covering, &observed.nodes);
    let missing = carrier
        .status
        .expected_pods
        .saturating_sub(all.live + all.disabled);
    let part = pods.part(pods.live + pods.disabled + missing);
    let owner = own.owner_of(carrier);
    let loans = own.loans_on(carrier).into_iter();
    let before = loans.filter(|(name, _)| owner == Some(&**name) || **name < *own.name);
    let least = before.map(|(_, limit)| limit.max_unavailable.into()).min();
    let waiting = part.wanted.max(all.to_leave);
    Part {
        wanted: least.map_or(waiting, |least: u64| waiting.min(least)),
        ..part
    }
}

/// The loan on a PodDisruptionBudget that limits all pods of the set.
fn written(
    budget: &Budget,
    own: &Own<'_>,
    valid: &ValidAvailabilitySet,
    are_settled: bool,
) -> Option<Written> {
    let limit = own.limit_on(&budget.metadata)?;
    if !covers(budget, &valid.selector) {
        return None;
    }
    let all = DisruptionLimit::all(Some(&budget.metadata.annotations));
    let known = own.loans_on(budget);
    let least = known
        .values()
        .map(|limit| limit.max_unavailable.into())
        .min();
    let max_unavailable: u64 = limit.max_unavailable.into();
    let granted = budget.spec.max_unavailable.as_u64();
    let is_as_written = !own.has_budget(budget) || is_intact(budget, valid);
    Some(Written {
        max_unavailable,
        revision: limit.revision,
        is_intact: is_as_written && granted == least && known.len() == all.len(),
        is_settled: are_settled && budget.is_settled(),
        grants: granted.unwrap_or(u64::MAX).max(max_unavailable),
    })
}

/// The sets whose loans are on the PodDisruptionBudget of this one, and whose pods it would not match any more if it was written.
fn awaited(budget: &Budget, own: &Own<'_>, valid: &ValidAvailabilitySet) -> Vec<String> {
    if is_intact(budget, valid) {
        return Vec::new();
    }
    let loans = own.loans_on(budget).into_keys();
    let is_awaited = |name: &String| {
        *name != own.name
            && match own.neighbours.get(name) {
                Some(Neighbour::Valid(narrow)) => {
                    !fedrs_api::selector::contains(&valid.selector, narrow)
                }
                Some(Neighbour::Invalid) => true,
                Some(Neighbour::Deleted) | None => false,
            }
    };
    loans.filter(is_awaited).collect()
}
