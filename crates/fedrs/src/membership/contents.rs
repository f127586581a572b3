//! What is in a namespace that somebody may need: objects of any kind that the cluster has.

use futures::{StreamExt, TryStreamExt, stream};
use serde_json::Value;

use crate::remote::{Failure, Remote};

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

/// A kind whose objects are in namespaces, and stay until somebody deletes them.
#[derive(Debug, PartialEq, Eq)]
struct Resource {
    /// Such as `/apis/apps/v1`.
    api: String,
    /// Such as `deployments`.
    plural: String,
    /// Such as `deployment`.
    singular: String,
}

/// What is in `namespace` that somebody may need, as `kind/name`.
pub(super) async fn contents(remote: &Remote, namespace: &str) -> Result<Vec<String>, Failure> {
    let resources = resources(remote).await?;
    let list = async |resource: Resource| {
        let Resource { api, plural, .. } = &resource;
        let uri = format!("{api}/namespaces/{namespace}/{plural}");
        let doing = format!("list {plural} in namespace {namespace}");
        match remote.send(doing, "GET", &uri, None).await {
            // Gone since it was told of.
            Err(failure) if failure.code() == Some(404) => Ok(Vec::new()),
            list => Ok(unusual(&list?, &resource)),
        }
    };
    stream::iter(resources)
        .map(list)
        .buffered(AT_ONCE)
        .try_concat()
        .await
}

/// The kinds that the cluster has, each in the version that it prefers.
async fn resources(remote: &Remote) -> Result<Vec<Resource>, Failure> {
    let doing = "ask which kinds there are";
    let groups = remote.send(doing, "GET", "/apis", None).await?;
    let groups = groups["groups"].as_array().into_iter().flatten();
    let preferred = groups.filter_map(|it| it["preferredVersion"]["groupVersion"].as_str());
    let apis = ["/api/v1".to_owned()].into_iter();
    let apis: Vec<_> = apis
        .chain(preferred.map(|version| format!("/apis/{version}")))
        .collect();
    let of_api = async |api: String| {
        let told = remote.send(doing, "GET", &api, None).await?;
        Ok(resources_of(&api, &told))
    };
    stream::iter(apis)
        .map(of_api)
        .buffered(AT_ONCE)
        .try_concat()
        .await
}

/// Those of one API that are kept in namespaces: what can't be deleted, such as metrics, is none.
fn resources_of(api: &str, told: &Value) -> Vec<Resource> {
    let told = told["resources"].as_array().into_iter().flatten();
    let kept = told.filter(|it| {
        let verbs = it["verbs"].as_array();
        let can = |verb: &str| verbs.is_some_and(|verbs| verbs.iter().any(|it| it == verb));
        it["namespaced"] == true && can("list") && can("delete")
    });
    let kept = kept.filter_map(|it| {
        let plural = it["name"].as_str().filter(|name| !TELLING.contains(name))?;
        let singular = it["singularName"].as_str().filter(|name| !name.is_empty());
        Some(Resource {
            api: api.to_owned(),
            plural: plural.to_owned(),
            singular: singular.unwrap_or(plural).to_owned(),
        })
    });
    kept.collect()
}

/// Objects of a list that not every namespace has, and that are not on their way out.
fn unusual(list: &Value, resource: &Resource) -> Vec<String> {
    let items = list["items"].as_array().into_iter().flatten();
    let staying = items
        .map(|it| &it["metadata"])
        .filter(|it| it["deletionTimestamp"].is_null());
    staying
        .filter_map(|it| it["name"].as_str())
        .filter(|name| !USUAL.contains(&(&*resource.plural, *name)))
        .map(|name| format!("{}/{name}", resource.singular))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kinds_that_are_kept_in_namespaces() {
        let all = json!(["create", "delete", "get", "list"]);
        let told = json!({ "resources": [
            { "name": "widgets", "singularName": "widget", "namespaced": true, "verbs": all },
            { "name": "widgets/status", "singularName": "", "namespaced": true, "verbs": ["get", "patch"] },
            { "name": "racks", "singularName": "rack", "namespaced": false, "verbs": all },
            { "name": "pods", "singularName": "", "namespaced": true, "verbs": ["get", "list"] },
            { "name": "events", "singularName": "event", "namespaced": true, "verbs": all },
            { "name": "nameless", "singularName": "", "namespaced": true, "verbs": all },
        ] });
        let resource = |plural: &str, singular: &str| Resource {
            api: "/apis/example.com/v1".to_owned(),
            plural: plural.to_owned(),
            singular: singular.to_owned(),
        };
        assert_eq!(
            resources_of("/apis/example.com/v1", &told),
            [
                resource("widgets", "widget"),
                resource("nameless", "nameless")
            ]
        );
        assert_eq!(resources_of("/api/v1", &json!({})), []);
    }

    #[test]
    fn what_every_namespace_has_is_no_use() {
        let list = json!({ "items": [
            { "metadata": { "name": "default" } },
            { "metadata": { "name": "leaving", "deletionTimestamp": "2026-01-01T00:00:00Z" } },
            { "metadata": { "name": "fedrs-controller" } },
        ] });
        let accounts = Resource {
            api: "/api/v1".to_owned(),
            plural: "serviceaccounts".to_owned(),
            singular: "serviceaccount".to_owned(),
        };
        assert_eq!(
            unusual(&list, &accounts),
            ["serviceaccount/fedrs-controller"]
        );
    }
}
