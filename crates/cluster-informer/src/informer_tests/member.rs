//! A member in memory, and a whole informer over it.

use std::{collections::BTreeMap, io};

use bytes::Bytes;
use fedrs_api::WorkloadKey;
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

use super::super::*;
use crate::{Health, MemberView, SyncState, WorkloadChange, WorkloadView};

pub(super) type Chunk = Result<Frame<Bytes>, io::Error>;

/// A member cluster. It refuses connections while `down`; a watch ends in time, and sends no bookmarks.
#[expect(clippy::struct_excessive_bools, reason = "independent faults")]
#[derive(Default)]
pub(super) struct Member {
    pub(super) version: u64,
    /// By path of the collection, by uid.
    pub(super) objects: BTreeMap<&'static str, BTreeMap<String, Value>>,
    pub(super) watches: Vec<(&'static str, mpsc::UnboundedSender<Chunk>)>,
    pub(super) watches_down: bool,
    /// Watches that begin now send their headers and nothing else.
    pub(super) stalled: bool,
    pub(super) down: bool,
    /// Answers every request with 403, as an API server that starts.
    pub(super) starting: bool,
    /// May list the nodes.
    pub(super) may_list_nodes: bool,
    /// The collections that may not be read.
    pub(super) forbidden: Vec<&'static str>,
    /// Watches fail with 410 until the next list.
    pub(super) compacted: bool,
    pub(super) requests: Vec<String>,
}

pub(super) const SET_PATH: &str = "/apis/apps/v1/replicasets";
pub(super) const DEPLOYMENT_PATH: &str = "/apis/apps/v1/deployments";
pub(super) const POD_PATH: &str = "/api/v1/pods";
pub(super) const NODE_PATH: &str = "/api/v1/nodes";
pub(super) const LEASE_PATH: &str =
    "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

pub(super) type HttpResponse = Result<Response<UnsyncBoxBody<Bytes, io::Error>>, io::Error>;

impl Member {
    /// The number of list requests.
    pub(super) fn lists(&self) -> usize {
        self.requests
            .iter()
            .filter(|uri| uri.contains("limit=500") && !uri.starts_with("/api/v1/nodes"))
            .count()
    }

    pub(super) fn respond(&mut self, uri: &http::Uri) -> HttpResponse {
        self.requests.push(uri.to_string());
        if self.down {
            return Err(io::Error::other("connection refused"));
        }
        if self.starting {
            return Ok(full(403, "{}".into()));
        }
        let path = match uri.path() {
            "/readyz" => return Ok(full(200, "ok".into())),
            NODE_PATH if self.may_list_nodes => NODE_PATH,
            LEASE_PATH if self.may_list_nodes => LEASE_PATH,
            "/version" | NODE_PATH => return Ok(full(403, "{}".into())),
            path if self.forbidden.contains(&path) => return Ok(full(403, "{}".into())),
            SET_PATH => SET_PATH,
            DEPLOYMENT_PATH => DEPLOYMENT_PATH,
            POD_PATH => POD_PATH,
            path => panic!("unexpected request for {path}"),
        };
        let query = uri.query().unwrap_or_default();
        assert!(
            [NODE_PATH, LEASE_PATH].contains(&path)
                || query.contains(
                    "labelSelector=fedrs.dev%2Ffederation%3Dfed%2Cfedrs.dev%2Freplica-set"
                ),
            "{query}"
        );
        if !query.contains("watch=true") {
            if query.contains("limit=500") {
                self.compacted = false;
            }
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

    pub(super) fn put(&mut self, path: &'static str, mut object: Value) {
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

    pub(super) fn remove(&mut self, path: &'static str, uid: &str) {
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

    pub(super) fn send(&mut self, path: &str, kind: &str, object: &Value) {
        let line = format!("{}\n", json!({"type": kind, "object": object}));
        for (_, watch) in self.watches.iter().filter(|(watched, _)| *watched == path) {
            let _gone = watch.unbounded_send(Ok(Frame::data(Bytes::from(line.clone()))));
        }
    }

    pub(super) fn cut_watches(&mut self) {
        for (_, watch) in self.watches.drain(..) {
            let _gone = watch.unbounded_send(Err(io::Error::other("reset")));
        }
    }
}

pub(super) fn full(status: u16, body: String) -> Response<UnsyncBoxBody<Bytes, io::Error>> {
    let body = Full::new(Bytes::from(body))
        .map_err(|never| match never {})
        .boxed_unsync();
    Response::builder()
        .status(status)
        .body(body)
        .expect("a response")
}

pub(super) fn replica_set(replicas: u32, available: u32) -> Value {
    json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "set", "generation": 1,
            "labels": {"fedrs.dev/federation": "fed", "fedrs.dev/replica-set": "web"}},
        "spec": {"replicas": replicas, "selector": {}, "template": {}},
        "status": {"observedGeneration": 1, "replicas": 3, "readyReplicas": available, "availableReplicas": available},
    })
}

/// A Deployment with `replicas`, which owns the ReplicaSet once that names it.
pub(super) fn deployment(replicas: u32) -> Value {
    let mut deployment = replica_set(replicas, 0);
    deployment["metadata"]["uid"] = json!("deployment");
    deployment
}

/// The ReplicaSet of the Deployment.
pub(super) fn owned_set(replicas: u32) -> Value {
    let mut set = replica_set(replicas, 0);
    set["metadata"]["name"] = json!("web-1");
    set["metadata"]["ownerReferences"] = json!([
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "deployment", "controller": true},
    ]);
    set
}

pub(super) fn pod(uid: &str, node: Option<&str>) -> Value {
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
pub(super) struct Changes(pub(super) Arc<Mutex<Vec<String>>>);

impl ChangeHandler for Changes {
    fn on_workload_change(&self, cluster: &str, key: &WorkloadKey, change: WorkloadChange) {
        self.0.lock().push(format!("{cluster} {key} {change:?}"));
    }

    fn on_cluster_change(&self, cluster: &str) {
        self.0.lock().push(cluster.to_owned());
    }
}

pub(super) struct World {
    pub(super) member: Arc<Mutex<Member>>,
    pub(super) changes: Changes,
    pub(super) informer: MemberInformer,
    pub(super) cancel: CancellationToken,
}

pub(super) fn client(member: &Arc<Mutex<Member>>) -> Client {
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
    pub(super) fn new(objects: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
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

    pub(super) fn view(&self) -> WorkloadView {
        self.informer
            .store
            .workload(&WorkloadKey::new("default", "web"))
    }

    /// The changes since the last call.
    pub(super) fn changes(&self) -> Vec<String> {
        std::mem::take(&mut *self.changes.0.lock())
    }

    pub(super) async fn synced(&self) {
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
    pub(super) async fn lost(&self) {
        self.member.lock().down = true;
        self.until("unreachable", || {
            matches!(self.informer.store.health(), Health::Unreachable { .. })
        })
        .await;
    }

    pub(super) async fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let wait = async {
            while !holds() {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_mins(2), wait)
            .await
            .unwrap_or_else(|_| panic!("not {what} within 2 minutes: {:?}", self.changes()));
    }

    pub(super) async fn settle(&self) {
        sleep(Duration::from_millis(20)).await;
    }
}
