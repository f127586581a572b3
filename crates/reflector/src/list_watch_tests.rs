//! The state machine against a scripted transport, on paused time: requests and calls as one log.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use futures::{future, stream};
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::time::timeout;

use super::*;
use crate::{settings::Limits, transport::PageResponse};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Thing {
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

fn thing(name: &str, version: u64) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}","resourceVersion":"{version}"}},"managedFields":[]}}"#
    )
}

fn page(version: u64, next: &str, items: &[String]) -> Response {
    let items = items.join(",");
    Response::Page(format!(
        r#"{{"kind":"List","metadata":{{"resourceVersion":"{version}","continue":"{next}"}},"items":[{items}]}}"#
    ))
}

fn event(kind: &str, object: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

fn bookmark(version: u64) -> String {
    event(
        "BOOKMARK",
        &format!(r#"{{"metadata":{{"resourceVersion":"{version}"}}}}"#),
    )
}

const GONE: &str = r#"{"kind":"Status","code":410,"reason":"Expired","message":"too old"}"#;

/// What a watch does after its lines.
#[derive(Clone, Copy)]
enum Then {
    EndAfter(Duration),
    Break,
    Hang,
}

enum Response {
    Page(String),
    /// With the server's message.
    Error(u16, &'static str),
    /// A 504 with the cause `ResourceVersionTooLarge`.
    VersionTooLarge,
    Watch(Vec<String>, Then),
    Hang,
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(Duration, String)>>>, Option<Instant>);

impl Log {
    fn add(&self, entry: impl Into<String>) {
        let at = self.1.map_or(Duration::ZERO, |start| start.elapsed());
        self.0.lock().push((at, entry.into()));
    }

    fn entries(&self) -> Vec<String> {
        self.0
            .lock()
            .iter()
            .map(|(_, entry)| entry.clone())
            .collect()
    }

    /// When each entry that starts with `prefix` was made.
    fn times(&self, prefix: &str) -> Vec<Duration> {
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

impl Transport for Script {
    async fn list(
        &mut self,
        page_size: u32,
        token: Option<&str>,
    ) -> Result<PageResponse, ErrorKind> {
        assert_eq!(page_size, 500);
        self.log
            .add(format!("list {}", token.unwrap_or("first page")));
        match self.next().await? {
            Response::Page(page) => Ok(PageResponse {
                body: Bytes::from(page),
                date: None,
            }),
            _ => panic!("list request, but the script has a watch"),
        }
    }

    async fn watch(&mut self, version: &str, timeout: Duration) -> Result<Chunks, ErrorKind> {
        let seconds = timeout.as_secs();
        assert!((180..=200).contains(&seconds) || seconds == 5, "{seconds}");
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
async fn run(responses: impl IntoIterator<Item = Response>) -> Log {
    let settings = ReflectorSettings {
        limits: Limits {
            watch_line_bytes: 300,
            ..Limits::default()
        },
        ..ReflectorSettings::default()
    };
    run_with(settings, responses).await
}

async fn run_with(
    settings: ReflectorSettings,
    responses: impl IntoIterator<Item = Response>,
) -> Log {
    run_asked(settings, responses, &Notify::new(), async |_| {}).await
}

/// The same, with what happens meanwhile.
async fn run_asked(
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

/// Longer than a watch that ended early, and not as long as a silent one.
const A_MINUTE: Then = Then::EndAfter(Duration::from_mins(1));

#[tokio::test(start_paused = true)]
async fn pages_then_events_then_a_watch_from_the_last_version() {
    let log = run([
        page(5, "c", &[thing("a", 1), thing("b", 2)]),
        page(5, "", &[thing("c", 3)]),
        Response::Watch(
            vec![
                event("ADDED", &thing("d", 6)),
                event("DELETED", &thing("a", 7)),
                event("NEW", "{}"),
            ],
            A_MINUTE,
        ),
        Response::Watch(vec![bookmark(9)], A_MINUTE),
        Response::Watch(vec![], Then::Hang),
    ])
    .await;
    let expected = [
        "begin",
        "list first page",
        "+a 1",
        "+b 2",
        "list c",
        "+c 3",
        "init done 5",
        "watch 5",
        "+d 6",
        "-a 7",
        "watch 7",
        "watch 9",
    ];
    assert_eq!(log.entries()[..12], expected);
}

#[tokio::test(start_paused = true)]
async fn an_unusable_version_in_the_stream_at_the_start_and_in_a_list_causes_a_new_list() {
    let log = run([
        page(5, "", &[]),
        Response::Watch(vec![event("ERROR", GONE)], Then::Hang),
        page(6, "", &[]),
        Response::Error(410, "too old"),
        page(7, "c", &[]),
        Response::Error(410, "the token expired"),
        page(8, "", &[]),
        Response::VersionTooLarge,
        page(3, "", &[]),
        Response::Watch(vec![bookmark(2)], Then::Hang),
        page(2, "", &[]),
    ])
    .await;
    assert_eq!(log.times("list first").len(), 6);
    assert_eq!(log.times("begin").len(), 6);
    assert_eq!(
        log.times("init done").len(),
        5,
        "the list that failed was not completed"
    );
    assert!(log.times("begin").last() < Some(&Duration::from_mins(1)));
}

#[tokio::test(start_paused = true)]
async fn after_other_errors_the_watch_resumes_from_its_version() {
    let log = run([
        page(5, "", &[]),
        Response::Watch(vec![event("ADDED", &thing("a", 6))], Then::Break),
        Response::Error(503, "etcd leader changed"),
        Response::Watch(vec![], A_MINUTE),
    ])
    .await;
    let expected = ["begin", "list first page", "init done 5", "watch 5", "+a 6"];
    assert_eq!(log.entries()[..5], expected);
    assert!(
        log.entries()[5].starts_with("error: failed to watch /api/v1/things: 0 Reason: reset"),
        "{:?}",
        log.entries()
    );
    assert_eq!(log.entries()[6], "watch 6");
    assert_eq!(
        log.entries()[7],
        "error: failed to watch /api/v1/things: 503 Reason: etcd leader changed"
    );
    assert_eq!(log.entries()[8], "watch 6");
    assert_eq!(log.times("begin").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn after_a_break_all_is_listed_if_the_server_may_have_been_restored() {
    let settings = ReflectorSettings {
        relist_after_break: true,
        ..ReflectorSettings::default()
    };
    let responses = [
        page(5, "", &[]),
        Response::Watch(vec![event("ADDED", &thing("a", 6))], Then::Break),
        page(4, "", &[]),
        Response::Watch(vec![], Then::Hang),
        page(3, "", &[]),
        Response::Watch(vec![], A_MINUTE),
    ];
    let log = run_with(settings, responses).await;
    let entries = log.entries();
    let is_request = |entry: &&String| entry.starts_with("list") || entry.starts_with("watch");
    let requests: Vec<_> = entries.iter().filter(is_request).take(5).collect();
    let expected = [
        "list first page",
        "watch 5",
        "list first page",
        "watch 4",
        "list first page",
    ];
    assert_eq!(requests, expected);
}

#[tokio::test(start_paused = true)]
async fn pauses_after_errors_grow_and_stay_bounded() {
    let refused = || Response::Error(503, "starting");
    let log = run(std::iter::repeat_with(refused).take(50)).await;
    let pauses: Vec<_> = log
        .times("list")
        .windows(2)
        .map(|pair| pair[1].abs_diff(pair[0]))
        .collect();
    assert!(pauses[0] <= Duration::from_millis(501), "{pauses:?}");
    assert!(
        pauses
            .iter()
            .all(|pause| *pause <= Duration::from_millis(30_001)),
        "{pauses:?}"
    );
    assert!(
        pauses
            .last()
            .is_some_and(|pause| *pause >= Duration::from_secs(15)),
        "{pauses:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn short_watches_are_reported_and_delay_the_next() {
    let short = || Response::Watch(vec![], Then::EndAfter(Duration::from_millis(1)));
    let log =
        run(std::iter::once(page(5, "", &[])).chain(std::iter::repeat_with(short).take(1000)))
            .await;
    let watches = log.times("short watch").len();
    assert!(
        (100..400).contains(&watches),
        "{watches} watches in ten minutes"
    );
    assert!(log.times("error").is_empty());
}

#[tokio::test(start_paused = true)]
async fn every_wait_has_a_deadline() {
    let log = run([
        Response::Hang,
        page(5, "", &[]),
        Response::Hang,
        Response::Watch(vec![bookmark(6)], Then::Hang),
        Response::Watch(vec![], A_MINUTE),
    ])
    .await;
    let failures: Vec<_> = log
        .entries()
        .into_iter()
        .filter(|entry| entry.starts_with("error"))
        .take(3)
        .collect();
    assert_eq!(
        failures[0],
        "error: failed to list /api/v1/things: no response within 30s"
    );
    assert_eq!(
        failures[1],
        "error: failed to watch /api/v1/things: no response within 10s"
    );
    assert_eq!(
        failures[2],
        "error: failed to watch /api/v1/things: no response within 15s"
    );
    assert_eq!(
        log.times("watch 5").len(),
        2,
        "the watch resumes from its version"
    );
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_reopened_and_all_is_listed_unless_something_follows_all_that_the_server_had()
 {
    let ends = |lines| Response::Watch(lines, Then::EndAfter(Duration::from_secs(5)));
    let log = run([
        page(5, "", &[]),
        // Of a quiet collection, by a server that sends no bookmarks: the end of the short watch is the answer.
        Response::Watch(vec![event("ADDED", &thing("a", 6))], Then::Hang),
        ends(vec![]),
        // An event that others may follow.
        Response::Watch(vec![bookmark(7)], Then::Hang),
        Response::Watch(vec![event("ADDED", &thing("b", 8))], Then::Break),
        page(9, "", &[]),
        // Nothing but the headers.
        Response::Watch(vec![], Then::Hang),
        Response::Watch(vec![], Then::Hang),
        page(10, "", &[]),
        Response::Watch(vec![], Then::Hang),
        Response::Watch(vec![bookmark(11)], Then::EndAfter(Duration::from_secs(5))),
        Response::Hang,
    ])
    .await;
    let entries: Vec<_> = log
        .entries()
        .into_iter()
        .filter(|entry| !entry.starts_with("error"))
        .collect();
    let expected = [
        "watch 5",
        "+a 6",
        "silence",
        "confirm 6",
        "caught up",
        "watch 6",
        "silence",
        "confirm 7",
        "+b 8",
        "begin",
        "list first page",
        "init done 9",
        "watch 9",
        "silence",
        "confirm 9",
        "begin",
        "list first page",
        "init done 10",
        "watch 10",
        "silence",
        "confirm 10",
        "caught up",
        "watch 11",
    ];
    assert_eq!(entries[3..3 + expected.len()], expected);
    let silences = log.times("silence");
    assert_eq!(silences[0].as_secs(), 90);
    assert_eq!(silences[1].as_secs(), 90 + 5 + 90);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_asked_whether_it_works_is_reopened_once() {
    let short = || Response::Watch(vec![], Then::EndAfter(Duration::from_secs(5)));
    let responses = [
        page(5, "", &[]),
        Response::Watch(vec![event("ADDED", &thing("a", 6))], Then::Hang),
        short(),
        Response::Watch(vec![], A_MINUTE),
        Response::Hang,
    ];
    let ask = async |confirm: &Notify| {
        // The second time it is being found out.
        for pause in [20, 2] {
            sleep(Duration::from_secs(pause)).await;
            confirm.notify_waiters();
        }
    };
    let log = run_asked(ReflectorSettings::default(), responses, &Notify::new(), ask).await;
    let watches = log.entries().into_iter();
    let watches: Vec<_> = watches.filter(|entry| entry.contains(" 6")).collect();
    assert_eq!(watches[..3], ["+a 6", "confirm 6", "watch 6"]);
    assert_eq!(log.times("confirm 6"), [Duration::from_secs(20)]);
    assert_eq!(log.times("watch 6")[0], Duration::from_secs(25));
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_too_old_after_a_silence_causes_a_new_list() {
    let log = run([
        page(5, "", &[]),
        Response::Watch(vec![], Then::Hang),
        Response::Error(410, "too old"),
        page(9, "", &[]),
    ])
    .await;
    assert_eq!(log.times("init done").len(), 2);
    assert!(log.entries().contains(&"confirm 5".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_reported_and_skipped() {
    let log = run([
        page(
            5,
            "",
            &[r#"{"metadata":{"name":"a"}}"#.into(), thing("b", 2)],
        ),
        Response::Watch(
            vec![
                event("ADDED", r#"{"metadata":{"name":"c","resourceVersion":7}}"#),
                "no json\n".into(),
                event("ADDED", &thing(&"d".repeat(300), 8)),
                event("ADDED", &thing("e", 9)),
            ],
            A_MINUTE,
        ),
        Response::Watch(vec![], Then::Hang),
    ])
    .await;
    let expected = [
        "invalid a",
        "+b 2",
        "init done 5",
        "watch 5",
        "invalid c",
        "invalid ?",
        "invalid ?",
        "+e 9",
        "watch 9",
    ];
    assert_eq!(log.entries()[2..11], expected);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_not_a_list_is_an_error() {
    let log = run([Response::Page("<html>".into()), page(5, "", &[])]).await;
    assert!(
        log.entries()[2]
            .starts_with("error: failed to list /api/v1/things: the response is not a list"),
        "{:?}",
        log.entries()
    );
    assert_eq!(log.times("init done 5").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn repeated_events_do_not_move_the_version_back() {
    let log = run([
        page(5, "", &[]),
        Response::Watch(
            vec![
                event("ADDED", &thing("a", 9)),
                event("ADDED", &thing("a", 6)),
            ],
            A_MINUTE,
        ),
        Response::Watch(vec![], Then::Hang),
    ])
    .await;
    assert_eq!(log.times("watch 9").len(), log.times("watch").len() - 1);
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_log() {
    let mut logs = Vec::new();
    for _ in 0..2 {
        let log = run([
            Response::Error(503, ""),
            page(5, "", &[]),
            Response::Watch(vec![], Then::Break),
        ])
        .await;
        logs.push(log.0.lock().clone());
    }
    assert_eq!(logs[0], logs[1]);
}

#[test]
fn types_of_k8s_openapi_can_be_reflected() {
    fn is_reflected<T: DeserializeOwned + Versioned + Send>() {}
    is_reflected::<k8s_openapi::api::core::v1::Pod>();
}
