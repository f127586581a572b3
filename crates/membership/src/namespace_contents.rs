//! What is in a namespace that somebody may need: objects of any kind that the cluster has.

use futures::{StreamExt, TryStreamExt, stream};
use kube::{
    Api, Discovery, ResourceExt,
    api::{ListParams, PartialObjectMeta},
    core::DynamicObject,
    discovery::{ApiCapabilities, ApiResource, Scope, verbs},
};

use crate::cluster_client::{ClusterClient, RequestError};

/// Kinds that only tell of others, and go with them.
const TELLING: [&str; 4] = [
    "events",
    "endpoints",
    "endpointslices",
    "controllerrevisions",
];
/// Objects that every namespace has.
const USUAL: [(&str, &str); 3] = [
    ("serviceaccounts", "default"),
    ("configmaps", "kube-root-ca.crt"),
    ("configmaps", "openshift-service-ca.crt"),
];
/// Lists asked for at the same time.
const AT_ONCE: usize = 8;

/// What is in `namespace` that somebody may need, as `kind/name`.
pub(super) async fn contents(
    remote: &ClusterClient,
    namespace: &str,
) -> Result<Vec<String>, RequestError> {
    // One by one, not by the aggregated answer: that leaves out, without a word, what an API that is down has.
    let kinds = Discovery::new(remote.client()).run();
    let kinds = remote.call("ask which kinds there are", kinds).await?;
    let groups = kinds.groups_alphabetical().into_iter();
    let kept = groups
        .flat_map(kube::discovery::ApiGroup::recommended_resources)
        .filter(|(kind, capabilities)| is_kept(kind, capabilities));
    let list = async |(kind, _): (ApiResource, ApiCapabilities)| {
        let api: Api<DynamicObject> = Api::namespaced_with(remote.client(), namespace, &kind);
        let doing = format!("list {} in namespace {namespace}", kind.plural);
        let all = ListParams::default();
        match remote.call(doing, api.list_metadata(&all)).await {
            // Gone since it was told of.
            Err(failure) if failure.code() == Some(404) => Ok(Vec::new()),
            list => Ok(unusual(&list?.items, &kind)),
        }
    };
    stream::iter(kept)
        .map(list)
        .buffered(AT_ONCE)
        .try_concat()
        .await
}

/// Whether objects of a kind stay in a namespace until somebody deletes them: metrics, which nobody can, do not.
fn is_kept(kind: &ApiResource, capabilities: &ApiCapabilities) -> bool {
    let can = |verb| capabilities.supports_operation(verb);
    let is_kept = capabilities.scope == Scope::Namespaced && can(verbs::LIST) && can(verbs::DELETE);
    is_kept && !TELLING.contains(&&*kind.plural)
}

/// Those of `objects` that not every namespace has, and that are not on their way out.
fn unusual(objects: &[PartialObjectMeta<DynamicObject>], kind: &ApiResource) -> Vec<String> {
    let staying = objects
        .iter()
        .filter(|it| it.metadata.deletion_timestamp.is_none());
    staying
        .map(ResourceExt::name_any)
        .filter(|name| !USUAL.contains(&(&*kind.plural, name)))
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
    fn kinds_that_are_kept_in_namespaces() {
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
                operations: operations.iter().map(|&it| it.to_owned()).collect(),
            };
            assert_eq!(is_kept(&kind(plural), &capabilities), expected, "{plural}");
        }
    }

    #[test]
    fn what_every_namespace_has_is_no_use() {
        let objects = json!([
            { "metadata": { "name": "default" } },
            { "metadata": { "name": "leaving", "deletionTimestamp": "2026-01-01T00:00:00Z" } },
            { "metadata": { "name": "fedrs-controller" } },
        ]);
        let objects: Vec<_> = serde_json::from_value(objects).expect("metadata alone");
        assert_eq!(
            unusual(&objects, &kind("serviceaccounts")),
            ["serviceaccount/fedrs-controller"]
        );
    }
}
