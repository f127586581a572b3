//! Discovery: groups, versions and resources; the version and the health of the server.

use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::negotiate::{Format, Shape};
use super::path::Path;
use super::respond::{self, Body, answer, with_type};
use crate::api::Api;
use crate::openapi::{self, KindEntry};
use crate::resources::{Kind, Registry, Subresource, kinds};
use crate::status::Status;
use crate::version::VERSION;

/// The media type of aggregated discovery, which clients expect in the answer.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// `/version`.
pub(crate) fn version() -> Response<Body> {
    let version = json!({
        "major": "1", "minor": "36", "gitVersion": VERSION, "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "2026-04-22T00:00:00Z", "goVersion": "", "compiler": "rustc", "platform": "linux/amd64",
        "emulationMajor": "1", "emulationMinor": "36", "minCompatibilityMajor": "1", "minCompatibilityMinor": "35",
    });
    answer(200, &version, None)
}

/// `/healthz`, `/livez`, `/readyz`, and single checks below them.
pub(crate) fn health(path: &str, verbose: bool) -> Result<Response<Body>, Status> {
    const CHECKS: [&str; 3] = ["ping", "log", "etcd"];
    let (endpoint, check) = path.split_once('/').unwrap_or((path, ""));
    if !check.is_empty() {
        let known = CHECKS.contains(&check);
        return if known {
            Ok(respond::text(200, "ok"))
        } else {
            Err(Status::no_such_resource())
        };
    }
    if !verbose {
        return Ok(respond::text(200, "ok"));
    }
    let mut lines = String::new();
    for check in CHECKS {
        lines.push_str("[+]");
        lines.push_str(check);
        lines.push_str(" ok\n");
    }
    Ok(respond::text(
        200,
        format!("{lines}{endpoint} check passed\n"),
    ))
}

/// `/`, `/api`, `/apis` and all below them down to the lists of resources; `OpenAPI`.
pub(crate) fn answer_discovery(
    api: &Api,
    path: &Path,
    format: Format,
) -> Result<Response<Body>, Status> {
    let registry = api.with_state(|state| state.registry.clone());
    let aggregated = format.shape == Shape::Discovery;
    match path {
        Path::Root => Ok(answer(200, &root(&registry), Some(format))),
        Path::CoreVersions if aggregated => Ok(aggregate(&registry, true)),
        Path::Groups if aggregated => Ok(aggregate(&registry, false)),
        Path::CoreVersions => {
            let versions = json!({
                "kind": "APIVersions", "versions": ["v1"],
                "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:443"}],
            });
            Ok(answer(200, &versions, Some(format)))
        }
        Path::Groups => {
            let groups: Vec<Value> = named_groups(&registry).map(group).collect();
            let list = json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups});
            Ok(answer(200, &list, Some(format)))
        }
        Path::Group(name) => {
            let Some(found) = named_groups(&registry).find(|(group, _)| group == name) else {
                return Ok(respond::text(404, "404 page not found\n"));
            };
            let mut shown = group(found);
            shown["kind"] = json!("APIGroup");
            shown["apiVersion"] = json!("v1");
            Ok(answer(200, &shown, Some(format)))
        }
        Path::Resources(group, version) => {
            let list =
                resource_list(&registry, group, version).ok_or_else(Status::no_such_resource)?;
            Ok(answer(200, &list, Some(format)))
        }
        Path::OpenApiIndex => {
            let kinds: Vec<Kind> = registry.all().cloned().collect();
            Ok(answer(200, &openapi::index(&entries(&kinds)), None))
        }
        Path::OpenApi(group, version) => {
            let kinds: Vec<Kind> = registry.of_version(group, version).cloned().collect();
            if kinds.is_empty() {
                return Err(Status::no_such_resource());
            }
            Ok(answer(
                200,
                &openapi::document(&entries(&kinds), VERSION),
                None,
            ))
        }
        _ => Err(Status::no_such_resource()),
    }
}

fn entries(kinds: &[Kind]) -> Vec<KindEntry<'_>> {
    fn entry(kind: &Kind) -> KindEntry<'_> {
        KindEntry {
            group: &kind.group,
            version: &kind.version,
            kind: &kind.kind,
            plural: &kind.plural,
            namespaced: kind.namespaced,
            subresources: kind
                .subresources
                .iter()
                .map(|each| each.name.as_str())
                .collect(),
            schema: kind.custom.as_ref().map(|custom| custom.schema.schema()),
        }
    }
    kinds.iter().map(entry).collect()
}

fn named_groups(registry: &Registry) -> impl Iterator<Item = &(String, Vec<String>)> {
    registry
        .groups()
        .iter()
        .filter(|(group, _)| !group.is_empty())
}

