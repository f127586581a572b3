//! From what the members show to their targets: the second stage of a check.

use federated_rollout::Budget;
use federated_scheduler::{Preference, Reasons};
use jiff::Timestamp;
use planted_bugs::{PlantedBug, is_planted};

use super::{
    candidate::Candidate,
    capacity::CapacityEstimate,
    eligibility::Eligibility,
    evaluation::MemberEvaluation,
    moves::Bounds,
    snapshot::Snapshot,
    target::{Demand, Target, Targets, targets, unlimited_shares},
};
use crate::preferences::Preferences;

/// The targets of all members, and the bounds of the steps to them.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// One for each member, in their order.
    pub(super) members: Vec<MemberTarget>,
    /// Replicas that no cluster can take (F18).
    pub(super) unplaced: u64,
    /// The bounds of the steps.
    pub(super) bounds: Bounds,
}

/// What one member should have; nothing unless it is eligible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MemberTarget {
    pub(super) target: Target,
    /// The capacity after this check's observation.
    pub(super) capacity: CapacityEstimate,
    /// What decided the layout; nothing for a drained member.
    pub(super) reasons: Option<Reasons>,
    /// Requested replicas that it keeps, also beyond the target, while the state of another member is unknown (F39).
    pub(super) kept_for_unknown: u64,
}

impl MemberTarget {
    /// The replicas towards which the next step moves: the target, or more that the member keeps for others.
    pub(super) fn goal(&self) -> u64 {
        self.target.total().max(self.kept_for_unknown)
    }
}

/// Plans the targets of `members`; `None` while a member joins whose replicas may be in place already.
pub(super) fn plan(
    snapshot: &Snapshot<'_>,
    members: &[MemberEvaluation<'_>],
    now: Timestamp,
) -> Option<Plan> {
    let is_awaited =
        |member: &MemberEvaluation<'_>| member.awaited_until(snapshot.settings) > Some(now);
    if members.iter().any(is_awaited) {
        return None;
    }
    let key = snapshot.frs.key.to_string();
    let demand = Demand {
        key: &key,
        replicas: u64::from(snapshot.frs.replicas) + u64::from(needs_one_more(snapshot, members)),
        rebalance: snapshot.frs.placement.rebalance,
        capacity_probes: u64::from(snapshot.settings.capacity_probes),
    };
    // F39: a member whose state is not known is laid out like any other, so that the others get neither more nor less.
    let laid_out: Vec<_> = members
        .iter()
        .filter(|member| member.eligibility.is_laid_out())
        .collect();
    let (candidates, targets) = lay_out(snapshot, demand, &laid_out, now);
    let mut planned = candidates
        .iter()
        .zip(&targets.layout.shares)
        .zip(&targets.per_candidate)
        .map(|((candidate, share), target)| MemberTarget {
            target: *target,
            capacity: candidate.capacity,
            reasons: (!candidate.draining).then_some(share.reasons),
            kept_for_unknown: 0,
        });
    let of_member = |member: &MemberEvaluation<'_>| {
        let planned = member.eligibility.is_laid_out().then(|| planned.next());
        planned.flatten().unwrap_or_default()
    };
    let mut planned: Vec<_> = members.iter().map(of_member).collect();
    keep_for_unknown(snapshot, demand, members, now, &mut planned);
    Some(Plan {
        bounds: bounds(snapshot, members, &planned),
        members: planned,
        unplaced: targets.layout.unplaced,
    })
}

