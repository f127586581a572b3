//! The permissions of the controller: a rule for each kind of request, with its reason. This is the only list of them.

use controller_base::rbac::{Account, Grant, Manifest, grant};
use fedrs_api::names;

use crate::controller::LEASE;

const CORE: &str = "";
const APPS: &str = "apps";
const POLICY: &str = "policy";
const FEDRS: &str = "fedrs.dev";
const COORDINATION: &str = "coordination.k8s.io";

/// The objects that grant the permissions to a ServiceAccount: by default `fedrs-replica-set-controller` in the usual namespace.
#[must_use]
pub fn manifests(namespace: Option<&str>, account: Option<&str>) -> Vec<Manifest> {
    let account = Account {
        namespace: namespace.unwrap_or(names::SYSTEM_NAMESPACE),
        name: account.unwrap_or(LEASE),
    };
    account.manifests(cluster(), own_namespace())
}

fn cluster() -> Vec<Grant> {
    vec![
        grant(
            "List and watch LocalReplicaSets; read one that has changed, and before pods are adopted or created for it",
            (FEDRS, "localreplicasets"),
            &["get", "list", "watch"],
        ),
        grant(
            "Update the status, which also holds what has begun",
            (FEDRS, "localreplicasets/status"),
            &["patch"],
        ),
        grant(
            "Make a set the owner of pods that its deletion in the foreground waits for",
            (FEDRS, "localreplicasets/finalizers"),
            &["update"],
        ),
        grant(
            "List and watch pods; read one that has changed, or whose creation was not answered",
            (CORE, "pods"),
            &["get", "list", "watch"],
        ),
        grant(
            "Create and remove pods; update, adopt and release them",
            (CORE, "pods"),
            &["create", "delete", "patch"],
        ),
        grant(
            "Take a pod out of endpoints while it is updated in place",
            (CORE, "pods/status"),
            &["patch"],
        ),
        grant(
            "Change CPU and memory of running pods, if a set asks for it",
            (CORE, "pods/resize"),
            &["patch"],
        ),
        grant(
            "List and watch the nodes: pods have to leave those that do not run them; read one that is new",
            (CORE, "nodes"),
            &["get", "list", "watch"],
        ),
        grant(
            "List and watch PodDisruptionBudgets: at most one matches a pod; read that of a set after a write that failed",
            (POLICY, "poddisruptionbudgets"),
            &["get", "list", "watch"],
        ),
        grant(
            "Keep a PodDisruptionBudget for each set, so that a drain keeps to its budget",
            (POLICY, "poddisruptionbudgets"),
            &["create", "patch", "delete"],
        ),
        grant(
            "List and watch MigrationPolicies: when pods may leave nodes that they have to leave",
            (FEDRS, "migrationpolicies"),
            &["list", "watch"],
        ),
        grant(
            "List and watch MigrationRequests; keep one for each pod that has to leave its node, as long as the history is kept",
            (FEDRS, "migrationrequests"),
            &["get", "list", "watch", "create", "delete"],
        ),
        grant(
            "Update how far migrations are",
            (FEDRS, "migrationrequests/status"),
            &["patch"],
        ),
        grant(
            "Read the ReplicaSets of pods that are migrated: which MigrationPolicy they have, and which pods they lack",
            (APPS, "replicasets"),
            &["get"],
        ),
        grant(
            "Read whether a Deployment is being updated whose pod is migrated",
            (APPS, "deployments"),
            &["get"],
        ),
        grant(
            "Evict pods of ReplicaSets within their PodDisruptionBudgets",
            (CORE, "pods/eviction"),
            &["create"],
        ),
        grant(
            "Keep a revision of each template, for rollbacks; delete the oldest ones",
            (APPS, "controllerrevisions"),
            &["get", "list", "create", "patch", "delete"],
        ),
        grant(
            "Create events; patch the count of repeated ones",
            (CORE, "events"),
            &["create", "patch"],
        ),
    ]
}

fn own_namespace() -> Vec<Grant> {
    vec![grant(
        "Elect the leader",
        (COORDINATION, "leases"),
        &["get", "create", "update"],
    )]
}
