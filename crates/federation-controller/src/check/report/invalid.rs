//! The status of a FederatedReplicaSet whose spec is invalid (F4): the last layout stays, the counts are kept current.

use fedrs_api::{
    ClusterStatus, ConditionReason, ConditionType, FederatedReplicaSetStatus, FieldError,
    conditions::find,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{
    clusters::observed,
    conditions::Conditions,
    status::{StatusRefresh, with_sums},
};
use crate::check::{
    eligibility::Eligibility,
    evaluation::{MemberEvaluation, evaluate},
    messages::{self, conditions as texts},
    settings::CheckSettings,
    snapshot::Member,
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
    pub settings: &'a CheckSettings,
}

/// Rejects an invalid spec at `now`: nothing changes in any member.
#[must_use]
pub fn reject(invalid: &InvalidFrs<'_>, now: Timestamp) -> StatusRefresh {
    let previous = invalid.previous;
    let message = texts::invalid(invalid.errors);
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
            vec![messages::invalid_event(&message)]
        },
        moving: false,
    }
}

/// The entries of the last layout, and of members that have a local set, with their current counts.
fn clusters(invalid: &InvalidFrs<'_>, now: Timestamp) -> Vec<ClusterStatus> {
    let previous = &invalid.previous.clusters;
    let evaluations = evaluate(invalid.members, previous, now, invalid.settings);
    let is_joining =
        |member: &MemberEvaluation<'_>| matches!(member.eligibility, Eligibility::Joining { .. });
    let current: Vec<_> = evaluations
        .iter()
        .filter(|member| !is_joining(member))
        .filter(|member| member.previous.is_some() || member.live_set().is_some())
        .map(|member| observed(member, None, now))
        .collect();
    let is_gone = |cluster: &&ClusterStatus| current.iter().all(|known| known.name != cluster.name);
    let mut clusters: Vec<_> = previous.iter().filter(is_gone).cloned().collect();
    clusters.extend(current);
    clusters.sort_by(|a, b| a.name.cmp(&b.name));
    clusters
}

/// The previous conditions about the members, and those of an invalid spec.
fn conditions(invalid: &InvalidFrs<'_>, message: &str, now: Timestamp) -> Vec<Condition> {
    let previous = &invalid.previous.conditions;
    let reason = ConditionReason::InvalidSpec;
    let mut set = Conditions::of(previous, invalid.generation, now);
    set.put(ConditionType::Accepted, false, reason, message);
    match find(previous, ConditionType::Placed) {
        Some(placed) => set.built.push(placed.clone()),
        None => set.put(ConditionType::Placed, false, reason, texts::INVALID),
    }
    set.put(ConditionType::Ready, false, reason, texts::INVALID);
    set.put(ConditionType::Stalled, true, reason, message);
    let is_decided = |condition: &&Condition| {
        let built = set.built.iter().map(|built| built.type_.as_str());
        let mut decided = built.chain([ConditionType::Reconciling.as_str()]);
        decided.all(|type_| type_ != condition.type_)
    };
    let others: Vec<_> = previous.iter().filter(is_decided).cloned().collect();
    set.built.extend(others);
    set.built
}
