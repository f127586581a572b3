//! The FederatedDeployment that a command names, and the name of an object in what the command prints.

use clap::Args;
use membership::rollout::{RolloutKind, Target};

use crate::set_name::NAME_OF_KIND;

/// The FederatedDeployment of a command.
#[derive(Args)]
pub(super) struct NameArgs {
    /// The FederatedDeployment. fdeploy/NAME works as well
    #[arg(value_name = NAME_OF_KIND, required = true)]
    pub(super) name: String,
}

/// `federateddeployment.fedrs.dev/web`, as `kubectl` prints it.
pub(super) fn kubectl_name<K: RolloutKind>(target: Target<'_, K>) -> String {
    format!("{}.fedrs.dev/{}", target.kind(), target.name)
}
