//! A transport that follows a script; requests and calls become one log.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use futures::{future, stream};
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::time::timeout;

use super::super::*;
use crate::{settings::Limits, transport::PageResponse};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Thing {
    metadata: Meta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    name: String,
    resource_version: String,
}

impl Versioned for Thing {
    fn resource_version(&self) -> Option<&str> {
        Some(&self.metadata.resource_version)
    }
}

pub(super) fn thing(name: &str, version: u64) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}","resourceVersion":"{version}"}},"managedFields":[]}}"#
    )
}

pub(super) fn page(version: u64, next: &str, items: &[String]) -> Response {
    let items = items.join(",");
    Response::Page(format!(
        r#"{{"kind":"List","metadata":{{"resourceVersion":"{version}","continue":"{next}"}},"items":[{items}]}}"#
    ))
}

pub(super) fn event(kind: &str, object: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

pub(super) fn bookmark(version: u64) -> String {
    event(
        "BOOKMARK",
        &format!(r#"{{"metadata":{{"resourceVersion":"{version}"}}}}"#),
    )
}

pub(super) const GONE: &str =
    r#"{"kind":"Status","code":410,"reason":"Expired","message":"too old"}"#;

/// What a watch does after its lines.
#[derive(Clone, Copy)]
pub(super) enum Then {
    EndAfter(Duration),
    Break,
    Hang,
}

pub(super) enum Response {
    Page(String),
    /// With the server's message.
    Error(u16, &'static str),
    /// A 504 with the cause `ResourceVersionTooLarge`.
    VersionTooLarge,
    Watch(Vec<String>, Then),
    /// What a request for one object gets.
    Comparison(Box<Response>),
    Hang,
}

/// What happened, and when since the start.
#[derive(Clone, Default)]
pub(super) struct Log(
    pub(super) Arc<Mutex<Vec<(Duration, String)>>>,
    Option<Instant>,
);

impl Log {
    fn add(&self, entry: impl Into<String>) {
        let at = self.1.map_or(Duration::ZERO, |start| start.elapsed());
        self.0.lock().push((at, entry.into()));
    }

    pub(super) fn entries(&self) -> Vec<String> {
        self.0
            .lock()
            .iter()
            .map(|(_, entry)| entry.clone())
            .collect()
    }

    /// When each entry that starts with `prefix` was made.
    pub(super) fn times(&self, prefix: &str) -> Vec<Duration> {
        self.0
            .lock()
            .iter()
            .filter(|(_, entry)| entry.starts_with(prefix))
            .map(|(at, _)| *at)
            .collect()
    }
}

fn status(code: u16, message: &str, version_too_large: bool) -> ErrorKind {
    ErrorKind::Status {
        code,
        reason: "Reason".to_owned(),
        message: message.to_owned(),
        version_too_large,
    }
}

struct Script {
    responses: VecDeque<Response>,
    log: Log,
}

impl Script {
    async fn next(&mut self) -> Result<Response, ErrorKind> {
        match self.responses.pop_front() {
            None | Some(Response::Hang) => std::future::pending().await,
            Some(Response::Error(code, message)) => Err(status(code, message, false)),
            Some(Response::VersionTooLarge) => Err(status(504, "", true)),
            Some(response) => Ok(response),
        }
    }
}

impl Script {
    /// A page of one object; by default of a server that is not a restored one.
    async fn current_version(&mut self) -> Result<Response, ErrorKind> {
        if let Some(Response::Comparison(response)) = self.responses.front_mut() {
            let response = std::mem::replace(&mut **response, Response::Hang);
            self.responses[0] = response;
            return self.next().await;
        }
        Ok(page(u64::MAX, "", &[]))
    }
}

impl Transport for Script {
    async fn list(
        &mut self,
        page_size: u32,
        token: Option<&str>,
    ) -> Result<PageResponse, ErrorKind> {
        let response = if page_size == 1 {
            self.log.add("compare");
            self.current_version().await
        } else {
            assert_eq!(page_size, 500);
            self.log
                .add(format!("list {}", token.unwrap_or("first page")));
            self.next().await
        };
        match response? {
            Response::Page(page) => Ok(PageResponse {
                body: Bytes::from(page),
                date: None,
            }),
            _ => panic!("list request, but the script has a watch"),
        }
    }

    async fn watch(&mut self, version: &str, timeout: Duration) -> Result<Chunks, ErrorKind> {
        let seconds = timeout.as_secs();
        // Shorter than usual if a list is due.
        assert!((30..=200).contains(&seconds) || seconds == 5, "{seconds}");
        let verb = if seconds == 5 { "confirm" } else { "watch" };
        self.log.add(format!("{verb} {version}"));
        let Response::Watch(lines, then) = self.next().await? else {
            panic!("watch request, but the script has a list");
        };
        let lines = stream::iter(lines.into_iter().map(|line| Ok(Bytes::from(line))));
        let rest = stream::once(async move {
            match then {
                Then::EndAfter(time) => {
                    sleep(time).await;
                    None
                }
                Then::Break => Some(Err(status(0, "reset", false))),
                Then::Hang => std::future::pending().await,
            }
        });
        let stream = lines.chain(rest.filter_map(future::ready));
        Ok(stream.boxed().into())
    }
}

/// Records when the watch has caught up after a silence.
struct Recorder(Log, bool);

impl EventHandler<Thing> for Recorder {
    fn on_init(&mut self) {
        self.0.add("begin");
    }

    fn on_apply(&mut self, thing: Thing) {
        let Meta {
            name,
            resource_version,
        } = thing.metadata;
        self.0.add(format!("+{name} {resource_version}"));
    }

    fn on_delete(&mut self, thing: Thing) {
        let Meta {
            name,
            resource_version,
        } = thing.metadata;
        self.0.add(format!("-{name} {resource_version}"));
    }

    fn on_init_done(&mut self, resource_version: &str) {
        self.0.add(format!("init done {resource_version}"));
    }

    fn on_error(&mut self, error: &Error) {
        self.0.add(format!("error: {error}"));
    }

    fn on_invalid(&mut self, object: &InvalidObject) {
        self.0
            .add(format!("invalid {}", object.name.as_deref().unwrap_or("?")));
    }

    fn on_short_watch(&mut self) {
        self.0.add("short watch");
    }

    fn on_silence(&mut self) {
        self.1 = true;
        self.0.add("silence");
    }

    fn on_caught_up(&mut self) {
        if std::mem::take(&mut self.1) {
            self.0.add("caught up");
        }
    }
}

/// Runs the script for ten minutes of paused time.
pub(super) async fn run(responses: impl IntoIterator<Item = Response>) -> Log {
    let settings = ReflectorSettings {
        limits: Limits {
            watch_line_bytes: 300,
            ..Limits::default()
        },
        ..ReflectorSettings::default()
    };
    run_with(settings, responses).await
}

pub(super) async fn run_with(
    settings: ReflectorSettings,
    responses: impl IntoIterator<Item = Response>,
) -> Log {
    run_asked(settings, responses, &Notify::new(), async |_| {}).await
}

/// The same, with what happens meanwhile.
pub(super) async fn run_asked(
    settings: ReflectorSettings,
    responses: impl IntoIterator<Item = Response>,
    confirm: &Notify,
    meanwhile: impl AsyncFnOnce(&Notify),
) -> Log {
    let log = Log(Arc::default(), Some(Instant::now()));
    let script = Script {
        responses: responses.into_iter().collect(),
        log: log.clone(),
    };
    let path = Arc::from("/api/v1/things");
    let recorder = Recorder(log.clone(), false);
    let list_watch = ListWatch::new(script, recorder, settings, 1, path);
    let relist = Notify::new();
    let runs = list_watch.run::<Thing>(&relist, confirm);
    let runs = timeout(Duration::from_mins(10), runs);
    let (ended, ()) = future::join(runs, meanwhile(confirm)).await;
    ended.expect_err("it never ends by itself");
    log
}
