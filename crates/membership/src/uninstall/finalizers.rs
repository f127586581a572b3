//! Taking off what keeps objects of fedrs from being deleted without a controller (F5).

use fedrs_api::{FederatedReplicaSet, finalizers, pluralize};
use futures::{StreamExt, TryStreamExt, stream};
use kube::ResourceExt;
use serde_json::{Value, json};

use super::survey::Installed;
use crate::{
    cluster_client::{ClusterClient, RequestError},
    say::Say,
};

/// Objects written at a time.
const WRITES: usize = 8;

/// Removes the finalizers of the FederatedReplicaSets.
pub(super) async fn take_off(
    host: &ClusterClient,
    installed: &Installed,
    say: &mut Say,
) -> Result<(), RequestError> {
    let sets = stream::iter(&installed.sets).map(|set| release(host, set));
    let sets: Vec<()> = sets.buffered(WRITES).try_collect().await?;
    let objects = pluralize(sets.len(), "federatedreplicaset");
    say.step(host.side, objects, "now without a finalizer of fedrs");
    Ok(())
}

async fn release(host: &ClusterClient, set: &FederatedReplicaSet) -> Result<(), RequestError> {
    let (namespace, name) = (set.namespace().unwrap_or_default(), set.name_any());
    let path =
        format!("/apis/fedrs.dev/v1alpha1/namespaces/{namespace}/federatedreplicasets/{name}");
    let doing = format!("change federatedreplicaset {namespace}/{name}");
    let patch = without_ours(set);
    ignoring_absence(host.send(doing, "PATCH", &path, Some(&patch)).await)
}

/// A merge patch that leaves others' finalizers; fails if the set has been changed meanwhile.
fn without_ours(set: &FederatedReplicaSet) -> Value {
    let others: Vec<&String> = set
        .finalizers()
        .iter()
        .filter(|it| *it != finalizers::MEMBERS)
        .collect();
    json!({
        "metadata": {
            "uid": set.metadata.uid,
            "resourceVersion": set.metadata.resource_version,
            "finalizers": others,
        },
    })
}

fn ignoring_absence(answer: Result<Value, RequestError>) -> Result<(), RequestError> {
    match answer {
        Err(failure) if failure.code() == Some(404) => Ok(()),
        answer => answer.map(drop),
    }
}
