//! Runs a script against one cluster: `steps -> records`.

use std::{collections::BTreeMap, time::Duration};

use http::Request;
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    cluster_pair::{ClusterPair, PairedCluster},
    script::{ApiRequest, RequestScript, Step, User},
};

/// The timeout of a response or an event. A busy machine is slow.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The interval at which a request is repeated.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long a watch that should send nothing more is read.
const QUIET_PERIOD: Duration = Duration::from_millis(700);

/// The result of one step.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// The step's label.
    pub(crate) label: String,
    /// `{"code", "type", "warnings", "body"}`.
    pub(crate) response: Value,
    /// The step timed out: its response never fulfilled the condition.
    pub(crate) timed_out: bool,
}

impl Record {
    /// The record with only the parts of the body that are compared.
    fn selected(mut self, request: &ApiRequest) -> Self {
        let body = &self.response["body"];
        if request.only.is_empty() || body["kind"] == "Status" {
            return self;
        }
        let at = |pointer: &&str| {
            let value = body.pointer(pointer).cloned();
            ((*pointer).to_owned(), value.unwrap_or_default())
        };
        self.response["body"] = Value::Object(request.only.iter().map(at).collect());
        self
    }
}

struct Watch {
    body: Body,
    read: Vec<u8>,
}

struct Runner<'a> {
    cluster: &'a PairedCluster,
    stored: BTreeMap<&'static str, String>,
    watches: BTreeMap<&'static str, Watch>,
}

/// Runs `script` in `namespace`, which is created first.
///
/// # Errors
/// If a request can't be sent.
pub(crate) async fn run_script(
    script: &RequestScript,
    namespace: &str,
    cluster: &PairedCluster,
    pair: &ClusterPair,
) -> Result<Vec<Record>, String> {
    let mut runner = Runner {
        cluster,
        stored: BTreeMap::from([("ns", namespace.to_owned())]),
        watches: BTreeMap::new(),
    };
    runner.prepare(namespace).await?;
    let mut records = Vec::new();
    for step in &script.steps {
        match step {
            Step::Request(request) => records.push(runner.request(request).await?),
            Step::Watch(name, request) => records.push(runner.watch(name, request).await?),
            Step::Events(name, count) => records.push(runner.events(name, *count).await?),
            Step::Node(number, is_lost) => pair.lose_node(cluster, *number, *is_lost).await?,
            Step::Compact => pair.compact(cluster).await?,
        }
    }
    Ok(records)
}