fn root(registry: &Registry) -> Value {
    let mut paths = vec!["/api".to_owned(), "/api/v1".to_owned(), "/apis".to_owned()];
    for (group, versions) in named_groups(registry) {
        paths.push(format!("/apis/{group}"));
        paths.extend(
            versions
                .iter()
                .map(|version| format!("/apis/{group}/{version}")),
        );
    }
    let others = ["/healthz", "/livez", "/openapi/v3", "/readyz", "/version"];
    paths.extend(others.map(str::to_owned));
    json!({ "paths": paths })
}

fn group((name, versions): &(String, Vec<String>)) -> Value {
    let version =
        |version: &String| json!({"groupVersion": format!("{name}/{version}"), "version": version});
    json!({
        "name": name,
        "versions": versions.iter().map(version).collect::<Vec<Value>>(),
        "preferredVersion": version(&versions[0]),
    })
}

fn verbs(kind: &Kind) -> Value {
    if kind.is_review() {
        json!(["create"])
    } else if kind.is_custom() {
        json!([
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "create",
            "update",
            "watch"
        ])
    } else if *kind == *kinds::NAMESPACES {
        json!([
            "create", "delete", "get", "list", "patch", "update", "watch"
        ])
    } else {
        json!([
            "create",
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "update",
            "watch"
        ])
    }
}

fn subresource_verbs(subresource: &Subresource) -> Value {
    match subresource.name.as_str() {
        "binding" | "eviction" | "token" => json!(["create"]),
        "finalize" => json!(["update"]),
        _ => json!(["get", "patch", "update"]),
    }
}

fn resource_list(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let mut resources = Vec::new();
    for kind in registry.of_version(group, version) {
        let mut shown = json!({
            "name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced,
            "kind": kind.kind, "verbs": verbs(kind),
        });
        if !kind.short_names.is_empty() {
            shown["shortNames"] = json!(kind.short_names);
        }
        if !kind.categories.is_empty() {
            shown["categories"] = json!(kind.categories);
        }
        resources.push(shown);
        for subresource in &kind.subresources {
            let mut shown = json!({
                "name": format!("{}/{}", kind.plural, subresource.name), "singularName": "",
                "namespaced": kind.namespaced, "kind": subresource.kind, "verbs": subresource_verbs(subresource),
            });
            if let Some((group, version)) = &subresource.group_version {
                shown["group"] = json!(group);
                shown["version"] = json!(version);
            }
            resources.push(shown);
        }
    }
    if resources.is_empty() {
        return None;
    }
    let group_version = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    let mut list = json!({
        "kind": "APIResourceList", "groupVersion": group_version, "resources": resources,
    });
    if !group.is_empty() {
        list["apiVersion"] = json!("v1");
    }
    Some(list)
}

/// Aggregated discovery: all groups in one answer.
fn aggregate(registry: &Registry, core: bool) -> Response<Body> {
    let groups = registry
        .groups()
        .iter()
        .filter(|(group, _)| group.is_empty() == core);
    let items: Vec<Value> = groups
        .map(|(group, versions)| {
            let versions: Vec<Value> = versions
                .iter()
                .map(|version| {
                    let resources: Vec<Value> = registry
                        .of_version(group, version)
                        .map(aggregated_resource)
                        .collect();
                    json!({"version": version, "freshness": "Current", "resources": resources})
                })
                .collect();
            let mut item = json!({"metadata": {"creationTimestamp": null}, "versions": versions});
            if !core {
                item["metadata"]["name"] = json!(group);
            }
            item
        })
        .collect();
    let list = json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items,
    });
    with_type(
        StatusCode::OK,
        AGGREGATED,
        respond::whole(crate::store::to_json(&list)),
    )
}

fn aggregated_resource(kind: &Kind) -> Value {
    let response_kind = |group: &str, version: &str, kind: &str| json!({"group": group, "version": version, "kind": kind});
    let mut shown = json!({
        "resource": kind.plural, "singularResource": kind.singular, "verbs": verbs(kind),
        "responseKind": response_kind(&kind.group, &kind.version, &kind.kind),
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
    });
    if !kind.short_names.is_empty() {
        shown["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        shown["categories"] = json!(kind.categories);
    }
    let subresources: Vec<Value> = (kind.subresources.iter())
        .map(|each| {
            let parent = (kind.group.clone(), kind.version.clone());
            let (group, version) = each.group_version.as_ref().unwrap_or(&parent);
            json!({
                "subresource": each.name, "verbs": subresource_verbs(each),
                "responseKind": response_kind(group, version, &each.kind),
            })
        })
        .collect();
    if !subresources.is_empty() {
        shown["subresources"] = json!(subresources);
    }
    shown
}
