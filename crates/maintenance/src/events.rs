//! The events of a Maintenance: what has changed between two statuses.

use controller_base::event::Event;
use fedrs_api::{
    MaintenanceCluster, MaintenanceConditionType as Type, MaintenanceEventReason as Reason,
    MaintenancePhase as Phase, MaintenanceStatus,
    conditions::{self, ConditionStatus},
    pluralize,
};

/// The events for a status that follows another one; `forgotten` are clusters that keep their marks.
pub(crate) fn of(
    before: &MaintenanceStatus,
    after: &MaintenanceStatus,
    forgotten: &[&MaintenanceCluster],
) -> Vec<Event> {
    const FALSE: &str = ConditionStatus::False.as_str();
    const TRUE: &str = ConditionStatus::True.as_str();
    let warnings = [
        (Type::Accepted, FALSE, Reason::NotAccepted),
        (Type::NodesFound, FALSE, Reason::NoNodes),
        (Type::MembersReachable, FALSE, Reason::MemberUnreachable),
        (Type::PodsNotAsked, TRUE, Reason::PodsNotAsked),
    ];
    let mut events: Vec<_> = phase_event(before, after).into_iter().collect();
    for (type_, bad, reason) in warnings {
        let is_bad = |status: &MaintenanceStatus| {
            let condition = conditions::find(&status.conditions, type_);
            condition
                .filter(|condition| condition.status == bad)
                .cloned()
        };
        if let Some(condition) = is_bad(after).filter(|_| is_bad(before).is_none()) {
            events.push(Event::warning(reason, condition.message));
        }
    }
    for cluster in forgotten {
        let nodes = pluralize(cluster.cordoned, "node");
        let message = format!(
            "{} is no member any more: {nodes} there keep their marks",
            cluster.name
        );
        events.push(Event::warning(Reason::MarksLeft, message));
    }
    events
}

fn phase_event(before: &MaintenanceStatus, after: &MaintenanceStatus) -> Option<Event> {
    if before.phase == after.phase {
        return None;
    }
    let nodes = pluralize(after.nodes.matched, "node");
    match after.phase? {
        Phase::Draining if before.phase != Some(Phase::Ready) => {
            let message = format!("{nodes} are cordoned, and their pods leave");
            Some(Event::normal(Reason::Started, message))
        }
        Phase::Ready => {
            let message = format!(
                "{nodes} are cordoned, and no pod of a LocalReplicaSet or ReplicaSet is left"
            );
            Some(Event::normal(Reason::Emptied, message))
        }
        Phase::Ended => {
            let message = "the work is over: the marks of all nodes are removed";
            Some(Event::normal(Reason::Ended, message))
        }
        Phase::Scheduled | Phase::Draining => None,
    }
}
