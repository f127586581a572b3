//! Validation of a FederatedDeployment beyond the schema: turns it into a type that can't be invalid.

use std::time::Duration;

use federated_rollout::{Amount, Budget};
use kube::ResourceExt;

use crate::{
    DeploymentKind, FederatedDeployment, FieldError, LocalKind, ValidFrs,
    deployment_strategy::StrategyType,
    field::Errors,
    valid::{MIGRATION_POLICY, SetFields, check_migration_policy, non_negative},
    valid_rollout::ValidRollout,
};

/// A valid FederatedDeployment: the only form that the controller works with.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ValidFederatedDeployment {
    /// What it has in common with a FederatedReplicaSet. `paused` is `spec.stopped`: no change at all in the members. Pods count
    /// as available after the speed's `min_delay` at the earliest, so that `min_ready_seconds` is at least as long (L15).
    pub set: ValidFrs,
    /// How a new template reaches the members.
    pub rollout: RolloutSettings,
}

/// How a new template reaches the members.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RolloutSettings {
    /// What may be unavailable and what may run beyond N during a rollout, over all clusters together (L14).
    pub budget: Budget,
    /// The order, the approvals and the speed of rollouts.
    pub order: ValidRollout,
    /// Whether `spec.paused` stops rollouts; scaling, repair and moves go on (L8).
    pub paused: bool,
    /// How long a rollout may make no progress; `None` for ever. Above `min_ready_seconds` of the set.
    pub progress_deadline: Option<Duration>,
    /// How many old revisions are kept.
    pub revision_history_limit: u32,
}

impl ValidFederatedDeployment {
    /// Validates `deployment`. Returns every error, not only the first.
    pub fn check(deployment: &FederatedDeployment) -> Result<Self, Vec<FieldError>> {
        let spec = &deployment.spec;
        let mut errors = Errors::default();
        let mut set = ValidFrs::of(&deployment.into(), &mut errors);
        let budget = spec.strategy.check("spec.strategy", &mut errors);
        let budget = match set.local {
            LocalKind::LocalReplicaSet => without_surge(budget, &mut errors),
            LocalKind::ReplicaSet | LocalKind::Deployment => budget,
        };
        let rollout = spec.rollout.as_ref();
        let rollout = rollout.map(|rollout| rollout.check(ROLLOUT, &mut errors));
        let order = rollout.unwrap_or_default();
        check_speed(deployment, &mut errors);
        check_policy(deployment, &mut errors);
        set.migration_policy.clone_from(&spec.migration_policy);
        let progress_deadline = check_deadline(deployment, &mut errors);
        let limit = spec.revision_history_limit;
        let revision_history_limit = non_negative(limit, "spec.revisionHistoryLimit", &mut errors);
        if let Some(speed) = order.speed {
            let seconds = u32::try_from(speed.min_delay.as_secs()).unwrap_or(u32::MAX);
            // A Deployment counts from the time of the condition, in whole seconds: up to one too early. A LocalReplicaSet has a speed.
            let rounded = u32::from(set.local == LocalKind::Deployment);
            set.min_ready_seconds = set.min_ready_seconds.max(seconds.saturating_add(rounded));
        }
        errors.or(Self {
            set,
            rollout: RolloutSettings {
                budget,
                order,
                paused: spec.paused,
                progress_deadline,
                revision_history_limit,
            },
        })
    }
}

const ROLLOUT: &str = "spec.rollout";

impl<'a> From<&'a FederatedDeployment> for SetFields<'a> {
    fn from(deployment: &'a FederatedDeployment) -> Self {
        let spec = &deployment.spec;
        Self {
            local: spec.local_kind.unwrap_or_default().into(),
            name: deployment.name_any(),
            metadata: &deployment.metadata,
            replicas: spec.replicas,
            min_ready_seconds: spec.min_ready_seconds,
            selector: &spec.selector,
            template: &spec.template,
            placement: spec.placement.as_ref(),
            rescheduling: spec.rescheduling.as_ref(),
            drain_seconds: spec.drain_seconds,
            federation: &spec.federation,
            deletion_policy: spec.deletion_policy,
            paused: spec.stopped,
        }
    }
}

/// The budget where `maxSurge` has no effect (L5).
fn without_surge(budget: Budget, errors: &mut Errors) -> Budget {
    match budget {
        Budget::RollingUpdate {
            max_unavailable: Amount::Number(0) | Amount::Percent(0),
            ..
        } => Budget::CreateFirst,
        Budget::RollingUpdate {
            max_unavailable, ..
        } => Budget::RollingUpdate {
            max_unavailable,
            max_surge: Amount::Number(0),
        },
        Budget::CreateFirst | Budget::Recreate => {
            errors.add(
                "spec.strategy.type",
                "must not be Recreate if spec.localKind is LocalReplicaSet",
            );
            budget
        }
    }
}

/// A member with `Recreate` replaces all its pods at once, which no speed limits.
fn check_speed(deployment: &FederatedDeployment, errors: &mut Errors) {
    let spec = &deployment.spec;
    let has_speed = (spec.rollout.as_ref()).is_some_and(|rollout| rollout.speed.is_some());
    errors.require(
        !(has_speed && spec.strategy.type_ == StrategyType::Recreate),
        "spec.rollout.speed",
        "must not be set if spec.strategy.type is Recreate, which replaces all pods of a cluster at once",
    );
}

/// Only the controller of LocalReplicaSets migrates pods.
fn check_policy(deployment: &FederatedDeployment, errors: &mut Errors) {
    let spec = &deployment.spec;
    check_migration_policy(spec.migration_policy.as_deref(), errors);
    let is_local = spec.local_kind == Some(DeploymentKind::LocalReplicaSet);
    errors.require(
        spec.migration_policy.is_none() || is_local,
        MIGRATION_POLICY,
        "must not be set unless spec.localKind is LocalReplicaSet: pods of Deployments are evicted, and not migrated",
    );
}

/// No pod becomes available before `minReadySeconds` and the speed's delay: a shorter deadline would always be exceeded.
fn check_deadline(deployment: &FederatedDeployment, errors: &mut Errors) -> Option<Duration> {
    let spec = &deployment.spec;
    let speed = spec.rollout.as_ref().and_then(|rollout| rollout.speed);
    let deadline = spec.progress_deadline_seconds;
    // A LocalReplicaSet drains pods that it updates.
    let drains = spec.local_kind == Some(DeploymentKind::LocalReplicaSet);
    for (field, seconds) in [
        ("spec.minReadySeconds", Some(spec.min_ready_seconds)),
        ("spec.drainSeconds", drains.then_some(spec.drain_seconds)),
        (
            "spec.rollout.speed.minDelaySeconds",
            speed.map(|speed| speed.min_delay_seconds),
        ),
    ] {
        if let Some(seconds) = seconds.filter(|seconds| deadline <= *seconds) {
            let message = format!("must be above {field} ({seconds}), but is {deadline}");
            errors.add("spec.progressDeadlineSeconds", message);
        }
    }
    deadline_of(deadline)
}

/// `progressDeadlineSeconds` as a time; `None` for the value that apps/v1 takes for no deadline.
pub(crate) fn deadline_of(seconds: i32) -> Option<Duration> {
    let seconds = Some(seconds).filter(|seconds| *seconds != i32::MAX);
    seconds.map(|seconds| Duration::from_secs(seconds.unsigned_abs().into()))
}
