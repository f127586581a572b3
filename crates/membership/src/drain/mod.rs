//! Drain: moves all replicas off a member, and waits until none is left.

pub(crate) mod pending;

use std::time::Duration;

use fedrs_api::{FederatedReplicaSet, MemberCluster};
use kube::{Api, api::ListParams};
use serde_json::json;
use tokio::time::{Instant, sleep};

use self::pending::{DrainPending, pending};
use crate::{
    cluster_client::{ClusterClient, RequestError},
    member_cluster::{self, MemberClusterError},
    progress::{Progress, Reporter},
};

/// How often the remaining replicas are polled.
const POLL_PERIOD: Duration = Duration::from_secs(1);

/// A drain failed.
#[derive(Debug, thiserror::Error)]
pub enum DrainError {
    /// The MemberCluster can't be read or changed.
    #[error(transparent)]
    MemberCluster(#[from] MemberClusterError),
    /// A request failed.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// Replicas are left after the timeout. The controller continues the drain.
    #[error("{name} is not drained after {timeout:?}: {pending}")]
    TimedOut {
        /// The member.
        name: String,
        /// How long the operation waited.
        timeout: Duration,
        /// What is left.
        pending: DrainPending,
    },
}

/// A drain that the controller carries out.
pub struct Drain<'a> {
    host: &'a ClusterClient,
    name: String,
    /// The generation of the MemberCluster with `spec.drain`.
    generation: Option<i64>,
}

impl<'a> Drain<'a> {
    /// Starts the drain of the member `name`, unless it is drained already.
    pub async fn start(
        host: &'a ClusterClient,
        name: &str,
        reporter: &mut dyn Reporter,
    ) -> Result<Self, DrainError> {
        let mut member = member_cluster::get(host, name).await?;
        let name = name.to_owned();
        if member.spec.drain {
            reporter.progress(Progress::AlreadyDraining(name.clone()));
        } else {
            let patch = json!({ "drain": true });
            member = member_cluster::patch_spec(host, &member, patch).await?;
            reporter.progress(Progress::Draining(name.clone()));
        }
        Ok(Self {
            host,
            name,
            generation: member.metadata.generation,
        })
    }

    /// Waits until the member is drained, and reports what is left. If the caller drops the future, the drain continues.
    pub async fn wait(
        &self,
        timeout: Duration,
        reporter: &mut dyn Reporter,
    ) -> Result<(), DrainError> {
        let deadline = Instant::now() + timeout;
        let mut reported = None;
        loop {
            let (member, sets) = self.read().await?;
            let Some(pending) = pending(&member, self.generation, &sets) else {
                reporter.progress(Progress::Drained(self.name.clone()));
                return Ok(());
            };
            if reported.as_ref() != Some(&pending) {
                reporter.progress(Progress::WaitingForDrain(pending.clone()));
                reported = Some(pending.clone());
            }
            if Instant::now() >= deadline {
                return Err(DrainError::TimedOut {
                    name: self.name.clone(),
                    timeout,
                    pending,
                });
            }
            sleep(POLL_PERIOD).await;
        }
    }

    async fn read(&self) -> Result<(MemberCluster, Vec<FederatedReplicaSet>), DrainError> {
        let sets: Api<FederatedReplicaSet> = Api::all(self.host.client());
        let all = ListParams::default();
        let list = self.host.call("list federatedreplicasets", sets.list(&all));
        let (member, sets) = tokio::join!(member_cluster::get(self.host, &self.name), list);
        Ok((member?, sets?.items))
    }
}
