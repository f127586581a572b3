//! Drain: moves all replicas off a member, and waits until none is left.

mod left;

use std::time::Duration;

use fedrs_api::{FederatedReplicaSet, MemberCluster};
use kube::{Api, api::ListParams};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::{
    cluster_client::{ClusterClient, RequestError},
    member_cluster,
    say::Say,
};

/// How often it is looked at what is left.
const PERIOD: Duration = Duration::from_secs(1);
/// How the waiting for a drain ended.
pub enum Ended {
    /// Nothing is left in the member.
    Drained,
    /// The time is over; what is left, and why.
    TimedOut(String),
}

/// A drain that the controller has been asked for.
pub struct Drain<'a> {
    host: &'a ClusterClient,
    name: String,
    /// That of the spec that asks for it.
    generation: Option<i64>,
}

impl<'a> Drain<'a> {
    /// Asks for the member `name` to be drained.
    pub async fn start(host: &'a ClusterClient, name: &str, say: &mut Say) -> anyhow::Result<Self> {
        let mut member = member_cluster::existing(host, name).await?;
        if member.spec.drain {
            say.line(format_args!(
                "membercluster/{name} is being drained already"
            ));
        } else {
            member = member_cluster::ask(host, &member, json!({ "drain": true })).await?;
            say.line(format_args!("membercluster/{name} draining"));
        }
        Ok(Self {
            host,
            name: name.to_owned(),
            generation: member.metadata.generation,
        })
    }

    /// Waits until the member is drained, telling what is left. Dropping it ends the waiting, not the drain.
    pub async fn wait(&self, patience: Duration, say: &mut Say) -> anyhow::Result<Ended> {
        let until = Instant::now() + patience;
        loop {
            let (member, sets) = look(self.host, &self.name).await?;
            let Some(left) = left::left(&member, self.generation, &sets) else {
                return Ok(Ended::Drained);
            };
            say.waiting(&left);
            if Instant::now() >= until {
                return Ok(Ended::TimedOut(left));
            }
            sleep(PERIOD).await;
        }
    }
}

async fn look(
    host: &ClusterClient,
    name: &str,
) -> anyhow::Result<(MemberCluster, Vec<FederatedReplicaSet>)> {
    let sets: Api<FederatedReplicaSet> = Api::all(host.client());
    let everything = ListParams::default();
    let list = async {
        let list = host.call("list federatedreplicasets", sets.list(&everything));
        Ok::<_, RequestError>(list.await?.items)
    };
    let (member, sets) = tokio::join!(member_cluster::existing(host, name), list);
    Ok((member?, sets?))
}
