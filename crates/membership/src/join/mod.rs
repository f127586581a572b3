//! Join: makes a cluster a member.
//!
//! ```text
//! preflight (connect, read, check permissions) --> plan (pure) --> apply, the member first --> wait for the controller
//! ```
//!
//! The plan depends on the existing objects only: a repeated join changes nothing, and completes one that was interrupted.

mod apply;
mod conflicts;
mod error;
mod permissions;
mod plan;
mod preflight;
mod problem;
pub(crate) mod readiness;
#[cfg(test)]
mod test_objects;
mod token;
mod wait;

use std::{collections::BTreeMap, time::Duration};

use kube::config::Cluster;

use self::{
    apply::Join,
    preflight::{connect, preflight},
};
pub use self::{error::JoinError, permissions::Permission, problem::Problem};
use crate::{
    cluster_client::{ClusterClient, Side},
    kubeconfig::KubeconfigSource,
    membership::Membership,
    object::WriteMode,
    progress::{Progress, Reporter},
    stored_kubeconfig,
};

/// Which cluster becomes a member, and how.
#[derive(Clone, Debug)]
pub struct JoinRequest {
    /// The member's name: a DNS label.
    pub name: String,
    /// Labels for the MemberCluster.
    pub labels: BTreeMap<String, String>,
    /// The federation; empty for the one without a name.
    pub federation: String,
    /// The namespace of the controller on the host, and of its ServiceAccount in the member.
    pub namespace: String,
    /// The requested lifetime of the token.
    pub token_duration: Duration,
    /// How long to wait until the controller uses the member.
    pub timeout: Duration,
    /// Whether writes are persisted.
    pub mode: WriteMode,
    /// The user's kubeconfig of the member.
    pub member: KubeconfigSource,
    /// The address at which the controller connects to the member; `None` for the one in the kubeconfig.
    pub member_server: Option<String>,
}

/// Makes a cluster a member and waits until the controller uses it. Fails after the timeout; all objects are in place then.
pub async fn join(
    host: &ClusterClient,
    request: JoinRequest,
    reporter: &mut dyn Reporter,
) -> Result<(), JoinError> {
    let (member, connection) = member_client(&request).await?;
    let (host_info, member_info) = connect(host, &member).await?;
    for (cluster, info) in [(host, &host_info), (&member, &member_info)] {
        reporter.progress(Progress::Connected {
            side: cluster.side,
            url: cluster.url(),
            version: info.version.clone(),
        });
    }
    let join = Join {
        host,
        member: &member,
        membership: Membership {
            name: request.name,
            federation: request.federation,
            namespace: request.namespace,
            host_id: host_info.id,
            cluster_id: member_info.id,
        },
        labels: request.labels,
        connection,
        token_duration: request.token_duration,
        mode: request.mode,
    };
    if join.membership.is_host() {
        reporter.progress(Progress::HostIsMember);
    }
    let steps = |existing: &_| join.steps(existing);
    let existing = preflight(host, &member, &join.membership, steps).await?;
    join.apply(&existing, reporter).await?;
    match request.mode {
        WriteMode::DryRun => {
            reporter.progress(Progress::DryRunComplete);
            Ok(())
        }
        WriteMode::Persist => {
            wait::until_ready(host, &join.membership, request.timeout, reporter).await
        }
    }
}

/// A client of the member for the user, and the connection for the controller.
async fn member_client(request: &JoinRequest) -> Result<(ClusterClient, Cluster), JoinError> {
    let source = &request.member;
    let kubeconfig = source.read().map_err(JoinError::MemberKubeconfig)?;
    let cluster = kubeconfig.cluster();
    let authority = match cluster.certificate_authority.as_deref() {
        Some(path) if !path.is_empty() => {
            let content = std::fs::read(path).map_err(|source| JoinError::Authority {
                path: path.to_owned(),
                source,
            })?;
            Some(content)
        }
        _ => None,
    };
    let server = request.member_server.as_deref();
    let connection = stored_kubeconfig::connection(cluster, authority.as_deref(), server)?;
    let config = source.config(kubeconfig).await;
    let config = config.map_err(JoinError::MemberKubeconfig)?;
    Ok((ClusterClient::new(Side::Member, config)?, connection))
}