/// Whether one replica more than N runs, because none of N may be unavailable while pods are replaced or evicted (L5).
fn needs_one_more(snapshot: &Snapshot<'_>, members: &[MemberEvaluation<'_>]) -> bool {
    let Some(rollout) = &snapshot.rollout else {
        return false;
    };
    let is_outdated = |member: &MemberEvaluation<'_>| {
        let set = member.live_set();
        let state = set.and_then(|set| set.deployment.as_ref().zip(Some(set)));
        let has_old_pods = state.is_some_and(|(state, set)| {
            state.updated_replicas < set.status_replicas
                && set.observed_generation >= set.generation
        });
        let has_other_template =
            set.is_some() && member.revision(snapshot).as_deref() != Some(rollout.revision);
        has_old_pods || has_other_template || member.has_waiting_evictions()
    };
    let mut laid_out = members
        .iter()
        .filter(|member| member.eligibility.is_laid_out());
    rollout.settings.budget == Budget::CreateFirst
        && (!rollout.recorded.state.loans.is_empty() || laid_out.any(is_outdated))
}

/// Lets members keep the replicas that they would get if the members of unknown state had none. These may be lost; then the
/// replacements that an earlier leader requested, or that the last status does not show, would be removed and requested again.
fn keep_for_unknown(
    snapshot: &Snapshot<'_>,
    demand: Demand<'_>,
    members: &[MemberEvaluation<'_>],
    now: Timestamp,
    planned: &mut [MemberTarget],
) {
    let may_have_replicas = |member: &MemberEvaluation<'_>| {
        member.eligibility.is_unknown() && member.possibly_requested() > 0
    };
    if !members.iter().any(may_have_replicas) || is_planted(PlantedBug::UnknownMembersBySpec) {
        return;
    }
    let (known, evaluations): (Vec<usize>, Vec<_>) = (members.iter().enumerate())
        .filter(|(_, member)| member.eligibility.is_eligible())
        .unzip();
    let (_, targets) = lay_out(snapshot, demand, &evaluations, now);
    for (member, target) in known.into_iter().zip(&targets.per_candidate) {
        let requested = members[member].requested();
        planned[member].kept_for_unknown = requested.min(target.desired());
    }
}

/// Learns what the writable members show of their capacity, and lays `demand` out over `members`.
fn lay_out<'a>(
    snapshot: &Snapshot<'_>,
    demand: Demand<'_>,
    members: &[&MemberEvaluation<'a>],
    now: Timestamp,
) -> (Vec<Candidate<'a>>, Targets) {
    let settings = snapshot.settings;
    let preferences = Preferences::of(&snapshot.frs.placement);
    let rejected_by_all = template_rejected(members.iter().copied());
    let counts_by_spec = |member: &MemberEvaluation<'_>| {
        is_planted(PlantedBug::UnknownMembersBySpec) && !member.eligibility.is_writable()
    };
    let before: Vec<_> = members
        .iter()
        .map(|member| Candidate {
            name: &member.member.name,
            preference: match preferences.of_cluster(&member.member.name) {
                Some(_) if counts_by_spec(member) => Some(Preference {
                    min: member.requested(),
                    max: Some(member.requested()),
                    weight: 0,
                }),
                preference => preference,
            },
            // If only some members reject the template, the others get the replicas beyond those that run.
            closed: !member.member.schedulable
                || !member.eligibility.is_eligible()
                || member.hangs_in_deletion(now, settings)
                || (!rejected_by_all && member.keeps_template_for_long(now, settings)),
            // The pods of a ReplicaSet that hangs in its deletion will end: they are replaced as in a drain.
            draining: !counts_by_spec(member)
                && (member.member.is_evacuated() || member.hangs_in_deletion(now, settings)),
            requested: member.believed_requested(),
            unscheduled: member
                .scheduling
                .unscheduled
                .min(member.believed_requested()),
            probes: if member.writes.rejected_since().is_some() || member.deletion().is_some() {
                // They were not written, or will not run.
                0
            } else {
                member.requested_probes()
            },
            capacity: member.capacity,
            rejecting: member.rejects_for_long(now, settings)
                || (rejected_by_all && member.eligibility.is_eligible() && member.set().is_none()),
        })
        .collect();
    let shares = unlimited_shares(demand, &before);
    let learned = members.iter().zip(&before).zip(&shares);
    let candidates: Vec<_> = learned
        .map(|((member, candidate), share)| Candidate {
            capacity: if member.eligibility.is_writable() {
                let (seen, rebalance) = (&member.scheduling, demand.rebalance);
                let estimate = candidate.capacity;
                estimate.observe(seen, *share, rebalance, now, settings)
            } else {
                candidate.capacity
            },
            ..candidate.clone()
        })
        .collect();
    let has_learned = |(a, b): (&Candidate<'_>, &Candidate<'_>)| a.capacity != b.capacity;
    let shares = if before.iter().zip(&candidates).any(has_learned) {
        unlimited_shares(demand, &candidates)
    } else {
        shares
    };
    let targets = targets(demand, &candidates, &shares);
    (candidates, targets)
}

