//! What holds up a migration, for programs.

use fedrs_api::MigrationWaitReason;
use replica_set_controller::{MigrationState, MigrationWait};

/// The word for what holds up a migration that has not begun; empty if nothing does.
pub(crate) fn reason(state: &MigrationState<'_>) -> String {
    if state.is_stopped {
        return MigrationWaitReason::Stopped.to_string();
    }
    if state.awaits.is_some() {
        return MigrationWaitReason::Person.to_string();
    }
    let reason = state.wait.and_then(|wait| match wait {
        MigrationWait::Budget => Some(MigrationWaitReason::Budget),
        MigrationWait::MaxUnavailable { .. } => Some(MigrationWaitReason::MaxUnavailable),
        MigrationWait::Shard { .. } => Some(MigrationWaitReason::Shard),
        MigrationWait::Rollout => Some(MigrationWaitReason::Rollout),
        MigrationWait::TooSoon { .. } => Some(MigrationWaitReason::TooSoon),
        MigrationWait::TooYoung { .. } => Some(MigrationWaitReason::TooYoung),
        MigrationWait::Tolerated { .. } => Some(MigrationWaitReason::Tolerated),
        MigrationWait::UnknownPolicy => Some(MigrationWaitReason::UnknownPolicy),
        MigrationWait::Copies { .. } => Some(MigrationWaitReason::Copies),
        MigrationWait::ShutdownByPerson => Some(MigrationWaitReason::Person),
        // It has ended.
        MigrationWait::CompactionRefused => None,
    });
    reason.map_or_else(String::new, |reason| reason.to_string())
}
