//! What holds up a migration, for programs.

use fedrs_api::MigrationWaitReason;
use replica_set_controller::{MigrationState, MigrationWait};

/// The word for what holds up a migration that has not begun; empty if nothing does.
pub(crate) fn reason(state: &MigrationState<'_>) -> String {
    if state.is_stopped {
        return MigrationWaitReason::Stopped.to_string();
    }
    let reason = state.wait.map(|wait| match wait {
        MigrationWait::Budget => MigrationWaitReason::Budget,
        MigrationWait::MaxUnavailable { .. } => MigrationWaitReason::MaxUnavailable,
        MigrationWait::Shard { .. } => MigrationWaitReason::Shard,
        MigrationWait::Rollout => MigrationWaitReason::Rollout,
        MigrationWait::TooSoon { .. } => MigrationWaitReason::TooSoon,
        MigrationWait::TooYoung { .. } => MigrationWaitReason::TooYoung,
        MigrationWait::Tolerated { .. } => MigrationWaitReason::Tolerated,
        MigrationWait::UnknownPolicy => MigrationWaitReason::UnknownPolicy,
    });
    reason.map_or_else(String::new, |reason| reason.to_string())
}