/// Whether all eligible `members` that have a local ReplicaSet reject the template. One without a set counts as rejecting it.
pub(super) fn template_rejected<'a: 'b, 'b>(
    members: impl Iterator<Item = &'b MemberEvaluation<'a>> + Clone,
) -> bool {
    let mut members = members.filter(|member| member.eligibility.is_eligible());
    let accepts = |member: &MemberEvaluation<'_>| {
        member.set().is_some() && member.template_rejection.is_none()
    };
    let rejects = |member: &MemberEvaluation<'_>| member.template_rejection.is_some();
    !members.clone().any(accepts) && members.any(rejects)
}

/// How few replicas a step may leave, and how many it may request (F20).
fn bounds(
    snapshot: &Snapshot<'_>,
    members: &[MemberEvaluation<'_>],
    planned: &[MemberTarget],
) -> Bounds {
    let replicas = u64::from(snapshot.frs.replicas);
    let targets = || planned.iter().map(|planned| planned.target);
    let desired: u64 = targets().map(Target::desired).sum();
    let probes: u64 = targets().map(|target| target.probes).sum();
    let unwritable: Vec<_> = members
        .iter()
        .filter(|member| member.eligibility.is_laid_out() && !member.eligibility.is_writable())
        .map(MemberEvaluation::possibly_requested)
        .filter(|replicas| *replicas > 0)
        .collect();
    let possibly_requested: u64 = unwritable.iter().sum();
    // Nothing is removed because a selected cluster can't take replicas now: preferences bind once replacements run.
    let floor = match snapshot.keeps_running_until {
        Some(_) => u64::MAX,
        None => desired.max(selectable(snapshot, members)).min(replicas),
    };
    let surge = snapshot.settings.max_move_surge.of(replicas);
    Bounds {
        floor,
        ceiling: (replicas + surge + probes).saturating_sub(possibly_requested),
        has_unwritable: !unwritable.is_empty(),
        on_hold: on_hold(members, planned),
    }
}

/// The replicas that are requested of the members on hold, if any of these should have more.
fn on_hold(members: &[MemberEvaluation<'_>], planned: &[MemberTarget]) -> Option<u64> {
    let on_hold = Eligibility::Eligible { on_hold: true };
    let held = || {
        let all = members.iter().zip(planned);
        let held = all.filter(|(member, _)| member.eligibility == on_hold);
        held.map(|(member, planned)| (member.requested(), planned.target.total()))
    };
    held()
        .any(|(requested, target)| requested < target)
        .then(|| held().map(|(requested, _)| requested).sum())
}

/// The most replicas that the preferences allow in all members together, whether these can take them now or not.
fn selectable(snapshot: &Snapshot<'_>, members: &[MemberEvaluation<'_>]) -> u64 {
    let preferences = Preferences::of(&snapshot.frs.placement);
    let of_member = |member: &MemberEvaluation<'_>| -> u64 {
        let Some(preference) = preferences.of_cluster(&member.member.name) else {
            return 0;
        };
        let max = preference.max.unwrap_or(u64::MAX);
        if preference.weight == 0 {
            preference.min.min(max)
        } else {
            max
        }
    };
    let members = members
        .iter()
        .filter(|member| !member.eligibility.is_duplicate());
    members.fold(0, |sum, member| sum.saturating_add(of_member(member)))
}
