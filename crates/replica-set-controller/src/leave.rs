//! Clients leave a ready pod before it is removed, or its containers restart (L12, L17): `spec.drainSeconds`.
//!
//! ```text
//! gate open -> Drain -> gate closed, not ready: out of endpoints -> drainSeconds since the gate was closed -> Remove, Patch
//! ```
//!
//! Nobody waits for a pod that is not ready, has no gate, or is on a node that does not answer. A removal that is not wanted any more
//! opens the gate again: nothing has happened to the pod.

use std::time::Duration;

use jiff::Timestamp;

use crate::{
    finalizer,
    plan::{Action, PodWait, RemoveReason, Wait},
    pod::{Gate, Pod},
    set::Set,
    time::{Next, after},
};

/// Times of objects have no fractions: the gate was closed up to a second later.
const FRACTION: Duration = Duration::from_secs(1);
/// How long a pod may be ready for after that. The node of a kubelet that reports nothing is not ready after 50 s
/// (`node-monitor-grace-period`); of one that reports its node, but not this pod, nothing more is to be expected.
const READINESS_TIMEOUT: Duration = Duration::from_secs(60);

/// The next step of a pod.
pub(crate) enum NextStep<'a> {
    Act(Action<'a>),
    Wait(PodWait),
    /// The pod has to be recreated, which was not recorded.
    RecordRecreation,
}

impl<'a> NextStep<'a> {
    /// Adds the action, or what `pod` waits for.
    pub(crate) fn add_to(
        self,
        pod: &Pod<'a>,
        actions: &mut Vec<Action<'a>>,
        waits: &mut Vec<Wait<'a>>,
    ) {
        match self {
            Self::Act(action) => actions.push(action),
            Self::Wait(reason) => waits.push(Wait::Pod {
                pod: pod.name,
                reason,
            }),
            Self::RecordRecreation => {}
        }
    }
}

/// The next step of a pod that is to be removed.
pub(crate) fn remove<'a>(
    set: &Set<'_>,
    pod: &'a Pod<'a>,
    reason: RemoveReason<'a>,
    next: &mut Next,
    now: Timestamp,
) -> NextStep<'a> {
    // The name of these is used again, or somebody wants to know that they have left their nodes.
    let is_awaited = matches!(
        reason,
        RemoveReason::Evicted { .. } | RemoveReason::Recreated { .. }
    );
    let first = finalizer::before_removal(set, pod).filter(|_| is_awaited);
    if let Some(guard) = first {
        return NextStep::Act(guard);
    }
    let removal = || NextStep::Act(Action::Remove { pod, reason });
    before(set, pod, next, now).unwrap_or_else(removal)
}

/// What comes before a pod is removed, or its containers restart; `None` if nothing does.
pub(crate) fn before<'a>(
    set: &Set<'_>,
    pod: &'a Pod<'a>,
    next: &mut Next,
    now: Timestamp,
) -> Option<NextStep<'a>> {
    if pod.is_on_lost_node() {
        return None;
    }
    let is_ready = pod.ready_since().is_some();
    match pod.gate {
        Gate::Open if is_ready && !set.drain.is_zero() => {
            Some(NextStep::Act(Action::Drain { pod }))
        }
        // By the clock of an earlier leader, or of somebody else. By this one, it begins now.
        Gate::Draining { since } if since > now => Some(NextStep::Act(Action::Drain { pod })),
        Gate::Draining { since } => {
            let end = after(since, set.drain + FRACTION);
            let (until, reason) = if now < end || !is_ready {
                (end, PodWait::Drain { until: end })
            } else {
                (after(end, READINESS_TIMEOUT), PodWait::OutOfEndpoints)
            };
            next.at(until, now);
            (now < until).then_some(NextStep::Wait(reason))
        }
        _ => None,
    }
}
