//! Valid MigrationPolicies.

use std::{collections::BTreeMap, time::Duration};

use federated_rollout::{Amount, after};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::{
    FieldError, MigratedRecord,
    deployment_strategy::part_of_pods,
    dns::is_label_key,
    field::Errors,
    migration_policy::{
        COPY_NEEDS_METHOD, MANUAL_NEEDS_PROOF, MOVES_NOTHING, MaintenanceTolerance,
        MigrationMethod, MigrationPolicySpec, ShardBudget, Shutdown, ShutdownTimeout,
        ToleratedWork,
    },
    notify::ValidNotify,
    selector,
    valid::{non_negative, positive},
};

/// A valid MigrationPolicy.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidMigrationPolicy {
    /// Which sets it selects; `None` for those that name it.
    pub selector: Option<LabelSelector>,
    /// How a pod leaves its node (M1).
    pub method: ValidMethod,
    /// The pods that may be unavailable (M10); `None` for those of the set's own budget.
    pub max_unavailable: Option<PodLimit>,
    /// The label and the budget of shards (M6).
    pub per_shard: Option<ValidShardBudget>,
    /// The shortest time between two migrations (M14), for all causes but compaction.
    pub min_between: Duration,
    /// The same for compaction.
    pub min_between_compactions: Duration,
    /// By when a pod is moved (M15).
    pub deadline: Option<Duration>,
    /// The work that pods bear where they are (M9).
    pub tolerance: Option<ValidTolerance>,
    /// How pods are shut down (M11); `None` if nobody waits for a proof that they are.
    pub shutdown: Option<ValidShutdown>,
    /// Who is notified of each migration (M8).
    pub notify: Option<ValidNotify>,
}

/// How a pod leaves its node (M1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidMethod {
    /// It is made again under its name.
    Move,
    /// Another pod is made first.
    Copy(ValidCopy),
    /// As `Move`, by a person.
    Manual,
}

/// How pods are copied (M2, M4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidCopy {
    /// Pods that are copied at the same time, at least 1.
    pub max_at_once: usize,
    /// Whether a person confirms that clients may reach a new pod.
    pub confirm_before_activation: bool,
    /// Whether a person confirms that an old pod may be shut down.
    pub confirm_before_shutdown: bool,
}

/// The work that pods bear where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidTolerance {
    /// The longest.
    pub max_downtime: Duration,
    /// The pods that may be unavailable; `None` for those of the set's own budget.
    pub max_unavailable: Option<PodLimit>,
}

/// How pods are shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidShutdown {
    /// How long it may take.
    pub timeout: Duration,
    /// What happens after that.
    pub on_timeout: ShutdownTimeout,
}

/// How many pods may be unavailable (M10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodLimit {
    amount: Amount,
    at_least_percent: u64,
}

/// A valid budget of shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidShardBudget {
    /// The key of the label.
    pub label: String,
    /// Pods, at least 1.
    pub max_unavailable: usize,
}

impl PodLimit {
    /// The pods of `replicas` that may be unavailable. Percentages are rounded up, or 5 % of 39 pods would break A1.
    #[must_use]
    pub fn of(self, replicas: usize) -> usize {
        let replicas = u64::try_from(replicas).unwrap_or(u64::MAX);
        let percent = |percent| Amount::Percent(percent).rounded_up(replicas);
        let pods = match self.amount {
            Amount::Number(number) => number.max(percent(self.at_least_percent)),
            Amount::Percent(of) => percent(of),
        };
        usize::try_from(pods.min(replicas)).unwrap_or(usize::MAX)
    }
}

impl ValidMigrationPolicy {
    /// Validates all fields.
    ///
    /// # Errors
    /// Every error at its field.
    pub fn check(spec: &MigrationPolicySpec) -> Result<Self, Vec<FieldError>> {
        let mut errors = Errors::default();
        let selector = spec.selector.as_ref();
        let selects_some = selector.filter(|of| **of != LabelSelector::default());
        if let Some(of) = selects_some
            && let Err(invalid) = selector::check(of, "spec.selector")
        {
            errors.extend(invalid);
        }
        let max_unavailable = check_limit(spec, &mut errors);
        let per_shard = (spec.per_shard.as_ref()).map(|shards| check_shards(shards, &mut errors));
        let between = spec.min_seconds_between;
        let mut seconds = |number, field| {
            let seconds = non_negative(number, field, &mut errors);
            Duration::from_secs(seconds.into())
        };
        let min_between = seconds(between.hardware, "spec.minSecondsBetween.hardware");
        let min_between_compactions =
            seconds(between.compaction, "spec.minSecondsBetween.compaction");
        let deadline = spec.deadline_seconds.map(|number| {
            let seconds = positive(number, "spec.deadlineSeconds", &mut errors);
            Duration::from_secs(seconds.into())
        });
        let method = check_method(spec, &mut errors);
        let by_method = (method == ValidMethod::Manual).then_some(Shutdown {
            on_timeout: ShutdownTimeout::HandsUp,
            ..Shutdown::default()
        });
        let shutdown = spec.shutdown.filter(|shutdown| shutdown.before_eviction);
        let shutdown = shutdown.or(by_method).map(|shutdown| {
            let seconds = shutdown.timeout_seconds;
            let seconds = positive(seconds, "spec.shutdown.timeoutSeconds", &mut errors);
            ValidShutdown {
                timeout: Duration::from_secs(seconds.into()),
                on_timeout: shutdown.on_timeout,
            }
        });
        let tolerance = spec.maintenance.as_ref();
        let tolerance = tolerance.map(|tolerance| check_tolerance(tolerance, &mut errors));
        let notify = spec.notify.as_ref();
        let notify = notify.and_then(|notify| ValidNotify::check(notify, &mut errors));
        errors.or(Self {
            selector: selector.map(selector::normalized),
            method,
            max_unavailable,
            per_shard,
            min_between,
            min_between_compactions,
            deadline,
            tolerance: tolerance.flatten(),
            shutdown,
            notify,
        })
    }

