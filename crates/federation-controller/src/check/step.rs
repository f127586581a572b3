//! The next safe step to the targets: the third stage of a check. At most one write for each member.

use controller_base::clock::whole_seconds;
use federated_rollout::{Action as RolloutAction, Decision, MemberAccount};
use jiff::Timestamp;
use planted_bugs::{PlantedBug, is_planted};

use super::{
    action::{Action, Precondition, SetChange, kept_replicas},
    evaluation::MemberEvaluation,
    moves::{ReplicaState, next_step},
    plan::{MemberTarget, Plan},
    pod_drain::PodDrain,
    snapshot::{NamespaceState, Snapshot},
    write_backoff::WriteBackoff,
};
use crate::config::Config;

/// The writes that a step contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writes {
    /// Those that are due.
    Due,
    /// None: only the status is updated (F22).
    None,
}

/// The step of all members.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// One for each member, in their order.
    pub(super) members: Vec<MemberStep>,
    /// The writes of the step. Each is safe by itself, in any order.
    pub(super) actions: Vec<Action>,
}

/// The step of one member.
#[derive(Clone, Debug)]
pub(super) struct MemberStep {
    /// `spec.replicas` after the step.
    pub(super) next: u64,
    /// The most replicas that the writes so far may have requested, with the one of this step; none without a local ReplicaSet.
    pub(super) requested: Option<u64>,
    /// The replicas beyond those that no status shows; fewer once a write has removed some.
    pub(super) unpublished: u64,
    /// Whether no replica is removed before the rollout in the member has ended.
    pub(super) waits_for_rollout: bool,
    /// The replicas that stay until their clients have left.
    pub(super) drain: PodDrain,
    /// The end of the backoff, if the local ReplicaSet needs a write that waits for it.
    pub(super) held_until: Option<Timestamp>,
    /// The history of the writes, with the one of this step.
    pub(super) writes: WriteBackoff,
}

