//! `fedrs rbac`: prints the controller's RBAC manifests, to review or apply.

use std::process::ExitCode;

use anyhow::ensure;
use clap::{Args, ValueEnum};
use controller_base::rbac::{Manifest, to_yaml};
use federation_controller::rbac::ControllerAccount;
use fedrs_api::ClusterType;

use crate::{output, values};

/// Print the RBAC manifests that the controller needs on the host or in a member
///
/// A comment states the reason of each rule. `fedrs join` creates the same objects in a member; their names contain an
/// identifier of the host, so that several hosts can share a member.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  # Review the permissions of the controller in a member
  fedrs rbac member

  # Grant the permissions on the host, in another namespace than fedrs-system
  fedrs rbac host --namespace fleet | kubectl apply -f -")]
pub(crate) struct RbacArgs {
    /// Which cluster the manifests are for
    #[arg(value_enum)]
    cluster: ClusterArg,
    /// Namespace of the ServiceAccount
    #[arg(long, value_name = "NAME", value_parser = values::dns_label)]
    namespace: Option<String>,
    /// Name of the ServiceAccount, its roles and bindings
    #[arg(long, value_name = "NAME", value_parser = values::dns_label)]
    account: Option<String>,
    /// In a member: grant permissions in these namespaces only, as `fedrs join --namespaces` does
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = values::dns_label)]
    namespaces: Vec<String>,
}

/// The values of a [`ClusterType`], with their help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ClusterArg {
    /// The cluster with the FederatedReplicaSets
    Host,
    /// A cluster that runs replicas
    Member,
    /// A cluster in which `fedrs replica-set-controller` runs
    ReplicaSetController,
    /// The cluster with the EndpointSets, for `fedrs discovery`
    DiscoveryHost,
    /// The same, for `fedrs discovery --write-status`
    DiscoveryWriter,
    /// In addition to discovery-host or discovery-writer, for `fedrs discovery --authorization=SubjectAccessReview`
    DiscoveryAuthorizer,
    /// A cluster with endpoints, for `fedrs discovery`
    DiscoveryMember,
    /// The cluster with the Lease of `fedrs mcs-controller`
    McsHost,
    /// A cluster that exports and imports Services, for `fedrs mcs-controller`
    McsMember,
}

/// Prints the objects as YAML.
pub(crate) fn run(args: RbacArgs) -> anyhow::Result<ExitCode> {
    // Wider permissions than were asked for must not be printed as if they were those.
    ensure!(
        args.cluster == ClusterArg::Member || args.namespaces.is_empty(),
        "--namespaces is for a member: the controller needs its other permissions in all namespaces"
    );
    let (namespace, account) = (args.namespace.as_deref(), args.account.as_deref());
    let of_discovery = |cluster| discovery::rbac::manifests(cluster, namespace, account);
    let print = |manifests: &[Manifest]| Ok(output::print(&to_yaml(manifests)));
    let cluster = match args.cluster {
        ClusterArg::Host => ClusterType::Host,
        ClusterArg::Member => ClusterType::Member,
        ClusterArg::ReplicaSetController => {
            return print(&local_controller::rbac::manifests(namespace, account));
        }
        ClusterArg::DiscoveryHost => return print(&of_discovery(ClusterType::Host)),
        ClusterArg::DiscoveryWriter => {
            return print(&discovery::rbac::writer_manifests(namespace, account));
        }
        ClusterArg::McsHost => {
            return print(&mcs_controller::rbac::host_manifests(namespace, account));
        }
        ClusterArg::McsMember => {
            return print(&mcs_controller::rbac::member_manifests(namespace, account));
        }
        ClusterArg::DiscoveryAuthorizer => {
            return print(&discovery::rbac::authorizer_manifests(namespace, account));
        }
        ClusterArg::DiscoveryMember => return print(&of_discovery(ClusterType::Member)),
    };
    let default = ControllerAccount::usual(cluster);
    let account = ControllerAccount {
        namespace: args.namespace.unwrap_or(default.namespace),
        name: args.account.unwrap_or(default.name),
        namespaces: (!args.namespaces.is_empty()).then_some(args.namespaces),
        ..default
    };
    Ok(output::print(&account.to_yaml()))
}
