//! The commands that change an object of any kind that has rollouts, and say what they did.

use clap::Args;
use jiff::Timestamp;
use membership::rollout::{self, RolloutKind, Target, Undo};

use super::name::kubectl_name;
use crate::output::{print_error, print_line};

/// To which revision an undo goes.
#[derive(Args)]
pub(crate) struct UndoOptions {
    /// The revision to roll back to, by its number in the history. By default, and with 0, the latest one with another template
    /// than the spec
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = clap::value_parser!(i64).range(0..))]
    to_revision: i64,
}

pub(crate) async fn undo<K: RolloutKind>(
    target: Target<'_, K>,
    options: &UndoOptions,
) -> anyhow::Result<()> {
    let to = Some(options.to_revision).filter(|number| *number > 0);
    match rollout::undo(target, to).await? {
        Undo::RolledBack { is_paused, .. } => {
            report(target, "rolled back");
            if is_paused {
                print_error("The rollout is paused: it begins when it is resumed.");
            }
        }
        Undo::AlreadyThere { revision } => {
            let text =
                format!("skipped rollback (current template already matches revision {revision})");
            report(target, &text);
        }
    }
    Ok(())
}

pub(crate) async fn pause<K: RolloutKind>(target: Target<'_, K>) -> anyhow::Result<()> {
    rollout::pause(target).await?;
    report(target, "paused");
    Ok(())
}

pub(crate) async fn resume<K: RolloutKind>(target: Target<'_, K>) -> anyhow::Result<()> {
    rollout::resume(target).await?;
    report(target, "resumed");
    Ok(())
}

pub(crate) async fn restart<K: RolloutKind>(target: Target<'_, K>) -> anyhow::Result<()> {
    rollout::restart(target, Timestamp::now()).await?;
    report(target, "restarted");
    Ok(())
}

/// Prints what was done, as `kubectl` does.
pub(super) fn report<K: RolloutKind>(target: Target<'_, K>, done: &str) {
    print_line(format_args!("{} {done}", kubectl_name(target)));
}