impl Step {
    /// The next step to `plan`, and of the `rollout`; nothing changes without a plan. While the set is stopped, nothing but what stops
    /// members that roll.
    pub(super) fn take(
        snapshot: &Snapshot<'_>,
        members: &[MemberEvaluation<'_>],
        (plan, rollout): (Option<&Plan>, Option<&Decision>),
        writes: Writes,
        now: Timestamp,
    ) -> Self {
        let held: Vec<_> = (0..members.len())
            .map(|index| waits_for_rollout(snapshot, rollout, index))
            .collect();
        let next = match plan {
            Some(plan) => next_replicas(members, (plan, rollout, &held), now, snapshot.settings),
            None => members.iter().map(MemberEvaluation::requested).collect(),
        };
        let is_stopped = snapshot.frs.paused;
        let mut actions = Vec::new();
        let mut steps = Vec::with_capacity(members.len());
        for (index, (member, next)) in members.iter().zip(next).enumerate() {
            let drain = PodDrain::of(snapshot, member, next, now);
            let next = next + drain.staying;
            let mut step = MemberStep {
                next,
                requested: member.previously_requested,
                unpublished: member.previously_unpublished(),
                waits_for_rollout: held[index],
                drain,
                held_until: None,
                writes: member.writes.clone(),
            };
            let rolled = rolled(member, rollout, now);
            if let Some(plan) = plan
                && member.eligibility.is_writable()
                && (!is_stopped || rolled.is_some())
            {
                let change = rolled.or_else(|| {
                    let revision =
                        rollout.and_then(|rollout| rollout.created.get(index)?.as_deref());
                    let to = (next, revision);
                    change(snapshot, member, to, now).or_else(|| drain_pods(member, drain, now))
                });
                let limit = member.limit(plan.members[index].target);
                let believed = next.min(limit);
                step.unpublished = member.unpublished(limit);
                if change.is_none() && member.deletion().is_none() {
                    let open = member.open_scale_up();
                    step.requested = member.set().map(|_| believed.max(open));
                }
                step.observe(snapshot, member, change.is_some(), now);
                if change.is_none() && plan.members[index].goal() != member.requested() {
                    // Other members may use up the surge, or have to run replacements first: the next write is yet to come.
                    step.writes = step.writes.with_failures_of(&member.writes);
                }
                let is_due = writes == Writes::Due && step.held_until.is_none();
                if let Some(change) = change.filter(|_| is_due) {
                    // Until the response arrives, this write or an earlier one may be carried out; nothing was requested of a
                    // set that is adopted, and it has what it has.
                    let adopted = member.set().map(|_| member.believed_requested());
                    step.requested = step.requested.or(adopted).max(Some(believed));
                    step.writes = step.writes.with_write(now);
                    actions.push(action(
                        snapshot,
                        member,
                        &plan.members[index],
                        change,
                        &step.writes,
                    ));
                }
            }
            steps.push(step);
        }
        Self {
            members: steps,
            actions,
        }
    }
}

impl MemberStep {
    /// Detects external changes of the local ReplicaSet, which hold back the write that it needs.
    fn observe(
        &mut self,
        snapshot: &Snapshot<'_>,
        member: &MemberEvaluation<'_>,
        needs_write: bool,
        now: Timestamp,
    ) {
        let writes = std::mem::take(&mut self.writes);
        self.writes = writes.observe(member.generation(), needs_write, now, snapshot.settings);
        let held_until = self.writes.held_until(now, snapshot.settings);
        self.held_until = held_until.filter(|_| needs_write);
    }
}

/// `spec.replicas` of each member after the next step; not less than now of those that are `held`.
fn next_replicas(
    members: &[MemberEvaluation<'_>],
    (plan, rollout, held): (&Plan, Option<&Decision>, &[bool]),
    now: Timestamp,
    settings: &Config,
) -> Vec<u64> {
    let accounts = (0..members.len()).map(|index| account(rollout, index));
    let writable =
        |((member, _), _): &((&MemberEvaluation<'_>, _), _)| member.eligibility.is_writable();
    let states: Vec<_> = members
        .iter()
        .zip(&plan.members)
        .zip(accounts)
        .filter(writable)
        .map(|((member, planned), account)| ReplicaState {
            requested: member.requested(),
            open_scale_up: member.open_scale_up(),
            ready: match account {
                // Its controller scales pods of several templates in proportion, also those that run.
                Some(account) if account.moves_wait || member.has_waiting_evictions() => {
                    member.possibly_ready().max(member.requested())
                }
                _ => member.possibly_ready(),
            },
            available: if is_planted(PlantedBug::RequestedIsAvailable) {
                member.requested()
            } else {
                let guaranteed = account.map_or(u64::MAX, |account| account.guaranteed);
                member.available().min(guaranteed)
            },
            failed: member.scheduling.failed_if_all(),
            unreliable: member.member.stabilizes_at.is_some() || member.deletion().is_some(),
            waits: member.requested() < planned.target.total()
                && member.next_write(now, settings).is_some(),
            limit: match account {
                _ if member.hangs_in_deletion(now, settings) => 0,
                // What has no node there is replaced beside it.
                Some(account) if account.moves_wait => {
                    let kept = member.requested() - member.without_node_beyond(planned.target);
                    member.limit(planned.target).min(kept)
                }
                _ => member.limit(planned.target),
            },
            unpublished: member.unpublished(member.limit(planned.target)),
            target: planned.goal(),
            pending: planned.target.pending,
        })
        .collect();
    let mut next = next_step(&states, plan.bounds).into_iter();
    let of_member = |(member, held): (&MemberEvaluation<'_>, &bool)| {
        let requested = member.requested();
        let next = member.eligibility.is_writable().then(|| next.next());
        let next = next.flatten().unwrap_or(requested);
        if *held { next.max(requested) } else { next }
    };
    members.iter().zip(held).map(of_member).collect()
}

/// Whether no replica is removed from the member with this index before the rollout there has ended. A Deployment scales pods of
/// several templates in proportion. And if it is scaled down to as many replicas as its old ReplicaSet has at that moment, its
/// controller never resumes the rollout (seen in embedded clusters, not in real ones). A rollout that has failed, or is paused,
/// holds up nothing.
fn waits_for_rollout(snapshot: &Snapshot<'_>, rollout: Option<&Decision>, member: usize) -> bool {
    let is_paused = snapshot
        .rollout
        .is_none_or(|rollout| rollout.settings.paused);
    let has_failed = rollout.is_none_or(|rollout| rollout.state.failed);
    let moves_wait = account(rollout, member).is_some_and(|account| account.moves_wait);
    moves_wait && !is_paused && !has_failed
}

fn action(
    snapshot: &Snapshot<'_>,
    member: &MemberEvaluation<'_>,
    target: &MemberTarget,
    change: SetChange,
    writes: &WriteBackoff,
) -> Action {
    let kind = snapshot.frs.key.kind;
    let is_news = is_news(snapshot, member, &change);
    let is_update = matches!(change, SetChange::Overwrite { drifted: false, .. });
    let repairs = writes.restores() && !is_update;
    let name = &member.member.name;
    let mut why = match (target.reasons, &member.member.namespace) {
        (_, NamespaceState::NotTaken) => "namespace not taken".to_owned(),
        (Some(reasons), _) => reasons.to_string(),
        (None, _) => "draining".to_owned(),
    };
    for (_, pending) in target.target.pending_reasons() {
        why = format!("{why}; {pending}");
    }
    Action {
        member: name.clone(),
        event: change.event(kind, name, &why, repairs),
        is_news,
        change,
        repairs,
    }
}

/// Whether people want to know of the change: not of a loan that grows or ends, nor of pods that drain.
fn is_news(snapshot: &Snapshot<'_>, member: &MemberEvaluation<'_>, change: &SetChange) -> bool {
    let action = match change {
        SetChange::Rollout { action, .. } => action,
        // Their removal is.
        SetChange::DrainPods { .. } => return false,
        _ => return true,
    };
    let target = snapshot.rollout.map(|rollout| rollout.revision);
    matches!(action, RolloutAction::Roll(_)) && member.revision(snapshot).as_deref() != target
}

/// What moves may rely on in the member with this index; `None` without a rollout.
fn account(rollout: Option<&Decision>, member: usize) -> Option<MemberAccount> {
    rollout?.account.members.get(member).copied()
}

/// The write of the rollout in the local Deployment of `member`, if there is one. It goes before all others.
fn rolled(
    member: &MemberEvaluation<'_>,
    rollout: Option<&Decision>,
    now: Timestamp,
) -> Option<SetChange> {
    let mut writes = rollout?.writes.iter();
    let write = writes.find(|write| write.member == member.member.name)?;
    let set = member.set()?;
    let backs_off =
        (member.template_rejection).is_some_and(|rejection| now < rejection.next_attempt_time.0);
    // Pods without our labels would seem to be gone once it rolls: they are labeled first.
    let is_held = backs_off || member.needs_labels();
    if is_held && matches!(write.action, RolloutAction::Roll(_)) {
        return None;
    }
    Some(SetChange::Rollout {
        seen: set.into(),
        action: write.action,
    })
}

/// The write that has as many pods of `member` drain as are to. Those that it was adopted with are not seen to drain before they are
/// labeled.
fn drain_pods(member: &MemberEvaluation<'_>, drain: PodDrain, now: Timestamp) -> Option<SetChange> {
    let seen = member.set()?.into();
    let pods = u32::try_from(drain.pods?).unwrap_or(u32::MAX);
    Some(if member.needs_labels() {
        SetChange::LabelPods { seen }
    } else {
        // The annotation has whole seconds.
        let since = whole_seconds(now);
        SetChange::DrainPods { seen, pods, since }
    })
}

/// The write that takes the local workload of `member` to its desired state with `next` replicas; none if it is in it. A missing
/// one is created with `revision`, if that is not the one that is rolled out.
fn change(
    snapshot: &Snapshot<'_>,
    member: &MemberEvaluation<'_>,
    (next, revision): (u64, Option<&str>),
    now: Timestamp,
) -> Option<SetChange> {
    let next = u32::try_from(next).unwrap_or(u32::MAX);
    let Some(set) = member.live_set() else {
        let backs_off = member.next_creation().is_some_and(|time| now < time);
        return (next > 0 && !backs_off).then(|| SetChange::Create {
            replicas: next,
            revision: revision.map(str::to_owned),
        });
    };
    // In a namespace that the member does not take, replicas are removed, and nothing else is written.
    let is_taken = member.member.namespace == NamespaceState::Taken;
    // A ReplicaSet that is being deleted will be gone, and then a check creates it again.
    if set.deletion.is_some() || (!is_taken && next >= set.replicas) {
        return None;
    }
    let removes_idle = next < set.replicas && member.possibly_ready() < member.requested();
    // Without a record the last writer is unknown: the set is overwritten, but that does not count as an external change.
    let record = member.record.as_ref();
    let is_desired = match snapshot.desired.settings {
        Some(settings) => member.written_settings() == Some(settings),
        None => record.is_some_and(|record| record.has_desired(snapshot.desired.spec)),
    };
    let rejection = member.template_rejection;
    let backs_off = rejection.is_some_and(|rejection| now < rejection.next_attempt_time.0);
    if backs_off && is_planted(PlantedBug::TemplateBlocksScaling) {
        return None;
    }
    // Replicas don't wait for a template that the member rejects.
    let overwrites = match snapshot.desired.settings {
        // Its template is written by the rollout.
        Some(settings) => !member.has_settings(snapshot, settings),
        None => !backs_off && !member.has_spec(snapshot.desired.spec),
    };
    if is_taken && overwrites {
        return Some(SetChange::Overwrite {
            seen: set.into(),
            // Replicas that don't run are removed by a write of its own, which fails if they run by then.
            replicas: if removes_idle {
                let claimed = (set.replicas, set.status_replicas);
                kept_replicas(next, claimed, snapshot.frs.replicas)
            } else {
                next
            },
            drifted: is_desired,
            keeps_pause: member.is_paused_by_rollout(snapshot),
        });
    }
    if next == set.replicas {
        return member
            .needs_labels()
            .then(|| SetChange::LabelPods { seen: set.into() });
    }
    let mut seen = Precondition::from(set);
    if removes_idle {
        // The status alone shows that they don't run: they may run by now.
        seen.resource_version = Some(set.resource_version.clone());
    }
    Some(SetChange::Scale {
        seen,
        from: set.replicas,
        to: next,
    })
}
