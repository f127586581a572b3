//! How many replicas a write to a local set may request, and leave.

use std::cmp::Ordering;

use fedrs_api::{DeletionPolicy, ValidFrs};
use serde_json::json;
use sim_cluster::{Change, Object};

use super::{
    local_set::{desired, ready},
    observed::{FrsState, Observed},
    scale_down::ScaleDown,
    switches, take_back,
    violation::{Invariant, Violation},
};

/// Checks a change of a local set.
pub(super) fn of_change(observed: &Observed, member: &str, change: &Change) -> Option<Violation> {
    let is_deleted = |object: Option<&Object>| {
        object.is_none_or(|object| object["metadata"].get("deletionTimestamp").is_some())
    };
    if is_of_set(observed, change) && change.old.is_some() && is_deleted(change.new.as_ref()) {
        if is_deleted(change.old.as_ref()) {
            return None;
        }
        let is_replaced = change
            .old
            .as_ref()
            .is_some_and(|set| has_other_selector(observed, set));
        let deletion = deletion(observed, member, &change.name).filter(|_| !is_replaced);
        return deletion.map(Violation::of(Invariant::NoDeletion));
    }
    let switches =
        is_of_set(observed, change).then(|| switches::of_change(observed, member, change));
    let switches = switches.flatten().map(Violation::of(Invariant::Switches));
    switches.or_else(|| of_replicas(observed, member, change))
}

/// Checks a change of the replicas of a local set.
pub(crate) fn of_replicas(observed: &Observed, member: &str, change: &Change) -> Option<Violation> {
    if !is_of_set(observed, change) {
        return None;
    }
    let name = &change.name;
    let (before, now) = (desired(change.old.as_ref()), desired(change.new.as_ref()));
    match now.cmp(&before) {
        Ordering::Less => {
            let scale_down = ScaleDown {
                observed,
                name,
                member,
                before,
                now,
                counted: ready(change.old.as_ref()),
            };
            let dip = scale_down.dip(false).map(Violation::of(Invariant::NoDip));
            let unknown = || scale_down.dip(true);
            let unknown = || unknown().or_else(|| take_back::of(&scale_down));
            dip.or_else(|| unknown().map(Violation::of(Invariant::NoRelianceOnUnknown)))
        }
        Ordering::Equal => None,
        Ordering::Greater => {
            surplus(observed, member, name, now).map(Violation::of(Invariant::NoSurplus))
        }
    }
}

fn is_of_set(observed: &Observed, change: &Change) -> bool {
    observed.is_local_set(change)
}

/// F29: whether a set has another selector than its FederatedReplicaSet, so that it can't be adopted.
fn has_other_selector(observed: &Observed, set: &Object) -> bool {
    let name = set["metadata"]["name"].as_str().unwrap_or_default();
    let selector = &set["spec"]["selector"];
    let is_other = |frs: &ValidFrs| json!(frs.selector) != *selector;
    observed.specs(name).any(is_other)
}

/// F5: a local set is deleted only with its FederatedReplicaSet, and only if that asks for it.
fn deletion(observed: &Observed, member: &str, name: &str) -> Option<String> {
    let is_allowed = observed
        .states(name)
        .any(|state| *state == FrsState::Deleted(DeletionPolicy::Delete));
    (!is_allowed).then(|| {
        format!("{name} in {member} deleted, but no FederatedReplicaSet with deletionPolicy Delete was deleted")
    })
}

/// Growth requests at most N, the surge and the capacity probes.
fn surplus(observed: &Observed, member: &str, name: &str, now: u64) -> Option<String> {
    // Replicas that the member may still run are requested again: that creates none.
    let mut parts = observed.parts(name);
    let (_, own) = parts.find(|(other, _)| *other == member)?;
    let mut running = own.ready.since(observed.oldest_belief(member));
    if running.any(|running| now <= *running) {
        return None;
    }
    let config = observed.config();
    let with_surge = |frs: &ValidFrs| {
        let replicas = u64::from(frs.replicas);
        let surge = frs
            .rescheduling
            .max_move_surge
            .unwrap_or(config.max_move_surge);
        (replicas + surge.of(replicas), replicas)
    };
    let (most, wanted) = observed.specs(name).map(with_surge).max()?;
    let timeout = |frs: &ValidFrs| match frs.rescheduling.unscheduled_timeout {
        Some(limit) => limit.0,
        None => config.unscheduled_timeout,
    };
    let timeout = observed.specs(name).filter_map(timeout).min();
    let requested = observed
        .parts(name)
        .filter(|(other, part)| {
            let mut taken = part.is_taken.since(observed.oldest_belief(other));
            // What a member without ready nodes runs, or a ReplicaSet that is being deleted, is replaced, and what another
            // controller has taken, or was released, is not ours.
            !part.is_terminating
                && *part.is_labeled.now()
                && observed.is_known_to_be_back(other)
                && observed.has_ready_nodes(other)
                && !observed.was_never_published(other, part)
                && !taken.any(|is_taken| *is_taken)
        })
        .map(|(other, part)| {
            if other == member {
                now
            } else {
                let requested = observed.known_request(other, part);
                let oldest = observed.oldest_belief(other);
                let mut rollouts = observed.rollout_status(name).since(oldest);
                let was_lent = rollouts.any(|status| status.record.loans.contains_key(other));
                let held = part.held_without_node(oldest, was_lent, timeout);
                held.map_or(requested, |running| requested.min(running))
            }
        });
    let requested: u64 = requested.sum();
    let members = observed.parts(name).count() as u64;
    let allowed = most + u64::from(config.capacity_probes) * members;
    (requested > allowed).then(|| {
        format!("{name} in {member} scaled to {now}: {requested} replicas are requested in all clusters, {wanted} desired, {allowed} allowed")
    })
}
