//! All stages of a check side by side: what the report describes.

use federated_rollout::WaitReason as RolloutWait;
use fedrs_api::{FederatedReplicaSetStatus, Rejection, TemplateRejection};
use jiff::Timestamp;

use super::{
    eligibility::Eligibility,
    evaluation::{DesiredSpec, MemberEvaluation, evaluate},
    plan::{MemberTarget, Plan, plan},
    rollout,
    snapshot::Snapshot,
    step::{MemberStep, Step, Writes},
};

/// The stages of one check.
#[derive(Clone, Debug)]
pub(super) struct Decision<'a> {
    pub(super) snapshot: &'a Snapshot<'a>,
    pub(super) evaluations: Vec<MemberEvaluation<'a>>,
    /// `None` while a member joins.
    pub(super) plan: Option<Plan>,
    /// Of a FederatedDeployment, once there is a plan.
    pub(super) rollout: Option<federated_rollout::Decision>,
    pub(super) step: Step,
    pub(super) now: Timestamp,
}

/// The stages of one check, of one member.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemberDecision<'a> {
    pub(super) evaluation: &'a MemberEvaluation<'a>,
    /// What it waits for before it has the current revision.
    pub(super) rollout_wait: Option<&'a RolloutWait>,
    pub(super) planned: MemberTarget,
    pub(super) step: &'a MemberStep,
}

impl<'a> Decision<'a> {
    /// Goes through the stages.
    pub(super) fn of(snapshot: &'a Snapshot<'a>, writes: Writes, now: Timestamp) -> Self {
        let previous = &snapshot.previous.clusters;
        let evaluations = evaluate(
            snapshot.members,
            previous,
            snapshot.keeps_running_until.is_some(),
            Some(DesiredSpec {
                hash: snapshot.desired.spec,
                replicas: snapshot.frs.replicas,
            }),
            now,
            snapshot.settings,
        );
        let plan = plan(snapshot, &evaluations, now);
        let rollout = plan
            .as_ref()
            .and_then(|plan| rollout::decide(snapshot, (&evaluations, plan), writes, now));
        let decided = (plan.as_ref(), rollout.as_ref());
        let step = Step::take(snapshot, &evaluations, decided, writes, now);
        Self {
            snapshot,
            evaluations,
            plan,
            rollout,
            step,
            now,
        }
    }

    pub(super) fn members(&self) -> impl Iterator<Item = MemberDecision<'_>> {
        let targets = self.plan.as_ref().map_or(&[][..], |plan| &plan.members);
        let targets = targets.iter().copied();
        let targets = targets.chain(std::iter::repeat(MemberTarget::default()));
        let waits = self.rollout.iter().flat_map(|rollout| &rollout.waits);
        let waits = waits.map(Option::as_ref).chain(std::iter::repeat(None));
        let members = self.evaluations.iter().zip(targets).zip(&self.step.members);
        members
            .zip(waits)
            .map(|(((evaluation, planned), step), wait)| MemberDecision {
                rollout_wait: wait.filter(|wait| match wait {
                    RolloutWait::Lost => false,
                    RolloutWait::Missing => true,
                    _ => evaluation.has_pods(),
                }),
                evaluation,
                planned,
                step,
            })
    }

    /// The members whose controllers may not act, unless their watch of workloads is silent.
    pub(super) fn unconfirmed(&self) -> impl Iterator<Item = &str> {
        let unconfirmed = self
            .members()
            .filter(|member| member.is_eligible() && member.evaluation.scheduling.is_unconfirmed);
        unconfirmed.map(|member| member.name())
    }

    /// The kind of the local workloads.
    pub(super) fn local_kind(&self) -> &'static str {
        self.snapshot.frs.local.as_str()
    }

    pub(super) fn unplaced(&self) -> u64 {
        self.plan.as_ref().map_or(0, |plan| plan.unplaced)
    }

    /// Whether nothing is left to do, nor to wait for but more capacity, which capacity probes will show (F27).
    pub(super) fn is_settled(&self, status: &FederatedReplicaSetStatus) -> bool {
        status.unplaced_replicas == 0
            && !self.is_rolling_out()
            && self.members().all(|member| member.is_settled())
    }

    /// Whether a member with replicas does not have the current revision yet. One that is lost is updated when it returns.
    pub(super) fn is_rolling_out(&self) -> bool {
        self.members().any(|member| member.rollout_wait.is_some())
    }

    /// Whether replicas wait for their replacements to be ready: each that gets ready is worth a check (F20).
    pub(super) fn is_moving(&self) -> bool {
        self.members().any(|member| !member.is_at_target())
    }
}

