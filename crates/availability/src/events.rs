//! The events of an AvailabilitySet: what has changed between two statuses.

use controller_base::event::Event;
use fedrs_api::{
    AvailabilityCluster, AvailabilityConditionType as Type, AvailabilityEventReason as Reason,
    AvailabilityReason, AvailabilitySetStatus, conditions,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// The events for a status that follows another one; `forgotten` are clusters that keep what limits evictions.
pub(crate) fn of(
    before: &AvailabilitySetStatus,
    after: &AvailabilitySetStatus,
    forgotten: &[&AvailabilityCluster],
) -> Vec<Event> {
    let warnings = [
        (Type::Accepted, Reason::NotAccepted),
        (Type::Satisfiable, Reason::NotSatisfiable),
        (Type::MembersReachable, Reason::MemberUnreachable),
    ];
    let mut events = Vec::new();
    for (type_, reason) in warnings {
        if let Some(condition) = became(before, after, type_, "False") {
            events.push(Event::warning(reason, &*condition.message));
        }
    }
    let exceeded = became(before, after, Type::Available, "False")
        .filter(|condition| condition.reason == AvailabilityReason::BudgetExceeded.as_str());
    if let Some(condition) = exceeded {
        events.push(Event::warning(Reason::BudgetExceeded, &*condition.message));
    }
    let was = conditions::find(&before.conditions, Type::Available);
    if was.is_some_and(|condition| condition.status == "False")
        && let Some(condition) = became(before, after, Type::Available, "True")
    {
        events.push(Event::normal(Reason::Available, &*condition.message));
    }
    for cluster in forgotten {
        let message = format!(
            "{} is no member any more: what limits evictions there stays",
            cluster.name
        );
        events.push(Event::warning(Reason::LimitsLeft, message));
    }
    events
}

/// The condition, if it has this status now and had another one, or none, before.
fn became<'s>(
    before: &AvailabilitySetStatus,
    after: &'s AvailabilitySetStatus,
    type_: Type,
    status: &str,
) -> Option<&'s Condition> {
    let was = conditions::find(&before.conditions, type_);
    let was_so = was.is_some_and(|condition| condition.status == status);
    let is = conditions::find(&after.conditions, type_);
    is.filter(|condition| condition.status == status && !was_so)
}
