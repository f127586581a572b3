//! Reads what one member shows of an AvailabilitySet. A member may be hostile: what is kept of its answers has limits.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use controller_base::limited_list::{KeptLimit, Lists, ReadError};
use fedrs_api::{DomainLabels, annotations, labels, selector, selector::LabelSelector};
use kube::Client;
use reflector::Collection;
use serde::de::DeserializeOwned;
use tokio::{sync::Mutex, time::Instant};

use crate::{
    carriers,
    federated_set::FederatedSet,
    observed::{Budget, Meta, Node, Observed, Pod},
    own::{FEDERATED_SETS, Own, with_disabled},
};

const NODES: &str = "/api/v1/nodes";
const PODS: &str = "pods";
const BUDGETS: &str = "poddisruptionbudgets";
const SETS: &str = "localreplicasets";
/// The most nodes of a member, as the informers of members have it.
const NODES_MAX: usize = 10_000;
/// The most pods of a set in a member.
const PODS_MAX: usize = 50_000;
/// The most PodDisruptionBudgets, and the most LocalReplicaSets, of a namespace in a member.
const OBJECTS_MAX: usize = 2_000;
/// The most keys of labels that selectors of PodDisruptionBudgets may be about.
const KEYS_MAX: usize = 1_000;
/// For how long nodes that were listed serve all sets.
const NODES_AGE_MAX: Duration = Duration::from_secs(5);
/// The longest value of a label.
const LABEL_BYTES_MAX: usize = 63;

/// What is asked for.
pub(crate) struct Question<'a> {
    /// Whose pods, beside those of others.
    pub(crate) own: &'a Own<'a>,
    pub(crate) selector: &'a LabelSelector,
    /// The FederatedDeployments of the namespace.
    pub(crate) deployments: &'a [FederatedSet],
    pub(crate) timeout: Duration,
}

/// The nodes of a member, which all sets share.
#[derive(Debug, Default)]
pub(crate) struct NodeCache {
    listed: Mutex<Option<Listed>>,
}

#[derive(Debug)]
struct Listed {
    at: Instant,
    /// Which labels were kept.
    keys: BTreeSet<String>,
    nodes: Arc<BTreeMap<String, Node>>,
}

impl NodeCache {
    /// All nodes, with the labels of domains.
    async fn get(
        &self,
        lists: &Lists<'_>,
        domain_labels: &DomainLabels,
    ) -> Result<Arc<BTreeMap<String, Node>>, ReadError> {
        let mut listed = self.listed.lock().await;
        let wanted = [
            &*domain_labels.rack,
            &*domain_labels.zone,
            annotations::EVICT,
        ];
        let mut keys = BTreeSet::from(wanted.map(str::to_owned));
        if let Some(listed) = &*listed {
            let is_complete = keys.is_subset(&listed.keys);
            if is_complete && listed.at.elapsed() < NODES_AGE_MAX {
                return Ok(Arc::clone(&listed.nodes));
            }
            keys.extend(listed.keys.iter().cloned());
        }
        let keep = |mut node: Node| {
            let keys = keys.iter().map(String::as_str).collect();
            keep_labels(&mut node.metadata, &keys);
            Some((node.metadata.name.clone(), node))
        };
        let limit = KeptLimit::new(NODES, NODES_MAX);
        let nodes = lists.list(Collection::all(NODES), &limit, keep).await?;
        let nodes = Arc::new(nodes.into_iter().collect());
        *listed = Some(Listed {
            at: Instant::now(),
            keys,
            nodes: Arc::clone(&nodes),
        });
        Ok(nodes)
    }
}

/// Reads a member: pods last, so that what PodDisruptionBudgets had granted before is seen.
pub(crate) async fn observe(
    client: &Client,
    question: &Question<'_>,
    domain_labels: &DomainLabels,
    cache: &NodeCache,
) -> Result<Observed, ReadError> {
    let lists = Lists::new(client, question.timeout);
    let namespace = &question.own.namespace;
    let nodes = cache.get(&lists, domain_labels).await?;
    let path = format!("/apis/fedrs.dev/v1alpha1/namespaces/{namespace}/{SETS}");
    // Only clusters with a controller of LocalReplicaSets have the CRD.
    let sets = match all(&lists, Collection::all(path), (SETS, OBJECTS_MAX)).await {
        Err(error) if error.code() == Some(404) => Vec::new(),
        sets => sets?,
    };
    let path = format!("/apis/policy/v1/namespaces/{namespace}/{BUDGETS}");
    let budgets: Vec<Budget> = all(&lists, Collection::all(path), (BUDGETS, OBJECTS_MAX)).await?;
    let path = format!("/api/v1/namespaces/{namespace}/{PODS}");
    let keys = label_keys(&budgets, question.deployments);
    let list_pods = async |selector: &LabelSelector| {
        let selected = Collection::with_labels(path.clone(), selector::to_text(selector));
        let keep = |mut pod: Pod| {
            keep_labels(&mut pod.metadata, &keys);
            Some(pod)
        };
        let limit = KeptLimit::new(PODS, PODS_MAX);
        lists.list(selected, &limit, keep).await
    };
    let covering = carriers::covering(&budgets, question.own, question.selector);
    let covering = match covering.and_then(|budget| budget.spec.selector.as_ref()) {
        Some(wide) => list_pods(&with_disabled(wide)).await?,
        None => Vec::new(),
    };
    let pods = list_pods(question.selector).await?;
    Ok(Observed {
        sets,
        budgets,
        pods,
        covering,
        nodes,
    })
}

/// The FederatedDeployments of this federation in a namespace of the host.
pub(crate) async fn deployments(
    host: &Client,
    (namespace, federation): (&str, &str),
    timeout: Duration,
) -> Result<Vec<FederatedSet>, ReadError> {
    let lists = Lists::new(host, timeout);
    let path = format!("/apis/fedrs.dev/v1alpha1/namespaces/{namespace}/{FEDERATED_SETS}");
    let keep = |set: FederatedSet| (set.spec.federation == federation).then_some(set);
    let limit = KeptLimit::new(FEDERATED_SETS, OBJECTS_MAX);
    lists.list(Collection::all(path), &limit, keep).await
}

/// The labels of pods that matter: PodDisruptionBudgets and FederatedDeployments select by them.
fn label_keys<'a>(budgets: &'a [Budget], deployments: &'a [FederatedSet]) -> BTreeSet<&'a str> {
    let budgets = budgets.iter();
    let of_budgets = budgets.filter_map(|budget| budget.spec.selector.as_ref());
    let selectors = of_budgets.chain(deployments.iter().map(|set| &set.spec.selector));
    let keys = selectors.flat_map(selector::keys).take(KEYS_MAX);
    keys.chain([labels::ENABLED]).collect()
}

fn keep_labels(metadata: &mut Meta, keys: &BTreeSet<&str>) {
    let labels = &mut metadata.labels;
    labels.retain(|key, value| keys.contains(&**key) && value.len() <= LABEL_BYTES_MAX);
}

async fn all<T: DeserializeOwned>(
    lists: &Lists<'_>,
    collection: Collection,
    (path, limit): (&'static str, usize),
) -> Result<Vec<T>, ReadError> {
    lists
        .list(collection, &KeptLimit::new(path, limit), Some)
        .await
}
