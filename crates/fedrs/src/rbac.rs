//! `fedrs rbac`: prints what the controller may do, to be read, reviewed or applied.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use federation_controller::rbac::{Access, Place};

use crate::{print, values};

/// Print what the controller may do, each rule with its reason: on the host, or in a member
///
/// `fedrs join` creates the same in a member, under a name of its own for each host.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  fedrs rbac member                                       # to be read
  fedrs rbac host --namespace fleet | kubectl apply -f -")]
pub(crate) struct RbacArgs {
    /// Where
    #[arg(value_enum)]
    place: Where,
    /// The namespace of the account
    #[arg(long, value_name = "NAME", value_parser = values::dns_label)]
    namespace: Option<String>,
    /// The name of the account, its roles and bindings
    #[arg(long, value_name = "NAME", value_parser = values::dns_label)]
    account: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Where {
    /// The cluster that holds the FederatedReplicaSets
    Host,
    /// A cluster that their replicas run in
    Member,
}

/// Prints the objects as YAML.
pub(crate) fn run(args: RbacArgs) -> ExitCode {
    let usual = Access::usual(match args.place {
        Where::Host => Place::Host,
        Where::Member => Place::Member,
    });
    let access = Access {
        namespace: args.namespace.unwrap_or(usual.namespace),
        name: args.account.unwrap_or(usual.name),
        ..usual
    };
    print::text(&access.to_yaml())
}
