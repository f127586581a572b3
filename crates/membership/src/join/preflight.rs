//! Checks before a join: the clusters answer, nothing conflicts, and the user has all permissions. Writes nothing.

use std::time::Duration;

use fedrs_api::ClusterType;
use futures::future::try_join_all;
use k8s_openapi::{api::core::v1::Namespace, apimachinery::pkg::version::Info};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{
    conflicts::conflicts,
    permissions,
    plan::{ExistingObjects, Step},
    problem::{OLDEST_VERSION, Problem},
};
use crate::{
    Error,
    cluster_client::{ClusterClient, Clusters, RequestError},
    discovery_account, member_cluster,
    membership::Membership,
    object::ObjectRef,
    replica_set_controller,
};

/// How long an API server may take to serve a CRD that was just installed.
const CRD_TIMEOUT: Duration = Duration::from_secs(10);
/// How often the CRDs are polled.
const CRD_POLL_PERIOD: Duration = Duration::from_millis(250);

/// A cluster that has answered.
pub(super) struct ConnectedCluster {
    /// Its version: `v1.36.0`.
    pub(super) version: String,
    /// The uid of its namespace kube-system; empty if the user may not read it, which the check of permissions reports.
    pub(super) id: String,
}

/// Connects to both clusters and checks their versions. Returns the host first.
pub(super) async fn connect(clusters: &Clusters<'_>) -> Result<[ConnectedCluster; 2], Error> {
    let Clusters { host, member } = clusters;
    match futures::join!(version(host), version(member)) {
        (Ok(host_version), Ok(member_version)) => {
            let (host_id, member_id) = futures::try_join!(id(host), id(member))?;
            let info = |version, id| ConnectedCluster { version, id };
            Ok([info(host_version, host_id), info(member_version, member_id)])
        }
        (host, member) => {
            let problems = [host.err(), member.err()].into_iter().flatten();
            Err(Error::Preflight(problems.collect()))
        }
    }
}

async fn id(cluster: &ClusterClient) -> Result<String, RequestError> {
    match member_cluster::cluster_id(cluster).await {
        Err(error) if error.code() == Some(403) => Ok(String::new()),
        id => id,
    }
}

async fn version(cluster: &ClusterClient) -> Result<String, Problem> {
    let client = cluster.client();
    let operation = format!("connect to {}", cluster.url());
    let info = cluster.call(operation, client.apiserver_version()).await;
    supported_version(cluster.cluster_type, info.map_err(Problem::Unreachable)?)
}

/// The version of a cluster, if fedrs supports it.
fn supported_version(cluster: ClusterType, info: Info) -> Result<String, Problem> {
    let number = |text: &str| -> Option<u32> {
        // Some providers append a plus sign to the minor version.
        let digits = text.trim_end_matches(|char: char| !char.is_ascii_digit());
        digits.parse().ok()
    };
    let version = info.git_version;
    match number(&info.major).zip(number(&info.minor)) {
        None => Err(Problem::UnknownVersion { cluster, version }),
        Some(parsed) if parsed < OLDEST_VERSION => {
            Err(Problem::UnsupportedVersion { cluster, version })
        }
        Some(_) => Ok(version),
    }
}

/// What a join creates only if it is asked to.
struct OtherObjects {
    replica_sets: Vec<ObjectRef>,
    discovery_in_member: Vec<ObjectRef>,
    discovery_on_host: Vec<ObjectRef>,
}

fn refs(manifests: &[Value]) -> Vec<ObjectRef> {
    manifests.iter().map(ObjectRef::of).collect()
}

