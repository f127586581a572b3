//! Reads what one member shows of a Maintenance: its nodes, the pods on them, and the MigrationRequests of these.

use std::time::Duration;

use fedrs_api::{
    annotations::EVICT,
    selector::{self, LabelSelector},
};
use futures::future::try_join_all;
use kube::Client;
use reflector::{Collection, Error, ReflectorSettings, format_error};
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

use crate::{
    goal::Scope,
    observed::{Node, Observed, Pod, Request},
};

/// Where nodes are.
pub(crate) const NODES: &str = "/api/v1/nodes";
const PODS: &str = "/api/v1/pods";
const REQUESTS: &str = "/apis/fedrs.dev/v1alpha1/migrationrequests";
/// The lists of pods that one member is asked for at a time.
const LISTS_AT_A_TIME: usize = 8;

/// Reads of a member what `scope` asks for; each page within `timeout`. `selector` is that of the Maintenance.
pub(crate) async fn observe(
    client: &Client,
    selector: &LabelSelector,
    scope: &Scope,
    timeout: Duration,
) -> Result<Observed, String> {
    let read = read(client, selector, scope, timeout).await;
    read.map_err(|error| format_error(&error))
}

async fn read(
    client: &Client,
    selector: &LabelSelector,
    scope: &Scope,
    timeout: Duration,
) -> Result<Observed, Error> {
    let mut observed = Observed::default();
    let mut put = |nodes: Vec<Node>| {
        let named = nodes.into_iter().map(|node| (node.name().to_owned(), node));
        observed.nodes.extend(named);
    };
    if scope.matching {
        let mut matching = Collection::all(NODES);
        matching.label_selector = Some(selector::to_text(selector)).filter(|of| !of.is_empty());
        put(list(client, matching, timeout).await?);
    }
    if scope.marked {
        let marked = Collection::with_labels(NODES, EVICT);
        put(list(client, marked, timeout).await?);
    }
    if scope.pods {
        let matching = observed.nodes.values();
        let names = matching
            .filter(|node| node.is_selected(selector))
            .map(|node| node.name().to_owned());
        let names: Vec<String> = names.collect();
        let slots = Semaphore::new(LISTS_AT_A_TIME);
        let lists = names.iter().map(async |name| {
            let _slot = slots.acquire().await;
            let on_node = Collection::with_fields(PODS, format!("spec.nodeName={name}"));
            let pods: Vec<Pod> = list(client, on_node, timeout).await?;
            let left = pods.into_iter().filter_map(Pod::of_local_set);
            Ok::<_, Error>((name.clone(), left.collect()))
        });
        observed.pods = try_join_all(lists).await?.into_iter().collect();
    }
    if observed.pods.values().any(|pods| !pods.is_empty()) {
        let requests = list::<Request>(client, Collection::all(REQUESTS), timeout).await;
        observed.requests = match requests {
            // Only clusters with a controller of LocalReplicaSets have the CRD.
            Err(error) if error.code() == Some(404) => Vec::new(),
            requests => requests?,
        };
    }
    Ok(observed)
}

/// Lists a collection. What can't be read is skipped, and logged.
async fn list<T: DeserializeOwned>(
    client: &Client,
    collection: Collection,
    timeout: Duration,
) -> Result<Vec<T>, Error> {
    let settings = ReflectorSettings {
        page_timeout: timeout,
        ..ReflectorSettings::default()
    };
    let mut items = Vec::new();
    let take = |item| match item {
        Ok(item) => items.push(item),
        Err(invalid) => tracing::warn!(%invalid, "skipped an object that can't be read"),
    };
    reflector::list(client.clone(), collection, &settings, take).await?;
    Ok(items)
}
