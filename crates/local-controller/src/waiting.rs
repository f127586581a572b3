//! What holds up a migration: a word for programs, and a text for people.

use fedrs_api::{AwaitedAction, MigrationPhase, MigrationWaitReason, pluralize};
use replica_set_controller::{MigrationState, MigrationWait, Pod};

use crate::migration_object::RequestObject;

/// The word for what holds up a migration that has not begun; empty if nothing does.
pub(crate) fn reason(state: &MigrationState<'_>) -> String {
    if state.is_stopped {
        return MigrationWaitReason::Stopped.to_string();
    }
    if state.awaits.is_some() {
        return MigrationWaitReason::Person.to_string();
    }
    let reason = state.wait.and_then(|wait| match wait {
        MigrationWait::Budget => Some(MigrationWaitReason::Budget),
        MigrationWait::MaxUnavailable { .. } => Some(MigrationWaitReason::MaxUnavailable),
        MigrationWait::Shard { .. } => Some(MigrationWaitReason::Shard),
        MigrationWait::Rollout => Some(MigrationWaitReason::Rollout),
        MigrationWait::TooSoon { .. } => Some(MigrationWaitReason::TooSoon),
        MigrationWait::TooYoung { .. } => Some(MigrationWaitReason::TooYoung),
        MigrationWait::Tolerated { .. } => Some(MigrationWaitReason::Tolerated),
        MigrationWait::UnknownPolicy => Some(MigrationWaitReason::UnknownPolicy),
        MigrationWait::Copies { .. } => Some(MigrationWaitReason::Copies),
        MigrationWait::ShutdownByPerson => Some(MigrationWaitReason::Person),
        // It has ended.
        MigrationWait::CompactionRefused => None,
    });
    reason.map_or_else(String::new, |reason| reason.to_string())
}

/// What a migration waits for, or why it ended, for people. `unknown_policy` says why the policy of the set is not known.
pub(crate) fn message(
    request: &RequestObject,
    state: &MigrationState<'_>,
    unknown_policy: Option<&str>,
) -> String {
    let why = why(request, state, unknown_policy);
    match state.phase {
        phase if phase.is_end() => why,
        // A copy is made although a person has cancelled this request: something else asks for it.
        MigrationPhase::WaitingForConfirmation => cancelled_in_vain(request, why),
        _ => with_cancel(request, why),
    }
}

/// What holds up a migration, with what a person should know who has cancelled it.
pub(crate) fn with_cancel(request: &RequestObject, why: String) -> String {
    if request.is_cancelled() {
        why
    } else {
        cancelled_in_vain(request, why)
    }
}

fn cancelled_in_vain(request: &RequestObject, why: String) -> String {
    if !request.0.spec.cancel || why.is_empty() {
        return why;
    }
    format!(
        "{why}; spec.cancel has no effect while fedrs.dev/evict, or the state of the node, asks for it"
    )
}

fn why(
    request: &RequestObject,
    state: &MigrationState<'_>,
    unknown_policy: Option<&str>,
) -> String {
    if state.is_stopped {
        return "spec.stopped of the set stops every change of its pods".to_owned();
    }
    if let Some(awaited) = state.awaits {
        return awaits(awaited, request, state.successor);
    }
    match state.phase {
        MigrationPhase::WaitingForBudget => state
            .wait
            .map_or_else(String::new, |wait| waits_for(wait, unknown_policy)),
        MigrationPhase::ShuttingDown if state.is_removed => {
            "its kubelet has to report that its containers have stopped (shutdown of the policy)"
                .to_owned()
        }
        MigrationPhase::ShuttingDown => "clients leave the pod (spec.drainSeconds)".to_owned(),
        MigrationPhase::Placing => {
            "the pod in its place waits for a node: the scheduler keeps trying".to_owned()
        }
        MigrationPhase::Cancelled if request.is_cancelled() => "spec.cancel is set".to_owned(),
        MigrationPhase::Cancelled if state.wait == Some(MigrationWait::CompactionRefused) => {
            "method of the policy: Manual refuses compaction".to_owned()
        }
        MigrationPhase::Cancelled => {
            "nobody asks for it any more, or the pod was removed before it began".to_owned()
        }
        _ => String::new(),
    }
}

/// What holds up a pod, for people.
pub(crate) fn waits_for(wait: MigrationWait<'_>, unknown_policy: Option<&str>) -> String {
    let unavailable = |count: usize| {
        let verb = if count == 1 { "is" } else { "are" };
        format!("{} {verb} unavailable", pluralize(count as u64, "pod"))
    };
    match wait {
        MigrationWait::Budget => {
            "the budget of the set is in use: spec.deploymentStrategy.maxUnavailable, or less by an AvailabilitySet"
        }
        MigrationWait::MaxUnavailable { limit } => {
            return format!("maxUnavailable of the policy: {}", unavailable(limit));
        }
        MigrationWait::Shard { shard, limit } => {
            let unavailable = unavailable(limit);
            return format!("perShard of the policy: of shard {shard}, {unavailable}");
        }
        MigrationWait::Rollout => "the set is being updated",
        MigrationWait::TooSoon { .. } => {
            "minSecondsBetween of the policy: the last migration is too recent"
        }
        MigrationWait::TooYoung { .. } => {
            "the pod is new on its node, which asks its pods to leave: cordon it"
        }
        MigrationWait::Tolerated { .. } => {
            "maintenance of the policy: the pod bears the work on its node where it is"
        }
        MigrationWait::UnknownPolicy => unknown_policy.unwrap_or_default(),
        MigrationWait::Copies { limit } => {
            let pods = pluralize(limit as u64, "pod");
            let verb = if limit == 1 { "is" } else { "are" };
            return format!("copy.maxAtOnce of the policy: {pods} {verb} being copied, or may still run");
        }
        // Their phases say so.
        MigrationWait::ShutdownByPerson | MigrationWait::CompactionRefused => "",
    }
    .to_owned()
}

/// What a person has to do.
fn awaits(awaited: AwaitedAction, request: &RequestObject, successor: Option<&Pod<'_>>) -> String {
    let (_, name) = request.id();
    let pod = request.pod_name();
    match awaited {
        AwaitedAction::ShutDown => {
            format!(
                "method of the policy: shut the pod down (kubectl delete pod {pod}), then fedrs migrate confirm {name}"
            )
        }
        AwaitedAction::ConfirmStopped => {
            format!(
                "method of the policy: its containers have stopped; fedrs migrate confirm {name}"
            )
        }
        AwaitedAction::ConfirmDestroyed => format!(
            "its kubelet has not reported in time that its containers have stopped: see after the machine; if it is destroyed, \
             fedrs migrate confirm {name} --machine-is-destroyed"
        ),
        AwaitedAction::ConfirmActivation => {
            format!(
                "copy.confirmBeforeActivation of the policy: clients do not reach the new pod before fedrs migrate confirm {name}"
            )
        }
        AwaitedAction::ConfirmShutdown => {
            format!(
                "copy.confirmBeforeShutdown of the policy: the old pod stays until fedrs migrate confirm {name}"
            )
        }
        AwaitedAction::Start => {
            let pod = successor.map_or(pod, |successor| successor.name);
            format!("the new pod is not started until fedrs migrate start {pod}")
        }
    }
}
