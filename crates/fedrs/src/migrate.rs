//! `fedrs migrate`: asks pods of LocalReplicaSets to leave their nodes (M1, M15).

use std::{process::ExitCode, time::Duration};

use clap::{Args, Subcommand};
use jiff::Timestamp;
use membership::{
    cluster_client::ClusterClient,
    migration::{self, MigrationOptions, Requested},
};

use crate::{
    host::ClusterArgs,
    output::{print_error, print_line},
    set_name::{NAME_OF_KIND, parse_of_kind},
    values,
};

const PODS: [&str; 3] = ["po", "pod", "pods"];
const REQUESTS: [&str; 3] = ["mreq", "migrationrequest", "migrationrequests"];

/// Ask pods of LocalReplicaSets to leave their nodes
///
/// In the cluster of the kubeconfig. Each pod gets a MigrationRequest. With a MigrationPolicy, the pod is made again under its name on
/// another node, within the budgets and not too often; without one, it is replaced by a pod with another name, within the budget of
/// its set. The command does not wait: `fedrs migrations` shows how far it is.
#[derive(Args)]
#[command(
    disable_help_subcommand = true,
    after_help = "Examples:
  # Move the pod web-0a1b2, within two hours in any case
  fedrs migrate pod web-0a1b2 --deadline=2h --reason='the disk makes noises'

  # Move all pods of LocalReplicaSets off the node n1
  kubectl cordon n1
  fedrs migrate node n1

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
    /// Confirm that the pod of a MigrationRequest has stopped whose phase is HandsUp
    ///
    /// Then the pod is removed, and made again elsewhere. Data may be lost if it still runs: without a proof by its kubelet, which needs
    /// no confirmation, the machine has to be destroyed.
    Confirm(ConfirmArgs),
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
                print_line(format_args!("node/{name} has no pod of a LocalReplicaSet"));
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
            let user = migration::confirm(&cluster, of, *machine_is_destroyed).await?;
            print_line(format_args!(
                "migrationrequest/{} confirmed by {user}",
                of.1
            ));
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
