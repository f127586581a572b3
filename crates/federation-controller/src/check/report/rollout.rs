//! What is reported of the rollout of a FederatedDeployment: revisions, budget, conditions, and what each member waits for.

use controller_base::{event::Event, short_list::short_list};
use federated_rollout::{Decision as RolloutDecision, WaitReason as RolloutWait};
use fedrs_api::{
    ClusterWait, ConditionReason, ConditionStatus, ConditionType, EventReason,
    FederatedReplicaSetStatus, NewCondition, RolloutStatus, WaitReason, conditions::find,
    pluralize,
};
use jiff::Timestamp;

use super::placement;
use crate::check::{
    count::{from_status, to_status},
    decision::{Decision, MemberDecision},
    snapshot::RolloutSnapshot,
};

/// A condition of a FederatedDeployment.
type RolloutCondition = NewCondition<ConditionType, ConditionReason>;

/// A rollout, with what was decided.
#[derive(Clone, Copy)]
pub(super) struct RolloutReport<'a> {
    decision: &'a Decision<'a>,
    snapshot: RolloutSnapshot<'a>,
    decided: &'a RolloutDecision,
}

impl<'a> RolloutReport<'a> {
    /// The report of a decision about a rollout.
    pub(super) fn of(decision: &'a Decision<'a>) -> Option<Self> {
        Some(Self {
            decision,
            snapshot: decision.snapshot.rollout?,
            decided: decision.rollout.as_ref()?,
        })
    }

    /// Adds revisions and budget to the status. The current revision is the one that all clusters had last.
    pub(super) fn add_to(&self, status: &mut FederatedReplicaSetStatus) {
        let target = self.snapshot.revision;
        let previous = &self.decision.snapshot.previous.current_revision;
        let is_complete = previous.is_none() || !self.decision.is_rolling_out();
        status.current_revision = previous.clone().filter(|_| !is_complete);
        (status.current_revision).get_or_insert_with(|| target.to_owned());
        status.update_revision = Some(target.to_owned());
        let (limits, in_use) = (self.decided.account.limits, self.decided.account.in_use);
        status.rollout = Some(Box::new(RolloutStatus {
            step: self.step_name(self.decided.step).map(str::to_owned),
            failed_revision: self.failed_revision(status),
            failing_pod: self.failing_pod().map(str::to_owned),
            max_unavailable: to_status(limits.unavailable),
            unavailable: to_status(in_use.unavailable),
            max_surge: to_status(limits.surge),
            surge: to_status(in_use.surge),
            record: self.decided.state.clone(),
        }));
    }

    /// The revision of the spec that is undone: there must be another one.
    fn failed_revision(&self, status: &FederatedReplicaSetStatus) -> Option<String> {
        let spec_revision = self.snapshot.spec_revision;
        let before = self.snapshot.recorded.failed_revision.as_deref();
        let is_undone = before == Some(spec_revision)
            || self.decided.undo && status.current_revision.as_deref() != Some(spec_revision);
        is_undone.then(|| spec_revision.to_owned())
    }

