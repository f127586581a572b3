//! What an uninstall does, and what remains: for the user to confirm.

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

/// What remains on the host after an uninstall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remaining {
    /// Neither CRDs nor FederatedReplicaSets.
    Nothing,
    /// The CRDs, and this number of FederatedReplicaSets.
    Crds {
        /// The number of FederatedReplicaSets.
        sets: usize,
    },
    /// The CRDs, which other federations need.
    SharedCrds {
        /// The number of FederatedReplicaSets.
        sets: usize,
        /// The number of FederatedReplicaSets of other federations.
        other_sets: usize,
    },
}
