//! The writes of a rollout in a local Deployment or LocalReplicaSet: each is one conditional patch, which leaves the replicas.
//!
//! ```text
//! Roll    PATCH template, strategy and settings, conditional on the generation that the loan names
//! Shrink  PATCH strategy, and pause a LocalReplicaSet whose strategy becomes 0
//! Lend    PATCH strategy of a LocalReplicaSet
//! Pause   PATCH paused; Resume is its end
//! Fence   GET, PATCH progressDeadlineSeconds
//! ```
//!
//! All are conditional on uid, generation, federation and owner. So a write that is late finds another generation: what was
//! lent for one state of a Deployment is never used in another.

use controller_base::calls::CallError;
use federated_rollout::{Action, Strategy};
use fedrs_api::{LocalKind, local_defaults};

use super::{
    LocalWorkload,
    json_patch::{JsonPatch, Operand},
};
use crate::{
    check::{Outcome, Precondition},
    manifest::{
        DeploymentSettings, LocalStrategy, NO_PROGRESS_DEADLINE, RollingUpdate, Source,
        drain_seconds,
    },
};

impl LocalWorkload<'_> {
    /// Carries out `action` in the Deployment that was seen.
    pub(super) async fn roll_out(
        self,
        source: &Source<'_>,
        seen: &Precondition,
        action: Action,
    ) -> Result<Outcome, CallError> {
        match action {
            Action::Roll(strategy) => self.roll(source, seen, strategy).await,
            Action::Shrink(strategy) => {
                let mut patch = self.patch_of(seen);
                if self.key.kind == LocalKind::LocalReplicaSet {
                    add_local_loan(&mut patch, source, strategy);
                } else {
                    patch.add("/spec/strategy", Operand::Strategy(strategy.into()));
                }
                self.patch("shrink", &patch).await
            }
            Action::Lend(strategy) => {
                let mut patch = self.patch_of(seen);
                add_local_strategy(&mut patch, source, strategy);
                self.patch("lend", &patch).await
            }
            Action::Pause | Action::Resume => {
                let mut patch = self.patch_of(seen);
                let is_paused = Operand::Bool(action == Action::Pause);
                patch.add("/spec/paused", is_paused);
                self.patch("pause", &patch).await
            }
            Action::Fence => self.fence(source, seen).await,
        }
    }

    /// Writes the template with our labels, and the strategy that is lent for it. A pause of another writer ends, and pods count
    /// as available after the set's own `minReadySeconds` from the first one on (L15).
    async fn roll(
        self,
        source: &Source<'_>,
        seen: &Precondition,
        strategy: Strategy,
    ) -> Result<Outcome, CallError> {
        let template = source.template();
        let mut patch = self.patch_of(seen);
        add_settings(&mut patch, source);
        if self.key.kind == LocalKind::LocalReplicaSet {
            add_local_loan(&mut patch, source, strategy);
        } else {
            patch.add("/spec/paused", Operand::Bool(false));
            // A member without replicas gets the template with the smallest strategy.
            let recreates = source.deployment.recreates && strategy != Strategy::WITHOUT_LOAN;
            let strategy = if recreates {
                RollingUpdate::RECREATE
            } else {
                strategy.into()
            };
            patch.add("/spec/strategy", Operand::Strategy(strategy));
        }
        patch.replace("/spec/template", Operand::Template(&template));
        self.patch("roll", &patch).await
    }

    /// Raises the generation, so that no earlier write can be carried out any more. Of all fields, `progressDeadlineSeconds` has
    /// the least effect: it changes no pod and no ReplicaSet, only when the member says that there is no progress.
    async fn fence(self, source: &Source<'_>, seen: &Precondition) -> Result<Outcome, CallError> {
        let live = self.get().await?;
        if !live.is_seen(seen) {
            return Ok(self.changed_meanwhile());
        }
        let deadline = other_deadline(source.deployment, live.spec.progress_deadline_seconds);
        let mut patch = self.patch_of(seen);
        patch.add("/spec/progressDeadlineSeconds", deadline.into());
        self.patch("fence", &patch).await
    }

    fn patch_of<'a>(self, seen: &'a Precondition) -> JsonPatch<'a>
    where
        Self: 'a,
    {
        JsonPatch::of_seen(seen, &self.executor.federation, None)
    }
}

/// Sets what is lent to a LocalReplicaSet for a rollout. Without anything it is paused.
pub(super) fn add_local_loan(patch: &mut JsonPatch<'_>, source: &Source<'_>, strategy: Strategy) {
    add_local_strategy(patch, source, strategy);
    patch.add("/spec/paused", Operand::Bool(strategy.pods() == 0));
}

/// Sets what is lent to a LocalReplicaSet, paused or not.
pub(super) fn add_local_strategy(
    patch: &mut JsonPatch<'_>,
    source: &Source<'_>,
    strategy: Strategy,
) {
    let strategy = LocalStrategy::of(strategy, source.deployment.min_delay);
    patch.add("/spec/deploymentStrategy", Operand::LocalStrategy(strategy));
}

/// Sets the fields of a LocalReplicaSet that fedrs leaves at their defaults.
pub(super) fn add_local_defaults(patch: &mut JsonPatch<'_>) {
    let seconds = |seconds: i32| Operand::Number(seconds.into());
    for (field, default) in [
        ("stopped", Operand::Bool(false)),
        ("updateMode", Operand::Text("Rolling")),
        ("accountId", Operand::Text("")),
        ("constraints", Operand::Null),
        (
            "removalTimeoutSeconds",
            seconds(local_defaults::removal_timeout_seconds()),
        ),
        (
            "evictionTimeoutSeconds",
            seconds(local_defaults::eviction_timeout_seconds()),
        ),
        (
            "nodeTimeoutSeconds",
            seconds(local_defaults::node_timeout_seconds()),
        ),
    ] {
        patch.add(&format!("/spec/{field}"), default);
    }
}

/// Sets what a Deployment has beside replicas, strategy and template. Together: the API server compares the deadline with
/// `minReadySeconds`.
pub(super) fn add_settings<'a>(patch: &mut JsonPatch<'a>, source: &Source<'a>) {
    let DeploymentSettings {
        progress_deadline_seconds,
        revision_history_limit,
        ..
    } = source.deployment;
    for (field, number) in [
        ("minReadySeconds", source.frs.min_ready_seconds),
        ("progressDeadlineSeconds", progress_deadline_seconds),
        ("revisionHistoryLimit", revision_history_limit),
    ] {
        patch.add(&format!("/spec/{field}"), number.into());
    }
    if source.frs.local == LocalKind::LocalReplicaSet {
        patch.add("/spec/drainSeconds", drain_seconds(source.frs).into());
        let policy = source.frs.migration_policy.as_deref();
        let policy = policy.map_or(Operand::Null, Operand::Text);
        patch.add("/spec/migrationPolicy", policy);
    }
}

/// The deadline of `settings`, or one second more where the Deployment has it. A second less where more is none at all.
fn other_deadline(settings: DeploymentSettings, live: Option<i64>) -> u32 {
    let deadline = settings.progress_deadline_seconds;
    match live {
        Some(live) if live != i64::from(deadline) => deadline,
        _ if deadline + 1 < NO_PROGRESS_DEADLINE => deadline + 1,
        _ => deadline - 1,
    }
}
