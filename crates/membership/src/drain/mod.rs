//! Drain: moves all replicas off a member, and waits until none is left.

pub(crate) mod pending;

use std::time::Duration;

use fedrs_api::MemberClusterSpec;
use serde_json::json;

use self::pending::{DrainPending, pending};
use crate::{
    Error, FederatedSet,
    cluster_client::ClusterClient,
    federated_set::{self, SetObject},
    member_cluster::{self, SpecChange, change_spec},
    polling::poll,
    progress::{Progress, Reporter},
};

/// How often the remaining replicas are polled.
const POLL_PERIOD: Duration = Duration::from_secs(1);

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
    ) -> Result<Self, Error> {
        let member = change_spec(host, name, drain_change, reporter).await?;
        Ok(Self {
            host,
            name: name.to_owned(),
            generation: member.metadata.generation,
        })
    }

    /// Waits until the member is drained, and reports what is left. If the caller drops the future, the drain continues.
    pub async fn wait(&self, timeout: Duration, reporter: &mut dyn Reporter) -> Result<(), Error> {
        let report = |pending| reporter.progress(Progress::WaitingForDrain(pending));
        match poll(timeout, POLL_PERIOD, async || self.read().await, report).await? {
            Ok(()) => {
                reporter.progress(Progress::Drained(self.name.clone()));
                Ok(())
            }
            Err(pending) => Err(Error::NotDrained {
                name: self.name.clone(),
                timeout,
                pending: Box::new(pending),
            }),
        }
    }

    async fn read(&self) -> Result<Result<(), DrainPending>, Error> {
        let (member, sets) =
            tokio::join!(member_cluster::get(self.host, &self.name), sets(self.host));
        let pending = pending(&member?, self.generation, &sets?);
        Ok(pending.map_or(Ok(()), Err))
    }
}

/// All sets, which may have replicas in the member.
async fn sets(host: &ClusterClient) -> Result<Vec<FederatedSet>, Error> {
    let sets = federated_set::list(host).await?.unwrap_or_default();
    sets.into_iter().map(SetObject::read).collect()
}

fn drain_change(spec: &MemberClusterSpec) -> SpecChange {
    if spec.drain {
        (None, Progress::AlreadyDraining)
    } else {
        (Some(json!({ "drain": true })), Progress::Draining)
    }
}
