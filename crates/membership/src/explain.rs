//! Explain: how many replicas of a FederatedReplicaSet each cluster has, and why.

use std::fmt;

use fedrs_api::{ClusterInternalState, FederatedReplicaSet, FederatedReplicaSetStatus, pluralize};
use kube::Api;
use serde::Serialize;

use crate::{Error, cluster_client::ClusterClient};

/// Where the replicas of a FederatedReplicaSet run, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The namespace of the set.
    pub namespace: String,
    /// The name of the set.
    pub name: String,
    /// `spec.replicas`.
    pub desired_replicas: i32,
    /// How current the status is.
    pub observation: Observation,
    /// The status, without the controller's internal state.
    #[serde(flatten)]
    pub status: FederatedReplicaSetStatus,
}

/// How current the status of a set is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Observation {
    /// No controller has written a status yet.
    Missing,
    /// The status is that of an older spec.
    Outdated,
    /// The status is that of the current spec.
    Current,
}

/// Explains the set `namespace`/`name`.
pub async fn explain(
    host: &ClusterClient,
    namespace: &str,
    name: &str,
) -> Result<Explanation, Error> {
    let sets: Api<FederatedReplicaSet> = Api::namespaced(host.client(), namespace);
    let operation = format!("get federatedreplicaset {namespace}/{name}");
    let set = host.call(operation, sets.get_opt(name)).await?;
    let set = set.ok_or_else(|| Error::SetNotFound {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    })?;
    Ok(set.into())
}

impl From<FederatedReplicaSet> for Explanation {
    fn from(set: FederatedReplicaSet) -> Self {
        let mut status = set.status.unwrap_or_default();
        let observation = match status.observed_generation {
            // The default of the CRD, before the first status.
            None | Some(-1) => Observation::Missing,
            observed if observed < set.metadata.generation => Observation::Outdated,
            Some(_) => Observation::Current,
        };
        status.observed_preferences_hash = None;
        for cluster in &mut status.clusters {
            cluster.internal = ClusterInternalState::default();
        }
        Self {
            namespace: set.metadata.namespace.unwrap_or_default(),
            name: set.metadata.name.unwrap_or_default(),
            desired_replicas: set.spec.replicas,
            observation,
            status,
        }
    }
}

/// The counts of a set in one sentence.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let desired = pluralize(self.desired_replicas, "replica");
        write!(f, "{}/{}: {desired} desired", self.namespace, self.name)?;
        let status = &self.status;
        if self.observation != Observation::Missing {
            write!(f, ", {} placed", status.placed_replicas)?;
            if status.unplaced_replicas > 0 {
                write!(f, ", {} not placed", status.unplaced_replicas)?;
            }
            let (ready, available) = (status.ready_replicas, status.available_replicas);
            write!(f, ", {ready} ready, {available} available")?;
        }
        match self.observation {
            Observation::Missing => {
                f.write_str("\nThe controller has not observed the FederatedReplicaSet yet.")
            }
            Observation::Outdated => {
                f.write_str("\nThe controller has not observed the latest spec yet.")
            }
            Observation::Current => Ok(()),
        }
    }
}
