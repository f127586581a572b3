//! The permissions of the service: a rule for each kind of request, with its reason. It changes nothing but, if it is asked to,
//! the statuses of EndpointSets. Only if it authorizes clients, it may ask who they are.

use controller_base::rbac::{Account, Grant, Manifest, grant, named};
use fedrs_api::{ClusterType, names};

const CORE: &str = "";
const FEDRS: &str = "fedrs.dev";
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

/// What it needs on the host for a member that has joined: to read the Secret of this name, and no other. It is for the account
/// `fedrs-discovery` in the namespace of the Secret.
#[must_use]
pub fn secret_manifests(namespace: &str, secret: &str) -> [Manifest; 2] {
    let read = named(
        "Read the kubeconfig of the member, by its name",
        (CORE, "secrets"),
        &[secret],
        &READ,
    );
    of_account(Some(namespace), None).further_role_inside(secret, vec![read])
}

/// The objects in a member that has joined: its own `account`, and that the account `controller` in the same namespace renews
/// its token, because discovery writes nothing.
#[must_use]
pub fn joined_manifests(namespace: &str, account: &str, controller: &str) -> Vec<Manifest> {
    let renew = named(
        "Renew the token of discovery before it expires",
        (CORE, "serviceaccounts/token"),
        &[account],
        &["create"],
    );
    let mut manifests = manifests(ClusterType::Member, Some(namespace), Some(account));
    let controller = of_account(Some(namespace), Some(controller));
    manifests.extend(controller.further_role_inside(account, vec![renew]));
    manifests
}

fn of_account<'a>(namespace: Option<&'a str>, account: Option<&'a str>) -> Account<'a> {
    Account {
        namespace: namespace.unwrap_or(names::SYSTEM_NAMESPACE),
        name: account.unwrap_or(names::DISCOVERY),
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
        grant(
            "List and watch MemberClusters, to follow the members that have joined",
            (FEDRS, "memberclusters"),
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
