//! What the record allows: the next action of each pod whose update or eviction was recorded, and of those that are being
//! removed (L17).

use fedrs_api::LocalRecord;
use jiff::Timestamp;

use crate::{
    group::{Member, is_evicted},
    in_place::{NextStep, next_step, settle},
    plan::{Action, PodWait, RemoveReason, Wait},
    pod::{Life, Pod},
    set::Set,
    time::{Next, after},
    update::place_of,
};

/// Adds the actions that `recorded` allows, and what pods wait for. `record` is what is to be recorded next.
pub(crate) fn carry_out<'a>(
    set: &Set<'a>,
    members: &[Member<'a>],
    (recorded, record): (&LocalRecord, &mut LocalRecord),
    (actions, waits): (&mut Vec<Action<'a>>, &mut Vec<Wait<'a>>),
    next: &mut Next,
    now: Timestamp,
) {
    for member in members.iter().filter(|member| member.pod.is_owned()) {
        let pod = member.pod;
        let step = match pod.life {
            Life::Terminating { since } => Some(shut_down(set, pod, since, next, now)),
            _ if is_evicted(pod, record) => Some(evict(pod, recorded)),
            _ if record.updates.contains_key(pod.uid) => Some(update(set, pod, recorded, record)),
            _ => settle(pod),
        };
        match step {
            Some(NextStep::Act(action)) => actions.push(action),
            Some(NextStep::Wait(reason)) => waits.push(Wait::Pod {
                pod: pod.name,
                reason,
            }),
            Some(NextStep::RecordRecreation) | None => {}
        }
    }
}

/// L17.
fn shut_down<'a>(
    set: &Set<'_>,
    pod: &'a Pod<'a>,
    since: Option<Timestamp>,
    next: &mut Next,
    now: Timestamp,
) -> NextStep<'a> {
    let force_at = since.map(|since| after(since, set.removal_timeout));
    match (since, force_at) {
        (Some(since), Some(force_at)) if force_at <= now => {
            NextStep::Act(Action::ForceRemove { pod, since })
        }
        _ => {
            if let Some(at) = force_at {
                next.at(at, now);
            }
            NextStep::Wait(PodWait::Shutdown { force_at })
        }
    }
}

fn evict<'a>(pod: &'a Pod<'a>, recorded: &LocalRecord) -> NextStep<'a> {
    if !is_evicted(pod, recorded) {
        return NextStep::Wait(PodWait::Record);
    }
    let reason = RemoveReason::Evicted { by: pod.eviction };
    NextStep::Act(Action::Remove { pod, reason })
}

fn update<'a>(
    set: &Set<'a>,
    pod: &'a Pod<'a>,
    recorded: &LocalRecord,
    record: &mut LocalRecord,
) -> NextStep<'a> {
    let allowed = recorded.updates.get(pod.uid);
    let Some(allowed) = allowed.filter(|update| update.from == pod.revision) else {
        return NextStep::Wait(PodWait::Record);
    };
    let step = next_step(pod, set.change(pod.revision), allowed);
    if let (NextStep::RecordRecreation, Some(update)) = (&step, record.updates.get_mut(pod.uid)) {
        update.recreate = Some(place_of(pod));
        return NextStep::Wait(PodWait::Record);
    }
    step
}
