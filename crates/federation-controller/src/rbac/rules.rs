//! The rules, each with the requests that need it.

use controller_base::rbac::{Grant, RBAC, grant, list, named};
use k8s_openapi::api::rbac::v1::PolicyRule;

const CORE: &str = "";
const APPS: &str = "apps";
const FEDRS: &str = "fedrs.dev";
const COORDINATION: &str = "coordination.k8s.io";

/// In a member, in each namespace in which local workloads may be, or cluster-wide.
pub(super) fn member_workloads() -> Vec<Grant> {
    vec![
        grant(
            "List and watch the local ReplicaSets of the federation, by label",
            (APPS, "replicasets"),
            &["list", "watch"],
        ),
        grant(
            "List and watch the pods of these ReplicaSets, by label",
            (CORE, "pods"),
            &["list", "watch"],
        ),
        grant(
            "Label the pods that a local ReplicaSet adopted; remove the labels when the ReplicaSet is released",
            (CORE, "pods"),
            &["patch"],
        ),
        grant(
            "Create local ReplicaSets",
            (APPS, "replicasets"),
            &["create"],
        ),
        grant(
            "Scale local ReplicaSets, update the template, adopt an existing one, remove the labels when it is released",
            (APPS, "replicasets"),
            &["patch"],
        ),
        grant(
            "Find out who changed a ReplicaSet, and whether an existing one may be adopted",
            (APPS, "replicasets"),
            &["get"],
        ),
        grant(
            "Replace a ReplicaSet that has another selector; delete local ReplicaSets if deletionPolicy is Delete",
            (APPS, "replicasets"),
            &["delete"],
        ),
        grant(
            "List and watch the local Deployments of the federation, by label",
            (APPS, "deployments"),
            &["list", "watch"],
        ),
        grant(
            "Create local Deployments",
            (APPS, "deployments"),
            &["create"],
        ),
        grant(
            "Scale local Deployments, roll out the template, adopt an existing one, remove the labels when it is released",
            (APPS, "deployments"),
            &["patch"],
        ),
        grant(
            "Find out who changed a Deployment, and whether an existing one may be adopted",
            (APPS, "deployments"),
            &["get"],
        ),
        grant(
            "Replace a Deployment that has another selector; delete local Deployments if deletionPolicy is Delete",
            (APPS, "deployments"),
            &["delete"],
        ),
        grant(
            "List and watch the LocalReplicaSets of the federation, by label, if a FederatedDeployment has localKind: LocalReplicaSet",
            (FEDRS, "localreplicasets"),
            &["list", "watch"],
        ),
        grant(
            "Create, scale, roll out, adopt, release and delete LocalReplicaSets, as local Deployments",
            (FEDRS, "localreplicasets"),
            &["create", "patch", "get", "delete"],
        ),
    ]
}

/// In a member, cluster-wide, if local ReplicaSets may be in any namespace.
pub(super) fn member_namespaces() -> Vec<Grant> {
    vec![grant(
        "Create the namespace of a local ReplicaSet if it does not exist",
        (CORE, "namespaces"),
        &["create"],
    )]
}

/// In a member, what is not in a namespace. `account` is the name of the controller's own role.
pub(super) fn member_cluster(account: &str) -> Vec<Grant> {
    vec![
        Grant {
            why: "Probe the API server, and read its version",
            rule: PolicyRule {
                non_resource_urls: Some(list(&["/readyz", "/version"])),
                verbs: list(&["get"]),
                ..PolicyRule::default()
            },
        },
        grant(
            "List and watch the nodes: pods on a node that is not ready do not run; sum up their allocatable resources",
            (CORE, "nodes"),
            &["list", "watch"],
        ),
        grant(
            "List the Leases of the nodes (kube-node-lease) while the cluster returns from an outage: each shows that its node is back",
            (COORDINATION, "leases"),
            &["list"],
        ),
        named(
            "Let `fedrs unjoin` delete this role, which owns the other objects of the account",
            (RBAC, "clusterroles"),
            &[account],
            &["delete"],
        ),
    ]
}

/// In a member, in the account's own namespace.
pub(super) fn member_namespace(account: &str) -> Vec<Grant> {
    vec![named(
        "Renew its own token before it expires",
        (CORE, "serviceaccounts/token"),
        &[account],
        &["create"],
    )]
}

/// On the host, cluster-wide.
pub(super) fn host() -> Vec<Grant> {
    vec![
        named(
            "Read the uid of kube-system, which identifies the federation without a name",
            (CORE, "namespaces"),
            &["kube-system"],
            &["get"],
        ),
        grant(
            "List and watch the namespaces: members select them by their labels, some of which are copied to members",
            (CORE, "namespaces"),
            &["list", "watch"],
        ),
        grant(
            "List and watch FederatedReplicaSets; add and remove the finalizer",
            (FEDRS, "federatedreplicasets"),
            &["list", "watch", "patch"],
        ),
        grant(
            "Update the status, which also holds the state that a new leader needs",
            (FEDRS, "federatedreplicasets/status"),
            &["patch"],
        ),
        grant(
            "List and watch FederatedDeployments; add and remove the finalizer; lend parts of the budgets of AvailabilitySets to their rollouts",
            (FEDRS, "federateddeployments"),
            &["list", "watch", "patch"],
        ),
        grant(
            "Update the status, which also holds what is lent to the members",
            (FEDRS, "federateddeployments/status"),
            &["patch"],
        ),
        grant(
            "Keep a revision of each template of a FederatedDeployment, for rollbacks; delete the oldest ones",
            (APPS, "controllerrevisions"),
            &["get", "list", "create", "patch", "delete"],
        ),
        grant(
            "List and watch the members; create those of the kubeconfig files",
            (FEDRS, "memberclusters"),
            &["get", "list", "watch", "create"],
        ),
        grant(
            "Update the status of the members",
            (FEDRS, "memberclusters/status"),
            &["patch"],
        ),
        grant(
            "Create events; patch the count of repeated ones",
            (CORE, "events"),
            &["create", "patch"],
        ),
    ]
}

/// On the host, in the controller's own namespace.
pub(super) fn host_namespace() -> Vec<Grant> {
    vec![
        grant(
            "Read the kubeconfigs of the members; update a renewed token",
            (CORE, "secrets"),
            &["get", "list", "watch", "update"],
        ),
        grant(
            "Elect the leader",
            (COORDINATION, "leases"),
            &["get", "create", "update"],
        ),
    ]
}
