//! The conditions of a set: Accepted, Available, Progressing and Ready always, the others while they are true.

use controller_base::short_list::short_list;
use fedrs_api::{
    AllowedChanges, LocalConditionType as Type, LocalReason as Reason, NewCondition, pluralize,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use replica_set_controller::{BudgetUser, Group, PodWait, Purpose, ResizeWait, Wait};

use super::input::Report;
use crate::notify::NotNotified;

type LocalCondition = NewCondition<Type, Reason>;

/// How far a set is.
#[derive(Clone, Copy)]
struct State {
    /// Pods that are missing or too many.
    wrong_number: usize,
    /// Pods of other revisions.
    outdated: usize,
    /// Replicas that are not available.
    unavailable: usize,
    /// Whether an update has made no progress for too long.
    has_failed: bool,
}

/// The conditions of the status.
pub(super) fn conditions(report: &Report<'_>) -> Vec<Condition> {
    let state = State::of(report);
    let accepted = NewCondition::new(Type::Accepted, true, Reason::Valid, "the spec is valid");
    let always = [
        accepted,
        available(report),
        progressing(report, state),
        ready(report, state),
    ];
    let others = [
        reconciling(report, state),
        stalled(report, state),
        replica_failure(report),
        budget_used(report),
        eviction_blocked(report),
        not_stopped(report),
        selector_overlap(report),
        disruption_budget(report),
        migration_policy(report),
        notifications(report),
        without_effect(report),
        paused(report),
    ];
    let new = always.into_iter().chain(others.into_iter().flatten());
    let generation = Some(report.entry.generation);
    new.map(|new| new.into_condition(&report.previous.conditions, generation, report.now))
        .collect()
}

impl State {
    fn of(report: &Report<'_>) -> Self {
        let (counts, set) = (&report.plan.counts, report.set);
        let outdated = counts.live - counts.updated;
        let unavailable = set.replicas.saturating_sub(counts.available);
        let is_late = report.deadline().is_some_and(|at| at <= report.now);
        let is_rolling = set.allowed == AllowedChanges::All;
        Self {
            wrong_number: set.replicas.abs_diff(counts.live),
            outdated,
            unavailable,
            has_failed: is_late && is_rolling && (outdated > 0 || unavailable > 0),
        }
    }

    fn is_settled(self) -> bool {
        self.wrong_number == 0 && self.unavailable == 0
    }
}

fn pods(count: usize) -> String {
    pluralize(count as u64, "pod")
}

fn available(report: &Report<'_>) -> LocalCondition {
    let (set, counts) = (report.set, &report.plan.counts);
    let least = set.replicas.saturating_sub(report.plan.account.limit);
    let (has_enough, reason) = if counts.available >= least {
        (true, Reason::MinimumReplicasAvailable)
    } else {
        (false, Reason::MinimumReplicasUnavailable)
    };
    let message = format!(
        "{} of {} are available, at least {least} are needed",
        counts.available, set.replicas
    );
    NewCondition::new(Type::Available, has_enough, reason, message)
}

fn progressing(report: &Report<'_>, state: State) -> LocalCondition {
    let new = |holds: bool, reason, message: String| {
        NewCondition::new(Type::Progressing, holds, reason, message)
    };
    if state.has_failed {
        return new(false, Reason::ProgressDeadlineExceeded, no_progress(report));
    }
    if state.outdated == 0 {
        if !state.is_settled() {
            return new(true, Reason::RollingOut, not_available(report, state));
        }
        let message = "all pods have the current template".to_owned();
        return new(true, Reason::RolloutComplete, message);
    }
    let outdated = format!("{} of an earlier template", pods(state.outdated));
    match report.set.allowed {
        AllowedChanges::All => new(true, Reason::RollingOut, rolling_out(report)),
        AllowedChanges::NoUpdatesByMode => new(
            false,
            Reason::UpdatesDisabled,
            format!("{outdated} stay: spec.updateMode is Never"),
        ),
        AllowedChanges::NoUpdatesWhilePaused | AllowedChanges::None => new(
            false,
            Reason::RolloutPaused,
            format!("{outdated} wait for the update, which is paused"),
        ),
    }
}

fn no_progress(report: &Report<'_>) -> String {
    let seconds = report.set.progress_deadline.unwrap_or_default().as_secs();
    let why = failed_users(report).into_iter().chain(resizes(report));
    let why = why.fold(String::new(), |why, next| format!("{why}: {next}"));
    format!("no pod became updated and available for {seconds} s{why}")
}

fn not_available(report: &Report<'_>, state: State) -> String {
    let what = match state.wrong_number {
        0 => format!("{} not available yet", are(state.unavailable)),
        number => format!("{} to be created or removed", are(number)),
    };
    let parts: Vec<_> = std::iter::once(what).chain(draining(report)).collect();
    parts.join("; ")
}

fn are(count: usize) -> String {
    let verb = if count == 1 { "is" } else { "are" };
    format!("{} {verb}", pods(count))
}

/// How far the update is, and what the rest waits for.
fn rolling_out(report: &Report<'_>) -> String {
    let counts = &report.plan.counts;
    let done = format!(
        "{} of {} have the current template",
        counts.updated, counts.live
    );
    let waits = report.plan.waits.iter().filter_map(|wait| match wait {
        Wait::Budget {
            purpose: Purpose::Update,
            pods,
            by,
        } => Some(format!("{pods} wait for the budget, used by {}", users(by))),
        Wait::Speed {
            pods,
            until: Some(until),
        } => Some(format!(
            "{pods} wait for spec.deploymentStrategy.deploySpeed until {until:.0}"
        )),
        Wait::Evictions {
            pods, evictions, ..
        } => Some(format!(
            "{pods} wait for {}",
            pluralize(*evictions as u64, "eviction")
        )),
        Wait::DisruptionBudget { pods } => Some(format!(
            "{pods} wait until the PodDisruptionBudget lends less to evictions"
        )),
        Wait::Drains { pods, until } => Some(format!(
            "{pods} wait for the drain of cordoned nodes until {until:.0} at most"
        )),
        Wait::Scaling { pods } => Some(format!("{pods} wait until the number of pods is right")),
        _ => None,
    });
    let parts: Vec<_> = std::iter::once(done)
        .chain(waits)
        .chain(resizes(report))
        .chain(draining(report))
        .collect();
    parts.join("; ")
}

/// The pods that clients have to leave before they are removed or their containers restart (L17).
fn draining(report: &Report<'_>) -> Option<String> {
    let waits = report.plan.waits.iter().filter_map(|of| match of {
        Wait::Pod {
            pod,
            reason: PodWait::Drain { until },
        } => Some((*pod, *until)),
        _ => None,
    });
    let last = waits.clone().map(|(_, until)| until).max()?;
    let pods = short_list(waits.map(|(pod, _)| pod.to_owned()), ", ")?;
    Some(format!("clients leave {pods} until {last:.0}"))
}

/// The pods whose nodes do not give them their CPU and memory so far (L12).
fn resizes(report: &Report<'_>) -> impl Iterator<Item = String> {
    let waits = [ResizeWait::Room, ResizeWait::Retry].map(|wait| resizing(report, wait));
    waits.into_iter().flatten()
}

fn resizing(report: &Report<'_>, wait: ResizeWait) -> Option<String> {
    let waits = report.plan.waits.iter().filter_map(|of| match of {
        Wait::Pod { pod, reason } if *reason == PodWait::Resize(wait) => Some((*pod).to_owned()),
        _ => None,
    });
    let pods = short_list(waits, ", ")?;
    Some(match wait {
        ResizeWait::Room => format!("their nodes have no room to resize {pods} (Deferred)"),
        ResizeWait::Retry => format!("their kubelets failed to resize {pods}, and try again"),
        ResizeWait::Kubelet => return None,
    })
}

fn users(by: &[BudgetUser<'_>]) -> String {
    let each = by.iter().map(|user| match user.failure {
        Some(failure) => format!("{} ({failure})", user.pod),
        None => user.pod.to_owned(),
    });
    short_list(each, ", ").unwrap_or_else(|| "missing pods".to_owned())
}

/// The pods that have failed and use the budget.
fn failed_users(report: &Report<'_>) -> Option<String> {
    let waits = report.plan.waits.iter();
    let by = waits.filter_map(|wait| match wait {
        Wait::Budget { by, .. } => Some(by),
        _ => None,
    });
    let failed: Vec<_> = by
        .flatten()
        .filter(|user| user.group == Group::Failed)
        .copied()
        .collect();
    (!failed.is_empty()).then(|| users(&failed))
}

fn ready(report: &Report<'_>, state: State) -> LocalCondition {
    let new = |holds: bool, reason, message| NewCondition::new(Type::Ready, holds, reason, message);
    if state.has_failed {
        return new(false, Reason::ProgressDeadlineExceeded, no_progress(report));
    }
    if !state.is_settled() {
        return new(
            false,
            Reason::ReplicasUnavailable,
            not_available(report, state),
        );
    }
    let by_mode = report.set.allowed == AllowedChanges::NoUpdatesByMode;
    match (state.outdated, report.set.allowed) {
        (1.., AllowedChanges::All) => new(false, Reason::RollingOut, rolling_out(report)),
        (1.., _) if !by_mode => {
            let message = format!(
                "{} of an earlier template, and the update is paused",
                pods(state.outdated)
            );
            new(false, Reason::RolloutPaused, message)
        }
        _ => new(
            true,
            Reason::AllReplicasAvailable,
            "every replica is available".to_owned(),
        ),
    }
}

fn reconciling(report: &Report<'_>, state: State) -> Option<LocalCondition> {
    let allowed = report.set.allowed;
    if state.has_failed || allowed == AllowedChanges::None {
        return None;
    }
    let new = |reason, message| Some(NewCondition::new(Type::Reconciling, true, reason, message));
    let evictions = report.plan.record.evictions.len();
    if state.wrong_number > 0 {
        new(Reason::Scaling, not_available(report, state))
    } else if evictions > 0 {
        let message = format!("{} under way", pluralize(evictions as u64, "eviction"));
        let parts: Vec<_> = std::iter::once(message).chain(draining(report)).collect();
        new(Reason::Evicting, parts.join("; "))
    } else if state.outdated > 0 && allowed == AllowedChanges::All {
        new(Reason::RollingOut, rolling_out(report))
    } else if state.unavailable > 0 {
        new(Reason::ReplicasUnavailable, not_available(report, state))
    } else {
        None
    }
}

fn stalled(report: &Report<'_>, state: State) -> Option<LocalCondition> {
    let message = state.has_failed.then(|| no_progress(report))?;
    let reason = Reason::ProgressDeadlineExceeded;
    Some(NewCondition::new(Type::Stalled, true, reason, message))
}

fn replica_failure(report: &Report<'_>) -> Option<LocalCondition> {
    let failing = report.memory.failing.values();
    let removal = failing
        .filter(|failing| failing.is_removal)
        .map(|failing| &failing.message);
    let (reason, message) = match &report.memory.create_failure {
        Some(message) => (Reason::FailedCreate, message),
        None => (Reason::FailedDelete, removal.min()?),
    };
    Some(NewCondition::new(
        Type::ReplicaFailure,
        true,
        reason,
        message,
    ))
}

/// L14: a set whose budget is used by failures says so, by pod.
fn budget_used(report: &Report<'_>) -> Option<LocalCondition> {
    let message = format!("the budget is used by {}", failed_users(report)?);
    let reason = Reason::PodsFailed;
    Some(NewCondition::new(
        Type::BudgetUsedByFailures,
        true,
        reason,
        message,
    ))
}

/// L19.
fn eviction_blocked(report: &Report<'_>) -> Option<LocalCondition> {
    let waits = &report.plan.waits;
    let blocked = waits.iter().filter_map(|wait| match wait {
        Wait::EvictionBlocked { pod, since } => Some(format!("{pod} since {since:.0}")),
        _ => None,
    });
    let blocked = short_list(blocked, ", ")?;
    let waits_for_budget = waits.iter().any(|wait| {
        let purpose = Purpose::Eviction;
        matches!(wait, Wait::Budget { purpose: waiting, .. } if *waiting == purpose)
    });
    let (reason, why) = if waits_for_budget {
        (Reason::WaitingForBudget, "the budget is in use")
    } else {
        (
            Reason::ReplacementUnavailable,
            "the replacement does not become available",
        )
    };
    let message = format!("evictions are not finished in time: {blocked}: {why}");
    Some(NewCondition::new(
        Type::EvictionBlocked,
        true,
        reason,
        message,
    ))
}

/// M11.
fn not_stopped(report: &Report<'_>) -> Option<LocalCondition> {
    let waits = report.plan.waits.iter().filter_map(|wait| match wait {
        Wait::Pod { pod, reason } if *reason == PodWait::HandsUp => Some((*pod).to_owned()),
        _ => None,
    });
    let pods = short_list(waits, ", ")?;
    let (type_, reason) = (Type::PodsNotStopped, Reason::ConfirmationNeeded);
    let message = format!("a person has to confirm that these pods have stopped: {pods}");
    Some(NewCondition::new(type_, true, reason, message))
}

/// C5.
fn selector_overlap(report: &Report<'_>) -> Option<LocalCondition> {
    let names = report.overlapping.iter().map(|key| key.name.to_string());
    let names = short_list(names, ", ")?;
    let message = format!("the selectors match each other's pods: {names}");
    let reason = Reason::OverlappingSelector;
    Some(NewCondition::new(
        Type::SelectorOverlap,
        true,
        reason,
        message,
    ))
}

/// L20: at most one matches a pod.
fn disruption_budget(report: &Report<'_>) -> Option<LocalCondition> {
    let (reason, message) = match (report.other_budget, &report.memory.budget.failure) {
        (Some(other), _) => (
            Reason::OtherDisruptionBudget,
            format!(
                "the PodDisruptionBudget {other} matches the pods: the set has none of its own"
            ),
        ),
        (None, Some(failure)) => (Reason::FailedDisruptionBudget, failure.clone()),
        (None, None) => return None,
    };
    let type_ = Type::DisruptionBudgetOutdated;
    Some(NewCondition::new(type_, true, reason, message))
}

/// M1: a policy that is not known lets no running pod move.
fn migration_policy(report: &Report<'_>) -> Option<LocalCondition> {
    let (type_, reason) = (Type::MigrationPolicyUnknown, Reason::NoValidMigrationPolicy);
    let message = format!("{}: running pods stay", report.unknown_policy?);
    Some(NewCondition::new(type_, true, reason, message))
}

/// M8: migrations that may need a person go on without anybody who knows of them.
fn notifications(report: &Report<'_>) -> Option<LocalCondition> {
    let (reason, message) = match report.not_notified.as_ref()? {
        NotNotified::NoWebhook => (
            Reason::NoWebhook,
            "with shutdown.onTimeout HandsUp a person may have to confirm that a pod has stopped, and neither notify of the policy nor \
             migration.notify of the controller's configuration names a webhook"
                .to_owned(),
        ),
        NotNotified::NotAllowed { host, has_default } => {
            let instead = if *has_default {
                "its own webhook is notified instead"
            } else {
                "nobody is notified"
            };
            let not_allowed = "migration.notify.allowedHosts of the controller's configuration does not allow";
            let message =
                format!("notify.webhook of the policy: {not_allowed} {host}: {instead}");
            (Reason::WebhookNotAllowed, message)
        }
    };
    let type_ = Type::NotificationsMissing;
    Some(NewCondition::new(type_, true, reason, message))
}

/// L5.
fn without_effect(report: &Report<'_>) -> Option<LocalCondition> {
    let fields = &report.valid.set.strategy.without_effect;
    if fields.is_empty() {
        return None;
    }
    let message = format!("without effect: {}", fields.join(", "));
    let reason = Reason::NotSupported;
    Some(NewCondition::new(
        Type::FieldsWithoutEffect,
        true,
        reason,
        message,
    ))
}

/// L8.
fn paused(report: &Report<'_>) -> Option<LocalCondition> {
    let (reason, message) = match report.set.allowed {
        AllowedChanges::None => (Reason::Stopped, "spec.stopped stops every change of pods"),
        AllowedChanges::NoUpdatesWhilePaused => (Reason::Paused, "spec.paused stops updates"),
        AllowedChanges::All | AllowedChanges::NoUpdatesByMode => return None,
    };
    Some(NewCondition::new(Type::Paused, true, reason, message))
}
