//! The conditions of a Maintenance.

use std::collections::BTreeMap;

use controller_base::short_list::short_list;
use fedrs_api::{
    MaintenanceConditionType as Type, MaintenanceReason as Reason, NewCondition,
    conditions::ConditionStatus, pluralize,
};

use crate::goal::Rejection;

pub(crate) type Condition = NewCondition<Type, Reason>;

/// What the conditions are decided by.
pub(crate) struct Facts<'a> {
    pub(crate) rejection: Option<&'a Rejection>,
    /// Whether nodes are looked for; if not, why, for people.
    pub(crate) not_observed: Option<&'static str>,
    pub(crate) matched: usize,
    /// Clusters that do not answer, and why.
    pub(crate) unreachable: BTreeMap<&'a str, &'a str>,
    /// Clusters that reject the marks, and why.
    pub(crate) rejected: &'a BTreeMap<String, String>,
    /// `cluster/node`, and the Maintenance that has marked it.
    pub(crate) held: &'a BTreeMap<String, String>,
    /// Clusters where nobody moves the pods that are left, and how many there are.
    pub(crate) stuck: BTreeMap<&'a str, i32>,
}

/// All conditions, in their order.
pub(crate) fn of(facts: &Facts<'_>) -> Vec<Condition> {
    let mut conditions = vec![
        accepted(facts),
        nodes_found(facts),
        members_reachable(facts),
    ];
    conditions.extend(nodes_held(facts));
    conditions.extend(pods_not_asked(facts));
    conditions
}

fn accepted(facts: &Facts<'_>) -> Condition {
    match facts.rejection {
        None => Condition::new(Type::Accepted, true, Reason::Valid, "the spec is valid"),
        Some(Rejection { reason, message }) => {
            Condition::new(Type::Accepted, false, *reason, message.as_str())
        }
    }
}

fn nodes_found(facts: &Facts<'_>) -> Condition {
    const TYPE: Type = Type::NodesFound;
    if let Some(why) = facts.not_observed {
        return Condition::new(TYPE, ConditionStatus::Unknown, Reason::NotObserved, why);
    }
    match facts.matched {
        0 if !facts.unreachable.is_empty() => Condition::new(
            TYPE,
            ConditionStatus::Unknown,
            Reason::MembersUnreachable,
            "spec.nodeSelector matches no node of the clusters that answer",
        ),
        0 => Condition::new(
            TYPE,
            false,
            Reason::NoNodes,
            "spec.nodeSelector matches no node of the clusters",
        ),
        nodes => {
            let message = format!("{} match", pluralize(nodes, "node"));
            Condition::new(TYPE, true, Reason::NodesMatch, message)
        }
    }
}

fn members_reachable(facts: &Facts<'_>) -> Condition {
    const TYPE: Type = Type::MembersReachable;
    let list = |parts: Vec<String>| short_list(parts.into_iter(), "; ");
    let unreachable = facts.unreachable.iter();
    let unreachable = unreachable.map(|(name, why)| format!("{name}: {why}"));
    let rejected = facts.rejected.iter();
    let rejected = rejected.map(|(name, why)| format!("{name}: {why}"));
    if let Some(list) = list(unreachable.collect()) {
        let message = format!("waiting for members that do not answer: {list}");
        return Condition::new(TYPE, false, Reason::MembersUnreachable, message);
    }
    if let Some(list) = list(rejected.collect()) {
        let message = format!("members reject changes of nodes: {list}");
        return Condition::new(TYPE, false, Reason::MarksRejected, message);
    }
    if facts.rejection.is_some() && facts.not_observed.is_some() {
        let message = "the spec is not accepted";
        return Condition::new(TYPE, ConditionStatus::Unknown, Reason::NotObserved, message);
    }
    Condition::new(TYPE, true, Reason::AllReachable, "all members answer")
}

fn nodes_held(facts: &Facts<'_>) -> Option<Condition> {
    let held = facts.held.iter();
    let list = short_list(held.map(|(node, by)| format!("{node} ({by})")), ", ")?;
    let message = format!("nodes have the mark of another Maintenance, and are left to it: {list}");
    Some(Condition::new(
        Type::NodesHeld,
        true,
        Reason::MarkedByAnother,
        message,
    ))
}

fn pods_not_asked(facts: &Facts<'_>) -> Option<Condition> {
    let stuck = facts.stuck.iter();
    let stuck = stuck.map(|(cluster, pods)| format!("{cluster} ({})", pluralize(*pods, "pod")));
    let list = short_list(stuck, ", ")?;
    let message = format!(
        "members have no MigrationRequests, so that nobody moves their pods: use kubectl drain there, or install the controller of \
         LocalReplicaSets: {list}"
    );
    Some(Condition::new(
        Type::PodsNotAsked,
        true,
        Reason::NoMigrationRequests,
        message,
    ))
}
