//! `fedrs sim`: embedded clusters without a controller, to try fedrs or any other client against.

use std::{
    fmt::Write as _,
    io::{self, Write as _},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::Context;
use clap::Args;
use sim_cluster::Settings;
use tokio_util::sync::CancellationToken;

use crate::{
    embedded::{EmbeddedClusters, KubeconfigDirectory, MEMBER_NAMES, MemberSize, STOP_TIMEOUT},
    signals::cancel_on_signal,
};

/// Start embedded host and member clusters and write their kubeconfigs
///
/// Each cluster is a Kubernetes API server on 127.0.0.1 with simulated nodes, a scheduler, a ReplicaSet controller, and
/// kubelets that run no containers. kubectl and every other client work against it. The clusters persist nothing.
///
/// The command writes host.yaml and members/NAME.yaml to the directory. It replaces files of an earlier run, and never
/// touches a file that fedrs did not write.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  # Start a host and three members
  fedrs sim --dir clusters

  # Start ten members with five nodes each
  fedrs sim --members 10 --nodes 5 --dir clusters

  # Run the controller against them
  fedrs controller --kubeconfig clusters/host.yaml --members clusters/members")]
pub(crate) struct SimArgs {
    /// Number of member clusters
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=100))]
    members: u32,
    /// Number of nodes in each member
    #[arg(long, value_name = "M", default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=5000))]
    nodes: u32,
    /// Number of pods that each node can run
    #[arg(long, value_name = "P", default_value_t = 110, value_parser = clap::value_parser!(u32).range(0..=10000))]
    pods_per_node: u32,
    /// Directory for the kubeconfigs
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Do not install the CRDs of fedrs on the host
    #[arg(long)]
    no_crds: bool,
}

/// Runs the clusters until a signal stops them.
pub(crate) async fn run(args: SimArgs) -> anyhow::Result<ExitCode> {
    let cancel = CancellationToken::new();
    tokio::spawn(cancel_on_signal(cancel.clone()));
    let names: Vec<_> = (1..=args.members).map(member_name).collect();
    let sizes: Vec<_> = names
        .iter()
        .map(|name| MemberSize {
            name,
            nodes: args.nodes,
            pods_per_node: args.pods_per_node,
        })
        .collect();
    let directory = KubeconfigDirectory::claim(&args.dir)?;
    let clusters = EmbeddedClusters::start(directory, &sizes, &Settings::default()).await?;
    if !args.no_crds {
        clusters.install_crds()?;
    }
    let mut out = io::stdout();
    let written = out
        .write_all(welcome(&args, &names).as_bytes())
        .and_then(|()| out.flush());
    match written {
        // The reader, who was to use the clusters, has gone.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        written => {
            written.context("failed to write to standard output")?;
            cancel.cancelled().await;
        }
    }
    let _ = tokio::time::timeout(STOP_TIMEOUT, clusters.stop()).await;
    Ok(ExitCode::SUCCESS)
}

/// The names of the demo's members first, then numbers.
fn member_name(number: u32) -> String {
    let index = usize::try_from(number).expect("at most 100 members") - 1;
    let name = MEMBER_NAMES.get(index);
    name.map_or_else(|| format!("member-{number}"), |name| (*name).to_owned())
}

/// Lists the clusters and the next commands.
fn welcome(args: &SimArgs, names: &[String]) -> String {
    let dir = args.dir.display();
    let mut text = format!(
        "host       {dir}/host.yaml{}\n",
        if args.no_crds {
            ""
        } else {
            "  (with the CRDs of fedrs; --no-crds omits them)"
        }
    );
    for name in names {
        let _ = writeln!(
            text,
            "{name:<10} {dir}/members/{name}.yaml  {} nodes, {} pods each",
            args.nodes, args.pods_per_node
        );
    }
    let _ = write!(
        text,
        "\nTry these commands in another terminal:\n  \
         fedrs controller --kubeconfig {dir}/host.yaml --members {dir}/members\n  \
         export KUBECONFIG={dir}/host.yaml\n  \
         kubectl apply -f config/samples/hello.yaml\n  \
         kubectl get fdeploy,mc\n"
    );
    if let Some(first) = names.first() {
        let _ = writeln!(
            text,
            "  kubectl --kubeconfig {dir}/members/{first}.yaml get nodes,rs"
        );
    }
    text.push_str("\nPress Ctrl-C to stop the clusters. Nothing in them is persisted.\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(members: u32, no_crds: bool) -> SimArgs {
        SimArgs {
            members,
            nodes: 5,
            pods_per_node: 110,
            dir: "clusters".into(),
            no_crds,
        }
    }

    #[test]
    fn prints_the_clusters_and_the_next_commands() {
        let names: Vec<_> = (1..=4).map(member_name).collect();
        insta::assert_snapshot!(welcome(&args(4, false), &names));
    }

    #[test]
    fn without_members_and_crds_it_mentions_neither() {
        let text = welcome(&args(0, true), &[]);
        assert!(
            !text.contains("CRDs") && !text.contains("get nodes"),
            "{text}"
        );
    }
}
