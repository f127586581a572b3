//! Scripts of requests, as a small language.
//!
//! A path that starts with a slash is absolute; `configmaps/a` belongs to the core group and `apps/v1:replicasets/a` to
//! another group, in the script's namespace. `${ns}` is that namespace, and `${rv}` the value that an earlier step
//! [stored](ApiRequest::keep) under this name.

#![expect(
    clippy::needless_pass_by_value,
    reason = "objects are written inline in requests: references would only add noise"
)]

use serde_json::Value;

/// The media type of a Table, as kubectl requests it.
pub(crate) const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
/// The media type of metadata only.
pub(crate) const METADATA: &str =
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json";
/// The media type of a list of metadata only.
pub(crate) const METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";

/// Steps that belong together, in their own namespace.
#[derive(Clone, Debug)]
pub(crate) struct RequestScript {
    /// Its name: `topic::what_is_requested`.
    pub(crate) name: &'static str,
    /// The steps.
    pub(crate) steps: Vec<Step>,
    /// The known differences.
    pub(crate) known_differences: Vec<KnownDifference>,
    /// Whether the script runs while no other one does, because nodes fail in it.
    pub(crate) is_alone: bool,
}

/// A known difference.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownDifference {
    /// The key of its reason in [`known_differences`](super::known_differences).
    pub(crate) reason: &'static str,
    /// The label of the step, or `*`.
    pub(crate) step: &'static str,
    /// The path: `code`, `warnings`, or `body/...` with `*` for any one part; it covers everything below.
    pub(crate) at: &'static str,
}

/// A known difference in a table: script, reason, step, path.
pub(crate) type KnownDifferenceRow = (&'static str, &'static str, &'static str, &'static str);

/// Adds the known differences of a table to the scripts.
///
/// # Panics
/// If the table names a script that does not exist.
pub(crate) fn with_known_differences(
    known: &[KnownDifferenceRow],
    script: Vec<RequestScript>,
) -> Vec<RequestScript> {
    for (name, ..) in known {
        let is_there = script.iter().any(|script| script.name == *name);
        assert!(is_there, "there is no script {name}");
    }
    let with = |script: RequestScript| {
        let own = known.iter().filter(|(name, ..)| *name == script.name);
        own.clone()
            .fold(script.clone(), |script, (_, reason, step, at)| {
                script.differs(reason, step, at)
            })
    };
    script.into_iter().map(with).collect()
}

/// One step.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A request; its response is compared.
    Request(ApiRequest),
    /// Starts a watch under this name.
    Watch(&'static str, ApiRequest),
    /// Compares the next so many events of a watch, fewer only if it ends; with 0 whatever else comes, which should be nothing.
    /// Periodic bookmarks do not count.
    Events(&'static str, usize),
    /// Lets a node fail, or recovers it.
    Node(u32, bool),
    /// Compacts the history: older resource versions are gone.
    Compact,
}

/// The user of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    /// The administrator.
    Admin,
    /// The user that the headers authenticate, or an anonymous one.
    Anonymous,
}

/// Whether a response fulfills a condition.
pub(crate) type Predicate = fn(&Value) -> bool;

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct ApiRequest {
    /// The method.
    pub(crate) method: &'static str,
    /// The path with the query, as described above.
    pub(crate) path: String,
    /// Additional headers.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// The body.
    pub(crate) body: String,
    /// The user.
    pub(crate) user: User,
    /// Parts of the response that are stored: name and JSON pointer.
    pub(crate) stored: Vec<(&'static str, &'static str)>,
    /// Repeats the request until the response fulfills the condition, at most so many seconds.
    pub(crate) until: Option<(Predicate, u64)>,
    /// The name in known differences: method and path, unless it is [set](ApiRequest::called).
    pub(crate) label: String,
    /// The pointers of the compared parts of the body; all of it if there are none.
    pub(crate) only: Vec<&'static str>,
}

/// A script of these steps.
pub(crate) fn script(name: &'static str, steps: Vec<Step>) -> RequestScript {
    RequestScript {
        name,
        steps,
        known_differences: Vec::new(),
        is_alone: false,
    }
}

impl RequestScript {
    /// Declares a known difference at `at` of the response to `step`.
    #[must_use]
    pub(crate) fn differs(
        mut self,
        reason: &'static str,
        step: &'static str,
        at: &'static str,
    ) -> Self {
        self.known_differences
            .push(KnownDifference { reason, step, at });
        self
    }

    /// Runs the script while no other one does.
    #[must_use]
    pub(crate) fn alone(mut self) -> Self {
        self.is_alone = true;
        self
    }
}

impl From<ApiRequest> for Step {
    fn from(request: ApiRequest) -> Self {
        Self::Request(request)
    }
}

/// Steps from requests and steps.
macro_rules! steps {
    ($($step:expr),* $(,)?) => { vec![$($crate::reference::script::Step::from($step)),*] };
}

