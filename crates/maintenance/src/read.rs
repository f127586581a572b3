//! Reads what one member shows of a Maintenance: its nodes, the pods on them, and the MigrationRequests of these. A member may be hostile:
//! what is kept of its answers has limits.

use std::{collections::BTreeSet, time::Duration};

use controller_base::limited_list::{KeptLimit, Lists, ReadError};
use fedrs_api::{
    annotations::EVICT,
    selector::{self, LabelSelector},
};
use futures::future::try_join_all;
use kube::Client;
use reflector::Collection;
use tokio::sync::Semaphore;

use crate::{
    goal::Scope,
    observed::{Node, Observed, Pod, PodId, Request},
};

/// Where nodes are.
pub(crate) const NODES: &str = "/api/v1/nodes";
const PODS: &str = "/api/v1/pods";
const REQUESTS: &str = "/apis/fedrs.dev/v1alpha1/migrationrequests";
/// The field selector of cordoned nodes.
const CORDONED: &str = "spec.unschedulable=true";
/// The lists of pods that one member is asked for at a time.
const LISTS_AT_A_TIME: usize = 8;
/// The most nodes of a member, as the informers of members have it.
const NODES_MAX: usize = 10_000;
/// The most pods of a member, and the most of its MigrationRequests that are about them.
const PODS_MAX: usize = 150_000;

/// Reads of a member what `scope` asks for; each page within `timeout`. `selector` is that of the Maintenance.
pub(crate) async fn observe(
    client: &Client,
    selector: &LabelSelector,
    scope: &Scope,
    timeout: Duration,
) -> Result<Observed, ReadError> {
    let lists = Lists::new(client, timeout);
    let mut observed = Observed::default();
    let mut collections = Vec::new();
    if scope.matching {
        let mut matching = Collection::all(NODES);
        matching.label_selector = Some(selector::to_text(selector)).filter(|of| !of.is_empty());
        collections.push(matching);
    }
    if scope.marked {
        collections.push(Collection::with_labels(NODES, EVICT));
        // Somebody may have removed the label of a mark.
        collections.push(Collection::with_fields(NODES, CORDONED));
    }
    for collection in collections {
        let keep = |mut node: Node| {
            node.keep_labels(selector);
            Some((node.name().to_owned(), node))
        };
        let limit = KeptLimit::new(NODES, NODES_MAX);
        observed
            .nodes
            .extend(lists.list(collection, &limit, keep).await?);
    }
    if scope.pods {
        let nodes = observed.nodes.values();
        let matching = nodes.filter(|node| node.is_selected(selector));
        let names: Vec<_> = matching.map(|node| node.name().to_owned()).collect();
        observed.pods = pods_on(&lists, &names).await?;
    }
    let left: BTreeSet<&PodId> = observed.pods.values().flatten().collect();
    if !left.is_empty() {
        let requests = requests_of(&lists, &left).await?;
        observed.lacks_requests = requests.is_none();
        observed.requests = requests.unwrap_or_default();
    }
    Ok(observed)
}

/// The pods of LocalReplicaSets and ReplicaSets on these nodes.
async fn pods_on<T: FromIterator<(String, BTreeSet<PodId>)>>(
    lists: &Lists<'_>,
    nodes: &[String],
) -> Result<T, ReadError> {
    let slots = Semaphore::new(LISTS_AT_A_TIME);
    let limit = KeptLimit::new(PODS, PODS_MAX);
    let lists = nodes.iter().map(async |node| {
        let _slot = slots.acquire().await;
        let on_node = Collection::with_fields(PODS, format!("spec.nodeName={node}"));
        let left = lists.list(on_node, &limit, Pod::left).await?;
        Ok::<_, ReadError>((node.clone(), left.into_iter().collect()))
    });
    Ok(try_join_all(lists).await?.into_iter().collect())
}

/// The MigrationRequests of these pods; `None` without their CRD: only clusters with a controller of LocalReplicaSets have it.
async fn requests_of(
    lists: &Lists<'_>,
    pods: &BTreeSet<&PodId>,
) -> Result<Option<Vec<Request>>, ReadError> {
    let keep = |request: Request| pods.contains(&request.pod()).then_some(request);
    let limit = KeptLimit::new(REQUESTS, PODS_MAX);
    match lists.list(Collection::all(REQUESTS), &limit, keep).await {
        Err(error) if error.code() == Some(404) => Ok(None),
        requests => requests.map(Some),
    }
}
