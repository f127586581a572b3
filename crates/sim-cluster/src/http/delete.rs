//! DELETE of objects and collections.

use http::{HeaderMap, Response};
use serde_json::{Value, json};

use super::body;
use super::query::{ListOptions, Query, invalid_options};
use super::respond::{Body, answer, success};
use super::view::{ListMeta, PlainList};
use crate::api::{Api, DeleteOptions, Preconditions, Propagation};
use crate::field::FieldError;
use crate::object::Object;
use crate::object::text;
use crate::resources::{Kind, convert};
use crate::status::Status;

/// Kinds whose deletion is answered with the object, not with a `Status`.
const RETURNED: [&str; 8] = [
    "pods",
    "services",
    "serviceaccounts",
    "podtemplates",
    "resourcequotas",
    "persistentvolumes",
    "persistentvolumeclaims",
    "endpointslices.discovery.k8s.io",
];

/// The options of a deletion: those of the body, or of the query if there is no body.
pub(crate) fn options(
    headers: &HeaderMap,
    query: &Query,
    raw: &[u8],
) -> Result<DeleteOptions, Status> {
    let from_body = body::delete_options(headers, raw)?;
    let Some(from_body) = from_body else {
        return Ok(DeleteOptions {
            grace_period: query.number("gracePeriodSeconds")?,
            propagation: propagation(query.get("propagationPolicy"), orphan_dependents(query))?,
            preconditions: Preconditions::default(),
            dry_run: query.dry_run("DeleteOptions")?,
        });
    };
    let preconditions = &from_body["preconditions"];
    let text = |field: &str| preconditions[field].as_str().map(str::to_owned);
    let dry_run = match &from_body["dryRun"] {
        Value::Null => query.dry_run("DeleteOptions")?,
        Value::Array(values) if values.iter().all(|value| value == "All") => !values.is_empty(),
        other => {
            let cause = FieldError::not_supported("dryRun", other.clone(), &["All"]);
            return Err(invalid_options("DeleteOptions", &[cause]));
        }
    };
    let policy = from_body["propagationPolicy"].as_str().unwrap_or_default();
    Ok(DeleteOptions {
        grace_period: from_body["gracePeriodSeconds"].as_i64(),
        propagation: propagation(policy, from_body["orphanDependents"].as_bool())?,
        preconditions: Preconditions {
            uid: text("uid"),
            resource_version: text("resourceVersion"),
        },
        dry_run,
    })
}

fn orphan_dependents(query: &Query) -> Option<bool> {
    query
        .has("orphanDependents")
        .then(|| query.is_set("orphanDependents"))
}

fn propagation(
    policy: &str,
    orphan_dependents: Option<bool>,
) -> Result<Option<Propagation>, Status> {
    Ok(Some(match (policy, orphan_dependents) {
        ("", None) => return Ok(None),
        ("", Some(true)) | ("Orphan", None) => Propagation::Orphan,
        ("", Some(false)) | ("Background", None) => Propagation::Background,
        ("Foreground", None) => Propagation::Foreground,
        (other, None) => {
            let supported = &["Foreground", "Background", "Orphan", "nil"];
            let cause = FieldError::not_supported("propagationPolicy", other, supported);
            return Err(invalid_options("DeleteOptions", &[cause]));
        }
        (other, Some(_)) => {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            let cause = FieldError::invalid("propagationPolicy", other, detail);
            return Err(invalid_options("DeleteOptions", &[cause]));
        }
    }))
}

/// DELETE of one object.
pub(crate) fn delete(
    api: &Api,
    kind: &Kind,
    namespace: &str,
    name: &str,
    options: &DeleteOptions,
) -> Result<Response<Body>, Status> {
    let deleted = api.delete(kind, namespace, name, options)?;
    if deleted.gone && !RETURNED.contains(&&*kind.storage) {
        let mut details = json!({
            "name": name, "kind": kind.plural, "uid": text(&deleted.object, "/metadata/uid"),
        });
        if !kind.group.is_empty() {
            details["group"] = json!(kind.group);
        }
        return Ok(answer(200, &success(&details), None));
    }
    Ok(answer(
        200,
        &*convert::to_version(kind, &deleted.object),
        None,
    ))
}

/// DELETE of a collection: each object by itself, except those that no longer exist.
pub(crate) fn delete_collection(
    api: &Api,
    kind: &Kind,
    namespace: Option<&str>,
    selection: &ListOptions,
    options: &DeleteOptions,
) -> Result<Response<Body>, Status> {
    let selected: Vec<Object> = (api.list(kind, namespace).into_iter())
        .filter(|object| selection.selector.matches(object))
        .collect();
    let meta = ListMeta {
        revision: api.revision(),
        ..ListMeta::default()
    };
    for object in &selected {
        let (at, name) = (
            text(object, "/metadata/namespace"),
            text(object, "/metadata/name"),
        );
        match api.delete(kind, at, name, options) {
            Err(status) if status.code != 404 => return Err(status),
            _ => {}
        }
    }
    let items: Vec<Object> = (selected.iter())
        .map(|object| convert::to_version(kind, object))
        .collect();
    let list = PlainList {
        kind,
        meta: meta.to_value(),
        items: &items,
    };
    Ok(answer(200, &list, None))
}
