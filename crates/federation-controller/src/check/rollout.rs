//! The rollout of a FederatedDeployment: what the members show, in the terms of `federated-rollout`, and what that decides.

use federated_rollout::{
    Account, Action, Decision, Deployment, LocalSet, Member, MemberState, Rollout, State, Strategy,
    step,
};
use fedrs_api::revision_name;
use jiff::Timestamp;

use super::{
    eligibility::Eligibility,
    evaluation::MemberEvaluation,
    plan::Plan,
    snapshot::{RolloutSnapshot, Snapshot},
    step::Writes,
    target::Target,
    time::after,
};

/// Decides the next step of the rollout; nothing of a FederatedReplicaSet. If there are no `writes`, nothing new is lent: what the
/// members need is known all the same.
pub(super) fn decide(
    snapshot: &Snapshot<'_>,
    (members, plan): (&[MemberEvaluation<'_>], &Plan),
    writes: Writes,
    now: Timestamp,
) -> Option<Decision> {
    let rollout = snapshot.rollout.as_ref()?;
    let settings = rollout.settings;
    let is_stopped = snapshot.frs.paused;
    let names: Vec<_> = members.iter().map(|member| &*member.member.name).collect();
    let step_members = settings.order.step_members(&names);
    let revisions = members.iter().map(|member| member.revision(snapshot));
    let revisions: Vec<_> = revisions.map(Option::unwrap_or_default).collect();
    let members: Vec<_> = (members.iter().zip(&plan.members).zip(&revisions))
        .map(|((member, planned), revision)| {
            let moves = snapshot.settings.unscheduled_timeout.is_some();
            let member = member.in_rollout(rollout, planned.target, revision, now);
            Member {
                waits_for_nodes: member.waits_for_nodes && moves,
                ..member
            }
        })
        .collect();
    let input = Rollout {
        target: rollout.revision,
        previous: rollout.previous_revision(),
        replicas: snapshot.frs.replicas.into(),
        budget: settings.budget,
        limit: rollout.limit.map(|(_, limit)| limit),
        speed: settings.order.speed,
        steps: &settings.order.steps(&step_members),
        approvals: &settings.order.approvals(),
        paused: settings.paused || is_stopped,
        progress_deadline: settings.progress_deadline,
        on_failure: settings.order.on_failure,
        members: &members,
    };
    let recorded = &rollout.recorded.state;
    let mut decision = step(&input, recorded, now);
    if is_stopped || writes == Writes::None {
        decision.account = Account::of(&input, recorded);
        decision.next = None;
        let next = std::mem::replace(&mut decision.state, recorded.clone());
        if is_stopped {
            only_pause(&mut decision, &next, &members);
        }
    }
    Some(decision)
}

/// Leaves of a `decision` what stops the members that roll: their own controllers would go on. That it pauses them is recorded
/// first, as `next` has it.
fn only_pause(decision: &mut Decision, next: &State, members: &[Member<'_>]) {
    let is_local = |name: &str| {
        let member = members.iter().find(|member| member.name == name);
        let deployment = member.and_then(|member| member.deployment.as_ref());
        deployment.is_some_and(|found| found.local.is_some())
    };
    decision.writes.retain(|write| match write.action {
        Action::Pause => true,
        // A LocalReplicaSet without a loan is paused.
        Action::Shrink(_) => is_local(&write.member),
        _ => false,
    });
    for (name, loan) in &mut decision.state.loans {
        loan.paused |= next.loans.get(name).is_some_and(|next| next.paused);
    }
    // The progress deadline begins anew once the set is no longer stopped.
    decision.state.progressed = None;
}

impl MemberEvaluation<'_> {
    /// The name of the revision of the local Deployment's template; `None` if the controller did not write the template.
    pub(super) fn revision(&self, snapshot: &Snapshot<'_>) -> Option<String> {
        let record = self.record.as_ref()?;
        let set = self.live_set().filter(|set| record.has_live(set.spec_hash));
        let hash = u32::try_from(record.desired())
            .ok()
            .filter(|_| set.is_some())?;
        Some(revision_name(&snapshot.frs.key.name, hash))
    }

    fn in_rollout<'a>(
        &'a self,
        rollout: &RolloutSnapshot<'_>,
        target: Target,
        revision: &'a str,
        now: Timestamp,
    ) -> Member<'a> {
        let deployment = self.deployment(rollout, target, revision, now);
        Member {
            name: &self.member.name,
            state: self.rollout_state(deployment.is_some()),
            cordoned: !self.member.schedulable || self.member.is_evacuated(),
            waits_for_nodes: self.waits_for_nodes(target),
            requested: self.previously_requested.unwrap_or(0),
            creates: deployment.is_none() && target.total() > 0,
            deployment,
        }
    }

    /// Whether pods have no node, and will get one or go elsewhere: while a Deployment has pods of two templates, no replica can be
    /// removed without others that run.
    fn waits_for_nodes(&self, target: Target) -> bool {
        let is_rolling = self.live_set().is_none_or(|set| {
            let updated = set.deployment.as_ref().map(|state| state.updated_replicas);
            updated != Some(set.status_replicas)
        });
        !is_rolling && self.scheduling.unscheduled > target.pending + target.probes
    }

    fn rollout_state(&self, has_deployment: bool) -> MemberState {
        match self.eligibility {
            Eligibility::Lost { .. } => MemberState::Lost,
            // Nothing of the set is in it, as far as is known.
            Eligibility::Refused { .. } | Eligibility::Duplicate { .. } => MemberState::Writable,
            Eligibility::Unknown { .. } | Eligibility::Joining { .. }
                if !has_deployment && self.previously_requested.is_none() =>
            {
                MemberState::Writable
            }
            // What may run does not count as available, and must not be lent as if it were gone.
            _ if self.may_run_unseen() => MemberState::Unknown,
            _ if self.eligibility.is_writable() && self.deletion().is_none() => {
                MemberState::Writable
            }
            Eligibility::Unknown { .. }
            | Eligibility::Joining { .. }
            | Eligibility::Eligible { .. } => MemberState::Unknown,
        }
    }

    /// Whether pods may run that do not count as available: nodes that are not ready, or have not reported since the member returned,
    /// have not said so.
    fn may_run_unseen(&self) -> bool {
        let view = &self.member.view;
        self.live_set().is_some() && (view.nodes_report || view.pods.doubtful > 0)
    }

    fn deployment<'a>(
        &self,
        rollout: &RolloutSnapshot<'_>,
        target: Target,
        revision: &'a str,
        now: Timestamp,
    ) -> Option<Deployment<'a>> {
        let set = self.live_set()?;
        let deployment = set.deployment.as_ref()?;
        let strategy = deployment.strategy;
        let (pods, updated) = (
            u64::from(set.status_replicas),
            u64::from(deployment.updated_replicas),
        );
        let available = self.available();
        Some(Deployment {
            replicas: set.replicas.into(),
            lowest_replicas: set.replicas.min(set.lowest_replicas).into(),
            highest_replicas: self.open_scale_up().max(set.replicas.into()),
            pending: target.probes + target.pending + self.without_node_beyond(target),
            revision,
            strategy: Strategy::new(strategy.max_unavailable.into(), strategy.max_surge.into()),
            generation: set.generation,
            observed_generation: set.observed_generation,
            pods,
            updated,
            available,
            // Which of the available pods are updated is not known: at least those that no old pod can be.
            updated_available: available.saturating_sub(pods.saturating_sub(updated)),
            // The watch does not show pods that lack our labels, nor the status what has just become of them.
            uncertain: set
                .ready_replicas
                .saturating_sub(self.member.view.pods.ready)
                .into(),
            started_lately: started_lately(rollout, now),
            paused: deployment.paused && deployment.local.is_none(),
            local: deployment.local.map(|local| LocalSet {
                paused: deployment.paused,
                waiting_evictions: local.waiting_evictions.into(),
                evictable: local.evictable.into(),
            }),
        })
    }
}

/// Whether a pod may have started within the speed's time. A Deployment starts the next pod when one becomes available, which is
/// progress.
fn started_lately(rollout: &RolloutSnapshot<'_>, now: Timestamp) -> bool {
    let progressed = rollout.recorded.state.progressed;
    let speed = rollout.settings.order.speed;
    speed.is_some_and(|speed| progressed.is_none_or(|at| now < after(at, speed.min_delay)))
}
