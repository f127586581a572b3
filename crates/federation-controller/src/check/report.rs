//! What a check tells people: the status with its conditions and reasons, and notices of what changed (F6, F19, F38).

use fedrs_api::{ClusterStatus, FederatedReplicaSetStatus};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::{
    Action, Considered, Notice, SetChange, after, count, number,
    snapshot::{CheckSettings, Snapshot},
    standing::Standing,
};

/// The status to publish.
pub(super) fn status(
    snapshot: &Snapshot<'_>,
    members: &[Considered<'_>],
    unplaced: u64,
    joining: bool,
    now: Timestamp,
) -> FederatedReplicaSetStatus {
    let frs = snapshot.frs;
    let clusters: Vec<_> = members
        .iter()
        .filter(|it| concerns(snapshot, it))
        .map(|it| cluster_status(snapshot, it, joining))
        .collect();
    let sum = |of: fn(&ClusterStatus) -> i32| clusters.iter().map(of).sum::<i32>();
    let with_replicas = clusters.iter().filter(|it| it.desired > 0).count();
    let complete = clusters
        .iter()
        .filter(|it| it.desired > 0 && it.ready >= it.desired)
        .count();
    let mut status = FederatedReplicaSetStatus {
        observed_generation: Some(frs.generation),
        observed_preferences_hash: frs.preferences_hash.clone(),
        replicas: sum(|it| it.replicas),
        ready_replicas: members
            .iter()
            .filter(|it| counted(it))
            .map(|it| number(it.ready()))
            .sum(),
        available_replicas: sum(|it| it.ready),
        selector: frs.selector_text.clone(),
        placed: number(u64::from(frs.replicas).saturating_sub(unplaced)),
        unplaced: number(unplaced),
        summary: format!("{complete}/{with_replicas}"),
        conditions: Vec::new(),
        clusters,
    };
    status.conditions = conditions(snapshot, members, &status, joining, now);
    status
}

/// Whether the status has an entry for the member: it has replicas, or preferences that explain why not.
fn concerns(snapshot: &Snapshot<'_>, it: &Considered<'_>) -> bool {
    it.placed() > 0
        || it.member.view.set.is_some()
        || snapshot
            .frs
            .placement
            .for_cluster(&it.member.name)
            .is_some()
}

/// Whether what the member last showed is still counted.
fn counted(it: &Considered<'_>) -> bool {
    !matches!(it.standing, Standing::Lost { .. })
}

fn cluster_status(snapshot: &Snapshot<'_>, it: &Considered<'_>, joining: bool) -> ClusterStatus {
    let memory = it.memory.cloned().unwrap_or_default();
    let mut status = ClusterStatus {
        name: it.member.name.clone(),
        ..memory
    };
    if counted(it) {
        status.replicas = it.set().map_or(0, |set| number(u64::from(set.current)));
        status.ready = number(it.available());
        status.unscheduled = number(it.seen.waiting);
    } else {
        (status.replicas, status.ready, status.unscheduled) = (0, 0, 0);
        (status.desired, status.probes) = (0, 0);
    }
    if it.usable() && !joining {
        status.desired = number(it.target.layout + it.target.pending);
        status.probes = number(it.target.probes);
        status.capacity = it.room.capacity.map(number);
        status.step = if it.room.capacity.is_some() {
            number(it.room.step)
        } else {
            0
        };
        if it.refused_since().is_none() {
            status.refused_since = None;
            status.failures = i32::try_from(it.room.failures).unwrap_or(i32::MAX);
            status.next_try = it.room.next_try.map(Time);
        }
        if it.member.view.set.is_none() {
            status.template = None;
        }
    }
    status.reason = reason(snapshot, it, &status);
    status
}

/// Why the cluster has its number, in a sentence or two (F19).
fn reason(snapshot: &Snapshot<'_>, it: &Considered<'_>, status: &ClusterStatus) -> String {
    let mut sentences = Vec::new();
    match &it.standing {
        Standing::Usable => sentences.extend(it.reasons.iter().cloned()),
        Standing::Joining { until } => {
            sentences.push(format!(
                "just added: its first answer is awaited until {}",
                clock(*until)
            ));
        }
        Standing::Frozen { why, until } => {
            let what = until.map_or("nothing is changed until that ends".to_owned(), |until| {
                format!(
                    "its replicas go elsewhere at {} if that goes on",
                    clock(until)
                )
            });
            sentences.push(format!("left as it is since {why}; {what}"));
        }
        Standing::Lost { since } => {
            sentences.push(format!(
                "lost since {}: its replicas are placed elsewhere",
                clock(*since)
            ));
        }
    }
    if it.usable() {
        sentences.extend(waiting_reasons(it, status));
    }
    if snapshot.frs.paused {
        sentences.push("paused: nothing is changed".to_owned());
    }
    sentences.join("; ")
}

fn waiting_reasons(it: &Considered<'_>, status: &ClusterStatus) -> Vec<String> {
    let mut sentences = Vec::new();
    if !it.member.schedulable {
        sentences.push("cordoned: it gets no more than it has".to_owned());
    }
    if let Some(since) = it.refused_since() {
        let next = status
            .next_try
            .as_ref()
            .map_or("at the next check".to_owned(), |time| {
                format!("at {}", clock(time.0))
            });
        sentences.push(format!(
            "refuses the set since {}, tried again {next}",
            clock(since)
        ));
    }
    if it.target.pending > 0 {
        sentences.push(format!(
            "{} of them wait for room, which no cluster has",
            it.target.pending
        ));
    }
    if it.target.probes > 0 {
        sentences.push(format!(
            "{} more wait there to notice when there is room again",
            it.target.probes
        ));
    }
    if it.seen.waiting > 0 {
        let message = it.seen.message.as_deref().unwrap_or("no reason given");
        sentences.push(format!("{} wait for a node ({message})", it.seen.waiting));
    }
    if let Some(due) = it.seen.next_failure {
        sentences.push(format!(
            "if they still wait at {} others get them",
            clock(due)
        ));
    }
    let surplus = it.next.saturating_sub(it.target.total());
    if surplus > 0 {
        sentences.push(format!(
            "{surplus} more stay until their replacements are ready"
        ));
    }
    sentences
}

/// Time of day and date as logs show it, to the second.
fn clock(time: Timestamp) -> String {
    format!("{time:.0}")
}

/// Whether nothing is left to do, nor to wait for but that room appears, which probes will show (F27).
pub(super) fn settled(members: &[Considered<'_>], status: &FederatedReplicaSetStatus) -> bool {
    status.unplaced == 0
        && members.iter().all(|it| match it.standing {
            Standing::Usable => {
                let target = it.target.total();
                let available = it.available() + it.target.probes;
                it.placed() == target && available >= target && it.refused_since().is_none()
            }
            Standing::Lost { .. } => true,
            Standing::Joining { .. } | Standing::Frozen { .. } => false,
        })
}

fn conditions(
    snapshot: &Snapshot<'_>,
    members: &[Considered<'_>],
    status: &FederatedReplicaSetStatus,
    joining: bool,
    now: Timestamp,
) -> Vec<Condition> {
    let wanted = u64::from(snapshot.frs.replicas);
    let mut set = Conditions::after(snapshot, now);
    set.put(
        "Accepted",
        true,
        "Valid",
        "the spec and its preferences are valid",
    );
    placed_condition(&mut set, members, status, joining);
    let ready = count(status.available_replicas);
    set.put(
        "Ready",
        ready >= wanted,
        if ready >= wanted {
            "AllReady"
        } else {
            "NotAllReady"
        },
        &format!("{ready} of {wanted} replicas are available"),
    );
    if settled(members, status) {
        set.put(
            "Progressing",
            false,
            "Settled",
            "every cluster holds what it should",
        );
    } else {
        let reason = if snapshot.frs.paused {
            "Paused"
        } else {
            "Moving"
        };
        set.put(
            "Progressing",
            !snapshot.frs.paused,
            reason,
            &awaited(members, status),
        );
    }
    if let Some(message) = blocked(members, status) {
        set.put("MoveBlocked", true, "NoReadyReplacement", &message);
    }
    if snapshot.frs.paused {
        set.put(
            "Paused",
            true,
            "Paused",
            "spec.paused is set: nothing is changed in the members",
        );
    }
    set.built
}

fn placed_condition(
    set: &mut Conditions<'_>,
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
    } else if status.unplaced > 0 {
        let message = format!(
            "no cluster can run {} of the replicas: preferences and capacities leave no room",
            status.unplaced
        );
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

/// What is being waited for, cluster by cluster.
fn awaited(members: &[Considered<'_>], status: &FederatedReplicaSetStatus) -> String {
    let mut parts = Vec::new();
    for it in members {
        let name = &it.member.name;
        match &it.standing {
            Standing::Joining { until } => {
                parts.push(format!("{name} to answer, until {}", clock(*until)));
            }
            Standing::Frozen { why, until } => {
                let until =
                    until.map_or(String::new(), |until| format!(", until {}", clock(until)));
                parts.push(format!("{name} to come back ({why}){until}"));
            }
            Standing::Lost { .. } => {}
            Standing::Usable => {
                let target = it.target.total();
                let missing = target.saturating_sub(it.available());
                if missing > it.target.probes {
                    parts.push(format!("{missing} replicas to get ready in {name}"));
                }
                if it.placed() > target {
                    parts.push(format!(
                        "{} replicas to be replaced in {name}",
                        it.placed() - target
                    ));
                }
            }
        }
    }
    if parts.is_empty() && status.unplaced > 0 {
        parts.push(format!(
            "room for {} replicas in any cluster",
            status.unplaced
        ));
    }
    format!("waiting for {}", parts.join(", "))
}

/// A move that can't go on: replicas stay that should go, and their replacements find no room (F20).
fn blocked(members: &[Considered<'_>], status: &FederatedReplicaSetStatus) -> Option<String> {
    let kept: Vec<_> = members
        .iter()
        .filter(|it| it.usable() && it.next > it.target.total())
        .map(|it| format!("{} in {}", it.next - it.target.total(), it.member.name))
        .collect();
    let failing = members
        .iter()
        .any(|it| it.usable() && it.seen.failed > it.target.probes);
    (!kept.is_empty() && (failing || status.unplaced > 0)).then(|| {
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
            before: &snapshot.memory.conditions,
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

/// What changed since the last status, and what is being done, for people.
pub(super) fn notices(
    snapshot: &Snapshot<'_>,
    members: &[Considered<'_>],
    status: &FederatedReplicaSetStatus,
    actions: &[Action],
) -> Vec<Notice> {
    let mut notices = Vec::new();
    for it in members {
        notices.extend(member_notice(it));
    }
    let why = |member: &str| {
        status
            .clusters
            .iter()
            .find(|it| it.name == member)
            .map_or("", |it| it.reason.as_str())
    };
    for action in actions {
        notices.push(action_notice(action, why(&action.member)));
    }
    let unplaced = (snapshot.memory.unplaced, status.unplaced);
    if unplaced.1 > 0 && unplaced.0 != unplaced.1 {
        notices.push(Notice {
            warning: true,
            reason: "Unplaced",
            message: format!("{} replicas find no room in any cluster", unplaced.1),
        });
    }
    notices
}

/// A cluster that turned out to be full, or to have room again (F34).
fn member_notice(it: &Considered<'_>) -> Option<Notice> {
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

fn action_notice(action: &Action, why: &str) -> Notice {
    let member = &action.member;
    let (warning, reason, message) = match &action.change {
        SetChange::Create { replicas } => (
            false,
            "Created",
            format!("created in {member} with {replicas} replicas: {why}"),
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
    };
    Notice {
        warning,
        reason,
        message,
    }
}

/// A refused creation in the memory (F28): since when, and when to try again.
pub(super) fn refused(cluster: &mut ClusterStatus, now: Timestamp, settings: &CheckSettings) {
    cluster.refused_since.get_or_insert(Time(now));
    cluster.failures = cluster.failures.saturating_add(1);
    let failures = u32::try_from(cluster.failures).unwrap_or(1);
    cluster.next_try = Some(Time(after(now, settings.backoff(failures))));
}
