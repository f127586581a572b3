//! What is there before a join, and whether it can be done at all. Changes nothing.

use std::time::Duration;

use anyhow::bail;
use fedrs_api::MemberCluster;
use futures::future::try_join_all;
use k8s_openapi::apimachinery::pkg::version::Info;
use kube::{Api, api::ListParams};
use tokio::time::{Instant, sleep};

use super::{
    plan::{self, Found, Step},
    rights,
};
use crate::{
    cluster_client::{ClusterClient, RequestError, Side},
    member_cluster,
    membership::Membership,
    object::ObjectRef,
};

/// The oldest Kubernetes that fedrs works with: what it reads and writes is in this one.
const OLDEST: (u32, u32) = (1, 32);

/// How long a CRD that was just installed may take until it is served.
const SERVED_WITHIN: Duration = Duration::from_secs(10);
/// How often it is asked for.
const PERIOD: Duration = Duration::from_millis(250);

/// A cluster that answers.
pub(super) struct Met {
    /// Its version, as it says it: `v1.36.0`.
    pub(super) version: String,
    /// The uid of its kube-system.
    pub(super) id: String,
}

/// Asks both clusters who they are. Fails with everything that is wrong with either.
pub(super) async fn meet(
    host: &ClusterClient,
    member: &ClusterClient,
) -> anyhow::Result<(Met, Met)> {
    let (host_version, member_version) = futures::join!(version(host), version(member));
    let mut problems = Vec::new();
    let mut check = |side: Side, answer: Result<Info, RequestError>| match answer {
        Ok(info) => {
            problems.extend(too_old(side, &info));
            info.git_version
        }
        Err(failure) => {
            problems.push(failure.to_string());
            String::new()
        }
    };
    let versions = (
        check(Side::Host, host_version),
        check(Side::Member, member_version),
    );
    refuse(&problems)?;
    let (host_id, member_id) = futures::try_join!(id(host), id(member))?;
    let met = |version, id| Met { version, id };
    Ok((met(versions.0, host_id), met(versions.1, member_id)))
}

/// The cluster's id. Empty where the user may not read it: it is told with all else that isn't allowed.
async fn id(remote: &ClusterClient) -> Result<String, RequestError> {
    match member_cluster::id(remote).await {
        Err(failure) if failure.code() == Some(403) => Ok(String::new()),
        answer => answer,
    }
}

async fn version(remote: &ClusterClient) -> Result<Info, RequestError> {
    let client = remote.client();
    remote
        .call(
            format!("reach {}", remote.url()),
            client.apiserver_version(),
        )
        .await
}

/// What is wrong with the version of a cluster, as a sentence.
fn too_old(side: Side, info: &Info) -> Option<String> {
    let number = |text: &str| {
        text.trim_end_matches(|it: char| !it.is_ascii_digit())
            .parse()
            .ok()
    };
    let Some(version) = number(&info.major).zip(number(&info.minor)) else {
        return Some(format!(
            "{side}: its version {:?} can't be read",
            info.git_version
        ));
    };
    (version < OLDEST).then(|| {
        let (major, minor) = OLDEST;
        format!(
            "{side}: it is Kubernetes {}; fedrs works with {major}.{minor} and later",
            info.git_version
        )
    })
}

/// Reads what is there, and checks that the join can be carried out by the user. Fails with everything that is wrong.
pub(super) async fn survey(
    host: &ClusterClient,
    member: &ClusterClient,
    membership: &Membership,
    steps: impl Fn(&Found) -> Vec<Step>,
) -> anyhow::Result<Found> {
    has_crds(host).await?;
    let mut missing = rights::missing(host, member, rights::to_read(membership)).await?;
    let mut problems = Vec::new();
    let mut found = Found::default();
    if missing.is_empty() {
        found = read(host, member, membership).await?;
        problems = plan::conflicts(membership, &found);
    }
    let writes = rights::to_write(membership, &steps(&found));
    missing.extend(rights::missing(host, member, writes).await?);
    problems.extend(missing.iter().map(|right| format!("not allowed: {right}")));
    refuse(&problems)?;
    Ok(found)
}

/// Fails unless the CRDs are installed. Waits a little for those that were installed just now.
async fn has_crds(host: &ClusterClient) -> anyhow::Result<()> {
    let members = "/apis/fedrs.dev/v1alpha1/memberclusters?limit=1";
    let until = Instant::now() + SERVED_WITHIN;
    loop {
        let answer = host.send("ask for the CRDs", "GET", members, None).await;
        let Err(failure) = answer else { return Ok(()) };
        match failure.code() {
            Some(404) => bail!(
                "host: the CRDs of fedrs are not installed: `fedrs crds | kubectl apply --server-side -f -`"
            ),
            // What isn't allowed is told with all else that isn't.
            Some(403) => return Ok(()),
            // "storage is (re)initializing"
            Some(429) if Instant::now() < until => sleep(PERIOD).await,
            _ => return Err(failure.into()),
        }
    }
}

async fn read(
    host: &ClusterClient,
    member: &ClusterClient,
    membership: &Membership,
) -> Result<Found, RequestError> {
    let members: Api<MemberCluster> = Api::all(host.client());
    let everything = ListParams::default();
    let objects = membership.in_member("");
    let addresses: Vec<ObjectRef> = objects.iter().map(ObjectRef::of).collect();
    let namespace = membership.namespace_address();
    let secret = membership.secret_address();
    let (members, host_namespace, secret, member_namespace, in_member) = futures::try_join!(
        host.call("list memberclusters", members.list(&everything)),
        host.get(&namespace),
        host.get(&secret),
        member.get(&namespace),
        try_join_all(addresses.iter().map(|it| member.get(it))),
    )?;
    Ok(Found {
        member_namespace,
        in_member,
        host_namespace,
        secret,
        members: members.items,
    })
}

/// An error that says all of `problems`, if there are any.
fn refuse(problems: &[String]) -> anyhow::Result<()> {
    match problems {
        [] => Ok(()),
        [one] => bail!("{one}\nNothing was changed."),
        several => bail!(
            "it can't join:\n  {}\nNothing was changed.",
            several.join("\n  ")
        ),
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
    #[case("1", "31", Some("fedrs works with 1.32 and later"))]
    #[case("1", "9+", Some("fedrs works with 1.32 and later"))]
    #[case("", "", Some("can't be read"))]
    fn old_versions_are_refused(
        #[case] major: &str,
        #[case] minor: &str,
        #[case] problem: Option<&str>,
    ) {
        let info = Info {
            major: major.to_owned(),
            minor: minor.to_owned(),
            git_version: format!("v{major}.{minor}.7"),
            ..Info::default()
        };
        let told = too_old(Side::Member, &info);
        assert_eq!(told.is_some(), problem.is_some(), "{told:?}");
        assert!(
            told.unwrap_or_default()
                .contains(problem.unwrap_or_default())
        );
    }
}