pub(crate) use steps;

fn request(method: &'static str, path: &str) -> ApiRequest {
    ApiRequest {
        method,
        path: absolute(path),
        headers: Vec::new(),
        body: String::new(),
        user: User::Admin,
        stored: Vec::new(),
        until: None,
        label: format!("{method} {path}"),
        only: Vec::new(),
    }
}

fn absolute(path: &str) -> String {
    let (resource, _) = path.split_once('?').unwrap_or((path, ""));
    match resource.split_once(':') {
        _ if path.starts_with('/') => path.to_owned(),
        Some((group, _)) => {
            let rest = &path[group.len() + 1..];
            format!("/apis/{group}/namespaces/${{ns}}/{rest}")
        }
        None => format!("/api/v1/namespaces/${{ns}}/{path}"),
    }
}

/// A GET request.
pub(crate) fn get(path: &str) -> ApiRequest {
    request("GET", path)
}

/// Creates an object.
pub(crate) fn post(path: &str, body: Value) -> ApiRequest {
    request("POST", path).json(&body)
}

/// Replaces an object.
pub(crate) fn put(path: &str, body: Value) -> ApiRequest {
    request("PUT", path).json(&body)
}

/// Deletes, without options.
pub(crate) fn delete(path: &str) -> ApiRequest {
    request("DELETE", path)
}

/// Deletes with options.
pub(crate) fn delete_with(path: &str, options: Value) -> ApiRequest {
    request("DELETE", path).json(&options)
}

/// A JSON merge patch.
pub(crate) fn merge(path: &str, body: Value) -> ApiRequest {
    patch("merge-patch", path, &body)
}

/// A JSON patch.
pub(crate) fn json_patch(path: &str, body: Value) -> ApiRequest {
    patch("json-patch", path, &body)
}

/// A strategic merge patch.
pub(crate) fn strategic(path: &str, body: Value) -> ApiRequest {
    patch("strategic-merge-patch", path, &body)
}

/// A server-side apply; the query names the field manager.
pub(crate) fn apply(path: &str, body: Value) -> ApiRequest {
    let mut request = patch("apply-patch", path, &body);
    request.headers = vec![("content-type", "application/apply-patch+yaml".to_owned())];
    request
}

fn patch(kind: &str, path: &str, body: &Value) -> ApiRequest {
    let mut request = request("PATCH", path);
    request.body = body.to_string();
    request.header("content-type", &format!("application/{kind}+json"))
}

/// Any other request.
pub(crate) fn other(method: &'static str, path: &str) -> ApiRequest {
    request(method, path)
}

impl ApiRequest {
    fn json(mut self, body: &Value) -> Self {
        self.body = body.to_string();
        self.header("content-type", "application/json")
    }

    /// Sets the body.
    #[must_use]
    pub(crate) fn text(mut self, content_type: &str, body: &str) -> Self {
        body.clone_into(&mut self.body);
        self.header("content-type", content_type)
    }

    /// Sets a header.
    #[must_use]
    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.retain(|(header, _)| *header != name);
        self.headers.push((name, value.to_owned()));
        self
    }

    /// Sets the requested media type.
    #[must_use]
    pub(crate) fn accept(self, form: &str) -> Self {
        self.header("accept", form)
    }

    /// Impersonates this user.
    #[must_use]
    pub(crate) fn by(self, user: &str) -> Self {
        self.header("impersonate-user", user)
    }

    /// Authenticates with this token only, or not at all.
    #[must_use]
    pub(crate) fn with_token(mut self, token: Option<&str>) -> Self {
        self.user = User::Anonymous;
        match token {
            Some(token) => self.header("authorization", &format!("Bearer {token}")),
            None => self,
        }
    }

    /// Stores the part of the response at `pointer` under `${name}`.
    #[must_use]
    pub(crate) fn keep(mut self, name: &'static str, pointer: &'static str) -> Self {
        self.stored.push((name, pointer));
        self
    }

    /// Repeats the request until `holds`, at most `seconds`; the last response is compared.
    #[must_use]
    pub(crate) fn until(mut self, seconds: u64, holds: Predicate) -> Self {
        self.until = Some((holds, seconds));
        self
    }

    /// Sets the name in known differences.
    #[must_use]
    pub(crate) fn called(mut self, label: &str) -> Self {
        label.clone_into(&mut self.label);
        self
    }

    /// Compares only the fields that users write: controllers write the status at any time.
    #[must_use]
    pub(crate) fn spec(self) -> Self {
        self.only("/metadata/labels")
            .only("/metadata/finalizers")
            .only("/metadata/generation")
            .only("/spec")
    }

    /// Compares only the part of the body at `pointer` (and other parts that are named so).
    #[must_use]
    pub(crate) fn only(mut self, pointer: &'static str) -> Self {
        self.only.push(pointer);
        self
    }
}
