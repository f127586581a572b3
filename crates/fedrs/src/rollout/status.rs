//! `fedrs rollout status`: waits until a rollout has ended.

use std::{process::ExitCode, time::Duration};

use anyhow::bail;
use clap::{ArgAction, Args};
use membership::rollout::{RolloutProgress, RolloutState, Target, progress, wait};

use super::{live::Live, name::NameArgs};
use crate::{
    output::{in_one_line, print_line},
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
    /// Wait until the rollout has ended
    #[arg(long, short, value_name = "BOOL", default_value_t = true, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    watch: bool,
    /// How long to wait; 0s has no limit
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = values::duration)]
    timeout: Duration,
}

pub(super) async fn run(target: Target<'_>, args: &StatusArgs) -> anyhow::Result<ExitCode> {
    let ended = if args.watch {
        let timeout = Some(args.timeout).filter(|timeout| !timeout.is_zero());
        let mut view = View::start();
        let ended = wait(target, timeout, |progress| view.show(&progress)).await?;
        view.end(&ended);
        ended
    } else {
        let progress = progress(target).await?;
        View::Lines {
            last: String::new(),
        }
        .show(&progress);
        progress
    };
    match ended.state {
        RolloutState::Failed(message) => bail!("{target}: {message}"),
        RolloutState::Complete => {
            let state = RolloutState::Complete;
            print_line(format_args!(
                "federateddeployment {:?} {state}",
                target.name
            ));
        }
        _ => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// How progress is shown.
enum View {
    /// A table that is redrawn.
    Live(Live),
    /// A line for each change of what is waited for.
    Lines { last: String },
}

impl View {
    fn start() -> Self {
        if terminal::can_redraw() {
            Self::Live(Live::default())
        } else {
            let last = String::new();
            Self::Lines { last }
        }
    }

    fn show(&mut self, progress: &RolloutProgress) {
        match self {
            Self::Live(live) => live.draw(progress),
            Self::Lines { last } => {
                let line = in_one_line(&progress.state);
                if !progress.has_ended() && *last != line {
                    print_line(&line);
                    *last = line;
                }
            }
        }
    }

    /// Shows the last state of the clusters.
    fn end(&mut self, progress: &RolloutProgress) {
        if let Self::Live(live) = self {
            live.draw(progress);
        }
    }
}
