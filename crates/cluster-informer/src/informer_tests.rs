//! A whole informer over a member in memory, on paused time: the store's state and the reported changes.

use std::{collections::BTreeMap, io};

use bytes::Bytes;
use fedrs_api::ObjectKey;
use futures::{StreamExt, channel::mpsc, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use jiff::Timestamp;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};
use tower::service_fn;

use super::*;
use crate::{Health, MemberView, SyncState, WorkloadChange, WorkloadState, WorkloadView};

type Chunk = Result<Frame<Bytes>, io::Error>;

/// A member cluster. It refuses connections while `down`; a watch ends in time, and sends no bookmarks.
#[expect(clippy::struct_excessive_bools, reason = "independent faults")]
#[derive(Default)]
struct Member {
    version: u64,
    /// By path of the collection, by uid.
    objects: BTreeMap<&'static str, BTreeMap<String, Value>>,
    watches: Vec<(&'static str, mpsc::UnboundedSender<Chunk>)>,
    watches_down: bool,
    /// Watches that begin now send their headers and nothing else.
    stalled: bool,
    down: bool,
    /// Watches fail with 410 until the next list.
    compacted: bool,
    requests: Vec<String>,
}

const SET_PATH: &str = "/apis/apps/v1/replicasets";
const POD_PATH: &str = "/api/v1/pods";

type HttpResponse = Result<Response<UnsyncBoxBody<Bytes, io::Error>>, io::Error>;

impl Member {
    /// The number of list requests.
    fn lists(&self) -> usize {
        self.requests
            .iter()
            .filter(|uri| uri.contains("limit=") && !uri.starts_with("/api/v1/nodes"))
            .count()
    }

    fn respond(&mut self, uri: &http::Uri) -> HttpResponse {
        self.requests.push(uri.to_string());
        if self.down {
            return Err(io::Error::other("connection refused"));
        }
        let path = match uri.path() {
            "/readyz" => return Ok(full(200, "ok".into())),
            "/version" | "/api/v1/nodes" => return Ok(full(403, "{}".into())),
            SET_PATH => SET_PATH,
            POD_PATH => POD_PATH,
            path => panic!("unexpected request for {path}"),
        };
        let query = uri.query().unwrap_or_default();
        assert!(
            query.contains("labelSelector=fedrs.dev%2Ffederation%3Dfed%2Cfedrs.dev%2Freplica-set"),
            "{query}"
        );
        if !query.contains("watch=true") {
            self.compacted = false;
            let items: Vec<_> = self.objects.entry(path).or_default().values().collect();
            let list =
                json!({"metadata": {"resourceVersion": self.version.to_string()}, "items": items});
            return Ok(full(200, list.to_string()));
        }
        if self.watches_down {
            return Err(io::Error::other("reset"));
        }
        if self.compacted {
            return Ok(full(
                410,
                json!({"code": 410, "reason": "Expired", "message": "too old"}).to_string(),
            ));
        }
        let (sender, receiver) = mpsc::unbounded();
        self.watches.push((path, sender));
        if self.stalled {
            return Ok(Response::new(
                StreamBody::new(stream::pending::<Chunk>()).boxed_unsync(),
            ));
        }
        let mut parameters = query.split('&');
        let seconds =
            parameters.find_map(|pair| pair.strip_prefix("timeoutSeconds=")?.parse().ok());
        let end = Box::pin(sleep(Duration::from_secs(seconds.expect("a timeout"))));
        let lines = receiver.chain(stream::pending()).take_until(end);
        Ok(Response::new(StreamBody::new(lines).boxed_unsync()))
    }

    fn put(&mut self, path: &'static str, mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let uid = object["metadata"]["uid"]
            .as_str()
            .expect("a uid")
            .to_owned();
        self.objects
            .entry(path)
            .or_default()
            .insert(uid, object.clone());
        self.send(path, "MODIFIED", &object);
    }

    fn remove(&mut self, path: &'static str, uid: &str) {
        self.version += 1;
        let mut object = self
            .objects
            .entry(path)
            .or_default()
            .remove(uid)
            .expect("an object");
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.send(path, "DELETED", &object);
    }

