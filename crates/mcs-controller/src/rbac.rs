//! The permissions of the controller: a rule for each kind of request, with its reason. This is the only list of them.

use controller_base::rbac::{Account, Manifest, grant};
use fedrs_api::names;

use crate::{controller::LEASE, names::GROUP};

const CORE: &str = "";
const DISCOVERY: &str = "discovery.k8s.io";
const COORDINATION: &str = "coordination.k8s.io";
const READ: [&str; 2] = ["list", "watch"];

fn of_account<'a>(namespace: Option<&'a str>, account: Option<&'a str>) -> Account<'a> {
    Account {
        namespace: namespace.unwrap_or(names::SYSTEM_NAMESPACE),
        name: account.unwrap_or(LEASE),
    }
}

/// The objects that grant the permissions on the host to a ServiceAccount: by default `fedrs-mcs-controller` in the usual namespace.
#[must_use]
pub fn host_manifests(namespace: Option<&str>, account: Option<&str>) -> Vec<Manifest> {
    of_account(namespace, account).in_own_namespace(vec![
        grant(
            "Elect the leader",
            (COORDINATION, "leases"),
            &["get", "create", "update"],
        ),
        grant(
            "Create events about the leader; patch the count of repeated ones",
            (CORE, "events"),
            &["create", "patch"],
        ),
    ])
}

/// Those in a member.
#[must_use]
pub fn member_manifests(namespace: Option<&str>, account: Option<&str>) -> Vec<Manifest> {
    of_account(namespace, account).in_cluster(vec![
        grant(
            "List and watch ServiceExports",
            (GROUP, "serviceexports"),
            &READ,
        ),
        grant(
            "Write the conditions of ServiceExports",
            (GROUP, "serviceexports/status"),
            &["patch"],
        ),
        grant(
            "List and watch ServiceImports; keep those of exported Services",
            (GROUP, "serviceimports"),
            &["list", "watch", "create", "patch", "delete"],
        ),
        grant(
            "Write which clusters export a Service",
            (GROUP, "serviceimports/status"),
            &["patch"],
        ),
        grant(
            "List and watch Services: what is exported",
            (CORE, "services"),
            &READ,
        ),
        grant(
            "List and watch EndpointSlices; keep those with the endpoints of other clusters",
            (DISCOVERY, "endpointslices"),
            &["list", "watch", "create", "patch", "delete"],
        ),
        grant(
            "List and watch namespaces: Services are imported where their namespace exists",
            (CORE, "namespaces"),
            &READ,
        ),
    ])
}
