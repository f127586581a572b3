//! The permissions of the service: a rule for each kind of request, with its reason. It changes nothing but, if it is asked to,
//! the statuses of EndpointSets. Only if it authorizes clients, it may ask who they are.

use controller_base::rbac::{Account, Grant, Manifest, grant};
use fedrs_api::{ClusterType, names};

const CORE: &str = "";
const FEDRS: &str = "fedrs.dev";
/// The name of its ServiceAccount.
const ACCOUNT: &str = "fedrs-discovery";
const READ: [&str; 2] = ["list", "watch"];

/// The objects that grant the permissions in a cluster to a ServiceAccount: by default `fedrs-discovery` in the usual namespace.
#[must_use]
pub fn manifests(
    cluster: ClusterType,
    namespace: Option<&str>,
    account: Option<&str>,
) -> Vec<Manifest> {
    of_account(namespace, account).in_cluster(match cluster {
        ClusterType::Host => host(),
        ClusterType::Member => member(),
    })
}

/// Those of the host for `--write-status`: it may also write statuses, and elect who does.
#[must_use]
pub fn writer_manifests(namespace: Option<&str>, account: Option<&str>) -> Vec<Manifest> {
    let in_cluster = host().into_iter().chain(status()).collect();
    of_account(namespace, account).manifests(in_cluster, own_namespace())
}

/// What `--authorization=SubjectAccessReview` needs on the host in addition: a role of its own for the same account.
#[must_use]
pub fn authorizer_manifests(namespace: Option<&str>, account: Option<&str>) -> Vec<Manifest> {
    of_account(namespace, account).further_role("authorizer", reviews())
}

fn of_account<'a>(namespace: Option<&'a str>, account: Option<&'a str>) -> Account<'a> {
    Account {
        namespace: namespace.unwrap_or(names::SYSTEM_NAMESPACE),
        name: account.unwrap_or(ACCOUNT),
    }
}

fn status() -> Vec<Grant> {
    vec![
        grant(
            "Read an EndpointSet before its status is written",
            (FEDRS, "endpointsets"),
            &["get"],
        ),
        grant(
            "Write the statuses of EndpointSets",
            (FEDRS, "endpointsets/status"),
            &["patch"],
        ),
        grant(
            "Create events about the leader; patch the count of repeated ones",
            (CORE, "events"),
            &["create", "patch"],
        ),
    ]
}

fn reviews() -> Vec<Grant> {
    vec![
        grant(
            "Ask who has the token of a client",
            ("authentication.k8s.io", "tokenreviews"),
            &["create"],
        ),
        grant(
            "Ask whether a client may get an EndpointSet",
            ("authorization.k8s.io", "subjectaccessreviews"),
            &["create"],
        ),
    ]
}

fn own_namespace() -> Vec<Grant> {
    vec![grant(
        "Elect who writes",
        ("coordination.k8s.io", "leases"),
        &["get", "create", "update"],
    )]
}

fn host() -> Vec<Grant> {
    vec![
        grant(
            "List and watch EndpointSets",
            (FEDRS, "endpointsets"),
            &READ,
        ),
        grant(
            "List and watch FederatedReplicaSets, for the selectors of their pods",
            (FEDRS, "federatedreplicasets"),
            &READ,
        ),
        grant(
            "List and watch FederatedDeployments, for the selectors of their pods",
            (FEDRS, "federateddeployments"),
            &READ,
        ),
    ]
}

fn member() -> Vec<Grant> {
    vec![
        grant("List and watch pods: the endpoints", (CORE, "pods"), &READ),
        grant(
            "List and watch nodes, for the zones of endpoints",
            (CORE, "nodes"),
            &READ,
        ),
        grant(
            "List and watch Services, for the selectors of their pods",
            (CORE, "services"),
            &READ,
        ),
    ]
}
