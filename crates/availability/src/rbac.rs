//! The permissions that the controller needs for AvailabilitySets: a rule for each kind of request, with its reason.

use controller_base::rbac::{Grant, grant};

const FEDRS: &str = "fedrs.dev";
const POLICY: &str = "policy";

/// On the host, cluster-wide.
#[must_use]
pub fn host() -> Vec<Grant> {
    vec![
        grant(
            "List and watch AvailabilitySets; add and remove the finalizer",
            (FEDRS, "availabilitysets"),
            &["list", "watch", "patch"],
        ),
        grant(
            "Update the status, which also holds what is lent to members",
            (FEDRS, "availabilitysets/status"),
            &["patch"],
        ),
    ]
}

/// In a member, in each namespace in which local workloads may be, or cluster-wide; besides the lists of nodes, pods and LocalReplicaSets
/// that the controller makes anyway.
#[must_use]
pub fn member() -> Vec<Grant> {
    vec![grant(
        "Lend parts of the budget of an AvailabilitySet to evictions; see PodDisruptionBudgets of others that match its pods",
        (POLICY, "poddisruptionbudgets"),
        &["list", "create", "patch", "delete"],
    )]
}
