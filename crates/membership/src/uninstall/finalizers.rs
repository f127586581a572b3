//! Removes the finalizers that would block deletions while no controller runs (F5).

use fedrs_api::{FederatedReplicaSet, finalizers};
use futures::{StreamExt, TryStreamExt, stream};
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::{
    cluster_client::{ClusterClient, RequestError},
    object::none_if_not_found,
    progress::{Progress, Reporter},
};

/// The number of concurrent writes.
const CONCURRENT_WRITES: usize = 8;

/// Removes the finalizer of fedrs from `sets`.
pub(super) async fn remove(
    host: &ClusterClient,
    sets: &[FederatedReplicaSet],
    reporter: &mut dyn Reporter,
) -> Result<(), RequestError> {
    let writes = stream::iter(sets).map(|set| remove_from(host, set));
    let writes = writes.buffered(CONCURRENT_WRITES);
    writes.try_collect::<()>().await?;
    reporter.progress(Progress::FinalizersRemoved(sets.len()));
    Ok(())
}

async fn remove_from(host: &ClusterClient, set: &FederatedReplicaSet) -> Result<(), RequestError> {
    let (namespace, name) = (set.namespace().unwrap_or_default(), set.name_any());
    let path =
        format!("/apis/fedrs.dev/v1alpha1/namespaces/{namespace}/federatedreplicasets/{name}");
    let operation = format!("patch federatedreplicaset {namespace}/{name}");
    let patch = without_finalizer(set);
    let response = host.send(operation, "PATCH", &path, Some(&patch)).await;
    none_if_not_found(response).map(drop)
}

/// A merge patch that keeps other finalizers. The API server rejects it if the set was changed meanwhile.
fn without_finalizer(set: &FederatedReplicaSet) -> Value {
    let others = set.finalizers().iter();
    let others: Vec<&String> = others
        .filter(|finalizer| *finalizer != finalizers::MEMBERS)
        .collect();
    json!({
        "metadata": {
            "uid": set.metadata.uid,
            "resourceVersion": set.metadata.resource_version,
            "finalizers": others,
        },
    })
}
