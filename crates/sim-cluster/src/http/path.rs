//! Paths of requests: resources, discovery, and other endpoints.

use http::Method;
use percent_encoding::percent_decode_str;

use crate::verb::Verb;

/// A parsed path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// `/api/v1/...` or `/apis/GROUP/VERSION/...` with at least a plural.
    Resource(ResourcePath),
    /// `/api`.
    CoreVersions,
    /// `/apis`.
    Groups,
    /// `/apis/GROUP`.
    Group(String),
    /// `/api/v1` or `/apis/GROUP/VERSION`: group and version.
    Resources(String, String),
    /// `/openapi/v3`.
    OpenApiIndex,
    /// `/openapi/v3/apis/apps/v1`: group and version.
    OpenApi(String, String),
    /// `/version`.
    Version,
    /// `/healthz`, `/livez`, `/readyz` and the checks below them.
    Health(String),
    /// `/`.
    Root,
    /// Anything else.
    Unknown,
}

/// A path below a group and version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResourcePath {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    /// Empty if the path has none.
    pub(crate) namespace: String,
    /// Empty for collections.
    pub(crate) name: String,
    pub(crate) subresource: Option<String>,
    /// The old form `/api/v1/watch/...`.
    pub(crate) watch: bool,
}

impl Path {
    pub(crate) fn parse(path: &str) -> Self {
        let segments: Vec<String> = path
            .split('/')
            .filter(|segment| !segment.is_empty())
            .map(decode)
            .collect();
        let words: Vec<&str> = segments.iter().map(String::as_str).collect();
        match words.as_slice() {
            [] => Self::Root,
            ["version"] => Self::Version,
            ["healthz" | "livez" | "readyz", ..] => Self::Health(words.join("/")),
            ["openapi", "v3"] => Self::OpenApiIndex,
            ["openapi", "v3", "api", version] => {
                Self::OpenApi(String::new(), (*version).to_owned())
            }
            ["openapi", "v3", "apis", group, version] => {
                Self::OpenApi((*group).to_owned(), (*version).to_owned())
            }
            ["api"] => Self::CoreVersions,
            ["api", version] => Self::Resources(String::new(), (*version).to_owned()),
            ["api", version, rest @ ..] => Self::resource("", version, rest),
            ["apis"] => Self::Groups,
            ["apis", group] => Self::Group((*group).to_owned()),
            ["apis", group, version] => Self::Resources((*group).to_owned(), (*version).to_owned()),
            ["apis", group, version, rest @ ..] => Self::resource(group, version, rest),
            _ => Self::Unknown,
        }
    }

    fn resource(group: &str, version: &str, rest: &[&str]) -> Self {
        let (watch, rest) = match rest {
            ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
            _ => (false, rest),
        };
        let (namespace, rest) = match rest {
            // Namespaces themselves and their subresources.
            ["namespaces", _, "status" | "finalize"] => ("", rest),
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
            _ => ("", rest),
        };
        let (plural, name, subresource) = match rest {
            [plural] => (*plural, "", None),
            [plural, name] => (*plural, *name, None),
            [plural, name, subresource] => (*plural, *name, Some((*subresource).to_owned())),
            _ => return Self::Unknown,
        };
        Self::Resource(ResourcePath {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: plural.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource,
            watch,
        })
    }
}

impl ResourcePath {
    /// The verb of a method on this path; `None` for 405. `watch` is the parameter of the query, which applies to collections only.
    pub(crate) fn verb(&self, method: &Method, watch: bool) -> Option<Verb> {
        let collection = self.name.is_empty();
        Some(match *method {
            Method::GET | Method::HEAD if self.watch || (watch && collection) => Verb::Watch,
            Method::GET | Method::HEAD if collection => Verb::List,
            Method::GET | Method::HEAD => Verb::Get,
            Method::POST if collection || self.subresource.is_some() => Verb::Create,
            Method::PUT if !collection => Verb::Update,
            Method::PATCH if !collection => Verb::Patch,
            Method::DELETE if collection => Verb::DeleteCollection,
            Method::DELETE => Verb::Delete,
            _ => return None,
        })
    }
}

/// Decodes percent encoding; malformed sequences stay as they are.
pub(crate) fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(path: &str) -> ResourcePath {
        match Path::parse(path) {
            Path::Resource(resource) => resource,
            other => panic!("{path} is {other:?}"),
        }
    }

    #[test]
    fn reads_resource_paths() {
        let rows = [
            ("/api/v1/pods", "pods", "", "", None),
            ("/api/v1/namespaces", "namespaces", "", "", None),
            ("/api/v1/namespaces/a", "namespaces", "", "a", None),
            (
                "/api/v1/namespaces/a/status",
                "namespaces",
                "",
                "a",
                Some("status"),
            ),
            ("/api/v1/namespaces/a/pods", "pods", "a", "", None),
            ("/api/v1/namespaces/a/pods/b", "pods", "a", "b", None),
            (
                "/apis/apps/v1/namespaces/a/replicasets/b/scale",
                "replicasets",
                "a",
                "b",
                Some("scale"),
            ),
            (
                "/apis/x/v1/namespaces/a/things/b%20c",
                "things",
                "a",
                "b c",
                None,
            ),
        ];
        for (path, plural, namespace, name, subresource) in rows {
            let parsed = resource(path);
            let got = (
                parsed.plural.as_str(),
                parsed.namespace.as_str(),
                parsed.name.as_str(),
            );
            assert_eq!(got, (plural, namespace, name), "{path}");
            assert_eq!(parsed.subresource.as_deref(), subresource, "{path}");
        }
        assert!(resource("/api/v1/watch/namespaces/a/pods").watch);
        assert_eq!(
            Path::parse("/api/v1/namespaces/a/pods/b/log/c"),
            Path::Unknown
        );
    }

    #[test]
    fn methods_give_verbs() {
        let (collection, object) = (resource("/api/v1/pods"), resource("/api/v1/nodes/a"));
        assert_eq!(collection.verb(&Method::GET, false), Some(Verb::List));
        assert_eq!(collection.verb(&Method::GET, true), Some(Verb::Watch));
        assert_eq!(
            collection.verb(&Method::DELETE, false),
            Some(Verb::DeleteCollection)
        );
        assert_eq!(collection.verb(&Method::PUT, false), None);
        assert_eq!(object.verb(&Method::GET, true), Some(Verb::Get));
        assert_eq!(object.verb(&Method::POST, false), None);
        assert_eq!(object.verb(&Method::PATCH, false), Some(Verb::Patch));
    }
}
