//! What the record allows: the next action of each pod whose update or eviction was recorded, and of those that are being
//! removed (L17).

use fedrs_api::LocalRecord;
use jiff::Timestamp;

use crate::{
    group::{Group, Member, is_evicted},
    in_place::{next_step, settle},
    leave::{self, NextStep},
    plan::{Action, PodWait, RemoveReason, Wait},
    pod::{Life, Pod},
    set::Set,
    time::{Next, after},
    update::place_of,
};

/// Adds the actions that were recorded, and what pods wait for. `record` is what is to be recorded next: what is new in it has to
/// wait.
pub(crate) fn carry_out<'a>(
    set: &Set<'a>,
    members: &[Member<'a>],
    record: &mut LocalRecord,
    (actions, waits): (&mut Vec<Action<'a>>, &mut Vec<Wait<'a>>),
    next: &mut Next,
    now: Timestamp,
) {
    for member in members.iter().filter(|member| member.pod.is_owned()) {
        let pod = member.pod;
        let step = match (pod.life, member.group) {
            (Life::Terminating { since }, _) => Some(shut_down(set, pod, since, next, now)),
            (_, Group::MarkedRemove) if !member.is_leaving() => {
                let reason = RemoveReason::Evicted { by: pod.eviction };
                Some(leave::remove(set, pod, reason, next, now))
            }
            _ if member.is_recorded() => update(set, pod, record, next, now),
            _ => settle(pod).map(|step| {
                let is_evicted = member.is_leaving() && is_evicted(pod, record);
                if is_evicted || record.updates.contains_key(pod.uid) {
                    NextStep::Wait(PodWait::Record)
                } else {
                    step
                }
            }),
        };
        if let Some(step) = step {
            step.add_to(pod, actions, waits);
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

/// The next step of an update that was recorded. A place that is needed by now is recorded before its pod is removed.
fn update<'a>(
    set: &Set<'a>,
    pod: &'a Pod<'a>,
    record: &mut LocalRecord,
    next: &mut Next,
    now: Timestamp,
) -> Option<NextStep<'a>> {
    let recorded = record.updates.get_mut(pod.uid)?;
    let step = next_step(set, pod, recorded, next, now);
    if let NextStep::RecordRecreation = step {
        recorded.recreate = Some(place_of(pod));
        return Some(NextStep::Wait(PodWait::Record));
    }
    Some(step)
}
