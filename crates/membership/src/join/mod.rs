//! Join: makes a cluster a member.
//!
//! ```text
//! preflight (connect, read, check permissions) --> plan (pure) --> apply, the member first --> wait for the controller
//!   --> remove permissions in namespaces that are not listed any more, once they are empty
//! ```
//!
//! The plan depends on the existing objects only: a repeated join changes nothing, and completes one that was interrupted.

mod apply;
mod conflicts;
mod former_permissions;
mod namespaces;
mod permissions;
mod plan;
mod preflight;
pub(crate) mod problem;
pub(crate) mod readiness;
#[cfg(test)]
mod test_objects;
mod token;

use std::time::Duration;

use kube::config::Cluster;

use self::{
    apply::Join,
    preflight::{connect, preflight, wait_for_crds},
    readiness::readiness,
};
pub use self::{
    apply::JoinRequest, namespaces::JoinNamespaces, permissions::Permission, problem::Problem,
};
use crate::{
    Error,
    cluster_client::{ClusterClient, Clusters},
    controller_lease::{ControllerState, LeaseWatch},
    member_cluster,
    membership::Membership,
    object::WriteMode,
    polling::poll,
    progress::{Progress, Reporter, Warning},
    stored_kubeconfig,
};

/// How often the MemberCluster is polled while a join waits for the controller.
const POLL_PERIOD: Duration = Duration::from_millis(500);

/// Makes a cluster a member and waits until the controller uses it. Fails after the timeout; all objects are in place then.
pub async fn join(
    host: &ClusterClient,
    request: JoinRequest,
    reporter: &mut dyn Reporter,
) -> Result<(), Error> {
    let (member, connection) = member_client(&request).await?;
    let clusters = Clusters {
        host,
        member: &member,
    };
    let [host_info, member_info] = connect(&clusters).await?;
    for (cluster, info) in [(host, &host_info), (&member, &member_info)] {
        reporter.progress(Progress::Connected {
            cluster: cluster.cluster_type,
            url: cluster.url(),
            version: info.version.clone(),
        });
    }
    wait_for_crds(host).await?;
    let join = Join {
        clusters: &clusters,
        request: &request,
        membership: Membership {
            name: request.name.clone(),
            federation: request.federation.clone(),
            namespace: request.namespace.clone(),
            host_id: host_info.id,
            cluster_id: member_info.id,
            namespaces: request.namespaces.resolve(host, &request.name).await?,
            discovery: request.with_discovery,
        },
        connection,
    };
    if join.membership.is_host() {
        reporter.progress(Progress::HostIsMember);
    }
    let steps = |existing: &_| join.steps(existing);
    let with_replica_sets = request.replica_sets.is_some();
    let existing = preflight(&clusters, &join.membership, with_replica_sets, steps).await?;
    join.apply(&existing, reporter).await?;
    match request.mode {
        WriteMode::DryRun => {
            reporter.progress(Progress::DryRunComplete);
            Ok(())
        }
        WriteMode::Persist => {
            wait_until_ready(host, &join.membership, request.timeout, reporter).await?;
            former_permissions::remove_former_permissions(&join, &existing, reporter).await
        }
    }
}

/// A client of the member for the user, and the connection for the controller.
async fn member_client(request: &JoinRequest) -> Result<(ClusterClient, Cluster), Error> {
    let (client, cluster) = member_cluster::user_client(&request.member).await?;
    let path = cluster.certificate_authority.as_deref();
    let authority = path.filter(|path| !path.is_empty()).map(|path| {
        std::fs::read(path).map_err(|source| Error::Authority {
            path: path.to_owned(),
            source,
        })
    });
    let authority = authority.transpose()?;
    let server = request.member_server.as_deref();
    let connection = stored_kubeconfig::connection(
        &cluster,
        authority.as_deref(),
        server,
        request.allow_insecure,
    )?;
    Ok((client, connection))
}

/// Waits until the controller uses the member, and reports what it waits for.
async fn wait_until_ready(
    host: &ClusterClient,
    membership: &Membership,
    timeout: Duration,
    reporter: &mut dyn Reporter,
) -> Result<(), Error> {
    let Membership {
        name, namespace, ..
    } = membership;
    let leases = LeaseWatch::begin(host, namespace).await?;
    let read = async || Ok::<_, Error>(readiness(&member_cluster::get(host, name).await?));
    let mut has_waited = false;
    let report = |not_ready| {
        has_waited = true;
        reporter.progress(Progress::WaitingForMember(not_ready));
    };
    match poll(timeout, POLL_PERIOD, read, report).await? {
        Ok(member) => {
            // What became ready meanwhile shows that a controller runs.
            if !has_waited && leases.state().await? == ControllerState::Stopped {
                reporter.warn(Warning::ControllerStopped);
            }
            reporter.progress(Progress::MemberReady(member));
            Ok(())
        }
        Err(reason) => Err(Error::NotReady {
            name: name.clone(),
            timeout,
            hint: reason.hint(name, namespace, &leases.state().await?),
            reason: Box::new(reason),
        }),
    }
}
