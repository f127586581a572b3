//! Plays a conversation on one side: `steps -> records`.

use std::{collections::BTreeMap, time::Duration};

use http::Request;
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    pair::{Pair, Side},
    talk::{Ask, Conversation, Step, Who},
};

/// How long an answer or an event may take. A busy machine is slow.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often something is asked for again.
const LOOK: Duration = Duration::from_millis(100);
/// A watch that should have no more to say is listened to for so long.
const SILENCE: Duration = Duration::from_millis(700);

/// What came of one step.
#[derive(Clone, Debug)]
pub struct Record {
    /// The step's label.
    pub label: String,
    /// `{"code", "type", "warnings", "body"}`.
    pub answer: Value,
    /// It never was what was waited for.
    pub in_vain: bool,
}

impl Record {
    /// The same with only that of the body which is to be compared.
    fn selected(mut self, ask: &Ask) -> Self {
        let body = &self.answer["body"];
        if ask.only.is_empty() || body["kind"] == "Status" {
            return self;
        }
        let at = |pointer: &&str| {
            let value = body.pointer(pointer).cloned();
            ((*pointer).to_owned(), value.unwrap_or_default())
        };
        self.answer["body"] = Value::Object(ask.only.iter().map(at).collect());
        self
    }
}

struct Watch {
    body: Body,
    read: Vec<u8>,
}

struct Player<'a> {
    side: &'a Side,
    kept: BTreeMap<&'static str, String>,
    watches: BTreeMap<&'static str, Watch>,
}

/// Plays `conversation` in `namespace`, which is made.
///
/// # Errors
/// What could not be asked.
pub async fn play(
    conversation: &Conversation,
    namespace: &str,
    side: &Side,
    pair: &Pair,
) -> Result<Vec<Record>, String> {
    let mut player = Player {
        side,
        kept: BTreeMap::from([("ns", namespace.to_owned())]),
        watches: BTreeMap::new(),
    };
    player.prepare(namespace).await?;
    let mut records = Vec::new();
    for step in &conversation.steps {
        match step {
            Step::Ask(ask) => records.push(player.ask(ask).await?),
            Step::Watch(name, ask) => records.push(player.watch(name, ask).await?),
            Step::Events(name, count) => records.push(player.events(name, *count).await?),
            Step::Node(number, is_lost) => pair.lose_node(side, *number, *is_lost).await?,
            Step::Compact => pair.compact(side).await?,
        }
    }
    Ok(records)
}

