//! GET of objects and collections: selectors, pages, versions.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::Response;
use serde_json::{Value, json};

use super::negotiate::{Format, Shape};
use super::query::{ListOptions, VersionMatch};
use super::respond::{Body, answer};
use super::view::{ListMeta, PlainList, View, metadata_only};
use crate::api::Api;
use crate::object::Object;
use crate::object::text;
use crate::resources::{Kind, convert};
use crate::status::{Status, StatusCause, StatusDetails};
use crate::tables;

/// A page of a list.
struct Page {
    items: Vec<Object>,
    meta: ListMeta,
}

/// A continue token: the resource version of the first page and the last returned object.
struct Position {
    revision: u64,
    after: (String, String),
}

/// GET of one object.
pub(crate) fn get(
    api: &Api,
    view: &View,
    namespace: &str,
    name: &str,
    version: Option<u64>,
    format: Format,
) -> Result<Response<Body>, Status> {
    check_not_future(version, api.revision())?;
    let object = api.get(&view.kind, namespace, name)?;
    let object = convert::to_version(&view.kind, &object);
    Ok(answer(
        200,
        &view.object(&object, api.clock()),
        Some(format),
    ))
}

/// GET of a collection.
pub(crate) fn list(
    api: &Api,
    view: &View,
    namespace: Option<&str>,
    options: &ListOptions,
    format: Format,
) -> Result<Response<Body>, Status> {
    let kind = &view.kind;
    let page = page(api, kind, namespace, options)?;
    let meta = page.meta.to_value();
    Ok(match view.shape {
        Shape::Plain | Shape::Discovery => {
            let list = PlainList {
                kind,
                meta,
                items: &page.items,
            };
            answer(200, &list, Some(format))
        }
        Shape::Metadata => {
            let items: Vec<Value> = page.items.iter().map(|item| metadata_only(item)).collect();
            let list = json!({
                "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
                "metadata": meta, "items": items,
            });
            answer(200, &list, Some(format))
        }
        Shape::Table => {
            let now = api.clock().now();
            let table = tables::table(kind, &page.items, &meta, view.row_object, true, now);
            answer(200, &table, Some(format))
        }
    })
}

fn page(
    api: &Api,
    kind: &Kind,
    namespace: Option<&str>,
    options: &ListOptions,
) -> Result<Page, Status> {
    let position = Position::parse(&options.continue_token)?;
    let (objects, revision) = snapshot(api, kind, namespace, options, position.as_ref())?;
    let after = position.map(|position| position.after);
    let selected = objects
        .into_iter()
        .filter(|object| {
            after
                .as_ref()
                .is_none_or(|after| key(object) > (after.0.as_str(), after.1.as_str()))
        })
        .filter(|object| options.selector.is_empty() || options.selector.matches(object));
    let mut items: Vec<Object> = selected.collect();
    let mut meta = ListMeta {
        revision,
        ..ListMeta::default()
    };
    // The watch cache ignores the limit.
    let limit = if options.version == Some(0) && options.continue_token.is_empty() {
        0
    } else {
        options.limit
    };
    if limit > 0 && items.len() > limit {
        let remaining = items.len() - limit;
        items.truncate(limit);
        // The API server knows the number of remaining keys, not how many of them the selector matches.
        meta.remaining = options.selector.is_empty().then_some(remaining);
        meta.continue_token = token(revision, items.last().expect("the limit is above 0"));
    }
    for item in &mut items {
        *item = convert::to_version(kind, item);
    }
    Ok(Page { items, meta })
}

fn key(object: &Value) -> (&str, &str) {
    (
        text(object, "/metadata/namespace"),
        text(object, "/metadata/name"),
    )
}

/// The objects at the resource version of the options.
fn snapshot(
    api: &Api,
    kind: &Kind,
    namespace: Option<&str>,
    options: &ListOptions,
    position: Option<&Position>,
) -> Result<(Vec<Object>, u64), Status> {
    if position.is_some() && options.version.is_some_and(|version| version > 0) {
        return Err(Status::bad_request(
            "specifying resource version is not allowed when using continue",
        ));
    }
    api.with_store(|store| {
        let current = store.revision();
        let exact = if let Some(position) = position {
            // A token that continues inconsistently has no resource version.
            Some(position.revision).filter(|&revision| revision > 0)
        } else {
            check_not_future(options.version, current)?;
            let is_exact = options.version_match == Some(VersionMatch::Exact);
            options.version.filter(|_| is_exact)
        };
        let Some(revision) = exact else {
            return Ok((store.list(kind, namespace).cloned().collect(), current));
        };
        let then = store.list_at(kind, namespace, revision);
        let objects = then.map_err(|_| too_old(position))?;
        Ok((objects, revision))
    })
}

/// Rejects a resource version in the future.
pub(crate) fn check_not_future(version: Option<u64>, current: u64) -> Result<(), Status> {
    let Some(version) = version.filter(|&version| version > current) else {
        return Ok(());
    };
    let message = format!("Too large resource version: {version}, current: {current}");
    let details = StatusDetails {
        causes: vec![StatusCause {
            reason: "ResourceVersionTooLarge",
            message: "Too large resource version".to_owned(),
            field: String::new(),
        }],
        retry_after_seconds: 1,
        ..StatusDetails::default()
    };
    Err(Status {
        details: Some(Box::new(details)),
        ..Status::new(504, "Timeout", format!("Timeout: {message}"))
    })
}

fn too_old(position: Option<&Position>) -> Status {
    let Some(position) = position else {
        return Status::expired("The resourceVersion for the provided list is too old.");
    };
    let mut status = Status::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new \
         list without the continue parameter, or use the continue token in this response to retrieve the \
         remainder of the results. Continuing with the provided token results in an inconsistent list - objects \
         that were created, modified, or deleted between the time the first chunk was returned and now may show \
         up in the list.",
    );
    status.continue_token = encode(0, &position.after);
    status
}

fn token(revision: u64, last: &Value) -> String {
    let (namespace, name) = key(last);
    encode(revision, &(namespace.to_owned(), name.to_owned()))
}

/// The token in the API server's format, except that its key names the last object instead of the next.
/// Resource version 0 means any version.
fn encode(revision: u64, after: &(String, String)) -> String {
    let version =
        i64::try_from(revision).map_or(-1, |revision| if revision == 0 { -1 } else { revision });
    let start = format!("{}/{}\0", after.0, after.1);
    let token = json!({"v": "meta.k8s.io/v1", "rv": version, "start": start});
    URL_SAFE_NO_PAD.encode(token.to_string())
}

impl Position {
    fn parse(token: &str) -> Result<Option<Self>, Status> {
        if token.is_empty() {
            return Ok(None);
        }
        let position = || -> Option<Self> {
            let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
            let token: Value = serde_json::from_slice(&bytes).ok()?;
            let start = token["start"].as_str()?.trim_end_matches('\0');
            let (namespace, name) = start.split_once('/')?;
            Some(Self {
                revision: u64::try_from(token["rv"].as_i64()?).unwrap_or(0),
                after: (namespace.to_owned(), name.to_owned()),
            })
        };
        let position = position().ok_or_else(|| {
            Status::bad_request(
                "invalid continue token: continue key is not valid: it was not made by this server",
            )
        })?;
        Ok(Some(position))
    }
}
