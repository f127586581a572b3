//! Watches: a stream of events from a resource version on.
//!
//! ```text
//! initial objects (if requested) -> bookmark -> selected changes of the log -> ... -> timeout
//!                                                  ^ notification of the collection
//! ```
//!
//! The connection polls the stream: a watch has no task of its own.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use futures::stream;
use http::{Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::negotiate::Shape;
use super::query::ListOptions;
use super::respond::{Body, BoxError, with_type};
use super::view::View;
use crate::api::Api;
use crate::faults::{ConnectionError, WatchFault, WatchFaults};
use crate::object::Object;
use crate::resources::{Kind, convert};
use crate::selectors::Selector;
use crate::status::Status;
use crate::store::{Change, to_json};

/// The timeout of a watch that specifies none: the default of kube-apiserver's `--min-request-timeout`.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(30);
/// The interval of bookmarks.
const BOOKMARK_EVERY: Duration = Duration::from_mins(1);

/// The state of one watch.
struct Watch {
    api: Api,
    view: View,
    /// The kind as stored.
    kind: Kind,
    namespace: Option<String>,
    selector: Selector,
    faults: WatchFaults,
    bookmarks: bool,
    /// Changes up to this resource version have been sent.
    cursor: u64,
    queue: VecDeque<Bytes>,
    /// Whether an event was sent: the first one has the columns of a table.
    begun: bool,
    ends_at: Instant,
    bookmark_at: Instant,
    finished: bool,
}

/// The next step of a watch.
enum Step {
    Send(Bytes),
    /// End the stream with an error, as a broken connection does.
    Break,
    End,
}

/// Answers a watch.
pub(crate) fn watch(
    api: &Api,
    view: View,
    namespace: Option<&str>,
    options: ListOptions,
    faults: WatchFaults,
) -> Response<Body> {
    let now = Instant::now();
    let timeout = options.timeout_seconds.filter(|&seconds| seconds > 0);
    let mut watch = Watch {
        api: api.clone(),
        kind: view.kind.clone(),
        view,
        namespace: namespace.map(str::to_owned),
        faults,
        bookmarks: options.allow_bookmarks,
        cursor: 0,
        queue: VecDeque::new(),
        begun: false,
        ends_at: now + timeout.map_or(DEFAULT_TIMEOUT, Duration::from_secs),
        bookmark_at: now + BOOKMARK_EVERY,
        finished: false,
        selector: Selector::default(),
    };
    watch.start(&options);
    watch.selector = options.selector;
    let frames = stream::unfold(watch, |mut watch| async move {
        match watch.step().await {
            Step::Send(bytes) => Some((Ok::<_, BoxError>(Frame::data(bytes)), watch)),
            Step::Break => Some((Err(ConnectionError::Broken.into()), watch)),
            Step::End => None,
        }
    });
    with_type(
        StatusCode::OK,
        "application/json",
        StreamBody::new(frames).boxed_unsync(),
    )
}

impl Watch {
    /// Queues the initial events.
    fn start(&mut self, options: &ListOptions) {
        let from_now = matches!(options.version, None | Some(0));
        let initial = options.send_initial_events.unwrap_or(from_now);
        let namespace = self.namespace.clone();
        let (objects, revision) = self.api.with_state(|state| {
            // Creates the collection, so that its log begins now at the latest.
            state.store.collection(&self.kind);
            let listed = state.store.list(&self.kind, namespace.as_deref());
            let objects: Vec<Object> = if initial {
                listed.cloned().collect()
            } else {
                Vec::new()
            };
            (objects, state.store.revision())
        });
        self.cursor = if initial || from_now {
            revision
        } else {
            options.version.unwrap_or(revision)
        };
        for object in &objects {
            if options.selector.matches(object) {
                self.push("ADDED", object, None);
            }
        }
        if options.send_initial_events == Some(true) && self.bookmarks {
            self.push_bookmark(true);
        }
    }

    async fn step(&mut self) -> Step {
        loop {
            let notifies = (self.collection_notify(), self.faults.notify());
            let (changed, faulted) = (notifies.0.notified(), notifies.1.notified());
            tokio::pin!(changed, faulted);
            // Registered before the log is read, so that no change in between is missed.
            changed.as_mut().enable();
            faulted.as_mut().enable();
            match self.faults.now() {
                Some(WatchFault::Cut) => return Step::End,
                Some(WatchFault::Broken) if self.finished => return Step::End,
                Some(WatchFault::Broken) => {
                    self.finished = true;
                    return Step::Break;
                }
                Some(WatchFault::Stalled) => {
                    faulted.await;
                    continue;
                }
                None => {}
            }
            if let Some(bytes) = self.queue.pop_front() {
                return Step::Send(bytes);
            }
            if self.finished {
                return Step::End;
            }
            self.fetch();
            if !self.queue.is_empty() || self.finished {
                continue;
            }
            let wake_at = if self.bookmarks {
                self.ends_at.min(self.bookmark_at)
            } else {
                self.ends_at
            };
            tokio::select! {
                biased;
                () = faulted => {}
                () = changed => {}
                () = tokio::time::sleep_until(wake_at) => self.tick(),
            }
        }
    }

    /// Sends a bookmark or ends the watch, when either is due.
    fn tick(&mut self) {
        let now = Instant::now();
        if now >= self.ends_at {
            self.finished = true;
        } else if self.bookmarks && now >= self.bookmark_at {
            self.bookmark_at = now + BOOKMARK_EVERY;
            self.push_bookmark(false);
        }
    }

    fn collection_notify(&self) -> Arc<tokio::sync::Notify> {
        self.api
            .with_state(|state| Arc::clone(state.store.collection(&self.kind).log().1))
    }

    /// Queues the events of the changes since the cursor.
    fn fetch(&mut self) {
        let fetched = self.api.with_state(|state| {
            let revision = state.store.revision();
            let (log, _) = state.store.collection(&self.kind).log();
            let since = log.since(self.cursor);
            let since = since.map(Iterator::collect::<Vec<Arc<Change>>>);
            since
                .map(|changes| (changes, revision))
                .map_err(|too_old| too_old.complete_since)
        });
        match fetched {
            Ok((changes, revision)) => {
                for change in changes {
                    self.push_change(&change);
                }
                self.cursor = self.cursor.max(revision);
            }
            Err(oldest) => {
                let message = format!("too old resource version: {} ({oldest})", self.cursor);
                let status = Status::expired(message).to_value();
                self.queue.push_back(event("ERROR", &to_json(&status)));
                self.finished = true;
            }
        }
    }

    fn push_change(&mut self, change: &Change) {
        if self
            .namespace
            .as_ref()
            .is_some_and(|namespace| *namespace != change.namespace)
        {
            return;
        }
        let selects = |object: &Option<Object>| {
            object
                .as_ref()
                .is_some_and(|object| self.selector.matches(object))
        };
        let event_type = match (selects(&change.old), selects(&change.new)) {
            (false, true) => "ADDED",
            (true, true) => "MODIFIED",
            (true, false) => "DELETED",
            (false, false) => return,
        };
        if event_type == "DELETED" {
            if let Some(last) = change.tombstone() {
                let json = || change.tombstone_json();
                self.push(event_type, last, Some(&json));
            }
        } else if let Some(new) = &change.new {
            let json = || change.new_json();
            self.push(event_type, new, Some(&json));
        }
    }

    /// Queues an event; `json` is the object's JSON if watches share it.
    fn push(
        &mut self,
        event_type: &str,
        object: &Object,
        json: Option<&dyn Fn() -> Option<Bytes>>,
    ) {
        let converted = convert::to_version(&self.view.kind, object);
        let unchanged = Arc::ptr_eq(&converted, object);
        let shared = json.filter(|_| unchanged && self.view.shape == Shape::Plain);
        let bytes = shared.and_then(|json| json()).unwrap_or_else(|| {
            let first = !self.begun;
            to_json(&self.view.event_object(&converted, self.api.clock(), first))
        });
        self.begun = true;
        self.queue.push_back(event(event_type, &bytes));
    }

    fn push_bookmark(&mut self, initial_end: bool) {
        let mut metadata = json!({"resourceVersion": self.cursor.to_string()});
        if initial_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object: Value = match self.view.shape {
            Shape::Plain | Shape::Discovery => json!({
                "kind": self.kind.kind, "apiVersion": self.kind.api_version(), "metadata": metadata,
            }),
            Shape::Metadata => json!({
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
            }),
            Shape::Table => json!({
                "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
                "columnDefinitions": null, "rows": [],
            }),
        };
        self.queue.push_back(event("BOOKMARK", &to_json(&object)));
    }
}

/// One line of a watch.
fn event(event_type: &str, object: &[u8]) -> Bytes {
    let mut line = BytesMut::with_capacity(object.len() + 40);
    line.put_slice(b"{\"type\":\"");
    line.put_slice(event_type.as_bytes());
    line.put_slice(b"\",\"object\":");
    line.put_slice(object);
    line.put_slice(b"}\n");
    line.freeze()
}
