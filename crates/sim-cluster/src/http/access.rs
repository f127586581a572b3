//! Authentication and authorization of a request: `Authorization` -> user -> impersonation -> verb and target -> pass | 401 | 403.

use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderValue, Method};

use super::impersonation::acting_user;
use super::path::{Path, ResourcePath};
use super::query::Query;
use crate::api::Api;
use crate::authentication::User;
use crate::authorization::{Attributes, Target, authorize};
use crate::status::Status;

/// The user of a request that is allowed. Without a bearer token the user is `default_user`.
///
/// # Errors
/// 401 for an invalid token, 403 for a request that the user is not allowed to send.
pub(crate) fn admit(api: &Api, parts: &Parts, default_user: &User) -> Result<User, Status> {
    let header = parts.headers.get(AUTHORIZATION);
    let user = match header.and_then(bearer_token) {
        Some(token) => api.user_of(token).ok_or_else(Status::unauthorized)?,
        None => default_user.clone(),
    };
    let attributes = attributes(parts);
    api.with_store(|store| {
        let user = acting_user(store, user, &parts.headers)?;
        authorize(store, &user, &attributes)?;
        Ok(user)
    })
}

/// The token of `Bearer TOKEN`; other schemes do not authenticate.
fn bearer_token(header: &HeaderValue) -> Option<&str> {
    let mut words = header.to_str().ok()?.split_ascii_whitespace();
    let scheme = words.next()?;
    words
        .next()
        .filter(|_| scheme.eq_ignore_ascii_case("bearer"))
}

fn attributes(parts: &Parts) -> Attributes {
    let path = parts.uri.path();
    match Path::parse(path) {
        Path::Resource(resource) => {
            of_resource(&parts.method, resource, &Query::parse(parts.uri.query()))
        }
        _ => Attributes {
            verb: parts.method.as_str().to_ascii_lowercase(),
            target: Target::Path(path.to_owned()),
        },
    }
}

fn of_resource(method: &Method, path: ResourcePath, query: &Query) -> Attributes {
    let collection = path.name.is_empty();
    let verb = match *method {
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if collection => "deletecollection",
        Method::DELETE => "delete",
        Method::GET | Method::HEAD if path.watch => "watch",
        Method::GET | Method::HEAD if !collection => "get",
        Method::GET | Method::HEAD if query.is_set("watch") => "watch",
        Method::GET | Method::HEAD => "list",
        _ => "",
    };
    // A user who may read one object may list and watch it by its name.
    let by_name = (collection && matches!(verb, "list" | "watch"))
        .then(|| selected_name(query))
        .flatten();
    // A namespace is in itself: a role in it can grant permissions on it.
    let namespace = if path.plural == "namespaces" && path.group.is_empty() {
        path.name.clone()
    } else {
        path.namespace
    };
    Attributes {
        verb: verb.to_owned(),
        target: Target::Resource {
            group: path.group,
            resource: path.plural,
            subresource: path.subresource.unwrap_or_default(),
            namespace,
            name: by_name.unwrap_or(path.name),
        },
    }
}

/// The name in `fieldSelector=metadata.name=NAME`.
fn selected_name(query: &Query) -> Option<String> {
    let terms = query.get("fieldSelector").split(',');
    let mut names = terms.filter_map(|term| {
        let name = term.strip_prefix("metadata.name=")?;
        Some(name.trim_start_matches('=').to_owned())
    });
    names.next().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    /// Verb, group, resource with subresource, namespace and name, joined by blanks; `-` for what is empty.
    fn shown(method: &str, path: &str) -> String {
        let request = Request::builder().method(method).uri(path).body(());
        let (parts, ()) = request.unwrap().into_parts();
        let Attributes { verb, target } = attributes(&parts);
        let words = match target {
            Target::Path(path) => vec![verb, path],
            Target::Resource {
                group,
                resource,
                subresource,
                namespace,
                name,
            } => vec![verb, group, resource, subresource, namespace, name],
        };
        let words = words.into_iter().map(|word| {
            if word.is_empty() {
                "-".to_owned()
            } else {
                word
            }
        });
        words.collect::<Vec<String>>().join(" ")
    }

    #[test]
    fn a_request_is_a_verb_on_something() {
        for (method, path, expected) in [
            ("GET", "/api/v1/pods", "list - pods - - -"),
            ("GET", "/api/v1/pods?watch=true", "watch - pods - - -"),
            ("GET", "/api/v1/watch/pods", "watch - pods - - -"),
            ("GET", "/api/v1/namespaces/a/pods/b", "get - pods - a b"),
            ("GET", "/api/v1/namespaces/a", "get - namespaces - a a"),
            (
                "PUT",
                "/api/v1/namespaces/a/finalize",
                "update - namespaces finalize a a",
            ),
            (
                "DELETE",
                "/api/v1/namespaces/a/pods",
                "deletecollection - pods - a -",
            ),
            (
                "DELETE",
                "/apis/x.org/v1/things/b",
                "delete x.org things - - b",
            ),
            (
                "POST",
                "/api/v1/namespaces/a/pods/b/eviction",
                "create - pods eviction a b",
            ),
            (
                "PATCH",
                "/apis/apps/v1/namespaces/a/replicasets/b/scale",
                "patch apps replicasets scale a b",
            ),
            (
                "GET",
                "/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Db&watch=1",
                "watch - secrets - a b",
            ),
            (
                "GET",
                "/api/v1/namespaces/a/secrets?fieldSelector=type%3Db",
                "list - secrets - a -",
            ),
            ("GET", "/apis/apps/v1", "get /apis/apps/v1"),
            ("POST", "/nonsense", "post /nonsense"),
        ] {
            assert_eq!(shown(method, path), expected, "{method} {path}");
        }
    }

    #[test]
    fn only_bearer_tokens_are_read() {
        for (header, expected) in [
            ("Bearer abc", Some("abc")),
            ("bearer  abc", Some("abc")),
            ("Basic abc", None),
            ("Bearer ", None),
            ("", None),
        ] {
            let header = HeaderValue::from_str(header).unwrap();
            assert_eq!(bearer_token(&header), expected, "{header:?}");
        }
    }
}
