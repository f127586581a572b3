//! What each does when the server is silent, or sends what it should not: an hour on a paused clock.

use std::{fmt::Write, pin::pin, time::Duration};

use bytes::Bytes;
use futures::{StreamExt, stream};
use kube::Api;
use kube_runtime::{
    WatchStreamExt,
    watcher::{self, watcher},
};
use reflector::{Collection, Error, EventHandler, Reflector};
use tokio::{runtime::Builder, time::timeout};

use crate::{
    HEAP,
    server::{HttpResponse, Log, Server, chunks, client, event, page, whole},
    types::MinimalPod,
};

const HOUR: Duration = Duration::from_secs(3600);

const POD: &str =
    r#"{"metadata":{"name":"a","namespace":"default","uid":"u","resourceVersion":"3"}}"#;
const UNREADABLE: &str = r#"{"metadata":{"name":"b","namespace":"default","uid":7}}"#;
const GONE: &str =
    r#"{"kind":"Status","code":410,"status":"Failure","reason":"Expired","message":"too old"}"#;
/// Bytes of a line that does not end.
const ENDLESS: usize = 256 << 20;

/// What the server does.
#[derive(Clone, Copy)]
enum Fault {
    SilentList,
    SilentWatchStart,
    SilentWatch,
    GoneAtStart,
    GoneInWatch,
    UnreadableObject,
    EndlessLine,
}

impl Server for Fault {
    fn list(&self, _position: usize) -> Option<HttpResponse> {
        let pods = match self {
            Self::SilentList => return None,
            Self::UnreadableObject => vec![UNREADABLE.to_owned(), POD.to_owned()],
            _ => vec![POD.to_owned()],
        };
        Some(whole(200, page(5, None, &pods)))
    }

    fn watch(&self) -> Option<HttpResponse> {
        match self {
            Self::SilentWatchStart => None,
            Self::GoneAtStart => Some(whole(410, GONE)),
            Self::GoneInWatch => {
                let gone = stream::iter([event("ERROR", GONE)]);
                Some(chunks(gone.chain(stream::pending())))
            }
            Self::EndlessLine => {
                let part = Bytes::from(vec![b' '; 1 << 20]);
                let line = stream::repeat(part).take(ENDLESS >> 20);
                Some(chunks(line.chain(stream::pending())))
            }
            Self::SilentList | Self::SilentWatch | Self::UnreadableObject => {
                Some(chunks(stream::pending()))
            }
        }
    }
}

/// Counts the pods of the last list.
#[derive(Default)]
struct Counter(usize);

impl EventHandler<MinimalPod> for &mut Counter {
    fn on_init(&mut self) {
        self.0 = 0;
    }
    fn on_apply(&mut self, _pod: MinimalPod) {
        self.0 += 1;
    }
    fn on_delete(&mut self, _pod: MinimalPod) {}
    fn on_init_done(&mut self, _resource_version: &str) {}
    fn on_error(&mut self, _error: &Error) {}
}

/// What a client did within an hour.
struct Outcome {
    log: Log,
    pods: usize,
    peak: usize,
}

fn in_an_hour(run: &impl AsyncFn(&mut Counter) -> Log) -> Outcome {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let mut counter = Counter::default();
    let before = HEAP.current_usage();
    HEAP.reset_peak_usage();
    let log = runtime.block_on(run(&mut counter));
    Outcome {
        log,
        pods: counter.0,
        peak: HEAP.peak_usage() - before,
    }
}

fn with_reflector(fault: Fault) -> Outcome {
    in_an_hour(&async |counter: &mut Counter| {
        let (client, log) = client(fault);
        let reflector = Reflector::new(client, Collection::all("/api/v1/pods"));
        let run = reflector.seed(1).run::<MinimalPod, _>(counter);
        timeout(HOUR, run).await.expect_err("it runs for ever");
        log
    })
}

fn with_kube_runtime(fault: Fault) -> Outcome {
    in_an_hour(&async |counter: &mut Counter| {
        let (client, log) = client(fault);
        let watcher = watcher(Api::<MinimalPod>::all(client), watcher::Config::default());
        let mut events = pin!(watcher.default_backoff());
        let run = async {
            while let Some(event) = events.next().await {
                match event {
                    Ok(watcher::Event::Init) => counter.0 = 0,
                    Ok(watcher::Event::InitApply(_) | watcher::Event::Apply(_)) => counter.0 += 1,
                    Ok(_) | Err(_) => {}
                }
            }
        };
        timeout(HOUR, run).await.expect_err("it runs for ever");
        log
    })
}

/// When the client made its second request of this kind.
fn second(outcome: &Outcome, verb: &str) -> String {
    let log = outcome.log.lock().expect("no panic holds the lock");
    let mut requests = log.iter().filter(|(_, of)| *of == verb);
    let (first, next) = (requests.next(), requests.next());
    let mut text = match (first, next) {
        (Some((first, _)), Some((next, _))) => {
            format!(
                "{verb} again after {:.1} s",
                next.saturating_sub(*first).as_secs_f64()
            )
        }
        _ => format!("no other {verb} within an hour"),
    };
    let _ = write!(text, " ({} requests)", log.len());
    text
}

pub(crate) fn run() {
    println!("| The server | reflector | kube-runtime |");
    println!("| --- | --- | --- |");
    let requests: [(&str, Fault, &str); 5] = [
        ("does not answer a list", Fault::SilentList, "list"),
        ("does not answer a watch", Fault::SilentWatchStart, "watch"),
        (
            "sends nothing on an open watch",
            Fault::SilentWatch,
            "watch",
        ),
        ("answers a watch with 410", Fault::GoneAtStart, "list"),
        ("sends 410 in a watch", Fault::GoneInWatch, "list"),
    ];
    for (name, fault, verb) in requests {
        let (ours, theirs) = (with_reflector(fault), with_kube_runtime(fault));
        println!(
            "| {name} | {} | {} |",
            second(&ours, verb),
            second(&theirs, verb)
        );
    }
    let [ours, theirs] = [with_reflector, with_kube_runtime]
        .map(|run| format!("{} of 1 readable pods", run(Fault::UnreadableObject).pods));
    println!("| lists an unreadable pod beside another | {ours} | {theirs} |");
    let [ours, theirs] = [with_reflector, with_kube_runtime]
        .map(|run| format!("{} MB of heap", run(Fault::EndlessLine).peak / 1_000_000));
    println!("| sends a line of 268 MB | {ours} | {theirs} |");
}
