//! `fedrs rollout`: shows and changes the rollouts of FederatedDeployments, with the commands, flags and words of `kubectl
//! rollout`. What does not depend on the kind also serves `fedrs lrs`.
//!
//! ```text
//! arguments --> membership::rollout --> lines, tables, a diff, or a table that is redrawn
//! ```

mod clusters;
pub(crate) mod commands;
pub(crate) mod diff;
pub(crate) mod history;
mod live;
mod name;
mod plan;
pub(crate) mod status;
pub(crate) mod view;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use membership::rollout::{self, Target};

use self::{
    commands::{UndoOptions, report},
    diff::DiffArgs,
    history::HistoryArgs,
    name::NameArgs,
    plan::PlanArgs,
    status::StatusArgs,
};
use crate::{
    host::HostArgs,
    output::print_line,
    set_name::{self, SetName},
};

/// Show or change the rollout of a FederatedDeployment
#[derive(Args)]
#[command(disable_help_subcommand = true)]
pub(crate) struct RolloutArgs {
    #[command(subcommand)]
    command: RolloutCommand,
    /// Namespace of the FederatedDeployment. By default the namespace of the kubeconfig's context
    #[arg(long, short, value_name = "NAME", global = true)]
    namespace: Option<String>,
    #[command(flatten)]
    host: HostArgs,
}

#[derive(Subcommand)]
enum RolloutCommand {
    Plan(PlanArgs),
    #[command(flatten)]
    OfTarget(TargetCommand),
}

/// The commands about a FederatedDeployment of the host.
#[derive(Subcommand)]
enum TargetCommand {
    Status(StatusArgs),
    History(HistoryArgs),
    Diff(DiffArgs),
    Undo(UndoArgs),
    Pause(PauseArgs),
    Resume(ResumeArgs),
    Restart(RestartArgs),
    Approve(ApproveArgs),
}

/// Roll back to an earlier revision
///
/// `fedrs rollout history` lists the revisions. The template of the revision becomes that of the spec, and is rolled out. The
/// revision gets the next number. While the rollout is paused, the spec changes, and the rollout begins when it is resumed.
#[derive(Args)]
#[command(after_help = "Examples:
  # Roll back to the revision before the current template
  fedrs rollout undo web

  # Roll back to revision 3
  fedrs rollout undo web --to-revision=3")]
struct UndoArgs {
    #[command(flatten)]
    name: NameArgs,
    #[command(flatten)]
    options: UndoOptions,
}

/// Pause the rollout: no more pods are updated. Scaling, repair and moves go on
#[derive(Args)]
#[command(after_help = "Examples:
  # Stop the rollout of the FederatedDeployment web in the namespace shop
  fedrs rollout pause shop/web")]
struct PauseArgs {
    #[command(flatten)]
    name: NameArgs,
}

/// Resume a paused rollout
#[derive(Args)]
#[command(after_help = "Examples:
  fedrs rollout resume web")]
struct ResumeArgs {
    #[command(flatten)]
    name: NameArgs,
}

/// Replace all pods, within the budget and in the order of a rollout
#[derive(Args)]
#[command(after_help = "Examples:
  fedrs rollout restart web")]
struct RestartArgs {
    #[command(flatten)]
    name: NameArgs,
}

/// Approve a step of the rollout, for the revision that is rolled out
///
/// Without the name of a step, the command approves the one that waits for its approval. A step waits once the one before it is
/// complete and has soaked.
#[derive(Args)]
#[command(
    allow_missing_positional = true,
    after_help = "Examples:
  # Approve the step that waits
  fedrs rollout approve web

  # The same, in a job that runs again and again
  fedrs rollout approve web --if-waiting

  # Approve the step europe before it waits
  fedrs rollout approve europe shop/web"
)]
struct ApproveArgs {
    /// The step. By default the one that waits for its approval
    step: Option<String>,
    #[command(flatten)]
    name: NameArgs,
    /// Succeed without a change if no step waits for its approval
    #[arg(long, conflicts_with = "step")]
    if_waiting: bool,
}

impl TargetCommand {
    /// The FederatedDeployment as the user names it.
    fn name(&self) -> &str {
        match self {
            Self::Status(args) => &args.name.name,
            Self::History(args) => &args.name.name,
            Self::Diff(args) => &args.name.name,
            Self::Undo(args) => &args.name.name,
            Self::Pause(args) => &args.name.name,
            Self::Resume(args) => &args.name.name,
            Self::Restart(args) => &args.name.name,
            Self::Approve(args) => &args.name.name,
        }
    }
}

/// Runs the command.
pub(crate) async fn run(args: RolloutArgs) -> anyhow::Result<ExitCode> {
    let command = match args.command {
        RolloutCommand::Plan(plan) => return plan::run(plan, args.namespace, args.host).await,
        RolloutCommand::OfTarget(command) => command,
    };
    let name = command.name().to_owned();
    let SetName {
        namespace, name, ..
    } = set_name::parse_deployment(&name, args.namespace.as_deref())?;
    let host = args.host.client().await?;
    let target = Target::new(&host, namespace.unwrap_or(host.namespace()), name);
    match command {
        TargetCommand::Status(args) => return status::run(target, &args.options).await,
        TargetCommand::History(args) => return history::run(target, &args.options).await,
        TargetCommand::Diff(args) => return diff::run(target, &args).await,
        TargetCommand::Undo(args) => commands::undo(target, &args.options).await?,
        TargetCommand::Pause(_) => commands::pause(target).await?,
        TargetCommand::Resume(_) => commands::resume(target).await?,
        TargetCommand::Restart(_) => commands::restart(target).await?,
        TargetCommand::Approve(args) => approve(target, &args).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn approve(target: Target<'_>, args: &ApproveArgs) -> anyhow::Result<()> {
    let approval = match rollout::approve(target, args.step.as_deref()).await {
        Err(error) if args.if_waiting && error.is_not_waiting() => {
            print_line(format_args!("{error}"));
            return Ok(());
        }
        approved => approved?,
    };
    let already = if approval.existed { "already " } else { "" };
    let (step, revision) = (approval.step, approval.revision);
    let text = format!("step {step} {already}approved for revision {revision}");
    report(target, &text);
    Ok(())
}
