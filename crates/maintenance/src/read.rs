//! Reads what one member shows of a Maintenance: its nodes, the pods on them, and the MigrationRequests of these. A member may be hostile:
//! what is kept of its answers has limits.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use fedrs_api::{
    annotations::EVICT,
    selector::{self, LabelSelector},
};
use futures::future::try_join_all;
use kube::Client;
use reflector::{Collection, ReflectorSettings, format_error};
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

use crate::{
    goal::Scope,
    observed::{Node, Observed, Pod, PodId, Request},
};

/// Where nodes are.
pub(crate) const NODES: &str = "/api/v1/nodes";
const PODS: &str = "/api/v1/pods";
const REQUESTS: &str = "/apis/fedrs.dev/v1alpha1/migrationrequests";
/// The lists of pods that one member is asked for at a time.
const LISTS_AT_A_TIME: usize = 8;
/// The most nodes of a member, as the informers of members have it.
const NODES_MAX: usize = 10_000;
/// The most pods of a member, and the most of its MigrationRequests that are about them.
const PODS_MAX: usize = 150_000;

/// A member can't be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// A list failed.
    #[error("{}", format_error(.0))]
    List(#[from] reflector::Error),
    /// The member sends more than is kept.
    #[error("more than {limit} objects of {path}")]
    TooMany { path: &'static str, limit: usize },
}

/// How many more objects of a collection may be kept.
struct Budget {
    path: &'static str,
    limit: usize,
    left: AtomicUsize,
}

impl Budget {
    fn new(path: &'static str, limit: usize) -> Self {
        Self {
            path,
            limit,
            left: AtomicUsize::new(limit),
        }
    }

    /// Whether there is room for one more.
    fn take(&self) -> bool {
        let less = |left: usize| left.checked_sub(1);
        self.left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .is_ok()
    }
}

/// Lists of one member.
struct Lists<'a> {
    client: &'a Client,
    settings: ReflectorSettings,
}

/// Reads of a member what `scope` asks for; each page within `timeout`. `selector` is that of the Maintenance.
pub(crate) async fn observe(
    client: &Client,
    selector: &LabelSelector,
    scope: &Scope,
    timeout: Duration,
) -> Result<Observed, ReadError> {
    let settings = ReflectorSettings {
        page_timeout: timeout,
        ..ReflectorSettings::default()
    };
    let lists = Lists { client, settings };
    let mut observed = Observed::default();
    let mut collections = Vec::new();
    if scope.matching {
        let mut matching = Collection::all(NODES);
        matching.label_selector = Some(selector::to_text(selector)).filter(|of| !of.is_empty());
        collections.push(matching);
    }
    if scope.marked {
        collections.push(Collection::with_labels(NODES, EVICT));
    }
    for collection in collections {
        let keep = |mut node: Node| {
            node.keep_labels(selector);
            Some((node.name().to_owned(), node))
        };
        let budget = Budget::new(NODES, NODES_MAX);
        observed
            .nodes
            .extend(lists.list(collection, &budget, keep).await?);
    }
    if scope.pods {
        let nodes = observed.nodes.values();
        let matching = nodes.filter(|node| node.is_selected(selector));
        let names: Vec<_> = matching.map(|node| node.name().to_owned()).collect();
        observed.pods = lists.pods_on(&names).await?;
    }
    let left: BTreeSet<&PodId> = observed.pods.values().flatten().collect();
    if !left.is_empty() {
        let requests = lists.requests_of(&left).await?;
        observed.requests = requests;
    }
    Ok(observed)
}

impl Lists<'_> {
    /// The pods of LocalReplicaSets on these nodes.
    async fn pods_on<T: FromIterator<(String, BTreeSet<PodId>)>>(
        &self,
        nodes: &[String],
    ) -> Result<T, ReadError> {
        let slots = Semaphore::new(LISTS_AT_A_TIME);
        let budget = Budget::new(PODS, PODS_MAX);
        let lists = nodes.iter().map(async |node| {
            let _slot = slots.acquire().await;
            let on_node = Collection::with_fields(PODS, format!("spec.nodeName={node}"));
            let left = self.list(on_node, &budget, Pod::of_local_set).await?;
            Ok::<_, ReadError>((node.clone(), left.into_iter().collect()))
        });
        Ok(try_join_all(lists).await?.into_iter().collect())
    }

    /// The MigrationRequests of these pods. Only clusters with a controller of LocalReplicaSets have the CRD.
    async fn requests_of(&self, pods: &BTreeSet<&PodId>) -> Result<Vec<Request>, ReadError> {
        let keep = |request: Request| pods.contains(&request.pod()).then_some(request);
        let budget = Budget::new(REQUESTS, PODS_MAX);
        let collection = Collection::all(REQUESTS);
        match self.list(collection, &budget, keep).await {
            Err(ReadError::List(error)) if error.code() == Some(404) => Ok(Vec::new()),
            requests => requests,
        }
    }

    /// Lists a collection, and keeps what `keep` makes of its objects. What can't be read is skipped, and logged.
    async fn list<T: DeserializeOwned, K>(
        &self,
        collection: Collection,
        budget: &Budget,
        keep: impl Fn(T) -> Option<K>,
    ) -> Result<Vec<K>, ReadError> {
        let mut kept = Vec::new();
        let mut is_full = false;
        let take = |item| match item {
            Ok(item) => {
                if let Some(item) = keep(item).filter(|_| !is_full) {
                    is_full = !budget.take();
                    kept.push(item);
                }
            }
            Err(invalid) => tracing::warn!(%invalid, "skipped an object that can't be read"),
        };
        reflector::list(self.client.clone(), collection, &self.settings, take).await?;
        if is_full {
            let Budget { path, limit, .. } = *budget;
            return Err(ReadError::TooMany { path, limit });
        }
        Ok(kept)
    }
}
