//! `fedrs join`: makes a cluster a member.

use std::{collections::BTreeSet, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::bail;
use clap::Args;
use fedrs_api::{NAMESPACES_MAX, names};
use membership::{
    WriteMode,
    join::{JoinNamespaces, JoinRequest, join},
    kubeconfig::KubeconfigSource,
};

use crate::{host::HostOfMembers, output::TerminalReporter, values};

/// Make a cluster a member of the federation
///
/// The command creates a ServiceAccount for the controller in the member (`fedrs rbac member` prints its permissions),
/// stores a kubeconfig with a token of it in a Secret on the host, creates a MemberCluster, and waits until the controller
/// uses the member.
///
/// Before the first write, the command checks that the join can succeed. Run it again to complete an interrupted join, or to
/// replace an expired token.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  # Join a cluster with a kubeconfig for each cluster
  fedrs join eu-west --host-kubeconfig host.yaml --member-kubeconfig eu-west.yaml

  # Join a cluster with two contexts of one kubeconfig
  fedrs join eu-west --host-context host --member-context eu-west

  # Join a cluster for two namespaces, with permissions in these only
  fedrs join eu-west --member-context eu-west --namespaces shop,blog

  # Join a cluster, and run the controller of LocalReplicaSets in it
  fedrs join eu-west --member-context eu-west --with-replica-sets --replica-sets-image registry.example/fedrs:0.1.0

  # Join a cluster whose endpoints `fedrs discovery` answers
  fedrs join eu-west --member-context eu-west --with-discovery

  # Join a kind cluster, which the controller reaches at another address
  fedrs join kind-2 --member-context kind-2 --member-server https://kind-2-control-plane:6443")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command"
)]
pub(crate) struct JoinArgs {
    /// Name of the member, a DNS label: placement preferences refer to it
    #[arg(value_parser = values::dns_label)]
    name: String,
    /// Labels to set on the MemberCluster, for your own use: placement preferences select clusters by name only
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',', value_parser = values::label)]
    labels: Vec<(String, String)>,
    /// Name of the federation. By default the federation without a name
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true, value_parser = values::federation)]
    federation: String,
    /// Namespace of the controller on the host, and of its ServiceAccount in the member
    #[arg(long, value_name = "NAME", default_value = names::SYSTEM_NAMESPACE, value_parser = values::dns_label)]
    namespace: String,
    /// Namespaces that the member takes, at most 50: the controller gets permissions in these only. They are created if they
    /// do not exist. By default those of an earlier join, or all
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = values::dns_label, conflicts_with = "all_namespaces")]
    namespaces: Vec<String>,
    /// Let the member take all namespaces, after a join with --namespaces
    #[arg(long)]
    all_namespaces: bool,
    /// Install the controller of LocalReplicaSets in the member, with its CRD, unless they are installed. It works without the host.
    /// `fedrs unjoin` with a kubeconfig of the member removes it, and the CRD if no LocalReplicaSet is left
    #[arg(long)]
    with_replica_sets: bool,
    /// Image of the controller of LocalReplicaSets, with the program fedrs
    #[arg(long, value_name = "IMAGE", requires = "with_replica_sets", default_value = concat!("fedrs:", env!("CARGO_PKG_VERSION")))]
    replica_sets_image: String,
    /// Create an account of its own for `fedrs discovery` in the member, which may list and watch pods, nodes and Services, and a
    /// Secret with a token of it on the host. The controller renews this token, too
    #[arg(long)]
    with_discovery: bool,
    /// Requested lifetime of each token, which the controller renews every day: the time that the member can be without a controller
    #[arg(long, value_name = "DURATION", default_value = "168h", value_parser = values::token_duration)]
    token_duration: Duration,
    /// How long to wait until the controller uses the member
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = values::duration)]
    timeout: Duration,
    /// Validate all writes on the API servers without persisting them
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    host: HostOfMembers,
    /// Kubeconfig of the member, for a user who may create roles. By default $KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    member_kubeconfig: Option<PathBuf>,
    /// Context in the member's kubeconfig. By default the current context
    #[arg(long, value_name = "NAME")]
    member_context: Option<String>,
    /// Address at which the controller connects to the member. By default the address in the member's kubeconfig
    #[arg(long, value_name = "URL", value_parser = values::https_url)]
    member_server: Option<String>,
    /// Store a kubeconfig with insecure-skip-tls-verify, which the controller rejects unless its configuration sets
    /// secretKubeconfigs.allowInsecure
    #[arg(long)]
    allow_insecure: bool,
}

/// Joins the cluster, and waits until the member is ready.
pub(crate) async fn run(args: JoinArgs) -> anyhow::Result<ExitCode> {
    let member = KubeconfigSource {
        file: args.member_kubeconfig,
        context: args.member_context,
    };
    if member.is_default() {
        bail!("no member cluster: set --member-kubeconfig, --member-context, or both");
    }
    let namespaces = match (args.all_namespaces, &*args.namespaces) {
        (true, _) => JoinNamespaces::All,
        (false, []) => JoinNamespaces::Unchanged,
        (false, names) => JoinNamespaces::Listed(listed(names, &args.namespace)?),
    };
    let host = args.host.client().await?;
    let request = JoinRequest {
        name: args.name,
        labels: args.labels.into_iter().collect(),
        federation: args.federation,
        namespace: args.namespace,
        namespaces,
        token_duration: args.token_duration,
        timeout: args.timeout,
        mode: if args.dry_run {
            WriteMode::DryRun
        } else {
            WriteMode::Persist
        },
        member,
        member_server: args.member_server,
        with_discovery: args.with_discovery,
        replica_sets: args.with_replica_sets.then_some(args.replica_sets_image),
        allow_insecure: args.allow_insecure,
    };
    join(&host, request, &mut TerminalReporter).await?;
    Ok(ExitCode::SUCCESS)
}

/// The namespaces in order, each once. Fails if they are too many, or contain a system namespace.
fn listed(names: &[String], of_controller: &str) -> anyhow::Result<Vec<String>> {
    let names: BTreeSet<String> = names.iter().cloned().collect();
    if names.len() > NAMESPACES_MAX {
        bail!(
            "--namespaces: at most {NAMESPACES_MAX} namespaces can be listed, and {} are: leave it out, and set \
             spec.namespaces.selector of the MemberCluster",
            names.len()
        );
    }
    let is_system =
        |name: &&String| name.starts_with(names::KUBERNETES_NAMESPACES) || *name == of_controller;
    if let Some(name) = names.iter().find(is_system) {
        bail!("--namespaces: {name} is a system namespace, in which fedrs changes nothing");
    }
    Ok(names.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s1_at_most_fifty_namespaces_and_no_system_namespace_are_listed() {
        let names = |count: usize| {
            (0..count)
                .map(|number| format!("team-{number:02}"))
                .collect::<Vec<_>>()
        };
        let error = |names: &[String]| listed(names, "fedrs-system").unwrap_err().to_string();
        assert_eq!(listed(&names(50), "fedrs-system").unwrap(), names(50));
        assert!(error(&names(51)).contains("at most 50 namespaces can be listed, and 51 are"));
        for system in ["kube-public", "fedrs-system"] {
            let error = error(&["shop".to_owned(), system.to_owned()]);
            assert!(
                error.contains(&format!("{system} is a system namespace")),
                "{error}"
            );
        }
    }
}
