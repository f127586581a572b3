//! `fedrs plan`: where the replicas of federated sets would move, and why.
//!
//! ```text
//! sets of the host, or a manifest (validated) --> membership::plan --> tables, JSON or YAML
//! without a host: cases, or a manifest with options --> federated-scheduler --> layouts
//! ```
//!
//! The command prints nothing unless all input is valid, and changes nothing.

pub(crate) mod case;
mod fields;
mod input;
mod live;
mod live_table;
mod manifest;
mod result;
mod table;
mod without_host;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::anyhow;
use clap::Args;

use self::live::LiveArgs;
pub(crate) use self::{
    live::placed,
    manifest::read as read_manifest,
    without_host::{ClusterArgs, replicas_of_clusters},
};
use crate::{
    host::HostArgs,
    output::{self, Format},
};

/// The exit status for invalid input, the same as for invalid arguments.
const INVALID_INPUT: u8 = 2;

/// Show where replicas would move, and which would be unplaced, without changing anything
///
/// Computes what the controller would do with a FederatedReplicaSet or FederatedDeployment of the host, with all of a namespace (without a name), or
/// with all (-A): if it is changed (-f, --set-replicas), or if members are lost, cordoned or drained. The computation is the
/// controller's own, on the state that it publishes on the host. The command needs permission to read
/// FederatedReplicaSets, FederatedDeployments and MemberClusters; it connects to no member.
///
/// A cluster that has shown no limit counts as one that can run all replicas that it gets.
///
/// Without a host, the command prints layouts: of a manifest with --clusters, or of the cases in a file in place of the name.
/// The file holds one case, a list of cases, or an object with a list under "cases"; the name of the file contains a dot, or
/// is - for standard input. Without preferences, replicas spread evenly. "key" decides ties between clusters, as the
/// namespace and name of a set do; the default is default/NAME. The command ignores counts for clusters
/// that are not listed, with a warning. It does not read "layout", "unplaced" and "ties", which a file of expected layouts
/// may contain.
///
/// If the input is invalid, the command prints an error for each invalid field, prints nothing to standard output, and
/// exits with status 2.
#[derive(Args)]
#[command(after_help = r#"Examples:
  # What happens to the FederatedReplicaSet web if the member eu is lost?
  fedrs plan web --lose eu

  # Which sets would change if eu is drained while us is cordoned?
  fedrs plan -A --drain eu --cordon us

  # Where would 60 replicas go?
  fedrs plan shop/web --set-replicas 60

  # What would change if this manifest were applied?
  fedrs plan -f web.yaml

  # Layout of a manifest on three clusters, without a host
  fedrs plan -f web.yaml --clusters eu,us,asia --current eu=20 --capacity asia=6

  # Layout of a case from standard input, without a host
  fedrs plan - <<EOF
  name: web
  replicas: 50
  preferences:
    rebalance: true
    clusters: {"*": {weight: 1}, C: {weight: 1, maxReplicas: 20}}
  clusters: [A, B, C]
  current: {A: 20}     # existing replicas; none by default
  capacity: {B: 6}     # the most replicas that the cluster can run; unlimited by default
  EOF"#)]
pub(crate) struct PlanArgs {
    /// The set: NAME, NAMESPACE/NAME, or with its kind fdeploy/NAME; or a file with cases. By default all of the namespace
    #[arg(value_name = "NAME", conflicts_with_all = ["filename", "all_namespaces"])]
    set: Option<String>,
    /// File with a new or changed FederatedReplicaSet or FederatedDeployment in JSON or YAML; - for standard input
    #[arg(short, long, value_name = "FILE", conflicts_with = "all_namespaces")]
    filename: Option<PathBuf>,
    /// Output format. By default tables
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<Format>,
    #[command(flatten)]
    live: LiveArgs,
    #[command(flatten)]
    host: HostArgs,
    #[command(flatten)]
    clusters: ClusterArgs,
}

/// Plans and prints.
pub(crate) async fn run(args: PlanArgs) -> anyhow::Result<ExitCode> {
    let format = args.output;
    let text = match (&args.set, &args.filename) {
        (Some(path), _) if is_file(path) && args.live.is_used() => Err(vec![anyhow!(
            "{path} is a file with cases: options for a host can't be used with it"
        )]),
        (Some(_), _) if args.clusters.is_used() => Err(vec![anyhow!(
            "--clusters describes clusters for the manifest of --filename"
        )]),
        (Some(path), _) if is_file(path) => without_host::layouts_of_cases(Path::new(path), format),
        (_, Some(path)) if args.clusters.is_used() && args.live.is_used() => {
            let path = path.display();
            Err(vec![anyhow!(
                "{path}: --clusters describes clusters without a host: options for a host can't be used with it"
            )])
        }
        (_, Some(path)) if args.clusters.is_used() => {
            without_host::layout_of_manifest(path, &args.clusters, format)
        }
        (_, Some(path)) => match manifest::read(path) {
            Ok(set) => Ok(live::plan_manifest(set, args.live, args.host, format).await?),
            Err(errors) => Err(errors),
        },
        (set, None) => Ok(live::plan_sets(set.as_deref(), args.live, args.host, format).await?),
    };
    Ok(match text {
        Ok(text) => output::print(&text),
        Err(errors) => print_errors(errors),
    })
}

/// Prints the errors of invalid input.
pub(crate) fn print_errors(errors: Vec<anyhow::Error>) -> ExitCode {
    for error in errors {
        output::print_error(format_args!("error: {error:#}"));
    }
    ExitCode::from(INVALID_INPUT)
}

/// Whether the argument is a file: names of sets have no dot.
fn is_file(argument: &str) -> bool {
    argument == "-" || argument.contains('.')
}
