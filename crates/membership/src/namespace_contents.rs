//! The objects in a namespace that users may need, of every kind that the cluster serves.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use kube::{
    Api, Discovery, ResourceExt,
    api::{ListParams, PartialObjectMeta},
    core::DynamicObject,
    discovery::{ApiCapabilities, ApiResource, Scope, verbs},
};
use tokio::time::sleep;

use crate::cluster_client::{ClusterClient, RequestError};

/// Kinds of objects that describe others and are deleted with them.
const DERIVED: [&str; 4] = [
    "events",
    "endpoints",
    "endpointslices",
    "controllerrevisions",
];
/// Objects that exist in every namespace.
const DEFAULT_OBJECTS: [(&str, &str); 3] = [
    ("serviceaccounts", "default"),
    ("configmaps", "kube-root-ca.crt"),
    ("configmaps", "openshift-service-ca.crt"),
];
/// The number of concurrent list requests.
const CONCURRENT_LISTS: usize = 8;
/// How often the discovery is repeated while a group goes away.
const MORE_ATTEMPTS: u32 = 5;
/// The pause before it is.
const PAUSE: Duration = Duration::from_millis(500);

/// The objects in `namespace` that users may need, as `kind/name`.
pub(crate) async fn contents(
    cluster: &ClusterClient,
    namespace: &str,
) -> Result<Vec<String>, RequestError> {
    let kinds = kinds(cluster).await?;
    let groups = kinds.groups_alphabetical().into_iter();
    let resources = groups
        .flat_map(kube::discovery::ApiGroup::recommended_resources)
        .filter(|(kind, capabilities)| is_kept(kind, capabilities));
    let list = async |(kind, _): (ApiResource, ApiCapabilities)| {
        let api: Api<DynamicObject> = Api::namespaced_with(cluster.client(), namespace, &kind);
        let operation = format!("list {} in namespace {namespace}", kind.plural);
        let all = ListParams::default();
        match cluster.call(operation, api.list_metadata(&all)).await {
            // The kind was deleted since the discovery.
            Err(error) if error.code() == Some(404) => Ok(Vec::new()),
            list => Ok(relevant(&list?.items, &kind)),
        }
    };
    stream::iter(resources)
        .map(list)
        .buffered(CONCURRENT_LISTS)
        .try_concat()
        .await
}

/// The kinds that the cluster serves. The group of a CRD that was just deleted may be listed, and gone when it is read.
async fn kinds(cluster: &ClusterClient) -> Result<Discovery, RequestError> {
    let mut left = MORE_ATTEMPTS;
    loop {
        // Not the aggregated discovery: it silently omits the kinds of an API that is unavailable.
        let kinds = Discovery::new(cluster.client()).run();
        let kinds = cluster.call("discover the kinds of the cluster", kinds);
        match kinds.await {
            Err(error) if error.code() == Some(404) && left > 0 => {
                left -= 1;
                sleep(PAUSE).await;
            }
            kinds => return kinds,
        }
    }
}

/// Whether objects of a kind stay in a namespace until they are deleted. Metrics, for example, can't be deleted.
fn is_kept(kind: &ApiResource, capabilities: &ApiCapabilities) -> bool {
    let can = |verb| capabilities.supports_operation(verb);
    let is_deletable =
        capabilities.scope == Scope::Namespaced && can(verbs::LIST) && can(verbs::DELETE);
    is_deletable && !DERIVED.contains(&&*kind.plural)
}

/// The `objects` that neither exist in every namespace nor are terminating.
fn relevant(objects: &[PartialObjectMeta<DynamicObject>], kind: &ApiResource) -> Vec<String> {
    let staying = objects
        .iter()
        .filter(|object| object.metadata.deletion_timestamp.is_none());
    staying
        .map(ResourceExt::name_any)
        .filter(|name| !DEFAULT_OBJECTS.contains(&(&*kind.plural, name)))
        .map(|name| format!("{}/{name}", kind.kind.to_lowercase()))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kind(plural: &str) -> ApiResource {
        ApiResource {
            group: String::new(),
            version: "v1".to_owned(),
            api_version: "v1".to_owned(),
            kind: "ServiceAccount".to_owned(),
            plural: plural.to_owned(),
        }
    }

    #[test]
    fn only_kinds_with_deletable_objects_count() {
        let all = ["list", "delete"].as_slice();
        for (plural, scope, operations, expected) in [
            ("widgets", Scope::Namespaced, all, true),
            ("racks", Scope::Cluster, all, false),
            ("podmetrics", Scope::Namespaced, &["get", "list"], false),
            ("tokenreviews", Scope::Namespaced, &["create"], false),
            ("events", Scope::Namespaced, all, false),
        ] {
            let capabilities = ApiCapabilities {
                scope,
                subresources: Vec::new(),
                operations: operations.iter().map(|&verb| verb.to_owned()).collect(),
            };
            assert_eq!(is_kept(&kind(plural), &capabilities), expected, "{plural}");
        }
    }

    #[test]
    fn default_and_terminating_objects_do_not_count() {
        let objects = json!([
            { "metadata": { "name": "default" } },
            { "metadata": { "name": "leaving", "deletionTimestamp": "2026-01-01T00:00:00Z" } },
            { "metadata": { "name": "fedrs-controller" } },
        ]);
        let objects: Vec<_> = serde_json::from_value(objects).expect("metadata alone");
        assert_eq!(
            relevant(&objects, &kind("serviceaccounts")),
            ["serviceaccount/fedrs-controller"]
        );
    }
}
