//! Explain: how many replicas of a FederatedReplicaSet each cluster has, and why.

use fedrs_api::{ClusterInternalState, FederatedReplicaSet, FederatedReplicaSetStatus};
use kube::Api;
use serde::Serialize;

use crate::cluster_client::{ClusterClient, RequestError};

/// A FederatedReplicaSet can't be explained.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// It does not exist.
    #[error("federatedreplicaset {namespace}/{name} not found")]
    NotFound {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// A request failed.
    #[error(transparent)]
    Request(#[from] RequestError),
}

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
) -> Result<Explanation, ExplainError> {
    let sets: Api<FederatedReplicaSet> = Api::namespaced(host.client(), namespace);
    let operation = format!("get federatedreplicaset {namespace}/{name}");
    let set = host.call(operation, sets.get_opt(name)).await?;
    let set = set.ok_or_else(|| ExplainError::NotFound {
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
