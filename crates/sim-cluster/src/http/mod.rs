//! HTTP requests to the API: method, path, query and body -> call of the API -> answer.
//!
//! ```text
//! path -> kind -> verb -> options from query and headers -> get / list / watch / write / delete -> answer
//! ```
//!
//! Synchronous: the body has been read before, and a watch is a stream that runs afterwards.

mod access;
mod body;
mod delete;
mod discovery;
mod impersonation;
mod list;
mod negotiate;
mod path;
mod protobuf;
mod query;
mod respond;
mod reviews;
mod view;
mod watch;
mod write;
mod write_request;

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, Response};
use jiff::fmt::rfc2822::DateTimePrinter;

pub use respond::Body;
pub(crate) use respond::BoxError;
pub(crate) use respond::refuse;

use crate::api::Api;
use crate::authentication::User;
use crate::faults::Faults;
use crate::resources::{Kind, kinds};
use crate::status::Status;
use crate::tables;
use crate::verb::Verb;
use negotiate::{Format, Shape, format_of};
use path::{Path, ResourcePath};
use query::Query;
use view::View;
use write_request::WriteRequest;

/// Answers requests to one cluster.
#[derive(Clone, Debug)]
pub(crate) struct Handler {
    api: Api,
    faults: Faults,
}

/// The verb and resource of a request, for faults and logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    /// `None` for a request that is not about a resource.
    pub(crate) verb: Option<Verb>,
    /// Empty for a request that is not about a resource.
    pub(crate) plural: String,
    /// Empty for a request that is about an object itself.
    pub(crate) subresource: String,
}

impl Subject {
    pub(crate) fn of(parts: &Parts) -> Self {
        let Path::Resource(resource) = Path::parse(parts.uri.path()) else {
            return Self {
                verb: None,
                plural: String::new(),
                subresource: String::new(),
            };
        };
        let watch = Query::parse(parts.uri.query()).is_set("watch");
        Self {
            verb: resource.verb(&parts.method, watch),
            plural: resource.plural,
            subresource: resource.subresource.unwrap_or_default(),
        }
    }
}

impl Handler {
    pub(crate) fn new(api: Api, faults: Faults) -> Self {
        Self { api, faults }
    }

    /// The resource version of the last change.
    pub(crate) fn revision(&self) -> u64 {
        self.api.revision()
    }

    /// The header `Date` of a response: the cluster's time.
    pub(crate) fn date(&self) -> HeaderValue {
        let now = self.api.clock().now();
        let date = DateTimePrinter::new().timestamp_to_rfc9110_string(&now);
        let date = date.expect("the time of a cluster has a year of four digits");
        HeaderValue::try_from(date).expect("a date is ASCII")
    }

    /// The user of a request that is allowed; `default_user` without a token.
    ///
    /// # Errors
    /// 401 and 403.
    pub(crate) fn admit(&self, parts: &Parts, default_user: &User) -> Result<User, Status> {
        access::admit(&self.api, parts, default_user)
    }

    /// Answers a user's request. An error of the API is an answer as well.
    pub(crate) fn answer(&self, user: User, parts: &Parts, body: &Bytes) -> Response<Body> {
        match self.route(&Arc::new(user), parts, body) {
            Ok(response) => response,
            Err(status) => refuse(&status),
        }
    }

    fn route(
        &self,
        user: &Arc<User>,
        parts: &Parts,
        body: &Bytes,
    ) -> Result<Response<Body>, Status> {
        let query = Query::parse(parts.uri.query());
        let path = Path::parse(parts.uri.path());
        if let Path::Resource(resource) = path {
            return self.resource(user, &resource, parts, &query, body);
        }
        if !matches!(parts.method, Method::GET | Method::HEAD) {
            return Err(Status::method_not_allowed());
        }
        match path {
            // Unknown paths below `/api` and `/apis` are answered by the servers of groups.
            Path::Unknown if parts.uri.path().starts_with("/api") => {
                Err(Status::no_such_resource())
            }
            Path::Unknown => Ok(respond::text(404, "404 page not found\n")),
            Path::Health(check) => discovery::health(&check, query.has("verbose")),
            Path::Version => Ok(discovery::version()),
            path => discovery::answer_discovery(&self.api, &path, format_of(&parts.headers)?),
        }
    }

