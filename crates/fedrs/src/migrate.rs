//! `fedrs migrate`: asks pods to leave their nodes (M1, M15).

use std::{process::ExitCode, time::Duration};

use clap::{Args, Subcommand};
use fedrs_api::AwaitedAction;
use jiff::Timestamp;
use membership::{
    cluster_client::ClusterClient,
    migration::{self, Confirms, MigrationOptions, Requested},
};

use crate::{
    host::ClusterArgs,
    output::{print_error, print_line},
    set_name::{NAME_OF_KIND, parse_of_kind},
    values,
};

const PODS: [&str; 3] = ["po", "pod", "pods"];
const REQUESTS: [&str; 3] = ["mreq", "migrationrequest", "migrationrequests"];

/// Ask pods to leave their nodes
///
/// In the cluster of the kubeconfig, which needs the controller of LocalReplicaSets. Each pod gets a MigrationRequest. One of a LocalReplicaSet
/// with a MigrationPolicy is made again under its name on another node, within the budgets and not too often. All others, and those of
/// native ReplicaSets and Deployments, are replaced by pods with other names. The command does not wait: `fedrs migrations` shows how far
/// it is.
#[derive(Args)]
#[command(
    disable_help_subcommand = true,
    after_help = "Examples:
  # Move the pod web-0a1b2, within two hours in any case
  fedrs migrate pod web-0a1b2 --deadline=2h --reason='the disk makes noises'

  # Move all pods of replica sets off the node n1
  kubectl cordon n1
  fedrs migrate node n1

  # Confirm what fedrs migrations says that it waits for, and start the pod that was moved
  fedrs migrate confirm web-0a1b2-x7k2p
  fedrs migrate start web-0a1b2

  # Its node does not answer, and never will
  fedrs migrate confirm web-0a1b2-x7k2p --machine-is-destroyed

  # What has not begun does not happen
  fedrs migrate cancel web-0a1b2-x7k2p"
)]
pub(crate) struct MigrateArgs {
    #[command(subcommand)]
    command: MigrateCommand,
    /// Namespace of the pod or MigrationRequest. By default the namespace of the kubeconfig's context
    #[arg(long, short, value_name = "NAME", global = true)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

#[derive(Subcommand)]
enum MigrateCommand {
    /// Ask one pod
    Pod {
        /// The pod
        #[arg(value_name = NAME_OF_KIND)]
        name: String,
        #[command(flatten)]
        options: OptionArgs,
    },
    /// Ask all pods of a node
    Node {
        /// The node
        name: String,
        #[command(flatten)]
        options: OptionArgs,
    },
    /// Confirm what a MigrationRequest waits for
    ///
    /// That is what `fedrs migrations` shows of it: that its pod was shut down, that clients may reach the new pod, or that the old one may be
    /// shut down. In the phase HandsUp nothing proves that the pod has stopped, and data may be lost if it still runs: the machine has to be
    /// destroyed.
    Confirm(ConfirmArgs),
    /// Start a pod that was moved by the method Manual, or was not running before
    Start {
        /// The pod
        #[arg(value_name = NAME_OF_KIND)]
        name: String,
    },
    /// Cancel a MigrationRequest. A migration that has begun is completed
    Cancel {
        /// The MigrationRequest
        #[arg(value_name = NAME_OF_KIND)]
        name: String,
    },
}

#[derive(Args)]
struct ConfirmArgs {
    /// The MigrationRequest
    #[arg(value_name = NAME_OF_KIND)]
    name: String,
    /// The machine does not run any more, and never will with what it ran. Your name is recorded
    #[arg(long)]
    machine_is_destroyed: bool,
}

#[derive(Args)]
struct OptionArgs {
    /// Why, for people
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// After this time, the pod is moved whatever holds it up. By default what the controller's configuration says, a week
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    deadline: Option<Duration>,
}

impl OptionArgs {
    fn options(&self, now: Timestamp) -> MigrationOptions {
        MigrationOptions {
            reason: self.reason.clone(),
            deadline: self.deadline.map(|deadline| values::after(now, deadline)),
        }
    }
}

/// Runs `fedrs migrate`.
pub(crate) async fn run(args: MigrateArgs) -> anyhow::Result<ExitCode> {
    let cluster = args.cluster.client().await?;
    let option = args.namespace.as_deref();
    let now = Timestamp::now();
    match &args.command {
        MigrateCommand::Pod { name, options } => {
            let of = named(&cluster, name, option, &PODS)?;
            let requested = migration::request_pod(&cluster, of, &options.options(now)).await?;
            show(&requested);
        }
        MigrateCommand::Node { name, options } => {
            let asked = migration::request_node(&cluster, name, &options.options(now)).await?;
            let (requested, is_cordoned) = asked;
            requested.iter().for_each(show);
            if requested.is_empty() {
                print_line(format_args!(
                    "node/{name} has no pod of a LocalReplicaSet or ReplicaSet"
                ));
            }
            if !is_cordoned {
                let hint = "is not cordoned: pods may be scheduled to it again";
                print_error(format_args!(
                    "node/{name} {hint}: run `kubectl cordon {name}`"
                ));
            }
        }
        MigrateCommand::Confirm(ConfirmArgs {
            name,
            machine_is_destroyed,
        }) => {
            let of = named(&cluster, name, option, &REQUESTS)?;
            let confirms = if *machine_is_destroyed {
                Confirms::MachineIsDestroyed
            } else {
                Confirms::WhatIsAwaited
            };
            let (user, awaited) = migration::confirm(&cluster, of, confirms).await?;
            let what = match awaited {
                _ if *machine_is_destroyed => "that the machine is destroyed",
                AwaitedAction::ConfirmActivation => "that clients may reach the new pod",
                AwaitedAction::ConfirmShutdown => "that the old pod may be shut down",
                _ => "that the pod was shut down",
            };
            print_line(format_args!(
                "migrationrequest/{}: {user} has confirmed {what}",
                of.1
            ));
        }
        MigrateCommand::Start { name } => {
            let of = named(&cluster, name, option, &PODS)?;
            migration::start(&cluster, of).await?;
            print_line(format_args!("pod/{} started", of.1));
        }
        MigrateCommand::Cancel { name } => {
            let (namespace, name) = named(&cluster, name, option, &REQUESTS)?;
            migration::cancel(&cluster, (namespace, name)).await?;
            print_line(format_args!("migrationrequest/{name} canceled"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn named<'a>(
    cluster: &'a ClusterClient,
    text: &'a str,
    option: Option<&'a str>,
    kinds: &[&str],
) -> anyhow::Result<(&'a str, &'a str)> {
    let (namespace, name) = parse_of_kind(text, option, kinds)?;
    Ok((namespace.unwrap_or(cluster.namespace()), name))
}

fn show(requested: &Requested) {
    let Requested {
        namespace,
        pod,
        request,
        is_old,
    } = requested;
    let done = if *is_old {
        "was requested before"
    } else {
        "requested"
    };
    print_line(format_args!(
        "migration of pod/{pod} in {namespace} {done}: migrationrequest/{request}"
    ));
}
