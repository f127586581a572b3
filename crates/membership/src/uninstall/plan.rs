//! What an uninstall does, and what remains: for the user to confirm.

use std::fmt;

use derive_more::Display;
use fedrs_api::pluralize;

/// What an uninstall does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UninstallPlan {
    /// The number of FederatedReplicaSets that lose the finalizer of fedrs.
    pub sets: usize,
    /// The names of the members that are removed.
    pub members: Vec<String>,
    /// The namespace that is deleted if it is empty.
    pub namespace: Option<String>,
}

impl UninstallPlan {
    /// Whether there is nothing to do.
    pub(super) fn is_empty(&self) -> bool {
        self.sets == 0 && self.members.is_empty() && self.namespace.is_none()
    }
}

impl fmt::Display for UninstallPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.sets > 0 {
            writeln!(
                f,
                "  removes the finalizers of {}; deleting them no longer waits for members",
                federated_sets(self.sets)
            )?;
        }
        if !self.members.is_empty() {
            writeln!(
                f,
                "  removes {} ({}) with all objects that join created",
                pluralize(self.members.len(), "member"),
                self.members.join(", ")
            )?;
        }
        if let Some(namespace) = &self.namespace {
            writeln!(f, "  deletes the namespace {namespace} if it is then empty")?;
        }
        f.write_str("ReplicaSets in the members keep running.")
    }
}

/// What remains on the host after an uninstall.
#[derive(Clone, Copy, Debug, Display, PartialEq, Eq)]
pub enum Remaining {
    /// Neither CRDs nor FederatedReplicaSets.
    #[display("The CRDs are not installed.")]
    Nothing,
    /// The CRDs, and this number of FederatedReplicaSets.
    #[display("{} and the CRDs remain: run `fedrs crds | kubectl delete -f -` to delete them.", federated_sets(*sets))]
    Crds {
        /// The number of FederatedReplicaSets.
        sets: usize,
    },
    /// The CRDs, which other federations need.
    #[display(
        "{} and the CRDs remain. Other federations need the CRDs: they have {}.",
        federated_sets(*sets),
        federated_sets(*other_sets)
    )]
    SharedCrds {
        /// The number of FederatedReplicaSets.
        sets: usize,
        /// The number of FederatedReplicaSets of other federations.
        other_sets: usize,
    },
}

fn federated_sets(count: usize) -> String {
    pluralize(count, "FederatedReplicaSet")
}