impl Runner<'_> {
    /// Creates the namespace, and waits for the ServiceAccount that pods need.
    async fn prepare(&mut self, namespace: &str) -> Result<(), String> {
        let object = json!({ "metadata": { "name": namespace } });
        self.request(&super::script::post("/api/v1/namespaces", object))
            .await?;
        let account = super::script::get("serviceaccounts/default")
            .until(20, |object| object["kind"] == "ServiceAccount");
        let record = self.request(&account).await?;
        if record.timed_out {
            return Err(self.failed(&account, &record.response));
        }
        Ok(())
    }

    async fn request(&mut self, request: &ApiRequest) -> Result<Record, String> {
        let Some((holds, seconds)) = request.until else {
            let record = self.send_once(request).await?;
            return self.keep(request, record);
        };
        let deadline = Instant::now() + Duration::from_secs(seconds);
        loop {
            let mut record = self.send_once(request).await?;
            record.timed_out = !holds(&record.response["body"]);
            if !record.timed_out || Instant::now() >= deadline {
                return self.keep(request, record);
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Stores the parts of the response that later steps use, and drops the parts that are not compared.
    fn keep(&mut self, request: &ApiRequest, record: Record) -> Result<Record, String> {
        for (name, pointer) in &request.stored {
            let value = record.response["body"].pointer(pointer);
            let text = match value.unwrap_or(&Value::Null) {
                Value::Null => {
                    let body = &record.response["body"];
                    return Err(self.failed(
                        request,
                        &format!("the response has nothing at {pointer}: {body}"),
                    ));
                }
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            self.stored.insert(name, text);
        }
        Ok(record.selected(request))
    }

    async fn send_once(&self, request: &ApiRequest) -> Result<Record, String> {
        let deadline = Instant::now() + TIMEOUT;
        let (parts, body) = self.in_time(request, deadline, self.send(request)).await?;
        let body = self.in_time(request, deadline, whole(body)).await?;
        Ok(Record {
            label: request.label.clone(),
            response: record_response(&parts, &body),
            timed_out: false,
        })
    }

    async fn watch(&mut self, name: &'static str, request: &ApiRequest) -> Result<Record, String> {
        let deadline = Instant::now() + TIMEOUT;
        let (parts, body) = self.in_time(request, deadline, self.send(request)).await?;
        let body = if parts.status.is_success() {
            let read = Vec::new();
            self.watches.insert(name, Watch { body, read });
            Value::Null
        } else {
            self.in_time(request, deadline, whole(body)).await?
        };
        Ok(Record {
            label: request.label.clone(),
            response: record_response(&parts, &body),
            timed_out: false,
        })
    }

    async fn events(&mut self, name: &str, count: usize) -> Result<Record, String> {
        let watch = self
            .watches
            .get_mut(name)
            .ok_or_else(|| format!("{}: there is no watch {name}", self.cluster.name))?;
        let (mut events, mut has_ended) = (Vec::new(), false);
        let patience = if count == 0 { QUIET_PERIOD } else { TIMEOUT };
        let deadline = Instant::now() + patience;
        while events.len() < count || count == 0 {
            match timeout_at(deadline, watch.next()).await {
                Ok(Some(event)) if is_periodic_bookmark(&event) => {}
                Ok(Some(event)) => events.push(event),
                Ok(None) => {
                    events.push("the watch ended".into());
                    has_ended = true;
                    break;
                }
                Err(_) => break,
            }
        }
        Ok(Record {
            label: format!("events of {name}"),
            timed_out: events.len() < count && !has_ended,
            response: json!({ "body": events }),
        })
    }

    async fn in_time<T>(
        &self,
        request: &ApiRequest,
        deadline: Instant,
        response: impl Future<Output = Result<T, String>>,
    ) -> Result<T, String> {
        let response = timeout_at(deadline, response).await;
        let response = response.unwrap_or_else(|_| Err("timeout".to_owned()));
        response.map_err(|error| self.failed(request, &error))
    }

    async fn send(&self, request: &ApiRequest) -> Result<(http::response::Parts, Body), String> {
        let mut builder = Request::builder()
            .method(request.method)
            .uri(self.expand(&request.path)?)
            .header("user-agent", "script/1");
        if !request.headers.iter().any(|(name, _)| *name == "accept") {
            builder = builder.header("accept", "application/json");
        }
        for (name, value) in &request.headers {
            builder = builder.header(*name, self.expand(value)?);
        }
        let body = Body::from(self.expand(&request.body)?.into_bytes());
        let http_request = builder.body(body).map_err(|error| error.to_string())?;
        let client = match request.user {
            User::Admin => &self.cluster.admin,
            User::Anonymous => &self.cluster.anonymous,
        };
        let response = client
            .send(http_request)
            .await
            .map_err(|error| error.to_string())?;
        Ok(response.into_parts())
    }

    fn failed(&self, request: &ApiRequest, error: &dyn std::fmt::Display) -> String {
        format!("{}: {}: {error}", self.cluster.name, request.label)
    }

    fn expand(&self, text: &str) -> Result<String, String> {
        let mut text = text.to_owned();
        for (name, value) in &self.stored {
            text = text.replace(&format!("${{{name}}}"), value);
        }
        match text.split_once("${") {
            Some((_, rest)) => Err(format!("no earlier step stored {rest}")),
            None => Ok(text),
        }
    }
}

impl Watch {
    /// The next event, or none if the watch has ended.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Some(read(&line));
            }
            let frame = self.body.frame().await?.ok()?;
            self.read.extend_from_slice(frame.data_ref()?);
        }
    }
}

/// Whether the event is a periodic bookmark, not the one that ends the initial events.
fn is_periodic_bookmark(event: &Value) -> bool {
    let object = &event["object"];
    let is_end =
        |object: &Value| object["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true";
    event["type"] == "BOOKMARK" && !is_end(object) && !is_end(&object["rows"][0]["object"])
}

async fn whole(body: Body) -> Result<Value, String> {
    let bytes = body.collect().await.map_err(|error| error.to_string())?;
    Ok(read(&bytes.to_bytes()))
}

fn read(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|_| String::from_utf8_lossy(bytes).into())
}

fn record_response(parts: &http::response::Parts, body: &Value) -> Value {
    let header = |name: &str| {
        let all = parts.headers.get_all(name).iter();
        let all = all.filter_map(|value| value.to_str().ok());
        all.map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    json!({
        "code": parts.status.as_u16(),
        "type": header("content-type").join(", "),
        "warnings": header("warning"),
        "body": body,
    })
}
