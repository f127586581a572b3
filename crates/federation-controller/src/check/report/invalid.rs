//! The status of a FederatedReplicaSet whose spec is invalid (F4): the last layout stays, the counts are kept current.

use controller_base::{event::Event, field_errors};
use fedrs_api::{
    ClusterState, ClusterStatus, ConditionReason, ConditionType, EventReason,
    FederatedReplicaSetStatus, FieldError, NewCondition, conditions::find,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{
    StatusRefresh, cluster_message::not_eligible, clusters::observed, conditions::build, with_sums,
};
use crate::{
    check::{
        evaluation::{MemberEvaluation, evaluate},
        snapshot::Member,
    },
    config::Config,
};

/// A FederatedReplicaSet whose spec or preferences are invalid, and all members.
#[derive(Clone, Copy, Debug)]
pub struct InvalidFrs<'a> {
    /// What is wrong with it.
    pub errors: &'a [FieldError],
    /// The generation of the invalid spec.
    pub generation: Option<i64>,
    /// The hash of its preferences.
    pub preferences_hash: &'a Option<String>,
    /// The previous status.
    pub previous: &'a FederatedReplicaSetStatus,
    /// The members of the federation, by name, each once.
    pub members: &'a [Member],
    /// Durations and bounds.
    pub settings: &'a Config,
}

/// Rejects an invalid spec at `now`: nothing changes in any member.
#[must_use]
pub fn reject(invalid: &InvalidFrs<'_>, now: Timestamp) -> StatusRefresh {
    let previous = invalid.previous;
    let message = field_errors::message(invalid.errors);
    let is_known = find(&previous.conditions, ConditionType::Stalled)
        .is_some_and(|condition| condition.message == message);
    let status = FederatedReplicaSetStatus {
        observed_generation: invalid.generation,
        observed_preferences_hash: invalid.preferences_hash.clone(),
        conditions: conditions(invalid, &message, now),
        ..previous.clone()
    };
    StatusRefresh {
        status: with_sums(status, clusters(invalid, now)),
        events: if is_known {
            Vec::new()
        } else {
            vec![Event::warning(EventReason::InvalidSpec, message)]
        },
        moving: false,
    }
}

/// The entries of the last layout, and of members that have a local ReplicaSet, with their current counts.
fn clusters(invalid: &InvalidFrs<'_>, now: Timestamp) -> Vec<ClusterStatus> {
    let previous = &invalid.previous.clusters;
    let evaluations = evaluate(
        invalid.members,
        previous,
        false,
        None,
        now,
        invalid.settings,
    );
    let current: Vec<_> = evaluations
        .iter()
        .filter(|member| !member.eligibility.is_joining())
        .filter(|member| member.previous.is_some() || member.live_set().is_some())
        .map(|member| entry(member, now))
        .collect();
    let is_gone = |cluster: &&ClusterStatus| current.iter().all(|known| known.name != cluster.name);
    let gone = previous.iter().filter(is_gone).cloned();
    let mut clusters: Vec<_> = gone
        .map(|cluster| ClusterStatus {
            waits: Vec::new(),
            ..cluster
        })
        .collect();
    clusters.extend(current);
    clusters.sort_by(|a, b| a.name.cmp(&b.name));
    clusters
}

/// The entry of one member. Nothing is decided: no wait ends, and what was said of a member that is back does not hold.
fn entry(member: &MemberEvaluation<'_>, now: Timestamp) -> ClusterStatus {
    let was_eligible = member
        .previous
        .is_some_and(|previous| previous.state == Some(ClusterState::Eligible));
    let mut entry = observed(member, member.most_believed(), None, now);
    match not_eligible(member) {
        Some((reason, message)) => (entry.reason, entry.message) = (Some(reason), message),
        None if was_eligible => {}
        None => (entry.reason, entry.message) = (None, String::new()),
    }
    entry
}

/// The conditions of an invalid spec, and the previous ones about the members.
fn conditions(invalid: &InvalidFrs<'_>, message: &str, now: Timestamp) -> Vec<Condition> {
    let previous = &invalid.previous.conditions;
    let short = "the spec or its preferences are invalid";
    let new = [
        (ConditionType::Accepted, false, message),
        (ConditionType::Placed, false, short),
        (ConditionType::Ready, false, short),
        (ConditionType::Stalled, true, message),
    ];
    let new = new.map(|(type_, status, message)| {
        NewCondition::new(type_, status, ConditionReason::InvalidSpec, message)
    });
    let mut conditions = build(previous, invalid.generation, now, new);
    for condition in previous {
        let is_kept = condition.type_ == ConditionType::Placed.as_str();
        let known = conditions
            .iter_mut()
            .find(|known| known.type_ == condition.type_);
        match known {
            Some(known) if is_kept => *known = condition.clone(),
            None if condition.type_ != ConditionType::Reconciling.as_str() => {
                conditions.push(condition.clone());
            }
            _ => {}
        }
    }
    conditions
}
