//! What a check tells people: the status with its reasons (F6, F19); conditions and notices beside it.

mod conditions;
mod events;
mod unready;

use fedrs_api::{ClusterState, ClusterStatus, FederatedReplicaSetStatus, Rejection, RejectionKind};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

pub(crate) use self::conditions::condition;
use self::conditions::conditions;
pub(super) use self::events::{action_notice, events};
use self::unready::unready_since;
use super::{
    after,
    capacity::Seen,
    considered::Considered,
    number,
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
        .map(|it| cluster_status(snapshot, it, joining, now))
        .collect();
    let sum = |of: fn(&ClusterStatus) -> i32| clusters.iter().map(of).sum::<i32>();
    let with_replicas = clusters.iter().filter(|it| it.desired_replicas > 0).count();
    let complete = clusters
        .iter()
        .filter(|it| it.desired_replicas > 0 && it.available_replicas >= it.desired_replicas)
        .count();
    let mut status = FederatedReplicaSetStatus {
        observed_generation: Some(frs.generation),
        observed_preferences_hash: frs.preferences_hash.clone(),
        replicas: sum(|it| it.replicas),
        ready_replicas: sum(|it| it.ready_replicas),
        updated_replicas: sum(|it| it.updated_replicas),
        available_replicas: sum(|it| it.available_replicas),
        selector: frs.selector_text.clone(),
        placed_replicas: number(u64::from(frs.replicas).saturating_sub(unplaced)),
        unplaced_replicas: number(unplaced),
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
        || it.live_set().is_some()
        || snapshot
            .frs
            .placement
            .for_cluster(&it.member.name)
            .is_some()
}

/// Whether what the member last showed is still counted.
fn is_counted(it: &Considered<'_>) -> bool {
    !matches!(it.standing, Standing::Lost { .. })
}

fn cluster_status(
    snapshot: &Snapshot<'_>,
    it: &Considered<'_>,
    joining: bool,
    now: Timestamp,
) -> ClusterStatus {
    let memory = it.memory.cloned().unwrap_or_default();
    let mut status = ClusterStatus {
        name: it.member.name.clone(),
        ..memory
    };
    if is_counted(it) {
        status.replicas = it
            .set()
            .map_or(0, |set| number(u64::from(set.status_replicas)));
        status.available_replicas = number(it.available());
        status.ready_replicas = number(it.ready());
        status.updated_replicas = number(it.updated(snapshot.template_hash));
        status.unscheduled_replicas = number(it.seen.waiting);
        status.internal.unready_since = unready_since(it, now).map(Time);
    } else {
        status.internal.unready_since = None;
        (
            status.replicas,
            status.ready_replicas,
            status.available_replicas,
        ) = (0, 0, 0);
        (status.updated_replicas, status.unscheduled_replicas) = (0, 0);
        (status.desired_replicas, status.internal.capacity_probes) = (0, 0);
    }
    status.internal.lost_since = match it.standing {
        Standing::Lost { since } => Some(Time(since)),
        // Nothing has been heard yet that says it is back.
        Standing::Joining { .. } | Standing::Frozen { .. } => status.internal.lost_since,
        Standing::Usable | Standing::Twin { .. } => None,
    };
    if it.usable() && !joining {
        status.desired_replicas = number(it.target.layout + it.target.pending);
        status.internal.capacity_probes = number(it.target.probes);
        status.capacity = it.room.capacity.map(number);
        status.internal.growth_step = if it.room.capacity.is_some() {
            number(it.room.step)
        } else {
            0
        };
        if it.refused_since().is_none() {
            status.internal.rejection = None;
            status.internal.failures = i32::try_from(it.room.failures).unwrap_or(i32::MAX);
            status.internal.next_attempt_time = it.room.next_try.map(Time);
        }
        if it.live_set().is_none() {
            status.internal.template = None;
        }
        it.writes.record(&mut status.internal);
    }
    status.state = Some(match it.standing {
        Standing::Joining { .. } => ClusterState::Joining,
        Standing::Usable => ClusterState::Eligible,
        Standing::Frozen { .. } => ClusterState::Unknown,
        Standing::Lost { .. } => ClusterState::Lost,
        Standing::Twin { .. } => ClusterState::Duplicate,
    });
    status.same_cluster_as = match &it.standing {
        Standing::Twin { of } => Some(of.clone()),
        _ => None,
    };
    status.message = reason(snapshot, it, &status);
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
            sentences.push(format!("left as it is because {why}; {what}"));
        }
        Standing::Lost { since } => {
            sentences.push(format!(
                "lost since {}: its replicas are placed elsewhere",
                clock(*since)
            ));
        }
        Standing::Twin { of } => sentences.push(twin_words(of)),
    }
    if it.usable() {
        sentences.extend(waiting_reasons(it, status));
    }
    if snapshot.frs.paused {
        sentences.push("paused: nothing is changed".to_owned());
    }
    sentences.join("; ")
}

