//! `fedrs lrs`: shows and changes the LocalReplicaSets of one cluster, with the commands, flags and words of `kubectl rollout`.
//!
//! ```text
//! arguments --> membership::rollout --> lines, tables, or a diff
//! ```

mod diff;
mod evict;
mod pods;
mod rolling_update;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use fedrs_api::LocalReplicaSet;
use membership::rollout::Target;

use self::{evict::EvictArgs, rolling_update::RollingUpdateArgs};
use crate::{
    host::ClusterArgs,
    rollout::{
        commands::{self, UndoOptions},
        diff::DiffOptions,
        history::{self, HistoryOptions},
        status::{self, StatusOptions},
    },
    set_name::{NAME_OF_KIND, parse_of_kind},
};

/// What may be before the name of a LocalReplicaSet.
const KINDS: [&str; 3] = ["lrs", "localreplicaset", "localreplicasets"];

/// Show or change a LocalReplicaSet
///
/// In the cluster of the kubeconfig, where the set and its pods are.
#[derive(Args)]
#[command(disable_help_subcommand = true)]
pub(crate) struct LrsArgs {
    #[command(subcommand)]
    command: LrsCommand,
    /// Namespace of the LocalReplicaSet. By default the namespace of the kubeconfig's context
    #[arg(long, short, value_name = "NAME", global = true)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

#[derive(Subcommand)]
enum LrsCommand {
    #[command(flatten)]
    OfTarget(TargetCommand),
    Evict(EvictArgs),
    RollingUpdate(RollingUpdateArgs),
}

/// The commands about a LocalReplicaSet.
#[derive(Subcommand)]
enum TargetCommand {
    Status(StatusArgs),
    History(HistoryArgs),
    Diff(DiffArgs),
    Undo(UndoArgs),
    Pause(PauseArgs),
    Resume(ResumeArgs),
    Restart(RestartArgs),
}

/// The LocalReplicaSet of a command.
#[derive(Args)]
struct NameArgs {
    /// The LocalReplicaSet. lrs/NAME works as well
    #[arg(value_name = NAME_OF_KIND, required = true)]
    name: String,
}

/// Show the progress of the update until it has ended
///
/// The exit status is 0 when all pods have the template of the spec and are available, as the condition Ready says, and 1 when the
/// update can't go on without a change: it made no progress for spec.progressDeadlineSeconds, the spec is rejected, or
/// spec.updateMode leaves pods as they are. --watch=false also shows the pods of each revision by group.
#[derive(Args)]
#[command(after_help = "Examples:
  # Wait until the LocalReplicaSet web is updated, for at most 10 minutes
  fedrs lrs status web --timeout=10m

  # Show how far the update is
  fedrs lrs status web --watch=false")]
struct StatusArgs {
    #[command(flatten)]
    name: NameArgs,
    #[command(flatten)]
    options: StatusOptions,
}

/// Show the revisions, or the template of one
#[derive(Args)]
#[command(after_help = "Examples:
  # Show the revisions, and how many pods have them
  fedrs lrs history web

  # Show the pod template of revision 3
  fedrs lrs history web --revision=3")]
struct HistoryArgs {
    #[command(flatten)]
    name: NameArgs,
    #[command(flatten)]
    options: HistoryOptions,
}

/// Show how the pod template changes, and whether pods are updated in place or recreated
///
/// From the current revision, which all pods had last, to the spec. Pause updates before you change the template to see this
/// beforehand. The exit status is 0 with and without differences.
#[derive(Args)]
#[command(after_help = "Examples:
  # What does the update do to the pods?
  fedrs lrs diff web

  # What would an undo to revision 3 do?
  fedrs lrs diff web --revision=4 --to-revision=3")]
struct DiffArgs {
    #[command(flatten)]
    name: NameArgs,
    #[command(flatten)]
    options: DiffOptions,
}

/// Roll back to an earlier revision
///
/// `fedrs lrs history` lists the revisions. Template, accountId and constraints of the revision become those of the spec. The
/// revision gets the next number. While updates are paused, the spec changes, and the update begins when they are resumed.
#[derive(Args)]
#[command(after_help = "Examples:
  # Roll back to the revision before the current template
  fedrs lrs undo web

  # Roll back to revision 3
  fedrs lrs undo web --to-revision=3")]
struct UndoArgs {
    #[command(flatten)]
    name: NameArgs,
    #[command(flatten)]
    options: UndoOptions,
}

/// Pause updates: no update of a pod begins. Scaling, repair and evictions go on
#[derive(Args)]
#[command(after_help = "Examples:
  # Stop the update of the LocalReplicaSet web in the namespace shop
  fedrs lrs pause shop/web")]
struct PauseArgs {
    #[command(flatten)]
    name: NameArgs,
}

/// Resume paused updates
#[derive(Args)]
#[command(after_help = "Examples:
  fedrs lrs resume web")]
struct ResumeArgs {
    #[command(flatten)]
    name: NameArgs,
}

/// Recreate all pods, within the budget and the speed of an update
///
/// By the annotation kubectl.kubernetes.io/restartedAt in the template.
#[derive(Args)]
#[command(after_help = "Examples:
  fedrs lrs restart web")]
struct RestartArgs {
    #[command(flatten)]
    name: NameArgs,
}

impl TargetCommand {
    /// The LocalReplicaSet as the user names it.
    fn name(&self) -> &str {
        match self {
            Self::Status(args) => &args.name.name,
            Self::History(args) => &args.name.name,
            Self::Diff(args) => &args.name.name,
            Self::Undo(args) => &args.name.name,
            Self::Pause(args) => &args.name.name,
            Self::Resume(args) => &args.name.name,
            Self::Restart(args) => &args.name.name,
        }
    }
}

/// Runs the command.
pub(crate) async fn run(args: LrsArgs) -> anyhow::Result<ExitCode> {
    let option = args.namespace.as_deref();
    let command = match args.command {
        LrsCommand::Evict(evict) => {
            let cluster = args.cluster.client().await?;
            evict::run(&cluster, option, &evict).await?;
            return Ok(ExitCode::SUCCESS);
        }
        LrsCommand::RollingUpdate(update) => {
            let cluster = args.cluster.client().await?;
            rolling_update::run(&cluster, option, &KINDS, &update).await?;
            return Ok(ExitCode::SUCCESS);
        }
        LrsCommand::OfTarget(command) => command,
    };
    let name = command.name().to_owned();
    let (namespace, name) = parse_of_kind(&name, option, &KINDS)?;
    let cluster = args.cluster.client().await?;
    let namespace = namespace.unwrap_or(cluster.namespace());
    let target: Target<'_, LocalReplicaSet> = Target::new(&cluster, namespace, name);
    match command {
        TargetCommand::Status(args) => return status::run(target, &args.options).await,
        TargetCommand::History(args) => return history::run(target, &args.options).await,
        TargetCommand::Diff(args) => return diff::run(target, &args.options).await,
        TargetCommand::Undo(args) => commands::undo(target, &args.options).await?,
        TargetCommand::Pause(_) => commands::pause(target).await?,
        TargetCommand::Resume(_) => commands::resume(target).await?,
        TargetCommand::Restart(_) => commands::restart(target).await?,
    }
    Ok(ExitCode::SUCCESS)
}
