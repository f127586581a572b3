//! Checks before a join: the clusters answer, nothing conflicts, and the user has all permissions. Writes nothing.

use std::time::Duration;

use fedrs_api::MemberCluster;
use futures::future::try_join_all;
use k8s_openapi::apimachinery::pkg::version::Info;
use kube::{Api, api::ListParams};
use tokio::time::{Instant, sleep};

use super::{
    conflicts::conflicts,
    error::JoinError,
    permissions,
    plan::{ExistingObjects, Step},
    problem::Problem,
};
use crate::{
    cluster_client::{ClusterClient, RequestError, Side},
    member_cluster,
    membership::Membership,
    object::ObjectRef,
};

/// The oldest supported Kubernetes: it has all APIs that fedrs uses.
const OLDEST_VERSION: (u32, u32) = (1, 32);

/// How long an API server may take to serve a CRD that was just installed.
const CRD_TIMEOUT: Duration = Duration::from_secs(10);
/// How often the CRDs are polled.
const CRD_POLL_PERIOD: Duration = Duration::from_millis(250);

/// A cluster that has answered.
pub(super) struct ClusterInfo {
    /// Its version: `v1.36.0`.
    pub(super) version: String,
    /// The uid of its namespace kube-system; empty if the user may not read it, which the check of permissions reports.
    pub(super) id: String,
}

/// Connects to both clusters and checks their versions.
pub(super) async fn connect(
    host: &ClusterClient,
    member: &ClusterClient,
) -> Result<(ClusterInfo, ClusterInfo), JoinError> {
    let (host_version, member_version) = futures::join!(version(host), version(member));
    let mut problems = Vec::new();
    let mut check = |side: Side, response: Result<Info, RequestError>| match response {
        Ok(info) => {
            problems.extend(version_problem(side, &info));
            info.git_version
        }
        Err(error) => {
            problems.push(Problem::Unreachable(error));
            String::new()
        }
    };
    let host_version = check(Side::Host, host_version);
    let member_version = check(Side::Member, member_version);
    fail_if_any(problems)?;
    let (host_id, member_id) = futures::try_join!(id(host), id(member))?;
    let info = |version, id| ClusterInfo { version, id };
    Ok((info(host_version, host_id), info(member_version, member_id)))
}

async fn id(cluster: &ClusterClient) -> Result<String, RequestError> {
    match member_cluster::cluster_id(cluster).await {
        Err(error) if error.code() == Some(403) => Ok(String::new()),
        id => id,
    }
}

async fn version(cluster: &ClusterClient) -> Result<Info, RequestError> {
    let client = cluster.client();
    let operation = format!("connect to {}", cluster.url());
    cluster.call(operation, client.apiserver_version()).await
}

/// The problem of a cluster's version.
fn version_problem(side: Side, info: &Info) -> Option<Problem> {
    let number = |text: &str| -> Option<u32> {
        // Some providers append a plus sign to the minor version.
        let digits = text.trim_end_matches(|char: char| !char.is_ascii_digit());
        digits.parse().ok()
    };
    let version = info.git_version.clone();
    match number(&info.major).zip(number(&info.minor)) {
        None => Some(Problem::UnknownVersion { side, version }),
        Some(parsed) if parsed < OLDEST_VERSION => {
            let (major, minor) = OLDEST_VERSION;
            let required = format!("{major}.{minor}");
            Some(Problem::UnsupportedVersion {
                side,
                version,
                required,
            })
        }
        Some(_) => None,
    }
}

/// Reads the existing objects, and checks for conflicts and missing permissions for `steps`.
pub(super) async fn preflight(
    host: &ClusterClient,
    member: &ClusterClient,
    membership: &Membership,
    steps: impl Fn(&ExistingObjects) -> Vec<Step>,
) -> Result<ExistingObjects, JoinError> {
    wait_for_crds(host).await?;
    let reads = permissions::for_reads(membership);
    let mut missing = permissions::missing(host, member, reads).await?;
    let mut problems = Vec::new();
    let mut existing = ExistingObjects::default();
    if missing.is_empty() {
        existing = read(host, member, membership).await?;
        problems = conflicts(membership, &existing);
    }
    let writes = permissions::for_writes(membership, &steps(&existing));
    missing.extend(permissions::missing(host, member, writes).await?);
    problems.extend(missing.into_iter().map(Problem::Forbidden));
    fail_if_any(problems)?;
    Ok(existing)
}

/// Fails unless the CRDs are installed. Waits for CRDs that were just installed.
async fn wait_for_crds(host: &ClusterClient) -> Result<(), JoinError> {
    let members = "/apis/fedrs.dev/v1alpha1/memberclusters?limit=1";
    let deadline = Instant::now() + CRD_TIMEOUT;
    loop {
        let response = host.send("list memberclusters", "GET", members, None);
        let Err(error) = response.await else {
            return Ok(());
        };
        match error.code() {
            Some(404) => return Err(JoinError::CrdsMissing),
            // The check of permissions reports this with all others.
            Some(403) => return Ok(()),
            // "storage is (re)initializing"
            Some(429) if Instant::now() < deadline => sleep(CRD_POLL_PERIOD).await,
            _ => return Err(error.into()),
        }
    }
}

async fn read(
    host: &ClusterClient,
    member: &ClusterClient,
    membership: &Membership,
) -> Result<ExistingObjects, RequestError> {
    let members: Api<MemberCluster> = Api::all(host.client());
    let all = ListParams::default();
    let manifests = membership.member_manifests("");
    let objects: Vec<ObjectRef> = manifests.iter().map(ObjectRef::of).collect();
    let namespace = membership.namespace_ref();
    let secret = membership.secret_ref();
    let (members, host_namespace, secret, member_namespace, in_member) = futures::try_join!(
        host.call("list memberclusters", members.list(&all)),
        host.get(&namespace),
        host.get(&secret),
        member.get(&namespace),
        try_join_all(objects.iter().map(|object| member.get(object))),
    )?;
    Ok(ExistingObjects {
        member_namespace,
        in_member,
        host_namespace,
        secret,
        members: members.items,
    })
}

fn fail_if_any(problems: Vec<Problem>) -> Result<(), JoinError> {
    if problems.is_empty() {
        Ok(())
    } else {
        Err(JoinError::Preflight(problems))
    }
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
        let problem = version_problem(Side::Member, &info);
        let text = problem.map(|problem| problem.to_string());
        assert_eq!(text.is_some(), expected.is_some(), "{text:?}");
        assert!(
            text.unwrap_or_default()
                .contains(expected.unwrap_or_default())
        );
    }
}