impl Player<'_> {
    /// Makes the namespace, and waits for the account that pods need.
    async fn prepare(&mut self, namespace: &str) -> Result<(), String> {
        let object = json!({ "metadata": { "name": namespace } });
        self.ask(&super::talk::post("/api/v1/namespaces", object))
            .await?;
        let account = super::talk::get("serviceaccounts/default")
            .until(20, |it| it["kind"] == "ServiceAccount");
        let record = self.ask(&account).await?;
        if record.in_vain {
            return Err(self.failed(&account, &record.answer));
        }
        Ok(())
    }

    async fn ask(&mut self, ask: &Ask) -> Result<Record, String> {
        let Some((holds, seconds)) = ask.until else {
            let record = self.ask_once(ask).await?;
            return self.keep(ask, record);
        };
        let deadline = Instant::now() + Duration::from_secs(seconds);
        loop {
            let mut record = self.ask_once(ask).await?;
            record.in_vain = !holds(&record.answer["body"]);
            if !record.in_vain || Instant::now() >= deadline {
                return self.keep(ask, record);
            }
            sleep(LOOK).await;
        }
    }

    /// Keeps of the answer what later steps need, and leaves what is compared.
    fn keep(&mut self, ask: &Ask, record: Record) -> Result<Record, String> {
        for (name, pointer) in &ask.kept {
            let value = record.answer["body"].pointer(pointer);
            let text = match value.unwrap_or(&Value::Null) {
                Value::Null => {
                    let body = &record.answer["body"];
                    return Err(self.failed(ask, &format!("nothing at {pointer}: {body}")));
                }
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            self.kept.insert(name, text);
        }
        Ok(record.selected(ask))
    }

    async fn ask_once(&self, ask: &Ask) -> Result<Record, String> {
        let deadline = Instant::now() + PATIENCE;
        let (parts, body) = self.in_time(ask, deadline, self.send(ask)).await?;
        let body = self.in_time(ask, deadline, whole(body)).await?;
        Ok(Record {
            label: ask.label.clone(),
            answer: told(&parts, &body),
            in_vain: false,
        })
    }

    async fn watch(&mut self, name: &'static str, ask: &Ask) -> Result<Record, String> {
        let deadline = Instant::now() + PATIENCE;
        let (parts, body) = self.in_time(ask, deadline, self.send(ask)).await?;
        let body = if parts.status.is_success() {
            let read = Vec::new();
            self.watches.insert(name, Watch { body, read });
            Value::Null
        } else {
            self.in_time(ask, deadline, whole(body)).await?
        };
        Ok(Record {
            label: ask.label.clone(),
            answer: told(&parts, &body),
            in_vain: false,
        })
    }

    async fn events(&mut self, name: &str, count: usize) -> Result<Record, String> {
        let watch = self
            .watches
            .get_mut(name)
            .ok_or_else(|| format!("{}: there is no watch {name}", self.side.name))?;
        let (mut events, mut has_ended) = (Vec::new(), false);
        let patience = if count == 0 { SILENCE } else { PATIENCE };
        let deadline = Instant::now() + patience;
        while events.len() < count || count == 0 {
            match timeout_at(deadline, watch.next()).await {
                Ok(Some(event)) if is_reminder(&event) => {}
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
            in_vain: events.len() < count && !has_ended,
            answer: json!({ "body": events }),
        })
    }

    async fn in_time<T>(
        &self,
        ask: &Ask,
        deadline: Instant,
        answer: impl Future<Output = Result<T, String>>,
    ) -> Result<T, String> {
        let answer = timeout_at(deadline, answer).await;
        let answer = answer.unwrap_or_else(|_| Err("no answer in time".to_owned()));
        answer.map_err(|it| self.failed(ask, &it))
    }

    async fn send(&self, ask: &Ask) -> Result<(http::response::Parts, Body), String> {
        let mut request = Request::builder()
            .method(ask.method)
            .uri(self.filled(&ask.path)?)
            .header("user-agent", "conversation/1");
        if !ask.headers.iter().any(|(name, _)| *name == "accept") {
            request = request.header("accept", "application/json");
        }
        for (name, value) in &ask.headers {
            request = request.header(*name, self.filled(value)?);
        }
        let body = Body::from(self.filled(&ask.body)?.into_bytes());
        let request = request.body(body).map_err(|it| it.to_string())?;
        let client = match ask.who {
            Who::Admin => &self.side.admin,
            Who::Anybody => &self.side.anybody,
        };
        let answer = client.send(request).await.map_err(|it| it.to_string())?;
        Ok(answer.into_parts())
    }

    fn failed(&self, ask: &Ask, error: &dyn std::fmt::Display) -> String {
        format!("{}: {}: {error}", self.side.name, ask.label)
    }

    fn filled(&self, text: &str) -> Result<String, String> {
        let mut text = text.to_owned();
        for (name, value) in &self.kept {
            text = text.replace(&format!("${{{name}}}"), value);
        }
        match text.split_once("${") {
            Some((_, rest)) => Err(format!("nothing was kept as {rest}")),
            None => Ok(text),
        }
    }
}

impl Watch {
    /// The next event, or none if the watch has ended.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.read.iter().position(|it| *it == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Some(read(&line));
            }
            let frame = self.body.frame().await?.ok()?;
            self.read.extend_from_slice(frame.data_ref()?);
        }
    }
}

/// Whether it is a bookmark that the server sends when it likes, not the one that ends the initial events.
fn is_reminder(event: &Value) -> bool {
    let object = &event["object"];
    let is_end = |it: &Value| it["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true";
    event["type"] == "BOOKMARK" && !is_end(object) && !is_end(&object["rows"][0]["object"])
}

async fn whole(body: Body) -> Result<Value, String> {
    let bytes = body.collect().await.map_err(|it| it.to_string())?;
    Ok(read(&bytes.to_bytes()))
}

fn read(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|_| String::from_utf8_lossy(bytes).into())
}

fn told(parts: &http::response::Parts, body: &Value) -> Value {
    let header = |name: &str| {
        let all = parts.headers.get_all(name).iter();
        let all = all.filter_map(|it| it.to_str().ok());
        all.map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    json!({
        "code": parts.status.as_u16(),
        "type": header("content-type").join(", "),
        "warnings": header("warning"),
        "body": body,
    })
}
