//! Time and peak heap of a list of 10,000 pods and 100,000 events.

use std::{
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures::{StreamExt, stream};
use kube::Api;
use kube_runtime::watcher::{self, watcher};
use reflector::{Collection, Error, EventHandler, Reflector, Versioned};
use serde::de::DeserializeOwned;
use tokio::{runtime::Builder, sync::Notify};

use crate::{
    HEAP, pod_json,
    server::{HttpResponse, Server, chunks, client, event, page, whole},
    types::{Kept, MinimalPod, OwnPod, Pod},
};

const PODS: u32 = 10_000;
const PAGE: u32 = 500;
const EVENTS: usize = 100_000;
/// Different events; they are repeated.
const DISTINCT: u32 = 1000;
const RUNS: usize = 5;

/// A recorded list and watch.
#[derive(Clone)]
struct Recording {
    pages: Arc<[Bytes]>,
    events: Arc<[Bytes]>,
}

impl Recording {
    fn new() -> Self {
        let pages = (0..PODS / PAGE).map(|number| {
            let first = number * PAGE;
            let pods: Vec<_> = (first..first + PAGE)
                .map(|pod| pod_json::running(pod, pod / 50, u64::from(pod) + 1))
                .collect();
            let next = number + 1;
            page(
                u64::from(PODS),
                (next < PODS / PAGE).then_some(next as usize),
                &pods,
            )
        });
        let events = (0..DISTINCT).map(|pod| {
            let version = u64::from(PODS + pod) + 1;
            let pod = if pod % 2 == 0 {
                pod_json::unscheduled(pod, pod / 50, version)
            } else {
                pod_json::running(pod, pod / 50, version)
            };
            event("MODIFIED", &pod)
        });
        Self {
            pages: pages.collect(),
            events: events.collect(),
        }
    }
}

impl Server for Recording {
    fn list(&self, position: usize) -> Option<HttpResponse> {
        Some(whole(200, self.pages[position].clone()))
    }

    fn watch(&self) -> Option<HttpResponse> {
        let events = Arc::clone(&self.events);
        let lines = (0..EVENTS).map(move |number| events[number % events.len()].clone());
        Some(chunks(stream::iter(lines).chain(stream::pending())))
    }
}

/// Keeps the pods, and ends after the last event.
struct PodCollector {
    kept: Kept,
    left: usize,
    done: Arc<Notify>,
}

impl<P: Pod> EventHandler<P> for PodCollector {
    fn on_init(&mut self) {}
    fn on_apply(&mut self, pod: P) {
        pod.keep(&mut self.kept);
        self.left -= 1;
        if self.left == 0 {
            self.done.notify_one();
        }
    }
    fn on_delete(&mut self, _pod: P) {}
    fn on_init_done(&mut self, _resource_version: &str) {}
    fn on_error(&mut self, error: &Error) {
        panic!("{error}");
    }
}

async fn with_reflector<P>(recording: Recording)
where
    P: Pod + DeserializeOwned + Versioned + Send,
{
    let (client, _) = client(recording);
    let done = Arc::new(Notify::new());
    let collector = PodCollector {
        kept: Kept::new(),
        left: PODS as usize + EVENTS,
        done: Arc::clone(&done),
    };
    let reflector = Reflector::new(client, Collection::all("/api/v1/pods"));
    tokio::select! {
        () = reflector.run::<P, _>(collector) => {}
        () = done.notified() => {}
    }
}

async fn with_kube_runtime<P>(recording: Recording)
where
    P: Pod
        + kube::Resource<DynamicType = ()>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug
        + Send
        + 'static,
{
    let (client, _) = client(recording);
    let mut events = pin!(watcher(Api::<P>::all(client), watcher::Config::default()));
    let mut kept = Kept::new();
    let mut left = PODS as usize + EVENTS;
    while left > 0 {
        match events.next().await.expect("a watcher never ends") {
            Ok(watcher::Event::InitApply(pod) | watcher::Event::Apply(pod)) => {
                pod.keep(&mut kept);
                left -= 1;
            }
            Ok(_) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn measure<F: Future<Output = ()>>(name: &str, run: impl Fn() -> F) {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let mut times = Vec::new();
    let mut peak = 0;
    for _ in 0..RUNS {
        let before = HEAP.current_usage();
        HEAP.reset_peak_usage();
        let started = Instant::now();
        runtime.block_on(run());
        times.push(started.elapsed());
        peak = peak.max(HEAP.peak_usage() - before);
    }
    times.sort();
    println!(
        "| {name} | {:.2} s ({:.2}) | {:.1} µs | {:.1} MB |",
        times[RUNS / 2].as_secs_f64(),
        times[0].as_secs_f64(),
        micros_each(times[RUNS / 2]),
        peak_mb(peak),
    );
}

fn micros_each(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6 / f64::from(PODS + u32::try_from(EVENTS).expect("small"))
}

#[expect(clippy::cast_precision_loss, reason = "megabytes")]
fn peak_mb(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}

pub(crate) fn run() {
    let recording = Recording::new();
    println!();
    println!(
        "| {PODS} pods listed, {EVENTS} events | time, median (quickest) | per object | peak heap |"
    );
    println!("| --- | --- | --- | --- |");
    measure("reflector, a type of its own", || {
        with_reflector::<OwnPod>(recording.clone())
    });
    measure("reflector, minimal kube type", || {
        with_reflector::<MinimalPod>(recording.clone())
    });
    measure("kube-runtime, minimal kube type", || {
        with_kube_runtime::<MinimalPod>(recording.clone())
    });
    measure("reflector, `Pod` of k8s-openapi", || {
        with_reflector::<k8s_openapi::api::core::v1::Pod>(recording.clone())
    });
    measure("kube-runtime, `Pod` of k8s-openapi", || {
        with_kube_runtime::<k8s_openapi::api::core::v1::Pod>(recording.clone())
    });
}
