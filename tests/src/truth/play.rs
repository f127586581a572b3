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
        let account = super::talk::get("serviceaccounts/default");
        self.ask(&account.until(20, |it| it["kind"] == "ServiceAccount"))
            .await?;
        Ok(())
    }

    async fn ask(&mut self, ask: &Ask) -> Result<Record, String> {
        let Some((holds, seconds)) = ask.until else {
            return Ok(self.ask_once(ask).await?.selected(ask));
        };
        let deadline = Instant::now() + Duration::from_secs(seconds);
        loop {
            let record = self.ask_once(ask).await?;
            if holds(&record.answer["body"]) {
                return Ok(record.selected(ask));
            }
            if Instant::now() >= deadline {
                let mut record = record.selected(ask);
                record.in_vain = true;
                return Ok(record);
            }
            sleep(LOOK).await;
        }
    }

    async fn ask_once(&mut self, ask: &Ask) -> Result<Record, String> {
        let deadline = Instant::now() + PATIENCE;
        let late = |_| format!("{}: {}: no answer in time", self.side.name, ask.label);
        let answer = timeout_at(deadline, self.send(ask)).await.map_err(late)??;
        let (parts, body) = answer.into_parts();
        let bytes = timeout_at(deadline, body.collect()).await.map_err(late)?;
        let bytes = bytes.map_err(|it| self.failed(ask, &it))?.to_bytes();
        let body = read(&bytes);
        for (name, pointer) in &ask.kept {
            let value = body.pointer(pointer).unwrap_or(&Value::Null);
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), ToOwned::to_owned);
            self.kept.insert(name, text);
        }
        Ok(Record {
            label: ask.label.clone(),
            answer: told(&parts, &body),
            in_vain: false,
        })
    }

    async fn watch(&mut self, name: &'static str, ask: &Ask) -> Result<Record, String> {
        let deadline = Instant::now() + PATIENCE;
        let late = |_| format!("{}: {}: no answer in time", self.side.name, ask.label);
        let answer = timeout_at(deadline, self.send(ask)).await.map_err(late)??;
        let (parts, body) = answer.into_parts();
        let body = if parts.status.is_success() {
            let read = Vec::new();
            self.watches.insert(name, Watch { body, read });
            Value::Null
        } else {
            let bytes = body.collect().await.map_err(|it| self.failed(ask, &it))?;
            read(&bytes.to_bytes())
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
        let mut events = Vec::new();
        let patience = if count == 0 { SILENCE } else { PATIENCE };
        let deadline = Instant::now() + patience;
        while events.len() < count || count == 0 {
            match timeout_at(deadline, watch.next()).await {
                Ok(Some(event)) => events.push(event),
                Ok(None) => {
                    events.push("the watch ended".into());
                    break;
                }
                Err(_) => break,
            }
        }
        Ok(Record {
            label: format!("events of {name}"),
            answer: json!({ "body": events }),
            in_vain: false,
        })
    }

    async fn send(&self, ask: &Ask) -> Result<http::Response<Body>, String> {
        let mut request = Request::builder()
            .method(ask.method)
            .uri(self.filled(&ask.path))
            .header("user-agent", "conversation/1");
        if !ask.headers.iter().any(|(name, _)| *name == "accept") {
            request = request.header("accept", "application/json");
        }
        for (name, value) in &ask.headers {
            request = request.header(*name, self.filled(value));
        }
        let body = Body::from(self.filled(&ask.body).into_bytes());
        let request = request.body(body).map_err(|it| self.failed(ask, &it))?;
        let client = match ask.who {
            Who::Admin => &self.side.admin,
            Who::Anybody => &self.side.anybody,
        };
        let answer = client.send(request).await;
        answer.map_err(|it| self.failed(ask, &it))
    }

    fn failed(&self, ask: &Ask, error: &dyn std::fmt::Display) -> String {
        format!("{}: {}: {error}", self.side.name, ask.label)
    }

    fn filled(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, value) in &self.kept {
            text = text.replace(&format!("${{{name}}}"), value);
        }
        text
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
