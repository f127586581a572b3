//! The rules, each with the requests that need it.

use k8s_openapi::api::rbac::v1::PolicyRule;

/// A rule, and what it is for.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    /// What is done with it: a sentence without a full stop.
    pub why: &'static str,
    /// The rule.
    pub rule: PolicyRule,
}

const CORE: &str = "";
const APPS: &str = "apps";
const FEDRS: &str = "fedrs.dev";
const RBAC: &str = "rbac.authorization.k8s.io";
const COORDINATION: &str = "coordination.k8s.io";

/// In a member, cluster-wide: the sets may be in every namespace. `account` names the controller's own role.
pub(super) fn member(account: &str) -> Vec<Grant> {
    vec![
        Grant {
            why: "Asks whether the member lives (F33), and which version it has",
            rule: PolicyRule {
                non_resource_urls: Some(list(&["/readyz", "/version"])),
                verbs: list(&["get"]),
                ..PolicyRule::default()
            },
        },
        grant(
            "Follows the federation's sets, by label",
            (APPS, "replicasets"),
            &["list", "watch"],
        ),
        grant(
            "Follows the pods of these sets, by label",
            (CORE, "pods"),
            &["list", "watch"],
        ),
        grant(
            "Puts the marks on pods that a set adopted (F30), takes them off with the set's (F5)",
            (CORE, "pods"),
            &["patch"],
        ),
        grant(
            "Creates the set where there is none",
            (APPS, "replicasets"),
            &["create"],
        ),
        grant(
            "Creates the set's namespace where there is none",
            (CORE, "namespaces"),
            &["create"],
        ),
        grant(
            "Changes a set's number of replicas",
            (APPS, "replicasets"),
            &["patch"],
        ),
        grant(
            "Writes a new template, tells who changed a set, takes over one of the same name (F29), takes the marks off (F5)",
            (APPS, "replicasets"),
            &["get", "update"],
        ),
        grant(
            "Replaces a set with another selector (F29); deletes the sets of a deleted FederatedReplicaSet if it says so (F5)",
            (APPS, "replicasets"),
            &["delete"],
        ),
        grant(
            "Tells how many nodes there are, and what they can give",
            (CORE, "nodes"),
            &["list"],
        ),
        named(
            "Lets `fedrs unjoin` take all of this away: the account's other objects are owned by this role",
            (RBAC, "clusterroles"),
            &[account],
            &["delete"],
        ),
    ]
}

/// In a member, in the account's own namespace.
pub(super) fn member_namespace(account: &str) -> Vec<Grant> {
    vec![named(
        "Renews its own token before it expires",
        (CORE, "serviceaccounts/token"),
        &[account],
        &["create"],
    )]
}

/// On the host, cluster-wide.
pub(super) fn host() -> Vec<Grant> {
    vec![
        named(
            "Reads the uid of kube-system: the id of the federation without a name (F40)",
            (CORE, "namespaces"),
            &["kube-system"],
            &["get"],
        ),
        grant(
            "Follows what users want, puts its finalizer on and takes it off (F5)",
            (FEDRS, "federatedreplicasets"),
            &["list", "watch", "patch"],
        ),
        grant(
            "Tells how it stands (F6), and keeps there what must outlive the process",
            (FEDRS, "federatedreplicasets/status"),
            &["patch"],
        ),
        grant(
            "Follows the members, and adds those of the folder of kubeconfigs (F36)",
            (FEDRS, "memberclusters"),
            &["get", "list", "watch", "create"],
        ),
        grant(
            "Tells how the members are",
            (FEDRS, "memberclusters/status"),
            &["patch"],
        ),
        grant(
            "Tells each move and each error (F38); the same again is counted",
            (CORE, "events"),
            &["create", "patch"],
        ),
    ]
}

/// On the host, in the controller's own namespace.
pub(super) fn host_namespace() -> Vec<Grant> {
    vec![
        grant(
            "Reads the kubeconfigs of members, and writes them with a renewed token",
            (CORE, "secrets"),
            &["get", "list", "watch", "update"],
        ),
        grant(
            "Leads, one controller at a time",
            (COORDINATION, "leases"),
            &["get", "create", "update"],
        ),
    ]
}

fn grant(why: &'static str, resource: (&str, &str), verbs: &[&str]) -> Grant {
    named(why, resource, &[], verbs)
}

/// For the objects of these names alone; of every name if there are none.
fn named(
    why: &'static str,
    (group, resource): (&str, &str),
    names: &[&str],
    verbs: &[&str],
) -> Grant {
    let rule = PolicyRule {
        api_groups: Some(list(&[group])),
        resources: Some(list(&[resource])),
        resource_names: (!names.is_empty()).then(|| list(names)),
        verbs: list(verbs),
        ..PolicyRule::default()
    };
    Grant { why, rule }
}

fn list(words: &[&str]) -> Vec<String> {
    words.iter().map(|&it| it.to_owned()).collect()
}
