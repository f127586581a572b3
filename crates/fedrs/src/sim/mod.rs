//! `fedrs sim`: embedded clusters alone, to try fedrs or any other client against.

pub(crate) mod fleet;
pub(crate) mod folder;

use std::{
    fmt::Write as _,
    io::{self, Write as _},
    path::PathBuf,
    time::Duration,
};

use anyhow::Context;
use clap::Args;
use sim_cluster::Settings;
use tokio_util::sync::CancellationToken;

use self::{
    fleet::{Fleet, MemberSize},
    folder::Folder,
};
use crate::{demo, signals::cancel_on_signal};

/// Clusters may take this long to end; the process ends then in any case.
const STOP_TIMEOUT: Duration = Duration::from_millis(1000);

/// Start a host and member clusters in this process, reached by kubeconfigs
///
/// Each is a Kubernetes API server on 127.0.0.1 with nodes, a scheduler, a ReplicaSet controller and kubelets
/// that run nothing. kubectl and every other client work against them. Nothing is kept when it ends.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  fedrs sim --dir clusters                              # a host and three members
  fedrs sim --members 10 --nodes 5 --dir clusters
  fedrs controller --kubeconfig clusters/host.yaml --members clusters/members

DIR holds host.yaml and members/NAME.yaml. Files of an earlier run are replaced; files that fedrs did not write
are never touched.")]
pub(crate) struct SimArgs {
    /// How many member clusters
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=100))]
    members: u32,
    /// How many nodes each member has
    #[arg(long, value_name = "M", default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=5000))]
    nodes: u32,
    /// How many pods a node can run
    #[arg(long, value_name = "P", default_value_t = 110, value_parser = clap::value_parser!(u32).range(0..=10000))]
    pods_per_node: u32,
    /// Folder for the kubeconfigs
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Don't install the CRDs of fedrs on the host
    #[arg(long)]
    no_crds: bool,
}

/// Runs the clusters until a signal ends them.
pub(crate) async fn run(args: SimArgs) -> anyhow::Result<()> {
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
    let folder = Folder::claim(&args.dir)?;
    let fleet = Fleet::start(folder, &sizes, &Settings::default()).await?;
    if !args.no_crds {
        fleet.install_crds()?;
    }
    let mut out = io::stdout();
    let told = out
        .write_all(welcome(&args, &names).as_bytes())
        .and_then(|()| out.flush());
    match told {
        // Who was to use the clusters has gone.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        told => {
            told.context("failed to write to standard output")?;
            cancel.cancelled().await;
        }
    }
    // Nothing is kept, so that a cluster that is slow to end may as well be dropped.
    let _ = tokio::time::timeout(STOP_TIMEOUT, fleet.stop()).await;
    Ok(())
}

/// The members of the demo first, then numbers.
fn member_name(number: u32) -> String {
    let index = usize::try_from(number).expect("at most 100 members") - 1;
    let of_the_demo = demo::story::MEMBERS.get(index);
    of_the_demo.map_or_else(
        || format!("member-{number}"),
        |member| member.name.to_owned(),
    )
}

/// What is there, and what to type next.
fn welcome(args: &SimArgs, names: &[String]) -> String {
    let dir = args.dir.display();
    let mut text = format!(
        "host       {dir}/host.yaml{}\n",
        if args.no_crds {
            ""
        } else {
            "  (the CRDs of fedrs are installed; --no-crds leaves them out)"
        }
    );
    for name in names {
        let _ = writeln!(
            text,
            "{name:<10} {dir}/members/{name}.yaml  {} nodes for {} pods each",
            args.nodes, args.pods_per_node
        );
    }
    let _ = write!(
        text,
        "\nNext, in another terminal:\n  \
         fedrs controller --kubeconfig {dir}/host.yaml --members {dir}/members\n  \
         export KUBECONFIG={dir}/host.yaml\n  \
         kubectl apply -f config/samples/hello.yaml\n  \
         kubectl get frs,mc\n"
    );
    if let Some(first) = names.first() {
        let _ = writeln!(
            text,
            "  kubectl --kubeconfig {dir}/members/{first}.yaml get nodes,rs"
        );
    }
    text.push_str("\nCtrl-C ends the clusters; nothing in them is kept.\n");
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
    fn says_what_is_there_and_what_to_type_next() {
        let names: Vec<_> = (1..=4).map(member_name).collect();
        insta::assert_snapshot!(welcome(&args(4, false), &names));
    }

    #[test]
    fn without_members_and_crds_it_promises_none() {
        let text = welcome(&args(0, true), &[]);
        assert!(
            !text.contains("CRDs") && !text.contains("get nodes"),
            "{text}"
        );
    }
}
