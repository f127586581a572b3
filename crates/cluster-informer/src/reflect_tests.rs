//! The list and watch loop against a scripted transport, on paused time: requests and calls as one log.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use futures::stream;
use parking_lot::Mutex;
use serde::Deserialize;

use super::*;

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

fn page(version: u64, next: &str, items: &[String]) -> Answer {
    let items = items.join(",");
    Answer::Page(format!(
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

/// How a watch goes on after its lines.
#[derive(Clone, Copy)]
enum Then {
    EndAfter(Duration),
    Break,
    Hang,
}

enum Answer {
    Page(String),
    Refused(u16, &'static str),
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

struct Script {
    answers: VecDeque<Answer>,
    log: Log,
}

impl Script {
    async fn next(&mut self, doing: Doing) -> Result<Answer, Error> {
        match self.answers.pop_front() {
            None | Some(Answer::Hang) => std::future::pending().await,
            Some(Answer::Refused(code, message)) => Err(Error::Refused {
                doing,
                code,
                reason: String::new(),
                message: message.into(),
            }),
            Some(answer) => Ok(answer),
        }
    }
}

impl Transport for Script {
    async fn list(&mut self, limit: u32, token: Option<&str>) -> Result<Bytes, Error> {
        assert_eq!(limit, 500);
        self.log
            .add(format!("list {}", token.unwrap_or("from the start")));
        match self.next(Doing::List).await? {
            Answer::Page(page) => Ok(Bytes::from(page)),
            _ => panic!("a list was asked for, and the script has a watch"),
        }
    }

    async fn watch(&mut self, version: &str, timeout: Duration) -> Result<Chunks, Error> {
        assert!((180..=200).contains(&timeout.as_secs()), "{timeout:?}");
        self.log.add(format!("watch {version}"));
        let Answer::Watch(lines, then) = self.next(Doing::Watch).await? else {
            panic!("a watch was asked for, and the script has a list");
        };
        let lines = stream::iter(lines.into_iter().map(|line| Ok(Bytes::from(line))));
        let rest = stream::once(async move {
            match then {
                Then::EndAfter(time) => {
                    sleep(time).await;
                    None
                }
                Then::Break => Some(Err(Error::Refused {
                    doing: Doing::Watch,
                    code: 0,
                    reason: "reset".into(),
                    message: String::new(),
                })),
                Then::Hang => std::future::pending().await,
            }
        });
        Ok(lines.chain(rest.filter_map(std::future::ready)).boxed())
    }
}

struct Recorder(Log);

impl Sink<Thing> for Recorder {
    fn restarted(&mut self) {
        self.0.add("restarted");
    }

    fn applied(
        &mut self,
        Thing {
            metadata: Meta {
                name,
                resource_version,
            },
        }: Thing,
    ) {
        self.0.add(format!("+{name} {resource_version}"));
    }

    fn deleted(
        &mut self,
        Thing {
            metadata: Meta {
                name,
                resource_version,
            },
        }: Thing,
    ) {
        self.0.add(format!("-{name} {resource_version}"));
    }

    fn listed(&mut self, resource_version: &str) {
        self.0.add(format!("listed {resource_version}"));
    }

    fn failed(&mut self, error: &Error) {
        self.0.add(format!("failed: {error}"));
    }

    fn alive(&mut self) {}

    fn malformed(&mut self, object: &Malformed) {
        self.0.add(format!(
            "malformed {}",
            object.name.as_deref().unwrap_or("?")
        ));
    }

    fn ended_early(&mut self) {
        self.0.add("ended early");
    }
}

/// Runs the script for ten minutes of paused time.
async fn run(answers: impl IntoIterator<Item = Answer>) -> Log {
    let log = Log(Arc::default(), Some(Instant::now()));
    let script = Script {
        answers: answers.into_iter().collect(),
        log: log.clone(),
    };
    let settings = ReflectSettings {
        max_line: 300,
        ..ReflectSettings::default()
    };
    let reflector = Reflector::new(script, Recorder(log.clone()), settings, 1, "things".into());
    timeout(
        Duration::from_mins(10),
        reflector.run::<Thing>(&Notify::new()),
    )
    .await
    .expect_err("it never ends by itself");
    log
}

const MINUTES: Then = Then::EndAfter(Duration::from_mins(3));

#[tokio::test(start_paused = true)]
async fn pages_then_events_then_on_from_the_last_version() {
    let log = run([
        page(5, "c", &[thing("a", 1), thing("b", 2)]),
        page(5, "", &[thing("c", 3)]),
        Answer::Watch(
            vec![
                event("ADDED", &thing("d", 6)),
                event("DELETED", &thing("a", 7)),
                event("NEW", "{}"),
            ],
            MINUTES,
        ),
        Answer::Watch(vec![bookmark(9)], MINUTES),
        Answer::Watch(vec![], Then::Hang),
    ])
    .await;
    let expected = [
        "restarted",
        "list from the start",
        "+a 1",
        "+b 2",
        "list c",
        "+c 3",
        "listed 5",
        "watch 5",
        "+d 6",
        "-a 7",
        "watch 7",
        "watch 9",
    ];
    assert_eq!(log.entries()[..12], expected);
}

#[tokio::test(start_paused = true)]
async fn too_old_in_the_stream_at_the_start_and_in_a_list_all_list_anew() {
    let log = run([
        page(5, "", &[]),
        Answer::Watch(vec![event("ERROR", GONE)], Then::Hang),
        page(6, "", &[]),
        Answer::Refused(410, "too old"),
        page(7, "c", &[]),
        Answer::Refused(410, "the token expired"),
        page(8, "", &[]),
        Answer::Refused(504, "Too large resource version: 8, current: 3"),
        page(3, "", &[]),
        Answer::Watch(vec![bookmark(2)], Then::Hang),
        page(2, "", &[]),
    ])
    .await;
    assert_eq!(log.times("list from").len(), 6);
    assert_eq!(log.times("restarted").len(), 6);
    assert_eq!(
        log.times("listed").len(),
        5,
        "the list that broke off was not completed"
    );
    assert!(log.times("restarted").last() < Some(&Duration::from_mins(1)));
}

#[tokio::test(start_paused = true)]
async fn an_error_that_is_no_expiry_goes_on_from_where_it_was() {
    let log = run([
        page(5, "", &[]),
        Answer::Watch(vec![event("ADDED", &thing("a", 6))], Then::Break),
        Answer::Refused(500, "etcd leader changed"),
        Answer::Watch(vec![], MINUTES),
    ])
    .await;
    let expected = [
        "restarted",
        "list from the start",
        "listed 5",
        "watch 5",
        "+a 6",
    ];
    assert_eq!(log.entries()[..5], expected);
    assert!(
        log.entries()[5].starts_with("failed: failed to watch: 0 reset"),
        "{:?}",
        log.entries()
    );
    assert_eq!(log.entries()[6], "watch 6");
    assert_eq!(
        log.entries()[7],
        "failed: failed to watch: 500 : etcd leader changed"
    );
    assert_eq!(log.entries()[8], "watch 6");
    assert_eq!(log.times("restarted").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn pauses_after_errors_grow_and_stay_bounded() {
    let refused = || Answer::Refused(503, "starting");
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
async fn short_clean_watches_are_counted_and_slowed_down() {
    let short = || Answer::Watch(vec![], Then::EndAfter(Duration::from_millis(1)));
    let log =
        run(std::iter::once(page(5, "", &[])).chain(std::iter::repeat_with(short).take(1000)))
            .await;
    let watches = log.times("ended early").len();
    assert!(
        (100..400).contains(&watches),
        "{watches} watches in ten minutes"
    );
    assert!(log.times("failed").is_empty());
}

#[tokio::test(start_paused = true)]
async fn every_wait_has_a_deadline() {
    let log = run([
        Answer::Hang,
        page(5, "", &[]),
        Answer::Hang,
        Answer::Watch(vec![bookmark(6)], Then::Hang),
        Answer::Watch(vec![], MINUTES),
    ])
    .await;
    let failures: Vec<_> = log
        .entries()
        .into_iter()
        .filter(|entry| entry.starts_with("failed"))
        .take(3)
        .collect();
    assert_eq!(failures[0], "failed: failed to list: no answer within 30s");
    assert_eq!(failures[1], "failed: failed to watch: no answer within 10s");
    assert!(
        failures[2].starts_with("failed: failed to watch: no answer within 2"),
        "{}",
        failures[2]
    );
    assert_eq!(log.times("watch 5").len(), 2, "opened again where it was");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_told_and_passed_over() {
    let log = run([
        page(
            5,
            "",
            &[r#"{"metadata":{"name":"a"}}"#.into(), thing("b", 2)],
        ),
        Answer::Watch(
            vec![
                event("ADDED", r#"{"metadata":{"name":"c","resourceVersion":7}}"#),
                "no json\n".into(),
                event("ADDED", &thing(&"d".repeat(300), 8)),
                event("ADDED", &thing("e", 9)),
            ],
            MINUTES,
        ),
        Answer::Watch(vec![], Then::Hang),
    ])
    .await;
    let expected = [
        "malformed a",
        "+b 2",
        "listed 5",
        "watch 5",
        "malformed ?",
        "malformed ?",
        "malformed ?",
        "+e 9",
        "watch 9",
    ];
    assert_eq!(log.entries()[2..11], expected);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_no_list_is_a_failure() {
    let log = run([Answer::Page("<html>".into()), page(5, "", &[])]).await;
    assert!(
        log.entries()[2].starts_with("failed: failed to read a list"),
        "{:?}",
        log.entries()
    );
    assert_eq!(log.times("listed 5").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn events_that_come_again_do_not_move_the_watch_back() {
    let log = run([
        page(5, "", &[]),
        Answer::Watch(
            vec![
                event("ADDED", &thing("a", 9)),
                event("ADDED", &thing("a", 6)),
            ],
            MINUTES,
        ),
        Answer::Watch(vec![], Then::Hang),
    ])
    .await;
    assert_eq!(log.times("watch 9").len(), log.times("watch").len() - 1);
}

#[tokio::test(start_paused = true)]
async fn one_seed_makes_one_log() {
    let mut logs = Vec::new();
    for _ in 0..2 {
        let log = run([
            Answer::Refused(503, ""),
            page(5, "", &[]),
            Answer::Watch(vec![], Then::Break),
        ])
        .await;
        logs.push(log.0.lock().clone());
    }
    assert_eq!(logs[0], logs[1]);
}

#[test]
fn objects_of_kube_can_be_reflected() {
    fn reflected<T: DeserializeOwned + Versioned + Send>() {}
    reflected::<fedrs_api::FederatedReplicaSet>();
    reflected::<fedrs_api::MemberCluster>();
}