    /// Why a pod of the revision that has failed is not available, as it was found once.
    fn failing_pod(&self) -> Option<&'a str> {
        let previous = self.decision.snapshot.previous.rollout.as_deref();
        let known = previous.and_then(|rollout| rollout.failing_pod.as_deref());
        let has_failed = self.decided.state.failed || self.is_undone();
        self.snapshot.failing_pod.or(known).filter(|_| has_failed)
    }

    /// Whether the revision of the spec has failed, and another one is rolled out in its place.
    fn is_undone(&self) -> bool {
        self.snapshot.revision != self.snapshot.spec_revision
    }

    /// Why the rollout does not reach the revision of the spec, if a person has to change something.
    pub(super) fn failure(&self) -> Option<(ConditionReason, String)> {
        let reason = self.reason();
        let has_failed = [
            ConditionReason::ProgressDeadlineExceeded,
            ConditionReason::RolledBack,
        ];
        has_failed
            .contains(&reason)
            .then(|| (reason, self.message()))
    }

    /// Whether all members have the revision of the spec.
    pub(super) fn is_complete(&self) -> bool {
        self.reason() == ConditionReason::RolloutComplete
    }

    /// The conditions that a Deployment has as well.
    pub(super) fn conditions(&self, status: &FederatedReplicaSetStatus) -> [RolloutCondition; 2] {
        [self.available(status), self.progressing()]
    }

    fn available(&self, status: &FederatedReplicaSetStatus) -> RolloutCondition {
        use ConditionReason as Reason;
        let desired = u64::from(self.decision.snapshot.frs.replicas);
        // What an AvailabilitySet allows changes with what happens elsewhere.
        let unavailable = self.decided.account.limits.unavailable;
        let least = desired.saturating_sub(unavailable.max(self.of_strategy()));
        let available = from_status(status.available_replicas);
        let holds = available >= least;
        let reason = if holds {
            Reason::MinimumReplicasAvailable
        } else {
            Reason::MinimumReplicasUnavailable
        };
        let message = format!("{available} replicas are available, of at least {least}");
        NewCondition::new(ConditionType::Available, holds, reason, message)
    }

    fn progressing(&self) -> RolloutCondition {
        let reason = self.reason();
        let status = match reason {
            ConditionReason::ProgressDeadlineExceeded | ConditionReason::RolledBack => {
                ConditionStatus::False
            }
            ConditionReason::RolloutPaused => ConditionStatus::Unknown,
            _ => ConditionStatus::True,
        };
        NewCondition::new(ConditionType::Progressing, status, reason, self.message())
    }

    /// Why the rollout is where it is.
    pub(super) fn reason(&self) -> ConditionReason {
        let waits = || self.decided.waits.iter().flatten();
        let is_soaking = |wait: &RolloutWait| matches!(wait, RolloutWait::Soak { .. });
        let needs_approval = |wait: &RolloutWait| matches!(wait, RolloutWait::Approval { .. });
        if self.is_undone() {
            ConditionReason::RolledBack
        } else if !self.decision.is_rolling_out() {
            ConditionReason::RolloutComplete
        } else if self.decided.state.failed {
            ConditionReason::ProgressDeadlineExceeded
        } else if self.snapshot.settings.paused || self.is_stopped() {
            ConditionReason::RolloutPaused
        } else if waits().any(needs_approval) {
            ConditionReason::WaitingForApproval
        } else if waits().any(is_soaking) {
            ConditionReason::Soaking
        } else {
            ConditionReason::RollingOut
        }
    }

    fn is_stopped(&self) -> bool {
        self.decision.snapshot.frs.paused
    }

    /// How far the rollout is, for people.
    pub(super) fn message(&self) -> String {
        let revision = self.snapshot.revision;
        let waits = (self.decision.members()).filter(|member| {
            // The pause is named once.
            !self.is_stopped() && member.rollout_wait != Some(&RolloutWait::Paused)
        });
        let waiting = waits.filter_map(|member| {
            let wait = self.wait(&member)?;
            Some(format!("{}: waiting {wait}", member.name()))
        });
        let waiting = short_list(waiting, "; ");
        let what = match self.reason() {
            ConditionReason::RolloutComplete => match self.lost_clusters() {
                Some(lost) => {
                    format!("all clusters have revision {revision}, apart from lost ones: {lost}")
                }
                None => format!("all clusters have revision {revision}"),
            },
            ConditionReason::ProgressDeadlineExceeded => {
                let seconds = self.snapshot.settings.progress_deadline;
                let seconds = seconds.map(|limit| limit.as_secs()).unwrap_or_default();
                let why = self.failing_pod_text();
                let undo = self.nothing_to_undo();
                format!("no pod of revision {revision} became available for {seconds} s{why}{undo}")
            }
            ConditionReason::RolledBack => {
                let failed = self.snapshot.spec_revision;
                let why = self.failing_pod_text();
                format!("revision {failed} has failed{why}, and is rolled back to {revision}")
            }
            ConditionReason::RolloutPaused => {
                let field = if self.is_stopped() {
                    "stopped"
                } else {
                    "paused"
                };
                format!("spec.{field} is true: revision {revision} is not rolled out further")
            }
            _ => format!("rolling out revision {revision}"),
        };
        let parts = [Some(what), waiting, self.unknown_clusters()];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        parts.join("; ")
    }

    /// That a rollback was wanted, and that no earlier revision is known.
    fn nothing_to_undo(&self) -> &'static str {
        let is_wanted = self.decided.undo;
        let current = &self.decision.snapshot.previous.current_revision;
        let is_known = (current.as_deref()).is_some_and(|name| name != self.snapshot.spec_revision);
        if is_wanted && !is_known {
            "; there is no earlier revision to roll back to"
        } else {
            ""
        }
    }

    fn failing_pod_text(&self) -> String {
        let pod = self.failing_pod().map(|pod| format!(" ({pod})"));
        pod.unwrap_or_default()
    }

    /// The lost clusters with pods of another revision: they are updated when they return, and nothing waits for them.
    fn lost_clusters(&self) -> Option<String> {
        let members = self.decision.evaluations.iter().zip(&self.decided.waits);
        let lost = members.filter(|(member, wait)| {
            wait.as_ref() == Some(&RolloutWait::Lost) && member.has_pods()
        });
        short_list(lost.map(|(member, _)| member.member.name.clone()), ", ")
    }

    /// Clusters of steps that are no members, or not yet.
    pub(super) fn unknown_clusters(&self) -> Option<String> {
        let named = self.snapshot.settings.order.named_clusters();
        let unknown = placement::unknown(self.decision, named)?;
        Some(format!("spec.rollout.steps: {unknown}"))
    }

    /// What changed of the rollout since the status before.
    pub(super) fn events(&self, status: &FederatedReplicaSetStatus) -> Vec<Event> {
        let previous = self.decision.snapshot.previous;
        let condition = |status: &FederatedReplicaSetStatus| {
            let progressing = find(&status.conditions, ConditionType::Progressing);
            progressing.map(|condition| condition.reason.clone())
        };
        let reason = self.reason();
        let is_new = condition(previous).is_some_and(|before| before != reason.as_str());
        let revision = self.snapshot.revision;
        let begins = previous.update_revision != status.update_revision;
        let ends = previous.current_revision != status.current_revision;
        let news = match reason {
            _ if previous.update_revision.is_none() => None,
            ConditionReason::RolledBack | ConditionReason::ProgressDeadlineExceeded => {
                is_new.then(|| Event::warning(EventReason::RolloutFailed, self.message()))
            }
            ConditionReason::WaitingForApproval | ConditionReason::RolloutPaused => {
                is_new.then(|| Event::normal(EventReason::Rollout, self.message()))
            }
            ConditionReason::RolloutComplete => {
                ends.then(|| Event::normal(EventReason::Rollout, self.message()))
            }
            _ => begins.then(|| {
                let from = previous.update_revision.as_deref().unwrap_or_default();
                let text = format!("rolling out revision {revision} after {from}");
                Event::normal(EventReason::Rollout, text)
            }),
        };
        news.into_iter().collect()
    }

    /// What `member` waits for before it has the current revision.
    pub(super) fn wait(&self, member: &MemberDecision<'_>) -> Option<ClusterWait> {
        let reason = member.rollout_wait?;
        let (what, until) = self.described(reason);
        Some(ClusterWait::new(WaitReason::Rollout, what, until))
    }

    fn described(&self, reason: &RolloutWait) -> (String, Option<Timestamp>) {
        let step = |step: usize| match self.step_name(step) {
            Some(name) => format!("step {name}"),
            None => "the last step".to_owned(),
        };
        let what = match reason {
            RolloutWait::Lost => "the lost cluster to return".to_owned(),
            RolloutWait::Unknown => "the cluster's state to be known".to_owned(),
            RolloutWait::Cordoned => "the cluster to be uncordoned".to_owned(),
            RolloutWait::Paused => "spec.paused to be false".to_owned(),
            RolloutWait::Failed => "another template, or for pods of this one to become available: the rollout has failed".to_owned(),
            RolloutWait::Nodes => {
                "pods without a node to get one, or to move to other clusters".to_owned()
            }
            RolloutWait::Step { step: number } => format!("{} to be complete", step(*number)),
            RolloutWait::Soak {
                step: number,
                until,
            } => {
                return (format!("{} to soak", step(*number)), Some(*until));
            }
            RolloutWait::Approval { step: number } => format!("{} to be approved", step(*number)),
            RolloutWait::Concurrency { limit } => {
                let clusters = pluralize(*limit as u64, "cluster");
                format!("other clusters: {clusters} of the step at a time")
            }
            RolloutWait::Budget { in_use, of, by } => {
                let elsewhere: u64 = by.iter().map(|(_, pods)| pods).sum();
                let unplaced = Some(in_use.saturating_sub(elsewhere)).filter(|left| *left > 0);
                let unplaced = unplaced.map(|left| format!("{left} without a cluster"));
                let by = by.iter().map(|(name, pods)| format!("{name} {pods}"));
                let by = short_list(unplaced.into_iter().chain(by), ", ");
                let by = by.map(|by| format!(" ({by})"));
                let by = by.unwrap_or_default();
                let limit = self.limited_by();
                format!("the budget: {in_use} of {of} unavailable pods are in use{by}{limit}")
            }
            RolloutWait::Speed { until } => {
                return ("the speed to allow more pods".to_owned(), *until);
            }
            RolloutWait::Observed => "its controller to observe the Deployment".to_owned(),
            RolloutWait::Missing => "its Deployment to be created".to_owned(),
            RolloutWait::Write => "its template to be written".to_owned(),
            RolloutWait::Recall => "its part of the budget to be taken back".to_owned(),
            RolloutWait::Pods {
                available,
                replicas,
            } => format!("updated pods: {available} of {replicas} are available"),
        };
        (what, None)
    }

    /// The pods that may be unavailable by the strategy, whatever else limits the rollout.
    fn of_strategy(&self) -> u64 {
        let desired = self.decision.snapshot.frs.replicas.into();
        let limits = self.snapshot.settings.budget.resolve(desired, 0);
        limits.unavailable
    }

    /// Who allows less than the strategy, for people.
    fn limited_by(&self) -> String {
        let own = self.of_strategy();
        let limit = self.snapshot.limit;
        let limit = limit.filter(|(_, limit)| limit.unavailable < own);
        let text = limit.map(|(set, limit)| {
            let lent = limit.unavailable;
            format!("; AvailabilitySet {set} allows {lent} of the {own} of spec.strategy")
        });
        text.unwrap_or_default()
    }

    /// The name of a step; `None` for the implied last one.
    fn step_name(&self, step: usize) -> Option<&str> {
        self.snapshot.settings.order.step_name(step)
    }
}
