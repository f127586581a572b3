//! The permissions of the service: a rule for each kind of request, with its reason. It changes nothing anywhere.

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
    let account = Account {
        namespace: namespace.unwrap_or(names::SYSTEM_NAMESPACE),
        name: account.unwrap_or(ACCOUNT),
    };
    account.in_cluster(match cluster {
        ClusterType::Host => host(),
        ClusterType::Member => member(),
    })
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
    ]
}
