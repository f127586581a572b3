//! Join: makes a cluster a member.
//!
//! ```text
//! meet both --> read what is there, ask what is allowed --> steps (pure) --> carried out, member first --> wait
//! ```
//!
//! Each step is decided from what is there: again is a no-op, and a join that was interrupted is completed.

mod carry_out;
mod plan;
mod ready;
mod rights;
mod survey;
mod token;

use std::{collections::BTreeMap, time::Duration};

use anyhow::Context;
use kube::config::Cluster;

use self::carry_out::Join;
use crate::{
    cluster_client::{ClusterClient, Side},
    kubeconfig::Source,
    member_kubeconfig,
    membership::Membership,
    object::Write,
    say::Say,
};

/// Which cluster is to become a member, and how.
pub struct JoinRequest {
    /// The member's name: a DNS label.
    pub name: String,
    /// Labels for the MemberCluster.
    pub labels: BTreeMap<String, String>,
    /// The federation; empty for the one without a name.
    pub federation: String,
    /// The controller's namespace on the host, and of its account in the member.
    pub namespace: String,
    /// How long a token is good for.
    pub token_duration: Duration,
    /// How long to wait until the controller uses the member.
    pub timeout: Duration,
    /// Whether only to say what would be done.
    pub dry_run: bool,
    /// The member as the user reaches it.
    pub member: Source,
    /// Where the controller reaches the member, if not by the address in the kubeconfig.
    pub member_server: Option<String>,
}

/// Joins, and waits until the member is ready. Fails if it isn't in time.
pub async fn join(host: &ClusterClient, request: JoinRequest, say: &mut Say) -> anyhow::Result<()> {
    let (member, route) = member(&request).await?;
    let (met_host, met_member) = survey::meet(host, &member).await?;
    for (cluster, met) in [(host, &met_host), (&member, &met_member)] {
        say.step(
            cluster.side,
            cluster.url(),
            format_args!("is Kubernetes {}", met.version),
        );
    }
    let join = Join {
        host,
        member: &member,
        membership: Membership {
            name: request.name,
            federation: request.federation,
            namespace: request.namespace,
            host_id: met_host.id,
            cluster_id: met_member.id,
        },
        labels: request.labels,
        route,
        token_duration: request.token_duration,
        write: if request.dry_run {
            Write::DryRun
        } else {
            Write::Real
        },
    };
    if join.membership.is_of_itself() {
        say.line("Both are the same cluster: the host becomes a member of itself.");
    }
    let found = survey::survey(host, &member, &join.membership, |found| join.steps(found)).await?;
    join.carry_out(&found, say).await?;
    if request.dry_run {
        say.line("Nothing was changed: this was a dry run.");
        return Ok(());
    }
    ready::wait(host, &join.membership, request.timeout, say).await
}

/// The member, and how the controller is to reach it.
async fn member(request: &JoinRequest) -> anyhow::Result<(ClusterClient, Cluster)> {
    let source = &request.member;
    let kubeconfig = source.read().context("member")?;
    let cluster = kubeconfig.cluster();
    let authority = match cluster.certificate_authority.as_deref() {
        Some(path) if !path.is_empty() => {
            Some(std::fs::read(path).with_context(|| format!("member: can't read {path}"))?)
        }
        _ => None,
    };
    let server = request.member_server.as_deref();
    let route = member_kubeconfig::route(cluster, authority.as_deref(), server)?;
    let config = source.config(kubeconfig).await.context("member")?;
    Ok((ClusterClient::new(Side::Member, config)?, route))
}
