//! What changed since the last check, and what is done about it, for people: becomes Events (F38).

use fedrs_api::{FederatedReplicaSetStatus, pluralize};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{
    clock,
    conditions::{CONTENDED, NOT_BECOMING_READY},
    twin_words,
};
use crate::check::{
    SetChange, considered::Considered, count, snapshot::Snapshot, standing::Standing,
};
use crate::event::{Event, EventType};

/// What changed since the last status, for people.
pub(in crate::check) fn events(
    snapshot: &Snapshot<'_>,
    members: &[Considered<'_>],
    status: &FederatedReplicaSetStatus,
) -> Vec<Event> {
    let mut events = Vec::new();
    for it in members {
        events.extend(room_notice(it));
        events.extend(loss_notice(it));
        events.extend(twin_notice(it, snapshot, status));
    }
    let unplaced = (
        snapshot.previous.unplaced_replicas,
        status.unplaced_replicas,
    );
    if unplaced.1 > 0 && unplaced.0 != unplaced.1 {
        events.push(Event::warning(
            "Unplaced",
            format!(
                "no cluster has room for {}",
                pluralize(unplaced.1, "replica")
            ),
        ));
    }
    let told = [CONTENDED, NOT_BECOMING_READY].map(|it| trouble_notice(it, snapshot, status));
    events.extend(told.into_iter().flatten());
    events
}

/// A condition that says of some trouble that it has begun.
fn trouble_notice(
    type_: &'static str,
    snapshot: &Snapshot<'_>,
    status: &FederatedReplicaSetStatus,
) -> Option<Event> {
    let find = |all: &[Condition]| all.iter().find(|it| it.type_ == type_).cloned();
    if find(&snapshot.previous.conditions).is_some() {
        return None;
    }
    Some(Event::warning(type_, find(&status.conditions)?.message))
}

/// A cluster that turned out to be full, or to have room again (F34).
fn room_notice(it: &Considered<'_>) -> Option<Event> {
    if !it.usable() {
        return None;
    }
    let name = &it.member.name;
    let before = it.memory.and_then(|memory| memory.capacity).map(count);
    let (type_, reason, message) = match (before, it.room.capacity) {
        (None, Some(capacity)) => (
            EventType::Warning,
            "ClusterFull",
            format!(
                "{name} holds {capacity}: {} have waited too long ({})",
                it.seen.failed,
                it.seen.message.as_deref().unwrap_or("no reason given")
            ),
        ),
        (Some(before), Some(capacity)) if capacity > before => (
            EventType::Normal,
            "ClusterHasRoom",
            format!("{name} has room again: {before} to {capacity} are tried"),
        ),
        (Some(_), None) => (
            EventType::Normal,
            "ClusterHasRoom",
            format!("{name} has no known limit any more"),
        ),
        _ => return None,
    };
    Some(Event {
        type_,
        reason,
        message,
    })
}

/// A cluster that is lost, or back (F33).
fn loss_notice(it: &Considered<'_>) -> Option<Event> {
    let name = &it.member.name;
    let was_lost = it
        .memory
        .is_some_and(|memory| memory.internal.lost_since.is_some());
    match it.standing {
        Standing::Lost { since } if !was_lost && it.placed() > 0 => Some(Event::warning(
            "ClusterLost",
            format!(
                "{name} is lost since {}, with {}: placed elsewhere",
                clock(since),
                pluralize(it.placed(), "replica")
            ),
        )),
        Standing::Usable if was_lost => Some(Event::normal(
            "ClusterBack",
            format!("{name} is back, with {}", pluralize(it.placed(), "replica")),
        )),
        _ => None,
    }
}

/// A cluster that turned out to be there under two names.
fn twin_notice(
    it: &Considered<'_>,
    snapshot: &Snapshot<'_>,
    status: &FederatedReplicaSetStatus,
) -> Option<Event> {
    let Standing::Twin { of } = &it.standing else {
        return None;
    };
    let name = &it.member.name;
    let words = twin_words(of);
    let says_so = |status: &FederatedReplicaSetStatus| {
        let mut clusters = status.clusters.iter();
        clusters
            .any(|cluster| cluster.name == *name && cluster.same_cluster_as.as_ref() == Some(of))
    };
    let is_news = says_so(status) && !says_so(snapshot.previous);
    is_news.then(|| {
        Event::warning(
            "SameCluster",
            format!("{name} is {words}; take one of them away"),
        )
    })
}

/// What is being done in a member, and why; `repairs` if somebody else had changed what was there.
pub(in crate::check) fn action_notice(
    member: &str,
    change: &SetChange,
    why: &str,
    repairs: bool,
) -> Event {
    let (type_, reason, message) = match change {
        SetChange::Create { replicas } if repairs => (
            EventType::Warning,
            "DriftRepaired",
            format!(
                "{member}: the set was taken away there and is made again with {}",
                pluralize(*replicas, "replica")
            ),
        ),
        SetChange::Scale { from, to, .. } if repairs => (
            EventType::Warning,
            "DriftRepaired",
            format!(
                "{member}: somebody asked for {} there, it gets {to}: {why}",
                pluralize(*from, "replica")
            ),
        ),
        SetChange::Create { replicas } => (
            EventType::Normal,
            "Created",
            format!(
                "created in {member} with {}: {why}",
                pluralize(*replicas, "replica")
            ),
        ),
        SetChange::Scale { from, to, .. } if to > from => (
            EventType::Normal,
            "ScaledUp",
            format!("{member} from {from} to {to}: {why}"),
        ),
        SetChange::Scale { from, to, .. } => (
            EventType::Normal,
            "ScaledDown",
            format!("{member} from {from} to {to}: {why}"),
        ),
        SetChange::Overwrite { drifted: true, .. } => (
            EventType::Warning,
            "DriftRepaired",
            format!("{member}: the set was changed there and is written anew"),
        ),
        SetChange::Overwrite { .. } => (
            EventType::Normal,
            "Updated",
            format!("{member}: the template was written"),
        ),
        SetChange::LabelPods { .. } => (
            EventType::Normal,
            "PodsAdopted",
            format!("{member}: pods that the set adopted"),
        ),
    };
    Event {
        type_,
        reason,
        message,
    }
}