    fn send(&mut self, path: &str, kind: &str, object: &Value) {
        let line = format!("{}\n", json!({"type": kind, "object": object}));
        for (_, watch) in self.watches.iter().filter(|(watched, _)| *watched == path) {
            let _gone = watch.unbounded_send(Ok(Frame::data(Bytes::from(line.clone()))));
        }
    }

    fn cut_watches(&mut self) {
        for (_, watch) in self.watches.drain(..) {
            let _gone = watch.unbounded_send(Err(io::Error::other("reset")));
        }
    }
}

fn full(status: u16, body: String) -> Response<UnsyncBoxBody<Bytes, io::Error>> {
    let body = Full::new(Bytes::from(body))
        .map_err(|never| match never {})
        .boxed_unsync();
    Response::builder()
        .status(status)
        .body(body)
        .expect("a response")
}

fn replica_set(replicas: u32, available: u32) -> Value {
    json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "set", "generation": 1,
            "labels": {"fedrs.dev/federation": "fed", "fedrs.dev/replica-set": "web"}},
        "spec": {"replicas": replicas, "selector": {}, "template": {}},
        "status": {"observedGeneration": 1, "replicas": 3, "readyReplicas": available, "availableReplicas": available},
    })
}

fn pod(uid: &str, node: Option<&str>) -> Value {
    json!({
        "metadata": {"name": uid, "namespace": "default", "uid": uid, "creationTimestamp": "1970-01-01T00:00:07Z",
            "labels": {"fedrs.dev/federation": "fed", "fedrs.dev/replica-set": "web"},
            "ownerReferences": [{"uid": "set", "controller": true}]},
        "spec": {"nodeName": node},
        "status": {},
    })
}

/// The reported changes as text.
#[derive(Clone)]
struct Changes(Arc<Mutex<Vec<String>>>);

impl ChangeHandler for Changes {
    fn on_workload_change(&self, cluster: &str, key: &ObjectKey, change: WorkloadChange) {
        self.0.lock().push(format!("{cluster} {key} {change:?}"));
    }

    fn on_cluster_change(&self, cluster: &str) {
        self.0.lock().push(cluster.to_owned());
    }
}

struct World {
    member: Arc<Mutex<Member>>,
    changes: Changes,
    informer: MemberInformer,
    cancel: CancellationToken,
}

fn client(member: &Arc<Mutex<Member>>) -> Client {
    let member = Arc::clone(member);
    let service = service_fn(move |request: Request<Body>| {
        let member = Arc::clone(&member);
        async move {
            sleep(Duration::from_millis(1)).await;
            member.lock().respond(request.uri())
        }
    });
    Client::new(service, "default")
}

impl World {
    fn new(objects: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        let mut member = Member {
            version: 100,
            ..Member::default()
        };
        for (path, object) in objects {
            member.put(path, object);
        }
        let member = Arc::new(Mutex::new(member));
        let start = Instant::now();
        let changes = Changes(Arc::default());
        let clock: Clock = Arc::new(move || {
            Timestamp::UNIX_EPOCH
                + jiff::SignedDuration::try_from(start.elapsed()).expect("minutes")
        });
        let cancel = CancellationToken::new();
        let informer = MemberInformer::spawn(
            "a",
            client(&member),
            "fed",
            WatchScope::All,
            Arc::new(changes.clone()),
            InformerSettings::default(),
            &InformerMetrics::default(),
            clock,
            1,
            cancel.clone(),
        );
        Self {
            member,
            changes,
            informer,
            cancel,
        }
    }

    fn view(&self) -> WorkloadView {
        self.informer
            .store
            .workload(&ObjectKey::new("default", "web"))
    }

    /// The changes since the last call.
    fn changes(&self) -> Vec<String> {
        std::mem::take(&mut *self.changes.0.lock())
    }

    async fn synced(&self) {
        self.until("synced", || {
            self.informer.store.sync_state() == SyncState::Synced
        })
        .await;
        self.until("healthy", || {
            self.informer.store.health() == Health::Healthy
        })
        .await;
        self.changes();
    }

    /// The member goes down, and the probe notices.
    async fn lost(&self) {
        self.member.lock().down = true;
        self.until("unreachable", || {
            matches!(self.informer.store.health(), Health::Unreachable { .. })
        })
        .await;
    }

