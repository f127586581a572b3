//! Tenants whose FederatedReplicaSets are as large as a host stores them: they cost the controller about their bytes.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use federation_controller::{
    Controller,
    clock::Clock,
    config::Config,
    election::Fence,
    members::{MemberEvent, MemberSecrets},
    metrics::Metrics,
};
use fedrs_api::annotations::PREFERENCES;
use fedrs_tests::{even, frs};
use futures::stream;
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use jiff::Timestamp;
use kube::{Client, client::Body};
use peak_alloc::PeakAlloc;
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;
use tower::service_fn;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;
/// The heap is shared: only one test measures at a time.
static ALONE: Mutex<()> = Mutex::const_new(());

/// What the sets of each test may cost in heap, in MiB. The memory limit of the Deployment is 256 MiB.
const BOUND: f32 = 32.0;

/// The number of values that makes a set as large as a host stores it, if each has two bytes.
const MANY: usize = 700_000;

/// A host that has sets of a tenant and nothing else, and keeps what the controller says of them.
#[derive(Default)]
struct Host {
    /// As JSON, by name.
    sets: BTreeMap<String, Bytes>,
    /// The condition `Accepted` of each.
    accepted: parking_lot::Mutex<BTreeMap<String, String>>,
}

impl Host {
    /// With sets that `change` makes of usual ones.
    fn with(count: usize, change: impl Fn(&mut Value)) -> Arc<Self> {
        let set = |number| {
            let name = format!("set{number}");
            let mut set = frs(&name, 3, &even(false));
            set["metadata"]["uid"] = json!(name);
            set["metadata"]["generation"] = json!(1);
            set["metadata"]["resourceVersion"] = json!("1");
            change(&mut set);
            (name, set.to_string().into())
        };
        let sets = (0..count).map(set).collect();
        let accepted = parking_lot::Mutex::default();
        Arc::new(Self { sets, accepted })
    }

    fn client(self: &Arc<Self>) -> Client {
        let this = Arc::clone(self);
        let service = service_fn(move |request: Request<Body>| {
            let this = Arc::clone(&this);
            async move { Ok::<_, Infallible>(Response::new(this.answer(request).await)) }
        });
        Client::new(service, "default")
    }

    async fn answer(&self, request: Request<Body>) -> BoxBody<Bytes, Infallible> {
        let path = request.uri().path().to_owned();
        let query = request.uri().query().unwrap_or_default().to_owned();
        if query.contains("watch=true") {
            let silent = stream::pending::<Result<Frame<Bytes>, Infallible>>();
            return BoxBody::new(StreamBody::new(silent));
        }
        let text = match (
            request.method().clone(),
            path.split_once("federatedreplicasets"),
        ) {
            (Method::GET, Some(_)) => return self.page(&query),
            (Method::PATCH, Some((_, name))) => {
                let patch = request.into_body().collect_bytes().await;
                let patch = patch.expect("the body is in memory");
                let name = name.split('/').nth(1).expect("a set is patched");
                self.keep(
                    name,
                    &serde_json::from_slice(&patch).expect("a patch is JSON"),
                );
                return Full::new(self.sets[name].clone()).boxed();
            }
            (Method::GET, None) if path.ends_with("/kube-system") => {
                json!({ "metadata": { "uid": "host" } }).to_string()
            }
            (Method::GET, None) => {
                json!({ "metadata": { "resourceVersion": "1" }, "items": [] }).to_string()
            }
            _ => "{}".to_owned(),
        };
        Full::new(text.into()).boxed()
    }

