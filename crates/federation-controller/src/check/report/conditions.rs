//! The conditions of a FederatedReplicaSet (F6): what holds, and what is being waited for.

use fedrs_api::{FederatedReplicaSetStatus, RejectionKind, pluralize};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::{clock, is_counted, settled, unready::stuck_since};
use crate::check::{
    considered::Considered,
    count,
    snapshot::{Member, Snapshot},
    standing::Standing,
};

/// The condition of sets that somebody else keeps changing (F29).
pub(super) const CONTENDED: &str = "Contended";
/// The condition of sets whose pods have a node and don't become ready (F20).
pub(super) const NOT_BECOMING_READY: &str = "NotBecomingReady";

/// The conditions of the status (F6): those that always stand there, and those that name some trouble while it lasts.
pub(super) fn conditions(
    snapshot: &Snapshot<'_>,
    members: &[Considered<'_>],
    status: &FederatedReplicaSetStatus,
    joining: bool,
    now: Timestamp,
) -> Vec<Condition> {
    let mut set = Conditions::after(snapshot, now);
    set.put(
        "Accepted",
        true,
        "Valid",
        "the spec and its preferences are valid",
    );
    placed_condition(&mut set, snapshot, members, status, joining);
    ready_condition(&mut set, snapshot, status);
    progress_condition(&mut set, snapshot, members, status);
    if let Some(message) = conflicts(status) {
        set.put("NameConflict", true, "SetOfAnother", &message);
    }
    if !snapshot.overlapping.is_empty() {
        let message = format!(
            "the selectors of {} and this set match each other's pods: each could adopt what the other leaves behind",
            snapshot.overlapping.join(", ")
        );
        set.put("SelectorOverlap", true, "OverlappingSelector", &message);
    }
    let stuck = stuck(snapshot, members, now);
    if let Some(message) = blocked(members, status, stuck.is_some()) {
        set.put("MoveBlocked", true, "NoReadyReplacement", &message);
    }
    if let Some(message) = stuck {
        set.put(NOT_BECOMING_READY, true, "NoProgress", &message);
    }
    if let Some(message) = contended(members) {
        set.put(CONTENDED, true, "ChangedAgainAndAgain", &message);
    }
    if let Some(message) = outdated(snapshot, members) {
        set.put("TemplateOutdated", true, "OlderPods", &message);
    }
    if snapshot.frs.paused {
        let message = "spec.paused is set: nothing is changed in the members";
        set.put("Paused", true, "Paused", message);
    }
    set.built
}

fn ready_condition(
    set: &mut Conditions<'_>,
    snapshot: &Snapshot<'_>,
    status: &FederatedReplicaSetStatus,
) {
    let wanted = u64::from(snapshot.frs.replicas);
    let ready = count(status.available_replicas);
    let all = ready >= wanted;
    let reason = if all { "AllReady" } else { "NotAllReady" };
    let message = format!("{ready} of {wanted} replicas are available");
    set.put("Ready", all, reason, &message);
}

fn progress_condition(
    set: &mut Conditions<'_>,
    snapshot: &Snapshot<'_>,
    members: &[Considered<'_>],
    status: &FederatedReplicaSetStatus,
) {
    if settled(members, status) {
        let message = "every cluster holds what it should";
        set.put("Progressing", false, "Settled", message);
        return;
    }
    let paused = snapshot.frs.paused;
    let reason = if paused { "Paused" } else { "Moving" };
    set.put("Progressing", !paused, reason, &awaited(members, status));
}

fn placed_condition(
    set: &mut Conditions<'_>,
    snapshot: &Snapshot<'_>,
    members: &[Considered<'_>],
    status: &FederatedReplicaSetStatus,
    joining: bool,
) {
    let asked = members
        .iter()
        .filter(|it| it.usable())
        .all(|it| it.placed() == it.target.total());
    if joining {
        set.put(
            "Placed",
            false,
            "WaitingForMembers",
            "members that were just added have not answered yet",
        );
    } else if status.unplaced_replicas > 0 {
        let message = no_room(snapshot, members, status);
        set.put("Placed", false, "NoRoom", &message);
    } else if asked {
        set.put("Placed", true, "AllPlaced", "every replica has a cluster");
    } else {
        set.put(
            "Placed",
            false,
            "Moving",
            "replicas are on their way to their clusters",
        );
    }
}

/// Why not everything is placed; names preferences for clusters that are no members, which are easily misspelt.
fn no_room(
    snapshot: &Snapshot<'_>,
    members: &[Considered<'_>],
    status: &FederatedReplicaSetStatus,
) -> String {
    let mut message = format!(
        "no cluster can run {} of the replicas: preferences and capacities leave no room",
        status.unplaced_replicas
    );
    for (how, closed) in [
        ("drained", (|it| it.draining) as fn(&Member) -> bool),
        ("cordoned", |it| !it.schedulable && !it.draining),
    ] {
        let closed = members.iter().filter(|it| closed(it.member));
        let names: Vec<_> = closed.map(|it| it.member.name.as_str()).collect();
        if !names.is_empty() {
            let names = names.join(", ");
            message = format!("{message}; {how}, and taking none: {names}");
        }
    }
    let named = snapshot.frs.placement.clusters.keys().map(String::as_str);
    let unknown: Vec<_> = named
        .filter(|name| *name != "*" && members.iter().all(|it| it.member.name != *name))
        .collect();
    if !unknown.is_empty() {
        message = format!(
            "{message}; {} in the preferences: no member of that name",
            unknown.join(", ")
        );
    }
    message
}

/// What is being waited for, cluster by cluster.
fn awaited(members: &[Considered<'_>], status: &FederatedReplicaSetStatus) -> String {
    let mut parts = Vec::new();
    for it in members {
        let name = &it.member.name;
        match &it.standing {
            Standing::Joining { until } => {
                parts.push(format!("{name} to answer, until {}", clock(*until)));
            }
            Standing::Frozen { .. } if it.placed() == 0 => {}
            Standing::Frozen { why, until } => {
                let until =
                    until.map_or(String::new(), |until| format!(", until {}", clock(until)));
                parts.push(format!("{name} to come back ({why}){until}"));
            }
            Standing::Lost { .. } | Standing::Twin { .. } => {}
            Standing::Usable => parts.extend(awaited_of(it)),
        }
    }
    if parts.is_empty() && status.unplaced_replicas > 0 {
        parts.push(format!(
            "room for {} in any cluster",
            pluralize(status.unplaced_replicas, "replica")
        ));
    }
    format!("waiting for {}", parts.join(", "))
}

/// What is being waited for in a member that can be asked for anything.
fn awaited_of(it: &Considered<'_>) -> Vec<String> {
    let name = &it.member.name;
    if let Some(until) = it.held_until {
        let until = clock(until);
        return vec![format!("the set in {name} to be written again at {until}")];
    }
    let mut parts = Vec::new();
    let target = it.target.total();
    let missing = target.saturating_sub(it.available());
    if it.refused_since().is_some() {
        parts.push(format!("{name} to take the set, which it refuses"));
    } else if missing > it.target.probes {
        parts.push(format!(
            "{} to get ready in {name}",
            pluralize(missing, "replica")
        ));
    }
    let surplus = it.placed().saturating_sub(target);
    if surplus > 0 {
        parts.push(format!(
            "{} to be replaced in {name}",
            pluralize(surplus, "replica")
        ));
    }
    parts
}

/// Members in which the set's name is taken by somebody else's set (F29, F40).
fn conflicts(status: &FederatedReplicaSetStatus) -> Option<String> {
    let words: Vec<_> = status
        .clusters
        .iter()
        .filter_map(|it| {
            let rejection = it.internal.rejection.as_ref()?;
            (rejection.kind == RejectionKind::NameConflict)
                .then(|| format!("{}: {}", it.name, rejection.message))
        })
        .collect();
    (!words.is_empty()).then(|| words.join("; "))
}

/// Members whose pods have a node and don't become ready (F20).
fn stuck(snapshot: &Snapshot<'_>, members: &[Considered<'_>], now: Timestamp) -> Option<String> {
    let parts: Vec<_> = members
        .iter()
        .filter_map(|it| {
            let since = clock(stuck_since(snapshot, it, now)?);
            let (pods, name) = (it.unready(), &it.member.name);
            Some(format!(
                "{pods} pods in {name} have a node, and since {since} none has become ready"
            ))
        })
        .collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Members in which somebody else keeps changing the set (F29).
fn contended(members: &[Considered<'_>]) -> Option<String> {
    let fights: Vec<_> = members
        .iter()
        .filter_map(|it| {
            let (times, by) = it.writes.fight()?;
            Some(format!(
                "the set in {} was changed {times} times by {}, and put right each time",
                it.member.name,
                by.unwrap_or("somebody")
            ))
        })
        .collect();
    (!fights.is_empty()).then(|| fights.join("; "))
}

/// Pods that run another template than the user's, as far as is known: a ReplicaSet lets those be that it has.
fn outdated(snapshot: &Snapshot<'_>, members: &[Considered<'_>]) -> Option<String> {
    let parts: Vec<_> = members
        .iter()
        .filter(|it| is_counted(it))
        .map(|it| (it.outdated(snapshot.template_hash), &it.member.name))
        .filter(|(pods, _)| *pods > 0)
        .map(|(pods, name)| format!("{pods} in {name}"))
        .collect();
    (!parts.is_empty()).then(|| {
        format!(
            "pods that were made from another template, or adopted: {}; they stay until they are deleted",
            parts.join(", ")
        )
    })
}

/// A move that can't go on: replicas stay that should go, and their replacements find no room or, `stuck`, don't get
/// ready (F20).
fn blocked(
    members: &[Considered<'_>],
    status: &FederatedReplicaSetStatus,
    stuck: bool,
) -> Option<String> {
    let kept: Vec<_> = members
        .iter()
        .filter(|it| it.usable() && it.next > it.target.total())
        .map(|it| format!("{} in {}", it.next - it.target.total(), it.member.name))
        .collect();
    let failing = members
        .iter()
        .any(|it| it.usable() && it.seen.failed > it.target.probes);
    (!kept.is_empty() && (failing || stuck || status.unplaced_replicas > 0)).then(|| {
        format!(
            "{} stay although placed elsewhere: no replacement can run",
            kept.join(", ")
        )
    })
}

/// Builds conditions, keeping the time of the last transition where the status stays (F6).
struct Conditions<'a> {
    before: &'a [Condition],
    generation: i64,
    now: Timestamp,
    built: Vec<Condition>,
}

impl<'a> Conditions<'a> {
    fn after(snapshot: &Snapshot<'a>, now: Timestamp) -> Self {
        Self {
            before: &snapshot.previous.conditions,
            generation: snapshot.frs.generation,
            now,
            built: Vec::new(),
        }
    }

    fn put(&mut self, type_: &str, holds: bool, reason: &str, message: &str) {
        let condition = condition(self.before, type_, holds, reason, message, self.now);
        self.built.push(Condition {
            observed_generation: Some(self.generation),
            ..condition
        });
    }
}

/// A condition whose transition time is that of `before`, unless its status changed.
pub(crate) fn condition(
    before: &[Condition],
    type_: &str,
    holds: bool,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> Condition {
    let status = if holds { "True" } else { "False" };
    let same = before
        .iter()
        .find(|it| it.type_ == type_ && it.status == status);
    Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: same.map_or(Time(now), |it| it.last_transition_time.clone()),
        observed_generation: None,
    }
}