    /// When the next migration of a running pod may begin after the last ones (M14); `None` if there was none. A time in the future is of
    /// another clock, and counts as now.
    #[must_use]
    pub fn earliest(
        &self,
        last: MigratedRecord,
        is_compaction: bool,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let end = |last: Option<Timestamp>, between: Duration| {
            last.map(|last| after(last.min(now), between))
        };
        let any = end(last.any, self.min_between);
        let compaction = end(last.compaction, self.min_between_compactions);
        any.into_iter()
            .chain(compaction.filter(|_| is_compaction))
            .max()
    }

    /// Whether it selects a set with these labels.
    #[must_use]
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let of = self.selector.as_ref();
        of.is_some_and(|of| selector::matches(of, labels))
    }
}

fn check_method(spec: &MigrationPolicySpec, errors: &mut Errors) -> ValidMethod {
    let is_copy = spec.method == MigrationMethod::Copy;
    errors.require(
        spec.copy.is_none() || is_copy,
        "spec.copy",
        COPY_NEEDS_METHOD,
    );
    match spec.method {
        MigrationMethod::Move => ValidMethod::Move,
        MigrationMethod::Copy => {
            let copy = spec.copy.unwrap_or_default();
            let pods = positive(copy.max_at_once, "spec.copy.maxAtOnce", errors);
            ValidMethod::Copy(ValidCopy {
                max_at_once: usize::try_from(pods).unwrap_or(usize::MAX),
                confirm_before_activation: copy.confirm_before_activation,
                confirm_before_shutdown: copy.confirm_before_shutdown,
            })
        }
        MigrationMethod::Manual => {
            let has_proof = spec.shutdown.is_none_or(|shutdown| {
                shutdown.before_eviction && shutdown.on_timeout == ShutdownTimeout::HandsUp
            });
            errors.require(has_proof, "spec.shutdown", MANUAL_NEEDS_PROOF);
            ValidMethod::Manual
        }
    }
}

fn check_limit(spec: &MigrationPolicySpec, errors: &mut Errors) -> Option<PodLimit> {
    const FIELD: &str = "spec.atLeastPercent";
    let percent = non_negative(spec.at_least_percent, FIELD, errors);
    errors.require(percent <= 100, FIELD, "must not be above 100");
    let value = spec.max_unavailable.as_ref()?;
    let amount = part_of_pods(value, "spec.maxUnavailable", errors);
    let can_move = match amount {
        Amount::Number(number) => number > 0 || percent > 0,
        Amount::Percent(of) => of > 0,
    };
    errors.require(can_move, "spec.maxUnavailable", MOVES_NOTHING);
    Some(PodLimit {
        amount,
        at_least_percent: percent.into(),
    })
}

fn check_tolerance(
    tolerance: &MaintenanceTolerance,
    errors: &mut Errors,
) -> Option<ValidTolerance> {
    let field = "spec.maintenance.maxDowntimeSeconds";
    let seconds = positive(tolerance.max_downtime_seconds, field, errors);
    let max_unavailable = tolerance.max_unavailable.as_ref().map(|value| PodLimit {
        amount: part_of_pods(value, "spec.maintenance.maxUnavailable", errors),
        at_least_percent: 0,
    });
    (tolerance.tolerate == ToleratedWork::All).then(|| ValidTolerance {
        max_downtime: Duration::from_secs(seconds.into()),
        max_unavailable,
    })
}

fn check_shards(shards: &ShardBudget, errors: &mut Errors) -> ValidShardBudget {
    let is_key = is_label_key(&shards.label);
    errors.require(is_key, "spec.perShard.label", "is not a valid label key");
    let pods = positive(
        shards.max_unavailable,
        "spec.perShard.maxUnavailable",
        errors,
    );
    ValidShardBudget {
        label: shards.label.clone(),
        max_unavailable: usize::try_from(pods).unwrap_or(usize::MAX),
    }
}
