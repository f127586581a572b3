//! What generated members answer.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use fedrs_tests::generated_members::{self, Body, query, response};
use futures::stream;
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody, combinators::BoxBody};
use hyper::body::Incoming;
use parking_lot::Mutex;
use serde_json::json;

use super::member::{Kind, Member};

/// The members, and the writes that they received.
pub(super) struct Members {
    pub(super) all: BTreeMap<String, Member>,
    writes: Mutex<Vec<Write>>,
    /// The member whose next probe fails.
    failing: Mutex<Option<String>>,
}

/// A request other than GET.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) at: Instant,
    /// Method and path, with the member.
    pub(super) request: String,
}

impl Members {
    pub(super) fn new(names: impl IntoIterator<Item = String>) -> Self {
        let members = names
            .into_iter()
            .map(|name| (name.clone(), Member::new(name)));
        Self {
            all: members.collect(),
            writes: Mutex::default(),
            failing: Mutex::default(),
        }
    }

    /// The writes since the last call.
    pub(super) fn take_writes(&self) -> Vec<Write> {
        std::mem::take(&mut self.writes.lock())
    }

    /// Makes the next probe of `member` fail.
    pub(super) fn fail_probe(&self, member: &str) {
        *self.failing.lock() = Some(member.to_owned());
    }

    /// Whether that probe is still to come.
    pub(super) fn awaits_probe(&self) -> bool {
        self.failing.lock().is_some()
    }

    /// Serves all members until the runtime ends. Returns the address.
    pub(super) async fn serve(self: Arc<Self>) -> anyhow::Result<String> {
        generated_members::serve(move |request| Arc::clone(&self).answer(request)).await
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let uri = request.uri().clone();
        let path = uri.path().trim_start_matches('/');
        let (name, path) = path.split_once('/').unwrap_or((path, ""));
        if !self.all.contains_key(name) {
            return status(StatusCode::NOT_FOUND);
        }
        if request.method() != Method::GET {
            self.writes.lock().push(Write {
                at: Instant::now(),
                request: format!("{} {name}/{path}", request.method()),
            });
            let is_creation = request.method() == Method::POST && path.ends_with("/replicasets");
            let body = request.into_body().collect().await;
            return match body.map(|body| self.all[name].create(&body.to_bytes())) {
                Ok(Ok(object)) if is_creation => response(StatusCode::CREATED, object),
                Ok(Err(_)) if is_creation => status(StatusCode::CONFLICT),
                _ => status(StatusCode::METHOD_NOT_ALLOWED),
            };
        }
        let query = |key| {
            let value = query(&request, key).unwrap_or_default();
            value.replace("%2F", "/")
        };
        let kind = match path {
            "readyz" => {
                let fails = self.failing.lock().take_if(|failing| failing == name);
                return match fails {
                    Some(_) => status(StatusCode::INTERNAL_SERVER_ERROR),
                    None => response(StatusCode::OK, Bytes::from_static(b"ok")),
                };
            }
            "version" => {
                let version = json!({ "major": "1", "minor": "36", "gitVersion": "v1.36.4" });
                return response(StatusCode::OK, Bytes::from(version.to_string()));
            }
            "apis/apps/v1/replicasets" => Kind::ReplicaSets,
            "api/v1/pods" => Kind::Pods,
            "api/v1/nodes" => Kind::Nodes,
            _ => return status(StatusCode::NOT_FOUND),
        };
        if query("watch").is_empty() {
            let limit = query("limit").parse().unwrap_or(usize::MAX);
            let page = self.all[name].list(kind, &query("continue"), limit);
            return response(StatusCode::OK, page);
        }
        let from = query("resourceVersion").parse().unwrap_or(0);
        let seconds = query("timeoutSeconds").parse().unwrap_or(290);
        Self::watch(
            self,
            name.to_owned(),
            kind,
            from,
            Duration::from_secs(seconds),
        )
    }

    /// The events of `member` after the version `from`, until `duration` is over.
    fn watch(
        self: Arc<Self>,
        member: String,
        kind: Kind,
        from: u64,
        duration: Duration,
    ) -> Response<Body> {
        let end = tokio::time::Instant::now() + duration;
        let changes = self.all[&member].changes();
        let events = stream::unfold((changes, from), move |(mut changes, from)| {
            let (members, member) = (Arc::clone(&self), member.clone());
            async move {
                loop {
                    let (events, to) = members.all[&member].events(kind, from);
                    if !events.is_empty() {
                        return Some((Ok(Frame::data(events)), (changes, to)));
                    }
                    changes.mark_unchanged();
                    if *changes.borrow() > to {
                        continue;
                    }
                    let changed = tokio::time::timeout_at(end, changes.changed());
                    changed.await.ok()?.ok()?;
                }
            }
        });
        Response::new(BoxBody::new(StreamBody::new(events)))
    }
}

fn status(code: StatusCode) -> Response<Body> {
    let body = json!({ "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code.as_u16(),
        "reason": code.canonical_reason(), "message": "generated" });
    response(code, Bytes::from(body.to_string()))
}