    /// A page of the sets, which are not copied.
    fn page(&self, query: &str) -> BoxBody<Bytes, Infallible> {
        let number = |name: &str| {
            let value = query.split('&').find_map(|pair| pair.strip_prefix(name));
            value.and_then(|value| value.parse().ok())
        };
        let (first, limit) = (
            number("continue=").unwrap_or(0),
            number("limit=").expect("lists have pages"),
        );
        let next = Some(first + limit).filter(|next| *next < self.sets.len());
        let next = next.map_or(String::new(), |next| next.to_string());
        let metadata = json!({ "resourceVersion": "1", "continue": next });
        let mut chunks = vec![Bytes::from(format!(r#"{{"metadata":{metadata},"items":["#))];
        for set in self.sets.values().skip(first).take(limit) {
            chunks.extend([set.clone(), Bytes::from_static(b",")]);
        }
        chunks.pop();
        chunks.push(Bytes::from_static(b"]}"));
        let frames = chunks.into_iter().map(|chunk| Ok(Frame::data(chunk)));
        BoxBody::new(StreamBody::new(stream::iter(frames)))
    }

    /// Keeps the condition of a patch of the status.
    fn keep(&self, name: &str, patch: &Value) {
        let operations = patch.as_array().into_iter().flatten();
        let conditions =
            operations.filter_map(|operation| operation["value"]["conditions"].as_array());
        for condition in conditions
            .flatten()
            .filter(|condition| condition["type"] == "Accepted")
        {
            let text = format!("{} {}", condition["status"], condition["message"]).replace('"', "");
            self.accepted.lock().insert(name.to_owned(), text);
        }
    }
}

/// Has a controller read the sets of `host`. Their conditions say `expected`, and they cost less than the bound.
async fn costs_little(host: Arc<Host>, expected: &str) {
    let base = HEAP.current_usage_as_mb();
    HEAP.reset_peak_usage();
    let begun = tokio::time::Instant::now();
    let (events, members) = mpsc::channel(1);
    let controller = Controller {
        host: host.client(),
        members,
        secrets: MemberSecrets::default(),
        config: Config::default(),
        clock: Clock::new(move || Timestamp::UNIX_EPOCH + begun.elapsed()),
        seed: 1,
        metrics: Metrics::default().into(),
        fence: Fence::open(),
    };
    let cancel = CancellationToken::new();
    let running = controller.start(cancel.clone()).await;
    let running = running.expect("it is not cancelled");
    let complete = events.send(MemberEvent::Complete).await;
    complete.expect("the controller runs");
    let (started, deadline) = (Instant::now(), begun + Duration::from_secs(60));
    while host.accepted.lock().len() < host.sets.len() {
        assert!(
            tokio::time::Instant::now() < deadline,
            "no status of {} sets",
            host.sets.len()
        );
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let (peak, took) = (HEAP.peak_usage_as_mb() - base, started.elapsed());
    println!("{expected}: {peak} MiB, {took:?}");
    assert!(peak < BOUND, "{expected}: {peak} MiB");
    for (name, accepted) in &*host.accepted.lock() {
        assert!(accepted.starts_with(expected), "{name}: {accepted}");
    }
    cancel.cancel();
    running.joined().await;
}

/// The first container of the template.
fn container(set: &mut Value) -> &mut Value {
    &mut set["spec"]["template"]["spec"]["containers"][0]
}

/// `count` labels or annotations of a few bytes.
fn entries(count: usize) -> Value {
    (0..count)
        .map(|number| (format!("a{number:x}"), json!("")))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn s4_a_template_of_too_many_values_is_not_read() {
    let _alone = ALONE.lock().await;
    let host = Host::with(6, |set| container(set)["x"] = json!(vec![0; MANY]));
    let expected = "False spec: this version of fedrs can't read it: it has more than 20000 values";
    costs_little(host, expected).await;
}

/// Each value takes more than eighty times its bytes in memory.
#[tokio::test(start_paused = true)]
async fn s4_many_templates_of_many_values_cost_their_bytes() {
    let _alone = ALONE.lock().await;
    let host = Host::with(30, |set| {
        container(set)["x"] = json!(vec![json!({ "a": 0 }); 9_900]);
    });
    costs_little(host, "True the spec").await;
}

#[tokio::test(start_paused = true)]
async fn s4_the_annotations_of_tools_are_not_kept() {
    let _alone = ALONE.lock().await;
    let host = Host::with(200, |set| {
        let applied = "x".repeat(250_000);
        set["metadata"]["annotations"] =
            json!({ "kubectl.kubernetes.io/last-applied-configuration": applied });
    });
    costs_little(host, "True the spec").await;
}

type Change = fn(&mut Value);

#[tokio::test(start_paused = true)]
async fn s4_maps_and_lists_of_very_many_entries_are_not_kept() {
    let _alone = ALONE.lock().await;
    let cases: [(&str, Change); 5] = [
        ("metadata.labels", |set| {
            set["metadata"]["labels"] = entries(100_000);
        }),
        ("metadata.finalizers", |set| {
            set["metadata"]["finalizers"] = json!(vec!["a/b"; 200_000]);
        }),
        ("spec.template.metadata.labels", |set| {
            set["spec"]["template"]["metadata"]["labels"] = entries(19_000);
            set["spec"]["template"]["metadata"]["labels"]["app"] =
                set["spec"]["selector"]["matchLabels"]["app"].clone();
        }),
        ("spec.template.metadata.annotations", |set| {
            set["spec"]["template"]["metadata"]["annotations"] = entries(19_000);
        }),
        ("spec.selector", |set| {
            let values: Vec<_> = (0..19_000).map(|number| format!("a{number:x}")).collect();
            set["spec"]["selector"] = json!({ "matchExpressions": [{ "key": "app", "operator": "NotIn", "values": values }] });
        }),
    ];
    for (field, change) in cases {
        let host = Host::with(8, change);
        costs_little(
            host,
            &format!("False {field}: must have at most 256 entries"),
        )
        .await;
    }
}

/// The path of each unknown field begins with the name of the cluster.
#[tokio::test(start_paused = true)]
async fn s4_unknown_fields_of_preferences_cost_their_bytes() {
    let _alone = ALONE.lock().await;
    let host = Host::with(1, |set| {
        set["spec"]["placement"].take();
        let clusters = json!({ "c".repeat(100_000): entries(15_000) });
        let preferences = json!({ "clusters": clusters }).to_string();
        set["metadata"]["annotations"] = json!({ PREFERENCES: preferences });
    });
    costs_little(
        host,
        "False metadata.annotations[federation.kubernetes.io/replica-set-preferences].clusters[ccc",
    )
    .await;
}
