//! `fedrs rollout status`: waits until a rollout has ended.

use std::{process::ExitCode, time::Duration};

use anyhow::bail;
use clap::{ArgAction, Args};
use membership::rollout::{RolloutProgress, RolloutState, Target, progress, wait};

use super::{live::Live, name::NameArgs, view::View};
use crate::{
    output::{self, in_one_line, print_line},
    terminal, values,
};

/// Show the progress of the rollout until it has ended
///
/// The exit status is 0 when each cluster has the revision of the spec and all replicas are available, as the condition Ready
/// says, and 1 when the rollout can't go on without a change: it made no progress for spec.progressDeadlineSeconds, or the
/// spec or the template is rejected. A cluster that is lost does not hold the rollout up: it is updated when it returns.
#[derive(Args)]
#[command(after_help = "Examples:
  # Wait until the FederatedDeployment web is rolled out, for at most 10 minutes
  fedrs rollout status web --timeout=10m

  # Show how far the rollout is
  fedrs rollout status web --watch=false")]
pub(super) struct StatusArgs {
    #[command(flatten)]
    pub(super) name: NameArgs,
    #[command(flatten)]
    pub(super) options: StatusOptions,
}

/// How long a rollout is followed.
#[derive(Args)]
pub(crate) struct StatusOptions {
    /// Wait until the rollout has ended
    #[arg(long, short, value_name = "BOOL", default_value_t = true, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    watch: bool,
    /// How long to wait; 0s has no limit
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = values::duration)]
    timeout: Duration,
}

pub(crate) async fn run<K: View>(
    target: Target<'_, K>,
    options: &StatusOptions,
) -> anyhow::Result<ExitCode> {
    let ended = if options.watch {
        let timeout = Some(options.timeout).filter(|timeout| !timeout.is_zero());
        let mut display = Display::start();
        let ended = wait(target, timeout, |progress| display.show::<K>(&progress)).await?;
        display.end::<K>(&ended);
        ended
    } else {
        let progress = progress(target).await?;
        Display::lines().show::<K>(&progress);
        output::print(&K::details(&progress.parts));
        progress
    };
    match ended.state {
        RolloutState::Failed(message) => bail!("{target}: {message}"),
        RolloutState::Complete => {
            let state = RolloutState::Complete;
            print_line(format_args!("{} {:?} {state}", target.kind(), target.name));
        }
        _ => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// How progress is shown.
enum Display {
    /// A table that is redrawn.
    Live(Live),
    /// A line for each change of what is waited for.
    Lines { last: String },
}

impl Display {
    fn start() -> Self {
        if terminal::can_redraw() {
            Self::Live(Live::default())
        } else {
            Self::lines()
        }
    }

    fn lines() -> Self {
        let last = String::new();
        Self::Lines { last }
    }

    fn show<K: View>(&mut self, progress: &RolloutProgress<K::Part>) {
        match self {
            Self::Live(live) => live.draw::<K>(progress),
            Self::Lines { last } => {
                let line = in_one_line(&progress.state);
                if !progress.has_ended() && *last != line {
                    print_line(&line);
                    *last = line;
                }
            }
        }
    }

    /// Shows the last state of the parts.
    fn end<K: View>(&mut self, progress: &RolloutProgress<K::Part>) {
        if let Self::Live(live) = self {
            live.draw::<K>(progress);
        }
    }
}
