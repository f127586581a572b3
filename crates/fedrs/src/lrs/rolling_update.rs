//! `fedrs lrs rolling-update`: from one LocalReplicaSet to another (C9).

use std::time::Duration;

use clap::Args;
use membership::{
    cluster_client::ClusterClient,
    rolling_update::{Limits, Progress, RollingUpdate},
};

use crate::{
    output::print_line,
    set_name::{NAME_OF_KIND, parse_of_kind},
    values,
};

/// Replace a LocalReplicaSet by another, one pod at a time
///
/// NEW gets one more replica, and once that is available, OLD gets one less, until it has none and is deleted. NEW gets as many
/// replicas as OLD had: create it with `replicas: 0`, and with a label in selector and template that OLD does not have. A Service that
/// selects the labels that both have in common reaches the pods of both.
///
/// The same command continues an update that was interrupted. With the names exchanged, it goes back.
#[derive(Args)]
#[command(after_help = "Examples:
  # Replace web-v1 by web-v2
  fedrs lrs rolling-update web-v1 web-v2

  # Go back while that is under way
  fedrs lrs rolling-update web-v2 web-v1

  # Remove a pod before its replacement is created, and keep web-v1 without pods
  fedrs lrs rolling-update web-v1 web-v2 --max-surge=0 --max-unavailable=1 --keep-old")]
pub(super) struct RollingUpdateArgs {
    /// The LocalReplicaSet that is replaced
    #[arg(value_name = "OLD", help = format!("The LocalReplicaSet that is replaced: {NAME_OF_KIND}"))]
    old: String,
    /// The LocalReplicaSet that takes its place, in the same namespace
    #[arg(value_name = "NEW")]
    new: String,
    /// Pods beyond the replicas of OLD
    #[arg(long, value_name = "PODS", default_value_t = 1)]
    max_surge: u32,
    /// Replicas that may be unavailable
    #[arg(long, value_name = "PODS", default_value_t = 0)]
    max_unavailable: u32,
    /// Keep OLD, without replicas
    #[arg(long)]
    keep_old: bool,
    /// How long one pod may take
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = values::duration)]
    timeout: Duration,
}

pub(super) async fn run(
    cluster: &ClusterClient,
    namespace: Option<&str>,
    kinds: &[&str],
    args: &RollingUpdateArgs,
) -> anyhow::Result<()> {
    let (of_old, old) = parse_of_kind(&args.old, namespace, kinds)?;
    let (of_new, new) = parse_of_kind(&args.new, of_old, kinds)?;
    let update = RollingUpdate {
        cluster,
        namespace: of_new.unwrap_or(cluster.namespace()),
        old,
        new,
        limits: Limits {
            max_surge: args.max_surge,
            max_unavailable: args.max_unavailable,
        },
        keeps_old: args.keep_old,
        timeout: args.timeout,
    };
    update
        .run(|progress| match progress {
            Progress::Resumed { replicas } => {
                print_line(format_args!("continuing up to {replicas} replicas"));
            }
            Progress::Scaled { set, up, replicas } => {
                let direction = if up { "up" } else { "down" };
                print_line(format_args!(
                    "localreplicaset/{set} scaled {direction} to {replicas}"
                ));
            }
            Progress::Deleted { set } => print_line(format_args!("localreplicaset/{set} deleted")),
        })
        .await?;
    print_line(format_args!("localreplicaset/{new} has replaced {old}"));
    Ok(())
}
