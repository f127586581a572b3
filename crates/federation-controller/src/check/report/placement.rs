//! What is wrong with the placement: replicas without a cluster (F18), and names that no member cluster has.

use controller_base::short_list::short_list;
use fedrs_api::{ConditionReason, pluralize, unknown_clusters};

use crate::check::{
    decision::Decision,
    snapshot::{Member, NamespaceState},
};

/// What people should know about the placement.
#[derive(Debug)]
pub(super) struct PlacementReport {
    /// Why replicas have no cluster, if any has none.
    pub(super) unplaced: Option<(ConditionReason, String)>,
    /// The names in the preferences that no member cluster has, if there are any.
    pub(super) unknown_names: Option<String>,
}

impl PlacementReport {
    pub(super) fn of(decision: &Decision<'_>) -> Self {
        Self {
            unplaced: (decision.unplaced() > 0).then(|| unplaced(decision)),
            unknown_names: unknown_names(decision),
        }
    }

    /// `message` with the unknown names, which may be its cause.
    pub(super) fn with_unknown_names(&self, message: &str) -> String {
        match &self.unknown_names {
            Some(unknown) => format!("{message}; {unknown}"),
            None => message.to_owned(),
        }
    }
}

/// Why replicas have no cluster.
fn unplaced(decision: &Decision<'_>) -> (ConditionReason, String) {
    let frs = decision.snapshot.frs;
    let counted = || {
        let evaluations = decision.evaluations.iter();
        evaluations.filter(|member| !member.eligibility.is_duplicate())
    };
    let members = || counted().map(|member| member.member);
    let is_selected = |member: &Member| {
        let preference = frs.placement.for_cluster(&member.name);
        preference.is_some_and(|preference| preference.weight > 0 || preference.min_replicas > 0)
    };
    let selected = || counted().filter(|member| is_selected(member.member));
    let open = || selected().filter(|member| !is_closed_to_namespace(member.member));
    let (reason, why) = if selected().next().is_none() {
        let why = "the placement selects no member cluster";
        (ConditionReason::NoMatchingCluster, why.to_owned())
    } else if open().next().is_none() {
        let why = namespace_not_taken(decision);
        (ConditionReason::NamespaceNotTaken, why)
    } else if open().all(|member| member.eligibility.is_unknown()) {
        let names = open().map(|member| member.member.name.clone());
        let names = short_list(names, ", ").unwrap_or_default();
        let why = format!("the state of {names} is not known");
        (ConditionReason::MemberUnknown, why)
    } else {
        let why = "preferences and capacities allow no more";
        (ConditionReason::InsufficientCapacity, why.to_owned())
    };
    let replicas = pluralize(u64::from(frs.replicas), "replica");
    let mut message = format!(
        "{} of {replicas} have no cluster: {why}",
        decision.unplaced()
    );
    let draining: fn(&&Member) -> bool = |member| member.draining;
    let cordoned: fn(&&Member) -> bool = |member| !member.schedulable && !member.draining;
    let not_taken: fn(&&Member) -> bool = |member| member.namespace == NamespaceState::NotTaken;
    let lacks_kind: fn(&&Member) -> bool = |member| member.lacks_kind;
    for (cause, is_excluded) in [
        ("namespace not taken", not_taken),
        ("LocalReplicaSets not installed", lacks_kind),
        ("draining", draining),
        ("cordoned", cordoned),
    ] {
        let excluded = members().filter(is_excluded);
        if let Some(names) = short_list(excluded.map(|member| member.name.clone()), ", ") {
            message = format!("{message}; excluded ({cause}): {names}");
        }
    }
    (reason, message)
}

/// Whether a member takes no replicas because of the namespace.
fn is_closed_to_namespace(member: &Member) -> bool {
    matches!(
        member.namespace,
        NamespaceState::NotTaken | NamespaceState::System
    )
}

/// Why no member that the placement selects takes the namespace.
fn namespace_not_taken(decision: &Decision<'_>) -> String {
    let namespace = &decision.snapshot.frs.key.namespace;
    let is_system = |member: &Member| member.namespace == NamespaceState::System;
    if decision.snapshot.members.iter().all(is_system) {
        format!("{namespace} is a system namespace, in which nothing is changed")
    } else {
        format!("no selected member cluster takes namespace {namespace}")
    }
}

/// Names in the preferences that no member has.
fn unknown_names(decision: &Decision<'_>) -> Option<String> {
    let named = decision.snapshot.frs.placement.clusters.keys();
    unknown(
        decision,
        named.map(String::as_str).filter(|name| *name != "*"),
    )
}

/// Those of `names` that no member has.
pub(super) fn unknown<'a>(
    decision: &Decision<'_>,
    names: impl Iterator<Item = &'a str>,
) -> Option<String> {
    let members = decision.snapshot.members;
    let is_member = |name: &str| {
        let by_name = |member: &Member| member.name.as_str().cmp(name);
        members.binary_search_by(by_name).is_ok()
    };
    let names_of_members = members.iter().map(|member| &*member.name);
    unknown_clusters(names, is_member, &names_of_members)
}
