//! What changed since the last check, and what is done about it, for people: becomes Events (F38).

use fedrs_api::{FederatedReplicaSetStatus, pluralize};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{
    clock,
    conditions::{CONTENDED, NOT_BECOMING_READY},
    twin_words,
};
use crate::check::{
    Notice, SetChange, considered::Considered, count, snapshot::Snapshot, standing::Standing,
};

/// What changed since the last status, for people.
pub(in crate::check) fn notices(
    snapshot: &Snapshot<'_>,
    members: &[Considered<'_>],
    status: &FederatedReplicaSetStatus,
) -> Vec<Notice> {
    let mut notices = Vec::new();
    for it in members {
        notices.extend(room_notice(it));
        notices.extend(loss_notice(it));
        notices.extend(twin_notice(it, snapshot, status));
    }
    let unplaced = (snapshot.memory.unplaced_replicas, status.unplaced_replicas);
    if unplaced.1 > 0 && unplaced.0 != unplaced.1 {
        notices.push(Notice {
            warning: true,
            reason: "Unplaced",
            message: format!(
                "no cluster has room for {}",
                pluralize(unplaced.1, "replica")
            ),
        });
    }
    let told = [CONTENDED, NOT_BECOMING_READY].map(|it| trouble_notice(it, snapshot, status));
    notices.extend(told.into_iter().flatten());
    notices
}

/// A condition that says of some trouble that it has begun.
fn trouble_notice(
    type_: &'static str,
    snapshot: &Snapshot<'_>,
    status: &FederatedReplicaSetStatus,
) -> Option<Notice> {
    let find = |all: &[Condition]| all.iter().find(|it| it.type_ == type_).cloned();
    if find(&snapshot.memory.conditions).is_some() {
        return None;
    }
    Some(Notice {
        warning: true,
        reason: type_,
        message: find(&status.conditions)?.message,
    })
}

/// A cluster that turned out to be full, or to have room again (F34).
fn room_notice(it: &Considered<'_>) -> Option<Notice> {
    if !it.usable() {
        return None;
    }
    let name = &it.member.name;
    let before = it.memory.and_then(|memory| memory.capacity).map(count);
    let (warning, reason, message) = match (before, it.room.capacity) {
        (None, Some(capacity)) => (
            true,
            "ClusterFull",
            format!(
                "{name} holds {capacity}: {} have waited too long ({})",
                it.seen.failed,
                it.seen.message.as_deref().unwrap_or("no reason given")
            ),
        ),
        (Some(before), Some(capacity)) if capacity > before => (
            false,
            "ClusterHasRoom",
            format!("{name} has room again: {before} to {capacity} are tried"),
        ),
        (Some(_), None) => (
            false,
            "ClusterHasRoom",
            format!("{name} has no known limit any more"),
        ),
        _ => return None,
    };
    Some(Notice {
        warning,
        reason,
        message,
    })
}

/// A cluster that is lost, or back (F33).
fn loss_notice(it: &Considered<'_>) -> Option<Notice> {
    let name = &it.member.name;
    let was_lost = it
        .memory
        .is_some_and(|memory| memory.internal.lost_since.is_some());
    match it.standing {
        Standing::Lost { since } if !was_lost && it.placed() > 0 => Some(Notice {
            warning: true,
            reason: "ClusterLost",
            message: format!(
                "{name} is lost since {}, with {}: placed elsewhere",
                clock(since),
                pluralize(it.placed(), "replica")
            ),
        }),
        Standing::Usable if was_lost => Some(Notice {
            warning: false,
            reason: "ClusterBack",
            message: format!("{name} is back, with {}", pluralize(it.placed(), "replica")),
        }),
        _ => None,
    }
}

/// A cluster that turned out to be there under two names.
fn twin_notice(
    it: &Considered<'_>,
    snapshot: &Snapshot<'_>,
    status: &FederatedReplicaSetStatus,
) -> Option<Notice> {
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
    let is_news = says_so(status) && !says_so(snapshot.memory);
    is_news.then(|| {
        Notice::warning(
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
) -> Notice {
    let (warning, reason, message) = match change {
        SetChange::Create { replicas } if repairs => (
            true,
            "DriftRepaired",
            format!(
                "{member}: the set was taken away there and is made again with {}",
                pluralize(*replicas, "replica")
            ),
        ),
        SetChange::Scale { from, to, .. } if repairs => (
            true,
            "DriftRepaired",
            format!(
                "{member}: somebody asked for {} there, it gets {to}: {why}",
                pluralize(*from, "replica")
            ),
        ),
        SetChange::Create { replicas } => (
            false,
            "Created",
            format!(
                "created in {member} with {}: {why}",
                pluralize(*replicas, "replica")
            ),
        ),
        SetChange::Scale { from, to, .. } if to > from => (
            false,
            "ScaledUp",
            format!("{member} from {from} to {to}: {why}"),
        ),
        SetChange::Scale { from, to, .. } => (
            false,
            "ScaledDown",
            format!("{member} from {from} to {to}: {why}"),
        ),
        SetChange::Overwrite { drifted: true, .. } => (
            true,
            "DriftRepaired",
            format!("{member}: the set was changed there and is written anew"),
        ),
        SetChange::Overwrite { .. } => (
            false,
            "Updated",
            format!("{member}: the template was written"),
        ),
        SetChange::MarkPods { .. } => (
            false,
            "PodsAdopted",
            format!("{member}: pods that the set adopted"),
        ),
    };
    Notice {
        warning,
        reason,
        message,
    }
}
