//! Scheduled pods that don't become ready: the replicas that they replace stay for as long (F20).

use std::time::Duration;

use jiff::Timestamp;

use crate::check::{
    count,
    decision::{Decision, MemberDecision},
    evaluation::MemberEvaluation,
    time::after,
};

/// After so long without progress a condition says so: the default `progressDeadlineSeconds` of a Deployment.
const PROGRESS_DEADLINE: Duration = Duration::from_secs(600);

/// Since when scheduled pods of a member wait to become ready, and none has.
pub(super) fn unready_since(member: &MemberEvaluation<'_>, now: Timestamp) -> Option<Timestamp> {
    if member.unready() == 0 {
        return None;
    }
    let available = member.available();
    let without_progress = member
        .previous
        .filter(|previous| available <= count::from_status(previous.available_replicas));
    let since = without_progress.and_then(|previous| previous.internal.unready_since.as_ref());
    Some(since.map_or(now, |time| time.0))
}

/// The same, once it has lasted for longer than the deadline.
pub(super) fn unready_for_long(
    decision: &Decision<'_>,
    member: &MemberDecision<'_>,
) -> Option<Timestamp> {
    if !member.is_eligible() {
        return None;
    }
    let since = unready_since(member.evaluation, decision.now)?;
    // Pods that are ready, but not for long enough, count as progress only later.
    let min_ready = Duration::from_secs(decision.snapshot.frs.min_ready_seconds.into());
    let due = after(since, PROGRESS_DEADLINE + min_ready);
    (due <= decision.now).then_some(since)
}
