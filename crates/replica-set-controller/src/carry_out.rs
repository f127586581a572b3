//! What the record allows: the next action of each pod whose update or eviction was recorded, and of those that are being
//! removed (L17).

use fedrs_api::LocalRecord;
use jiff::Timestamp;

use crate::{
    copies::Copies,
    finalizer,
    group::{Group, Member, is_evicted},
    in_place::{next_step, settle},
    leave::{self, NextStep},
    plan::{Action, PodWait, RemoveReason, Wait},
    pod::{Gate, Life, Owner, Pod},
    set::Set,
    shutdown::{self, Shutdown},
    time::{Next, after},
    update::place_of,
};

/// Adds the actions that were recorded, and what pods wait for. `record` is what is to be recorded next: what is new in it has to
/// wait.
pub(crate) fn carry_out<'a>(
    (set, copies): (&Set<'a>, &Copies),
    members: &[Member<'a>],
    record: &mut LocalRecord,
    (actions, waits): (&mut Vec<Action<'a>>, &mut Vec<Wait<'a>>),
    next: &mut Next,
    now: Timestamp,
) {
    for member in members {
        let pod = member.pod;
        let step = match (pod.life, member.group) {
            (Life::Terminating { since }, _) if pod.owner != Owner::Nobody => {
                shut_down(set, pod, since, record, next, now)
            }
            _ if !pod.is_owned() => None,
            (_, Group::MarkedRemove) if !member.is_leaving() => {
                let reason = RemoveReason::Evicted { by: pod.eviction };
                Some(leave::remove(set, pod, reason, next, now))
            }
            _ if member.is_recorded() => update(set, pod, record, next, now),
            _ if copies.holds(pod.name) && pod.gate == Gate::Unset => None,
            _ => settle(pod)
                .map(|step| {
                    let is_evicted = member.is_leaving() && is_evicted(pod, record);
                    if is_evicted || record.updates.contains_key(pod.uid) {
                        NextStep::Wait(PodWait::Record)
                    } else {
                        step
                    }
                })
                .or_else(|| finalizer::settle(set, pod).map(NextStep::Act)),
        };
        if let Some(step) = step {
            step.add_to(pod, actions, waits);
        }
    }
}

/// L17, M11. Nobody knows whether a pod that does not match any more will ever be asked for again: it is not deleted by force.
fn shut_down<'a>(
    set: &Set<'_>,
    pod: &'a Pod<'a>,
    since: Option<Timestamp>,
    record: &mut LocalRecord,
    next: &mut Next,
    now: Timestamp,
) -> Option<NextStep<'a>> {
    let (Some(since), Some(shutdown)) = (since, Shutdown::of(set, pod, now)) else {
        // Our request has just been sent.
        let wait = PodWait::Shutdown { force_at: None };
        return pod.is_owned().then_some(NextStep::Wait(wait));
    };
    Some(match shutdown {
        Shutdown::Stopping { until } => {
            if let Some(until) = until {
                next.at(until, now);
            }
            NextStep::Wait(PodWait::Stop { until })
        }
        // Only once that is recorded.
        Shutdown::Replaced if shutdown::give_name_up(pod, record) => {
            NextStep::Wait(PodWait::Record)
        }
        Shutdown::Replaced | Shutdown::HandsUp => NextStep::Wait(PodWait::HandsUp),
        Shutdown::Unconfirmed => {
            if let Some(asked) = pod.migration {
                next.at(asked.deadline, now);
            }
            NextStep::Wait(PodWait::Confirmation)
        }
        Shutdown::Forced => NextStep::Act(Action::ForceRemove { pod, since }),
        Shutdown::Over => NextStep::Act(Action::RemoveFinalizer { pod }),
        Shutdown::NotAwaited if pod.is_owned() => force(set, pod, since, next, now),
        Shutdown::NotAwaited => return None,
    })
}

/// L17.
fn force<'a>(
    set: &Set<'_>,
    pod: &'a Pod<'a>,
    since: Timestamp,
    next: &mut Next,
    now: Timestamp,
) -> NextStep<'a> {
    let at = after(since, set.removal_timeout);
    if at <= now {
        return NextStep::Act(Action::ForceRemove { pod, since });
    }
    next.at(at, now);
    let force_at = Some(at);
    NextStep::Wait(PodWait::Shutdown { force_at })
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