    fn resource(
        &self,
        user: &Arc<User>,
        path: &ResourcePath,
        parts: &Parts,
        query: &Query,
        body: &Bytes,
    ) -> Result<Response<Body>, Status> {
        let kind = self.kind_of(path)?;
        let is_whole_list = path.name.is_empty() && path.namespace.is_empty();
        if parts.method == Method::HEAD
            || parts.method == Method::DELETE && is_whole_list && kind == *kinds::NAMESPACES
        {
            return Err(Status::method_not_allowed());
        }
        let verb = path
            .verb(&parts.method, query.is_set("watch"))
            .ok_or_else(Status::method_not_allowed)?;
        if kind.is_review() && verb != Verb::Create {
            return Err(Status::method_not_allowed());
        }
        let needs_namespace = kind.namespaced
            && path.namespace.is_empty()
            && !matches!(verb, Verb::List | Verb::Watch);
        if needs_namespace && !path.name.is_empty() {
            return Err(Status::no_such_resource());
        }
        if needs_namespace && verb != Verb::Create {
            return Err(Status::method_not_allowed());
        }
        let format = format_of(&parts.headers)?;
        let view = View::new(&kind, format.shape, query)?;
        match verb {
            Verb::Get => self.get(&view, path, query, format),
            Verb::List | Verb::Watch => self.collection(view, path, verb, query, format),
            Verb::Create if needs_namespace => Err(Status::bad_request(
                "an empty namespace may not be set during creation",
            )),
            Verb::Create | Verb::Update | Verb::Patch => {
                let write = WriteRequest {
                    api: &self.api,
                    user,
                    view: &view,
                    namespace: &path.namespace,
                    name: &path.name,
                    subresource: path.subresource.as_deref(),
                    headers: &parts.headers,
                    query,
                    body,
                    format,
                };
                match verb {
                    Verb::Create => write.create(),
                    Verb::Update => write.update(),
                    _ => write.patch(),
                }
            }
            Verb::Delete | Verb::DeleteCollection => self.delete(&kind, path, parts, query, body),
        }
    }

    /// The kind in a path. A path with a namespace must be of a namespaced kind.
    fn kind_of(&self, path: &ResourcePath) -> Result<Kind, Status> {
        let kind = self.api.with_state(|state| {
            let found = state
                .registry
                .find(&path.group, &path.version, &path.plural);
            found.cloned()
        });
        let kind = kind.ok_or_else(Status::no_such_resource)?;
        let misplaced = !kind.namespaced && !path.namespace.is_empty();
        let unknown = path
            .subresource
            .as_deref()
            .filter(|subresource| !kind.has_subresource(subresource));
        match unknown {
            _ if misplaced => Err(Status::no_such_resource()),
            // The API server looks up the optional subresources of custom kinds by object.
            Some("status" | "scale") if kind.is_custom() => {
                Err(Status::not_found(&kind, &path.name))
            }
            Some(_) => Err(Status::no_such_resource()),
            None => Ok(kind),
        }
    }

    fn get(
        &self,
        view: &View,
        path: &ResourcePath,
        query: &Query,
        format: Format,
    ) -> Result<Response<Body>, Status> {
        match path.subresource.as_deref() {
            Some("scale") => {
                let scale = self.api.scale(&view.kind, &path.namespace, &path.name)?;
                if format.shape == Shape::Table {
                    let table =
                        tables::scale_table(&scale, view.row_object, self.api.clock().now());
                    return Ok(respond::answer(200, &table, Some(format)));
                }
                Ok(respond::answer(200, &scale, Some(format)))
            }
            Some("binding" | "eviction" | "token" | "finalize") => {
                Err(Status::method_not_allowed())
            }
            _ => {
                let version = query.version()?;
                list::get(
                    &self.api,
                    view,
                    &path.namespace,
                    &path.name,
                    version,
                    format,
                )
            }
        }
    }

    fn collection(
        &self,
        view: View,
        path: &ResourcePath,
        verb: Verb,
        query: &Query,
        format: Format,
    ) -> Result<Response<Body>, Status> {
        let namespace = Some(path.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        let mut options = query.list_options(&view.kind, verb == Verb::Watch)?;
        if verb == Verb::List {
            return list::list(&self.api, &view, namespace, &options, format);
        }
        if !path.name.is_empty() {
            let by_name = format!("metadata.name={}", path.name);
            options.selector.fields = crate::selectors::FieldSelector::parse(&view.kind, &by_name)?;
        }
        if format.shape == Shape::Discovery || format.yaml {
            return Err(Status::new(
                406,
                "NotAcceptable",
                "only the following media types are accepted: application/json",
            ));
        }
        let faults = self.faults.for_watch(&view.kind.plural);
        Ok(watch::watch(&self.api, view, namespace, options, faults))
    }

    fn delete(
        &self,
        kind: &Kind,
        path: &ResourcePath,
        parts: &Parts,
        query: &Query,
        body: &Bytes,
    ) -> Result<Response<Body>, Status> {
        if path.subresource.is_some() {
            return Err(Status::method_not_allowed());
        }
        let options = delete::options(&parts.headers, query, body)?;
        if !path.name.is_empty() {
            return delete::delete(&self.api, kind, &path.namespace, &path.name, &options);
        }
        let namespace = Some(path.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        let selection = query.list_options(kind, false)?;
        delete::delete_collection(&self.api, kind, namespace, &selection, &options)
    }
}
