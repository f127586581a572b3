//! The conditions of an AvailabilitySet.

use std::collections::{BTreeMap, BTreeSet};

use controller_base::short_list::short_list;
use fedrs_api::{
    AvailabilityConditionType as Type, AvailabilityReason as Reason, NewCondition,
    conditions::ConditionStatus, pluralize,
};

use crate::verdict::{Counts, PODS_MIN, Unsatisfiable, Verdict};

pub(crate) type Condition = NewCondition<Type, Reason>;

/// What the conditions are decided by.
pub(crate) struct Facts<'a> {
    pub(crate) counts: Counts,
    pub(crate) verdict: Verdict,
    /// Clusters that do not answer, and why.
    pub(crate) away: BTreeMap<&'a str, &'a str>,
    /// Clusters that could not be read, or rejected requests, and why.
    pub(crate) not_read: BTreeMap<&'a str, &'a str>,
    /// `cluster/name` of PodDisruptionBudgets of others that match pods.
    pub(crate) other_budgets: BTreeSet<String>,
    /// AvailabilitySets that have a PodDisruptionBudget for some of the pods, and do not contain this one.
    pub(crate) overlapping: BTreeSet<&'a str>,
    /// AvailabilitySets whose loans keep the PodDisruptionBudget of this one as it was before its selector changed.
    pub(crate) awaited: BTreeSet<&'a str>,
    /// Clusters with pods of LocalReplicaSets and others.
    pub(crate) mixed: BTreeSet<&'a str>,
}

/// All conditions, in their order.
pub(crate) fn of(facts: &Facts<'_>) -> Vec<Condition> {
    let accepted = Condition::new(Type::Accepted, true, Reason::Valid, "the spec is valid");
    let mut conditions = vec![
        accepted,
        satisfiable(facts),
        available(facts),
        members_reachable(facts),
    ];
    conditions.extend(evictions_not_limited(facts));
    conditions
}

/// Those of an invalid spec.
pub(crate) fn invalid(errors: &str) -> [Condition; 4] {
    let unknown = |type_| {
        let message = "the spec is invalid";
        Condition::new(
            type_,
            ConditionStatus::Unknown,
            Reason::InvalidSpec,
            message,
        )
    };
    [
        Condition::new(Type::Accepted, false, Reason::InvalidSpec, errors),
        unknown(Type::Satisfiable),
        unknown(Type::Available),
        unknown(Type::MembersReachable),
    ]
}

/// Whether it is not known if there are pods.
fn is_not_observed(facts: &Facts<'_>) -> bool {
    facts.counts.pods == 0 && !(facts.away.is_empty() && facts.not_read.is_empty())
}

fn not_observed(type_: Type) -> Condition {
    let message = "no pod is known, and not all members answer";
    Condition::new(
        type_,
        ConditionStatus::Unknown,
        Reason::NotObserved,
        message,
    )
}

fn satisfiable(facts: &Facts<'_>) -> Condition {
    const TYPE: Type = Type::Satisfiable;
    if is_not_observed(facts) {
        return not_observed(TYPE);
    }
    let pods = facts.counts.pods;
    let (count, budget) = (pluralize(pods, "pod"), facts.verdict.budget);
    let (reason, message) = match facts.verdict.unsatisfiable {
        None => {
            let message = format!("{count} with a budget of {budget}");
            return Condition::new(TYPE, true, Reason::CanBeAvailable, message);
        }
        Some(Unsatisfiable::TooFewPods) => {
            let message = format!("{count} that count: at least {PODS_MIN} are needed");
            (Reason::TooFewPods, message)
        }
        Some(Unsatisfiable::BudgetTooSmall { least }) => {
            let message =
                format!("a budget of {budget} is below 5% of {count}: {least} would do, or 5%");
            (Reason::BudgetTooSmall, message)
        }
    };
    Condition::new(TYPE, false, reason, message)
}

fn available(facts: &Facts<'_>) -> Condition {
    const TYPE: Type = Type::Available;
    if is_not_observed(facts) {
        return not_observed(TYPE);
    }
    let Counts { pods, unreachable } = facts.counts;
    let Verdict {
        budget,
        is_available,
        unsatisfiable,
        ..
    } = facts.verdict;
    let message = format!(
        "{unreachable} of {} unreachable, with a budget of {budget}",
        pluralize(pods, "pod")
    );
    let reason = match (is_available, unsatisfiable) {
        (true, _) => Reason::WithinBudget,
        (false, None) => Reason::BudgetExceeded,
        (false, Some(_)) => Reason::NotSatisfiable,
    };
    Condition::new(TYPE, is_available, reason, message)
}

fn members_reachable(facts: &Facts<'_>) -> Condition {
    const TYPE: Type = Type::MembersReachable;
    let list = |of: &BTreeMap<&str, &str>| {
        let parts = of.iter().map(|(name, why)| format!("{name}: {why}"));
        short_list(parts, "; ")
    };
    if let Some(list) = list(&facts.away) {
        let message = format!("members do not answer, their pods count as unreachable: {list}");
        return Condition::new(TYPE, false, Reason::MembersUnreachable, message);
    }
    if let Some(list) = list(&facts.not_read) {
        let message = format!("members reject requests, or can't be read: {list}");
        return Condition::new(TYPE, false, Reason::RequestsRejected, message);
    }
    Condition::new(TYPE, true, Reason::AllReachable, "all members answer")
}

fn evictions_not_limited(facts: &Facts<'_>) -> Option<Condition> {
    let other = short_list(facts.other_budgets.iter().cloned(), ", ");
    let names = |of: &BTreeSet<&str>| short_list(of.iter().map(ToString::to_string), ", ");
    let (reason, message) = if let Some(list) = other {
        let message = format!("PodDisruptionBudgets of others match the pods: {list}");
        (Reason::OtherDisruptionBudget, message)
    } else if let Some(list) = names(&facts.overlapping) {
        let message = format!(
            "AvailabilitySets that select some of the pods have a PodDisruptionBudget: {list}; \
             merge them, or let the selector of one have all requirements of the other one"
        );
        (Reason::OverlappingSets, message)
    } else if let Some(list) = names(&facts.awaited) {
        let message = format!(
            "the PodDisruptionBudget has its former selector as long as AvailabilitySets lend by it: {list}"
        );
        (Reason::OverlappingSets, message)
    } else {
        let list = names(&facts.mixed)?;
        let message =
            format!("pods beside those of LocalReplicaSets have no PodDisruptionBudget: {list}");
        (Reason::MixedControllers, message)
    };
    Some(Condition::new(
        Type::EvictionsNotLimited,
        true,
        reason,
        message,
    ))
}