/// Why a twin of the member `of` has nothing.
fn twin_words(of: &str) -> String {
    format!("the same cluster as {of}: what runs there counts for {of}")
}

/// What keeps the cluster from its number, or goes beyond it.
fn waiting_reasons(it: &Considered<'_>, status: &ClusterStatus) -> Vec<String> {
    let mut sentences = Vec::new();
    if !it.member.schedulable && !it.member.draining {
        sentences.push("cordoned: it gets no more than it has".to_owned());
    }
    if let Some(since) = it.refused_since() {
        let next = status
            .internal
            .next_attempt_time
            .as_ref()
            .map_or("at the next check".to_owned(), |time| {
                format!("at {}", clock(time.0))
            });
        sentences.push(format!(
            "refuses the set since {} ({}), tried again {next}",
            clock(since),
            status
                .internal
                .rejection
                .as_ref()
                .map_or("no message", |rejection| &rejection.message)
        ));
    }
    if it.target.pending > 0 && it.member.draining {
        sentences.push(format!(
            "{} of them stay: no other cluster may take them",
            it.target.pending
        ));
    } else if it.target.pending > 0 {
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
    sentences.extend(waiting_pods(&it.seen));
    if let Some(until) = it.held_until {
        let why = it.writes.error().map_or(
            "somebody else keeps changing the set there".to_owned(),
            |error| format!("the set there can't be written ({error})"),
        );
        sentences.push(format!("{why}: tried again at {}", clock(until)));
    }
    let surplus = it.next.saturating_sub(it.target.total());
    if surplus > 0 {
        sentences.push(format!(
            "{surplus} more stay until their replacements are ready"
        ));
    }
    sentences
}

/// Which pods wait for a node or can't be created, in the member's own words, and until when.
fn waiting_pods(seen: &Seen) -> Vec<String> {
    let mut sentences = Vec::new();
    let message = seen.message.as_deref().unwrap_or("no reason given");
    let without_node = seen.waiting.saturating_sub(seen.uncreated);
    if without_node > 0 {
        sentences.push(format!("{without_node} wait for a node ({message})"));
    }
    if seen.uncreated > 0 {
        sentences.push(format!("{} can't be created ({message})", seen.uncreated));
    }
    if let Some(due) = seen.next_failure {
        sentences.push(format!(
            "if they still wait at {} others get them",
            clock(due)
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
    status.unplaced_replicas == 0
        && members.iter().all(|it| match it.standing {
            Standing::Usable => {
                let target = it.target.total();
                let available = it.available() + it.target.probes;
                it.placed() == target && available >= target && it.refused_since().is_none()
            }
            Standing::Lost { .. } | Standing::Twin { .. } => true,
            // Where nothing is, nothing can be missing; its first answer causes a check.
            Standing::Frozen { .. } => it.placed() == 0,
            Standing::Joining { .. } => false,
        })
}

/// A refused creation in the memory (F28): since when, and when to try again.
pub(super) fn refused(
    cluster: &mut ClusterStatus,
    kind: RejectionKind,
    message: &str,
    now: Timestamp,
    settings: &CheckSettings,
) {
    let memory = &mut cluster.internal;
    let since = memory
        .rejection
        .take()
        .map_or(Time(now), |earlier| earlier.since);
    memory.rejection = Some(Rejection {
        since,
        kind,
        message: message.to_owned(),
    });
    memory.failures = memory.failures.saturating_add(1);
    let failures = u32::try_from(memory.failures).unwrap_or(1);
    memory.next_attempt_time = Some(Time(after(now, settings.backoff(failures))));
}