    async fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let wait = async {
            while !holds() {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_mins(2), wait)
            .await
            .unwrap_or_else(|_| panic!("not {what} within 2 minutes: {:?}", self.changes()));
    }

    async fn settle(&self) {
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_lists_report_the_cluster_not_each_object() {
    let world = World::new([
        (SET_PATH, replica_set(3, 1)),
        (POD_PATH, pod("p1", Some("n"))),
        (POD_PATH, pod("p2", None)),
    ]);
    assert_eq!(world.informer.store.sync_state(), SyncState::NotSynced);
    assert_eq!(world.informer.store.health(), Health::Unknown);
    world.settle().await;
    assert_eq!(world.informer.store.sync_state(), SyncState::Synced);
    assert_eq!(world.changes(), ["a", "a"], "synced, and healthy");
    let totals = world.informer.store.totals(1);
    assert_eq!((totals.workloads, totals.replicas), (1, 3));
    assert_eq!(totals.first, [ObjectKey::new("default", "web")]);
    let view = world.view();
    assert_eq!(
        view.workload
            .map(|workload| (workload.replicas, workload.available_replicas)),
        Some((3, 1))
    );
    assert_eq!((view.pods.active, view.pods.unscheduled), (2, 1));
    // Created seven seconds in the future of our clock: clamped to now.
    assert_eq!(view.pods.unscheduled_since, [(Timestamp::UNIX_EPOCH, 1)]);
}

#[tokio::test(start_paused = true)]
async fn f22_changes_are_reported_by_kind() {
    let world = World::new([(SET_PATH, replica_set(3, 1))]);
    world.synced().await;
    sleep(Duration::from_secs(8)).await;
    world.member.lock().put(POD_PATH, pod("p1", None));
    world.settle().await;
    assert_eq!(
        world.changes(),
        ["a default/web PodUnscheduled { since: 1970-01-01T00:00:08Z }"],
        "since it was first seen, and not by the member's clock"
    );
    world.member.lock().put(POD_PATH, pod("p1", Some("n")));
    world.member.lock().put(SET_PATH, replica_set(3, 2));
    world.settle().await;
    let mut changes = world.changes();
    changes.sort();
    assert_eq!(
        changes,
        ["a default/web MoreAvailable", "a default/web Pods"]
    );
    world.member.lock().put(SET_PATH, replica_set(9, 2));
    world.settle().await;
    assert_eq!(world.changes(), ["a default/web Drift"]);
    world.member.lock().send(
        POD_PATH,
        "BOOKMARK",
        &json!({"metadata": {"resourceVersion": "999"}}),
    );
    world.member.lock().put(SET_PATH, replica_set(9, 2));
    world.settle().await;
    assert!(
        world.changes().is_empty(),
        "a bookmark and a write that changed nothing"
    );
    world.member.lock().remove(POD_PATH, "p1");
    world.member.lock().remove(SET_PATH, "set");
    world.settle().await;
    let mut changes = world.changes();
    changes.sort();
    assert_eq!(changes, ["a default/web Drift", "a default/web Pods"]);
    assert_eq!(world.view(), WorkloadView::default());
}

#[tokio::test(start_paused = true)]
async fn f29_the_response_to_our_own_write_is_not_drift() {
    let world = World::new([(SET_PATH, replica_set(3, 1))]);
    world.synced().await;
    let mut written = replica_set(5, 1);
    written["metadata"]["resourceVersion"] = json!((world.member.lock().version + 1).to_string());
    world
        .informer
        .store
        .observe_write(serde_json::from_value::<WorkloadState>(written).unwrap());
    assert_eq!(
        world.view().workload.map(|workload| workload.replicas),
        Some(5)
    );
    world.member.lock().put(SET_PATH, replica_set(5, 1));
    world.settle().await;
    assert!(world.changes().is_empty());
    world
        .informer
        .store
        .observe_deletion(&ObjectKey::new("default", "web"), "set");
    world.member.lock().put(SET_PATH, replica_set(5, 2));
    world.settle().await;
    assert_eq!(world.view().workload, None);
}

#[tokio::test(start_paused = true)]
async fn f39_a_quiet_member_without_bookmarks_is_current_and_a_stalled_one_is_not() {
    let world = World::new([(SET_PATH, replica_set(3, 0))]);
    world.synced().await;
    let mut unconfirmed = 0;
    for _ in 0..600 {
        sleep(Duration::from_secs(1)).await;
        match world.informer.store.sync_state() {
            SyncState::Synced => {}
            SyncState::Unconfirmed => unconfirmed += 1,
            state => panic!("{state:?}"),
        }
    }
    // Every 95 s for 5 s, both watches at once.
    assert!((25..=40).contains(&unconfirmed), "{unconfirmed} s");
    assert_eq!(world.member.lock().lists(), 2, "nothing is listed again");
    world.member.lock().stalled = true;
    world
        .until("unconfirmed", || {
            world.informer.store.sync_state() == SyncState::Unconfirmed
        })
        .await;
    sleep(Duration::from_secs(40)).await;
    let state = world.informer.store.sync_state();
    assert!(matches!(state, SyncState::Stale { .. }), "{state:?}");
    world.member.lock().stalled = false;
    world.synced().await;
}

#[tokio::test(start_paused = true)]
async fn f39_too_old_a_version_makes_the_view_stale_until_a_list_is_complete() {
    let world = World::new([
        (SET_PATH, replica_set(3, 1)),
        (POD_PATH, pod("p1", Some("n"))),
    ]);
    world.synced().await;
    {
        let mut member = world.member.lock();
        member.cut_watches();
        member.compacted = true;
        member.remove(POD_PATH, "p1");
    }
    world
        .until("stale", || {
            matches!(world.informer.store.sync_state(), SyncState::Stale { .. })
        })
        .await;
    assert_eq!(world.changes(), ["a"]);
    world
        .until("synced", || {
            world.informer.store.sync_state() == SyncState::Synced
        })
        .await;
    world
        .until("a change", || world.changes.0.lock().len() >= 2)
        .await;
    assert_eq!(world.changes(), ["a default/web Pods", "a"]);
    assert_eq!(world.view().pods.active, 0);
}

#[tokio::test(start_paused = true)]
async fn f33_watches_that_fail_make_the_view_stale_but_the_probe_decides_on_health() {
    let world = World::new([(SET_PATH, replica_set(3, 1))]);
    world.synced().await;
    {
        let mut member = world.member.lock();
        member.watches_down = true;
        member.cut_watches();
    }
    sleep(Duration::from_secs(29)).await;
    assert_eq!(world.informer.store.sync_state(), SyncState::Synced);
    assert!(
        world.changes().is_empty(),
        "a broken watch alone is not a change"
    );
    sleep(Duration::from_secs(9)).await;
    assert!(matches!(
        world.informer.store.sync_state(),
        SyncState::Stale { .. }
    ));
    assert_eq!(world.changes(), ["a"]);
    assert_eq!(world.informer.store.health(), Health::Healthy);
    world.member.lock().watches_down = false;
    world
        .until("synced", || {
            world.informer.store.sync_state() == SyncState::Synced
        })
        .await;
    assert_eq!(world.changes(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn f33_a_lost_member_is_unreachable_since_its_first_failed_probe_and_comes_back() {
    let world = World::new([(SET_PATH, replica_set(3, 1))]);
    world.synced().await;
    world.lost().await;
    assert_eq!(world.changes(), ["a", "a"], "failing, then unreachable");
    assert_eq!(
        world.view().workload.map(|workload| workload.replicas),
        Some(3),
        "the view is kept"
    );
    let lists = {
        let mut member = world.member.lock();
        member.down = false;
        member.lists()
    };
    world
        .until("healthy", || {
            let store = &world.informer.store;
            let healthy = store.health() == Health::Healthy;
            assert!(
                !healthy
                    || store.sync_state() != SyncState::Synced
                    || world.member.lock().lists() > lists,
                "the view dates from before the outage"
            );
            healthy && store.sync_state() == SyncState::Synced
        })
        .await;
    assert_eq!(
        world.changes(),
        ["a", "a", "a"],
        "healthy, its view stale, listed again"
    );
}

#[tokio::test(start_paused = true)]
async fn objects_that_cannot_be_read_are_kept_through_a_relist() {
    let world = World::new([
        (SET_PATH, replica_set(3, 1)),
        (POD_PATH, pod("p1", Some("n"))),
    ]);
    world.synced().await;
    {
        let mut member = world.member.lock();
        let mut unreadable = replica_set(4, 1);
        unreadable["spec"]["replicas"] = json!("four");
        member.put(SET_PATH, unreadable);
        let mut unreadable = pod("p1", None);
        unreadable["status"] = json!([1]);
        member.put(POD_PATH, unreadable);
        member.cut_watches();
        member.compacted = true;
    }
    world
        .until("stale", || {
            matches!(world.informer.store.sync_state(), SyncState::Stale { .. })
        })
        .await;
    world
        .until("synced", || {
            world.informer.store.sync_state() == SyncState::Synced
        })
        .await;
    assert_eq!(
        world.view().workload.map(|workload| workload.replicas),
        Some(3)
    );
    assert_eq!(
        (world.view().pods.active, world.view().pods.unscheduled),
        (1, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn the_task_ends_when_cancelled() {
    let World {
        informer, cancel, ..
    } = World::new([]);
    cancel.cancel();
    timeout(Duration::from_secs(1), informer.task)
        .await
        .expect("it ends in time")
        .expect("without a panic");
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_requests() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let world = World::new([(SET_PATH, replica_set(3, 1))]);
        world.synced().await;
        world.member.lock().cut_watches();
        sleep(Duration::from_mins(10)).await;
        runs.push(world.member.lock().requests.clone());
        world.cancel.cancel();
        world.informer.task.await.expect("no panic");
    }
    assert!(runs[0].len() > 60);
    assert_eq!(runs[0], runs[1]);
}

#[tokio::test(start_paused = true)]
async fn f39_with_another_cluster_the_view_is_stale_until_it_is_listed() {
    let world = World::new([(SET_PATH, replica_set(3, 3))]);
    world.synced().await;
    let other = Arc::new(Mutex::new(Member::default()));
    other.lock().put(SET_PATH, replica_set(5, 5));
    other.lock().down = true;
    world.informer.client.replace(client(&other));
    world.settle().await;
    let store = &world.informer.store;
    assert!(
        matches!(store.sync_state(), SyncState::Stale { .. }),
        "{:?}",
        store.sync_state()
    );
    assert_eq!(
        world.view().workload.map(|workload| workload.replicas),
        Some(3)
    );
    assert!(matches!(store.health(), Health::Failing { .. }));
    other.lock().down = false;
    world.synced().await;
    assert_eq!(
        world.view().workload.map(|workload| workload.replicas),
        Some(5)
    );
    let requests = world.member.lock().requests.len();
    sleep(Duration::from_secs(300)).await;
    assert_eq!(
        world.member.lock().requests.len(),
        requests,
        "the first client is no longer used"
    );
}

#[tokio::test(start_paused = true)]
async fn f33_another_cluster_does_not_reset_the_failure_streak() {
    let world = World::new([(SET_PATH, replica_set(3, 3))]);
    world.synced().await;
    world.lost().await;
    let before = world.informer.store.health();
    world.informer.client.replace(client(&world.member));
    world.settle().await;
    assert_eq!(world.informer.store.health(), before);
}

#[tokio::test(start_paused = true)]
async fn renewed_credentials_are_probed_at_once_and_keep_the_view() {
    let world = World::new([(SET_PATH, replica_set(3, 3))]);
    world.synced().await;
    let requests = |world: &World| world.member.lock().requests.clone();
    let before = requests(&world).len();
    world.informer.client.renew(client(&world.member));
    world.settle().await;
    assert_eq!(requests(&world)[before..], ["/readyz"]);
    assert_eq!(world.changes(), [""; 0]);
    world.member.lock().put(SET_PATH, replica_set(4, 3));
    world.settle().await;
    assert_eq!(
        world.view().workload.map(|workload| workload.replicas),
        Some(4),
        "the open watch continues"
    );

    let refused = Arc::new(Mutex::new(Member {
        down: true,
        ..Member::default()
    }));
    world.informer.client.renew(client(&refused));
    sleep(Duration::from_secs(300)).await;
    let store = &world.informer.store;
    assert!(
        matches!(store.health(), Health::Unreachable { .. }),
        "only the latest client is used"
    );
    assert!(
        refused
            .lock()
            .requests
            .iter()
            .any(|uri| uri.contains("watch=true"))
    );
}
