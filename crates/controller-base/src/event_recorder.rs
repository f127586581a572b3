//! Events: what happened to an object, for `kubectl describe` (F38).
//!
//! ```text
//! record() -> bounded channel of one of a few writers: first time POST, the same again PATCH of count and time
//! ```
//!
//! An object's events all have the same writer, which keeps their order. Recording never blocks: if the channel is full, the
//! event is dropped and counted.

use std::{collections::HashMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use kube::Client;
use prometheus_client::metrics::counter::Counter;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use xxhash_rust::xxh3::xxh3_64;

use crate::{calls, clock::Clock, error_text::format_api_error, event::Event};

/// Events written at the same time: few, so that they do not hold up the writes of finalizers and statuses to a busy host.
const WRITERS: usize = 2;
/// Events that may wait for one writer, with all writers some 250 FederatedReplicaSets x 16 members moving at once.
const QUEUE_LEN: usize = 2048;
/// Events that each writer remembers, so that one that is repeated is counted and not written again.
const REMEMBERED: usize = 4096;
/// The longest that writing one event may take: a dead connection must not delay the others for ever.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// The API server rejects longer messages.
const MESSAGE_LEN_MAX: usize = 1024;

/// The object that an event is about.
#[derive(Clone, Debug)]
pub struct InvolvedObject {
    /// The apiVersion of its kind.
    pub api_version: &'static str,
    /// Its kind.
    pub kind: &'static str,
    /// Its namespace; empty for one without.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

/// Records events; cheap to clone.
#[derive(Clone, Debug)]
pub struct EventRecorder {
    queues: Arc<[mpsc::Sender<(InvolvedObject, Event, Timestamp)>]>,
    clock: Clock,
    dropped: Counter,
}

impl EventRecorder {
    /// A recorder of what `component` reports, and the bodies of the tasks that write to `host` until `cancel`.
    pub fn new(
        component: &'static str,
        host: &Client,
        clock: Clock,
        dropped: Counter,
        cancel: &CancellationToken,
    ) -> (Self, Vec<impl Future<Output = ()> + Send + use<>>) {
        let (queues, writers): (Vec<_>, _) = (0..WRITERS)
            .map(|_| {
                let (queue, events) = mpsc::channel(QUEUE_LEN);
                (
                    queue,
                    write_events(component, host.clone(), events, cancel.clone()),
                )
            })
            .unzip();
        let recorder = Self {
            queues: queues.into(),
            clock,
            dropped,
        };
        (recorder, writers)
    }

    /// Records `event` about `involved`.
    pub fn record(&self, involved: &InvolvedObject, event: Event) {
        let queued = (involved.clone(), event, self.clock.machine());
        if self.queue_of(involved).try_send(queued).is_err() {
            self.dropped.inc();
        }
    }

    fn queue_of(
        &self,
        involved: &InvolvedObject,
    ) -> &mpsc::Sender<(InvolvedObject, Event, Timestamp)> {
        let writers = self.queues.len() as u64;
        let writer = usize::try_from(xxh3_64(involved.uid.as_bytes()) % writers);
        &self.queues[writer.expect("there are few writers")]
    }
}

async fn write_events(
    component: &'static str,
    host: Client,
    mut events: mpsc::Receiver<(InvolvedObject, Event, Timestamp)>,
    cancel: CancellationToken,
) {
    let mut counts: HashMap<String, u32> = HashMap::new();
    while let Some(Some((involved, event, now))) = cancel.run_until_cancelled(events.recv()).await {
        if counts.len() >= REMEMBERED {
            counts.clear();
        }
        let name = event_name(&involved, &event);
        let count = counts.entry(name.clone()).or_default();
        *count += 1;
        let write = write_event(&host, component, (&involved, &event), &name, *count, now);
        let error = match tokio::time::timeout(WRITE_TIMEOUT, write).await {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => format_api_error(&error),
            Err(_) => format!("no answer within {WRITE_TIMEOUT:?}"),
        };
        tracing::warn!(error, object = %involved.name, reason = event.reason, "failed to write an event");
    }
}

/// The name of an event: the same for the same event of the same object.
fn event_name(involved: &InvolvedObject, event: &Event) -> String {
    let text = format!("{}\0{}\0{}", involved.uid, event.reason, event.message);
    format!("{}.{:016x}", involved.name, xxh3_64(text.as_bytes()))
}

async fn write_event(
    host: &Client,
    component: &str,
    (involved, event): (&InvolvedObject, &Event),
    name: &str,
    count: u32,
    now: Timestamp,
) -> Result<(), kube::Error> {
    let namespace = if involved.namespace.is_empty() {
        "default"
    } else {
        &involved.namespace
    };
    let collection = format!("/api/v1/namespaces/{namespace}/events");
    if count > 1 {
        let again = json!({ "count": count, "lastTimestamp": now });
        match calls::merge_patch(host, &format!("{collection}/{name}"), &again).await {
            // The event has expired meanwhile.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            answer => return answer.map(|IgnoredAny| ()),
        }
    }
    let object = event_object(component, (involved, event), namespace, name, count, now);
    match calls::post(host, &collection, &object).await {
        // An earlier process wrote the event; this one does not know how often.
        Err(kube::Error::Api(status)) if status.code == 409 => {
            let again = json!({ "lastTimestamp": now });
            let path = format!("{collection}/{name}");
            let again = calls::merge_patch(host, &path, &again).await;
            again.map(|IgnoredAny| ())
        }
        answer => answer.map(|IgnoredAny| ()),
    }
}

/// The event `name` in `namespace`, with which `component` reports `event` about `involved` for the `count`th time.
#[must_use]
pub fn event_object(
    component: &str,
    (involved, event): (&InvolvedObject, &Event),
    namespace: &str,
    name: &str,
    count: u32,
    now: Timestamp,
) -> Value {
    let message: String = event.message.chars().take(MESSAGE_LEN_MAX).collect();
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "name": name, "namespace": namespace },
        "involvedObject": {
            "apiVersion": involved.api_version,
            "kind": involved.kind,
            "namespace": involved.namespace,
            "name": involved.name,
            "uid": involved.uid,
        },
        "reason": event.reason,
        "message": message,
        "type": event.type_.as_str(),
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": count,
        "source": { "component": "fedrs" },
        "reportingComponent": component,
        "reportingInstance": "fedrs",
    })
}
