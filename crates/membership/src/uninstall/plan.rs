//! What an uninstall does, and what remains: for the user to confirm.

use std::fmt;

use derive_more::Display;
use fedrs_api::{SetKind, pluralize};

/// What an uninstall does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UninstallPlan {
    /// The sets that lose the finalizer of fedrs.
    pub sets: SetCounts,
    /// The names of the Maintenances that lose it, too.
    pub maintenances: Vec<String>,
    /// The names of the AvailabilitySets that lose it, too.
    pub availability_sets: Vec<String>,
    /// The names of the members that are removed.
    pub members: Vec<String>,
    /// The namespace that is deleted if it is empty.
    pub namespace: Option<String>,
}

impl UninstallPlan {
    /// Whether there is nothing to do.
    pub(super) fn is_empty(&self) -> bool {
        self.sets.is_zero()
            && self.maintenances.is_empty()
            && self.availability_sets.is_empty()
            && self.members.is_empty()
            && self.namespace.is_none()
    }
}

impl fmt::Display for UninstallPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.sets.is_zero() {
            writeln!(
                f,
                "  removes the finalizers of {}; deleting them no longer waits for members",
                self.sets
            )?;
        }
        if !self.maintenances.is_empty() {
            writeln!(
                f,
                "  removes the finalizers of {} ({}): nodes keep their marks; to remove these, end them first, with a controller",
                pluralize(self.maintenances.len(), "Maintenance"),
                self.maintenances.join(", ")
            )?;
        }
        if !self.availability_sets.is_empty() {
            writeln!(
                f,
                "  removes the finalizers of {} ({}): what limits evictions in members stays; to remove that, delete them first, with a controller",
                pluralize(self.availability_sets.len(), "AvailabilitySet"),
                self.availability_sets.join(", ")
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
        f.write_str("ReplicaSets and Deployments in the members keep running.")
    }
}

/// What remains on the host after an uninstall.
#[derive(Clone, Copy, Debug, Display, PartialEq, Eq)]
pub enum Remaining {
    /// Neither CRDs nor sets.
    #[display("The CRDs are not installed.")]
    Nothing,
    /// The CRDs, and these sets.
    #[display("{sets} and the CRDs remain: run `fedrs crds | kubectl delete -f -` to delete them.")]
    Crds {
        /// The sets.
        sets: SetCounts,
    },
    /// The CRDs, which other federations need.
    #[display(
        "{sets} and the CRDs remain. Other federations need the CRDs: they have {other_sets}."
    )]
    SharedCrds {
        /// The sets.
        sets: SetCounts,
        /// The sets of other federations.
        other_sets: SetCounts,
    },
}

/// How many sets there are of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetCounts {
    /// FederatedReplicaSets.
    pub replica_sets: usize,
    /// FederatedDeployments.
    pub deployments: usize,
}

impl SetCounts {
    /// Whether there is none.
    pub(super) fn is_zero(self) -> bool {
        self == Self::default()
    }
}

impl FromIterator<SetKind> for SetCounts {
    fn from_iter<T: IntoIterator<Item = SetKind>>(kinds: T) -> Self {
        let mut counts = Self::default();
        for kind in kinds {
            match kind {
                SetKind::FederatedReplicaSet => counts.replica_sets += 1,
                SetKind::FederatedDeployment => counts.deployments += 1,
            }
        }
        counts
    }
}

/// `2 FederatedReplicaSets and 1 FederatedDeployment`. Names the kinds that there are, or the first.
impl fmt::Display for SetCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let replica_sets = pluralize(self.replica_sets, SetKind::FederatedReplicaSet.as_str());
        let deployments = pluralize(self.deployments, SetKind::FederatedDeployment.as_str());
        match (self.replica_sets, self.deployments) {
            (_, 0) => f.write_str(&replica_sets),
            (0, _) => f.write_str(&deployments),
            _ => write!(f, "{replica_sets} and {deployments}"),
        }
    }
}