/// Reads the existing objects, and checks for conflicts and missing permissions for `steps`.
pub(super) async fn preflight(
    clusters: &Clusters<'_>,
    membership: &Membership,
    with_replica_sets: bool,
    steps: impl Fn(&ExistingObjects) -> Vec<Step>,
) -> Result<ExistingObjects, Error> {
    let replica_sets = if with_replica_sets {
        replica_set_controller::manifests(membership, "", "")
    } else {
        Vec::new()
    };
    let others = OtherObjects {
        replica_sets: refs(&replica_sets),
        discovery_in_member: refs(&discovery_account::member_manifests(membership, "")),
        discovery_on_host: refs(&discovery_account::host_manifests(membership, None)),
    };
    let in_member = [&*others.replica_sets, &*others.discovery_in_member].concat();
    let reads = permissions::for_reads(membership, &in_member, &others.discovery_on_host);
    let mut missing = permissions::missing(clusters, reads).await?;
    let mut problems = Vec::new();
    let mut existing = ExistingObjects::default();
    if missing.is_empty() {
        existing = read(clusters, membership, &others).await?;
        problems = conflicts(membership, &existing);
    }
    let writes = permissions::for_writes(membership, &steps(&existing));
    missing.extend(permissions::missing(clusters, writes).await?);
    problems.extend(missing.into_iter().map(Box::new).map(Problem::Forbidden));
    if problems.is_empty() {
        Ok(existing)
    } else {
        Err(Error::Preflight(problems))
    }
}

/// Fails unless the CRDs are installed. Waits for CRDs that were just installed.
pub(super) async fn wait_for_crds(host: &ClusterClient) -> Result<(), Error> {
    let members = "/apis/fedrs.dev/v1alpha1/memberclusters?limit=1";
    let deadline = Instant::now() + CRD_TIMEOUT;
    loop {
        let response = host.send("list memberclusters", "GET", members, None);
        let Err(error) = response.await else {
            return Ok(());
        };
        match error.code() {
            Some(404) => return Err(Error::CrdsMissing),
            // The check of permissions reports this with all others.
            Some(403) => return Ok(()),
            // "storage is (re)initializing"
            Some(429) if Instant::now() < deadline => sleep(CRD_POLL_PERIOD).await,
            _ => return Err(error.into()),
        }
    }
}

/// The objects, in the same order.
async fn get_all(
    cluster: &ClusterClient,
    objects: &[ObjectRef],
) -> Result<Vec<Option<Value>>, RequestError> {
    try_join_all(objects.iter().map(|object| cluster.get(object))).await
}

async fn read(
    clusters: &Clusters<'_>,
    membership: &Membership,
    others: &OtherObjects,
) -> Result<ExistingObjects, RequestError> {
    let Clusters { host, member } = clusters;
    let manifests = membership.member_manifests("");
    let objects: Vec<ObjectRef> = manifests.iter().map(ObjectRef::of).collect();
    let namespace = membership.namespace_ref();
    let secret = membership.secret_ref();
    let listed = membership.listed_namespaces().iter();
    let listed: Vec<_> = listed
        .map(|name| ObjectRef::cluster_scoped::<Namespace>(name))
        .collect();
    let (
        members,
        host_namespace,
        secret,
        member_namespace,
        member_objects,
        namespaces,
        replica_sets,
        discovery_in_member,
        discovery_on_host,
    ) = futures::try_join!(
        host.list(""),
        host.get(&namespace),
        host.get(&secret),
        member.get(&namespace),
        get_all(member, &objects),
        get_all(member, &listed),
        get_all(member, &others.replica_sets),
        get_all(member, &others.discovery_in_member),
        get_all(host, &others.discovery_on_host),
    )?;
    Ok(ExistingObjects {
        member_namespace,
        member_objects,
        host_namespace,
        secret,
        members,
        namespaces,
        replica_sets,
        discovery_in_member,
        discovery_on_host,
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("1", "36", None)]
    #[case("1", "32", None)]
    #[case("1", "32+", None)]
    #[case("2", "0", None)]
    #[case("1", "31", Some("fedrs requires Kubernetes 1.32 or later"))]
    #[case("1", "9+", Some("fedrs requires Kubernetes 1.32 or later"))]
    #[case("", "", Some("failed to parse the version"))]
    fn old_versions_are_rejected(
        #[case] major: &str,
        #[case] minor: &str,
        #[case] expected: Option<&str>,
    ) {
        let info = Info {
            major: major.to_owned(),
            minor: minor.to_owned(),
            git_version: format!("v{major}.{minor}.7"),
            ..Info::default()
        };
        let problem = supported_version(ClusterType::Member, info).err();
        let text = problem.map(|problem| problem.to_string());
        assert_eq!(text.is_some(), expected.is_some(), "{text:?}");
        assert!(
            text.unwrap_or_default()
                .contains(expected.unwrap_or_default())
        );
    }
}
