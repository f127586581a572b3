//! Members whose pods are generated. They answer lists and watches of pods and nodes, no more.

use std::{
    fmt::Write as _,
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use fedrs_tests::generated_members::{self, Body, query, response};
use futures::stream;
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{StreamBody, combinators::BoxBody};
use hyper::body::Incoming;
use parking_lot::Mutex;
use tokio::sync::watch;

/// How many there are of what. Endpoint i is of the set i / `endpoints`, and in the member i % `members`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) members: usize,
    pub(crate) sets: usize,
    pub(crate) endpoints: usize,
}

impl Shape {
    /// The number of endpoints of all sets.
    pub(crate) const fn all(self) -> usize {
        self.sets * self.endpoints
    }
}

/// All members.
#[derive(Debug)]
pub(crate) struct Members {
    shape: Shape,
    /// The events of the pods of each.
    events: Vec<Events>,
    /// Whether they accept no request.
    refuses: AtomicBool,
}

/// The events of the pods of a member.
#[derive(Debug, Default)]
struct Events {
    /// All of them, the first at the version 2.
    all: Mutex<Vec<Bytes>>,
    /// Signals each.
    added: watch::Sender<()>,
}

/// The name of the pod of endpoint `number`.
pub(crate) fn name(shape: Shape, number: usize) -> String {
    format!("set-{}-{number:08x}", number / shape.endpoints)
}

/// The address of endpoint `number`.
pub(crate) fn address(number: usize) -> Ipv4Addr {
    let [_, a, b, c] = u32::try_from(number).unwrap_or_default().to_be_bytes();
    Ipv4Addr::new(10, a, b, c)
}

/// The pod of endpoint `number`.
fn pod(shape: Shape, number: usize, version: usize, is_ready: bool) -> String {
    let (name, set) = (name(shape, number), number / shape.endpoints);
    let address = address(number);
    let ready = if is_ready { "True" } else { "False" };
    let node = number % 16;
    format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"default","uid":"0f1e2d3c-0000-4000-8000-{number:012x}","resourceVersion":"{version}","labels":{{"app":"set-{set}"}}}},"spec":{{"nodeName":"node-{node}","containers":[{{"name":"main","image":"web:1","ports":[{{"name":"http","containerPort":8080}}]}}]}},"status":{{"phase":"Running","conditions":[{{"type":"Ready","status":"{ready}"}}],"podIPs":[{{"ip":"{address}"}}]}}}}"#
    )
}

impl Members {
    pub(crate) fn new(shape: Shape) -> Arc<Self> {
        Arc::new(Self {
            shape,
            events: (0..shape.members).map(|_| Events::default()).collect(),
            refuses: AtomicBool::new(false),
        })
    }

    /// Whether all requests fail from now on.
    pub(crate) fn refuse(&self, refuses: bool) {
        self.refuses.store(refuses, Ordering::Relaxed);
    }

    /// The pod of endpoint `number` becomes ready, or stops being so.
    pub(crate) fn change(&self, number: usize, is_ready: bool) {
        let Events { all, added } = &self.events[number % self.shape.members];
        let mut events = all.lock();
        let object = pod(self.shape, number, events.len() + 2, is_ready);
        events.push(Bytes::from(format!(
            "{{\"type\":\"MODIFIED\",\"object\":{object}}}\n"
        )));
        drop(events);
        added.send_replace(());
    }

    /// Serves all members until the runtime ends. Returns the address.
    pub(crate) async fn serve(self: Arc<Self>) -> anyhow::Result<String> {
        let answer = move |request: Request<Incoming>| {
            std::future::ready(Arc::clone(&self).answer(&request))
        };
        generated_members::serve(answer).await
    }

    fn answer(self: Arc<Self>, request: &Request<Incoming>) -> Response<Body> {
        let path = request.uri().path().trim_start_matches('/');
        let (name, path) = path.split_once('/').unwrap_or((path, ""));
        let member = name
            .strip_prefix("m-")
            .and_then(|number| number.parse().ok());
        match member.filter(|member: &usize| *member < self.shape.members) {
            Some(member) => self.answer_as(member, path, request),
            None => response(StatusCode::NOT_FOUND, Bytes::new()),
        }
    }

    /// Answers a request to a member for `path`.
    pub(crate) fn answer_as<B>(
        self: Arc<Self>,
        member: usize,
        path: &str,
        request: &Request<B>,
    ) -> Response<Body> {
        if self.refuses.load(Ordering::Relaxed) {
            return response(StatusCode::SERVICE_UNAVAILABLE, Bytes::new());
        }
        let number = |key| query(request, key).and_then(|value| value.parse().ok());
        match (path, query(request, "watch").is_some()) {
            ("api/v1/pods", true) => self.watch(member, number("resourceVersion").unwrap_or(1)),
            ("api/v1/pods", false) => {
                let limit = number("limit").unwrap_or(usize::MAX);
                let page = self.list(member, number("continue").unwrap_or(0), limit);
                response(StatusCode::OK, Bytes::from(page))
            }
            ("api/v1/nodes", true) => {
                Response::new(BoxBody::new(StreamBody::new(stream::pending())))
            }
            ("api/v1/nodes", false) => response(StatusCode::OK, Bytes::from(nodes())),
            _ => response(StatusCode::NOT_FOUND, Bytes::new()),
        }
    }

    /// A page of the pods of a member, from the one with this number in the member.
    fn list(&self, member: usize, from: usize, limit: usize) -> String {
        let all = (member..self.shape.all()).step_by(self.shape.members);
        let items: Vec<_> = all.clone().skip(from).take(limit).collect();
        let end = from + items.len();
        let next = if end < all.len() {
            end.to_string()
        } else {
            String::new()
        };
        let version = self.events[member].all.lock().len() + 1;
        let mut page = format!(
            r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{version}","continue":"{next}"}},"items":["#
        );
        for (place, number) in items.into_iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            let _ = write!(page, "{comma}{}", pod(self.shape, number, 1, true));
        }
        page.push_str("]}");
        page
    }

    /// The events after the version `from`, and the version of the last one.
    fn events_after(&self, member: usize, from: usize) -> (Vec<u8>, usize) {
        let events = self.events[member].all.lock();
        let new = events.get(from.max(1) - 1..).unwrap_or_default();
        (new.concat(), events.len() + 1)
    }

    /// The events after the version `from`, for ever.
    fn watch(self: Arc<Self>, member: usize, from: usize) -> Response<Body> {
        let changes = self.events[member].added.subscribe();
        let events = stream::unfold((changes, from), move |(mut changes, from)| {
            let members = Arc::clone(&self);
            async move {
                loop {
                    changes.mark_unchanged();
                    let (events, to) = members.events_after(member, from);
                    if !events.is_empty() {
                        return Some((Ok(Frame::data(Bytes::from(events))), (changes, to)));
                    }
                    changes.changed().await.ok()?;
                }
            }
        });
        Response::new(BoxBody::new(StreamBody::new(events)))
    }
}

fn nodes() -> String {
    let node = |number: usize| {
        let zone = number % 3;
        format!(
            r#"{{"metadata":{{"name":"node-{number}","resourceVersion":"1","labels":{{"topology.kubernetes.io/zone":"zone-{zone}"}}}}}}"#
        )
    };
    let nodes = (0..16).map(node).collect::<Vec<_>>().join(",");
    format!(
        r#"{{"kind":"NodeList","apiVersion":"v1","metadata":{{"resourceVersion":"1"}},"items":[{nodes}]}}"#
    )
}
