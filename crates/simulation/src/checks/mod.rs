//! What must hold in every run, whatever happens: pure functions over what was observed.
//!
//! ```text
//! committed changes of all clusters --> Observed --a write of the controller--> safety: Violation?
//! ```
//!
//! The controller sees a state that is some seconds old, and a write takes time to arrive. So a write violates an invariant
//! only if it does so by every state of the last few seconds, or since its cluster was last observable.

mod availability;
mod availability_state;
mod belief;
mod bounds;
mod capacity;
pub(crate) mod endpoints;
mod late;
mod left_behind;
mod loans;
mod local_set;
mod maintenance;
mod maintenance_state;
mod observed;
mod observed_member;
mod ours;
mod reach;
mod rollouts;
mod scale_down;
mod speed;
mod statuses;
mod switches;
mod take_back;
mod violation;
mod visibility;

use std::collections::BTreeMap;

use sim_cluster::{Api, Change, kinds};

pub(crate) use bounds::of_replicas;
pub(crate) use local_set::{
    OTHER_FEDERATION, is_labeled, is_of_other_federation, is_written_by_fedrs,
};
pub(crate) use maintenance::{is_closed as is_closed_node, matches as matches_node};
pub(crate) use maintenance_state::mark_of;
pub(crate) use observed::Observed;
pub(crate) use ours::GUESTS;
pub(crate) use reach::Reach;
pub use violation::{Invariant, Violation};
pub(crate) use visibility::{OutageKind, RESTORED};

/// Checks a change that the controller made to the host.
pub(crate) fn of_host(
    observed: &Observed,
    members: &BTreeMap<String, Api>,
    change: &Change,
) -> Vec<Violation> {
    let foreign = ours::on_host(change).map(Violation::of(Invariant::OnlyOurs));
    let capacity = capacity::on_host(observed, change);
    let capacity = capacity.map(Violation::of(Invariant::KnownCapacity));
    let status = statuses::on_host(observed, change);
    let status = status.map(Violation::of(Invariant::TrueStatus));
    let left = left_behind::of_release(observed, members, change);
    let left = left.map(Violation::of(Invariant::NothingLeft));
    let lent = of_record(observed, change);
    let all = [foreign, capacity, status, left, lent];
    all.into_iter().flatten().collect()
}

/// Checks a change of a member that the controller sent long before, when more may have been allowed.
pub(crate) fn of_member_late(observed: &Observed, member: &str, change: &Change) -> Vec<Violation> {
    let foreign = ours::in_member(observed, member, change);
    let other = late::of_change(observed, member, change);
    let other = foreign.or(other).map(Violation::of(Invariant::OnlyOurs));
    let unlent = rollouts::of_late_change(observed, member, change);
    let unlent = unlent.map(Violation::of(Invariant::Rollout));
    other.into_iter().chain(unlent).collect()
}

/// Checks a change that the controller made to a member, before it is observed.
pub(crate) fn of_member(observed: &Observed, member: &str, change: &Change) -> Vec<Violation> {
    // A member that lies may have anything done to itself.
    if observed.may_lie(member) {
        return Vec::new();
    }
    if change.kind == *kinds::NODES {
        let wrong = maintenance::of_node(observed, member, change);
        return wrong
            .map(Violation::of(Invariant::Marks))
            .into_iter()
            .collect();
    }
    if availability::is_budget(change) {
        let wrong = availability::of_budget(observed, member, change);
        return wrong
            .map(Violation::of(Invariant::Budget))
            .into_iter()
            .collect();
    }
    let mut violations = Vec::new();
    violations
        .extend(ours::in_member(observed, member, change).map(Violation::of(Invariant::OnlyOurs)));
    violations.extend(bounds::of_change(observed, member, change));
    violations.extend(of_template(observed, member, change));
    violations
}

/// Checks that a pod that was created did not start too early.
pub(crate) fn of_start(observed: &Observed, member: &str, change: &Change) -> Option<Violation> {
    let set = observed::started(observed, member, change)?;
    speed::of_starts(observed, set).map(Violation::of(Invariant::Speed))
}

/// Checks what a status that the controller has written lends.
pub(crate) fn of_record(observed: &Observed, change: &Change) -> Option<Violation> {
    loans::on_host(observed, change).map(Violation::of(Invariant::Budget))
}

/// Checks a template that the controller has written.
pub(crate) fn of_template(observed: &Observed, member: &str, change: &Change) -> Option<Violation> {
    let violation = rollouts::of_change(observed, member, change);
    violation.map(Violation::of(Invariant::Rollout))
}
