//! The permissions that the controller needs for Maintenances: a rule for each kind of request, with its reason.

use controller_base::rbac::{Grant, grant};

const CORE: &str = "";
const FEDRS: &str = "fedrs.dev";

/// On the host, cluster-wide.
#[must_use]
pub fn host() -> Vec<Grant> {
    vec![
        grant(
            "List and watch Maintenances; add and remove the finalizer",
            (FEDRS, "maintenances"),
            &["list", "watch", "patch"],
        ),
        grant(
            "Update the status, which also holds the clusters that have marks",
            (FEDRS, "maintenances/status"),
            &["patch"],
        ),
    ]
}

/// In a member, cluster-wide, besides the lists of nodes and pods that the controller makes anyway.
#[must_use]
pub fn member() -> Vec<Grant> {
    vec![
        grant(
            "Cordon, label and annotate the nodes of a Maintenance; remove that when it has ended",
            (CORE, "nodes"),
            &["patch"],
        ),
        grant(
            "Show in the status of a Maintenance which pods wait before they leave their nodes",
            (FEDRS, "migrationrequests"),
            &["list"],
        ),
    ]
}
