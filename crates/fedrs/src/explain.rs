//! `fedrs explain`: how many replicas are where, and why, in sentences.

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use membership::explain;

use crate::{host, output};

/// Say how many replicas each cluster has and why, and what is being waited for.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  fedrs explain default/web --kubeconfig host.yaml
  fedrs explain web                       # namespace default")]
pub(crate) struct ExplainArgs {
    /// The FederatedReplicaSet
    #[arg(value_name = "[NAMESPACE/]NAME")]
    set: String,
    #[command(flatten)]
    host: host::HostArgs,
}

/// Asks the host and prints.
pub(crate) async fn run(args: ExplainArgs) -> anyhow::Result<ExitCode> {
    let (namespace, name) = args.set.split_once('/').unwrap_or(("default", &args.set));
    if name.is_empty() || namespace.is_empty() || name.contains('/') {
        bail!("{:?} is not of the form NAMESPACE/NAME", args.set);
    }
    let host = args.host.cluster().await?;
    let set = explain::read(&host, namespace, name).await?;
    Ok(output::print(&explain::explain(&set)))
}