impl<'a> MemberDecision<'a> {
    pub(super) fn name(&self) -> &'a str {
        &self.evaluation.member.name
    }

    pub(super) fn is_eligible(&self) -> bool {
        self.evaluation.eligibility.is_eligible()
    }

    /// The most replicas that were requested of the member, with this check; 0 if none ever were.
    pub(super) fn requested(&self) -> u64 {
        let before = self.evaluation.previously_requested;
        before.max(self.step.requested).unwrap_or(0)
    }

    /// Replicas of its ReplicaSet beyond the most that were ever requested of the member.
    pub(super) fn excess(&self) -> u64 {
        let is_new = self.evaluation.previously_requested.is_none();
        let most = if is_new { u64::MAX } else { self.requested() };
        self.evaluation.requested().saturating_sub(most)
    }

    /// Replicas that stay beyond the target after the step.
    pub(super) fn surplus(&self) -> u64 {
        let target = self.planned.target.total();
        self.step.next.saturating_sub(target)
    }

    /// Whether all of these stay because the state of another cluster is unknown.
    pub(super) fn waits_for_unknown(&self) -> bool {
        self.step.next <= self.planned.kept_for_unknown
    }

    /// The rejection of the local ReplicaSet that the member should get (F28).
    pub(super) fn creation_rejection(&self) -> Option<&'a Rejection> {
        self.evaluation.rejection().filter(|_| self.has_use())
    }

    /// The rejection of the template, which the local ReplicaSet should have or get (F28).
    pub(super) fn template_rejection(&self) -> Option<&'a TemplateRejection> {
        let rejection = self.evaluation.template_rejection;
        rejection.filter(|_| self.has_use())
    }

    /// Whether the member has a local ReplicaSet, or should get one: elsewhere nothing is tried again.
    fn has_use(&self) -> bool {
        self.evaluation.live_set().is_some() || self.planned.target.total() > 0
    }

    /// Whether it has returned with replicas, and nothing elsewhere is removed for them yet.
    pub(super) fn is_stabilizing(&self) -> bool {
        self.evaluation.member.stabilizes_at.is_some() && self.evaluation.requested() > 0
    }

    /// Whether as many replicas are requested of the member as it should have. What runs of a set that is being deleted goes
    /// without our doing, once it is replaced.
    pub(super) fn is_at_target(&self) -> bool {
        let mut requested = self.evaluation.requested();
        if self.evaluation.deletion().is_some() {
            requested = requested.min(self.step.next);
        }
        !self.is_eligible() || requested == self.planned.target.total()
    }

    fn is_settled(&self) -> bool {
        match self.evaluation.eligibility {
            Eligibility::Eligible { .. } => {
                let target = self.planned.target;
                self.is_at_target()
                    && self.evaluation.available() + target.probes >= target.total()
                    && self.creation_rejection().is_none()
            }
            Eligibility::Lost { .. }
            | Eligibility::Duplicate { .. }
            | Eligibility::Refused { .. } => true,
            // Where nothing is, nothing can be missing; its first answer causes a check.
            Eligibility::Unknown { .. } => self.evaluation.requested() == 0,
            Eligibility::Joining { .. } => false,
        }
    }
}
